"""What was found out about a document: shown, corrected by its owner on the record, and where it was cited."""

from __future__ import annotations

from pathlib import Path

from serving import QUESTION, followed, served
from team import team

from assay.core.access import Principal
from assay.core.events import DocumentEdited
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
        base = made.at.server.for_principal(Principal("editor")).scope().bases[0]
        grants.share(store, base, "user:reader", "editor")
        offers.answer(store, Principal("reader"), base.id, True)
        assert reader.get(f"/api/documents/{tower}/citations").json()["runs"] == []  # not what others asked
        assert reader.patch(f"/api/documents/{tower}", json={"title": "Mine"}).status_code == 404
