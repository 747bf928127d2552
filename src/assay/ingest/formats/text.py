"""Builds the text of every format but PDF: text is appended piece by piece, and headings and pages keep their offsets.

Each piece is cleaned when it is appended, so offsets stay valid.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assay.core.printable import clean_text, tidy_whitespace
from assay.core.types import Figure, Section, Table
from assay.ingest.parsed import FileLimits, HiddenText, Parsed, Refused, Status, describe_hidden, hidden_meta


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
    figures: list[Figure] = field(default_factory=list)
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

    def heading(self, title: str, level: int) -> None:
        title = tidy_whitespace(title).replace("\n", " ")
        start = self.block(title)
        if start < self.length:
            self.sections.append(Section(title, level, start, self.length))

    def page(self) -> None:
        """Start a new page."""
        self.pages.append(self.length if self.pages else 0)
        self.limits.check(pages=len(self.pages))

    def embed(self, parsed: Parsed, below: int) -> None:
        """Append another file's text with its headings, each `below` levels deeper."""
        shift = self.block(parsed.text) - (len(parsed.text) - len(parsed.text.lstrip()))
        for section in parsed.sections:
            start, end = section.start + shift, section.end + shift
            self.sections.append(Section(section.title, section.level + below, start, end))
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
        empty: str = "There is no text in it; check that this is the file you meant.",
        meta: Mapping[str, str] | None = None,
        **facts: Any,
    ) -> Parsed:
        """The finished text with its title, authors, date and language. Without text it is refused with the message `empty`."""
        text = "".join(self.parts)
        if not text.strip():
            raise Refused(Status.empty, empty)
        if sum(each.words for each in self.hidden) > self.unsaid:
            self.warn(describe_hidden(self.hidden))
        return Parsed(
            text, self.kind, sections=tuple(self.sections), pages=tuple(self.pages) or (0,), tables=tuple(self.tables),
            figures=tuple(self.figures), meta={**(meta or {}), **hidden_meta(self.hidden)}, warnings=tuple(self.warnings),
            **facts,
        )  # fmt: skip

    def _append(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)
        self.limits.check(characters=self.length)


_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Guessing is slow, so it uses a sample and not the whole file.
_SAMPLE = 64_000
# EBCDIC and DOS pages fit almost any bytes; guessing one of them is nearly always wrong.
_NEVER_GUESSED = (
    "cp037 cp273 cp424 cp500 cp875 cp1026 cp1140 utf_7 hz johab ptcp154 kz1048 cp437 cp720 cp737 cp775 cp850 cp852 "
    "cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp869 cp1006 cp1125 cp1258 mac_greek mac_iceland mac_latin2 "
    "mac_turkish mac_cyrillic tis_620 hp_roman8 iso8859_10 iso8859_14 iso8859_16 iso2022_kr"
).split()
_ONE_BYTE = re.compile(r"(?:x-)?(?:iso-?8859|latin|windows-?125|cp-?125|us-ascii|ascii)", re.IGNORECASE)
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def decode(data: bytes, declared: str | None = None) -> str:
    """The characters of a text file in any common encoding; refuses bytes that are not text."""
    text = _decoded(data, declared)
    sample = text[:_SAMPLE]
    if len(_NOT_TEXT.findall(sample)) > 0.01 * len(sample) or sample.count("\ufffd") > 0.1 * len(sample):
        raise Refused(
            Status.unsupported, "It is not text, and not a format that can be read; convert it to PDF, DOCX or text."
        )
    return text


