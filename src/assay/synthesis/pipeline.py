"""The loop of a synthesis: choose the next stage from the events so far (pure), then run it; each event is stored
first.

Describe, open, read, search (what is too long to be read whole), cover, compare; a plan, if a capable model makes a
synthesis; then narrate, check, revise, translate, deliver.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum, member

from assay.agent import loop
from assay.agent.context import RunContext
from assay.agent.steps.check import edit
from assay.core.events import Event, Stopped, StopReason
from assay.core.run import Run
from assay.core.synthesis import EXPERT, Pipeline
from assay.synthesis import audience, compare, coverage, describe, narrate, plan, read, search, settle, state

PASSES = 2  # the second pass reads again what the first covered thinly


async def stop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    yield Stopped(StopReason.time, "the time allowed for this synthesis was nearly used up")


class Stage(Enum):
    """The stages of a synthesis; the value of each is what it does."""

    DESCRIBE = member(describe.describe)
    OPEN = member(read.open_documents)
    READ = member(read.read)
    SEARCH = member(search.search)
    COVER = member(coverage.cover)
    COMPARE = member(compare.compare)
    PLAN = member(plan.plan)
    STOP = member(stop)
    NARRATE = member(narrate.narrate)
    EDIT = member(edit)
    CHECK = member(settle.check)
    REVISE = member(settle.revise)
    TRANSLATE = member(audience.translate)
    DELIVER = member(settle.deliver)


async def carry_on(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Continue a synthesis until it is delivered or an endpoint fails. A failed one can be resumed. Where its time is nearly
    used up, it tells what it has read."""

    def late(now: Run) -> bool:
        return context.limits.late and _gathering(now) is not None

    def after(now: Run) -> Stage | None:
        return Stage.STOP if late(now) else next_stage(now)

    async for event in loop.run_steps(run, context, after, late):
        yield event


def next_stage(run: Run) -> Stage | None:
    if run.delivered or run.failed or run.held or run.rejected:
        return None
    return _gathering(run) or _telling(run)


def _gathering(run: Run) -> Stage | None:
    """The next stage up to the plan; None once there is a text, or the time was used up."""
    if run.draft is not None or run.stopped is not None:
        return None
    if len(state.portraits(run)) < len(state.brief(run).documents):
        return Stage.DESCRIBE
    if (reading := _reading(run)) is not None:
        return reading
    if state.pairing(run) is None:
        return Stage.COMPARE
    deep = state.brief(run).pipeline is Pipeline.synthesis
    if deep and state.is_capable(run) and state.spine(run) is None:
        return Stage.PLAN
    return None


def _reading(run: Run) -> Stage | None:
    """The next stage from documents to points: once for all documents, once more for thinly covered ones."""
    done = state.coverage_passes(run)
    if len(done) == PASSES or (done and not done[-1].thin):
        return None
    if read.unopened(run):
        return Stage.OPEN
    if read.unread(run):
        return Stage.READ
    return Stage.SEARCH if not done and search.open_questions(run) else Stage.COVER


def _telling(run: Run) -> Stage:
    if run.draft is None:
        return Stage.NARRATE
    if run.edits_due:
        return Stage.EDIT
    if run.unsupported and loop.last_was_revision(run):
        return Stage.REVISE  # all claims are revised before any is checked again
    if run.unchecked:
        return Stage.CHECK
    if run.unsupported:
        return Stage.REVISE
    wanted = set(state.brief(run).audiences) - {EXPERT}
    return Stage.TRANSLATE if wanted - state.translations(run).keys() else Stage.DELIVER
