"""An answer in Markdown as any chat shows it: numbers in brackets, and what they stand for in a list at the end. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LIST = "\n\n**Sources**\n\n"  # asterisks of documents are escaped, so that this is ours
LISTED = re.compile(r"^\[\^(\d+)\]: ", re.MULTILINE)
NOTE = re.compile(r"\[\^(\d+)\]")
MARK = re.compile(r"\[(\d+)\]")  # and so are brackets


@dataclass(frozen=True, slots=True)
class CitationMark:
    """A number in the text: `text[start:end]` is `[3]`."""

    number: int
    start: int
    end: int


def number_notes(markdown: str) -> str:
    """What `render.as_markdown` writes, without the question, and with plain numbers: few chats know footnotes."""
    body = markdown.partition("\n")[2].strip("\n")
    first = LISTED.search(body)
    said, notes = (body[: first.start()], body[first.start() :]) if first else (body, "")
    told = NOTE.sub(r"[\1]", said).strip()
    return told + LIST + LISTED.sub(r"- [\1] ", notes) if notes else told


def strip_notes(text: str) -> str:
    """What is said, without the list at the end."""
    return text.partition(LIST)[0]


def citation_marks(text: str) -> tuple[CitationMark, ...]:
    """The numbers in what is said, in order; those of the list at the end are not among them."""
    return tuple(CitationMark(int(match[1]), match.start(), match.end()) for match in MARK.finditer(strip_notes(text)))
