"""Questions that a document answers, by rule: about a cell of one of its tables, or about one of its sections. Pure.

The words come from documents, and a person may send them as their own question: whatever reads like an instruction, or like
anything but a plain name, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.core.types import Document, Section, TableRow
from assay.language.injection import is_suspicious
from assay.language.sentences import is_statement, split_statements
from assay.language.terms import content_terms
from assay.lookup.tables import Grid, look_up

PLAIN = re.compile(r"[^\W_][\w ,.’'()&/-]*")  # a name, and nothing that could be more
NUMBER = re.compile(r"^(?:\d+(?:\.\d+)*|[IVXLC]+|[A-Z])[.):]?\s+(?=\S)")
ASIDE = re.compile(
    r"\b(?:introduction|abstract|summary|overview|conclusions?|references|bibliography|acknowledge?ments?|contents|index"
    r"|appendix|glossary|notes?|see also|further reading|contact|imprint|background|discussion|methods?|results?)\W*$",
    re.I,
)
WORDS = 7  # of a heading or a row
TITLE = 60  # characters of a title in a question
ROWS = 12  # rows of a table that are tried


@dataclass(frozen=True, slots=True)
class AnsweredQuestion:
    """A question, and the span of the document that answers it. `answer` is set where it is a cell of a table."""

    question: str
    start: int
    end: int
    answer: str = ""


def questions_of(document: Document, known: Sequence[tuple[int, int]] = ()) -> Iterator[AnsweredQuestion]:
    """Questions that the document answers, best first; none about the spans that are known already."""
    yield from _of_tables(document, known)
    yield from _of_sections(document, known)


def _of_tables(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    """One question about each table, if looking it up gives exactly the cell that was meant."""
    for table in document.tables:
        if len(table.columns) < 2 or any(table.start < end and start < table.end for start, end in known):
            continue
        grid = Grid(document, table)
        for row in grid.rows[:ROWS]:
            if (found := next(_of_row(document, grid, row), None)) is not None:
                yield found
                break


def _of_row(document: Document, grid: Grid, row: TableRow) -> Iterator[AnsweredQuestion]:
    if not _plain(row.label):
        return
    for column, cell in zip(grid.table.columns[1:], row.cells[1:], strict=False):
        value = cell.text.strip()
        if not value or len(value) > TITLE or not _plain(column):
            continue
        question = f"What is the {_in_a_sentence(column)} of {row.label.strip()}?"
        answer = look_up(question, [document])
        if answer is not None and [each.text.strip() for each in answer.cells] == [value]:
            yield AnsweredQuestion(question, row.start, row.end, value)


def _of_sections(document: Document, known: Sequence[tuple[int, int]]) -> Iterator[AnsweredQuestion]:
    title = " ".join(document.title.split())
    if not _plain(title, 12) or len(title) > TITLE:
        return
    ends = [*(each.start for each in document.sections[1:]), len(document.text)]
    sections = list(zip(document.sections, ends, strict=False))
    for section, end in sorted(sections, key=lambda each: (each[0].end - each[1], each[0].start)):  # the longest first
        heading = NUMBER.sub("", " ".join(section.title.split())).strip(" .:")
        if any(section.start < right and left < end for left, right in known):
            continue
        if _about_something(heading, title) and _states(document, section, end):
            question = f"What does {title} say about {_in_a_sentence(heading)}?"
            yield AnsweredQuestion(question, section.end, end)


def _about_something(heading: str, title: str) -> bool:
    own = set(content_terms(heading))
    return _plain(heading) and bool(own - set(content_terms(title))) and not ASIDE.search(heading)


def _states(document: Document, section: Section, end: int) -> bool:
    """Whether the section has sentences of its own."""
    body = document.text[section.end : end]
    return any(is_statement(body[slice(*span)]) for span in split_statements(body))


def _plain(words: str, most: int = WORDS) -> bool:
    """Whether this is a short name, and nothing that could be more."""
    short = 0 < len(words.split()) <= most
    return short and bool(PLAIN.fullmatch(words.strip()) and content_terms(words)) and not is_suspicious(words)


def _in_a_sentence(words: str) -> str:
    """A heading as it stands within a sentence: names and abbreviations keep their capitals."""
    first, _, rest = words.partition(" ")
    capitals = sum(word[0].isupper() for word in words.split() if word[0].isalpha())
    return f"{first.lower()} {rest}".strip() if first.istitle() and capitals == 1 and first.isalpha() else words
