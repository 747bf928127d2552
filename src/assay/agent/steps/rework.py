"""Works on the last answer of a conversation: makes it shorter, says it in another language, checks it again. Its claims
are written from its own evidence, without a search, and checked like any draft."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import draft as drafting
from assay.core.events import Drafted, Gathered, Task
from assay.core.run import Run
from assay.core.types import Answer, Block, Claim, Quote, Shape
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply

GONE = "What the last answer rests on can no longer be read. Ask the question again."
NEEDS_MODEL = "Without a language model this cannot be done with an answer: it can be checked, shortened and listed."
SHORT_ALREADY = "The last answer is one sentence: without a language model it cannot be made shorter."
NO_FIGURES = "The last answer has no figures."
LONG, SHORT = 12_000, 1_200  # tokens of evidence shown to the writer; more confuses a small model
FIGURE = re.compile(r"\d")


async def reuse_evidence(run: Run) -> AsyncIterator[Gathered]:
    """The evidence of the last answer, as far as it can still be read and says the same. It is not weighed again: the
    question is the same."""
    last = run.last_answer
    found = {each.passage.id: each.passage for each in run.found}
    known = last.evidence if last else ()
    kept = tuple(
        replace(each, passage=found[each.passage.id], note="")
        for each in known
        if each.passage.id in found and found[each.passage.id].text == each.passage.text
    )
    ids = {each.passage.id for each in kept}
    yield Gathered(kept, tuple(passage for passage in found if passage not in ids))


def last_blocks(run: Run) -> tuple[Block, ...]:
    """The claims of the last answer that the evidence still covers, without their verdicts."""
    last = run.last_answer
    keys = {each.key for each in run.evidence}
    blocks = last.whole.blocks if last and last.whole else ()
    kept = (
        replace(block, claims=tuple(unjudged(claim) for claim in block.claims if keys.issuperset(claim.cites)))
        for block in blocks
    )
    return tuple(block for block in kept if block.claims)


def unjudged(claim: Claim) -> Claim:
    return replace(claim, verdict=None, why="", edited=None, carried_by=(), by="", disputed=False, objection="")


def without_source(run: Run) -> bool:
    """Whether the passages of the last answer turned out not to give what was asked: then it is a question to the
    documents."""
    draft = run.draft
    return draft is not None and run.asked.has_model and not draft.blocks and not draft.said


async def draft_rework(run: Run, context: RunContext, *, fallback: bool = False) -> Drafted:
    """The last answer as the person wants it. A check takes its claims as they are; anything else is written by a model,
    or without one by rule, as far as rules can. If all that a model wrote has failed, the evidence is quoted."""
    blocks, task = last_blocks(run), run.rephrased.task if run.rephrased else None
    last = run.last_answer
    if last is None or last.whole is None or not blocks:
        return Drafted((), Shape.prose, said=GONE)
    if fallback:
        return Drafted((Block(tuple(Claim("", (each.key,), quote=each.quote) for each in run.evidence)),), Shape.list)
    if task is Task.check:
        return Drafted(blocks, last.whole.shape, last.whole.conflicts)
    if not run.asked.has_model:
        return by_rule(task, run.question, blocks, last.whole)
    reply = await _write(run, context, blocks)
    if isinstance(reply, NoReply):
        return replace(by_rule(task, run.question, blocks, last.whole), fallback=(reply.why,))
    written, by = reply
    return drafting.read(written, f"{run.question} {run.asked.question}", run.evidence, by, context.sources(run))


async def _write(run: Run, context: RunContext, blocks: Sequence[Block]) -> tuple[drafting.Writing, str] | NoReply:
    sources, small = context.sources(run), context.small(Role.write)
    most = SHORT if small else LONG
    return await context.ask(
        Role.write,
        "rework",
        drafting.Writing,
        lambda room: drafting.build_rework_prompt(
            run.asked.question,
            run.question,
            blocks,
            run.evidence,
            sources,
            mark(run),
            min(room, most),
            calculations=not small,
            today=run.asked.today,
        ),
        schema=drafting.schema([each.key for each in run.evidence], calculations=not small),
        documents=evidence_documents(run),
        max_tokens=3000,
    )


# --- by rule --------------------------------------------------------------------------------------------------------


def by_rule(task: Task | None, question: str, blocks: Sequence[Block], whole: Answer) -> Drafted:
    """What rules can do with an answer: leave something out, or list it. The rest is refused in a sentence."""
    if task is Task.list:
        return Drafted(tuple(blocks), Shape.list, whole.conflicts)
    if task is Task.numbers:
        kept = _only(blocks, lambda claim: bool(FIGURE.search(claim.words)))
        return Drafted(kept, whole.shape, whole.conflicts) if kept else Drafted((), Shape.prose, said=NO_FIGURES)
    if task is Task.shorten:
        kept = _shorter(blocks, question)
        return Drafted(kept, whole.shape) if kept else Drafted((), Shape.prose, said=SHORT_ALREADY)
    return Drafted((), Shape.prose, said=NEEDS_MODEL)


def _only(blocks: Sequence[Block], wanted) -> tuple[Block, ...]:
    kept = (replace(block, claims=tuple(filter(wanted, block.claims))) for block in blocks)
    return tuple(block for block in kept if block.claims)


def _shorter(blocks: Sequence[Block], question: str) -> tuple[Block, ...]:
    """The first half of the claims; of a single quotation, the sentence that has most words of the question."""
    claims = [claim for block in blocks for claim in block.claims]
    if len(claims) > 1:
        left = iter(range(len(claims)))
        half = (len(claims) + 1) // 2
        return _only(blocks, lambda claim: next(left) < half)
    quote = claims[0].quote
    spans = split_sentences(quote.text) if quote else []
    if quote is None or len(spans) < 2:
        return ()
    asked = set(content_terms(question))
    start, end = max(spans, key=lambda span: len(asked & set(content_terms(quote.text[slice(*span)]))))
    part = Quote(quote.doc_id, quote.start + start, quote.start + end, quote.text[start:end])
    return (replace(blocks[0], claims=(replace(claims[0], quote=part),)),)
