"""Builds a document's text from its lines: paragraphs, words broken at line ends, headings. Pure.

Every word keeps its page and character indices, so any span of the text can be located on its page.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from assay.core.printable import clean_text
from assay.core.types import Section, Table
from assay.ingest.metadata.fill import FrontLine
from assay.ingest.pdf.layout import BULLET, TextLine
from assay.ingest.pdf.tables import PlacedLine, find_tables

LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
ENDS = re.compile(r"[.!?:;…。！？][\"'”’»)\]\d*†‡]*$")
HYPHENS = "-‐"
NUMBERED = re.compile(
    r"^(?:(?P<digits>\d{1,2}(?:\.\d{1,2}){0,4})\.?|(?P<letter>[A-Z](?:\.\d{1,2}){0,3})\.?|(?P<roman>[IVX]{1,5})\."
    r"|(?:chapter|section|appendix|part)\s+[\dA-ZIVX]+[.:]?)\s+(?=\S*[^\W\d_])",
    re.IGNORECASE,
)
NAMED = re.compile(
    r"(?:abstract|summary|introduction|background|related work|methods?|materials and methods|methodology|results?"
    r"|results and discussion|discussion|conclusions?|limitations|acknowledge?ments?|references|bibliography|appendix"
    r"|zusammenfassung|einleitung|literatur|résumé|références|resumen|referencias)",
    re.IGNORECASE,
)
KEPT_APART = re.compile("self|well|high|low|long|short|cross|non|ex|all|half|quasi")
KEPT_BEHIND = re.compile(
    "based|aware|driven|like|specific|level|free|scale|oriented|optimi[sz]ed|style|shot|trained|grained|dependent|known|the"
    "|of|to|art|end|independent|agnostic|guided|related|term|time|year|old|sized|shaped|wise"
)
CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|table|tab\.|box|chart|exhibit|plate|abbildung|abb\.|tabelle)\s*\d", re.IGNORECASE
)
LONGEST_HEADING = 160
MOST_BETWEEN = 12  # paragraphs: a table may be several


@dataclass(slots=True)
class WordPositions:
    """The origin of each word of the text. Columns rather than objects: a book has half a million words."""

    start: array[int] = field(default_factory=lambda: array("q"))
    length: array[int] = field(default_factory=lambda: array("q"))
    page: array[int] = field(default_factory=lambda: array("q"))
    first: array[int] = field(default_factory=lambda: array("q"))
    last: array[int] = field(default_factory=lambda: array("q"))

    def within(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(page, first, last) of the engine's characters under `text[start:end]`, word by word."""
        index = max(0, bisect_right(self.start, start) - 1)
        while index < len(self.start) and self.start[index] < end:
            at, length = self.start[index], self.length[index]
            low, high = max(start, at) - at, min(end, at + length) - at
            if low < high:
                first, last = self.first[index], self.last[index]
                if last - first != length:  # a ligature or a dropped mark inside: extend to the engine's characters
                    low, high = low * (last - first) // length, -(-high * (last - first) // length)
                yield self.page[index], first + low, first + high
            index += 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together; `pages` has the page of each."""

    lines: tuple[TextLine, ...]
    pages: tuple[int, ...]

    @property
    def text(self) -> str:
        return " ".join(line.text for line in self.lines)


@dataclass(frozen=True, slots=True)
class PdfText:
    """The text of a document, with the data to map spans back to pages."""

    text: str
    words: WordPositions
    pages: tuple[int, ...]
    sections: tuple[Section, ...]
    front: tuple[FrontLine, ...]
    tables: tuple[Table, ...] = ()
    seams: tuple[int, ...] = ()  # where it is uncertain that the text goes on
    lines: tuple[PlacedLine, ...] = ()


def build_text(
    pages: Sequence[list[TextLine]],
    turned: Sequence[list[TextLine]],
    heights: Sequence[float],
    outline: Mapping[tuple[int, str], int],
) -> PdfText:
    """`turned` are lines that run up the page; `outline` is the file's own table of contents: (page, folded title) → level."""
    body = _body_size(pages)
    paragraphs = _with_turned(join_interrupted(list(group_paragraphs(pages, body))), turned)
    levels = _levels(paragraphs, body, outline)
    vocabulary = Counter(
        word.strip(".,;:()[]“”\"'") for lines in pages for line in lines for word in line.text.casefold().split()[:-1]
    )
    out = _PdfTextWriter(vocabulary)
    sections: list[Section] = []
    front: list[FrontLine] = []
    placed: list[PlacedLine] = []
    starts: dict[int, int] = {}
    seams: list[int] = []
    for number, paragraph in enumerate(paragraphs):
        written = len(out.parts)
        start, lines = out.paragraph(paragraph, starts)
        if paragraph.lines[0].seam:
            seams.append(start)
        level = levels.get(number)
        if level:
            sections.append(Section(" ".join("".join(out.parts[written:]).split()), level, start, out.length))
        for line, page, words in zip(paragraph.lines, paragraph.pages, lines, strict=True):
            low, high = words[0][0], words[-1][1]
            placed.append(PlacedLine(line, page, low, high, words))
            if page < 2 and len(front) < 150:
                y = line.y0 / max(heights[page], 1.0)
                text = "\t".join(run.text for run in line.runs) if line.cells else line.text
                front.append(FrontLine(text, low, high, page, line.size, line.bold, y, number, line.column < 0))
    offsets, reached = [], 0
    for page in range(len(pages)):
        reached = max(reached, starts.get(page, reached))
        offsets.append(reached)
    # a page without words begins where the next page with words does
    following = out.length
    for page in reversed(range(len(pages))):
        if page in starts:
            following = starts[page]
        else:
            offsets[page] = following
    offsets = offsets or [0]
    offsets[0] = 0
    text, tables = "".join(out.parts), find_tables(placed)
    return PdfText(text, out.words, tuple(offsets), tuple(sections), tuple(front), tables, tuple(seams), tuple(placed))


