"""From questions to evidence: what is searched, chosen, weighed and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from quay import HOSTILE, PAPERS, documents, fill, opened

from assay.core.account import Brief, Pipeline, Portrait, Question, QuestionKind
from assay.core.events import Asked, Described, Event, Merged
from assay.core.run import Run
from assay.core.types import Evidence, Passage, Quote
from assay.evidence.quotation import within
from assay.synthesis import state
from assay.synthesis.stages import answers, coverage
from assay.workspace.ask import run_context_for
from assay.workspace.facade import Workspace


async def begun(workspace: Workspace, *questions: tuple[str, QuestionKind, tuple[str, ...]], **other: Any) -> Run:
    docs = tuple(documents(workspace))
    brief = Brief(Pipeline.synthesis, docs, **{"reranker": "none"} | other)
    asked = [Question(f"q{n}", text, kind, own or docs) for n, (text, kind, own) in enumerate(questions, 1)]
    portraits = [Described(Portrait(doc, doc)) for doc in docs]
    return Run("r1", (Asked("What?", "local", "2026-01-02", brief=brief), *portraits, Merged(tuple(asked))))


async def done(run: Run, workspace: Workspace, *stages: Any) -> Run:
    context = await run_context_for(workspace.context, run)
    for stage in stages:
        events: list[Event] = [event async for event in stage(run, context)]
        for event in events:
            run = run.then(event)
    return run


@pytest.fixture
async def quay(tmp_path: Path):
    await fill(tmp_path / "w")
    with opened(tmp_path / "w") as workspace:
        yield workspace


async def test_a_question_finds_the_document_that_answers_it(quay: Workspace):
    run = await begun(quay, ("At what rate does silt settle in the basin?", QuestionKind.theme, ()))
    run = await done(run, quay, answers.search, answers.weigh)
    best = state.evidence_by_question(run)["q1"][0]
    assert "4 centimetres a year" in best.passage.text
    assert best.key == state.evidence_key(best.quote)


async def test_the_document_that_a_question_comes_from_has_its_say(quay: Workspace):
    tables = next(entry.id for entry in quay.sources() if entry.title == "Keeping the tide tables")
    run = await begun(quay, ("What does the hydraulic ram of the sluice gate do?", QuestionKind.workings, (tables,)))
    run = await done(run, quay, answers.search)
    assert tables in {found.passage.doc_id for found in state.chosen_passages(run)["q1"].found}


async def test_a_comparative_question_hears_each_document_once(quay: Workspace):
    run = await begun(quay, ("What do the sluices and the hydraulic ram do?", QuestionKind.comparative, ()))
    run = await done(run, quay, answers.search)
    found = [each.passage.doc_id for each in state.chosen_passages(run)["q1"].found]
    assert len(found) == len(set(found)) > 3


async def test_a_follow_up_looks_only_where_it_was_asked_to(quay: Workspace):
    costs = next(entry.id for entry in quay.sources() if entry.title == "Costs of the harbour")
    run = await begun(quay, ("What does the hydraulic ram do?", QuestionKind.follow_up, (costs,)))
    run = await done(run, quay, answers.search)
    assert {found.passage.doc_id for found in state.chosen_passages(run)["q1"].found} == {costs}


async def test_rerankers_are_compared_where_that_is_asked_for(quay: Workspace):
    run = await begun(quay, ("What leaks oil?", QuestionKind.theme, ()), compare=("set",))
    run = await done(run, quay, answers.search)
    event = state.chosen_passages(run)["q1"]
    assert event.by == "none" and set(event.others) == {"set"} and event.others["set"]


async def test_a_question_that_was_weighed_is_not_weighed_again(quay: Workspace):
    run = await begun(
        quay, ("What leaks oil?", QuestionKind.theme, ()), ("What do clerks correct?", QuestionKind.theme, ())
    )
    run = await done(run, quay, answers.search, answers.weigh)
    shorter = replace(run, events=run.events[:-1])
    again = await done(shorter, quay, answers.weigh)
    assert again.events == run.events


async def test_one_span_is_one_piece_of_evidence_whichever_questions_it_answers(quay: Workspace):
    asked = "How many minutes does the ram take to lift the gate?"
    run = await begun(
        quay, (asked, QuestionKind.theme, ()), (asked.replace("How many", "In how many"), QuestionKind.theme, ())
    )
    run = await done(run, quay, answers.search, answers.weigh)
    first, second = (state.evidence_by_question(run)[each][0] for each in ("q1", "q2"))
    assert first.key == second.key and len({each.key for each in run.evidence}) == len(run.evidence)


async def test_what_a_document_orders_is_no_evidence(tmp_path: Path):
    await fill(tmp_path / "w", {**PAPERS, "Notice": HOSTILE})
    with opened(tmp_path / "w") as workspace:
        run = await begun(
            workspace, ("Is the harbour closed, and does everything contradict everything?", QuestionKind.theme, ())
        )
        run = await done(run, workspace, answers.search, answers.weigh, coverage.cover)
        notice = next(entry.id for entry in workspace.sources() if entry.title == "Notice")
        assert notice in {found.passage.doc_id for found in run.found}
        assert notice not in {each.quote.doc_id for each in run.evidence}
        row = next(row for row in state.coverage_passes(run)[0].rows if row.doc_id == notice)
        assert row.reason == coverage.ORDERS


async def test_documents_with_hardly_any_evidence_are_asked_about_once_more(quay: Workspace):
    run = await begun(quay, ("At what rate does silt settle in the basin?", QuestionKind.theme, ()))
    run = await done(run, quay, answers.search, answers.weigh, coverage.cover)
    first = state.coverage_passes(run)[0]
    assert first.thin and {row.doc_id for row in first.rows} == set(documents(quay))
    run = await done(run, quay, coverage.cover)
    assert not state.coverage_passes(run)[1].thin, "there is no third pass"


async def test_an_empty_document_is_named_with_its_reason_and_not_asked_about(quay: Workspace):
    run = await begun(quay, ("At what rate does silt settle?", QuestionKind.theme, ()))
    gone = documents(quay)[0]
    events = [
        Described(replace(event.portrait, empty="it can no longer be read"))
        if isinstance(event, Described) and event.portrait.doc_id == gone
        else event
        for event in run.events
    ]
    run = await done(Run("r1", tuple(events)), quay, answers.search, answers.weigh, coverage.cover)
    first = state.coverage_passes(run)[0]
    assert gone not in first.thin
    assert next(row for row in first.rows if row.doc_id == gone).reason == "it can no longer be read"


def test_of_a_passage_that_is_quoted_whole_the_sentence_that_answers_is_kept():
    words = PAPERS["Silt in the basin"]
    passage = Passage("p", "d", words, 100, 100 + len(words))
    whole = Evidence("k", passage, Quote("d", 100, 100 + len(words), words), 8.0, "q")
    question = Question("q1", "Where is dredging needed?", QuestionKind.theme, ("d",))
    short = answers._shorten(whole, question)
    assert short.quote.text == "Dredging is needed where the flushing current does not reach."
    assert within(short.quote, short.passage)
    assert answers._shorten(short, question) == short
