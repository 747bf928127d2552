"""What happened: the tagged union that a run is made of.

An event carries facts, never clocks; it names who made it (`rules`, or a prompt and a model). A judgement that found nothing
is an event too. Words of documents appear only inside `Passage` and `Quote`, which records write as references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import get_args

from assay.types import Answer, Block, Claim, Conflict, Evidence, Passage, Plan, Scalar, Shape

RULES = "rules"


class Mode(StrEnum):
    quick = "quick"
    balanced = "balanced"
    thorough = "thorough"


class Route(StrEnum):
    direct = "direct"  # no search: nothing to look up
    lookup = "lookup"  # one search
    research = "research"  # the loop


class StopReason(StrEnum):
    sufficient = "sufficient"
    rounds = "rounds"
    searches = "searches"
    nothing_new = "nothing_new"
    repeated = "repeated"
    time = "time"


@dataclass(frozen=True, slots=True)
class Where:
    """What the person limited the search to, in their words; dates are already absolute."""

    bases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    undated: bool = False  # documents without a date are let through, where only the question names dates
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    who: str
    today: str
    mode: Mode = Mode.balanced
    where: Where = field(default_factory=Where)


@dataclass(frozen=True, slots=True)
class Routed:
    """How the question will be dealt with. Dates that the question itself names limit the search."""

    route: Route
    why: str
    since: str | None = None
    until: str | None = None
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    tool: str
    arguments: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Decided:
    """What to do next; no calls means that there is nothing left worth trying, and `why` says so."""

    calls: tuple[Call, ...]
    why: str
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Found:
    """A passage as one call returned it: its place in that result, and its score there."""

    passage: Passage
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class ToolRan:
    call: str
    found: tuple[Found, ...]
    note: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Gathered:
    """Passages that were weighed: what was kept as evidence, and which were not worth keeping (by passage id).

    A later entry with the same key takes the place of the earlier one: a hop may show what a passage is worth.
    """

    evidence: tuple[Evidence, ...]
    dropped: tuple[str, ...] = ()
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Judged:
    """Enough? And if not, what is missing."""

    enough: bool
    missing: tuple[str, ...] = ()
    why: str = ""
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Stopped:
    reason: StopReason
    why: str = ""


@dataclass(frozen=True, slots=True)
class Drafted:
    """What would be said, unchecked. `near` is what came nearest where nothing is good enough to be an answer."""

    blocks: tuple[Block, ...]
    shape: Shape
    conflicts: tuple[Conflict, ...] = ()
    near: tuple[Claim, ...] = ()
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Checked:
    """One claim of the draft, by its place, with its verdict."""

    place: int
    claim: Claim
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """The run could not go on; it can be resumed when the cause is gone."""

    error: str
    detail: str


Event = (
    Asked | Routed | Planned | Decided | ToolRan | Gathered | Judged | Stopped | Drafted | Checked | Answered | Failed
)

KINDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}
