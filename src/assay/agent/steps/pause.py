"""Pauses the run to ask the person at the checkpoints they chose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from assay.agent.context import RunContext
from assay.agent.steps.route import reading_due
from assay.core.events import (
    ANSWER_NOW,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    Checkpoint,
    Event,
    Paused,
)
from assay.core.run import Run

PAUSES: Mapping[Checkpoint, tuple[str, tuple[str, ...]]] = {
    Checkpoint.searches: ("Three searches were made. Go on, or answer from what there is?", (GO_ON, ANSWER_NOW)),
    Checkpoint.nothing: (
        "Nothing relevant was found. Try other words, or have the gap said?",
        (OTHER_WORDS, ANSWER_NOW),
    ),
    Checkpoint.sources: ("These are the sources. Answer from them, or look for more?", (ANSWER_NOW, MORE_SOURCES)),
}


def pause_due(run: Run) -> Checkpoint | None:
    """The checkpoint to pause at now, if any. Each checkpoint pauses a run at most once."""
    wanted = frozenset(run.asked.checkpoints) - run.pauses
    if run.asked.may_be_reviewed:
        wanted -= {Checkpoint.sources}  # they are the reviewer's to see first
    if run.plan is None:
        return Checkpoint.reading if reading_due(run) else None
    if run.stopped is None:
        if Checkpoint.searches in wanted and len(run.results) >= 3 and not run.round_unjudged:
            return Checkpoint.searches
    elif run.draft is None:
        if Checkpoint.nothing in wanted and not run.evidence:
            return Checkpoint.nothing
        if Checkpoint.sources in wanted and run.evidence:
            return Checkpoint.sources
    elif Checkpoint.nothing in wanted and not run.asked.has_model and not run.draft.blocks:
        return Checkpoint.nothing  # rules find something near to any question: whether it answers is known only now
    return None


async def pause(run: Run, context: RunContext) -> AsyncIterator[Event]:
    at = pause_due(run)
    assert at is not None
    if at is Checkpoint.reading:
        yield Paused(at, "The question can be read in several ways. Which is meant?", (*run.readings, EACH))
    else:
        yield Paused(at, *PAUSES[at])
