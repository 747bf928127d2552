"""What people make of answers, what they could ask next, and threads that they share: recorded, and read by whoever may."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx
import pytest
from serving import QUESTION, followed, served
from team import Team, team

from assay.core.access import LOCAL, Principal
from assay.store.access import grants, members, offers
from assay.store.runs import records

SECRET = "the lamp room smells of orpiment"


def asked(client: httpx.Client, question: str = QUESTION, **more: object) -> dict[str, str]:
    """A delivered run, quoted."""
    begun = client.post("/api/runs", json={"question": question, "model": False, **more}).json()
    list(followed(client, begun["run"]))
    return begun


def let_read(made: Team, may: bool = True) -> None:
    """The reader may read what the editor owns, and has accepted it."""
    store = made.at.server.workspace.store
    base = made.at.server.workspace.for_principal(Principal("editor")).scope().bases[0]
    (grants.share if may else grants.stop_sharing)(store, base, "user:reader", "editor")
    if may:
        offers.answer(store, Principal("reader"), base.id, True)


# --- feedback -------------------------------------------------------------------------------------------------------


def test_feedback_on_a_claim_is_recorded_and_listed(folder: Path):
    with served(folder) as at, at.client() as client:
        run = asked(client)["run"]
        given = client.post(f"/api/runs/{run}/feedback", json={"kind": "wrong", "claim": 0, "words": "It is 30."})
        assert given.status_code == 201 and given.json()["question"] == QUESTION
        assert "31 metres" in given.json()["statement"]
        client.post(f"/api/runs/{run}/feedback", json={"kind": "helpful"})
        assert [each["kind"] for each in client.get("/api/feedback").json()["feedback"]] == ["helpful", "wrong"]
        assert client.post(f"/api/runs/{run}/feedback", json={"kind": "wrong", "claim": 40}).status_code == 400
        assert client.post("/api/runs/none/feedback", json={"kind": "wrong"}).status_code == 404
        store = at.server.workspace.store
        assert [type(event).__name__ for _, event in records.workspace_log(store)][-2:] == ["FeedbackGiven"] * 2
        assert client.get(f"/api/runs/{run}/trace").json()["faults"] == []


def test_feedback_is_erased_with_what_it_is_about(folder: Path):
    with served(folder) as at, at.client() as client:
        run = asked(client)["run"]
        client.post(f"/api/runs/{run}/feedback", json={"kind": "wrong", "words": SECRET})
        document = client.get("/api/documents", params={"q": "tower"}).json()["documents"][0]["id"]
        assert client.delete(f"/api/documents/{document}").status_code == 200
        assert client.get("/api/feedback").json()["feedback"] == []
        assert client.get("/api/verify").json()["whole"]
    assert SECRET.encode() not in (folder / "state.db").read_bytes()


async def test_feedback_is_erased_with_its_person(folder: Path):
    with team(folder) as made, made.as_("editor") as editor:
        run = await asyncio.to_thread(asked, editor)
        editor.post(f"/api/runs/{run['run']}/feedback", json={"kind": "unclear", "words": SECRET})
        await made.at.server.workspace.records.erase_person("editor", with_documents=True)
        everything = made.at.server.workspace.for_principal(LOCAL).questions.feedback(everyone=True)
        assert everything == []


def test_nobody_gives_feedback_on_somebody_elses_answer_or_reads_theirs(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        run = asked(editor)["run"]
        editor.post(f"/api/runs/{run}/feedback", json={"kind": "wrong", "words": SECRET})
        assert reader.post(f"/api/runs/{run}/feedback", json={"kind": "wrong"}).status_code == 404
        assert reader.get(f"/api/runs/{run}/follow-ups").status_code == 404
        assert reader.get("/api/feedback").json()["feedback"] == []
        assert reader.get("/api/feedback", params={"everyone": True}).status_code == 404
        members.set_admin(made.at.server.workspace.store, "reader", True, "test")
        seen = reader.get("/api/feedback", params={"everyone": True})
        assert [each["withheld"] for each in seen.json()["feedback"]] == [True] and SECRET not in seen.text
        let_read(made)
        assert SECRET in reader.get("/api/feedback", params={"everyone": True}).text


@pytest.mark.long
def test_feedback_is_listed_at_the_command_line(folder: Path, assay):
    with served(folder) as at, at.client() as client:
        run = asked(client)["run"]
        client.post(f"/api/runs/{run}/feedback", json={"kind": "incomplete", "words": "Since when?"})
    listed = assay("feedback", ASSAY_WORKSPACE=str(folder))
    assert "incomplete" in listed.stdout and "Since when?" in listed.stdout
    case = json.loads(assay("feedback", "--json", ASSAY_WORKSPACE=str(folder)).stdout)[0]
    assert (case["run"], case["question"], case["kind"]) == (run, QUESTION, "incomplete")


# --- sharing --------------------------------------------------------------------------------------------------------


def test_a_shared_thread_is_read_as_far_as_its_documents_may_be_read(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        thread = asked(editor, talk=True)["thread"]
        place = f"/api/shared-threads/{thread}"
        assert reader.get(place).status_code == 404
        assert editor.post(f"/api/threads/{thread}/readers", json={"name": "user:reader", "may": True}).json() == {
            "readers": ["user:reader"],
            "accepted": [],
        }
        accept(reader, thread)
        assert editor.get(f"/api/threads/{thread}/readers").json()["accepted"] == ["user:reader"]
        assert reader.get("/api/shared-threads").json()["threads"][0]["owner"] == "editor"
        turn = reader.get(place).json()["shared_turns"][0]
        assert turn["question"] == QUESTION and turn["answer"] is None and "metres" not in json.dumps(turn)
        let_read(made)
        shown = reader.get(place).json()["shared_turns"][0]["answer"]
        assert "31 metres" in json.dumps(shown) and shown["searched"] == [] and shown["unread"] == []
        let_read(made, False)
        assert reader.get(place).json()["shared_turns"][0]["answer"] is None  # taken away means taken away
        editor.post(f"/api/threads/{thread}/readers", json={"name": "user:reader", "may": False})
        assert reader.get(place).status_code == 404 and reader.get("/api/shared-threads").json()["threads"] == []


def accept(reader: httpx.Client, thread: str, said: bool = True) -> None:
    assert reader.post(f"/api/shared-threads/{thread}", json={"accept": said}).status_code == 204


def test_a_shared_thread_is_offered_accepted_declined_and_left(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        thread = asked(editor, talk=True)["thread"]
        place = f"/api/shared-threads/{thread}"
        assert reader.post(place, json={"accept": True}).status_code == 404  # nobody offers it
        editor.post(f"/api/threads/{thread}/readers", json={"name": "user:reader", "may": True})
        found = reader.get("/api/shared-threads").json()
        assert found["threads"] == [] and [each["declined"] for each in found["offers"]] == [False]
        assert reader.get(place).status_code == 404  # an offer shows nothing of it but its title
        accept(reader, thread, False)
        assert reader.get("/api/shared-threads").json()["offers"][0]["declined"]
        accept(reader, thread)
        assert reader.get(place).status_code == 200 and reader.get("/api/shared-threads").json()["offers"] == []
        accept(reader, thread, False)
        assert reader.get(place).status_code == 404 and reader.get("/api/shared-threads").json()["threads"] == []
        assert editor.post(place, json={"accept": True}).status_code == 404  # one's own is not offered


def test_only_who_owns_a_thread_shares_it_and_a_deleted_one_is_gone_for_all(folder: Path):
    with team(folder) as made, made.as_("editor") as editor, made.as_("reader") as reader:
        thread = asked(editor, talk=True)["thread"]
        path = f"/api/threads/{thread}/readers"
        assert reader.get(path).status_code == 404
        assert reader.post(path, json={"name": "user:other", "may": True}).status_code == 404
        assert editor.post(path, json={"name": "reader", "may": True}).status_code == 400
        editor.post(path, json={"name": "user:reader", "may": True})
        assert reader.delete(f"/api/threads/{thread}").status_code == 404
        assert reader.get(f"/api/threads/{thread}").status_code == 404  # it is not theirs, only shown to them
        editor.delete(f"/api/threads/{thread}")
        assert reader.get("/api/shared-threads").json()["threads"] == []


def test_a_question_is_asked_of_the_chosen_documents_alone(folder: Path):
    with served(folder) as at, at.client() as client:
        lamp = client.get("/api/documents", params={"q": "lamp"}).json()["documents"][0]
        run = asked(client, "What is at Carrow Point?", sources=[lamp["uri"]])["run"]
        found = client.get(f"/api/runs/{run}").json()["evidence"]
        assert {each["document"] for each in found} == {lamp["id"]}


@pytest.mark.parametrize("path", ["/api/feedback", "/api/shared-threads", "/api/suggestions"])
def test_what_is_empty_is_empty_in_the_same_words(folder: Path, path: str):
    with team(folder) as made, made.as_("reader") as reader:
        assert not any(reader.get(path).json().values())
