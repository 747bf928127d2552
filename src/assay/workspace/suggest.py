"""Questions that a document answers, by rule: about a cell of one of its tables, about a paper as a whole, or about one
of its sections. Few rather than odd ones. Pure.

The words come from documents, and a person may send them as their own question: whatever reads like an instruction, or
like anything but a plain name, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from assay.core.types import Document, Section, TableRow
from assay.language.injection import is_suspicious
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import content_terms
from assay.tables.lookup import Grid, is_total, look_up

PLAIN = re.compile(r"[^\W_][\w ,.’'()&/-]*")  # a name, and nothing that could be more
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])[.):]?\s+(?=\S)")
WORDS = 7  # of a heading or a row
UNIT = re.compile(r"\s(?:in|per)\s|[(\[,/]")  # begins what a column is measured in
TITLE = 80  # characters of a title in a question
ROWS = 12  # rows of a table that are tried
STATEMENTS = 2  # of a section


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
    if document.language in (None, "en"):
        yield from _of_tables(document, known)
        yield from _of_text(document, known)


def _of_tables(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    """One question about each table, if looking it up gives exactly the cell that was meant."""
    for table in document.tables:
        if len(table.columns) < 2 or _overlaps(table.start, table.end, known):
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
        words = column.split()
        if (
            not value
            or len(value) > TITLE
            or not _plain(column)
            or len(words) < 2
            or UNIT.split(column)[0].rstrip().endswith("s")
        ):
            continue  # one word alone is seldom clear, and a plural would need another verb
        question = f"What is the {words[0].lower()} {' '.join(words[1:])} of {label}?"
        answer = look_up(question, [document])
        if answer is not None and [each.text.strip() for each in answer.cells] == [value]:
            yield AnsweredQuestion(question, row.start, row.end, value)


def _of_text(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    """What a paper is about, and what a document says under its headings. A document that goes by its file name is left out."""
    title = " ".join(document.title.split())
    if not _plain(title, 14) or len(title) > TITLE or title == PurePath(document.uri).stem:
        return
    if document.abstract and not _overlaps(*document.abstract, known):
        yield AnsweredQuestion(f"What is “{title}” about?", *document.abstract)
    ends = [*(each.start for each in document.sections[1:]), len(document.text)]
    sections = list(zip(document.sections, ends, strict=False))
    # The longest first; a heading of one word seldom says enough.
    for section, end in sorted(sections, key=lambda each: (each[0].end - each[1], each[0].start)):
        heading = NUMBER.sub("", " ".join(section.title.split())).strip(" .:")
        if " " not in heading or _overlaps(section.start, end, known):
            continue
        if (
            _plain(heading)
            and set(content_terms(heading)) - set(content_terms(title))
            and _states(document, section, end)
        ):
            question = f"What does “{title}” say about “{heading}”?"
            yield AnsweredQuestion(question, section.end, end)


def _overlaps(start: int, end: int, known: Sequence[tuple[int, int]]) -> bool:
    return any(start < right and left < end for left, right in known)


def _states(document: Document, section: Section, end: int) -> bool:
    """Whether the section has sentences of its own, and not only rows."""
    body = document.text[section.end : end]
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
