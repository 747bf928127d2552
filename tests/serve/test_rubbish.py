"""What no client should send: broken bytes, JSON that is none, names that lead elsewhere, requests that stop half way. Each is
answered in a line, or dropped where there is nothing to answer, and the server goes on."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Iterator

import pytest
from furnished import Real, furnished
from serving import Served, until

Rubbish = tuple[Served, Real]

WELL = b'{"query": "tower"}'
DEEP = 900_000
JSON = {"Content-Type": "application/json"}
FORM = "Content-Type: multipart/form-data; boundary=x"


@pytest.fixture(scope="module")
def furnished_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rubbish]:
    with furnished(tmp_path_factory.mktemp("rubbish") / "workspace") as own:
        yield own


@pytest.fixture
def here(furnished_once: Rubbish, caplog: pytest.LogCaptureFixture) -> Iterator[Rubbish]:
    """The same server for all; after each test it still answers, and nothing broke down on the way."""
    at, _ = furnished_once
    with caplog.at_level(logging.ERROR):
        yield furnished_once
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    with at.client() as client:
        assert client.post("/api/search", content=WELL, headers=JSON).status_code == 200


def sent(at: Served, data: bytes, *, seconds: float = 20.0) -> bytes:
    """What comes back over a plain connection until the other end closes it."""
    with socket.create_connection(("127.0.0.1", int(at.url.rpartition(":")[2])), timeout=seconds) as own:
        came = b""
        try:
            own.sendall(data)
            while piece := own.recv(1 << 16):
                came += piece
        except ConnectionError:
            pass  # closed while there was more to send: what was said before that counts
        return came


def request(method: str, path: str, body: bytes = b"", *more: str, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {size}", *more]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def status(came: bytes) -> int:
    return int(came.split(b" ", 2)[1])


def problem(came: bytes, path: str = "") -> dict[str, str]:
    """The body of an error, which is one in the form that errors have; below /v1 in OpenAI's."""
    said = json.loads(came.partition(b"\r\n\r\n")[2])
    if path.startswith("/v1/"):
        assert set(said["error"]) == {"message", "type", "param", "code"} and said["error"]["message"], said
        return {"error": said["error"]["type"], "detail": said["error"]["message"]}
    assert set(said) == {"error", "detail"} and said["error"] != "http" and said["detail"], said
    return said


# --- bodies ---------------------------------------------------------------------------------------------------------

BODIES = {
    "bytes that are no UTF-8": b'{"query": "\xff\xfe"}',
    "a NUL in the JSON": b'{"query": "a\x00b"}',
    "half a character": b'{"query": "\\ud800"}',
    "half a character in a list": b'{"query": "q", "sources": ["\\udfff"]}',
    "arrays without end": b"[" * DEEP,
    "objects without end": b'{"a":' * (DEEP // 5),
    "arrays in arrays": b'{"query": "q", "bases": ' + b"[" * 900 + b"]" * 900 + b"}",
    "a number beyond all numbers": b'{"query": "q", "k": 1e999}',
    "no number": b'{"query": "q", "k": NaN}',
    "a number of 5,000 digits": b'{"query": "q", "k": ' + b"9" * 5000 + b"}",
    "a yes for a number": b'{"query": "q", "k": true}',
    "nothing": b"",
    "null": b"null",
    "a word": b'"query"',
    "half of it": b'{"query": "to',
    "too many names": b'{"query": "q", "sources": [' + b'"x",' * 200_000 + b'"x"]}',
    "a very long question": b'{"query": "' + b"a" * 900_000 + b'"}',
    "what is not known": b'{"query": "q", "scope": "everything"}',
}


@pytest.mark.long
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_a_body_that_cannot_be_meant_is_refused_in_a_line(here: Rubbish, body: bytes):
    came = sent(here[0], request("POST", "/api/search", body, "Content-Type: application/json"))
    assert status(came) in {400, 422}
    assert len(problem(came)["detail"]) < 300


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("POST", "/api/runs", '{"question": "q", "thread": "%s"}'),
        ("POST", "/api/ask", '{"question": "%s"}'),
        ("POST", "/api/bases", '{"name": "n", "group": "%s"}'),
        ("POST", "/api/synthesis", '{"documents": ["%s"]}'),
        ("POST", "/api/synthesis/forecast", '{"focus": "%s"}'),
        ("PATCH", "/api/threads/{thread}", '{"title": "%s"}'),
        ("POST", "/api/runs/{run}/choice", '{"words": "%s"}'),
        ("POST", "/v1/chat/completions", '{"model": "assay-%s", "messages": [{"role": "user", "content": "q"}]}'),
    ],
)
def test_half_a_character_is_taken_nowhere(here: Rubbish, method: str, path: str, field: str):
    at, real = here
    body = (field % "\\ud800").encode()
    came = sent(at, request(method, real.path(path), body, "Content-Type: application/json"))
    assert status(came) in {400, 422}, came


