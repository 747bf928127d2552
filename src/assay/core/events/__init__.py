"""The events of a run: here those of one that answers a question, in `synthesis` those that only a synthesis has, in
`governance` those of reviews and of the workspace. All are one tagged union.

An event holds facts, never timestamps, and names its maker (`rules`, or a prompt and a model). A judgement with an
empty result is an event too. Document text appears only inside `Passage` and `Quote`, which records store as
references.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
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
    WorkspaceEvent,
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
    SynthesisEvent,
    Translated,
    combine_makers,
    fallbacks,
    stand_in,
)
from assay.core.synthesis import Brief
from assay.core.types import (
    Answer,
    Block,
    Claim,
    Conflict,
    Evidence,
    Exchange,
    LeftOut,
    Picture,
    Plan,
    Scalar,
    Shape,
    Usage,
    omitted_when_empty,
)

# The versions of the decision code: of questions, and of syntheses. Raise one when a change makes recorded runs of its
# kind come out differently: replay then takes the conclusions of older runs as recorded. Runs without a version have
# version 0.
DECIDES, DECIDES_SYNTHESIS = 9, 9


class Mode(StrEnum):
    quick = "quick"
    balanced = "balanced"
    thorough = "thorough"


class Route(StrEnum):
    direct = "direct"  # no search needed
    lookup = "lookup"  # one search
    research = "research"  # the research loop
    one_shot = "one-shot"  # one search, and its best passages go to the writer as they are: plain RAG, as a baseline
    rework = "rework"  # works on the last answer of the conversation: no search


class Eagerness(StrEnum):
    sparing = "sparing"  # one search if that may suffice; asks for clarification before guessing
    normal = "normal"
    eager = "eager"  # always researches when possible; never asks first


class Checkpoint(StrEnum):
    """Where a run may wait for a person."""

    searches = "searches"  # after three searches: continue, or answer now?
    nothing = "nothing"  # nothing relevant found: other terms, or answer and state the gap?
    sources = "sources"  # before answering: confirm the sources
    reading = "reading"  # the question is ambiguous: which reading?


GO_ON, ANSWER_NOW, OTHER_WORDS, MORE_SOURCES, EACH = "go on", "answer now", "other words", "more sources", "each"
SEARCH_MORE = frozenset({OTHER_WORDS, MORE_SOURCES})  # choices that reopen the search


class Subject(StrEnum):
    """What a turn of a conversation is about, if it is no question to the documents."""

    answer = "answer"  # the last answer
    talk = "talk"  # thanks, a greeting, the conversation itself


class Task(StrEnum):
    """What a turn wants done with the last answer."""

    check = "check"  # judge it again
    rewrite = "rewrite"  # anything else: shorter, another language, a table, an explanation
    shorten = "shorten"  # this and those below: of runs before version 7, in which words alone could say them
    numbers = "numbers"
    list = "list"


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
    person = "person"  # the user chose to answer now
    unusable = "unusable"  # the model's replies were unusable
    exhausted = "exhausted"  # everything that matches was examined


BUDGETS = frozenset(
    {StopReason.rounds, StopReason.searches, StopReason.time, StopReason.calls, StopReason.tokens, StopReason.money}
)


class RevisionCause(StrEnum):
    """Why a revision differs from the usual one, which rewrites a claim from its evidence or drops it."""

    recited = "recited"  # other evidence of this run supports it: only the citations change
    review = "review"  # a reviewer edited it
    kept = "kept"  # the writer keeps it, with an argument


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Search restrictions given by the user; dates are already absolute."""

    bases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()  # ids: the documents of a synthesis
    types: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    undated: bool = False  # include documents without a date
    meta: Mapping[str, str] = field(default_factory=dict)
    picked: tuple[str, ...] = omitted_when_empty(())  # ids: what a person picked; no mention of what they say


@dataclass(frozen=True, slots=True)
class RoleModel:
    """A model in its role, with the detected capabilities of its endpoint. Further entries for the same role are
    fallbacks."""

    role: str
    model: str
    tools: bool = False  # native tool calls
    schema: bool = False  # follows a JSON schema
    json: bool = False  # returns some JSON object
    window: int = 8192
    small: bool = False  # gets short prompts, and its verdict alone is never decisive
    images: bool = omitted_when_empty(False)  # takes pictures


