"""What happened: the tagged union that a run is made of.

An event carries facts, never clocks; it names who made it (`rules`, or a prompt and a model). A judgement that found nothing
is an event too. Words of documents appear only inside `Passage` and `Quote`, which records write as references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.account import Brief
from assay.core.events.governance import Stakes
from assay.core.events.maker import RULES, Fallbacks
from assay.core.events.synthesis import Found
from assay.core.types import Answer, Block, Claim, Conflict, Evidence, Exchange, Plan, Scalar, Shape, Usage

# The version of the code that decides what a run does. A change after which recorded runs come out differently raises it:
# replay takes the conclusions of older runs as recorded. Runs that name no version are of version 0.
DECIDES = 1


class Mode(StrEnum):
    quick = "quick"
    balanced = "balanced"
    thorough = "thorough"


class Route(StrEnum):
    direct = "direct"  # no search: nothing to look up
    lookup = "lookup"  # one search
    research = "research"  # the loop


class Eagerness(StrEnum):
    sparing = "sparing"  # one search where one may do; asks what is meant before it guesses
    normal = "normal"
    eager = "eager"  # researches whatever can be researched; never asks first


class Checkpoint(StrEnum):
    """Where a run may wait for a person."""

    searches = "searches"  # after three searches: go on, or answer now?
    nothing = "nothing"  # nothing relevant was found: other terms, or answer with the gap said?
    sources = "sources"  # before answering: these are the sources
    reading = "reading"  # the question has several readings: which one?


GO_ON, ANSWER_NOW, OTHER_WORDS, MORE_SOURCES, EACH = "go on", "answer now", "other words", "more sources", "each"
SEARCH_MORE = frozenset({OTHER_WORDS, MORE_SOURCES})  # choices that open the search again


class StopReason(StrEnum):
    sufficient = "sufficient"
    rounds = "rounds"
    searches = "searches"
    nothing_new = "nothing_new"
    repeated = "repeated"
    time = "time"
    calls = "calls"
    tokens = "tokens"
    money = "money"
    person = "person"  # somebody said: answer now
    unusable = "unusable"  # the model's replies could not be used
    exhausted = "exhausted"  # everything that matches was looked at


BUDGETS = frozenset(
    {StopReason.rounds, StopReason.searches, StopReason.time, StopReason.calls, StopReason.tokens, StopReason.money}
)


class RevisionCause(StrEnum):
    """What makes a revision other than the usual one, which writes a claim anew from its evidence, or drops it."""

    recited = "recited"  # other evidence of this run says it: only the citations change
    review = "review"  # a reviewer edited it


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """What the person limited the search to, in their words; dates are already absolute."""

    bases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()  # by id: those of a synthesis
    types: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    undated: bool = False  # documents without a date are let through, where only the question names dates
    meta: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoleModel:
    """A model in its role, and what its endpoint was found to be able to do. A role's further seats are its fallbacks."""

    role: str
    model: str
    tools: bool = False  # native tool calls
    schema: bool = False  # keeps to a JSON schema
    json: bool = False  # gives some JSON object
    window: int = 8192
    small: bool = False  # is shown little at a time, and its word alone settles nothing


@dataclass(frozen=True, slots=True)
class Branch:
    """Where a run was begun that goes on from the events of another: up to which of them, and with which model from there."""

    run: str
    at: int
    model: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    who: str
    today: str
    mode: Mode = Mode.balanced
    where: SearchFilters = field(default_factory=SearchFilters)
    eagerness: Eagerness = Eagerness.normal
    checkpoints: tuple[Checkpoint, ...] = ()
    route: Route | None = None  # asked for by the person: a plain look-up, or the loop
    seats: tuple[RoleModel, ...] = ()  # the models that take part; none: everything goes by rule
    about: Mapping[str, str] = field(
        default_factory=dict
    )  # the knowledge bases there are, as their owners describe them
    brief: Brief | None = None  # a synthesis of many documents, and which
    thread: str = ""  # the conversation that it is a turn of
    history: tuple[Exchange, ...] = ()  # the turns before it, oldest first
    stakes: Stakes = Stakes.normal
    branch: Branch | None = None  # the run that it takes its first events from
    version: int = DECIDES  # of the code that decides

    @property
    def has_model(self) -> bool:
        return bool(self.seats)


