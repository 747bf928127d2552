"""What a request may come from, how much it may bring, how often; and what every reply says to a browser."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from doubles import ChatServer
from fastapi import FastAPI
from serving import QUESTION, Served, served, slow, until
from starlette.responses import StreamingResponse
from team import team

from assay.serve import limits
from assay.serve.guard import MAX_BODY, MAX_UPLOAD, RequestGuard, address_matches, client_address
from assay.serve.limits import RateLimiter
from assay.serve.routes import people
from assay.serve.state import ServeOptions, Server
from assay.workspace.context import OnStore
from assay.workspace.facade import Workspace
from assay.workspace.services.people import People


def made(client: httpx.Client, name: str, **headers: str) -> int:
    return client.post("/api/bases", json={"name": name}, headers=headers).status_code


# --- the name that a server goes by ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.7", "x@localhost"]
)
def test_a_page_that_has_its_own_name_lead_to_this_machine_gets_nothing(at: Served, host: str):
    with at.client(Host=f"{host}:8321") as client:
        for path in ("/", "/api/me", "/api/documents", "/v1/models", "/health", "/static/app.js", "/mcp"):
            reply = client.get(path)
            assert reply.status_code == 403 and "does not go by the name" in reply.text, path
            if path == "/v1/models":
                assert reply.json()["error"]["type"] == "permission_error"
            elif path != "/":  # instead of the page, words
                assert reply.json()["error"] == "forbidden", path


@pytest.mark.long
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8321", "127.0.0.1:80", "[::1]:8321", "127.0.0.9", "localhost."]
)
def test_this_machines_own_names_are_fine(at: Served, host: str):
    with at.client(Host=host) as client:
        assert client.get("/api/me").status_code == 200


def test_a_request_without_a_host_or_with_two_gets_nothing(at: Served):
    port = int(at.url.rpartition(":")[2])
    for hosts in ("", "Host: localhost\r\nHost: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(f"GET /api/me HTTP/1.0\r\n{hosts}\r\n".encode())
            assert line.recv(100).split()[1] in {b"400", b"403"}


def test_a_server_may_go_by_other_names_that_it_was_told(folder: Path):
    with served(folder, serving=ServeOptions(hosts=("desk.example",))) as at:
        with at.client(Host="desk.example") as client:
            assert client.get("/api/me").status_code == 200
        with at.client(Host="evil.example") as client:
            assert client.get("/api/me").status_code == 403


def test_where_people_sign_in_a_named_server_answers_to_its_names_and_to_probes(folder: Path):
    with (
        team(folder, serving=ServeOptions(auth="keys", hosts=("desk.example",))) as tool_context,
        tool_context.as_("reader") as client,
    ):
        assert client.get("/api/me", headers={"Host": "evil.example"}).status_code == 403
        assert client.get("/api/me", headers={"Host": "desk.example"}).status_code == 200
        assert client.get("/health", headers={"Host": "10.1.2.3:8321"}).status_code == 200


# --- pages of others ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "origin",
    (
        *("https://evil.example", "null", "http://localhost:1", "http://127.0.0.1", "file://"),
        *("", "http://", "x", "http://[::1", "http://[evil]"),
    ),
)
def test_a_page_from_elsewhere_changes_nothing(at: Served, origin: str):
    with at.client() as client:
        assert made(client, "theirs", Origin=origin) == 403
        assert [base["name"] for base in client.get("/api/bases").json()] == ["default"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
def test_a_form_on_a_page_from_elsewhere_sends_nothing(at: Served, kind: str):
    """A browser sends such a form without asking, with cookies, and says where it comes from."""
    form = json.dumps({"question": QUESTION})
    with at.client(**{"Origin": "https://evil.example", "Content-Type": kind}) as client:
        for path in ("/api/runs", "/api/ask", "/v1/chat/completions", "/mcp", "/api/bases/default/documents"):
            assert client.post(path, content=form).status_code == 403, path
    with at.client() as client:
        assert client.get("/api/runs").json()["runs"] == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_a_request_that_a_browser_marks_as_from_elsewhere_changes_nothing(at: Served, site: str):
    with at.client() as client:
        assert made(client, "theirs", **{"Sec-Fetch-Site": site}) == 403


def test_the_page_itself_and_programs_make_changes(at: Served):
    with at.client() as client:
        assert made(client, "one", Origin=at.url, **{"Sec-Fetch-Site": "same-origin"}) == 201
        assert made(client, "two") == 201
        assert made(client, "three", Origin="https://localhost", Host="localhost") == 201
        assert made(client, "four", Origin="http://localhost:8321", Host="localhost:8321") == 201


def test_behind_a_proxy_that_keeps_its_own_name_the_page_still_makes_changes(folder: Path):
    with served(folder, serving=ServeOptions(hosts=("desk.example",))) as at, at.client() as client:
        assert made(client, "one", Origin="https://desk.example", Host="127.0.0.1:8321") == 201
        assert made(client, "two", Origin="https://evil.example", Host="127.0.0.1:8321") == 403


def test_with_a_session_or_a_key_a_page_from_elsewhere_changes_nothing_either(folder: Path):
    with (
        team(folder) as tool_context,
        tool_context.as_("reader") as client,
        tool_context.signed_in("reader") as browser,
    ):
        assert made(client, "theirs", Origin="https://evil.example") == 403
        assert made(browser, "theirs", Origin="https://evil.example") == 403
        credentials = {"name": "reader", "password": "a lamp on the pier"}
        reply = client.post("/api/session", json=credentials, headers={"Origin": "https://evil.example"})
        assert reply.status_code == 403, "nobody is signed in by a page from elsewhere"
        assert client.get("/api/bases").json() == []


# --- how much -------------------------------------------------------------------------------------------------------


def test_more_than_a_request_may_bring_is_refused_whether_it_says_so_or_not(at: Served):
    long = b'{"question": "' + b"w" * MAX_BODY + b'"}'

    def pieces():
        for start in range(0, len(long), 50_000):
            yield long[start : start + 50_000]

    with at.client(**{"Content-Type": "application/json"}) as client:
        for path in ("/api/runs", "/api/search", "/v1/chat/completions"):
            for body in (long, pieces()):
                reply = client.post(path, content=body)
                assert reply.status_code == 413, (path, reply.text)
        assert client.post("/api/runs", content=long).json()["error"] == "too-large"


def test_what_says_that_it_is_too_long_is_refused_before_it_is_sent(at: Served):
    port = int(at.url.rpartition(":")[2])
    for path, length in (("/api/runs", MAX_BODY + 1), ("/api/bases/default/documents", MAX_UPLOAD + 1)):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            line.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode())
            assert line.recv(100).split()[1] == b"413", path


def test_files_may_be_longer_than_that(at: Served):
    with at.client() as client:
        reply = client.post("/api/bases/default/documents", files={"files": ("a.txt", b"word " * 300_000)})
        assert reply.status_code == 202, reply.text


def test_a_length_that_is_no_number_is_refused_by_the_server_or_by_the_guard(at: Served):
    port = int(at.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b"POST /api/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
        assert line.recv(100).split()[1] in {b"400", b"413"}


# --- how often ------------------------------------------------------------------------------------------------------


def test_too_many_requests_of_one_person_are_told_when_to_come_back_and_keep_nobody_else_waiting(folder: Path):
    with (
        team(folder, serve_requests_per_minute=5) as tool_context,
        tool_context.as_("reader") as one,
        tool_context.as_("editor") as other,
    ):
        assert [one.get("/api/bases").status_code for _ in range(6)] == [200] * 5 + [429]
        reply = one.get("/api/me")
        assert reply.json()["error"] == "too-many" and 1 <= int(reply.headers["Retry-After"]) <= 13
        assert other.get("/api/bases").status_code == 200
        assert one.get("/health").status_code == 200, "a probe is never refused"
        with tool_context.at.client(Authorization="Bearer wrong") as stranger:
            assert [stranger.get("/api/me").status_code for _ in range(7)] == [401] * 5 + [429] * 2


def test_a_bucket_fills_again_and_never_over_its_brim():
    now = [0.0]
    buckets = RateLimiter(lambda: now[0])
    assert [buckets.take("reader", 60) for _ in range(60)] == [0.0] * 60
    assert buckets.take("reader", 60) == pytest.approx(1.0)
    now[0] = 1.0
    assert buckets.take("reader", 60) == 0.0 and buckets.take("reader", 60) > 0
    now[0] = 10_000.0
    assert sum(buckets.take("reader", 60) == 0.0 for _ in range(100)) == 60
    assert buckets.take("reader", 0) == 0.0


def test_buckets_do_not_grow_without_end_and_forget_whoever_was_silent_longest():
    buckets = RateLimiter(lambda: 0.0, most=10)
    for n in range(1000):
        buckets.take(f"address:{n}", 1)
        buckets.take("reader", 100_000)
    assert len(buckets) == 10
    assert buckets.take("address:999", 1) > 0


def test_runs_of_one_person_beyond_the_limit_are_refused_and_there_is_room_when_one_has_ended(folder: Path):
    with ChatServer(slow(0.5)) as model, served(folder, model, serve_runs_per_person=2) as at, at.client() as client:
        runs = [client.post("/api/runs", json={"question": QUESTION}) for _ in range(2)]
        assert [reply.status_code for reply in runs] == [201, 201]
        for path in ("/api/runs", "/api/ask", "/api/synthesis"):
            body = {"question": QUESTION} if path != "/api/synthesis" else {"bases": ["default"]}
            reply = client.post(path, json=body)
            assert (reply.status_code, reply.json()["error"]) == (429, "too-many"), path
            assert int(reply.headers["Retry-After"]) >= 1
        client.post(f"/api/runs/{runs[0].json()['run']}/cancel")
        assert client.post("/api/runs", json={"question": QUESTION}).status_code == 201


@pytest.mark.long
def test_runs_that_begin_at_the_same_moment_count_each_other(folder: Path):
    with ChatServer(slow(0.5)) as model, served(folder, model, serve_runs_per_person=2) as at:

        def begin(_: int) -> int:
            return httpx.post(at.url + "/api/runs", json={"question": QUESTION}, timeout=30).status_code

        with ThreadPoolExecutor(10) as pool:
            seen = list(pool.map(begin, range(10)))
        assert seen.count(201) == 2 and set(seen) == {201, 429}
        assert not at.server.limits.beginning
        until(lambda: at.server.runs.count_for("local") == 0)


def test_streams_of_one_person_beyond_all_measure_are_refused_and_keep_nobody_else_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "MAX_OPEN_REQUESTS", 3)
    with ChatServer(slow(30)) as model, team(folder, model) as tool_context, ExitStack() as held:
        one, other = held.enter_context(tool_context.as_("editor")), held.enter_context(tool_context.as_("reader"))
        run = one.post("/api/runs", json={"question": QUESTION}).json()["run"]
        for _ in range(3):
            assert held.enter_context(one.stream("GET", f"/api/runs/{run}/events")).status_code == 200
        refused = one.get("/api/me")
        assert (refused.status_code, refused.json()["error"]) == (429, "too-many") and refused.headers["Retry-After"]
        assert other.get("/api/me").status_code == 200
        held.close()
        with tool_context.as_("editor") as again:
            until(lambda: again.get("/api/me").status_code == 200)
            again.post(f"/api/runs/{run}/cancel")
    assert not tool_context.at.server.limits.beginning


def test_uploads_that_wait_beyond_the_limit_are_refused(folder: Path):
    with served(folder, serve_uploads_per_person=1) as at, at.client() as client:
        at.server.worker.closing = True  # nothing is read: what is sent waits
        sent = [client.post("/api/bases/default/documents", files={"files": ("a.txt", b"words")}) for _ in range(2)]
        assert [reply.status_code for reply in sent] == [202, 429]
        assert sent[1].json()["error"] == "too-many" and int(sent[1].headers["Retry-After"]) >= 1
        assert len(list(at.server.worker.uploads.folder.iterdir())) == 1, "nothing of what was refused is kept"
        client.post(f"/api/jobs/{sent[0].json()['id']}/cancel")
        assert client.post("/api/bases/default/documents", files={"files": ("a.txt", b"words")}).status_code == 202


# --- what a reply says to a browser ---------------------------------------------------------------------------------

ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def test_every_reply_keeps_a_browser_to_this_place(folder: Path):
    with team(folder) as tool_context, tool_context.as_("editor") as client, tool_context.at.client() as stranger:
        replies = [
            *(
                client.get(path)
                for path in ("/", "/static/app.js", "/health", "/api/me", "/api/nothing", "/openapi.json")
            ),
            client.post("/api/runs", content=b"{"),
            client.post("/api/runs", content=b"w" * (MAX_BODY + 1)),
            client.put("/api/me"),
            stranger.get("/api/me"),
            stranger.post("/api/session", json={"name": "reader", "password": "wrong"}, headers={"Origin": "null"}),
        ]
    for reply in replies:
        assert ALWAYS.items() <= dict(reply.headers).items(), reply.url
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and "http" not in policy and "*" not in policy
        assert "access-control-allow-origin" not in reply.headers
        if reply.url.path.startswith("/api"):
            assert reply.headers["cache-control"] == "no-store"
    page = replies[0].headers["content-security-policy"]
    assert "script-src 'self'" in page and "base-uri 'none'" in page and "form-action 'none'" in page


def alone(empty: Workspace) -> FastAPI:
    """An application with nothing in it but the guard and what a test adds."""
    server = Server(empty)
    app = FastAPI()
    app.state.server = server
    app.include_router(people.auth_router)
    app.add_middleware(RequestGuard, server=server)
    return app


async def test_a_request_that_breaks_down_says_nothing_of_where_and_still_has_the_headers(empty: Workspace):
    app = alone(empty)

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("a line of somebody's document")

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        reply = await client.get("/broken")
    assert reply.status_code == 500 and "document" not in reply.text
    assert reply.json()["error"] == "broken" and ALWAYS.items() <= dict(reply.headers).items()


async def test_a_store_that_cannot_say_who_asks_lets_nobody_in(empty: Workspace, monkeypatch: pytest.MonkeyPatch):
    from assay.core.errors import StoreError

    def locked(*_: object) -> None:
        raise StoreError("locked")

    server = Server(empty, ServeOptions(auth="keys"))
    app = FastAPI()
    app.state.server = server
    app.include_router(people.auth_router)
    app.add_middleware(RequestGuard, server=server)
    monkeypatch.setattr(People, "member_with_key", OnStore(locked), raising=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        reply = await client.get("/api/me", headers={"Authorization": "Bearer x"})
    assert (reply.status_code, reply.json()["error"], reply.headers["Retry-After"]) == (503, "store", "1")


async def test_a_stream_passes_piece_by_piece(empty: Workspace):
    app, go_on, seen = alone(empty), asyncio.Event(), asyncio.Queue[bytes]()

    @app.get("/stream")
    async def stream() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"one"
            await go_on.wait()
            yield b"two"

        return StreamingResponse(pieces())

    async def send(message) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            await seen.put(message["body"])

    async def receive():
        await asyncio.sleep(30)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": "/stream",
        "raw_path": b"/stream", "query_string": b"", "root_path": "", "scheme": "http", "client": ("127.0.0.1", 1),
        "server": ("localhost", 80), "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    task = asyncio.ensure_future(app(scope, receive, send))
    assert await asyncio.wait_for(seen.get(), 5) == b"one"
    go_on.set()
    assert await asyncio.wait_for(seen.get(), 5) == b"two"
    await task


# --- addresses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "places", "known"),
    [
        ("10.0.0.1", ("10.0.0.1",), True),
        ("10.0.0.1", ("10.0.0.0/8",), True),
        ("::ffff:10.0.0.1", ("10.0.0.1",), True),
        ("::1", ("::1",), True),
        ("10.0.0.1", ("10.0.0.11", "::/0"), False),
        ("10.0.0.1", (), False),
        ("", ("",), False),
        ("", ("0.0.0.0/0",), False),
    ],
)
def test_an_address_is_one_of_these_or_it_is_not(address: str, places: tuple[str, ...], known: bool):
    assert address_matches(address, places) is known


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ((), "10.0.0.1"),
        (("203.0.113.5",), "203.0.113.5"),
        (("198.51.100.7, 203.0.113.5",), "203.0.113.5"),
        (("203.0.113.5, 10.0.0.2",), "203.0.113.5"),
        (("198.51.100.7", "203.0.113.5"), "203.0.113.5"),
    ],
)
def test_who_guesses_is_known_by_the_last_address_before_our_own_proxies(
    empty: Workspace, forwarded: tuple[str, ...], address: str
):
    from starlette.datastructures import Headers

    server = Server(empty, ServeOptions(auth="keys", proxies=("10.0.0.0/8",)))
    headers = Headers(raw=[(b"x-forwarded-for", each.encode()) for each in forwarded])
    assert client_address(server, {"client": ("10.0.0.1", 5)}, headers) == address
    assert client_address(Server(empty), {"client": ("192.0.2.1", 5)}, headers) == "192.0.2.1"
