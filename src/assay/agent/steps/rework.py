"""Works on the last answer of a conversation, for a model: makes it shorter, says it in another language, checks it again.
Its claims are written from its own evidence, without a search, and checked like any draft."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import draft as drafting
from assay.core.events import Drafted, Gathered, Task
from assay.core.run import Run
from assay.core.types import Block, Claim, Shape
from assay.models.llm import Role
from assay.models.meter import NoReply

GONE = "What the last answer rests on can no longer be read. Ask the question again."
LONG, SHORT = 12_000, 1_200  # tokens of evidence shown to the writer; more confuses a small model


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
    return draft is not None and not draft.blocks and not draft.said


async def draft_rework(run: Run, context: RunContext, *, fallback: bool = False) -> Drafted:
    """The last answer as the person wants it. A check takes its claims as they are, and so does a rewriting that the model
    does not give; if all that it wrote has failed, the evidence is quoted. That sources differ is never left out."""
    blocks, task = last_blocks(run), run.rephrased.task if run.rephrased else None
    last = run.last_answer
    if last is None or last.whole is None or not blocks:
        return Drafted((), Shape.prose, said=GONE)
    if fallback:
        return Drafted((Block(tuple(Claim("", (each.key,), quote=each.quote) for each in run.evidence)),), Shape.list)
    as_it_was = Drafted(blocks, last.whole.shape, last.whole.conflicts)
    if task is Task.check:
        return as_it_was
    reply = await _write(run, context, blocks)
    if isinstance(reply, NoReply):
        return replace(as_it_was, fallback=(reply.why,))
    written, by = reply
    drafted = drafting.read(written, f"{run.question} {run.asked.question}", run.evidence, by, context.sources(run))
    return replace(drafted, conflicts=drafted.conflicts or last.whole.conflicts) if drafted.blocks else drafted


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
