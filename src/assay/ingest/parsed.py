"""The result of a parser: a document without an identity, or the reason why there is none.

Both cross a process boundary as JSON (`core/codec.py`), because parsers run in a restricted child process.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from assay.core.printable import clean_text
from assay.core.types import HIDDEN, Figure, Section, Table, omitted_when_empty

if TYPE_CHECKING:
    from assay.core.settings import Settings

OWN_SHARE = 0.6  # of the seconds of a file that its parser may take; the rest is for metadata and the reply


class Status(StrEnum):
    """How reading a file ended. Every status but `read` comes with a sentence that says what to do."""

    read = "read"
    empty = "empty"
    scanned = "scanned"  # pages without text: images of text
    encrypted = "encrypted"
    corrupt = "corrupt"
    unsupported = "unsupported"
    too_large = "too_large"  # bytes, pages, characters, or the unpacked size of an archive
    too_slow = "too_slow"
    out_of_memory = "out_of_memory"
    crashed = "crashed"
    unreadable = "unreadable"  # the file itself could not be opened


@dataclass(frozen=True, slots=True)
class Parsed:
    """`text` is already cleaned; sections, pages and abstract are offsets into it. Never without text."""

    text: str
    kind: str
    title: str = ""
    authors: tuple[str, ...] = ()
    date: str | None = None  # 2024, 2024-05 or 2024-05-17
    abstract: tuple[int, int] | None = None
    sections: tuple[Section, ...] = ()
    pages: tuple[int, ...] = (0,)
    language: str | None = None
    meta: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what was left out, as text: "2 of 12 pages are pictures without text"
    tables: tuple[Table, ...] = omitted_when_empty(())
    unread: tuple[int, ...] = omitted_when_empty(())  # pages, counted from 1, that are pictures without text
    scan: str = omitted_when_empty("")  # the places of words that OCR read: `ingest/scan.py`
    figures: tuple[Figure, ...] = omitted_when_empty(())


@dataclass(frozen=True, slots=True)
class Unreadable:
    status: Status
    why: str  # what is wrong and what to do about it, in one sentence


@dataclass(frozen=True, slots=True)
class PageBox:
    """A part of one line on a page; edges are fractions of the page as shown, from its top left corner."""

    page: int  # counted from 1
    x0: float
    y0: float
    x1: float
    y1: float


UNREAD = "are pictures without text and were not read; OCR can read them."  # the end of a remark on a document


def is_unread(status: str, warnings: Sequence[str]) -> bool:
    """Whether a file has pages that are pictures and that OCR has not read."""
    return status == Status.scanned or any(each.endswith(UNREAD) for each in warnings)


class Refused(Exception):
    """Raised by a parser with the reason why a file has no text; becomes `Unreadable`."""

    def __init__(self, status: Status, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


@dataclass(frozen=True, slots=True)
class FileLimits:
    """Resource limits for one file."""

    bytes: int = 200_000_000
    pages: int = 5_000
    characters: int = 20_000_000
    cells: int = 200_000  # cells of tables; what comes after them is left out, with a warning
    passages: int = 20_000  # that are made searchable; the rest is left out, with a warning
    expanded_bytes: int = 1_000_000_000  # total unpacked size of an archive
    expansion: int = 200  # ratio to the packed size, checked above 10 MB
    depth: int = 5  # nested attachments
    memory: int = 4_000_000_000
    seconds: float = 120.0  # of CPU time, and twice that of wall-clock time
    until: float = 0.0  # CPU time of this process after which parsers stop where they are; 0: never
    require_guards: bool = False  # read nothing where a guard of the sandbox is missing

    def timed(self) -> FileLimits:
        """The same limits for a file that is read from now on: parsers stop before the process is killed."""
        return replace(self, until=time.process_time() + OWN_SHARE * self.seconds)

    @property
    def late(self) -> bool:
        """Whether to stop reading and return what there is."""
        return bool(self.until) and time.process_time() > self.until

    def check(self, *, characters: int = 0, pages: int = 0) -> None:
        """Refuse a text that is too long."""
        for count, most, what in ((characters, self.characters, "characters"), (pages, self.pages, "pages")):
            if count > most:
                why = f"It has more than {most:,} {what}; split it or raise the limit on {what}."
                raise Refused(Status.too_large, why)

    def describe_excess(self, size: int) -> str:
        """Why a file of `size` bytes is not read."""
        return f"It has {size:,} bytes, more than the limit of {self.bytes:,}; split it or raise the limit on bytes."


def file_limits(settings: Settings) -> FileLimits:
    return FileLimits(
        bytes=settings.file_max_megabytes * 1_000_000,
        pages=settings.file_max_pages,
        cells=settings.file_max_cells,
        passages=settings.file_max_passages,
        memory=settings.file_max_memory_megabytes * 1_000_000,
        seconds=settings.file_max_seconds,
        require_guards=settings.sandbox == "require",
    )


LONGEST_EXCERPT = 2_000  # characters
MOST_LISTED = 8  # pages


@dataclass(frozen=True, slots=True)
class HiddenText:
    """`how` completes "Text is …": covered, too small to read. Page 0: the format has no pages."""

    text: str
    how: str
    page: int = 0

    @property
    def words(self) -> int:
        return sum(any(map(str.isalnum, word)) for word in self.text.split())


def describe_hidden(found: Iterable[HiddenText]) -> str:
    """How much was left out, where, and how it was hidden; empty if there is nothing."""
    ways: Counter[str] = Counter()
    pages: set[int] = set()
    for each in found:
        ways[each.how] += each.words
        pages.add(each.page)
    total = ways.total()
    if not total:
        return ""
    counted = [how if len(ways) == 1 else f"{count} {how}" for how, count in ways.most_common()]
    where = listed_pages(sorted(pages - {0}))
    return f"Text that no reader sees was left out: {total} word{'s'[: total > 1]}{where} ({', '.join(counted)})."


def listed_pages(pages: Sequence[int]) -> str:
    """` on page 2`, ` on pages 2 and 7`; empty for none."""
    if not pages:
        return ""
    names = [*map(str, pages[:MOST_LISTED]), *(["others"] if len(pages) > MOST_LISTED else [])]
    last = f" and {names[-1]}" if len(names) > 1 else ""
    return f" on page{'s'[: len(names) > 1]} {', '.join(names[:-1] or names)}{last}"


def hidden_meta(found: Iterable[HiddenText]) -> dict[str, str]:
    """The beginning of the hidden text, for a person who looks at the document: it is neither indexed nor sent to a model."""
    excerpt = ""
    for each in found:
        excerpt = f"{excerpt} {' '.join(clean_text(each.text).split())}".strip()
        if len(excerpt) >= LONGEST_EXCERPT:
            break
    more = "…" if len(excerpt) > LONGEST_EXCERPT else ""
    return {HIDDEN: excerpt[:LONGEST_EXCERPT] + more} if excerpt else {}