def test_a_question_with_odd_characters_is_a_question(here: Rubbish):
    at, _ = here
    for words in ("tower\\u0000", "\\u001b[31mtower", "\\u202etower", "\\ud83d\\ude00 tower"):
        came = sent(
            at, request("POST", "/api/search", b'{"query": "%s"}' % words.encode(), "Content-Type: application/json")
        )
        assert status(came) == 200, words


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "\xff", ""]
)
def test_another_kind_of_body_is_not_taken_for_json_or_for_files(here: Rubbish, kind: str):
    for path in ("/api/search", "/api/bases/reports/documents"):
        came = sent(here[0], request("POST", path, WELL, f"Content-Type: {kind}"))
        assert (status(came), problem(came)["error"]) == (422, "invalid"), path


def test_of_a_name_that_stands_twice_the_last_counts(here: Rubbish):
    came = sent(
        here[0], request("POST", "/api/search", b'{"query": "a", "query": "tower"}', "Content-Type: application/json")
    )
    assert json.loads(came.partition(b"\r\n\r\n")[2])["query"] == "tower"


@pytest.mark.parametrize("path", ["/api/search", "/mcp", "/v1/chat/completions"])
def test_too_much_is_refused_unread_and_also_when_it_comes_in_pieces(here: Rubbish, path: str):
    at, _ = here
    announced = sent(at, request("POST", path, b"{", "Content-Type: application/json", length=1_000_001))
    refused = "invalid_request_error" if path.startswith("/v1/") else "too-large"
    assert (status(announced), problem(announced, path)["error"]) == (413, refused)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = b"".join(b"10000\r\n" + b"[" * 0x10000 + b"\r\n" for _ in range(16)) + b"0\r\n\r\n"
    assert status(sent(at, head.encode() + pieces)) == 413


# --- names ----------------------------------------------------------------------------------------------------------

