"""Writes the answer from the evidence: by a model, or as extracts; in a conversation also from the last answer and its
evidence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import conversation, documents_of, evidence_documents, missing_parts, render_history
from assay.agent.steps.decide import computes
from assay.agent.steps.read_evidence import may_answer_turn, read_evidence
from assay.agent.steps.route import is_greeting, reply_to_greeting
from assay.agent.steps.writing import write_and_check
from assay.agent.toolbox import collection
from assay.agent.toolbox.reading import read_rows
from assay.answer import draft as drafting
from assay.answer import extracts
from assay.core.events import RULES, Drafted, Event, Gathered, Route, Task
from assay.core.run import Run
from assay.core.types import Block, Claim, Derivation, Shape, Verdict
from assay.language.glossary import describe_measures
from assay.models.llm import Heard, Role, ShownPicture
from assay.models.meter import NoReply
from assay.tables import derive
from assay.tables.lookup import look_up

NO_PICTURES: Mapping[str, ShownPicture] = {}
CONVERSATION = 800  # tokens of it shown for a direct reply
LONG = 12_000  # tokens of evidence shown to the writer


async def draft(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The draft, from the evidence alone; extracts if there is no model or no budget."""
    if run.route is Route.direct:
        yield await _draft_direct(run, context)
        return
    if run.route is Route.rework:
        yield await draft_rework(run, context, fallback=fallback_due(run))
        return
    if not run.asked.has_model:
        yield await draft_by_rule(run, context)
        return
    if fallback_due(run):
        yield extracts.at_most_perhaps(await draft_by_rule(run, context))  # a model has tried and failed
        return
    if not run.evidence:
        yield Drafted((), Shape.prose, missing=(run.question,))
        return
    sources = context.sources(run)
    pictures = await context.pictures(Role.write, run, [(each.key, each.passage) for each in run.evidence])
    figures = {key: each.picture for key, each in pictures.items()}

    def prompt(room: int) -> dict[str, str]:
        return drafting.build_prompt(
            run.question,
            run.evidence,
            sources,
            mark(run),
            room,
            run.readings,
            missing_parts(run),
            objections=run.objections,
            definitions=describe_measures(run.question, context.glossary),
            today=run.asked.today,
            pictures=bool(pictures),
        )

    def read(written: drafting.Writing, by: str) -> Drafted:
        return drafting.read(written, run.question, run.evidence, by, figures=figures)

    async def without_reply(reply: NoReply) -> Drafted:
        return replace(await draft_by_rule(run, context), fallback=(reply.why,))

    if not context.small(Role.check):
        write = lambda heard: _write(run, context, "write", prompt, heard, pictures)  # noqa: E731
        async with aclosing(write_and_check(run, context, write, read, without_reply)) as events:
            async for event in events:
                yield event
        return
    reply = await _write(run, context, "write", prompt, pictures=pictures)
    if isinstance(reply, NoReply):
        yield await without_reply(reply)
        return
    yield drafting.quote_sources(read(*reply), run.evidence)


def fallback_due(run: Run) -> bool:
    """Whether all of a model's claims failed although there is evidence: then the answer falls back to quotations, if
    possible."""
    draft = run.draft
    if draft is None or not run.asked.has_model or draft.by == RULES or not draft.blocks or not run.evidence:
        return False
    return not any(claim.verdict is Verdict.supported for claim in run.checked.values())


async def _draft_direct(run: Run, context: RunContext) -> Drafted:
    """An answer that is not from the documents, labelled as such. Thanks are answered by rule."""
    if is_greeting(run.question):
        return Drafted((), Shape.prose, said=reply_to_greeting(run.question))
    history = conversation(run)
    shown = lambda room: render_history(history, mark(run), min(room // 2, CONVERSATION))  # noqa: E731
    reply = await context.ask(
        Role.write,
        "direct",
        drafting.Direct,
        lambda room: {"question": run.question, "history": f"{shown(room)}\n\n" if history else ""},
        documents=documents_of(history),
        max_tokens=300,
    )
    return Drafted((), Shape.prose) if isinstance(reply, NoReply) else drafting.read_direct(*reply)


async def draft_by_rule(run: Run, context: RunContext) -> Drafted:
    """What the catalogue or a table gives; otherwise extracts."""
    if not run.asked.has_model and (blocks := _computed(run, context)):
        return Drafted(blocks, Shape.sentence)
    read = await read_evidence(run, context)
    drafted = extracts.draft(run.query, read.pieces, calibrated=read.calibrated)
    return drafted if await may_answer_turn(run, context, read) else extracts.as_nearest(drafted)


def _computed(run: Run, context: RunContext) -> tuple[Block, ...]:
    """The answer from the catalogue or from a table, if that is where the search ended."""
    call = computes(run)
    if call is None:
        return ()
    result = run.results[call.id]
    if call.tool == read_rows.name:
        document = context.document(str(call.arguments["document"]))
        found = look_up(run.question, [document] if document else [])
        return derive.table_claims(found, run.evidence, document) if found and document else ()
    asked = collection.parse(run.question)
    ids = {each.passage.id for each in result.found}
    own = [each for each in run.evidence if each.passage.id in ids]
    by_document = {each.passage.doc_id: each for each in own}
    operands = [by_document[each] for each in result.documents if each in by_document]
    if asked is None or not operands:
        return ()
    rule = Derivation(asked.wanted.value)
    left = str(result.left) if result.left else ""
    quotes, keys = [each.quote for each in operands], [each.key for each in operands]
    claim = derive.derive(rule, quotes, keys, context.document, left)
    return (Block((claim,)),)


GONE = "What the last answer rests on can no longer be read. Ask the question again."


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
    reply = await _write(
        run,
        context,
        "rework",
        lambda room: drafting.build_rework_prompt(
            run.asked.question,
            run.question,
            blocks,
            run.evidence,
            context.sources(run),
            mark(run),
            room,
            today=run.asked.today,
        ),
    )
    if isinstance(reply, NoReply):
        return replace(as_it_was, fallback=(reply.why,))
    written, by = reply
    drafted = drafting.read(written, f"{run.question} {run.asked.question}", run.evidence, by)
    return replace(drafted, conflicts=drafted.conflicts or last.whole.conflicts) if drafted.blocks else drafted


async def _write(
    run: Run,
    context: RunContext,
    name: str,
    build_prompt: Callable[[int], Mapping[str, str]],
    heard: Heard | None = None,
    pictures: Mapping[str, ShownPicture] = NO_PICTURES,
) -> tuple[drafting.Writing, str] | NoReply:
    """What a model writes from the evidence."""
    context.read_evidence(run)
    return await context.ask(
        Role.write,
        name,
        drafting.Writing,
        lambda room: build_prompt(min(room, LONG)),
        schema=drafting.schema(
            [each.key for each in run.evidence],
            cells=drafting.has_tables(run.evidence, context.sources(run)),
            figures=[*pictures],
        ),
        documents=evidence_documents(run),
        max_tokens=3000,
        heard=heard,
        pictures=[*pictures.values()],
    )
