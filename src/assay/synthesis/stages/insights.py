"""From evidence to insights: one sentence for each question and each document that answers it, none skipped.

A request contains quotations of one document only, so that no document can influence the insights of another.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from assay.agent.context import RunContext, mark
from assay.agent.steps.check import judge_window
from assay.answer import claims, revise
from assay.answer.checking.judge import JUDGE, unchanged_evidence
from assay.answer.checking.model_rulings import JudgeRequest, batches
from assay.answer.evidence_text import Sources, quotations
from assay.core.account import Insight, Question
from assay.core.events import InsightsDrawn
from assay.core.events.maker import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Claim, Document, Evidence, Verdict
from assay.evidence.weigh import quote
from assay.language.injection import is_suspicious
from assay.language.sentences import is_statement, is_table_row, split_statements
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.schemas import list_schema, object_schema
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state

TOGETHER = 6  # insights per request
SENTENCES = 3  # sentences of a reply that are tried for one insight
CITES = 3  # citations per insight
SHOWN, LITTLE = 6000, 1200  # tokens of quotations per request; small models lose track in longer prompts
AGAIN = " They were left out when they were first asked for."
NOWHERE = Sources()  # titles are not evidence: they may be wrong, hostile or swapped
Documents = Callable[[str], Document | None]


@dataclass(frozen=True, slots=True)
class InsightTask:
    """An insight to draw: what this document says about this question."""

    id: str
    question: Question
    doc_id: str
    evidence: tuple[Evidence, ...]

    @property
    def unflagged(self) -> tuple[Evidence, ...]:
        """The evidence shown to a model. Text that looks like an instruction is only quoted, never shown."""
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


# --- tasks ----------------------------------------------------------------------------------------------------------


def questions_without_insights(run: Run) -> tuple[str, ...]:
    """The questions that have evidence but no insights yet."""
    done, known = state.insights_by_question(run), state.labels(run)
    found = {
        question
        for question, event in state.gathered_evidence(run).items()
        if any(each.quote.doc_id in known for each in event.evidence)
    }
    return tuple(each.id for each in state.questions(run) if each.id in found and each.id not in done)


def insight_tasks(run: Run) -> tuple[InsightTask, ...]:
    """Every insight of the run, drawn or not, by document, then by question."""
    found = state.evidence_by_document(run)
    return tuple(
        InsightTask(state.insight_id(question.id, label), question, doc, evidence)
        for doc, label in state.labels(run).items()
        for question in state.questions(run)
        if (evidence := found.get(question.id, {}).get(doc, ()))
    )


def group_by_document(items: Sequence[InsightTask], together: int) -> list[Sequence[InsightTask]]:
    """The insights that share a request. Grouping covers all tasks, done or not, so that a resumed run sends the
    same requests."""
    own: dict[str, list[InsightTask]] = {}
    for each in items:
        if each.unflagged:
            own.setdefault(each.doc_id, []).append(each)
    return [block for group in own.values() for block in state.batches(group, together)]


# --- the stage ------------------------------------------------------------------------------------------------------


async def draw(run: Run, context: RunContext) -> AsyncIterator[InsightsDrawn]:
    """Yield the insights of each question that has none yet, in question order."""
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
        """The events that can be emitted now: all questions in order, up to the first that still waits for a reply."""
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
    """Let a model draw the insights of a block. Missing ones, and only those, are requested once more."""
    replies: dict[str, tuple[InsightReply, str]] = {}
    left: Sequence[InsightTask] = block
    refused: Maker | None = None
    again = False
    while left and not refused:
        reply = await _ask_model(run, context, left, again=again)
        if isinstance(reply, NoReply):
            refused = stand_in(reply.why)
        else:
            replies |= {id: (each, reply[1]) for id, each in _by_number(reply[0], left).items()}
            left = [] if again else [each for each in block if each.id not in replies]
            again = True
    tried = {item.id: _ruled_claims(item, replies[item.id][0], block, document) for item in block if item.id in replies}
    judged = await _judge(run, context, block, [claim for own in tried.values() for claim in own])
    return [
        _InsightResult(
            _choose_claim(item, [judged[each] for each in tried[item.id]], document), Maker(replies[item.id][1])
        )
        if item.id in replies
        else _by_rule(item, document, refused or BY_RULES, missing=not refused)
        for item in block
    ]


async def _judge(
    run: Run, context: RunContext, block: Sequence[InsightTask], claims: Sequence[Claim]
) -> Mapping[Claim, Claim]:
    """The claims with their final verdicts: a capable model judges those that are not quotations, in as few requests as
    possible."""
    judged = {claim: claim for claim in claims}
    if context.small(Role.check):
        return judged
    open_ = tuple(dict.fromkeys(claim for claim in claims if context.judge.needs_model(claim)))
    evidence = tuple({each.key: each for item in block for each in item.unflagged}.values())
    documents = sorted({each.doc_id for each in block})
    for batch in batches(open_, evidence, judge_window(run)):
        own = open_[batch.start : batch.stop]
        judgement = await context.judge.by_model(
            JudgeRequest(own), evidence, NOWHERE, context.ask, mark=mark(run), documents=documents
        )
        judged |= dict(zip(own, judgement.claims, strict=True))
    return judged


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


# --- prompt and reply -----------------------------------------------------------------------------------------------


def build_prompt(items: Sequence[InsightTask], mark: str, room: int, *, again: bool = False) -> dict[str, str]:
    """The values of the prompt `insights`, in at most `room` tokens; the questions share the remaining tokens
    equally."""
    left = room - 24
    parts: list[str] = []
    for place, item in enumerate(items):
        own = left // (len(items) - place)
        # A question may use the words of a document, so it is data too.
        asked = fence(mark, "question", fit_to_tokens(" ".join(item.question.text.split()), max(own // 4, 16)))
        head = f"Number {place + 1}\n{asked}"
        part = f"{head}\n{quotations(item.unflagged, NOWHERE, mark, own - estimate_tokens(head) - 4)[0]}"
        left -= estimate_tokens(part) + 2
        parts.append(part)
    return {"pairs": "\n\n".join(parts), "count": str(len(items)), "again": AGAIN if again else ""}


def schema(items: Sequence[InsightTask]) -> dict[str, Any]:
    """JSON schema of the reply. Only keys that were shown can be cited."""
    keys = dict.fromkeys(each.key for item in items for each in item.unflagged)
    insight = object_schema(
        number={"type": "integer", "enum": list(range(1, len(items) + 1))},
        text={"type": "string"},
        cites=list_schema({"type": "string", "enum": list(keys)}, 1, CITES),
    )
    return object_schema(insights=list_schema(insight, len(items), len(items)))


def _by_number(reply: InsightReplies, items: Sequence[InsightTask]) -> Mapping[str, InsightReply]:
    """The reply for each task. The first of two for one number wins; an empty one is ignored."""
    found: dict[str, InsightReply] = {}
    for each in reply.insights:
        if 1 <= each.number <= len(items) and each.text.strip():
            found.setdefault(items[each.number - 1].id, each)
    return found


# --- verification ---------------------------------------------------------------------------------------------------


def _choose_claim(item: InsightTask, judged: Sequence[Claim], document: Documents) -> Insight:
    """The first sentence that follows from the evidence; otherwise the document's sentence closest to one of them, or
    its best sentence."""
    claim = next((each for each in judged if each.verdict is Verdict.supported), None)
    claim = claim or _closest_quotation(item, judged, document)
    claim = claim or JUDGE.verify(quote_best_sentence(item), item.evidence, document)
    return Insight(item.id, item.question.id, item.doc_id, claim)


def _ruled_claims(
    item: InsightTask, reply: InsightReply, block: Sequence[InsightTask], document: Documents
) -> list[Claim]:
    """The sentences that were written, with the verdicts of the rules. They are compared with all evidence of the
    request: a sentence that one passage orders a writer to say is not accepted as an insight of another."""
    own = unchanged_evidence(item.unflagged, document)
    shown = tuple({each.key: each for task in block for each in task.evidence}.values())
    sentences, _ = claims.split_claims(reply.text, reply.cites, {each.key for each in own})
    return [
        JUDGE.by_rule(revise.correct_citations(claim, own, NOWHERE) or claim, shown, NOWHERE)
        for claim in sentences[:SENTENCES]
    ]


def _closest_quotation(item: InsightTask, tried: Sequence[Claim], document: Documents) -> Claim | None:
    own = unchanged_evidence(item.unflagged, document)
    for claim in tried:
        nearest = revise.closest_sentence(claim, own, item.question.text, NOWHERE)
        found = JUDGE.verify(nearest, own, document) if nearest else None
        if found and found.verdict is Verdict.supported and not is_suspicious(found.words):
            return found
    return None


def quote_best_sentence(item: InsightTask) -> Claim:
    """The best quotation of a document as a claim, a whole sentence if there is one. Text that looks like an
    instruction ranks last."""
    ranked = sorted(item.evidence, key=lambda each: (each.flagged, not _is_whole_statement(each.quote.text)))
    best = ranked[0]
    if _is_whole_statement(best.quote.text):
        return Claim("", (best.key,), quote=best.quote)
    asked = frozenset(content_terms(item.question.text))
    candidates = [
        (len(asked & frozenset(content_terms(each.passage.text[slice(*span)]))), each, span)
        for each in ranked
        if each.flagged == best.flagged
        for span in split_statements(each.passage.text)
        if _is_whole_statement(each.passage.text[slice(*span)])
    ]
    if not candidates:
        return Claim("", (best.key,), quote=best.quote)
    _, each, span = max(candidates, key=lambda one: one[0])  # the first of equals
    return Claim("", (each.key,), quote=quote(each.passage, *span))


def _is_whole_statement(words: str) -> bool:
    """Whether the words are self-contained: a whole sentence or a table row, not a heading, and not addressed to a
    model."""
    whole = words.rstrip("\"'”’)]*_ ").endswith(tuple(".!?;:。！？؟۔।")) or is_table_row(words)
    return whole and is_statement(words) and not is_suspicious(words)