ELSEWHERE = [
    "/api/documents/..%2f..%2fetc",
    "/api/documents/%2e%2e%2f%2e%2e%2fetc%2fpasswd/original",
    "/api/documents/%2e%2e/original",
    "/api/documents/%00/original",
    "/api/documents/%ff",
    "/api/documents/%ed%a0%80/text",
    "/api/bases/..%2f..%2f",
    "/api/bases/%00/readiness",
    "/api/bases/",
    "/api/runs/%00/events",
    "/api/runs/%2e%2e/trace",
    "/api/runs/",
    "/api/threads/" + "t" * 5_000,
    "/api/jobs/%00/events",
    "/api/synthesis/..%2fpage/page",
    "/static/../app.py",
    "/static/%2e%2e/app.py",
    "/static/..%2f..%2fapp.py",
    "/static/..%5capp.py",
    "/static//etc/passwd",
    "/static/%00",
    "/static/" + "a/" * 2_000,
    "/static/",
    "/static",
    "//api/bases",
    "/api//bases",
    "/api/bases/reports/readiness/",
    "/openapi.json/",
    "/docs",
    "*",
    "http://localhost/api/bases",
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_name_that_leads_elsewhere_leads_nowhere(here: Rubbish, path: str):
    came = sent(here[0], request("GET", path))
    assert status(came) in {404, 422}
    problem(came)


def test_what_a_query_holds_is_looked_for_and_nothing_else(here: Rubbish):
    at, _ = here
    for query in ("documents?q=%00", "documents?q=%25", "documents?after=zzz", "runs?after=%ff", "threads?q=%5c_%25"):
        came = sent(at, request("GET", f"/api/{query}"))
        assert status(came) == 200, query
    for query in (
        "documents?limit=0",
        "documents?limit=1e3",
        "runs?limit=99999999999999999999",
        "documents?state=gone",
    ):
        came = sent(at, request("GET", f"/api/{query}"))
        assert (status(came), problem(came)["error"]) == (422, "invalid"), query


# --- headers and methods --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", ["abc", "-1", "-99999", "9" * 30, "1.5", "٣", "", "\xff", "0x3", "1 2"])
def test_a_place_in_a_stream_that_is_none_is_its_beginning(here: Rubbish, last: str):
    at, real = here
    value = last if last.isascii() or last == "\xff" else last.encode().decode("latin-1")
    came = sent(at, request("GET", f"/api/runs/{real.delivered}/events", b"", f"Last-Event-ID: {value}"))
    assert status(came) == 200
    assert b"id: 0\n" in came and came.rstrip().endswith(b"0") and b"event: end\n" in came


def test_a_place_after_the_end_of_a_stream_is_its_end(here: Rubbish):
    at, real = here
    came = sent(at, request("GET", f"/api/runs/{real.delivered}/events", b"", "Last-Event-ID: 999999999"))
    assert b"id: " not in came and b"event: end\n" in came


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PUT", "PROPFIND", "BREW", "get"])
def test_a_method_that_a_path_does_not_take_is_told_which_it_takes(here: Rubbish, method: str):
    at, real = here
    takes = {
        "/health": "HEAD, GET",
        "/": "HEAD, GET",
        "/static/app.js": "HEAD, GET",
        "/mcp": "POST",
        "/api/bases": "HEAD, GET, POST",
        f"/api/bases/{real.bases[0]}": "HEAD, GET, PATCH, DELETE",
        f"/api/threads/{real.thread}": "HEAD, GET, PATCH, DELETE",
        "/v1/models": "HEAD, GET",
    }
    for path, methods in takes.items():
        came = sent(at, request(method, path))
        assert status(came) == 405, path
        assert f"allow: {methods}\r\n".encode() in came, (path, came)
        assert problem(came, path)["error"] in {"method", "invalid_request_error"}


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 60 + b"\r\n\r\n",  # a browser that expects TLS
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /health?" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",  # no Host
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n{}",
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(here: Rubbish, data: bytes):
    assert status(sent(here[0], data)) in {400, 501}


def test_a_cookie_of_any_kind_opens_nothing_and_breaks_nothing(here: Rubbish):
    for cookie in ("\xff=\xfe", "assay_session=\xff", "=;=;;", "a=b; " * 5_000, 'assay_session="\\"'):
        assert status(sent(here[0], request("GET", "/api/me", b"", f"Cookie: {cookie}"))) == 200


# --- connections ----------------------------------------------------------------------------------------------------


def test_requests_in_a_row_are_answered_in_a_row(here: Rubbish):
    one = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    came = sent(here[0], one * 3 + request("GET", "/api/nothing"))
    assert came.count(b"HTTP/1.1 200 OK") == 3 and came.count(b'{"status":"ok"}') == 3
    assert came.rindex(b"HTTP/1.1 404") > came.rindex(b"HTTP/1.1 200")


def test_of_an_upload_that_stops_half_way_nothing_is_left(here: Rubbish):
    at, real = here
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="half.txt"\r\n\r\nOnly half of'
    begun = request("POST", f"/api/bases/{real.bases[0]}/documents", part, FORM, length=100_000)
    with socket.create_connection(("127.0.0.1", int(at.url.rpartition(":")[2]))) as own:
        own.sendall(begun)
        until(lambda: any(at.server.worker.uploads.folder.iterdir()))
    until(lambda: not any(at.server.worker.uploads.folder.iterdir()))
    with at.client() as client:
        assert [job["id"] for job in client.get("/api/jobs").json()] == [real.job]
        assert "half.txt" not in client.get("/api/documents").text


def test_a_question_whose_sender_leaves_before_its_end_is_not_asked(here: Rubbish):
    at, _ = here
    with at.client() as client:
        before = client.get("/api/runs").json()
        with socket.create_connection(("127.0.0.1", int(at.url.rpartition(":")[2]))) as own:
            own.sendall(request("POST", "/api/runs", b'{"question": ', "Content-Type: application/json", length=500))
        assert client.get("/api/runs").json() == before
