"""Where rules had to stand in for a model, the account says so, and says why."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import mills
import wharf
from wharf import LOGS, A, B, Model, asked, carried, context, document

from assay.agent.steps import check
from assay.core.account import Pipeline, Portrait, Readability, Translation
from assay.core.events import RULES, Described, Fallback, InsightsDrawn, Revised, Translated
from assay.core.run import Run
from assay.core.types import Outcome
from assay.governance.rebuilt_prompts import refusal
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.store.runs.budgets import SpendingReservation
from assay.synthesis import state
from assay.synthesis.output import account
from assay.synthesis.stages import insights, narrative

DOCS = [document("a", A), document("b", B)]
ANSWERS = {LOGS: [("a", A.split(". ")[0] + "."), ("b", B.split(". ")[0] + ".")]}
NOTHING = Readability(0, 0.0, 0.0, 0.0)


class Once:
    """A purse with the price of one request in it."""

    left = 1

    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        self.left -= 1
        return SpendingReservation(0, seconds) if self.left >= 0 else NoReply(Fallback.money, "")

    def settle(self, id: int, model: str, usage: Any) -> Any:
        return usage

    def release(self, id: int) -> None:
        return None


def first(name: str, shown: str) -> dict[str, Any]:
    words = re.search(r"The crane log of the wharf is kept for \d+ days\.", shown)
    assert words
    return {"insights": [{"number": 1, "text": words[0], "cites": [wharf.key_of(shown, words[0])]}]}


async def test_money_that_ran_out_half_way_through_a_question_is_said_to_have_run_out():
    run = asked(DOCS, ANSWERS, small=True)
    able = context(DOCS, run, Model(first))
    assert able.meter is not None
    able.meter.ledger = Once()
    run = await carried(run, insights.draw, able)
    (drew,) = (event for event in run.events if isinstance(event, InsightsDrawn))
    assert drew.by == "insights@model" and drew.fallback == (Fallback.money,)
    assert account.notes(run) == ("A limit on money was reached: from there on it went by rule.",)


def test_a_document_that_nobody_could_pay_to_have_described_is_noted():
    run = asked(DOCS, ANSWERS).then(Described(Portrait("a", "A"), (Fallback.time,)))
    assert account.notes(run) == ("A limit on time was reached: from there on it went by rule.",)


async def test_an_account_whose_translation_went_by_rule_for_want_of_money_is_a_partial_one():
    docs = [mills.document(1), mills.document(2)]
    run = mills.drawn(docs, Pipeline.summary, model=False)
    able = mills.context(docs, run)
    run = await mills.carried(run, able, narrative.narrate, check.check)
    whole = await mills.carried(run, able, narrative.deliver)
    short = run.then(Translated(Translation("plain", (), NOTHING, NOTHING), fallback=(Fallback.money,)))
    short = await mills.carried(short, able, narrative.deliver)
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
    assert state.labels(asked(DOCS, ANSWERS)) == {"a": "D1", "b": "D2"}


async def test_an_account_that_leaves_a_document_untold_is_a_partial_one():
    docs = [mills.document(1), mills.document(2)]
    run = mills.drawn(docs[:1], Pipeline.summary, model=False)
    first = replace(run.asked, brief=replace(state.brief(run), documents=tuple(each.id for each in docs)))
    run = Run(run.id, (first, *run.events[1:], Described(Portrait(docs[1].id, docs[1].title, empty="it is empty"))))
    run = await mills.told(run, mills.context(docs, run))
    assert run.answer and run.answer.blocks and run.answer.outcome is Outcome.partial