@dataclass(frozen=True, slots=True)
class Rephrased:
    """A turn of a conversation as a question that stands alone; the same words, where they did so already."""

    question: str
    why: str = ""
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Routed:
    """How the question will be dealt with. Dates that the question itself names limit the search; `every` says that it asks
    for a whole set; `readings` are what it may mean, where that is more than one thing. A look-up that finds nothing is
    routed again, and the later event holds."""

    route: Route
    why: str
    since: str | None = None
    until: str | None = None
    every: bool = False
    readings: tuple[str, ...] = ()
    by: str = RULES


@dataclass(frozen=True, slots=True)
class RawToolCall:
    """A tool call as a model wrote it: `arguments` is JSON, or should be."""

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model was asked, and this came back. `request` is the digest of what it was shown, which the events before this one
    determine; `documents` are those whose words were in it. A reply that is recorded is never requested again."""

    role: str
    prompt: str
    model: str
    request: str
    text: str
    calls: tuple[RawToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    documents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    tool: str
    arguments: Mapping[str, Scalar | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Decided:
    """What to do next; no calls means that there is nothing left worth trying, and `why` says so. `seeks` are the places of
    claims that a search after the draft is to support; `hops` says that names in what was found are followed, which is no
    round of its own; `refused` are calls that were not made again, and why."""

    calls: tuple[Call, ...]
    why: str
    by: str = RULES
    seeks: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()
    hops: bool = False
    recalls: bool = False  # evidence of earlier turns is brought up: no round either
    stop: StopReason | None = None  # why there is nothing left to try, where there are no calls
    fallback: Fallbacks = None

    @property
    def is_round(self) -> bool:
        return not self.seeks and not self.hops and not self.recalls


@dataclass(frozen=True, slots=True)
class ToolRan:
    """What a call brought. `note` helps to decide and is never evidence; `documents` are those it speaks of beside the
    passages; `left` counts what matched and was not returned."""

    call: str
    found: tuple[Found, ...]
    note: str = ""
    error: str = ""
    documents: tuple[str, ...] = ()
    left: int = 0


@dataclass(frozen=True, slots=True)
class Gathered:
    """Passages that were weighed: what was kept as evidence, and which were not worth keeping (by passage id).

    A later entry with the same key takes the place of the earlier one: a hop may show what a passage is worth. `skipped`
    were so far behind in retrieval that no model was asked about them; of the keys in `inexact` the model's quotation is
    not in the passage, and the passage's best sentence stands in.
    """

    evidence: tuple[Evidence, ...]
    dropped: tuple[str, ...] = ()
    by: str = RULES
    skipped: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    why: str = ""  # what kept a model from weighing them, where something did
    question: str = ""  # which of a synthesis's questions they were weighed for
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Enough? And if not, what is missing. `surprise` says that the plan no longer fits what was found."""

    enough: bool
    missing: tuple[str, ...] = ()
    why: str = ""
    by: str = RULES
    surprise: bool = False
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class StepAnswered:
    """A step of the plan has its answer: a value that stands in the evidence it cites."""

    step: str
    value: str
    cites: tuple[str, ...]
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Compacted:
    """The results of these calls are told in short from now on; the evidence keeps its keys."""

    calls: tuple[str, ...]
    summary: str
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
    said: str = ""  # an answer that is not from the documents
    missing: tuple[str, ...] = ()  # what the writer says the evidence does not answer
    stray: tuple[str, ...] = ()  # keys that the writer cited and that no evidence has: removed
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Checked:
    """One claim of the draft, by its place, with its verdict."""

    place: int
    claim: Claim
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Revised:
    """A claim that did not hold is written anew, or hedged; without a claim it is dropped."""

    place: int
    claim: Claim | None = None
    why: str = ""
    by: str = RULES
    cause: RevisionCause | None = None


@dataclass(frozen=True, slots=True)
class Critiqued:
    """The checked draft as a whole: complete, or with a gap. The first gap reopens the search; there is no second time."""

    complete: bool
    gap: str = ""
    why: str = ""
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for a person. Nothing runs meanwhile, and waiting counts against no limit."""

    at: Checkpoint
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person chose (`words` are their own, where the choice asks for some), or had a run carried on that had failed."""

    choice: str = ""
    words: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Answer
    seal: str | None = None  # of the approval that it is delivered under


@dataclass(frozen=True, slots=True)
class Failed:
    """The run could not go on; it can be resumed when the cause is gone."""

    error: str
    detail: str
