"""Rewrites failed claims from their evidence, all in one request; hedges them, or drops them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext, mark
from assay.agent.prompt_window import evidence_documents
from assay.answer import revise as revising
from assay.core.events import Event, Failed, ModelReplied, Resumed, Revised, RevisionCause, Task
from assay.core.run import Run
from assay.models.llm import Role
from assay.models.meter import NoReply

REVISED = 24  # claims that a model is asked to put right; a draft with more failures is not worth it


async def revise(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Put failed claims right: by their writer, or without one as quotations. Each is then checked one last
    time."""
    sources = context.sources(run)
    if run.rephrased and run.rephrased.task is Task.check:
        for place, claim in run.unsupported:
            yield Revised(place, None, claim.why)  # it was asked whether it holds
        return
    asks = run.asked.has_model and not context.small(Role.write)
    due = dict(run.unsupported)
    failing = _before_revision(run).unsupported
    revisable = [(place, claim) for place, claim in failing if asks and claim.quote is None][:REVISED]
    for place, claim in due.items():
        if (place, claim) not in revisable:
            yield revising.quote_instead(place, claim, run)
    if not revisable:
        return
    failed = [claim for _, claim in revisable]
    evidence = revising.relevant_evidence(failed, run.evidence)
    reply = await context.ask(
        Role.write,
        "revise",
        revising.Revisions,
        lambda room: revising.build_prompt(run.question, failed, evidence, sources, mark(run), room),
        schema=revising.schema(len(failed), [each.key for each in evidence]),
        documents=evidence_documents(run),
        max_tokens=200 + 200 * len(failed),
    )
    if isinstance(reply, NoReply):
        revised = [revising.quote_instead(place, claim, run) for place, claim in revisable]
    else:
        revised = revising.read(reply[0], revisable, run.evidence, reply[1])
    for each in revised:
        if each.place in due:
            yield each


def _before_revision(run: Run) -> Run:
    """The run as it was before the first of these claims was revised. After a resume, the request is the same."""
    events = run.events
    while isinstance(last := events[-1], ModelReplied | Failed | Resumed | Revised):
        if isinstance(last, Revised) and last.cause is RevisionCause.recited:
            break
        events = events[:-1]
    return Run(run.id, events)
