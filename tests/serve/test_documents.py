"""Knowledge bases and documents over HTTP: made, listed a page at a time, read, downloaded, removed."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from filelock import FileLock
from notes import Plain, opened
from sending import listed, pdf, read, send
from serving import Served, served, until

from assay.ingest import pipeline
from assay.ingest.sources import SourceFile
from assay.serve import upload_files, upload_job
from assay.store import document_list


def test_a_pdf_that_was_sent_can_be_found_and_read_as_it_stands(client: httpx.Client):
    done = read(client, [("harbour.pdf", pdf(["The harbour of Ash is nine fathoms deep.", "Ships wait outside."]))])
    assert (done["state"], done["reports"][0]["outcome"], done["reports"][0]["pages"]) == ("done", "added", 1)
    hit = client.post("/api/search", json={"query": "how deep is the harbour of Ash", "k": 1}).json()["hits"][0]
    text = client.get(
        f"/api/documents/{hit['document']}/text", params={"start": hit["start"], "end": hit["end"]}
    ).json()
    assert text["text"] == hit["text"]
    assert "nine fathoms deep" in text["text"]


async def test_a_name_from_an_older_version_cannot_turn_the_page_round(folder: Path):
    """Before, names were stored as the file system has them."""
    name = "plan\n\u202efdp.txt"
    with opened(folder) as workspace:
        source = SourceFile(uri=f"/home/ada/{name}", name="plan.txt", data=b"The harbour of Ash is nine fathoms deep.")
        await workspace.documents.add_sources([source], reader=Plain())
    with served(folder) as at, at.client() as client:
        document = client.get("/api/documents", params={"q": "fdp"}).json()["documents"][0]
        shown = client.get(f"/api/documents/{document['id']}").text
        answer = client.post("/api/ask", json={"question": "How deep is the harbour of Ash?"}).text
    assert document["name"] == r"plan\x0a\u202efdp.txt"
    assert "nine fathoms" in answer and "\u202e" not in shown + answer and r"\\u202efdp" in answer


def test_a_file_of_the_same_name_takes_the_place_of_the_earlier_one(client: httpx.Client):
    read(client, [("log/day.txt", b"On this day the lamp was green.")])
    done = read(client, [("log/day.txt", b"On this day the lamp was violet.")])
    assert done["reports"][0]["outcome"] == "replaced"
    assert [each["uri"] for each in listed(client, q="day.txt")] == ["upload:log/day.txt"]
    words = [hit["text"] for hit in client.post("/api/search", json={"query": "lamp green violet"}).json()["hits"]]
    assert any("violet" in each for each in words)
    assert not any("green" in each for each in words)


def test_the_same_content_under_two_names_is_kept_once_and_not_moved(client: httpx.Client):
    read(client, [("a.txt", b"A sentence that stands in two files.")])
    done = read(client, [("b.txt", b"A sentence that stands in two files.")])
    assert done["reports"][0]["outcome"] == "duplicate"
    assert [each["name"] for each in listed(client, q=".txt") if each["uri"].startswith("upload:")] == ["a.txt"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "etc/passwd"),
        ("/abs/a.txt", "abs/a.txt"),
        ("C:/x/a.txt", "x/a.txt"),
        ("fold\\er\\a.txt", "fold/er/a.txt"),
        ("a\x00b\x1b[31m.txt", "ab.txt"),
        ("..", "file"),
        ("./.", "file"),
        ("  a .txt ", "a .txt"),
        ("cafe\u0301.txt", "café.txt"),
        ("x" * 500 + ".pdf", "x" * 196 + ".pdf"),
    ],
)
def test_a_name_leads_nowhere_and_steers_nothing(given: str, kept: str):
    assert upload_files.safe_file_name(given) == kept


def test_a_listing_gives_every_document_once_the_newest_first(client: httpx.Client):
    read(client, [(f"{number}.txt", f"Note number {number}.".encode()) for number in range(7)])
    seen, after = [], ""
    while True:
        page = client.get("/api/documents", params={"limit": 3, "after": after}).json()
        assert page["total"] == 10
        seen += page["documents"]
        if not (after := page["next"]):
            break
    assert len({each["id"] for each in seen}) == len(seen) == 10
    assert [each["added"] for each in seen] == sorted((each["added"] for each in seen), reverse=True)


def test_a_listing_is_narrowed_by_words_state_and_base(client: httpx.Client):
    client.post("/api/bases", json={"name": "letters"})
    read(client, [("Ärger_100%.txt", b"Complaints of the keeper."), ("broken.pdf", b"not a pdf")], "letters")
    assert [each["name"] for each in listed(client, q="ärger")] == ["Ärger_100%.txt"]
    assert [each["name"] for each in listed(client, q="100% ärger")] == ["Ärger_100%.txt"]
    assert listed(client, q="1%0") == []  # a sign of the database's own means nothing
    assert [each["name"] for each in listed(client, state="unreadable")] == ["broken.pdf"]
    assert {each["base"] for each in listed(client, base="letters")} == {"letters"}
    assert len(listed(client, base="letters", state="ready")) == 1
    assert client.get("/api/documents", params={"base": "nowhere"}).status_code == 404


def test_a_base_says_how_much_there_is_in_it_and_what_could_not_be_read(client: httpx.Client):
    read(client, [("good.pdf", pdf(["The keeper counts the ships."], ["And the days."])), ("bad.pdf", b"nope")])
    line = client.get("/api/bases/default").json()
    assert (line["documents"], line["unreadable"], line["yours"]) == (4, 1, True)
    ready = client.get("/api/bases/default/readiness").json()
    assert (ready["readable"], ready["unreadable"], ready["pages"]) == (4, 1, 2)
    assert [(each["name"], each["state"]) for each in ready["problems"]] == [("bad.pdf", "unreadable")]
    assert ready["problems"][0]["why"].endswith(".")
    assert sum(ready["languages"].values()) <= 4


def test_a_base_says_to_its_owner_that_an_earlier_version_read_documents(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    assert client.get("/api/bases/default/readiness").json()["warnings"] == []
    monkeypatch.setattr(pipeline, "PARSER", "next")
    (warning,) = client.get("/api/bases/default/readiness").json()["warnings"]
    assert "read by an earlier version" in warning and "`assay reindex --base default`" in warning


@pytest.mark.long
def test_a_base_is_made_described_and_deleted_with_everything_in_it(client: httpx.Client, at: Served):
    name = "trials/2024 ä"
    path = f"/api/bases/{quote(name, safe='')}"
    assert client.post("/api/bases", json={"name": name, "description": "x"}).status_code == 201
    assert client.post("/api/bases", json={"name": name}).status_code == 409
    read(client, [("a.pdf", pdf(["Words that will be gone."]))], quote(name, safe=""))
    document = listed(client, base=name)[0]["id"]
    assert client.get(f"/api/documents/{document}/pages/1").status_code == 200
    assert client.patch(path, json={"description": "about trials"}).json()["description"] == "about trials"
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == client.get(f"/api/documents/{document}/pages/1").status_code == 404
    assert len(list(at.server.workspace.path.glob("originals/*/*"))) == 3  # those of the notes
    assert all("gone" not in hit["text"] for hit in client.post("/api/search", json={"query": "gone"}).json()["hits"])


def test_files_are_not_taken_for_a_base_that_is_not_there(client: httpx.Client, at: Served):
    assert send(client, [("a.txt", b"x")], "nowhere").status_code == 404
    assert not at.server.worker.uploads.folder.exists()


def test_a_document_says_everything_about_itself_but_its_text(client: httpx.Client):
    read(client, [("two.pdf", pdf(["First page."], ["Second page."]))])
    whole = client.get(f"/api/documents/{listed(client, q='two')[0]['id']}").json()
    assert (whole["pages"], whole["pictures"], whole["kind"], len(whole["page_starts"])) == (2, True, "pdf", 2)
    text = client.get(f"/api/documents/{whole['id']}/text").json()["text"]
    assert text[whole["page_starts"][1] :].startswith("Second page.")
    note = client.get(f"/api/documents/{listed(client, q='lamp.txt')[0]['id']}").json()
    assert (note["pictures"], note["page_starts"]) == (False, [])


def test_a_text_comes_in_stretches_with_its_offsets(client: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("assay.serve.routes.documents.MAX_TEXT", 10)
    words = "Ünïcode — 😀 and more of it, beyond the end of a reply."
    read(client, [("long.txt", words.encode())])
    path = f"/api/documents/{listed(client, q='long')[0]['id']}/text"
    got, at = "", 0
    while at < len(words):
        part = client.get(path, params={"start": at}).json()
        assert (part["start"], part["characters"]) == (at, len(words))
        got, at = got + part["text"], part["end"]
    assert got == words
    assert client.get(path, params={"start": 10**9}).json()["text"] == ""
    assert client.get(path, params={"start": 5, "end": 2}).json()["text"] == ""
    assert (
        client.get(path, params={"start": -1}).status_code == client.get(path, params={"end": 2**80}).status_code == 422
    )


@pytest.mark.long
def test_a_page_that_somebody_has_sent_is_saved_and_never_shown(client: httpx.Client):
    hostile = b"<html><body><p>Words to be read, enough of them.</p><script>alert(1)</script></body></html>"
    read(client, [('x";\r\n.html', hostile)])
    document = next(each for each in listed(client) if each["kind"] == "html")
    reply = client.get(f"/api/documents/{document['id']}/original")
    assert reply.content == hostile
    assert reply.headers["content-type"] == "application/octet-stream"
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"]


@pytest.mark.long
def test_a_document_is_removed_by_its_id_and_by_nothing_else(client: httpx.Client):
    read(client, [("a.pdf", pdf(["Words about the pier."]))])
    document = listed(client, q="a.pdf")[0]["id"]
    assert client.delete("/api/documents/a.pdf").status_code == 404
    assert client.get(f"/api/documents/{document}/pages/1").status_code == 200
    assert client.delete(f"/api/documents/{document}").json() == {"removed": [document]}
    for path in ("", "/text", "/original", "/pages/1", "/boxes?start=0&end=5"):
        assert client.get(f"/api/documents/{document}{path}").status_code == 404
    assert client.delete(f"/api/documents/{document}").status_code == 404


def test_nothing_is_removed_from_a_base_while_files_are_read_into_it(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    async def forever(self: upload_job.StoppableReader, data: object, name: str) -> None:
        await self.stop.wait()
        raise upload_job.JobStopped

    document = listed(client)[0]["id"]
    monkeypatch.setattr(upload_job.StoppableReader, "read", forever)
    job = send(client, [("slow.txt", b"slow")]).json()["id"]
    until(lambda: client.get(f"/api/jobs/{job}").json()["state"] == "running")
    assert client.delete(f"/api/documents/{document}").status_code == 409
    client.post(f"/api/jobs/{job}/cancel")
    assert client.delete(f"/api/documents/{document}").status_code == 200


def test_a_reply_does_not_wait_for_another_process_that_fills_the_base(
    client: httpx.Client, at: Served, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(upload_job, "PATIENCE", 0.1)
    workspace = at.server.workspace
    (base,) = workspace.scope().bases
    places = ("/api/bases/default", f"/api/documents/{listed(client)[0]['id']}")
    with FileLock(workspace.path / f".{base.id}.lock"):
        for place in places:
            reply = client.delete(place, timeout=5)
            assert reply.status_code == 400 and "Another process" in reply.json()["detail"], place
    assert [client.delete(place).status_code for place in reversed(places)] == [200, 204]


STRANGE = ("%00", "%ED%A0%80", "%F0%9F%98%80", "..%2F..", "a" * 90, "%20", "'%22--", "%")
ROUTES = (
    "/api/documents/{}",
    "/api/documents/{}/text",
    "/api/documents/{}/original",
    "/api/documents/{}/pages/1",
    "/api/documents/{}/boxes?start=0&end=1",
    "/api/bases/{}",
    "/api/bases/{}/readiness",
    "/api/jobs/{}",
    "/api/jobs/{}/events",
    "/api/synthesis/{}",
    "/api/synthesis/{}/page",
    "/api/synthesis/{}/markdown",
)


def test_an_id_that_nobody_has_is_missing_whatever_it_is(client: httpx.Client):
    for path in (route.format(strange) for strange in STRANGE for route in ROUTES):
        reply = client.get(path)
        assert reply.status_code == 404, path
        assert set(reply.json()) == {"error", "detail"}


def test_an_id_beyond_all_measure_is_refused(client: httpx.Client):
    assert client.get("/api/documents/" + "a" * 5000).status_code == 422
    assert client.get("/api/documents", params={"limit": 0}).status_code == 422
    assert client.get("/api/documents", params={"limit": 10**30}).status_code == 422
    assert client.get("/api/documents", params={"state": "gone"}).status_code == 422


def test_a_page_of_a_listing_looks_at_few_documents_however_many_there_are(at: Served):
    """The database has to answer from an index: rows hold every page's offset, and ten thousand of them are not read."""
    store, scope = at.server.workspace.store, at.server.workspace.scope()
    asked: list[tuple[str, tuple[str, ...]]] = []
    from sqlalchemy import event

    event.listen(store.engine, "before_cursor_execute", lambda *given: asked.append((given[2], given[3])))
    document_list.page(store, scope)
    document_list.counts(store, scope)
    plans = []
    with store.engine.connect() as connection:
        for statement, values in [each for each in asked if "documents" in each[0]]:
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            plans.append(" ".join(row[3] for row in rows))
    assert len(plans) == 4
    assert all("COVERING INDEX documents_listed" in plan or "sqlite_autoindex" in plan for plan in plans), plans


@pytest.mark.long
def test_a_base_whose_name_ends_like_a_route_is_reached_by_its_id(client: httpx.Client):
    for name in ("x", "x/access", "x/readiness", "x/documents"):
        made = client.post("/api/bases", json={"name": name})
        assert made.status_code == 201
        path = f"/api/bases/{made.json()['id']}"
        assert client.get(path).json()["name"] == name
        assert client.patch(path, json={"description": "What was measured."}).json()["name"] == name
        assert client.get(f"{path}/access").json()["id"] == made.json()["id"]
        assert client.post(f"{path}/access", json={"name": "user:reader", "may": True}).status_code == 200
        files = [("files", ("pier.txt", f"The pier of {name} is 12 metres long.".encode()))]
        assert client.post(f"{path}/documents", files=files).status_code == 202
        until(lambda path=path: client.get(f"{path}/readiness").json()["readable"] == 1)
        assert client.get("/api/documents", params={"base": made.json()["id"]}).json()["documents"]
    for base in client.get("/api/bases").json():
        if base["name"].startswith("x"):
            assert client.delete(f"/api/bases/{base['id']}").status_code == 204
    assert not [each for each in client.get("/api/bases").json() if each["name"].startswith("x")]
