"""What the services of a workspace take and return."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Literal

from assay.core.errors import UserError
from assay.core.events import Checkpoint, Eagerness, Event, Mode, Route, SearchFilters, Stakes
from assay.core.run import Run
from assay.core.synthesis import EXPERT, Approach, Pipeline
from assay.core.types import Exchange

if TYPE_CHECKING:
    from assay.agent.tool import Tool
    from assay.answer.weigh import Assessor
    from assay.core.events import Reviewed
    from assay.core.types import Answer, Basis, Claim, Evidence
    from assay.ingest.readiness import Readiness
    from assay.store.documents import Entry
    from assay.store.erasure import Backup
    from assay.store.runs.feedback import FeedbackEntry
    from assay.store.runs.reviews import Review

Steps = AsyncIterator[tuple[Run, Event]]  # each event, after it was recorded, with the run up to it
DEFAULT_BASE = "default"
MAX_QUESTION = 4_000  # characters; longer text belongs in a knowledge base
MAX_REVIEW_TEXT = 4000  # characters of a claim that a reviewer writes, and of a note
Kind = Literal["switch", "whole", "number", "choice", "several", "words"]


def check_length(question: str) -> None:
    """Refuse a question or search that is a document: what it takes grows with its length, at everybody's expense."""
    if len(question) > MAX_QUESTION:
        raise UserError(
            f"The question has {len(question):,} characters, and {MAX_QUESTION:,} is the most. Shorten it, or add the text "
            "as a document and ask about that."
        )


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What a person may choose for one question."""

    mode: Mode = Mode.balanced
    where: SearchFilters = field(default_factory=SearchFilters)
    today: str | None = None
    eagerness: Eagerness | None = None  # None: as the settings say
    checkpoints: Sequence[Checkpoint] | None = None  # None: as the settings say
    route: Route | None = None  # lookup or research; None lets the model decide
    model: bool = True  # False: by rule, whatever the settings say
    named: str = ""  # one of the connected models, in every role; empty: as the settings say
    tools: Sequence[Tool] = ()  # the user's own read-only tools
    assess: Assessor | None = None  # replaces the assessment of evidence
    thread: str = ""  # the conversation it belongs to
    history: tuple[Exchange, ...] = ()  # the earlier turns of that conversation
    stakes: Stakes = Stakes.normal  # high: a reviewer must approve the answer


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
    """What a person may choose for one synthesis."""

    pipeline: Pipeline = Pipeline.synthesis
    focus: str = ""
    questions: int = 3
    audiences: tuple[str, ...] = (EXPERT,)
    approach: Approach = Approach.search
    pool: int = 100
    top: int = 3
    reranker: str = "late"
    compare: tuple[str, ...] = ()
    model: bool = True  # False: by rule, whatever the settings say
    today: str | None = None
    stakes: Stakes = Stakes.normal  # high: a reviewer must approve the account


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read a base, a document or what fits a pattern of locations. `own` is whether it has its own list; otherwise the
    list of its base applies, or of the pattern that it fits. The owner is always on the list."""

    what: str  # base, document, pattern
    id: str
    name: str
    owner: str
    own: bool
    readers: tuple[str, ...]  # user:… and group:…, the owner first
    mine: bool
    patterns: tuple[str, ...] = ()  # of a base: those that are restricted; of a document: that whose list applies
    accepted: tuple[str, ...] = ()  # of a base: those of its readers who accepted it
    held: str = ""  # why its list is provisional, until its owner decides


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What was erased: document ids, the number of records, files with older states. `backups` lists copies elsewhere that
    still hold the data; `whole` is False if some of it could not be erased yet."""

    documents: tuple[str, ...] = ()
    records: int = 0
    files: tuple[str, ...] = ()
    backups: tuple[Backup, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry of the review queue."""

    review: Review
    question: str
    may_decide: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class DraftedClaim:
    """A claim of a draft under review. `told` is whether the answer contains it, `flagged` whether it cites only passages
    that look like instructions to a model, `by` who gave the verdict."""

    place: int
    claim: Claim
    delivered: bool
    flagged: bool
    editable: bool
    basis: Basis
    by: str


@dataclass(frozen=True, slots=True)
class ReviewSheet:
    """An answer with everything a reviewer needs to decide on it, as far as they may see it."""

    line: ReviewItem
    answer: Answer
    claims: tuple[DraftedClaim, ...]
    evidence: tuple[Evidence, ...]  # only from documents that the reviewer may read
    history: tuple[Reviewed, ...]  # earlier decisions
    open: bool = True  # False: the draft is hidden, because the reviewer asked the question

    @property
    def seal(self) -> str:
        return self.line.review.seal


@dataclass(frozen=True, slots=True)
class FeedbackItem:
    """Feedback with the question and the statement that it is about, where the reader may see them."""

    entry: FeedbackEntry
    question: str = ""
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question, and the document that answers it."""

    question: str
    document: str
    title: str


@dataclass(frozen=True, slots=True)
class Synced:
    """What one look at a place came to. `report` is None if there was nothing to do; `again`: seconds after which something
    that waits now is due."""

    report: Readiness | None
    removed: list[Entry]
    files: int
    again: float = inf


@dataclass(frozen=True, slots=True)
class Recipient:
    """A host or provider that text would be sent to, what that would be, and whether somebody agreed to it."""

    host: str
    receives: tuple[str, ...]
    agreed: bool


@dataclass(frozen=True, slots=True)
class ModelConnection:
    """The connection as it is, or as it would be. `fixed` are environment variables that nothing here can change."""

    address: str
    model: str
    has_key: bool
    recipients: tuple[Recipient, ...]
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProposedModel:
    """An endpoint that an administrator named. An empty key keeps the present one if the address stays the same."""

    address: str
    model: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """One setting, and what it can be. `fixed` says why it cannot be changed here."""

    name: str
    label: str
    about: str
    kind: Kind
    value: str | int | float | bool
    default: str | int | float | bool
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    fixed: str = ""


@dataclass(frozen=True, slots=True)
class SettingGroup:
    title: str
    settings: tuple[ShownSetting, ...]
