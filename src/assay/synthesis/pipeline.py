"""The loop of a synthesis: choose the next stage from the events so far (pure), then run it; each event is stored
first.

Summary: describe, question, merge, search, weigh, cover, narrate, check, translate, deliver. A full synthesis adds
insights, pairs, relations and the spine before the narrative.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum, auto

from assay.agent import loop
from assay.agent.context import RunContext
from assay.agent.steps.check import check
from assay.core.account import EXPERT, Pipeline
from assay.core.events import Event
from assay.core.run import Run
from assay.synthesis import state
from assay.synthesis.stages import (
    answers,
    audience,
    coverage,
    describe,
    insights,
    narrative,
    questions,
    relations,
    spine,
)

PASSES = 2  # the second pass asks about documents that the first covered thinly


class Stage(Enum):
    DESCRIBE = auto()
    QUESTION = auto()
    MERGE = auto()
    SEARCH = auto()
    WEIGH = auto()
    COVER = auto()
    DRAW = auto()
    PAIR = auto()
    RELATE = auto()
    WRITE_SPINE = auto()
    NARRATE = auto()
    CHECK = auto()
    REVISE = auto()
    TRANSLATE = auto()
    DELIVER = auto()


Doing = Callable[[Run, RunContext], AsyncIterator[Event]]
STAGES: Mapping[Stage, Doing] = {
    Stage.DESCRIBE: describe.describe,
    Stage.QUESTION: questions.question,
    Stage.MERGE: questions.merge,
    Stage.SEARCH: answers.search,
    Stage.WEIGH: answers.weigh,
    Stage.COVER: coverage.cover,
    Stage.DRAW: insights.draw,
    Stage.PAIR: relations.pair,
    Stage.RELATE: relations.relate,
    Stage.WRITE_SPINE: spine.write_spine,
    Stage.NARRATE: narrative.narrate,
    Stage.CHECK: check,
    Stage.REVISE: narrative.revise,
    Stage.TRANSLATE: audience.translate,
    Stage.DELIVER: narrative.deliver,
}


async def carry_on(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Continue a synthesis until it is delivered or an endpoint fails. A failed one can be resumed."""
    async for event in loop.run_steps(run, context, next_stage, STAGES):
        yield event


def next_stage(run: Run) -> Stage | None:
    if run.delivered or run.failed or run.held or run.rejected:
        return None
    if len(state.portraits(run)) < len(state.brief(run).documents):
        return Stage.DESCRIBE
    if (asking := _asking(run)) is not None:
        return asking
    if state.brief(run).pipeline is Pipeline.synthesis and (relating := _relating(run)) is not None:
        return relating
    return _telling(run)


def _asking(run: Run) -> Stage | None:
    """The next stage from questions to evidence: once for all documents, once more for thinly covered ones."""
    done = state.coverage_passes(run)
    if len(done) == PASSES or (done and not done[-1].thin):
        return None
    pass_ = len(done) + 1
    if questions.documents_without_questions(run, pass_):
        return Stage.QUESTION
    if len(state.merges(run)) < pass_:
        return Stage.MERGE
    asked = {question.id for question in state.questions(run)}
    if asked - state.chosen_passages(run).keys():
        return Stage.SEARCH
    return Stage.WEIGH if asked - state.gathered_evidence(run).keys() else Stage.COVER


def _relating(run: Run) -> Stage | None:
    if insights.questions_without_insights(run):
        return Stage.DRAW
    if state.pairing(run) is None:
        return Stage.PAIR
    if relations.open_blocks(run):
        return Stage.RELATE
    return Stage.WRITE_SPINE if state.spine(run) is None else None


def _telling(run: Run) -> Stage:
    if run.draft is None:
        return Stage.NARRATE
    if run.unsupported and loop.last_was_revision(run):
        return Stage.REVISE  # all claims are revised before any is checked again
    if run.unchecked:
        return Stage.CHECK
    if run.unsupported:
        return Stage.REVISE
    wanted = set(state.brief(run).audiences) - {EXPERT}
    return Stage.TRANSLATE if wanted - state.translations(run).keys() else Stage.DELIVER
