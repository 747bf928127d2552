"""Core data types, in pipeline order: file → Document → Passage → Hit → Evidence → Claim → Answer.

All are frozen values without I/O or decisions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

from assay.core.formats import format_named
from assay.core.printable import printable_name

Scalar = str | int | float | bool
BETWEEN = " › "  # between headings, and between a group and a row label


OMIT = "omit when empty"  # in a field's metadata: its empty value is not written, so that older data has the same form


def omitted_when_empty(default: Any) -> Any:
    """A field that was added later: its empty value is left out of the JSON form."""
    return field(default=default, metadata={OMIT: True})


# Prefixes of names that do not come from a folder: standard input, or the network.
STDIN, UPLOAD = "stdin:", "upload:"
ATTACHMENT = "Attachment: "  # how the heading of a file inside a message begins


def names_inside(kind: str, titles: Iterable[str]) -> tuple[str, ...]:
    """The names of the files inside a document, by the titles of its sections."""
    own = (title.removeprefix(ATTACHMENT) for title in titles if title.startswith(ATTACHMENT))
    return tuple(own) if kind == "email" else ()


def file_name(uri: str) -> str:
    """The display name of a document: its file name, on one line."""
    return printable_name(PurePath(uri.removeprefix(STDIN).removeprefix(UPLOAD)).name or uri)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its position; `document.text[start:end]` is the heading's text."""

    title: str
    level: int
    start: int
    end: int
    units: str = omitted_when_empty("")  # declared for amounts in its text, here or above: "Dollars in millions"


