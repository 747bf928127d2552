"""The account of a synthesis, computed from its events: the input of page, file and API. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from assay.core.account import Account, Pipeline, Relation
from assay.core.events import fallbacks
from assay.core.run import Run
from assay.core.types import Document
from assay.evidence.quotation import stands
from assay.synthesis import state
from assay.synthesis.output import diagnostics
from assay.synthesis.stages.coverage import ledger
from assay.synthesis.writing import rewrite
from assay.synthesis.writing.readability import readability

OF_WHAT = {
    "money": "the money",
    "tokens": "the tokens",
    "calls": "the calls of a model",
    "time": "the time",
    "unusable": "",
}


def account(run: Run, document: Callable[[str], Document | None]) -> Account:
    """The account of a delivered synthesis. A relation is included only while both documents still contain its
    quotations."""
    document = cache(document)
    answer = run.answer
    assert answer is not None, "a synthesis that is not delivered has no account"
    brief, spine, paired = state.brief(run), state.spine(run), state.pairing(run)
    known = state.portraits(run)
    words = "\n\n".join(claim.words for claim in answer.claims)
    return Account(
        run=run.id,
        brief=brief,
        question=run.question,
        made_on=run.asked.today,
        models=tuple(dict.fromkeys(role_model.model for role_model in run.asked.seats)),
        documents=tuple(known[doc] for doc in brief.documents if doc in known),
        questions=state.questions(run),
        answers={
            question: tuple(each.key for each in own) for question, own in state.evidence_by_question(run).items()
        },
        evidence=run.evidence,
        insights=tuple(state.insights(run).values()),
        relations=tuple(each for each in state.relations(run) if is_quoted_on_both_sides(each, document)),
        pairing=paired.how if paired else "",
        theme=spine.theme if spine else "",
        spine=spine.spine if spine else (),
        themes=spine.themes if spine else (),
        narrative=answer,
        readability=readability(words),
        translations=tuple(rewrite.align_with_answer(each, run) for each in state.translations(run).values()),
        ledger=ledger(run),
        diagnostics=diagnostics.diagnostics(run),
        notes=notes(run),
        usage=run.usage,
    )


def is_quoted_on_both_sides(relation: Relation, document: Callable[[str], Document | None]) -> bool:
    sides = ((side.quote, document(side.doc_id)) for side in (relation.left, relation.right))
    return all(source is not None and stands(quote, source) for quote, source in sides)


def notes(run: Run) -> tuple[str, ...]:
    """Notes for the reader on how the account was made: that there was no model, or where one could not be used."""
    brief = state.brief(run)
    notes: list[str] = []
    if not run.asked.has_model:
        notes.append(
            "Made without a language model: what stands here are quotations, chosen and ordered by rule. "
            + (
                "Of relations only contradictions, close parallels and shared subjects are recognised."
                if _deep(run)
                else ""
            )
        )
        if set(brief.audiences) != {"expert"}:
            notes.append("Texts for other readers need a model; they hold the same quotations.")
    for why in sorted({why for event in run.events for why in fallbacks(event)}):
        what = OF_WHAT.get(why, "")
        notes.append(
            f"A limit on {what.removeprefix('the ')} was reached: from there on it went by rule."
            if what
            else "Some replies of the model could not be used: there it went by rule."
        )
    inexact = sum(len(event.inexact) for event in state.gathered_evidence(run).values())
    if inexact:
        notes.append(
            f"{inexact} quotations that a model gave were not in the passage; its best sentence stands instead."
        )
    return tuple(each.strip() for each in notes)


def _deep(run: Run) -> bool:
    return state.brief(run).pipeline is Pipeline.synthesis
