"""Questions that a document answers, in three fixed forms: about a cell of one of its tables, about one of its sections, or
about the document as a whole. Few rather than odd ones. Pure.

The words come from documents, and a person may send them as their own question: whatever reads like an instruction, or
like anything but a plain name, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath

from assay.core.types import Document, TableRow
from assay.language.injection import is_suspicious
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import content_terms
from assay.tables.lookup import Grid, is_total, look_up

PLAIN = re.compile(r"[^\W_][\w ,.:;?!…–—’'()&/-]*")  # a name or a heading, and nothing that could be more
COLUMN = re.compile(r"[A-Z]?[a-z-]+(?: [a-z-]+)+")  # what a row has one of, in words; no name, code, year or unit
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])[.):]?\s+(?=\S)")
WORDS = 7  # of a heading or a row
UNIT = re.compile(r"\s(?:in|per)\s")  # begins what a column is measured in
TITLE = 100  # characters of a title in a question
TABLES, ROWS = 8, 12  # tables of a document, and rows of a table, that are tried
TITLE_WORDS = 14
ENGLISH = (None, "en")  # languages of documents that are asked about
STATEMENTS, LOOKED_AT = 2, 20_000  # of a section, and the characters that they are looked for in


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, and the span of the document that answers it. `answer` is set where it is a cell of a table."""

    question: str
    start: int
    end: int
    answer: str = ""


def questions_of(document: Document, known: Sequence[tuple[int, int]] = ()) -> Iterator[AnsweredQuestion]:
    """Questions that the document answers, best first; none about the spans that are known already. They are in English, as
    the rules are."""
    if document.language in ENGLISH:
        yield from _of_tables(document, known)
        yield from _of_text(document, known)


def _of_tables(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    """One question about each table, if looking it up gives exactly the cell that was meant."""
    asked_of = (each for each in document.tables if any(map(COLUMN.fullmatch, each.columns[1:])))
    for table in islice(asked_of, TABLES):
        if _overlaps(table.start, table.end, known):
            continue
        grid = Grid(document, table)
        for row in grid.rows[:ROWS]:
            if (found := next(_of_row(document, grid, row), None)) is not None:
                yield found
                break


def _of_row(document: Document, grid: Grid, row: TableRow) -> Iterator[AnsweredQuestion]:
    label = row.label.strip()
    if is_total(label) or not (_plain(label) and _is_name(label, document.text)):
        return
    for column, cell in zip(grid.table.columns[1:], row.cells[1:], strict=False):
        value = cell.text.strip()
        if (
            not value
            or len(value) > TITLE
            or not (COLUMN.fullmatch(column) and _plain(column))
            or UNIT.split(column)[0].endswith("s")
        ):
            continue  # one word alone is seldom clear, and a plural would need another verb
        question = f"What is the {column[0].lower()}{column[1:]} of {label}?"
        answer = look_up(question, [document])
        if answer is not None and [each.text.strip() for each in answer.cells] == [value]:
            yield AnsweredQuestion(question, row.start, row.end, value)


def _of_text(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    """What a document says under its headings, and what it is about, a paper first of all. One that goes by its file name is
    left out."""
    title = title_of(document.title, document.uri)
    if not title:
        return
    whole = f"What is “{title}” about?"
    if document.abstract and not _overlaps(*document.abstract, known):
        yield AnsweredQuestion(whole, *document.abstract)
    ends = [*(each.start for each in document.sections[1:]), len(document.text)]
    sections = list(zip(document.sections, ends, strict=False))
    # The longest first; a heading of one word seldom says enough.
    for section, end in sorted(sections, key=lambda each: (each[0].end - each[1], each[0].start)):
        heading = NUMBER.sub("", " ".join(section.title.split())).strip(" .:")
        last = heading.rpartition(" ")[
            2
        ]  # one that is cut off ends in "of" or "which", one that only counts in a number
        if last == heading or not (last.isalpha() and content_terms(last)) or _overlaps(section.start, end, known):
            continue
        if (
            _plain(heading)
            and set(content_terms(heading)) - set(content_terms(title))
            and _states(document, section.end, end)
        ):
            question = f"What does “{title}” say about “{heading}”?"
            yield AnsweredQuestion(question, section.end, end)
    start = next((each.end for each in document.sections), 0)
    if not (document.abstract or known) and " " in title and _states(document, start, len(document.text)):
        yield AnsweredQuestion(whole, start, len(document.text))


def title_of(title: str, uri: str) -> str:
    """A document's title as a question may have it; empty where it has none but the name of its file."""
    words = " ".join(title.split())
    real = words not in (PurePath(uri).stem, PurePath(uri).name)
    return words if real and len(words) <= TITLE and _plain(words, TITLE_WORDS) else ""


def _overlaps(start: int, end: int, known: Sequence[tuple[int, int]]) -> bool:
    return any(start < right and left < end for left, right in known)


def _states(document: Document, start: int, end: int) -> bool:
    """Whether this part of a document has sentences of its own, and not only rows."""
    body = document.text[start : min(end, start + LOOKED_AT)]
    found = (body[slice(*span)].rstrip() for span in split_statements(body))
    return (
        sum(is_statement(each) and each.endswith((".", "!", "?")) and "\t" not in each for each in found) >= STATEMENTS
    )


def _plain(words: str, most: int = WORDS) -> bool:
    """Whether this is a short name, and nothing that could be more."""
    short = 0 < len(words.split()) <= most
    return short and bool(PLAIN.fullmatch(words.strip()) and content_terms(words)) and not is_suspicious(words)


def _is_name(label: str, text: str) -> bool:
    """Whether a row is about something with a name: words that have capitals wherever they stand, or a code."""
    return label[-1].isalnum() and all(
        word[0].isupper() and not _in_small_letters(word, text) and (len(word) > 2 or any(map(str.isdigit, word)))
        for word in label.split()
    )


def _in_small_letters(word: str, text: str) -> bool:
    return re.search(rf"\b{re.escape(word.lower())}\b", text) is not None
