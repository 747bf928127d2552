"""Where rules had to stand in for a model, the account says so, and says why."""

from __future__ import annotations

from dataclasses import replace

from wharf import DOCS, carried, context, opened, was_read

from assay.agent.context import RunContext
from assay.core.events import RULES, Described, Fallback, InsightsDrawn, Revised, Translated
from assay.core.run import Run
from assay.core.synthesis import Pipeline, Portrait, Readability, Translation
from assay.core.types import Outcome
from assay.governance.replay import refusal
from assay.synthesis import account, narrate, settle, state

NOTHING = Readability(0, 0.0, 0.0, 0.0)


def test_a_limit_that_was_reached_is_noted():
    run = opened().then(InsightsDrawn("", (), fallback=(Fallback.time,), doc_id="a"))
    assert account.notes(run) == ("A limit on time was reached: from there on it went by rule.",)


async def _told(pipeline: Pipeline = Pipeline.summary) -> tuple[Run, RunContext]:
    run = opened(model=False, pipeline=pipeline)
    able = context(DOCS, run)
    return await carried(await was_read(run, able), able, narrate.narrate, settle.check), able


async def test_an_account_whose_translation_went_by_rule_for_want_of_money_is_a_partial_one():
    run, able = await _told()
    whole = await carried(run, able, settle.deliver)
    short = run.then(Translated(Translation("plain", (), NOTHING, NOTHING), fallback=(Fallback.money,)))
    short = await carried(short, able, settle.deliver)
    assert whole.answer and whole.answer.outcome is Outcome.answered
    assert short.answer and short.answer.outcome is Outcome.partial


def test_a_replay_refuses_what_was_refused_and_for_the_same_reason():
    said = Revised(0, None, "it is said at another time", RULES)
    told = Translated(Translation("plain", (), NOTHING, NOTHING), fallback=(Fallback.money,))
    unusable = InsightsDrawn("q1", (), by="insights@m", fallback=(Fallback.unusable,))
    for events in ([said, told], [unusable, told]):
        refused = refusal(events)
        assert refused is not None and refused.why is Fallback.money


def test_what_holds_words_of_documents_says_whose():
    """So that they can be found when a document is erased."""
    from assay.core.codec import to_json
    from assay.core.events import Questioned
    from assay.store.runs.records import documents_in

    together = Questioned(("Is it agreed that the log is kept for 30 days?",), documents=("a", "b"))
    retold = Translated(Translation("plain", (), NOTHING, NOTHING), ("a", "b"))
    for event in (together, retold):
        assert {"a", "b"} <= documents_in(to_json(event, words=False))
    assert state.labels(opened(DOCS[:2])) == {"a": "D1", "b": "D2"}


async def test_an_account_that_leaves_a_document_untold_is_a_partial_one():
    run, able = await _told()
    first = replace(run.asked, brief=replace(state.brief(run), documents=("a", "b", "c", "gone")))
    run = Run(run.id, (first, *run.events[1:], Described(Portrait("gone", "Gone", empty="it is empty"))))
    run = await carried(run, able, settle.deliver)
    assert run.answer and run.answer.blocks and run.answer.outcome is Outcome.partial
