"""The one way to an endpoint, against a server on the loopback that misbehaves as it is told."""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from loopback import Loopback, Naps, Saying, drips, hangs, never_ends, resets, says

from assay.core.errors import Late, ModelError, UserError
from assay.models.http import (
    EndpointClient,
    EndpointNames,
    Response,
    address_of,
    pause_before,
    public_address,
    retry_after,
)

KEY = "sk-very-secret-1234"
NAMES = EndpointNames("chat", url="llm_base_url", key="llm_api_key", model="llm_model")
NOW = datetime(2025, 1, 1, tzinfo=UTC)


def wire(loopback: Loopback, **more: Any) -> EndpointClient:
    return EndpointClient(f"{loopback.url}/v1/things", NAMES, **{"api_key": KEY, **more})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:30 GMT"}, 30),
        ({"retry-after": "Wed, 01 Jan 2020 00:00:30 GMT"}, 0),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "1e9"}, 1e9),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 01 Jan 2025 00:00:30 -0000"}, None),  # a date that names no zone cannot be compared
        ({"retry-after": "Wed, 99 Foo 99999999 00:00:30 GMT"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500", "retry-after": "60"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "60"}, 60),
        ({}, None),
    ],
)
def test_a_wish_to_be_left_alone_is_read_in_every_shape(headers: dict[str, str], seconds: float | None):
    assert retry_after(headers, NOW) == seconds


def test_pauses_grow_up_to_a_limit_and_at_once_is_not_taken_literally():
    assert [pause_before(tries, None) for tries in (1, 2, 3, 7, 5000)] == [0.5, 1, 2, 20, 20]
    assert [pause_before(1, wish) for wish in (0, 3)] == [0.5, 3]


async def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(loopback: Loopback):
    loopback.answer = lambda seen, n: says("busy", 503, Retry_After_Ms="2500") if n < 3 else says({"well": 1})
    naps = Naps()
    assert (await wire(loopback, sleep=naps).post({}, 30)).json() == {"well": 1}
    assert naps.taken == [2.5, 2.5]


@pytest.mark.fake_clock
async def test_a_wish_that_goes_past_the_deadline_ends_the_call_at_once(loopback: Loopback):
    loopback.answer = lambda seen, n: says({"error": "busy"}, 429, Retry_After="3600")
    began = asyncio.get_running_loop().time()
    with pytest.raises(ModelError, match=r"asked too often \(429\); gave up after 1 tries in 30 s\. It said: .*busy"):
        await wire(loopback).post({}, 30)
    assert asyncio.get_running_loop().time() - began < 1


async def reply_to(client: EndpointClient, is_final: Callable[[Response], bool]) -> Response:
    return await client.exchange(dict, 30, lambda response: response, is_final=is_final)


async def test_a_status_that_often_passes_is_not_repeated_when_it_says_that_it_will_not(loopback: Loopback):
    loopback.answer = lambda seen, n: says("never", 500)
    assert (await reply_to(wire(loopback), is_final=lambda response: response.text == "never")).status == 500
    assert len(loopback.seen) == 1


SLOW: dict[str, Saying] = {"hangs": hangs, "drips": drips}


@pytest.mark.fake_clock
@pytest.mark.parametrize("kind", SLOW)
async def test_the_deadline_holds_however_slowly_an_endpoint_speaks(loopback: Loopback, kind: str):
    loopback.answer = lambda seen, n: SLOW[kind]
    began = asyncio.get_running_loop().time()
    with pytest.raises(Late, match=r"did not answer in 0\.4 s"):
        await wire(loopback).post({}, 0.4)
    assert asyncio.get_running_loop().time() - began < 0.9


@pytest.mark.fake_clock
async def test_what_went_wrong_before_the_deadline_is_said_too(loopback: Loopback):
    loopback.answer = lambda seen, n: says({"error": "overloaded"}, 503) if n == 1 else hangs
    with pytest.raises(ModelError, match=r"before that it answered with status 503.*overloaded"):
        await wire(loopback, sleep=Naps()).post({}, 0.8)


@pytest.mark.parametrize("knocks", [3, 0])
async def test_an_address_at_which_nobody_opens_is_tried_as_often_as_is_said(knocks: int):
    naps = Naps()
    with pytest.raises(ModelError, match=r"could not be reached"):
        await EndpointClient("http://127.0.0.1:9/x", NAMES, connect_attempts=knocks, sleep=naps).post(
            {}, 60 if knocks else 2.5
        )
    assert len(naps.taken) == 2 if knocks else len(naps.taken) > 2


