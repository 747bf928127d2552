"""Builds the text of every format but PDF: text is appended piece by piece, and headings and pages keep their offsets.

Each piece is cleaned when it is appended, so offsets stay valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assay.core.printable import clean_text, tidy_whitespace
from assay.core.types import Section, Table
from assay.ingest.hidden import HiddenText, describe_hidden, hidden_meta
from assay.ingest.parsed import FileLimits, Parsed, Refused, Status


@dataclass(slots=True)
class TextBuilder:
    """A text under construction. `kind` and `limits` belong to the whole file."""

    kind: str
    limits: FileLimits
    parts: list[str] = field(default_factory=list)
    length: int = 0
    sections: list[Section] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    hidden: list[HiddenText] = field(default_factory=list)
    unsaid: int = 0  # up to so many hidden words there is no warning

    def block(self, text: str, gap: str = "\n\n") -> int:
        """Append a paragraph after `gap` and return its offset; surrounding white space is dropped."""
        text = clean_text(text).strip()
        if not text:
            return self.length
        if self.length:
            self._append(gap)
        start = self.length
        self._append(text)
        return start

    def line(self, text: str) -> int:
        return self.block(text, gap="\n")

    def heading(self, title: str, level: int) -> None:
        title = tidy_whitespace(title).replace("\n", " ")
        start = self.block(title)
        if start < self.length:
            self.sections.append(Section(title, level, start, self.length))

    def page(self) -> None:
        """Start a new page."""
        self.pages.append(self.length if self.pages else 0)
        if len(self.pages) > self.limits.pages:
            raise Refused(
                Status.too_large,
                f"It has more than {self.limits.pages:,} pages; split it or raise the limit on pages.",
            )

    def embed(self, parsed: Parsed, below: int) -> None:
        """Append another file's text with its headings, each `below` levels deeper."""
        shift = self.block(parsed.text) - (len(parsed.text) - len(parsed.text.lstrip()))
        for section in parsed.sections:
            self.sections.append(
                Section(section.title, section.level + below, section.start + shift, section.end + shift)
            )
        self.tables += [replace(table, start=table.start + shift, end=table.end + shift) for table in parsed.tables]

    def last_lines(self, most: int = 2) -> tuple[str, ...]:
        """The last lines that were written, the nearest last: what stands directly above the next block. Rows of a
        table do not count."""
        if self.tables and self.tables[-1].end == self.length:
            return ()
        tail = "".join(self.parts[-4 * most :])[-2000:]
        return tuple(line.strip() for line in tail.split("\n") if line.strip())[-most:]

    def warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def parsed(
        self,
        *,
        title: str = "",
        authors: tuple[str, ...] = (),
        date: str | None = None,
        language: str | None = None,
        meta: Mapping[str, str] | None = None,
        empty: str = "There is no text in it; check that this is the file you meant.",
    ) -> Parsed:
        """The finished text. A file without text is refused with the message `empty`."""
        text = "".join(self.parts)
        if not text.strip():
            raise Refused(Status.empty, empty)
        if sum(each.words for each in self.hidden) > self.unsaid:
            self.warn(describe_hidden(self.hidden))
        return Parsed(
            text=text,
            kind=self.kind,
            title=title,
            authors=authors,
            date=date,
            sections=tuple(self.sections),
            pages=tuple(self.pages) or (0,),
            language=language,
            meta={**(meta or {}), **hidden_meta(self.hidden)},
            warnings=tuple(self.warnings),
            tables=tuple(self.tables),
        )

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)
        if self.length > self.limits.characters:
            raise too_long(self.limits)


def too_long(limits: FileLimits) -> Refused:
    return Refused(
        Status.too_large,
        f"It holds more than {limits.characters:,} characters of text; split it or raise the limit on characters.",
    )