@dataclass(frozen=True, slots=True)
class Branch:
    """The origin of a run that continues from another run's events: up to which event, and with which model from
    there."""

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
    route: Route | None = None  # requested by the user: a plain look-up, or the loop
    seats: tuple[RoleModel, ...] = ()  # the models that take part; empty: rules only
    about: Mapping[str, str] = field(
        default_factory=dict
    )  # the available knowledge bases with their owners' descriptions
    brief: Brief | None = None  # set for a synthesis: its documents and options
    thread: str = ""  # the conversation this run is a turn of
    history: tuple[Exchange, ...] = ()  # the previous turns, oldest first
    stakes: Stakes = Stakes.normal
    branch: Branch | None = None  # the run whose first events are reused
    version: int = DECIDES  # of the decision code
    reviewed: bool = omitted_when_empty(False)
    may_be_reviewed: bool = omitted_when_empty(False)  # then nothing a model wrote is shown before delivery
    left_out: LeftOut | None = omitted_when_empty(None)  # noqa: RUF009 by `where`
    recheck: str = omitted_when_empty("")  # the run whose answer newer documents may contradict
    named: str = omitted_when_empty("")  # the model that the person named, in every role

    @property
    def has_model(self) -> bool:
        return bool(self.seats)


@dataclass(frozen=True, slots=True)
class Rephrased:
    """A conversation turn rewritten as a standalone question; unchanged if it already was one, or if no model was there
    to rewrite it: `query` then adds the words of earlier turns that it is searched for with. For a turn that works on the
    last answer, `question` is what that answer answers. A later event replaces an earlier one."""

    question: str
    why: str = ""
    by: str = RULES
    on: Subject | None = None  # None: a question to the documents
    task: Task | None = None  # what is wanted of the last answer
    query: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class HistorySummarised:
    """The oldest turns of a conversation, summed up for prompts. Without words they are shortened instead."""

    turns: int
    upto: str  # the run of the last of them
    words: str = ""
    documents: tuple[str, ...] = ()  # documents whose text those turns contain
    passages: tuple[str, ...] = ()  # ids of the passages they cite
    why: str = ""  # why there are no words
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Routed:
    """How the question will be handled. `every` means that it asks for a complete set; `readings` are its possible
    meanings if there are several. A look-up that does not find everything is routed again, and the later event applies."""

    route: Route
    why: str
    since: str | None = None  # of runs before version 6, in which dates of the question restricted the search
    until: str | None = None
    every: bool = False
    readings: tuple[str, ...] = ()
    by: str = RULES
    query: str = omitted_when_empty("")  # of runs before version 8, in which a look-up had no plan of its own


@dataclass(frozen=True, slots=True)
class RawToolCall:
    """A tool call as the model wrote it: `arguments` should be JSON but may be invalid."""

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ModelReplied:
    """A model's reply. `request` is the digest of the prompt, which the preceding events determine; `documents` are
    those whose text was in the prompt. A recorded reply is never requested again."""

    role: str
    prompt: str
    model: str
    request: str
    text: str
    calls: tuple[RawToolCall, ...] = ()
    finish: str = "stop"
    usage: Usage = field(default_factory=Usage)
    documents: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = omitted_when_empty(())  # that were in the prompt


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    tool: str
    arguments: Mapping[str, Scalar | tuple[str, ...]]

    @property
    def query(self) -> str:
        """What it searches for; empty if it is no search."""
        return str(self.arguments.get("query", ""))


WHOLE = -1  # in place of a claim's index: what the whole draft lacks


@dataclass(frozen=True, slots=True)
class Decided:
    """The next calls; no calls means that nothing is left worth trying, and `why` gives the reason. `seeks` are the
    indexes of claims that a search after the draft should support, or `WHOLE`; `hops` means that names in the findings are
    followed, which does not count as a round; `refused` are repeated calls that were rejected, with the reason."""

    calls: tuple[Call, ...]
    why: str
    by: str = RULES
    seeks: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()
    hops: bool = False
    recalls: bool = False  # reuses evidence of earlier turns; does not count as a round
    stop: StopReason | None = None  # why nothing is left to try, if there are no calls
    fallback: Fallbacks = None

    @property
    def is_round(self) -> bool:
        return not self.seeks and not self.hops and not self.recalls


