"""From evidence to insights: one sentence for each question and each document that answers it, none skipped.

A request holds quotations of one document only, so that no document can have a say in what is drawn from another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from assay.agent.context import RunContext, mark
from assay.answer import claims, revise
from assay.answer.checking.judge import JUDGE, unchanged_evidence
from assay.answer.evidence_text import Sources, quotations
from assay.answer.statements import is_statement, split_statements
from assay.core.account import Insight, Question
from assay.core.events import InsightsDrawn
from assay.core.events.maker import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Claim, Document, Evidence, Verdict
from assay.evidence.weigh import quote
from assay.language.injection import is_suspicious
from assay.language.sentences import is_table_row
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.writing.small_models import is_close_to_a_sentence

TOGETHER = 6  # insights that one request asks for
SENTENCES = 3  # of what was written for one insight, those that are tried
CITES = 3  # keys of one insight
SHOWN, LITTLE = 6000, 1200  # tokens of quotations in one request; a small model is lost in more
AGAIN = " They were left out when they were first asked for."
NOWHERE = Sources()  # titles are no evidence: they may be wrong, hostile or swapped
Documents = Callable[[str], Document | None]


@dataclass(frozen=True, slots=True)
class InsightTask:
    """An insight that is to be drawn: what this document says to this question."""

    id: str
    question: Question
    doc_id: str
    evidence: tuple[Evidence, ...]

    @property
    def told(self) -> tuple[Evidence, ...]:
        """What a model is shown of it. What reads like an instruction is only ever quoted."""
        return tuple(each for each in self.evidence if not each.flagged)


class InsightReply(BaseModel):
    """An insight as it was written, by its number in the request."""

    model_config = ConfigDict(strict=True, extra="forbid")

    number: int
    text: str
    cites: list[str] = []


class InsightReplies(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    insights: list[InsightReply]


# --- what is wanted -------------------------------------------------------------------------------------------------


def questions_without_insights(run: Run) -> tuple[str, ...]:
    """The questions that have evidence, and no insights yet."""
    done, known = state.insights_by_question(run), state.labels(run)
    found = {
        question
        for question, event in state.gathered_evidence(run).items()
        if any(each.quote.doc_id in known for each in event.evidence)
    }
    return tuple(each.id for each in state.questions(run) if each.id in found and each.id not in done)


def insight_tasks(run: Run) -> tuple[InsightTask, ...]:
    """Every insight that there is to be, drawn or not: by document, then by question."""
    found = state.evidence_by_document(run)
    return tuple(
        InsightTask(state.insight_id(question.id, label), question, doc, evidence)
        for doc, label in state.labels(run).items()
        for question in state.questions(run)
        if (evidence := found.get(question.id, {}).get(doc, ()))
    )


def group_by_document(items: Sequence[InsightTask], together: int) -> list[Sequence[InsightTask]]:
    """The insights that share a request. They are cut over all that are wanted: who carries on asks what was asked before."""
    own: dict[str, list[InsightTask]] = {}
    for each in items:
        if each.told:
            own.setdefault(each.doc_id, []).append(each)
    return [block for group in own.values() for block in state.batches(group, together)]


# --- the stage ------------------------------------------------------------------------------------------------------


async def draw(run: Run, context: RunContext) -> AsyncIterator[InsightsDrawn]:
    """The insights of each question that has none yet, in the order of the questions."""
    document = lru_cache(maxsize=64)(context.document)
    items = insight_tasks(run)
    open_ = list(questions_without_insights(run))
    asks_for = frozenset(open_)
    blocks: list[Sequence[InsightTask]] = []
    if run.asked.has_model:
        together = 1 if context.small(Role.write) else TOGETHER
        blocks = [
            block for block in group_by_document(items, together) if any(each.question.id in asks_for for each in block)
        ]
    asked = {each.id for block in blocks for each in block}
    by_question: dict[str, list[InsightTask]] = {}
    for each in items:
        by_question.setdefault(each.question.id, []).append(each)
    drawn = {
        each.id: _by_rule(each, document) for each in items if each.question.id in asks_for and each.id not in asked
    }

    def complete() -> list[InsightsDrawn]:
        """What can be told now: every question, in order, up to the first that waits for a reply."""
        ready: list[InsightsDrawn] = []
        while open_ and all(each.id in drawn for each in by_question[open_[0]]):
            ready.append(_drawn_event(open_[0], [drawn[each.id] for each in by_question[open_.pop(0)]]))
        return ready

    for event in complete():
        yield event
    async for block in state.run_in_order(_draw_by_model(run, context, block, document) for block in blocks):
        drawn |= {each.insight.id: each for each in block}
        for event in complete():
            yield event


@dataclass(frozen=True, slots=True)
class _InsightResult:
    insight: Insight
    maker: Maker = BY_RULES
    missing: bool = False


def _drawn_event(question: str, drawn: Sequence[_InsightResult]) -> InsightsDrawn:
    missing = tuple(each.insight.id for each in drawn if each.missing)
    maker = combine_makers(each.maker for each in drawn if each.maker != BY_RULES)
    return InsightsDrawn(question, tuple(each.insight for each in drawn), missing, maker.by, maker.fallback)


def _by_rule(
    item: InsightTask, document: Documents, maker: Maker = BY_RULES, *, missing: bool = False
) -> _InsightResult:
    claim = JUDGE.verify(quote_best_sentence(item), item.evidence, document)
    return _InsightResult(Insight(item.id, item.question.id, item.doc_id, claim), maker, missing)


async def _draw_by_model(
    run: Run, context: RunContext, block: Sequence[InsightTask], document: Documents
) -> list[_InsightResult]:
    """What a model made of a block. It is asked once more for what it left out, and for nothing else."""
    said: dict[str, tuple[InsightReply, str]] = {}
    left: Sequence[InsightTask] = block
    refused: Maker | None = None
    again = False
    while left and not refused:
        reply = await _ask_model(run, context, left, again=again)
        if isinstance(reply, NoReply):
            refused = stand_in(reply.why)
        else:
            said |= {id: (each, reply[1]) for id, each in _by_number(reply[0], left).items()}
            left = [] if again else [each for each in block if each.id not in said]
            again = True
    shown = tuple({each.key: each for item in block for each in item.evidence}.values())
    return [
        _InsightResult(
            _choose_claim(item, said[item.id][0], shown, document, small=context.small(Role.write)),
            Maker(said[item.id][1]),
        )
        if item.id in said
        else _by_rule(item, document, refused or BY_RULES, missing=not refused)
        for item in block
    ]


async def _ask_model(
    run: Run, context: RunContext, items: Sequence[InsightTask], *, again: bool
) -> tuple[InsightReplies, str] | NoReply:
    most = LITTLE if context.small(Role.write) else SHOWN
    return await context.ask(
        Role.write,
        "insights",
        InsightReplies,
        lambda room: build_prompt(items, mark(run), min(room, most), again=again),
        schema=schema(items),
        documents=sorted({each.doc_id for each in items}),
        max_tokens=60 + 100 * len(items),
    )


# --- what the model is shown, and what it said ----------------------------------------------------------------------


def build_prompt(items: Sequence[InsightTask], mark: str, room: int, *, again: bool = False) -> dict[str, str]:
    """The values of the prompt `insights`, in at most `room` tokens: each question with an equal share of what is left."""
    left = room - 24
    parts: list[str] = []
    for place, item in enumerate(items):
        own = left // (len(items) - place)
        # A question may be in a document's own words: it is data too.
        asked = fence(mark, "question", fit_to_tokens(" ".join(item.question.text.split()), max(own // 4, 16)))
        head = f"Number {place + 1}\n{asked}"
        part = f"{head}\n{quotations(item.told, NOWHERE, mark, own - estimate_tokens(head) - 4)[0]}"
        left -= estimate_tokens(part) + 2
        parts.append(part)
    return {"pairs": "\n\n".join(parts), "count": str(len(items)), "again": AGAIN if again else ""}


def schema(items: Sequence[InsightTask]) -> dict[str, Any]:
    """The form of a reply, in which nothing can be cited but what was shown."""
    keys = dict.fromkeys(each.key for item in items for each in item.told)
    insight = {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "enum": list(range(1, len(items) + 1))},
            "text": {"type": "string"},
            "cites": {
                "type": "array",
                "items": {"type": "string", "enum": list(keys)},
                "minItems": 1,
                "maxItems": CITES,
            },
        },
        "required": ["number", "text", "cites"],
        "additionalProperties": False,
    }
    listed = {"type": "array", "items": insight, "minItems": len(items), "maxItems": len(items)}
    return {
        "type": "object",
        "properties": {"insights": listed},
        "required": ["insights"],
        "additionalProperties": False,
    }


def _by_number(reply: InsightReplies, items: Sequence[InsightTask]) -> Mapping[str, InsightReply]:
    """What was said for each of these; of two for one number the first holds, and one that says nothing is none."""
    found: dict[str, InsightReply] = {}
    for each in reply.insights:
        if 1 <= each.number <= len(items) and each.text.strip():
            found.setdefault(items[each.number - 1].id, each)
    return found


# --- what stands ----------------------------------------------------------------------------------------------------


def _choose_claim(
    item: InsightTask, said: InsightReply, shown: Sequence[Evidence], document: Documents, *, small: bool
) -> Insight:
    claim = _supported_claim(item, said, shown, document, small=small) or JUDGE.verify(
        quote_best_sentence(item), item.evidence, document
    )
    return Insight(item.id, item.question.id, item.doc_id, claim)


def _supported_claim(
    item: InsightTask, said: InsightReply, shown: Sequence[Evidence], document: Documents, *, small: bool
) -> Claim | None:
    """The first of the sentences that follows from the evidence of this insight, cited anew where that helps; else the
    sentence of the document that is closest to what was meant. `shown` is all that the request held: what some passage
    orders a writer to say is no insight of another."""
    own = unchanged_evidence(item.told, document)
    written, _ = claims.split_claims(said.text, said.cites, {each.key for each in own})
    tried = [claims.drop_redundant_citations(claim, own, NOWHERE) for claim in written[:SENTENCES]]
    for claim in tried:
        for form in (claim, revise.correct_citations(claim, own, NOWHERE)):
            ruled = JUDGE.by_rule(form, shown, NOWHERE) if form else None
            faithful = ruled is not None and (not small or is_close_to_a_sentence(ruled.text, ruled.cites, own))
            if ruled and ruled.verdict is Verdict.supported and faithful:
                return ruled
    for claim in tried:
        nearest = revise.closest_sentence(claim, own, item.question.text, NOWHERE)
        found = JUDGE.verify(nearest, own, document) if nearest else None
        if found and found.verdict is Verdict.supported and not is_suspicious(found.words):
            return found
    return None


def quote_best_sentence(item: InsightTask) -> Claim:
    """The best quotation of a document as a claim: a sentence, where its evidence has one. What reads like an instruction
    stands back behind everything else."""
    ranked = sorted(item.evidence, key=lambda each: (each.flagged, not _is_whole_statement(each.quote.text)))
    best = ranked[0]
    if _is_whole_statement(best.quote.text):
        return Claim("", (best.key,), quote=best.quote)
    asked = frozenset(content_terms(item.question.text))
    said = [
        (len(asked & frozenset(content_terms(each.passage.text[slice(*span)]))), each, span)
        for each in ranked
        if each.flagged == best.flagged
        for span in split_statements(each.passage.text)
        if _is_whole_statement(each.passage.text[slice(*span)])
    ]
    if not said:
        return Claim("", (best.key,), quote=best.quote)
    _, each, span = max(said, key=lambda one: one[0])  # of equals the first
    return Claim("", (each.key,), quote=quote(each.passage, *span))


def _is_whole_statement(words: str) -> bool:
    """Whether words can stand alone: a whole sentence or a row, no heading, and nothing that is said to a model."""
    whole = words.rstrip("\"'”’)]*_ ").endswith(tuple(".!?;:。！？؟۔।")) or is_table_row(words)
    return whole and is_statement(words) and not is_suspicious(words)