@dataclass(frozen=True, slots=True)
class TableCell:
    """A cell of a table; `document.text[start:end]` is where it is written. An empty cell has no text and no extent."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row: one cell for each column. `label` is the first cell with the group above it: `Assets › Cash`."""

    label: str
    start: int
    end: int
    cells: tuple[TableCell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `document.text[start:end]` is its header and its rows. Header rows are merged into one name per column.

    `layout` holds the offsets of rows and cells in a compact form, relative to `start`; `core/tables.py` reads it.
    """

    start: int
    end: int
    columns: tuple[str, ...]  # the first is the column of the row labels; its name is often empty
    caption: str = ""
    units: str = ""  # as written: "in millions, except per share"
    layout: str = ""
    period: str = omitted_when_empty("")  # as written, where it is in no column name: "January–June 2023"
    scanned: bool = omitted_when_empty(False)  # OCR read cells of it: what they say is read, not proven


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture or drawing, by its caption, which is `document.text[start:end]`. `box` is where it is on its page: edges as
    fractions of the page as shown, from the top left; None if it cannot be drawn. `mentions` are the sentences about it.
    A table of a scan is one too: OCR has read its words, and may have misread them."""

    start: int
    end: int
    name: str = ""  # as the caption begins: "Figure 3"; empty if it has no number
    page: int = 0  # counted from 1; 0 without a box
    box: tuple[float, float, float, float] | None = None
    mentions: tuple[tuple[int, int], ...] = ()
    table: bool = omitted_when_empty(False)  # its words are in the text as well


SEAMS = "seams"  # the key in the `meta` of a document
HIDDEN = "hidden_text"  # a key in the `meta` of a document: never searched, never sent to a model


def page_at(pages: Sequence[int], kind: str, offset: int) -> int | None:
    """The page of an offset, counted from 1, by the offsets at which pages begin; None if the format has no pages."""
    return bisect_right(pages, offset) if len(pages) > 1 or format_named(kind).paged else None


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document: `text` is the cleaned text, and all offsets in Assay refer to it."""

    id: str
    base: str
    uri: str
    digest: str
    title: str
    text: str
    authors: tuple[str, ...] = ()
    date: str | None = None  # ISO 8601, with the document's own precision: 2024, 2024-05 or 2024-05-17
    abstract: tuple[int, int] | None = None  # a span of `text`
    sections: tuple[Section, ...] = ()
    pages: tuple[int, ...] = (0,)  # the offset in `text` at which each page begins
    kind: str = "text"  # pdf, html, docx, …
    language: str | None = None
    meta: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = omitted_when_empty(())
    scan: str = omitted_when_empty("")  # the places of words that OCR read: `ingest/scan.py`
    figures: tuple[Figure, ...] = omitted_when_empty(())

    @property
    def seams(self) -> tuple[int, ...]:
        """Offsets at which it is uncertain that the text goes on: nothing is quoted across them."""
        found = (int(part) for part in self.meta.get(SEAMS, "").split() if part.isdecimal())
        return tuple(offset for offset in found if offset <= len(self.text))

    def page_at(self, offset: int) -> int | None:
        """The page of an offset, counted from 1; None if the format has no pages."""
        return page_at(self.pages, self.kind, offset)

    def units_at(self, offset: int) -> str:
        """The units that are declared for the text at an offset, as written; empty if none are."""
        at = bisect_right(self.sections, offset, key=lambda section: section.start) - 1
        return self.sections[at].units if at >= 0 else ""

    def heading_at(self, offset: int) -> str:
        """The headings above an offset, outermost first: `Methods › Sampling`."""
        path: list[Section] = []
        for section in self.sections:
            if section.start > offset:
                break
            path = [above for above in path if above.level < section.level] + [section]
        return BETWEEN.join(section.title for section in path)


@dataclass(frozen=True, slots=True)
class Passage:
    """A span of a document: `document.text[start:end] == text`."""

    id: str
    doc_id: str
    text: str
    start: int
    end: int
    heading: str = ""
    page: int | None = None
    context: str = omitted_when_empty("")  # what it does not say: `tables/labels.py`

    @property
    def above(self) -> str:
        """What stands above the passage: the headings, and its context."""
        return "\n".join(filter(None, (self.heading, self.context)))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the index. All filterable values are in `fields`; `label` names the access set."""

    passage: Passage
    vector: np.ndarray
    lead: str  # title, headings and table header: searched with the passage, but not part of it
    fields: Mapping[str, str]  # base, doc, source, title, date, type, language, label


@dataclass(frozen=True, slots=True, eq=False)
class Hit:
    """A passage found by a search. `rank` is for display; `scores` are for fusion."""

    passage: Passage
    vector: np.ndarray
    scores: Mapping[str, float]
    rank: int = 0
    title: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Quote:
    """An exact quotation: `document.text[start:end] == text`."""

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotation relevant to a question: `quote` lies inside `passage`; one entry per document span."""

    key: str
    passage: Passage
    quote: Quote
    score: float  # 0–10
    question: str
    note: str = ""
    flagged: bool = False  # the passage looks like an instruction to a model


class Verdict(StrEnum):
    supported = "supported"
    partial = "partial"
    unsupported = "unsupported"
    contradicted = "contradicted"
    uncited = "uncited"


class Derivation(StrEnum):
    """The rule by which a statement follows from quotations."""

    cell = "cell"  # a cell of a table
    facts = "facts"  # cells, each with its row, column, organisation and units
    rows = "rows"  # cells of the rows that meet the conditions
    extreme = "extreme"  # the row with the largest or smallest value: cell and value in turn
    counted = "count"  # how many rows
    total = "total"  # the sum of cells
    yes = "yes"
    no = "no"
    choice = "choice"  # one of the alternatives in the question
    documents = "documents"  # from the catalogue: what the documents are called
    number = "number"  # how many documents
    date = "date"
    authors = "authors"
    titled = "title"


@dataclass(frozen=True, slots=True)
class Derived:
    """How a statement was computed: the rule, and the quotations it starts from. `detail` says what they are of."""

    rule: Derivation
    operands: tuple[Quote, ...]
    detail: str = ""
    scanned: bool = omitted_when_empty(False)  # OCR read a cell that it starts from


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as a model was shown it: its place and the digest of the picture, which is made again from the document."""

    document: str
    page: int
    box: tuple[float, float, float, float]
    name: str
    digest: str

    @property
    def place(self) -> str:
        return f"{self.name or 'a figure'} on page {self.page}"


class Basis(StrEnum):
    """What a claim rests on."""

    quotation = "quotation"  # words of the document
    calculation = "calculation"  # a figure computed from cited figures
    counted = "count"  # the number of cited items
    comparison = "comparison"  # an order of cited figures or dates
    table = "table"  # cells of a table, looked up by rule
    scan = "scan"  # cells that OCR read: not proven
    figure = "figure"  # what a model read from a picture of it
    catalogue = "catalogue"  # titles, dates and authors of the documents
    statement = "statement"  # anything else
    opinion = "opinion"


@dataclass(frozen=True, slots=True)
class Operand:
    """A figure, date or item as it stands in the evidence that it is read from."""

    words: str
    cite: str


@dataclass(frozen=True, slots=True)
class Working:
    """The working of a claim: an expression over operands, and the result the writer gives. `unproven` says why code could
    not check it; then it rests on its judge's word."""

    expression: str
    operands: tuple[Operand, ...]
    result: str
    unit: str = ""
    unproven: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What a cell of a table is, in the document's own words."""

    row: str
    column: str
    text: str
    units: str = omitted_when_empty("")
    period: str = omitted_when_empty("")  # of the table, where the column names none
    organisation: str = omitted_when_empty("")

    @property
    def line(self) -> str:
        """`Net sales, 2021, 3M Company: $35,355 (Millions)`."""
        of = ", ".join(filter(None, (self.row, self.column, self.period, self.organisation)))
        return f"{of}: {self.text}{f' ({self.units})' if self.units else ''}"


@dataclass(frozen=True, slots=True)
class ClaimedCell:
    """A figure that a claim takes from a table: its cell by the ids that the writer was shown, and what the writer says it
    is. `direction` is that of a change since the cell before it. `found` is what code found there; None if it found none."""

    cite: str
    cell: str  # r3c2
    measure: str = ""
    period: str = ""
    organisation: str = ""
    value: str = ""
    direction: str = omitted_when_empty("")  # up, down or same
    found: CellFacts | None = omitted_when_empty(None)  # noqa: RUF009


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an answer. `quote` is set when the statement is only a quotation; then `text` is empty. `derived`
    is set when rules computed it from quotations. `cells` are where its figures stand in tables. `carried_by` are the
    words from which it follows, as its judge named them; `by` is who gave the verdict. It is `disputed` if two
    judgements differ: `objection` is what the other says."""

    text: str
    cites: tuple[str, ...]
    verdict: Verdict | None = None
    why: str = ""
    quote: Quote | None = None
    edited: str | None = None  # the reviewer who rewrote it
    derived: Derived | None = omitted_when_empty(None)  # noqa: RUF009
    working: Working | None = omitted_when_empty(None)  # noqa: RUF009
    carried_by: tuple[Quote, ...] = omitted_when_empty(())
    by: str = omitted_when_empty("")
    disputed: bool = omitted_when_empty(False)
    marks: tuple[Quote, ...] = omitted_when_empty(())  # of an extract, the words that answer
    objection: str = omitted_when_empty("")
    cells: tuple[ClaimedCell, ...] = omitted_when_empty(())
    figure: Picture | None = omitted_when_empty(None)  # noqa: RUF009 from which a model read it

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
    """Related claims under a heading that states no fact itself. An opinion is labelled as an opinion."""

    claims: tuple[Claim, ...]
    heading: str = ""
    opinion: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """One query that was tried: its text, the number of passages returned and the number kept."""

    query: str
    found: int
    kept: int


@dataclass(frozen=True, slots=True)
class Examined:
    """How completely a question about a whole set was followed up: how much was examined, and how many matches were
    not. Of the documents with evidence, `whole` were read to their end and `partly` were not: ids, and in an answer
    titles."""

    documents: int
    passages: int
    left: int
    whole: tuple[str, ...] = omitted_when_empty(())
    partly: tuple[str, ...] = omitted_when_empty(())


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two contradictory pieces of evidence, by key, and the point of disagreement."""

    left: str
    right: str
    about: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many documents the limits of a search left out, of those that the person may read, and how many of these for the
    lack of a date alone."""

    documents: int
    undated: int

    @property
    def sentence(self) -> str:
        all_undated = self.undated == self.documents > 0
        what = f"{self.documents:,}{' undated' if all_undated else ''} document{'s' * (self.documents != 1)}"
        of_them = f", {self.undated:,} of them undated" if self.undated and not all_undated else ""
        return f"The filters left out {what}{of_them}."


@dataclass(frozen=True, slots=True)
class Answer:
    """The delivered answer. Every citation resolves to evidence of this run; `searched` and `stopped` say what was
    tried, `near` is the closest evidence if there is no answer, `unread` names the files that could not be read.
    `said` is set when nothing was looked up: it does not come from the documents, and every display says so."""

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
    since: str | None = None  # the search restriction, from the user or from the question
    until: str | None = None
    said: str = ""
    readings: tuple[str, ...] = ()  # the possible meanings of an ambiguous question, each with its own answer
    examined: Examined | None = None
    usage: Usage = field(default_factory=lambda: Usage())
    rechecked: int = omitted_when_empty(0)  # statements of the last answer that were judged again
    fallen: tuple[str, ...] = omitted_when_empty(())  # those of them that do not hold
    left_out: LeftOut | None = omitted_when_empty(None)  # noqa: RUF009 by the person's own limits
    probability: float | None = omitted_when_empty(None)
    unseen: tuple[str, ...] = omitted_when_empty(())  # figures that no model was shown, and why

    @property
    def claims(self) -> tuple[Claim, ...]:
        return tuple(claim for block in self.blocks for claim in block.claims)

    @property
    def cited_keys(self) -> frozenset[str]:
        return frozenset(key for claim in (*self.claims, *self.near) for key in claim.cites)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A summary of an earlier conversation turn: the question, the answer, and its sources."""

    run: str
    question: str
    answer: str
    documents: tuple[str, ...] = ()  # documents whose text the answer contains
    passages: tuple[str, ...] = ()  # ids of the passages it cites, which may be reused
    whole: Answer | None = omitted_when_empty(None)  # noqa: RUF009 the last answer in full: a turn may work on it
    evidence: tuple[Evidence, ...] = omitted_when_empty(())  # what the last answer cites
    turns: int = omitted_when_empty(0)  # the number of turns that this one sums up


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One sub-question. `needs` are the steps whose findings it uses; `binds` names what it should find; `query` is
    the search query. Question and query may contain `{s1}`, which is replaced by the finding of step s1 once known.
    `since` and `until` limit the documents of this step alone."""

    id: str
    question: str
    needs: tuple[str, ...] = ()
    binds: str = ""
    query: str = ""
    since: str = omitted_when_empty("")
    until: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps that form a DAG; a step's question may use values bound by earlier steps."""

    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources used. Usage values can be added."""

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