def _decoded(data: bytes, declared: str | None) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if wide := _wide(data[:4096]):
        return data.decode(wide, errors="replace")
    # Pages and messages that declare a one-byte encoding are often UTF-8, and other encodings are hardly ever valid UTF-8.
    one_byte = _ONE_BYTE.match(declared or "")
    for encoding in ("utf-8", declared) if one_byte else (declared, "utf-8"):
        if encoding and (text := _strict(data, encoding)) is not None:
            return text
    almost = data.decode("utf-8", errors="replace")
    # A few broken bytes in a long UTF-8 text, or a character cut in half at the end, are no reason to guess.
    wrong = almost.count("\ufffd")
    if wrong <= 2 + len(almost) // 1000 and wrong * 4 < sum(char > "\x7f" for char in almost):
        return almost
    return data.decode(_guess(data), errors="replace")


def _strict(data: bytes, encoding: str) -> str | None:
    # Browsers read every Latin-1 label as Windows-1252, and pages with that label rely on it.
    if encoding.strip().lower().replace("_", "-") in {"iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"}:
        encoding = "cp1252"
    try:
        codec = codecs.lookup(encoding.strip())
        # A declaration that was read as single bytes cannot declare two-byte characters.
        return None if codec.name.startswith(("utf-16", "utf-32")) else data.decode(codec.name)
    except (LookupError, UnicodeError, ValueError, AssertionError):
        return None


def _wide(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte-order mark, detected by the positions of the zero bytes."""
    if len(sample) < 4 or b"\x00" not in sample:
        return None
    sample = sample[: len(sample) // 4 * 4]
    zeros = [sample[place::4].count(0) / (len(sample) // 4) for place in range(4)]
    if min(zeros[2], zeros[3]) > 0.95 and zeros[0] < 0.3:
        return "utf-32-le"
    if min(zeros[0], zeros[1]) > 0.95 and zeros[3] < 0.3:
        return "utf-32-be"
    even, odd = (zeros[0] + zeros[2]) / 2, (zeros[1] + zeros[3]) / 2
    if odd > 0.05 and even < 0.02:
        return "utf-16-le"
    if even > 0.05 and odd < 0.02:
        return "utf-16-be"
    return None


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    found = from_bytes(data[:_SAMPLE], cp_exclusion=[*_NEVER_GUESSED]).best()
    guessed = found.encoding if found else "cp1252"
    if east_asian := _east_asian(data[:_SAMPLE]):
        return east_asian
    # A few high bytes among ASCII letters are accents; two such letters in a row would decode as one East Asian character.
    if guessed in _TWO_BYTE and sum(byte > 0x7F for byte in data[:2000]) < 0.2 * len(data[:2000]):
        return "cp1252"
    # Western code pages differ in few characters, and a short text gives no evidence for a rare one.
    rare = found is not None and found.coherence > 0.5 and len(data) > 500
    return "cp1252" if guessed in _WESTERN and not rare else guessed


_WESTERN = frozenset("cp1250 cp1252 cp1254 cp1257 latin_1 iso8859_15 iso8859_3 iso8859_4 iso8859_9".split())
_TWO_BYTE = frozenset("big5 big5hkscs cp949 cp950 euc_kr gb18030 gbk gb2312 cp932 shift_jis euc_jp".split())
# Every language has characters so frequent that their absence reveals the wrong encoding.
_FREQUENT = {
    "cp932": "のはをにがたでとしてい、。るもなっ",
    "euc_jp": "のはをにがたでとしてい、。るもなっ",
    "cp949": "이다는의가에을고하지한를은로서",
    "gb18030": "的是不了在有人我一这中大，。和为",
    "big5": "的是不了在有人我一這中大，。和為",
}


def _east_asian(sample: bytes) -> str | None:
    """The East Asian encoding in which the text reads like its language; None if there is none."""
    shares: dict[str, float] = {}
    for encoding, frequent in _FREQUENT.items():
        text = sample.decode(encoding, errors="replace")
        if text.count("\ufffd") <= 1 + len(text) // 500:  # the sample may end in half a character
            shares[encoding] = sum(map(text.count, frequent)) / (1 + sum(char > "\x7f" for char in text))
    best = max(shares, key=lambda encoding: shares[encoding], default=None)
    return best if best and shares[best] > 0.08 else None