@dataclass(slots=True)
class _PdfTextWriter:
    vocabulary: Counter[str]
    parts: list[str] = field(default_factory=list)
    length: int = 0
    words: WordPositions = field(default_factory=WordPositions)

    def add(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def paragraph(self, paragraph: Paragraph, starts: dict[int, int]) -> tuple[int, list[tuple[tuple[int, int], ...]]]:
        """Write a paragraph; returns its start and, for each line, where its words are."""
        if self.length:
            self.add("\n\n")
        start, spans = self.length, []
        following_lines = (*paragraph.lines[1:], None)
        for line, page, following in zip(paragraph.lines, paragraph.pages, following_lines, strict=True):
            starts.setdefault(page, self.length)
            words: list[tuple[int, int]] = []
            glued = self.line(line, page, following, words)
            spans.append(tuple(words))
            if following is not None and not glued:
                self.add("\n" if line.cells or following.cells or _stopped(line, following) else " ")
        return start, spans

    def line(self, line: TextLine, page: int, following: TextLine | None, spans: list[tuple[int, int]]) -> bool:
        """Write a line, noting where each word is; true if its last word continues on the next line."""
        glued = False
        for number, run in enumerate(line.runs):
            if number:
                self.add("\t" if line.cells else " ")
            for index, word in enumerate(run.words):
                if index:
                    self.add(" ")
                text = normalise_word(word.text)
                last = word.last
                if following is not None and word is line.runs[-1].words[-1] and text[-1:] in HYPHENS and text[:-1]:
                    next_word = normalise_word(following.runs[0].words[0].text)
                    glued = text[-2].isalpha() and next_word[:1].isalnum()
                    if glued and next_word[:1].islower() and self.joins(text[:-1], next_word):
                        text, last = text[:-1], last - 1
                spans.append((self.length, self.length + len(text)))
                if text:
                    self.words.start.append(self.length)
                    self.words.length.append(len(text))
                    self.words.page.append(page)
                    self.words.first.append(word.first)
                    self.words.last.append(max(last, word.first + 1))
                    self.add(text)
        return glued

    def joins(self, left: str, right: str) -> bool:
        """Whether a hyphen is there only because the line ended. The document's own spelling decides, then the parts."""
        left_word = re.split(r"[^\w’'-]", left)[-1].casefold()
        right_word = re.match(r"[\w’'-]*", right)[0].casefold()  # type: ignore[index]
        whole, apart = self.vocabulary[left_word + right_word], self.vocabulary[f"{left_word}-{right_word}"]
        if whole or apart:
            return whole >= apart
        if not left_word or "-" in left_word or left_word[-1:].isdigit():
            return False
        if KEPT_APART.fullmatch(left_word) or KEPT_BEHIND.fullmatch(right_word):
            return False
        both = len(left_word) >= 4 and len(right_word) >= 4
        return not (both and min(self.vocabulary[left_word], self.vocabulary[right_word]) >= 2)


def _stopped(line: TextLine, following: TextLine) -> bool:
    """Whether the author ended the line: the next word would have fitted easily, as in an address, a poem or code."""
    first = following.runs[0].words[0]
    room = line.right - line.x1 - (first.x1 - first.x0)
    return room > 0.3 * (line.right - line.left) and line.x0 < line.left + 0.25 * (line.right - line.left)


def normalise_word(word: str) -> str:
    """The word as it is searched for: ligatures expanded, invisible marks removed."""
    return word if word.isascii() and word.isprintable() else clean_text(word.translate(LIGATURES))


def _with_turned(paragraphs: list[Paragraph], turned: Sequence[list[TextLine]]) -> list[Paragraph]:
    """Insert a page's rotated lines before its last paragraph, so that they never split one that continues on the next page."""
    for page, lines in enumerate(turned):
        if lines:
            opening = [index for index, paragraph in enumerate(paragraphs) if paragraph.pages[0] == page]
            before = sum(paragraph.pages[0] < page for paragraph in paragraphs)
            at = opening[-1] if len(opening) > 1 else before + len(opening)
            paragraphs[at:at] = [Paragraph((line,), (page,)) for line in lines]
    return paragraphs


def group_paragraphs(pages: Sequence[list[TextLine]], body: float) -> Iterator[Paragraph]:
    """Group lines; a paragraph may continue in the next column or page."""
    pitch = _pitches(pages)
    flat = [(line, page) for page, lines in enumerate(pages) for line in lines]
    current: list[tuple[TextLine, int]] = []
    for index, (line, page) in enumerate(flat):
        following = flat[index + 1] if index + 1 < len(flat) else None
        after = following[0] if following and following[1] == page and following[0].column == line.column else None
        if current and _begins(current[-1], (line, page), after, pitch, body):
            yield Paragraph(*zip(*current, strict=True))
            current = []
        current.append((line, page))
    if current:
        yield Paragraph(*zip(*current, strict=True))


def _goes_on(before: TextLine, line: TextLine) -> bool:
    """Whether a sentence that stops at the end of a column goes on in `line`, the first of another column."""
    if ENDS.search(before.text) or BULLET.match(line.runs[0].words[0].text) or CAPTION.match(line.text):
        return False
    if before.text[-1:] in HYPHENS or before.text[-1:] == "," or line.text[:1].islower():
        return True
    is_full = before.right - before.x1 < 0.25 * (before.right - before.left) and len(before.text.split()) >= 3
    return is_full and line.x0 - line.left < 0.5 * line.size


def join_interrupted(paragraphs: list[Paragraph]) -> list[Paragraph]:
    """Join the parts of a paragraph that a footnote, a caption or a table stands between.

    What stands between follows the paragraph; on the page where the paragraph begins, if it ends on the next, it precedes it.
    """
    joined: list[Paragraph] = []
    rest = list(reversed(paragraphs))
    while rest:
        paragraph = rest.pop()
        after = _continuation(paragraph, rest)
        if after is None:
            joined.append(paragraph)
            continue
        between = [rest.pop() for _ in range(after)]
        following = rest.pop()
        rest.append(Paragraph(paragraph.lines + following.lines, paragraph.pages + following.pages))
        if following.pages[0] == paragraph.pages[-1]:
            rest[-1:-1] = reversed(between)
        else:
            joined += [other for other in between if other.pages[-1] == paragraph.pages[-1]]
            rest[-1:-1] = reversed([other for other in between if other.pages[-1] != paragraph.pages[-1]])
    return joined


def _continuation(paragraph: Paragraph, rest: Sequence[Paragraph]) -> int | None:
    """How many paragraphs (the next is the last of `rest`) stand between this one and its continuation, if it has one."""
    last, page = paragraph.lines[-1], paragraph.pages[-1]
    if last.cells or last.bold or ENDS.search(last.text):
        return None
    caption: TextLine | None = None  # the last line of one
    for count, other in enumerate(reversed(rest[-MOST_BETWEEN:])):
        line = other.lines[0]
        close = caption is not None and caption.column == line.column and line.y0 - caption.y1 < 0.5 * line.size
        captioned = close or bool(CAPTION.match(line.text))
        caption = other.lines[-1] if captioned else None
        heads = line.size > 1.1 * last.size or (line.bold and not captioned and not line.cells)
        if heads or line.seam or other.pages[0] > page + 1:
            return None
        if abs(line.size - last.size) <= 0.25 and not line.cells and not captioned:
            moved = line.column != last.column or other.pages[0] != page
            return count if count and moved and _goes_on(last, line) else None
    return None


def _pitches(pages: Sequence[list[TextLine]]) -> dict[float, float]:
    """The usual line distance for each font size."""
    steps: dict[float, list[float]] = {}
    for lines in pages:
        for before, line in pairwise(lines):
            if before.column == line.column and before.size == line.size and line.y0 > before.y0:
                steps.setdefault(line.size, []).append(line.y0 - before.y0)
    return {size: median(found) for size, found in steps.items() if len(found) >= 3}


def _begins(
    last: tuple[TextLine, int],
    now: tuple[TextLine, int],
    after: TextLine | None,
    pitch: Mapping[float, float],
    body: float,
) -> bool:
    (before, before_page), (line, page) = last, now
    if line.seam:
        return True
    em = max(line.size, 4.0)
    ended = bool(ENDS.search(before.text))
    large = min(before.size, line.size) > 1.12 * body
    if abs(before.size - line.size) > max(0.5, 0.08 * line.size) or (before.bold != line.bold and not large):
        return True
    if before.cells and line.cells and page == before_page and before.column == line.column:
        return line.y0 - before.y0 > 2.5 * max(before.y1 - before.y0, em)
    if before.cells != line.cells:
        return True
    first = line.runs[0].words[0].text
    if page != before_page or line.column != before.column:
        return not _goes_on(before, line)
    step = line.y0 - before.y0
    if (line.bold or large) and not ended and 0 < step < 1.7 * em and not BULLET.match(first):
        return bool(NUMBERED.match(line.text))  # a heading over several lines has ragged line ends
    if step > 1.35 * min(pitch.get(line.size, 1.3 * em), 2.2 * em) or step < -0.5 * em:
        return True
    short = before.x1 < before.right - max(2 * em, 0.12 * (before.right - before.left))
    if BULLET.match(first) and (not (first[:1].isalnum() or first[:1] in "([") or ended or short):
        return True
    if line.x0 - line.left > 0.8 * em >= before.x0 - before.left and (ended or short):
        return after is None or after.x0 < line.x0 - 0.5 * em or before.x0 < line.x0 - 0.8 * em
    if before.x0 - line.x0 > 0.8 * em and ended and short:
        return True  # the first line of a hanging entry
    return ended and short and not first[:1].islower()


def _body_size(pages: Sequence[list[TextLine]]) -> float:
    sizes: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def fold_title(title: str) -> str:
    """A title normalised so that tables of contents and pages match."""
    return re.sub(r"\W+", "", NUMBERED.sub("", title)).casefold()


def _levels(paragraphs: Sequence[Paragraph], body: float, outline: Mapping[tuple[int, str], int]) -> dict[int, int]:
    """Which paragraphs are headings, and their levels. The file's own outline takes precedence, then numbering, then type."""
    styles: dict[int, tuple[float, bool]] = {}
    deep: dict[int, int] = {}
    for index, paragraph in enumerate(paragraphs):
        text, line = paragraph.text, paragraph.lines[0]
        listed = outline.get((paragraph.pages[0], fold_title(text))) if len(text) <= 300 else None
        if listed:
            deep[index] = listed
        elif looks_like_heading(paragraph, body):
            styles[index] = (round(line.size * 2) / 2, line.bold)
            numbered = NUMBERED.match(text)
            if numbered:
                mark = numbered["digits"] or numbered["letter"] or ""
                deep[index] = mark.count(".") + 1
    known: dict[tuple[float, bool], int] = {}
    for index, style in styles.items():
        if index in deep:
            known[style] = min(known.get(style, 9), deep[index])
    ranked = sorted({size for size, _ in styles.values() if size > body}, reverse=True)
    for index, style in styles.items():
        if index not in deep:
            by_size = 1 + sum(size > style[0] for size in ranked)
            deep[index] = known.get(style, 1 if NAMED.fullmatch(paragraphs[index].text) else min(by_size, 4))
    return deep


def looks_like_heading(paragraph: Paragraph, body: float) -> bool:
    text, line = paragraph.text, paragraph.lines[0]
    if len(paragraph.lines) > 3 or not 2 <= len(text) <= LONGEST_HEADING or any(line.cells for line in paragraph.lines):
        return False
    named = bool(NAMED.fullmatch(re.sub(r"^[\dIVX.]+\s+", "", text).rstrip(".:")))
    numbered = NUMBERED.match(text)
    letters = [char for char in text if char.isalpha()]
    if len(letters) < 3 or len(letters) < 0.5 * len(text.replace(" ", "")):
        return False
    opens = (text[numbered.end() :] if numbered else text).lstrip("“\"'(")[:1]
    if BULLET.match(text.split()[0]) and not numbered:
        return False
    if (opens.islower() and line.size < 1.3 * body) or (
        text[-1] in ".,;" and not (numbered and len(text) < 60) and not named
    ):
        return False
    larger = line.size >= 1.12 * body and line.size > body + 0.8
    shouted = len(letters) >= 4 and all(char.isupper() for char in letters)
    if named and (shouted or bool(numbered) or len(text) < 20):
        return True
    return larger or (line.bold and line.size >= 0.95 * body) or (shouted and bool(numbered))