@dataclass(frozen=True, slots=True)
class ToolRan:
    """The result of a call. `note` helps to decide and is never evidence; `documents` are those it mentions apart
    from the passages; `left` is the number of matches that were not returned; `whole` are documents of which every
    passage was returned by now; `undated` is the number of documents that the call's dates left out for lack of one."""

    call: str
    found: tuple[Found, ...]
    note: str = ""
    error: str = ""
    documents: tuple[str, ...] = ()
    left: int = 0
    whole: tuple[str, ...] = omitted_when_empty(())
    undated: int = omitted_when_empty(0)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Weighed passages: the evidence that was kept, and the passage ids that were rejected.

    A later entry with the same key replaces the earlier one, since a hop may change a passage's value. `skipped`
    passages ranked so low in retrieval that no model was asked; for keys in `inexact` the model's quotation is not
    in the passage, so the passage's best sentence is used instead.
    """

    evidence: tuple[Evidence, ...]
    dropped: tuple[str, ...] = ()
    by: str = RULES
    skipped: tuple[str, ...] = ()
    inexact: tuple[str, ...] = ()
    why: str = ""  # why no model weighed them, if so
    question: str = ""  # the synthesis question they were weighed for
    fallback: Fallbacks = None


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether the evidence suffices and, if not, what is missing, and the searches that the judge proposes for it.
    `surprise` means that the plan no longer fits the findings."""

    enough: bool
    missing: tuple[str, ...] = ()
    why: str = ""
    by: str = RULES
    surprise: bool = False
    fallback: Fallbacks = None
    searches: tuple[str, ...] = omitted_when_empty(())
    read: tuple[str, ...] = omitted_when_empty(())  # documents of a set that are to be read to their end


@dataclass(frozen=True, slots=True)
class StepAnswered:
    """A plan step has its answer: a value contained in the evidence it cites."""

    step: str
    value: str
    cites: tuple[str, ...]
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Compacted:
    """The results of these calls are summarised in prompts from now on; the evidence keeps its keys."""

    calls: tuple[str, ...]
    summary: str
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Stopped:
    reason: StopReason
    why: str = ""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim of a draft that is being written, by its index there: recorded when it is whole and before it is checked. A
    later event for the same index replaces it, and so does the draft."""

    place: int
    claim: Claim
    heading: str = omitted_when_empty("")  # of its block, if it states nothing
    opinion: bool = omitted_when_empty(False)
    side: bool = omitted_when_empty(False)  # it cites one side of a conflict that the writer named


@dataclass(frozen=True, slots=True)
class Drafted:
    """The unchecked draft. `near` is the closest evidence when none is good enough for an answer."""

    blocks: tuple[Block, ...]
    shape: Shape
    conflicts: tuple[Conflict, ...] = ()
    near: tuple[Claim, ...] = ()
    by: str = RULES
    said: str = ""  # an answer that does not come from the documents
    missing: tuple[str, ...] = ()  # what the writer reports as not answered by the evidence
    stray: tuple[str, ...] = ()  # keys the writer cited that match no evidence: removed
    fallback: Fallbacks = None
    probability: float | None = omitted_when_empty(None)


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one claim of the draft, by index."""

    place: int
    claim: Claim
    by: str = RULES


@dataclass(frozen=True, slots=True)
class Revised:
    """An unsupported claim was rewritten or hedged; without a claim it was dropped."""

    place: int
    claim: Claim | None = None
    why: str = ""
    by: str = RULES
    cause: RevisionCause | None = None


@dataclass(frozen=True, slots=True)
class Critiqued:
    """The judgement of the checked draft as an answer. `gap` is what to search for; it reopens the search unless the
    critique is final. `missing` is what the question asks for and the claims do not give; `beside` says that they do not
    answer it at all; `conflicts` are those that the judge sees among the cited passages."""

    complete: bool
    gap: str = ""
    why: str = ""
    by: str = RULES
    missing: tuple[str, ...] = omitted_when_empty(())
    beside: bool = omitted_when_empty(False)
    final: bool = omitted_when_empty(False)
    conflicts: tuple[Conflict, ...] = omitted_when_empty(())


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for the user. Nothing runs meanwhile, and the waiting time counts against no limit."""

    at: Checkpoint
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resumed:
    """The user made a choice (`words` is their text if the choice needs some), or resumed a failed run."""

    choice: str = ""
    words: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    answer: Answer
    seal: str | None = None  # of the approval it is delivered under


@dataclass(frozen=True, slots=True)
class Failed:
    """The run failed; it can be resumed once the cause is fixed."""

    error: str
    detail: str


Research = (
    Asked | HistorySummarised | Rephrased | Routed | ModelReplied | Planned | Decided | ToolRan | Gathered | Judged
)
Writing = StepAnswered | Compacted | Stopped | Claimed | Drafted | Checked | Revised | Critiqued
Ending = Paused | Resumed | AwaitingReview | Reviewed | Answered | Failed | Narrowed | Withheld
Event = Research | Writing | Ending | SynthesisEvent | WorkspaceEvent
KINDS: Mapping[str, type] = {kind.__name__: kind for kind in get_args(Event)}
