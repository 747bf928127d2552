from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from assay.agent.context import Limits, RunContext
from assay.agent.loop import Step, carry_on, next_step, play
from assay.answer.checking.judge import verify
from assay.answer.compose import delivery_guard, guarded_answer
from assay.core.events import (
    Asked,
    Call,
    Checked,
    Decided,
    Drafted,
    Planned,
    Route,
    Routed,
    Stopped,
    StopReason,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Block, Claim, Outcome, Plan, PlanStep, Quote, Shape, Verdict
from assay.store import documents
from assay.workspace.facade import Workspace
from assay.workspace.services.ask import run_context_for

pytestmark = pytest.mark.long

QUESTION = "Which gateway release would have prevented the late alarm in the Pellam incident?"


def asked(question: str = QUESTION) -> Run:
    return Run("r1", (Asked(question, "local", "2026-01-01"),))


def context(opened: Workspace) -> RunContext:
    return replace(asyncio.run(run_context_for(opened.context, asked())), record=Run.then)


def test_what_comes_next_follows_from_the_events_alone():
    run = asked()
    assert next_step(run, Limits()) is Step.ROUTE
    run = run.then(Routed(Route.research, ""))
    assert next_step(run, Limits()) is Step.PLAN
    run = run.then(Planned(Plan((PlanStep("s1", "q"),)))).then(
        Decided((Call("c1", "search", {"query": "q", "k": 3}),), "")
    )
    assert next_step(run, Limits()) is Step.CALL
    run = run.then(ToolRan("c1", ()))
    assert next_step(run, Limits()) is Step.SUFFICIENCY
    run = run.then(Stopped(StopReason.nothing_new))
    assert next_step(run, Limits()) is Step.DRAFT


@pytest.mark.long
def test_a_limit_ends_the_search_and_not_the_run(filled: Workspace):
    run = asyncio.run(play(asked(), replace(context(filled), limits=Limits(rounds=1))))
    assert run.stopped and run.stopped.reason is StopReason.rounds
    assert run.answer is not None and run.rounds == 1


@pytest.mark.parametrize("stride", [9, *([1] if os.environ.get("ASSAY_SOAK") else [])])
def test_a_run_carried_on_from_any_of_its_events_ends_in_the_same_answer(filled: Workspace, stride: int):
    whole = asyncio.run(play(asked(), context(filled)))
    for length in range(stride, len(whole.events), stride):
        again = asyncio.run(play(Run("r1", whole.events[:length]), context(filled)))  # nothing is remembered
        assert again.answer == whole.answer, whole.kinds[:length]


def test_every_event_is_recorded_before_it_is_seen(filled: Workspace):
    order: list[str] = []

    def record(run: Run, event) -> Run:
        order.append("recorded")
        return run.then(event)

    watched = replace(context(filled), record=record)

    async def watch() -> None:
        async for _ in carry_on(asked(), watched):
            order.append("seen")

    asyncio.run(watch())
    assert order == ["recorded", "seen"] * (len(order) // 2)


def test_a_tool_that_does_not_exist_is_refused_with_the_list_of_tools(filled: Workspace):
    run = asked().then(Routed(Route.research, "")).then(Planned(Plan(())))
    run = run.then(
        Decided((Call("c1", "delete_everything", {}), Call("c2", "search", {"query": "alarm", "colour": "red"})), "")
    )
    run = asyncio.run(play(run, context(filled)))
    assert "There are: compare_documents, " in run.results["c1"].error
    assert "takes no argument 'colour'" in run.results["c2"].error
    assert run.answer is not None


def test_a_quotation_that_is_not_in_its_document_is_never_delivered(filled: Workspace):
    run = asyncio.run(play(asked(), context(filled)))
    evidence = run.evidence[0]
    inside = evidence.passage
    liar = Quote(inside.doc_id, inside.start, inside.start + 13, "Pigs can fly.")
    elsewhere = Quote(inside.doc_id, inside.end, inside.end + 5, "other")
    document = lambda name: documents.get(filled.store, name, filled.scope())  # noqa: E731
    for claim, verdict in (
        (Claim("", (evidence.key,), quote=liar), Verdict.unsupported),
        (Claim("", (evidence.key,), quote=elsewhere), Verdict.unsupported),
        (Claim("", ("no-such-key",), quote=evidence.quote), Verdict.unsupported),
        (Claim("Pigs can fly.", (evidence.key,)), Verdict.partial),
        (Claim("Pigs can fly 1234 miles.", (evidence.key,)), Verdict.unsupported),
        (Claim("Pigs can fly.", ()), Verdict.uncited),
        (Claim("", (evidence.key,), quote=evidence.quote), Verdict.supported),
    ):
        result = verify(claim, run.evidence, document)
        assert result.verdict is verdict
        forged = Run("r1", tuple(event for event in run.events if not isinstance(event, (Drafted, Checked)))[:-1])
        forged = forged.then(Drafted((Block((claim,)),), Shape.sentence)).then(Checked(0, result))
        delivered = guarded_answer(forged, delivery_guard(forged, document), {})
        assert bool(delivered.claims) == (verdict is Verdict.supported)
        assert (delivered.outcome is Outcome.abstained) == (verdict is not Verdict.supported)


def test_an_answer_cites_only_what_was_gathered_and_quotes_only_what_stands_there(filled: Workspace):
    run = asyncio.run(play(asked("How many households had received the notice?"), context(filled)))
    assert run.answer is not None and run.answer.claims
    assert run.answer.cited_keys <= {evidence.key for evidence in run.evidence}
    for claim in run.answer.claims:
        assert claim.quote is not None
        document = filled.documents.get(claim.quote.doc_id)
        assert document and document.text[claim.quote.start : claim.quote.end] == claim.quote.text


def test_a_question_about_last_year_is_not_limited_to_documents_of_last_year(filled: Workspace):
    run = asked("What did the monthly reports of last year say about nitrate?")
    run = asyncio.run(play(run, replace(context(filled))))
    assert run.where == run.asked.where and run.answer is not None and run.answer.since is None
    dates = {filled.documents.get(found.passage.doc_id).date for found in run.found}  # type: ignore[union-attr]
    assert any(date and not date.startswith("2025") for date in dates)


def test_a_run_from_before_keeps_the_dates_of_its_question(filled: Workspace):
    before = replace(asked("What did the reports of last year say about nitrate?").asked, version=5)
    run = Run("r1", (before, Routed(Route.research, "no model", "2025-01-01", "2025-12-31")))
    assert (run.where.since, run.where.until, run.where.undated) == ("2025-01-01", "2025-12-31", True)
    run = asyncio.run(play(run, context(filled)))
    dates = {filled.documents.get(found.passage.doc_id).date for found in run.found}  # type: ignore[union-attr]
    assert dates and all(date is None or date.startswith("2025") for date in dates)


@pytest.mark.long
async def test_a_run_that_was_stopped_is_resumed_from_its_records(filled: Workspace):
    steps = filled.ask(QUESTION)
    for _ in range(6):
        run, _event = await anext(steps)
    await steps.aclose()
    kinds = filled.questions.run(run.id).kinds
    assert len(kinds) == 6 and "Answered" not in kinds
    run = [each async for each, _ in filled.resume(run.id)][-1]
    assert run.answer is not None and filled.questions.run(run.id).kinds[:6] == kinds
    whole = [each async for each, _ in filled.ask(QUESTION)][-1]
    assert whole.answer == run.answer


@pytest.mark.parametrize(
    "question", ["?", "…", "the of and", "'; DROP TABLE documents; --", "\x00", "a" * 20_000, "🙂", "()[]*~^:\\"]
)
@pytest.mark.long
def test_whatever_is_asked_ends_in_an_answer(filled: Workspace, question: str):
    run = asyncio.run(play(asked(question), context(filled)))
    assert run.answer is not None


def test_what_came_near_is_checked_like_any_claim(filled: Workspace):
    run = asyncio.run(play(asked("What is the boiling point of tungsten?"), context(filled)))
    assert run.answer is not None and run.answer.outcome is not Outcome.answered
    key = run.evidence[0].key
    lie = Claim("", (key,), quote=Quote("d", 0, 3, "lie"))
    forged = replace(run.draft or pytest.fail("there is no draft"), blocks=(), conflicts=(), near=(lie,))
    events = tuple(forged if isinstance(event, Drafted) else event for event in run.events[:-1])
    run = Run("r1", events)
    assert guarded_answer(run, delivery_guard(run, filled.documents.get), {}).near == ()
