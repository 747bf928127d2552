"""What goes over the wire about documents: knowledge bases, their documents, files being read, searches and syntheses. The
other half of `shapes.py`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints

from assay.core.account import Approach, Pipeline
from assay.serve.schemas.run_schemas import Flag, Given, Id, Limited, Name, Names, Told, Words, number

# --- knowledge bases and documents ----------------------------------------------------------------------------------


class NewBase(Given):
    name: Name
    description: Annotated[str, StringConstraints(max_length=2000)] = ""
    group: Id = ""  # whose members may fill it; empty: the person alone


class ChangedBase(Given):
    description: Annotated[str, StringConstraints(max_length=2000)]


class BaseLine(Told):
    """A knowledge base at a glance."""

    name: str
    description: str
    owner: str
    yours: bool  # may be filled and emptied by who asks
    documents: int  # that can be asked about
    unreadable: int
    pending: int
    passages: int


class DocumentLine(Told):
    """A document, or a file that could not be read (`state` unreadable, and `why`)."""

    id: str
    base: str  # the base's name
    name: str
    uri: str
    title: str
    authors: tuple[str, ...]
    date: str | None
    kind: str
    language: str | None
    state: str  # ready, pending, unreadable
    why: str
    warnings: tuple[str, ...]
    bytes: int
    pages: int
    characters: int
    passages: int
    added: str


class Documents(Told):
    """A page of a listing; `next` goes on from here, and is empty at the end."""

    documents: tuple[DocumentLine, ...]
    total: int
    next: str


class DocumentWhole(DocumentLine):
    abstract: str
    sections: tuple[dict[str, Any], ...]  # title, level, start
    page_starts: tuple[int, ...]  # where each page begins in the text; empty where there are no pages
    pictures: bool  # whether pages can be shown as pictures


class Text(Told):
    """A stretch of a document's text: `start` and `end` are offsets into the whole, which has `characters`."""

    document: str
    start: int
    end: int
    characters: int
    text: str


class BoxShape(Told):
    """A stretch of one line on a page; edges are fractions of the page as shown, from its top left corner."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


class Boxes(Told):
    document: str
    boxes: tuple[BoxShape, ...]


class FileReport(Told):
    """How a file ended: added, replaced, unchanged, moved, duplicate, finished, or failed; empty while it waits."""

    name: str
    bytes: int
    outcome: str
    status: str
    why: str
    title: str
    pages: int
    passages: int


class JobState(StrEnum):
    waiting = "waiting"
    running = "running"
    done = "done"
    failed = "failed"
    cancelled = "cancelled"


class JobShape(Told):
    """Work that goes on when the client leaves and after a restart: files that are being read."""

    id: str
    kind: str  # ingest
    base: str
    state: JobState
    files: int
    done: int
    passages: int
    seconds: float
    left: float | None  # seconds, as far as that can be told
    error: str
    created: str
    reports: tuple[FileReport, ...]  # of those that have ended, and those that wait; the first 200


class ReadinessShape(Told):
    base: str
    readable: int
    unreadable: int
    pending: int
    pages: int
    characters: int
    passages: int
    languages: dict[str, int]
    warnings: tuple[str, ...]
    problems: tuple[DocumentLine, ...]  # files that could not be read, and why; the first 200


class Removed(Told):
    removed: tuple[str, ...]


# --- searching ------------------------------------------------------------------------------------------------------


class Search(Limited):
    query: Words
    k: Annotated[int, Field(ge=1, le=100), BeforeValidator(number)] = 10


class HitShape(Told):
    rank: int
    document: str
    title: str
    base: str
    page: int | None
    heading: str
    start: int
    end: int
    text: str


class Hits(Told):
    query: str
    hits: tuple[HitShape, ...]


# --- synthesis ------------------------------------------------------------------------------------------------------


class Synthesise(Given):
    """Which documents, by id, or every one of these bases; and what is to be made of them."""

    documents: Annotated[tuple[Id, ...], Field(max_length=2000)] = ()
    bases: Names = ()
    pipeline: Pipeline = Pipeline.synthesis
    focus: Annotated[str, StringConstraints(max_length=2000)] = ""
    questions: Annotated[int, Field(ge=1, le=20), BeforeValidator(number)] = 3
    audiences: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    approach: Approach = Approach.search
    model: Flag = True


class RangeShape(Told):
    """Four of five should come to something between `low` and `high`."""

    low: float
    likely: float
    high: float


class RangesShape(Told):
    calls: RangeShape
    tokens: RangeShape
    money: RangeShape | None  # USD; none where nobody knows the price
    seconds: RangeShape


class ForecastShape(Told):
    """What a synthesis will take, as far as that can be told before it begins."""

    documents: int
    questions: int
    calls: int
    tokens: int
    money: float | None  # USD; none where nobody knows the price
    seconds: float
    large: bool
    lines: tuple[str, ...]  # the same in words
    ranges: RangesShape | None  # low, likely, high
    from_runs: int  # earlier ones that the ranges rest on
