"""An answer as Markdown for any chat client: numbers in brackets, and a list of sources at the end. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LIST = "\n\n**Sources**\n\n"  # unambiguous, since asterisks in documents are escaped
LISTED = re.compile(r"^\[\^(\d+)\]: ", re.MULTILINE)
NOTE = re.compile(r"\[\^(\d+)\]")
MARK = re.compile(r"\[(\d+)\]")  # unambiguous, since brackets are escaped too


@dataclass(frozen=True, slots=True)
class CitationMark:
    """A citation number in the text: `text[start:end]` is `[3]`."""

    number: int
    start: int
    end: int


def number_notes(markdown: str) -> str:
    """The output of `render.as_markdown` without the question and with plain numbers: few chat clients support
    footnotes."""
    body = markdown.partition("\n")[2].strip("\n")
    first = LISTED.search(body)
    text, notes = (body[: first.start()], body[first.start() :]) if first else (body, "")
    answer = NOTE.sub(r"[\1]", text).strip()
    return answer + LIST + LISTED.sub(r"- [\1] ", notes) if notes else answer


def strip_notes(text: str) -> str:
    """The text without the list of sources."""
    return text.partition(LIST)[0]


def citation_marks(text: str) -> tuple[CitationMark, ...]:
    """The citation numbers in the text, in order, without those of the list of sources."""
    return tuple(CitationMark(int(match[1]), match.start(), match.end()) for match in MARK.finditer(strip_notes(text)))
