"""The events that a run is made of, as one tagged union. Each file here holds the events of one part of the product."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from assay.core.events.governance import (
    WORKSPACE,
    Decision,
    Edit,
    Erased,
    Granted,
    AwaitingReview,
    Narrowed,
    Reviewed,
    Stakes,
    Withheld,
)
from assay.core.events.question import (
    ANSWER_NOW,
    BUDGETS,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    SEARCH_MORE,
    Answered,
    Asked,
    StepAnswered,
    Branch,
    Call,
    Checked,
    Checkpoint,
    Compacted,
    ModelReplied,
    Critiqued,
    Decided,
    Drafted,
    Eagerness,
    Failed,
    Gathered,
    Judged,
    Mode,
    Paused,
    Planned,
    Rephrased,
    Resumed,
    Revised,
    Route,
    Routed,
    RoleModel,
    Stopped,
    StopReason,
    ToolRan,
    SearchFilters,
    RawToolCall,
)
from assay.core.events.synthesis import (
    RULES,
    Covered,
    Described,
    InsightsDrawn,
    Found,
    PassagesChosen,
    Merged,
    Paired,
    Questioned,
    Related,
    SpineWritten,
    Translated,
    fell_back,
    makers,
)

Event = (
    Asked
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
    | Narrowed
    | Withheld
)

KINDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}

__all__ = [
    "ANSWER_NOW",
    "BUDGETS",
    "EACH",
    "GO_ON",
    "KINDS",
    "MORE_SOURCES",
    "OTHER_WORDS",
    "RULES",
    "SEARCH_MORE",
    "WORKSPACE",
    "Answered",
    "Asked",
    "StepAnswered",
    "Branch",
    "Call",
    "Checked",
    "Checkpoint",
    "Compacted",
    "ModelReplied",
    "Covered",
    "Critiqued",
    "Decided",
    "Decision",
    "Described",
    "Drafted",
    "InsightsDrawn",
    "Eagerness",
    "Edit",
    "Erased",
    "Event",
    "Failed",
    "Found",
    "Gathered",
    "Granted",
    "AwaitingReview",
    "Judged",
    "PassagesChosen",
    "Merged",
    "Mode",
    "Narrowed",
    "Paired",
    "Paused",
    "Planned",
    "Questioned",
    "Related",
    "Rephrased",
    "Resumed",
    "Reviewed",
    "Revised",
    "Route",
    "Routed",
    "RoleModel",
    "SpineWritten",
    "Stakes",
    "StopReason",
    "Stopped",
    "ToolRan",
    "Translated",
    "SearchFilters",
    "Withheld",
    "RawToolCall",
    "fell_back",
    "makers",
]
