"""What things are, in the order in which they flow: file → Document → Passage → Hit → Evidence → Claim → Answer.

Everything here is a frozen value. Nothing here reads, writes or decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

from assay.core.formats import format_named

Scalar = str | int | float | bool


# Before the names of what did not come from a folder: through standard input, or over the network.
STDIN, UPLOAD = "stdin:", "upload:"


def file_name(uri: str) -> str:
    """What people call a document by the place it came from: the name of its file."""
    return PurePath(uri.removeprefix(STDIN).removeprefix(UPLOAD)).name or uri


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and where it stands; `document.text[start:end]` is the heading's own words."""

    title: str
    level: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is read: `text` is the cleaned text, and every offset anywhere in Assay points into it."""

    id: str
    base: str
    uri: str
    digest: str
    title: str
    text: str
    authors: tuple[str, ...] = ()
    date: str | None = None  # ISO 8601, as precise as the document is: 2024, 2024-05 or 2024-05-17
    abstract: tuple[int, int] | None = None  # a span of `text`
    sections: tuple[Section, ...] = ()
    pages: tuple[int, ...] = (0,)  # where each page begins in `text`
    kind: str = "text"  # pdf, html, docx, …
    language: str | None = None
    meta: Mapping[str, str] = field(default_factory=dict)

    def page_at(self, offset: int) -> int | None:
        """The page, counted from 1, on which a character stands; none where the format has no pages."""
        return bisect_right(self.pages, offset) if len(self.pages) > 1 or format_named(self.kind).paged else None

    def heading_at(self, offset: int) -> str:
        """The headings above a character, outermost first: `Methods › Sampling`."""
        path: list[Section] = []
        for section in self.sections:
            if section.start > offset:
                break
            path = [above for above in path if above.level < section.level] + [section]
        return " › ".join(section.title for section in path)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document: `document.text[start:end] == text`."""

    id: str
    doc_id: str
    text: str
    start: int
    end: int
    heading: str = ""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What the index holds. Every filterable thing is in `fields`; `label` names the access set."""

    passage: Passage
    vector: np.ndarray
    lead: str  # title and headings: searched with the passage, never part of it
    fields: Mapping[str, Scalar]  # base, doc, source, title, date, type, language, label


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """A passage that a search found. People see `rank`; `scores` are for fusing."""

    passage: Passage
    vector: np.ndarray
    scores: Mapping[str, float]
    rank: int = 0
    title: str = ""
    fields: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quote:
    """Words exactly as they stand: `document.text[start:end] == text`."""

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotation that bears on a question: `quote` lies inside `passage`; one entry per document span."""

    key: str
    passage: Passage
    quote: Quote
    score: float  # 0–10
    question: str
    note: str = ""
    flagged: bool = False  # the passage reads like an instruction to a model


class Verdict(StrEnum):
    supported = "supported"
    partial = "partial"
    unsupported = "unsupported"
    contradicted = "contradicted"
    uncited = "uncited"


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an answer. `quote` is set when the statement is nothing but a quotation; then `text` is empty."""

    text: str
    cites: tuple[str, ...]
    verdict: Verdict | None = None
    why: str = ""
    quote: Quote | None = None
    edited: str | None = None  # who wrote it anew in review

    @property
    def words(self) -> str:
        return self.quote.text if self.quote else self.text


class Outcome(StrEnum):
    answered = "answered"
    partial = "partial"
    abstained = "abstained"
    direct = "direct"


class Shape(StrEnum):
    sentence = "sentence"
    list = "list"
    table = "table"
    prose = "prose"


@dataclass(frozen=True, slots=True)
class Block:
    """Claims that belong together, under a heading that carries no fact of its own. An opinion is labelled as one."""

    claims: tuple[Claim, ...]
    heading: str = ""
    opinion: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """One thing that was tried: the words, how many passages came back, how many were worth keeping."""

    query: str
    found: int
    kept: int


@dataclass(frozen=True, slots=True)
class Examined:
    """How far a question about a whole set was followed: what was looked at, and how much that matches was not."""

    documents: int
    passages: int
    left: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two pieces of evidence that cannot both be right, by key, and what they disagree about."""

    left: str
    right: str
    about: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What is delivered. Every cite resolves to evidence of this run; `searched` and `stopped` say what was tried,
    `near` is what came nearest when that is no answer, `unread` names the files that could not be looked into. `said` is
    there when nothing was looked up: it is not from the documents, and wherever it is shown it says so."""

    question: str
    blocks: tuple[Block, ...]
    outcome: Outcome
    shape: Shape = Shape.prose
    conflicts: tuple[Conflict, ...] = ()
    gaps: tuple[str, ...] = ()
    searched: tuple[Searched, ...] = ()
    stopped: str = ""
    near: tuple[Claim, ...] = ()
    unread: tuple[str, ...] = ()
    since: str | None = None  # what the search was limited to, by the person or by the question
    until: str | None = None
    said: str = ""
    readings: tuple[str, ...] = ()  # what an ambiguous question may mean, each answered for
    examined: Examined | None = None
    usage: Usage = field(default_factory=lambda: Usage())

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for block in self.blocks for claim in block.claims)

    @property
    def cited_keys(self) -> frozenset[str]:
        return frozenset(key for claim in (*self.claims, *self.near) for key in claim.cites)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier turn of a conversation, in short: what was asked, what was said to it, and where that stands."""

    run: str
    question: str
    answer: str
    documents: tuple[str, ...] = ()  # whose words the answer holds
    passages: tuple[str, ...] = ()  # ids of those it cites, which may be brought up again


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One sub-question. `needs` are steps whose findings it uses; `binds` names what it is to find; `query` is what to search
    for. Question and query may hold `{s1}`: what step s1 found stands there once it is known."""

    id: str
    question: str
    needs: tuple[str, ...] = ()
    binds: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps that form a DAG; a step's question may use what earlier steps bound."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent. Usage adds."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.money + other.money,
            self.seconds + other.seconds,
        )
