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
    Held,
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
    Bound,
    Branch,
    Call,
    Checked,
    Checkpoint,
    Compacted,
    Consulted,
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
    Seat,
    Stopped,
    StopReason,
    ToolRan,
    Where,
    Written,
)
from assay.core.events.synthesis import (
    RULES,
    Covered,
    Described,
    Drew,
    Found,
    Looked,
    Merged,
    Paired,
    Questioned,
    Related,
    Spun,
    Translated,
    fell_back,
    makers,
)

Event = (
    Asked
    | Rephrased
    | Routed
    | Consulted
    | Planned
    | Decided
    | ToolRan
    | Gathered
    | Judged
    | Bound
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
    | Looked
    | Covered
    | Drew
    | Paired
    | Related
    | Spun
    | Translated
    | Held
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
    "Bound",
    "Branch",
    "Call",
    "Checked",
    "Checkpoint",
    "Compacted",
    "Consulted",
    "Covered",
    "Critiqued",
    "Decided",
    "Decision",
    "Described",
    "Drafted",
    "Drew",
    "Eagerness",
    "Edit",
    "Erased",
    "Event",
    "Failed",
    "Found",
    "Gathered",
    "Granted",
    "Held",
    "Judged",
    "Looked",
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
    "Seat",
    "Spun",
    "Stakes",
    "StopReason",
    "Stopped",
    "ToolRan",
    "Translated",
    "Where",
    "Withheld",
    "Written",
    "fell_back",
    "makers",
]