async def test_no_time_at_all_is_an_error_and_no_request(loopback: Loopback):
    with pytest.raises(ModelError, match="did not answer in 0 s"):
        await wire(loopback).post({}, -1)


async def test_a_line_that_goes_dead_in_mid_reply_is_tried_again(loopback: Loopback):
    loopback.answer = lambda seen, n: resets if n == 1 else says({"well": 1})
    assert (await wire(loopback, sleep=Naps()).post({}, 30)).json() == {"well": 1}


async def test_a_reply_without_end_is_not_read_to_its_end(loopback: Loopback):
    loopback.answer = lambda seen, n: never_ends(loopback)
    with pytest.raises(ModelError, match="more than 1 megabytes"):
        await wire(loopback, largest=1_000_000).post({}, 30)
    assert loopback.sent < 20_000_000  # what the two sockets between hold, and no more
    assert len(loopback.seen) == 1


@pytest.mark.parametrize("size", [100, 50_000_000])
async def test_a_packed_reply_is_read_unless_it_unpacks_into_too_much(loopback: Loopback, size: int):
    packed = gzip.compress(b"1" * size)
    loopback.answer = lambda seen, n: says(packed, Content_Encoding="gzip")
    if size == 100:
        assert (await wire(loopback).post({}, 30)).body == b"1" * size
        return
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="more than 5 megabytes"):
            await wire(loopback).post({}, 30)
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("coding", "body", "words"),
    [("br", b"x", "an encoding that nobody asked for"), ("gzip", b"no gzip", "sent what cannot be unpacked")],
)
async def test_a_reply_that_cannot_be_unpacked_is_an_error_in_words(
    loopback: Loopback, coding: str, body: bytes, words: str
):
    loopback.answer = lambda seen, n: says(body, Content_Encoding=coding)
    with pytest.raises(ModelError, match=words):
        await wire(loopback).post({}, 0.4)


def test_bytes_that_are_no_text_become_marks_and_odd_json_is_an_error_in_words():
    assert Response(200, {}, b'"caf\xe9"').json() == "caf�"
    assert Response(200, {}, b'\xef\xbb\xbf"bom"').json() == "bom"
    for body in (b"<html>", b"", b"[" * 200_000, b"1" * 10_000):
        with pytest.raises(ValueError):
            Response(200, {}, body).json()


async def test_half_a_character_in_a_prompt_does_not_keep_it_from_being_sent(loopback: Loopback):
    await wire(loopback).post({"text": "caf\ud83d, naïve"}, 30)
    assert loopback.seen[0].json == {"text": "caf?, naïve"}


# ── what is secret ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_neither_key_nor_password_is_in_an_error_a_repr_or_a_log(
    loopback: Loopback, status: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    secrets = (KEY, "hunter2%21", "hunter2!", "bWU6aHVudGVyMiE=")
    loopback.answer = lambda seen, n: says(f"You sent {secrets} {seen.headers['authorization']}", status)
    at = wire(loopback)
    at.address = at.address.replace("://", "://me:hunter2%21@")
    with pytest.raises(ModelError) as raised:
        raise at.refused(await reply_to(at, is_final=lambda _: True))
    assert loopback.seen[0].headers["authorization"] == "Basic bWU6aHVudGVyMiE="
    shown = f"{raised.value} {raised.value!r} {at!r} {caplog.text}"
    assert not [secret for secret in secrets if secret in shown]


async def test_the_key_goes_out_and_is_not_sent_on_to_another_address(loopback: Loopback):
    loopback.answer = lambda seen, n: says("", 307, Location=f"{loopback.url}/elsewhere")
    with pytest.raises(ModelError, match=r"another address \(307\), which is not followed: check `llm_base_url`"):
        at = wire(loopback)
        raise at.refused(await at.post({}, 30))
    assert [seen.path for seen in loopback.seen] == ["/v1/things"]
    assert loopback.seen[0].headers["authorization"] == f"Bearer {KEY}"


def test_an_address_is_shown_without_password_and_query():
    assert public_address("https://me:pass@host:8/v1?key=secret#x") == "https://host:8/v1"
    assert "pass" not in public_address("https://me:pass@[bad/v1")


