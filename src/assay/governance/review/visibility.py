"""Redacts a run whose answer waits for a reviewer, or may have to: the person who asked sees how far it is, and nothing
that a model wrote or that amounts to the draft. Pure."""

from __future__ import annotations

from dataclasses import replace

from assay.core.events import (
    EACH,
    RULES,
    AccountChanged,
    Asked,
    AwaitingReview,
    Checkpoint,
    Decided,
    Decision,
    Event,
    Failed,
    Gathered,
    Granted,
    ModelReplied,
    Narrowed,
    PassagesChosen,
    Paused,
    Rephrased,
    Resumed,
    Reviewed,
    Routed,
    SettingChanged,
    Stopped,
    ToolRan,
    Withheld,
)
from assay.core.events.describe import count_of
from assay.core.run import Run
from assay.core.types import Answer, Outcome

DRAFT = "A reviewer looks at it before you do."
UNVERIFIED = "Unverified"  # such a failure quotes unsupported claims


def redact_event(event: Event) -> Event:
    """The event as the person who asked may see it before delivery. Whatever is not listed here is not shown."""
    match event:
        case Asked() | Resumed() | Narrowed() | Granted() | AccountChanged() | SettingChanged() | Withheld():
            return event
        case Rephrased(by=by) if by == RULES:
            return replace(event, why="")
        case Routed():
            return Routed(event.route, "", event.since, event.until, event.every, by=event.by)
        case ModelReplied():
            return replace(event, text="", calls=())  # what it cost is shown
        case Stopped():
            return replace(event, why="")
        case Paused(at=at):
            return replace(event, options=(EACH,)) if at is Checkpoint.reading else event
        case AwaitingReview():
            return replace(event, answer=Answer("", (), Outcome.abstained))
        case Reviewed(decision=decision):
            return event if decision is Decision.reject else replace(event, note="", edits=())
        case Failed(error=error):
            hidden = replace(event, detail="Nothing is delivered, since not everything in it holds.")
            return hidden if error == UNVERIFIED else event
        case _:
            return Withheld(type(event).__name__, DRAFT, _progress(event))


def _progress(event: Event) -> str:
    """What may be said of an event that is not shown: how much was done."""
    match event:
        case Decided(calls=calls) if calls:
            return "Searching" if len(calls) == 1 else f"Searching, {len(calls)} times at once"
        case ToolRan(found=found) | PassagesChosen(found=found):
            return f"{count_of(len(found), 'passage')} found"
        case Gathered():
            return f"{count_of(len(event.evidence) + len(event.dropped), 'passage')} weighed"
        case _:
            return ""


def redact_run(run: Run, *, watched: bool) -> Run:
    """A run as the person who asked may see it. `watched` is whether its answer may still have to be reviewed."""
    if run.delivered or not (watched or run.gated):
        return run
    return Run(run.id, tuple(map(redact_event, run.events)))


def progress_line(run: Run) -> str:
    """How far a run is, in numbers alone: `Searched 3 times, 12 passages weighed.`"""
    searches = len(run.results) + sum(isinstance(event, PassagesChosen) for event in run.events)
    weighed = {
        passage
        for event in run.events
        if isinstance(event, Gathered)
        for passage in (*event.dropped, *(each.passage.id for each in event.evidence))
    }
    times = "once" if searches == 1 else f"{searches:,} times"
    return f"Searched {times}, {count_of(len(weighed), 'passage')} weighed."
