"""The events of a run as one tagged union. Each module here defines the events of one part of the product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from assay.core.events.governance import (
    WORKSPACE,
    AccountChange,
    AccountChanged,
    AwaitingReview,
    Decision,
    DocumentEdited,
    DocumentMarked,
    Edit,
    Erased,
    FeedbackGiven,
    FeedbackKind,
    Granted,
    Narrowed,
    Reviewed,
    SettingChanged,
    Stakes,
    Withheld,
)
from assay.core.events.question import (
    ANSWER_NOW,
    BUDGETS,
    DECIDES,
    DECIDES_SYNTHESIS,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    SEARCH_MORE,
    Answered,
    Asked,
    Branch,
    Call,
    Checked,
    Checkpoint,
    Compacted,
    Critiqued,
    Decided,
    Drafted,
    Eagerness,
    Failed,
    Gathered,
    HistorySummarised,
    Judged,
    Mode,
    ModelReplied,
    Paused,
    Planned,
    RawToolCall,
    Rephrased,
    Resumed,
    Revised,
    RevisionCause,
    RoleModel,
    Route,
    Routed,
    SearchFilters,
    StepAnswered,
    Stopped,
    StopReason,
    Subject,
    Task,
    ToolRan,
)
from assay.core.events.synthesis import (
    RULES,
    Covered,
    Described,
    Fallback,
    Fallbacks,
    Found,
    InsightsDrawn,
    Maker,
    Merged,
    Paired,
    PassagesChosen,
    Questioned,
    Related,
    SpineWritten,
    Translated,
    combine_makers,
    fallbacks,
    stand_in,
)

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
