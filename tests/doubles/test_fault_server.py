"""Every fault is seen on the wire to be what it says it is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from assay.models import replies as form
from assay.models.llm import ToolSpec
from doubles import EndpointFault, FaultServer, Script
from doubles.fault_replies import NO_SUCH_TOOL

WEIGHTS = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["note", "score"],
}
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOL = {"type": "function", "function": {"name": "search", "parameters": QUERY}}
SEARCH = ToolSpec("search", "Finds passages.", QUERY)
GOOD = {"note": "It says so.", "score": 7}
ENDLESS = {EndpointFault.hang, EndpointFault.hang_midway, EndpointFault.drip}


def wait_for_fault(server: FaultServer) -> None:
    """A client that gave up early may be ahead of the server."""
    end = time.monotonic() + 60
    while not server.fault_count and time.monotonic() < end:
        time.sleep(0.01)


def asked(role: str = "weigh", schema: dict[str, Any] | None = WEIGHTS, **more: Any) -> dict[str, Any]:
    form = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}} if schema else {}
    messages = [
        {"role": "system", "content": f"Assay · {role}\nGo."},
        {"role": "user", "content": "Aspirin lowers fever."},
    ]
    return {"messages": messages, **form, **more}


NATIVE = asked("decide", None, tools=[TOOL])
JSON_CALLS = asked("decide", form.choice_schema([SEARCH]))
IN_WORDS = asked(f"decide\n{form.choice_instructions([SEARCH])}", None)


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(
        timeout=60, headers={"Authorization": "Bearer sk-secret-1"}, verify=False, trust_env=False
    ) as opened:
        yield opened


@pytest.fixture
def strike(client: httpx.Client) -> Iterator[Callable[..., httpx.Response]]:
    """One request to a server with this fault."""
    opened: list[FaultServer] = []

    def one(fault: EndpointFault, request: dict[str, Any] | None = None) -> httpx.Response:
        server = FaultServer(lambda _: GOOD, fault)
        opened.append(server.__enter__())
        return client.post(f"{server.url}/chat/completions", json=request or asked())

    yield one
    for server in opened:
        server.__exit__(None, None, None)


def content(response: httpx.Response) -> Any:
    return response.json()["choices"][0]["message"]["content"]


def arguments(response: httpx.Response) -> list[str]:
    calls = response.json()["choices"][0]["message"]["tool_calls"]
    return [call["function"]["arguments"] for call in calls]


# --- when and where -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", list(EndpointFault))
def test_a_fault_strikes_its_role_and_leaves_the_others_alone(fault: EndpointFault, client: httpx.Client):
    with FaultServer(lambda _: GOOD, fault, at="weigh") as server:
        url = f"{server.url}/chat/completions"
        well = client.post(url, json=asked("judge"))
        try:
            ill = client.post(url, json=asked("weigh"), timeout=0.15 if fault in ENDLESS else 60)
            wrong = (ill.status_code, ill.content) != (well.status_code, well.content)
        except httpx.TransportError:
            wrong = True
        wait_for_fault(server)
        assert json.loads(content(well)) == GOOD and wrong and server.fault_count == 1
        assert json.loads(content(client.post(url, json=asked("judge")))) == GOOD


@pytest.mark.parametrize("fault", list(EndpointFault))
@pytest.mark.parametrize("request_", [NATIVE, JSON_CALLS, asked("write", None), asked(stream=True)])
@pytest.mark.long
def test_no_fault_breaks_the_server_whatever_is_asked(
    fault: EndpointFault, request_: dict[str, Any], client: httpx.Client
):
    before = set(threading.enumerate())
    with FaultServer(lambda _: GOOD, fault, at=None, times=1) as server:
        url = f"{server.url}/chat/completions"
        with contextlib.suppress(httpx.TransportError):
            client.post(url, json=request_, timeout=0.1 if fault in ENDLESS else 60)
        wait_for_fault(server)
        assert client.post(url, json=asked()).status_code == 200
        assert server.fault_count == 1 and not server.problems
    assert set(threading.enumerate()) <= before  # those of other tests may end meanwhile


def test_a_fault_can_be_set_while_the_server_runs_and_taken_back(client: httpx.Client):
    with FaultServer(lambda _: GOOD) as server:
        url = f"{server.url}/chat/completions"
        seen = []
        for fault in (None, EndpointFault.status_503, None):
            server.fault = fault
            seen.append(client.post(url, json=asked()).status_code)
    assert seen == [200, 503, 200]


def test_a_prompt_can_be_struck_by_its_own_name(client: httpx.Client):
    with FaultServer(lambda _: GOOD, EndpointFault.status_500, at="critique") as server:
        url = f"{server.url}/chat/completions"
        codes = [client.post(url, json=asked(role)).status_code for role in ("judge", "judge · critique")]
    assert codes == [200, 500]


def test_what_is_struck_uses_up_nothing_of_a_script_unless_the_reply_is_still_good(client: httpx.Client):
    script = Script(weigh=[GOOD])
    with FaultServer(script.answer, EndpointFault.prose, times=2) as server:
        url = f"{server.url}/chat/completions"
        for _ in range(2):
            assert not content(client.post(url, json=asked())).startswith("{")
        server.fault, server.times = EndpointFault.usage_missing, None
        assert json.loads(content(client.post(url, json=asked()))) == GOOD
    script.assert_used_up()


# --- the connection -------------------------------------------------------------------------------------------------


def test_refuse_resets_before_the_request_is_read():
    with FaultServer(lambda _: GOOD, EndpointFault.refuse) as server, socket.socket() as raw:
        raw.settimeout(60)
        with pytest.raises(ConnectionResetError):  # while connecting, or right after
            raw.connect(("127.0.0.1", int(server.url.split(":")[2].split("/")[0])))
            raw.recv(1)
        assert not server.requests


def test_hanging_up_is_an_end_and_no_reset(strike):
    with pytest.raises(httpx.RemoteProtocolError):
        strike(EndpointFault.hang_up)


@pytest.mark.parametrize("fault", [EndpointFault.hang, EndpointFault.hang_midway])
def test_a_server_that_hangs_never_says_a_word_more(fault: EndpointFault, strike, client: httpx.Client):
    client.timeout = httpx.Timeout(0.2)
    with pytest.raises(httpx.ReadTimeout):
        strike(fault)


@pytest.mark.fake_clock
async def test_a_drip_keeps_a_read_timeout_from_ever_striking():
    clock = asyncio.get_running_loop().time
    async with (
        FaultServer(lambda _: GOOD, EndpointFault.drip) as server,
        httpx.AsyncClient(timeout=0.5, verify=False, trust_env=False) as client,
    ):
        started, got = clock(), b""
        async with client.stream("POST", f"{server.url}/chat/completions", json=asked()) as response:
            async for byte in response.aiter_raw():
                got += byte
                if clock() - started > 5:
                    break
        assert 20 <= len(got) <= 30 < int(response.headers["content-length"])


@pytest.mark.parametrize("fault", [EndpointFault.reset_mid_body, EndpointFault.reset_mid_stream])
@pytest.mark.parametrize("stream", [False, True])
def test_a_reset_comes_after_half_the_reply(fault: EndpointFault, stream: bool, client: httpx.Client):
    got = b""
    with FaultServer(lambda _: GOOD, fault) as server, pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        url = f"{server.url}/chat/completions"
        with client.stream("POST", url, json=asked(stream=stream)) as response:
            assert response.status_code == 200
            for piece in response.iter_raw():
                got += piece
    assert (b"chat.completion.chunk" in got) == stream and b"chat.completion" in got


# --- statuses -------------------------------------------------------------------------------------------------------


def test_retry_after_comes_in_every_shape(strike):
    seen = {fault.name: strike(fault) for fault in EndpointFault if fault.name.startswith("limited")}
    assert {response.status_code for response in seen.values()} == {429}
    after = {name: response.headers.get("retry-after") for name, response in seen.items()}
    ahead = parsedate_to_datetime(str(after.pop("limited_future"))).timestamp() - time.time()
    passed = parsedate_to_datetime(str(after.pop("limited_past"))).timestamp() - time.time()
    assert 3500 < ahead <= 3600 and passed < 0
    assert after == {
        "limited": None,
        "limited_zero": "0",
        "limited_one": "1",
        "limited_fraction": "0.25",
        "limited_negative": "-1",
        "limited_day": "86400",
        "limited_nonsense": "soon",
    }


def test_statuses_are_what_they_are_called(strike):
    for code in (500, 502, 503, 529):
        assert strike(EndpointFault[f"status_{code}"]).status_code == code
    assert strike(EndpointFault.unauthorised).status_code == 401
    assert "sk-secret-1" not in strike(EndpointFault.unauthorised).text


def test_an_echoed_key_is_the_one_that_was_sent(strike):
    response = strike(EndpointFault.echoed_key)
    assert response.status_code == 401 and "sk-secret-1" in response.json()["error"]["message"]


def test_too_long_is_said_the_way_openai_says_it(strike):
    response = strike(EndpointFault.too_long)
    assert response.status_code == 400 and response.json()["error"]["code"] == "context_length_exceeded"
    assert "4096" in response.json()["error"]["message"]


def test_html_comes_with_status_200(strike):
    response = strike(EndpointFault.html)
    assert response.status_code == 200 and response.text.startswith("<!doctype html>")


# --- replies --------------------------------------------------------------------------------------------------------


def test_choices_are_empty_and_a_message_is_null(strike):
    assert strike(EndpointFault.empty_choices).json()["choices"] == []
    assert strike(EndpointFault.null_message).json()["choices"][0]["message"] is None
    assert '"choices": []' in strike(EndpointFault.empty_choices, asked(stream=True)).text
    assert '"delta": null' in strike(EndpointFault.null_message, asked(stream=True)).text


@pytest.mark.parametrize("request_", [asked(), NATIVE, asked(stream=True)])
def test_what_is_not_utf8_is_otherwise_well_formed(request_: dict[str, Any], strike):
    raw = strike(EndpointFault.not_utf8, request_).content
    with pytest.raises(UnicodeDecodeError):
        raw.decode()
    json.loads(raw.decode(errors="replace").removeprefix("data: ").partition("\n\n")[0])


def test_prose_is_no_json_and_calls_nothing(strike):
    for request in (asked(), NATIVE):
        with pytest.raises(ValueError):
            json.loads(content(strike(EndpointFault.prose, request)))


def test_a_reply_that_is_cut_off_says_so(strike):
    choice = strike(EndpointFault.cut_off).json()["choices"][0]
    assert choice["finish_reason"] == "length"
    with pytest.raises(ValueError):
        json.loads(choice["message"]["content"])


def test_extra_fields_stand_beside_good_ones_and_wrong_types_take_their_place(strike):
    extra = json.loads(content(strike(EndpointFault.extra_fields)))
    assert extra.keys() > {"note", "score"} and extra["score"] == 10
    assert json.loads(content(strike(EndpointFault.wrong_types))) == {"note": [extra["note"]], "score": "perhaps"}


def pairs_of(text: str) -> Any:
    return json.loads(text, object_pairs_hook=list)


def test_arguments_are_broken_natively(strike):
    good = {"query": "Aspirin lowers fever."}
    [truncated] = arguments(strike(EndpointFault.arguments_truncated, NATIVE))
    assert json.dumps(good).startswith(truncated) and truncated != json.dumps(good)
    assert [json.loads(each) for each in arguments(strike(EndpointFault.arguments_list, NATIVE))] == [[good]]
    assert arguments(strike(EndpointFault.arguments_number, NATIVE)) == ["42"]
    [twice] = arguments(strike(EndpointFault.arguments_duplicated, NATIVE))
    assert [key for key, _ in pairs_of(twice)] == ["query", "query"]
    assert arguments(strike(EndpointFault.arguments_nan, NATIVE)) == ['{"query": NaN}']
    [huge] = arguments(strike(EndpointFault.arguments_huge, NATIVE))
    assert len(huge) > 5_000_000 and json.loads(huge).keys() == {"query"}


@pytest.mark.parametrize("request_", [JSON_CALLS, IN_WORDS], ids=["schema", "words"])
def test_arguments_are_broken_in_the_json_protocol_too(request_: dict[str, Any], strike):
    def inner(fault: EndpointFault) -> Any:
        return json.loads(content(strike(fault, request_)))["calls"][0]["arguments"]

    good = {"query": "Aspirin lowers fever."}
    with pytest.raises(ValueError):
        inner(EndpointFault.arguments_truncated)
    assert inner(EndpointFault.arguments_list) == [good]
    assert inner(EndpointFault.arguments_number) == 42
    assert '"arguments": {"query": NaN}' in content(strike(EndpointFault.arguments_nan, request_))
    assert content(strike(EndpointFault.arguments_duplicated, request_)).count('"query"') == 2
    assert len(inner(EndpointFault.arguments_huge)["query"]) == 5_000_000


def test_where_there_are_no_calls_the_reply_itself_is_broken(strike):
    assert content(strike(EndpointFault.arguments_number)) == "42"
    assert isinstance(json.loads(content(strike(EndpointFault.arguments_list))), list)
    assert '"score": NaN' in content(strike(EndpointFault.arguments_nan))
    assert [key for key, _ in pairs_of(content(strike(EndpointFault.arguments_duplicated)))] == ["note", "score"] * 2
    assert len(content(strike(EndpointFault.arguments_huge))) > 5_000_000


def test_an_unknown_tool_is_called_in_the_way_that_tools_are(strike):
    def named(request: dict[str, Any]) -> str:
        message = strike(EndpointFault.unknown_tool, request).json()["choices"][0]["message"]
        native = message.get("tool_calls")
        return native[0]["function"]["name"] if native else json.loads(message["content"])["calls"][0]["tool"]

    assert named(NATIVE) == named(JSON_CALLS) == named(IN_WORDS) == named(asked()) == NO_SUCH_TOOL


def test_two_hundred_calls_are_all_different(strike):
    assert len(set(arguments(strike(EndpointFault.parallel_calls, NATIVE)))) == 200
    calls = json.loads(content(strike(EndpointFault.parallel_calls, JSON_CALLS)))["calls"]
    assert len({json.dumps(call) for call in calls}) == 200


def test_only_the_bill_is_wrong(strike):
    seen = {fault: strike(fault) for fault in EndpointFault if fault.harmless}
    assert all(json.loads(content(response)) == GOOD for response in seen.values())
    assert "usage" not in seen[EndpointFault.usage_missing].json()
    assert seen[EndpointFault.usage_negative].json()["usage"]["completion_tokens"] < 0
    assert seen[EndpointFault.usage_huge].json()["usage"]["total_tokens"] >= 10**15
