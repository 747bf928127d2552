"""The events of a run as one tagged union. Each module here defines the events of one part of the product; their names,
and those of what events are made of, are taken from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from assay.core.events.governance import *
from assay.core.events.question import *
from assay.core.events.synthesis import *

Event = (
    Asked
    | HistorySummarised
    | Rephrased
    | Routed
    | ModelReplied
    | Planned
    | Decided
    | ToolRan
    | Gathered
    | Judged
    | StepAnswered
    | Compacted
    | Stopped
    | Drafted
    | Checked
    | Revised
    | Critiqued
    | Paused
    | Resumed
    | Answered
    | Failed
    | Described
    | Questioned
    | Merged
    | PassagesChosen
    | Covered
    | InsightsDrawn
    | Paired
    | Related
    | SpineWritten
    | Translated
    | AwaitingReview
    | Reviewed
    | Erased
    | Granted
    | AccountChanged
    | SettingChanged
    | FeedbackGiven
    | DocumentEdited
    | DocumentMarked
    | Narrowed
    | Withheld
)

KINDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}
