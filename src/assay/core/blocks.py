"""Divides the text of a document into blocks, each with its subject: an option and its description, a labelled value,
an item and the line that introduces its list, a change and its release. By layout alone, whatever the language.
Pure, and linear."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from assay.core.tables import row_spans
from assay.core.types import Document, Section, Table

Span = tuple[int, int]
_Head = tuple[float, Span]  # a line that others stand under, and its indent


class BlockKind(StrEnum):
    heading = "heading"  # of a section, or a line with nothing but what stands below it
    paragraph = "paragraph"
    item = "item"  # of a list or a changelog
    option = "option"  # a term with its description
    key_value = "key_value"  # a label and its value, on one line
    row = "row"  # of a table, or its header
    code = "code"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """`text[start:end]`, without surrounding white space."""

    start: int
    end: int
    kind: BlockKind
    label: Span | None = None  # its own term or label, inside the block
    under: tuple[Span, ...] = ()  # the lines above that it stands under, outermost first


MOST_UNDER = 3  # lines, the nearest
SHOWN_SUBJECT = 160  # characters
_FAR = 20_000  # characters before a block in which the lines that it stands under are looked for
_TAB = 8
_TERM, _TERM_LINES = 100, 3  # characters of a line of a term, and lines
_LABEL = 40  # characters
_VALUE_LINE = 120  # characters of a labelled value that stands alone
_WRAPPED = 60  # characters; a shorter line was not wrapped, but ended
_STEP = 0.1  # by which `**` is below `*`; half of it, by which a list is below a line with the same indent

_LINE = re.compile(r"[ \t]*\S[^\n]*")
_ITEM = re.compile(
    r"(?:[-+•‣◦▪▫●○■□►·–—]|(?P<stars>\*{1,4})|\(?(?:\d{1,3}(?:\.\d{1,3}){0,3}|[A-Za-z]|[ivxIVX]{1,5})[.)])[ \t]+(?=\S)"
)
_OPTION = re.compile(r"(?:--?[^\W_][^\s]*|--?[?@]|/[A-Za-z?](?=[\s,:]))(?:[ ,|=][^\s].{0,80}?)??(?=[ ]{2,}|\t|[ \t]*$)")
_PAIR = re.compile(
    rf"(?=\S)(?P<label>[^:：=.;!?\n\t]{{1,{_LABEL}}}?)"
    r"(?:[ \t]*+(?:[:：](?=[ \t\u3000])|：)|[ \t]++=(?=[ \t])|[ ]*+\t)[ \t\u3000]*+(?=\S)"
)
_COLUMNS = re.compile(rf"(?P<term>\S(?:[^\n]{{0,{_LABEL}}}?[^\s.!?,;])??)(?:[ ]{{2,}}|\t+)(?=\S)")
_END_OF_SENTENCE = re.compile(r"[.!?…。！？;；,，][\"'”’»)\]]*$")
_RULE = re.compile(r"([=\-~*_#^\"])\1{2,}")
_CODE = re.compile(r"[{};]$|^[\])}]|^(?:</|#include\b|//)|^\w+ ?= ?\S+$")


def find_blocks(
    text: str, sections: Sequence[Section] = (), tables: Sequence[Table] = (), within: Span | None = None
) -> list[TextBlock]:
    """The blocks of a text, or of a span of it, in order. They do not overlap, and outside them there is only white space."""
    found: list[TextBlock] = []
    at, last = within or (0, len(text))
    outline = _Outline(text)
    for start, end, kind in _given(sections, [each for each in tables if each.start < last and at < each.end]):
        start, end = max(start, at), min(end, last)
        if start >= end:
            continue
        outline.read(at, start)
        if kind is BlockKind.heading:
            found += outline.finished()
            outline = _Outline(text)
        if (span := _trimmed(text, start, end)) is not None:
            outline.blocks.append(TextBlock(*span, kind))
        at = end
    outline.read(at, last)
    return [*found, *outline.finished()]


def blocks_around(document: Document, start: int, end: int) -> list[TextBlock]:
    """The blocks of a span of a document, with what they stand under: read from the heading above it, if that is near."""
    above = max((each.start for each in document.sections if each.start <= start), default=0)
    begin = max(above, document.text.find("\n", max(0, start - _FAR)) if start > _FAR else 0)
    found = find_blocks(document.text, document.sections, document.tables, (min(begin, start), end))
    return [replace(each, start=max(each.start, start)) for each in found if each.end > start]


def subjects(text: str, block: TextBlock, start: int) -> list[str]:
    """What a block is about, as far as it is written above `start`: the lines that it stands under, and its own term."""
    spans = (*block.under, *((block.label,) if block.label else ()))
    return [_short(text[left:right]) for left, right in spans if left < start]


def block_at(blocks: Sequence[TextBlock], offset: int) -> TextBlock | None:
    """The block that holds an offset, or the next one."""
    index = bisect_right(blocks, offset, key=lambda block: block.end)
    return blocks[index] if index < len(blocks) else None


def _short(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= SHOWN_SUBJECT else line[: SHOWN_SUBJECT - 1].rstrip() + "…"


def _given(sections: Sequence[Section], tables: Sequence[Table]) -> list[tuple[int, int, BlockKind]]:
    """The blocks that the parser has found: headings, rows, and what stands above the first row of a table."""
    rows = [(start, end, BlockKind.row) for table in tables for start, end in row_spans(table)]
    heads = [(table.start, spans[0][0], BlockKind.row) for table in tables if (spans := row_spans(table)[:1])]
    return sorted([*((each.start, each.end, BlockKind.heading) for each in sections), *heads, *rows])


def _trimmed(text: str, start: int, end: int) -> Span | None:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    return (left, start + len(piece.rstrip())) if left < end else None


@dataclass(frozen=True, slots=True)
class _Line:
    start: int  # of the words
    end: int
    indent: float
    words: str
    apart: bool  # below an empty line, or at the beginning
    moved: float = 0  # how far it is indented beyond the block that it is level with

    @property
    def open(self) -> bool:
        """Whether it is a short line of words and no sentence ends with it, as a title, a term or an introduction does."""
        worded = "\t" not in self.words and sum(map(str.isalpha, self.words[:_TERM])) > 1
        return worded and len(self.words) <= _TERM and not _END_OF_SENTENCE.search(self.words)


def _lines(text: str, start: int, end: int) -> Iterator[_Line]:
    before = start
    for match in _LINE.finditer(text, start, end):
        whole = match[0].rstrip()
        words = whole.lstrip(" \t")
        blanks = whole[: len(whole) - len(words)]
        apart = before == start or text.count("\n", before, match.start()) > 1
        before = match.start() + len(whole)
        yield _Line(before - len(words), before, len(blanks.expandtabs(_TAB)), words, apart)


@dataclass(slots=True)
class _Open:
    """The block that lines are added to."""

    first: _Line
    last: _Line
    kind: BlockKind
    indent: float
    label: Span | None
    under: tuple[Span, ...]
    title_end: int = 0  # the end of the line before the last
    body: float = -1  # the indent of its description
    lines: int = 1
    code: int = 0

    @property
    def is_line(self) -> bool:
        return self.lines == 1 and len(self.last.words) <= _TERM

    def add(self, line: _Line) -> None:
        if self.body < 0 and line.indent > self.indent:
            self.body = line.indent
        self.title_end, self.last = self.last.end, line
        self.lines += 1
        self.code += bool(_CODE.search(line.words))

    def block(self) -> TextBlock:
        plain = self.kind in {BlockKind.paragraph, BlockKind.option}
        kind = BlockKind.code if plain and self.lines > 1 and 2 * self.code > self.lines else self.kind
        return TextBlock(self.first.start, self.last.end, kind, self.label, self.under)


@dataclass(frozen=True, slots=True)
class _List:
    """A list that may go on after other text: its introduction, and the first line of its last item."""

    intro: _Head
    last: Span


class _Outline:
    """Reads the lines of a section one by one. `heads` are the lines that what is further indented stands under."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[TextBlock] = []
        self.heads: list[_Head] = []
        self.open: _Open | None = None
        self.lists: dict[tuple[float, str], _List] = {}
        self.since = 0  # blocks at the last item

    def read(self, start: int, end: int) -> None:
        lines = [*_lines(self.text, start, end)]
        for place, line in enumerate(lines, start=1):
            self._add(line, lines[place] if place < len(lines) else None)
        self._close()

    def finished(self) -> list[TextBlock]:
        self._close()
        return self.blocks

    def _add(self, line: _Line, below: _Line | None) -> None:
        if item := _ITEM.match(line.words):
            sign = "0" if any(map(str.isalnum, item[0])) else item[0].strip()
            line = replace(line, indent=line.indent + _STEP * (len(item["stars"] or "*") - 1))
            self._add_member(line, BlockKind.item, sign, (line.start + item.end(), line.end))
        elif not self._describes(line) and (term := _term(line, self.open, below)):
            kind, label = term
            held = self.open
            if held is not None and not line.apart and held.kind is kind and 0 < held.body == _column(line):
                line = replace(
                    line, indent=held.indent, moved=line.indent - held.indent
                )  # `    --all  text` below `-a, --any  text`
            self._add_member(line, kind, kind, label)
        elif not self._goes_on(line):
            self._start(line, BlockKind.paragraph)

    def _describes(self, line: _Line) -> bool:
        """Whether a line goes on with a description or a paragraph, whatever it opens with."""
        held = self.open
        if held is None or line.apart:
            return False
        wrapped = held.kind is BlockKind.paragraph and len(held.last.words) >= _WRAPPED
        return (held.kind is BlockKind.option and held.body == line.indent) or (wrapped and held.indent == line.indent)

    def _goes_on(self, line: _Line) -> bool:
        """Add a line to the open block, if it belongs to it."""
        held = self.open
        if held is None or line.apart:
            return False
        deeper = line.indent > held.indent
        if held.kind is BlockKind.paragraph:
            if deeper and held.lines <= _TERM_LINES and _opens(held):  # a term over its description
                held.kind, held.label = BlockKind.option, (held.first.start, held.last.end)
                self.heads.append((held.indent, held.label))
            elif deeper or (line.indent < held.indent and held.lines > 1):
                return False
            elif line.indent < held.indent:  # only the first line of this paragraph was indented
                held.indent = line.indent
        elif not deeper and not (held.kind is BlockKind.item and len(held.last.words) >= _WRAPPED):
            return False
        held.add(line)
        return True

    def _add_member(self, line: _Line, kind: BlockKind, sign: str, head: Span) -> None:
        """Start an item, an option or a labelled value, under the line that introduces all of them."""
        key = (line.indent, sign)
        known = self.lists.get(key)
        intro = self._introduction(line, known)
        self._close()
        directly = self.since == len(self.blocks)
        if intro is None and known is not None and (directly or _numbered(self.text, known.intro[1])):
            intro = known.intro
            self._tie(known)
        self._start(line, kind, None if kind is BlockKind.item else head, intro)
        self.heads.append((line.indent, head))
        self.lists = {place: each for place, each in self.lists.items() if place[0] < line.indent}
        if intro is not None:
            self.lists[key] = _List(intro, head)
        self.since = len(self.blocks) + 1

    def _introduction(self, line: _Line, known: _List | None) -> _Head | None:
        """The line directly above a list that introduces it, and its indent."""
        held = self.open
        if held is None or held.kind is not BlockKind.paragraph or held.indent > line.indent or not _opens(held):
            return None
        if "\t" in line.words and held.last.words[-1] not in ":：":
            return None  # columns: the line above may be another row
        span = (self._last_sentence(held), held.last.end)
        if known is not None and not _replaces(self.text, span, known.intro[1]):
            return None
        held.kind = BlockKind.heading if held.is_line else held.kind
        return min(held.indent, line.indent - _STEP / 2), span

    def _last_sentence(self, held: _Open) -> int:
        """Where the sentence begins that introduces what follows; in a short paragraph, all of it does."""
        if held.last.end - held.first.start <= SHOWN_SUBJECT:
            return held.first.start
        before = self.text.rfind(". ", held.first.start, held.last.end)
        return before + 2 if before >= 0 else held.last.start

    def _tie(self, known: _List) -> None:
        """Put the text between two items of one list under the first of them."""
        for place in range(self.since, len(self.blocks)):
            block = self.blocks[place]
            if not block.under:
                self.blocks[place] = replace(block, under=(known.intro[1], known.last))

    def _start(self, line: _Line, kind: BlockKind, label: Span | None = None, intro: _Head | None = None) -> None:
        held = self.open
        if held is not None and held.kind is BlockKind.paragraph and line.indent > held.indent and _opens(held):
            held.kind = BlockKind.heading if held.is_line else held.kind
            self.heads.append((held.indent, (self._last_sentence(held), held.last.end)))
        self._close()
        self._leave(line.indent - _STEP / 2)
        self.lists = {place: each for place, each in self.lists.items() if place[0] <= line.indent}
        if intro is not None and intro not in self.heads:
            self.heads.append(intro)
        self.open = _Open(line, line, kind, line.indent, label, tuple(span for _, span in self.heads[-MOST_UNDER:]))
        self.open.body = _column(line) if kind is BlockKind.option else -1
        self.open.code += bool(_CODE.search(line.words))

    def _leave(self, indent: float) -> None:
        while self.heads and self.heads[-1][0] >= indent:
            self.heads.pop()

    def _close(self) -> None:
        held, self.open = self.open, None
        if held is None:
            return
        if held.kind is BlockKind.paragraph and held.lines > 1 and _RULE.fullmatch(held.last.words):
            held.kind, held.under = BlockKind.heading, ()  # underlined: all that follows stands under it
            self.heads, self.lists = [(-1, (held.first.start, held.title_end))], {}
        self.blocks.append(held.block())


