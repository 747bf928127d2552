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
from assay.core.events import Event
from assay.core.run import Run
from assay.core.synthesis import EXPERT, Pipeline
from assay.synthesis import audience, compare, coverage, describe, narrate, plan, read, search, settle, state

PASSES = 2  # the second pass reads again what the first covered thinly


class Stage(Enum):
    """The stages of a synthesis; the value of each is what it does."""

    DESCRIBE = member(describe.describe)
    OPEN = member(read.open_documents)
    READ = member(read.read)
    SEARCH = member(search.search)
    COVER = member(coverage.cover)
    COMPARE = member(compare.compare)
    PLAN = member(plan.plan)
    NARRATE = member(narrate.narrate)
    EDIT = member(edit)
    CHECK = member(settle.check)
    REVISE = member(settle.revise)
    TRANSLATE = member(audience.translate)
    DELIVER = member(settle.deliver)


async def carry_on(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Continue a synthesis until it is delivered or an endpoint fails. A failed one can be resumed."""
    async for event in loop.run_steps(run, context, next_stage):
        yield event


def next_stage(run: Run) -> Stage | None:
    if run.delivered or run.failed or run.held or run.rejected:
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
    return _telling(run)


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
