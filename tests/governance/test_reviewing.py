"""Reviewing over a workspace: who may, what they see, and that an answer is delivered once and only as it was approved."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, Script, enough, keeps, lookup, supported, writes
from notes import filled, opened
from sqlalchemy import update

from assay.core.access import LOCAL, Principal
from assay.core.codec import dumps, to_json
from assay.core.errors import Missing, UserError
from assay.core.events import Answered, Decision, Edit, Gathered, Stakes, ToolRan
from assay.core.run import Run
from assay.core.types import Verdict
from assay.store.access import grants, members
from assay.store.runs import records, reviews
from assay.store.schema import documents
from assay.workspace.facade import Workspace
from assay.workspace.services.reviews import Reviews

TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
NOTES = {
    "tower.txt": f"{TALL} It leans a little.",
    "lamp.txt": "The lamp room at Carrow Point is painted with orpiment.",
}
QUESTION = "How tall is the tower at Carrow Point?"
ASKER, REVIEWER, SECOND, STRANGER = (Principal(name) for name in ("asker", "reviewer", "second", "stranger"))
REVIEWERS = "user:reviewer, user:second"
Looking = ToolRan | Gathered  # the documents' own words are no draft


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review") / "workspace"
    asyncio.run(filled(folder, NOTES))
    with opened(folder) as whole:
        (base,) = whole.scope().bases
        for who in (ASKER, REVIEWER, SECOND):
            grants.share(whole.store, base, f"user:{who.id}")
    return folder


@contextmanager
def team(folder: Path, model: ChatServer | None = None, **flags: Any) -> Iterator[Workspace]:
    """The workspace as the asker sees it; every answer waits."""
    with opened(folder, model, **{"review_always": True, "reviewers": REVIEWERS} | flags) as whole:
        seen = whole.for_principal(ASKER)
        yield seen


def bench(workspace: Workspace, who: Principal = REVIEWER, *, admin: bool = False) -> Reviews:
    return workspace.for_principal(who).reviews.acting(admin=admin, principal_of=lambda run, asker: Principal(asker))


async def asked(workspace: Workspace, **how: Any) -> Run:
    return [run async for run, _ in workspace.ask(QUESTION, **how)][-1]


async def carried(tool_context: Reviews, run: str) -> Run:
    return [now async for now, _ in tool_context.resume(run)][-1]


def model(**other: Any) -> ChatServer:
    said = {
        "route": lookup(),
        "weigh": keeps(TALL),
        "judge": enough(),
        "write": writes("The tower at Carrow Point is 31 metres tall [{31 metres}]."),
        "check": supported(),
    }
    return ChatServer(Script(**said | other).answer)


# --- a whole review -------------------------------------------------------------------------------------------------


async def test_an_answer_is_held_edited_held_again_approved_and_delivered(stocked: Path):
    with model() as served, team(stocked, served) as mine:
        run = await asked(mine)
        assert run.held and run.held.reasons == ("every answer is looked at here",) and not run.delivered
        tool_context = bench(mine)
        first = tool_context.sheet(run.id)
        assert [each.claim.words for each in first.claims] == ["The tower at Carrow Point is 31 metres tall."]
        tool_context.decide(
            run.id, Decision.edit, first.seal, edits=[Edit(0, "The tower is 31 metres tall and leans.")]
        )
        again = await carried(tool_context, run.id)
        second = tool_context.sheet(run.id)
        assert again.held and second.seal != first.seal
        assert [(each.claim.edited, each.claim.verdict) for each in second.claims] == [("reviewer", Verdict.supported)]
        tool_context.decide(run.id, Decision.approve, second.seal)
        done = await carried(tool_context, run.id)
        told = done.events[-1]
        assert isinstance(told, Answered) and told.seal == second.seal
        assert [claim.words for claim in told.answer.claims] == ["The tower is 31 metres tall and leans."]
        assert told.answer.claims[0].edited == "reviewer"
        assert [each.state for each in (reviews.latest(mine.store, run.id),) if each] == [reviews.ReviewState.delivered]


async def test_an_account_is_held_edited_checked_again_with_its_translations_and_delivered(stocked: Path):
    from doubles import synthesis_model

    from assay.synthesis import state
    from assay.workspace.types import SynthesisRequest

    with ChatServer(synthesis_model()) as served, team(stocked, served) as mine:
        documents = [entry.id for entry in mine.documents.listing()]
        steps = mine.syntheses.begin(documents, SynthesisRequest(audiences=("plain",)))
        run = [run async for run, _ in steps][-1]
        assert run.held and not run.delivered
        first = bench(mine).sheet(run.id)
        assert all(each.editable for each in first.claims)
        place = next(each.place for each in first.claims if each.claim.words == TALL)
        words = "At Carrow Point the tower of the lighthouse is 31 metres tall."
        bench(mine).decide(run.id, Decision.edit, first.seal, edits=[Edit(place, words)])
        again = await carried(bench(mine), run.id)
        second = bench(mine).sheet(run.id)
        assert again.held and second.seal != first.seal
        edited = next(each.claim for each in second.claims if each.place == place)
        assert (edited.words, edited.edited, edited.verdict) == (words, "reviewer", Verdict.supported)
        retold = [each.text for part in state.translations(again)["plain"].paragraphs for each in part.sentences]
        assert words in retold and TALL not in retold
        bench(mine).decide(run.id, Decision.approve, second.seal)
        done = await carried(bench(mine), run.id)
        assert done.answer and words in [claim.words for claim in done.answer.claims]


async def test_without_a_model_a_reviewers_own_words_stand_if_nothing_speaks_against_them(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        seal = tool_context.sheet(run.id).seal
        tool_context.decide(run.id, Decision.edit, seal, edits=[Edit(0, "It is 31 metres up the tower.")])
        await carried(tool_context, run.id)
        sheet = tool_context.sheet(run.id)
        assert [(each.claim.verdict, each.claim.edited) for each in sheet.claims] == [(Verdict.supported, "reviewer")]
        tool_context.decide(run.id, Decision.approve, sheet.seal)
        done = await carried(tool_context, run.id)
        assert done.answer is not None and [claim.text for claim in done.answer.claims] == [
            "It is 31 metres up the tower."
        ]


@pytest.mark.parametrize("words", ["The tower is 400 metres tall."])
async def test_an_edit_that_does_not_hold_is_shown_with_its_verdict_and_never_delivered(stocked: Path, words: str):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        seal = tool_context.sheet(run.id).seal
        tool_context.decide(run.id, Decision.edit, seal, edits=[Edit(0, words)])
        await carried(tool_context, run.id)
        sheet = tool_context.sheet(run.id)
        (written,) = sheet.claims
        assert (
            written.claim.verdict is not Verdict.supported
            and not written.delivered
            and written.claim.edited == "reviewer"
        )
        tool_context.decide(run.id, Decision.approve, sheet.seal)
        done = await carried(tool_context, run.id)
        assert done.answer is not None and words not in dumps(to_json(done.answer))


async def test_a_claim_can_be_dropped(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        tool_context.decide(run.id, Decision.edit, tool_context.sheet(run.id).seal, edits=[Edit(0)])
        await carried(tool_context, run.id)
        assert tool_context.sheet(run.id).claims == ()


async def test_a_rejected_answer_is_never_delivered_and_whoever_asked_is_told_why(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        seal = tool_context.sheet(run.id).seal
        with pytest.raises(UserError, match="Say why"):
            tool_context.decide(run.id, Decision.reject, seal)
        tool_context.decide(run.id, Decision.reject, seal, "It is out of date.")
        found = mine.questions.run(run.id)
        assert found.rejected and found.rejected.note == "It is out of date."
        assert [each async for each in mine.resume(run.id)] == []
        with pytest.raises(UserError, match="rejected in review"):
            records.append(mine.store, run.id, len(found.events), Answered(run.held.answer, seal))  # pyright: ignore


async def test_a_person_may_say_that_much_depends_on_the_answer(stocked: Path):
    with team(stocked, review_always=False) as mine:
        assert (await asked(mine)).delivered
        assert (await asked(mine, stakes=Stakes.high)).held


async def test_answers_from_a_marked_knowledge_base_wait_and_only_its_owner_marks_it(stocked: Path):
    with opened(stocked) as whole:
        whole.reviews.mark_base("default", on=True)
        with pytest.raises(UserError, match="not yours to change"):
            whole.for_principal(ASKER).reviews.mark_base("default", on=False)
        try:
            run = await asked(whole)
            assert run.held and run.held.reasons == ("it draws on a knowledge base whose answers are reviewed",)
        finally:
            whole.reviews.mark_base("default", on=False)
        assert (await asked(whole)).delivered
        with pytest.raises(Exception, match="no reviewer has approved"):
            records.append(whole.store, run.id, len(run.events), Answered(run.held.answer))
        assert [each async for each in whole.resume(run.id)] == []  # what waits goes on waiting


# --- who may --------------------------------------------------------------------------------------------------------


async def test_whoever_may_not_review_is_told_the_same_as_if_there_were_no_such_run(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        for who, admin in ((STRANGER, False), (STRANGER, True), (ASKER, True)):
            tool_context = bench(mine, who, admin=admin)
            with pytest.raises(Missing) as there:
                tool_context.sheet(run.id)
            with pytest.raises(Missing) as not_there:
                tool_context.sheet("r0000000000000000")
            assert str(there.value).replace(run.id, "R") == str(not_there.value).replace("r0000000000000000", "R")
            with pytest.raises(Missing):
                tool_context.decide(run.id, Decision.approve, run.held.seal)  # pyright: ignore
            with pytest.raises(Missing):
                tool_context.trace(run.id)
            assert tool_context.queue() == ([], "")


async def test_a_reviewer_reads_every_document_that_the_answer_cites_or_there_is_nothing_to_review(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        assert run.held
        tool_context = bench(mine)
        (cited,) = {each.passage.doc_id for each in run.evidence if each.key in run.held.answer.cited_keys}
        with mine.store.write() as connection:
            connection.execute(update(documents).where(documents.c.id == cited).values(label="closed"))
            base = connection.exec_driver_sql("SELECT base FROM documents LIMIT 1").scalar()
            connection.exec_driver_sql("INSERT INTO grants (label, name) VALUES ('closed', 'user:asker')")
        try:
            assert run.id not in [each.review.run for each in tool_context.queue()[0]]
            for look in (tool_context.sheet, tool_context.trace):
                with pytest.raises(Missing):
                    look(run.id)
            with pytest.raises(Missing):
                tool_context.decide(run.id, Decision.approve, run.held.seal)
        finally:
            with mine.store.write() as connection:
                connection.execute(update(documents).where(documents.c.id == cited).values(label=base))
                connection.exec_driver_sql("DELETE FROM grants WHERE label = 'closed'")


async def test_a_document_that_is_not_cited_and_not_theirs_is_not_in_what_a_reviewer_sees(stocked: Path):
    both = keeps(TALL, "The lamp room at Carrow Point is painted with orpiment.")
    with model(weigh=both) as served, team(stocked, served) as mine:
        run = await asked(mine)
        assert run.held and any("orpiment" in each.quote.text for each in run.evidence)
        lamp = next(each.passage.doc_id for each in run.evidence if "orpiment" in each.quote.text)
        with mine.store.write() as connection:
            base = connection.exec_driver_sql("SELECT base FROM documents LIMIT 1").scalar()
            connection.execute(update(documents).where(documents.c.id == lamp).values(label="closed"))
            connection.exec_driver_sql("INSERT INTO grants (label, name) VALUES ('closed', 'user:asker')")
        try:
            tool_context = bench(mine)
            sheet = tool_context.sheet(run.id)
            assert sheet.line.may_decide and [each.claim.words for each in sheet.claims]
            seen = dumps([to_json(each) for each in (sheet.answer, sheet.claims, sheet.evidence, sheet.history)])
            seen += dumps([to_json(event) for _, event in tool_context.trace(run.id)])
            assert "orpiment" not in seen and lamp not in seen
        finally:
            with mine.store.write() as connection:
                connection.execute(update(documents).where(documents.c.id == lamp).values(label=base))
                connection.exec_driver_sql("DELETE FROM grants WHERE label = 'closed'")


async def test_access_taken_away_between_looking_and_deciding_is_noticed_in_the_deciding_transaction(
    stocked: Path, monkeypatch: pytest.MonkeyPatch
):
    with team(stocked) as mine:
        run = await asked(mine)
        assert run.held
        tool_context, seen = bench(mine), Reviews._draft

        def looked(tool_context: Reviews, review: reviews.Review) -> Any:
            found = seen(tool_context, review)
            with mine.store.write() as connection:  # at that very moment
                connection.exec_driver_sql("DELETE FROM grants WHERE name = 'user:reviewer'")
            return found

        monkeypatch.setattr(Reviews, "_draft", looked)
        try:
            with pytest.raises(Missing):
                tool_context.decide(run.id, Decision.approve, run.held.seal)
        finally:
            with opened(stocked) as whole:
                grants.share(whole.store, whole.scope().bases[0], "user:reviewer")
        assert mine.questions.run(run.id).held is not None


@pytest.mark.parametrize("since", ["then", "now"])
async def test_with_four_eyes_whoever_asked_decides_nothing_whether_it_was_set_then_or_is_set_now(
    stocked: Path, since: str
):
    names = {"reviewers": "user:asker, user:reviewer"}
    with team(stocked, review_four_eyes=since == "then", **names) as mine:
        run = await asked(mine)
    with team(stocked, review_four_eyes=since == "now", **names) as mine:
        own = bench(mine, ASKER).sheet(run.id)
        assert not own.line.may_decide and "somebody else" in own.line.why_not
        events = [event for _, event in bench(mine, ASKER).trace(run.id) if not isinstance(event, Looking)]
        assert "31 metres" not in dumps([to_json(each) for each in (own.answer, own.claims, *events)])
        with pytest.raises(UserError, match="somebody else has to look"):
            bench(mine, ASKER).decide(run.id, Decision.approve, own.seal)
        bench(mine).decide(run.id, Decision.approve, own.seal)
        assert (await carried(bench(mine), run.id)).delivered


async def test_without_named_reviewers_administrators_review_and_at_a_terminal_where_nobody_signs_in_whoever_sits_there(
    stocked: Path, tmp_path: Path
):
    with team(stocked, reviewers="") as mine:
        run = await asked(mine)
        assert bench(mine, REVIEWER, admin=True).sheet(run.id)
        with pytest.raises(Missing):
            bench(mine, REVIEWER).sheet(run.id)
        whole = mine.for_principal(LOCAL)
        assert whole.reviews.sheet(run.id)
        members.add(mine.store, "editor")
        try:
            with pytest.raises(Missing):
                whole.reviews.sheet(run.id)
        finally:
            members.remove_member(mine.store, mine.context.cache, "editor")


async def test_whoever_takes_over_the_runs_of_somebody_is_the_one_who_asked(stocked: Path):
    from assay.store.access import members

    with team(stocked, review_four_eyes=True, reviewers="user:second, user:reviewer") as mine:
        run = await asked(mine)
        members.transfer_ownership(mine.store, mine.context.cache, "asker", "second")
        try:
            with pytest.raises(UserError, match="somebody else has to look"):
                bench(mine, SECOND).decide(run.id, Decision.approve, run.held.seal)  # pyright: ignore
            assert bench(mine).sheet(run.id).line.may_decide
        finally:
            members.transfer_ownership(mine.store, mine.context.cache, "second", "asker")
            with opened(stocked) as whole:
                grants.share(whole.store, whole.scope().bases[0], "user:second")


def test_reviewers_are_named_as_users_and_groups():
    from assay.governance.reviewing import Reviewer, parse_reviewers

    names = parse_reviewers("user:x, group:board")
    assert Reviewer(Principal("y", frozenset({"board"})), False, names).may_review
    assert not Reviewer(Principal("y"), True, names).may_review
    with pytest.raises(UserError, match="user:NAME or group:NAME"):
        parse_reviewers("board")


# --- seals ----------------------------------------------------------------------------------------------------------


async def test_a_decision_on_what_no_longer_waits_is_refused_in_a_line(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        seal = tool_context.sheet(run.id).seal
        with pytest.raises(UserError, match="no longer what you looked at"):
            tool_context.decide(run.id, Decision.approve, "0" * 64)
        tool_context.decide(run.id, Decision.edit, seal, edits=[Edit(0, "The tower is 31 metres tall.")])
        await carried(tool_context, run.id)
        with pytest.raises(UserError, match="no longer what you looked at"):
            tool_context.decide(run.id, Decision.approve, seal)


async def test_of_two_reviewers_at_once_one_decides(stocked: Path, monkeypatch: pytest.MonkeyPatch):
    with team(stocked) as mine:
        run = await asked(mine)
        assert run.held
        first, second, seen = bench(mine), bench(mine, SECOND), Reviews._draft

        def meanwhile(tool_context: Reviews, review: reviews.Review) -> Any:
            found = seen(tool_context, review)
            if tool_context is second:
                first.decide(run.id, Decision.approve, review.seal)
            return found

        monkeypatch.setattr(Reviews, "_draft", meanwhile)
        with pytest.raises(UserError, match="waits for a reviewer any more"):
            second.decide(run.id, Decision.reject, run.held.seal, "No.")
        assert [each.by for each in mine.questions.run(run.id).reviews] == ["reviewer"]


async def test_an_approval_that_has_lapsed_delivers_nothing_and_the_answer_waits_under_another_seal(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        seal = tool_context.sheet(run.id).seal
        tool_context.decide(run.id, Decision.approve, seal)
        with mine.store.write() as connection:
            connection.exec_driver_sql(
                "UPDATE reviews SET expires = '2020-01-01T00:00:00.000Z' WHERE run = ?", (run.id,)
            )
        again = await carried(tool_context, run.id)
        assert again.held and not again.delivered and again.held.seal != seal
        with pytest.raises(UserError, match="no longer what you looked at"):
            tool_context.decide(run.id, Decision.approve, seal)  # the same words, sent once more


async def test_a_process_that_dies_between_approval_and_delivery_leaves_a_run_that_is_delivered_once(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        tool_context.decide(run.id, Decision.approve, tool_context.sheet(run.id).seal)
        assert (run.id, "asker") in reviews.undelivered(mine.store)
    with team(stocked) as mine:  # another process
        assert (await carried(bench(mine), run.id)).delivered
        told = mine.questions.run(run.id)
        assert [each async for each in mine.resume(run.id)] == []
        assert mine.questions.run(run.id) == told and sum(isinstance(each, Answered) for each in told.events) == 1
        assert (run.id, "asker") not in reviews.undelivered(mine.store)


async def test_what_is_delivered_under_a_seal_is_what_waited_under_it_whoever_writes_it_down(stocked: Path):
    from dataclasses import replace

    with team(stocked) as mine:
        run = await asked(mine)
        assert run.held
        tool_context = bench(mine)
        tool_context.decide(run.id, Decision.approve, run.held.seal)
        other = replace(run.held.answer, blocks=())
        with pytest.raises(Exception, match="exactly this answer"):
            records.append(mine.store, run.id, len(run.events) + 1, Answered(other, run.held.seal))
        assert (await carried(tool_context, run.id)).delivered


# --- the rest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("decision", "edits", "says"),
    [
        (Decision.edit, [], "Name the claims"),
        (Decision.edit, [Edit(7, "x")], "no claim at place 7"),
        (Decision.edit, [Edit(0, "x"), Edit(0, "y")], "once at a time"),
        (Decision.approve, [Edit(0, "x")], "either edited"),
        (Decision.edit, [Edit(0, "x" * 5000)], "too long"),
    ],
)
async def test_an_edit_that_makes_no_sense_is_said(stocked: Path, decision: Decision, edits: list[Edit], says: str):
    with team(stocked) as mine:
        run = await asked(mine)
        with pytest.raises(UserError, match=says):
            bench(mine).decide(run.id, decision, run.held.seal, edits=edits)  # pyright: ignore
        assert mine.questions.run(run.id).held


async def test_decisions_are_kept_with_what_was_asked_and_what_would_have_been_said(stocked: Path):
    with team(stocked) as mine:
        run = await asked(mine)
        tool_context = bench(mine)
        tool_context.decide(run.id, Decision.reject, tool_context.sheet(run.id).seal, "Ask the harbour master.")
        sheet, made = next(each for each in tool_context.decided() if each[0].line.review.run == run.id)
        assert (sheet.line.question, made.decision, made.note) == (QUESTION, Decision.reject, "Ask the harbour master.")
        assert "31 metres" in dumps(to_json(sheet.answer))


async def test_a_queue_is_paged_with_the_longest_waiting_first(stocked: Path):
    with team(stocked) as mine:
        for _ in range(3):
            await asked(mine)
        tool_context, seen, after = bench(mine), list[str](), ""
        whole = [each.review.run for each in tool_context.queue()[0]]
        while True:
            lines, after = tool_context.queue(after=after, limit=2)
            seen += [each.review.run for each in lines]
            if not after:
                break
        assert seen == whole and len(set(seen)) == len(seen) >= 3