def _opens(held: _Open) -> bool:
    """Whether a paragraph may be a term or a title of what follows."""
    colon = held.last.words.endswith((":", "："))
    return colon or (held.lines <= _TERM_LINES and held.first.open and held.last.open)


def _term(line: _Line, held: _Open | None, below: _Line | None) -> tuple[BlockKind, Span] | None:
    """The kind and the term of a line that opens with one: an option, a label before its value, a column of terms."""
    if option := _OPTION.match(line.words):
        return BlockKind.option, (line.start, line.start + option.end())
    near = below is not None and not below.apart
    listed = held is not None and not line.apart and held.kind is BlockKind.key_value and held.indent == line.indent
    if pair := _PAIR.match(line.words):
        alone = line.apart and not near and len(line.words) <= _VALUE_LINE
        beside = near and below is not None and below.indent == line.indent and bool(_PAIR.match(below.words))
        if (alone or beside or listed) and len(pair["label"].split()) <= 6 and any(map(str.isalpha, pair["label"])):
            return BlockKind.key_value, (line.start, line.start + pair.end("label"))
    if columns := _COLUMNS.match(line.words):
        column = line.indent + columns.end()
        same = near and below is not None and (below.indent == column or _column(below) == column)
        above = held is not None and not line.apart and held.kind is BlockKind.option and held.body == column
        if same or above:
            return BlockKind.option, (line.start, line.start + columns.end("term"))
    return None


def _column(line: _Line) -> float:
    match = _COLUMNS.match(line.words)
    return line.indent + line.moved + match.end() if match else -1


def _numbered(text: str, span: Span) -> bool:
    return any(map(str.isdigit, text[slice(*span)]))


def _replaces(text: str, new: Span, known: Span) -> bool:
    """Whether a line introduces a new list, rather than being text between two items: a release follows a release."""
    return not _numbered(text, known) or text[new[1] - 1] in ":：" or _shape(text, new) == _shape(text, known)


def _shape(text: str, span: Span) -> str:
    first = text[slice(*span)].split(maxsplit=1)[0].casefold()
    return re.sub(r"\d+(?:\W\d+)*", "0", first)