@pytest.mark.parametrize(
    ("status", "key", "words"),
    [
        (401, KEY, "refused the key (401): check `llm_api_key`"),
        (403, "", "wants a key (403): set `llm_api_key`"),
        (404, KEY, "check `llm_base_url` and `llm_model`"),
        (418, KEY, "answered with status 418"),
    ],
)
async def test_a_refusal_names_the_setting_to_look_at(loopback: Loopback, status: int, key: str, words: str):
    loopback.answer = lambda seen, n: says("no", status)
    at = wire(loopback, api_key=key)
    assert words in str(at.refused(await at.post({}, 30)))
    assert len(loopback.seen) == 1


# ── what a person set ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"proxy": "nonsense://me:pass@host"}, r"The proxy 'nonsense://\*\*\*@host' cannot be used: set `proxy`"),
        ({"ca_bundle": "/no/such/file"}, "set `ca_bundle`"),
        ({"address": "ftp://host/x"}, "No request can be made of `llm_base_url` and `llm_api_key`"),
        ({"address": "http://[bad/x"}, "No request can be made of `llm_base_url` and `llm_api_key`"),
        ({"api_key": "kéy"}, "No request can be made of `llm_base_url` and `llm_api_key`"),
    ],
)
async def test_a_setting_that_cannot_be_used_is_the_persons_to_put_right(change: dict[str, str], words: str):
    with pytest.raises(UserError, match=words) as raised:
        await EndpointClient(**{"address": "http://127.0.0.1:9/x", "names": NAMES, **change}).post({}, 5)  # type: ignore[arg-type]
    assert "kéy" not in str(raised.value)


async def test_a_file_that_holds_no_certificates_is_named(tmp_path: Path):
    (tmp_path / "own.pem").write_text("not a certificate")
    with pytest.raises(UserError, match=r"own\.pem"):
        await EndpointClient("http://127.0.0.1:9/x", NAMES, ca_bundle=str(tmp_path / "own.pem")).post({}, 5)


async def test_an_encrypted_line_is_only_used_with_a_certificate_that_is_trusted(tmp_path: Path, monkeypatch: Any):
    at = EndpointClient("https://127.0.0.1:9/x", NAMES)
    assert at._trusted().verify_mode == ssl.CERT_REQUIRED
    assert EndpointClient("http://127.0.0.1:9/x", NAMES)._trusted().verify_mode == ssl.CERT_REQUIRED

    def untrusted(*_: object, **__: object) -> None:
        raise httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")

    monkeypatch.setattr(at._client(), "stream", untrusted)
    with pytest.raises(ModelError, match="not trusted here: check `ca_bundle`"):
        await at.post({}, 30)


async def test_requests_go_through_the_proxy(loopback: Loopback):
    loopback.answer = lambda seen, n: says({"by": "proxy"})
    reached = await EndpointClient("http://model.invalid/v1/x", NAMES, proxy=loopback.url).post({}, 5)
    assert reached.json() == {"by": "proxy"}
    assert loopback.seen[0].path == "http://model.invalid/v1/x"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://a", "http://a/v1/chat/completions"),
        ("http://a/", "http://a/v1/chat/completions"),
        ("http://a/v1/", "http://a/v1/chat/completions"),
        (" http://a/api/v1 ", "http://a/api/v1/chat/completions"),
        ("http://a/v1/chat/completions", "http://a/v1/chat/completions"),
        ("http://a/v1?api-version=2", "http://a/v1/chat/completions?api-version=2"),
    ],
)
def test_an_address_may_be_given_in_part_or_in_full(url: str, address: str):
    assert address_of(url, "/chat/completions", root="/v1") == address


# ── connections ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_connection_is_used_again(loopback: Loopback):
    at = wire(loopback)
    for _ in range(3):
        await at.post({}, 5)
    assert loopback.connections == 1
    await at.close()


def test_event_loops_can_come_and_go():
    at: list[EndpointClient] = []

    async def ask() -> int:
        loopback = Loopback()
        await loopback.start()
        if not at:
            at.append(wire(loopback))
        at[0].address = f"{loopback.url}/x"
        try:
            return (await at[0].post({}, 5)).status
        finally:
            await loopback.stop()

    assert [asyncio.run(ask()) for _ in range(3)] == [200, 200, 200]
    assert len(at[0]._clients) == 1  # those of loops that are gone were let go


async def test_being_cancelled_is_no_error_of_the_endpoint(loopback: Loopback):
    loopback.answer = lambda seen, n: hangs
    asking = asyncio.create_task(wire(loopback).post({}, 30))
    await asyncio.sleep(0.1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
