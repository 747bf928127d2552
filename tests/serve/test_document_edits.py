"""What was found out about a document: shown, corrected by its owner on the record, and where it was cited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from serving import QUESTION, Served, followed, served
from team import team

from assay.core.access import Principal
from assay.core.events import DocumentEdited, DocumentMarked
from assay.store.access import grants, offers
from assay.store.runs import records


def test_a_title_and_a_date_are_corrected_on_the_record_and_searched_by(folder: Path):
    with served(folder) as at, at.client() as client:
        tower = client.get("/api/documents", params={"q": "tower"}).json()["documents"][0]["id"]
        changed = client.patch(f"/api/documents/{tower}", json={"title": "Survey of Carrow", "date": "1998-05"}).json()
        assert (changed["title"], changed["date"], changed["state"]) == ("Survey of Carrow", "1998-05", "ready")
        dated = client.post("/api/search", json={"query": QUESTION, "since": "1998", "until": "1998"}).json()["hits"]
        assert {each["document"] for each in dated} == {tower}  # the index has it too
        last = records.workspace_log(at.server.workspace.store)[-1][1]
        assert last == DocumentEdited(tower, "local", "Survey of Carrow", "1998-05")
        assert client.patch(f"/api/documents/{tower}", json={"date": ""}).json()["date"] is None
        for wrong in ({"title": " "}, {"date": "1998-13"}, {"date": "soon"}):
            assert client.patch(f"/api/documents/{tower}", json=wrong).status_code in (400, 422), wrong
        assert client.delete(f"/api/documents/{tower}").status_code == 200
        assert "Survey of Carrow" not in str(records.workspace_log(at.server.workspace.store))  # erased with it
        assert client.get("/api/verify").json()["whole"]


def test_only_its_owner_corrects_a_document_and_everyone_sees_where_they_cited_it_themselves(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        tower = editor.get("/api/documents", params={"q": "tower"}).json()["documents"][0]["id"]
        assert reader.patch(f"/api/documents/{tower}", json={"title": "Mine"}).status_code == 404
        assert reader.get(f"/api/documents/{tower}/citations").status_code == 404
        run = editor.post("/api/runs", json={"question": QUESTION, "model": False}).json()["run"]
        list(followed(editor, run))
        cited = editor.get(f"/api/documents/{tower}/citations").json()["runs"]
        assert [(each["run"], each["question"]) for each in cited] == [(run, QUESTION)]
        store = made.at.server.workspace.store
        base = made.at.server.workspace.for_principal(Principal("editor")).scope().bases[0]
        grants.share(store, base, "user:reader", "editor")
        offers.answer(store, Principal("reader"), base.id, True)
        assert reader.get(f"/api/documents/{tower}/citations").json()["runs"] == []  # not what others asked
        assert reader.patch(f"/api/documents/{tower}", json={"title": "Mine"}).status_code == 404


def test_a_document_is_switched_off_and_tagged_over_http_and_is_not_searched_from_then_on(folder: Path):
    with served(folder) as at, at.client() as client:
        tower = client.get("/api/documents", params={"q": "tower"}).json()["documents"][0]["id"]
        marked = client.patch(f"/api/documents/{tower}", json={"off": True, "tags": ["Carrow", "old, carrow"]}).json()
        assert (marked["state"], marked["tags"]) == ("off", ["Carrow", "old"])
        hits = client.post("/api/search", json={"query": QUESTION}).json()["hits"]
        assert hits and tower not in {each["document"] for each in hits}
        listed = client.get("/api/documents", params={"state": "off"}).json()["documents"]
        assert [(each["id"], each["tags"]) for each in listed] == [(tower, ["Carrow", "old"])]
        assert client.get("/api/bases").json()[0]["off"] == 1
        last = records.workspace_log(at.server.workspace.store)[-1][1]
        assert last == DocumentMarked(tower, "local", True, ("Carrow", "old"))
        assert client.patch(f"/api/documents/{tower}", json={"off": False}).json()["state"] == "ready"
        only = client.post("/api/search", json={"query": QUESTION, "meta": {"tag": "OLD"}}).json()
        assert {each["document"] for each in only["hits"]} == {tower}
        total = client.get("/api/documents", params={"state": "ready"}).json()["total"]
        assert only["left_out"] == {"documents": total - 1, "undated": 0}


def test_an_answer_says_how_many_documents_its_limits_left_out(folder: Path):
    with served(folder) as at, at.client() as client:
        total = client.get("/api/documents", params={"state": "ready"}).json()["total"]
        run = client.post("/api/runs", json={"question": QUESTION, "model": False, "since": "1990"}).json()["run"]
        list(followed(client, run))
        answer = client.get(f"/api/runs/{run}").json()["answer"]
        assert answer["left_out"] == {"documents": total, "undated": total}
        assert f"The filters left out {total} undated documents." in answer["remarks"]


def test_many_documents_are_switched_and_tagged_at_once_and_as_they_were_again(at: Served, client: httpx.Client):
    def listed(**given: str) -> dict[str, tuple[str, tuple[str, ...]]]:
        found = client.get("/api/documents", params=given).json()["documents"]
        return {each["id"]: (each["state"], tuple(each["tags"])) for each in found}

    def mark(**given: Any) -> Any:
        return client.post("/api/document-marks", json=given).json()

    before = listed()
    first, *others = before
    client.patch(f"/api/documents/{first}", json={"tags": ["Quay"]})
    made = mark(that_fit={}, add=["Quay", "Old % files"], off=True)
    assert (made["changed"], made["left_out"]) == (len(before), 0)
    assert set(listed().values()) == {("off", ("Old % files", "Quay"))}
    assert mark(that_fit={}, add=["quay"])["changed"] == 0
    assert listed(tag="old % FILES") == listed() and listed(tag="Old") == {}
    counts = client.get("/api/document-tags").json()["tags"]
    assert counts == [{"tag": tag, "documents": len(before)} for tag in ("Old % files", "Quay")]
    for each in made["before"]:
        mark(**each)
    assert listed() == before | {first: ("ready", ("Quay",))}
    assert mark(ids=others, that_fit={"tag": "Quay"}, remove=["Quay"])["changed"] == 0
    assert mark(ids=[first, "d0"], remove=["QUAY"])["changed"] == 1 and listed() == before
    assert client.post("/api/document-marks", json={"off": True}).status_code == 400
    marks = [
        event for _, event in records.workspace_log(at.server.workspace.store) if isinstance(event, DocumentMarked)
    ]
    assert len(marks) == 2 * len(before) + 2 and marks[-1] == DocumentMarked(first, "local")


def test_what_is_shared_with_somebody_is_left_out_when_they_mark_many(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        store = made.at.server.workspace.store
        base = made.at.server.workspace.for_principal(Principal("editor")).scope().bases[0]
        grants.share(store, base, "user:reader", "editor")
        offers.answer(store, Principal("reader"), base.id, True)
        total = reader.get("/api/documents").json()["total"]
        marked = reader.post("/api/document-marks", json={"that_fit": {}, "off": True, "add": ["mine"]}).json()
        assert total and (marked["changed"], marked["left_out"]) == (0, total)
        assert editor.get("/api/documents", params={"state": "off"}).json()["total"] == 0


def test_only_its_owner_switches_or_tags_a_document(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        tower = editor.get("/api/documents", params={"q": "tower"}).json()["documents"][0]["id"]
        store = made.at.server.workspace.store
        base = made.at.server.workspace.for_principal(Principal("editor")).scope().bases[0]
        grants.share(store, base, "user:reader", "editor")
        offers.answer(store, Principal("reader"), base.id, True)
        assert reader.get(f"/api/documents/{tower}").status_code == 200
        for wanted in ({"off": True}, {"tags": ["mine"]}):
            assert reader.patch(f"/api/documents/{tower}", json=wanted).status_code == 404
        assert editor.patch(f"/api/documents/{tower}", json={"off": True}).json()["state"] == "off"
        assert reader.get(f"/api/documents/{tower}").json()["state"] == "off"
