"""What HTTP expects of a server: HEAD where there is GET, copies that are asked about before they are fetched again, parts of
a file, and paths that are what they are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from furnished import Real, furnished, made, operations
from serving import Served

Own = tuple[Served, Real]
FLEETING = {"date", "transfer-encoding"}
MADE_ANEW = ("/bundle", "/verify")  # these say when they were made, or how long it took: no two need be of one length


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    with furnished(tmp_path_factory.mktemp("manners") / "workspace") as own:
        yield own


@pytest.mark.long
def test_head_says_of_every_path_what_get_says_but_the_body(own: Own):
    at, real = own
    asked = 0
    with at.client() as client:
        paths = [path for method, path, _ in operations(made(client.get("/openapi.json"))) if method == "GET"]
        for path in [*map(real.path, paths), "/", "/static/app.js", "/openapi.json", "/api/runs/nothing", "/nothing"]:
            query = {"start": 0, "end": 40} if path.endswith("/boxes") else {}
            query = {"format": "json"} if path == f"/api/runs/{real.delivered}/events" else query
            get, head = client.get(path, params=query), client.head(path, params=query)
            assert head.content == b"", path
            assert head.status_code == get.status_code, path
            passing = FLEETING | {"content-length"} if path.endswith(MADE_ANEW) else FLEETING
            kept = [{name: each.headers[name] for name in each.headers if name not in passing} for each in (get, head)]
            assert kept[0] == kept[1], path
            asked += get.status_code == 200
    assert asked > 25


@pytest.mark.long
def test_head_of_a_stream_does_not_wait_for_its_end(own: Own):
    at, real = own
    with at.client() as client:
        reply = client.head(f"/api/runs/{real.waiting}/events")
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert client.head("/api/search").status_code == 405


@pytest.mark.long
def test_a_copy_that_is_still_right_is_not_sent_again(own: Own):
    at, _ = own
    with at.client() as client:
        for path in ("/static/app.js", "/static/styles/style.css"):
            first = client.get(path)
            tag = first.headers["ETag"]
            again = client.get(path, headers={"If-None-Match": tag})
            assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag), path
            assert client.get(path, headers={"If-None-Match": '"another"'}).content == first.content, path
            assert client.get(path, headers={"If-None-Match": f'"another", {tag}'}).status_code == 304, path


def test_a_part_of_a_file_is_sent_where_it_is_asked_for_so_that_it_can_be_told(own: Own):
    at, real = own
    with at.client() as client:
        for path in (f"/api/documents/{real.pdf}/original", "/static/app.js"):
            whole = client.get(path).content
            part = client.get(path, headers={"Range": "bytes=5-9"})
            assert (part.status_code, part.content) == (206, whole[5:10])
            assert client.get(path, headers={"Range": "bytes=-5"}).content == whole[-5:]
            assert client.get(path, headers={"Range": f"bytes={len(whole)}-"}).status_code == 416
            for odd in ("bytes=abc", "bytes=9-5", "bytes=0-1,5-6", "lines=1-2", "bytes=" + "9" * 400 + "-", "bytes=-"):
                reply = client.get(path, headers={"Range": odd})
                assert (reply.status_code, reply.content) == (200, whole), odd


def test_what_is_kept_may_be_kept_by_that_person_alone(own: Own):
    at, real = own
    with at.client() as client:
        document, page = f"/api/documents/{real.document}/text", f"/api/documents/{real.pdf}/pages/1"
        for path in ("/api/me", "/api/bases", document, page, "/v1/models"):
            assert client.get(path).headers["Cache-Control"] == "no-store", path
        original = f"/api/documents/{real.pdf}/original"
        assert client.get(original).headers["Cache-Control"].startswith("private")


def test_a_path_with_a_stroke_at_its_end_is_another_path(own: Own):
    at, real = own
    with at.client() as client:
        for path in ("/api/runs/", f"/api/runs/{real.delivered}/", "/health/", "/v1/models/", "/mcp/", "/api/me/"):
            for method in ("GET", "POST"):
                reply = client.request(method, path)
                assert reply.status_code in {404, 405}, (method, path)
                assert reply.json()["error"], (method, path)


def test_the_document_itself_is_sound(own: Own):
    """Names of operations are unique, and each says what it is for or what its parts are."""
    at, _ = own
    with at.client() as client:
        document = made(client.get("/openapi.json"))
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(names) == len(set(names)) > 40
    for method, path, operation in operations(document):
        assert operation.get("tags"), (method, path)
        for status, reply in operation["responses"].items():
            if int(status) < 400 or path.startswith("/v1") or path == "/ready":
                continue
            shape = reply["content"]["application/json"]["schema"]
            assert shape == {"$ref": "#/components/schemas/ErrorResponse"}, (method, path, status)
