"""Extracts: what documents say to a question, in their own words. Passages are cut into pieces, an answer model reads
them, and the best are shown with the words that answer marked. Pure; nothing here depends on a language."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from assay.answer.weigh import quote
from assay.core.blocks import BlockKind, Span, TextBlock, blocks_around, subjects
from assay.core.events import Drafted
from assay.core.tables import tables_within
from assay.core.types import BETWEEN, Block, Claim, Conflict, Document, Evidence, Quote, Shape
from assay.language.disputes import among_documents, statements
from assay.language.injection import is_command
from assay.language.sentences import WIDE, split_sentences
from assay.language.terms import fold_case, inverse_frequency
from assay.models.llm import Reading
from assay.tables.parts import TablePart, quoted_part

WORDS, ROWS = 120, 12  # of an extract at most
SHOWN = 3  # extracts
SIGNS = 900  # characters of an extract at most, in any script
PASSAGES, OTHERS = 8, 4  # passages that are read: the best, and the best of further documents
READ = 16  # pieces that the answer model reads: those that say most of the question
SAID = 10.0  # weight of the share of the question that a piece says, beside the log-odds that it answers: decision 24
ORDERS = 4.0  # log-odds by which a piece that gives orders to a model goes down
COMPARED = 8  # pieces that are compared for values that differ
FOUND, PERHAPS = 0.85, 0.1  # probability from which on an answer is said to be found, and perhaps to be there
BETWEEN_VALUES = " / "
LACKING = 0.5  # probability, at most, of what lacks a number of the question
WORD, PRINTED = re.compile(r"\w+"), re.compile(r"\S+")
CODE = re.compile(r"\b[^\W\d]*+\d(?:[\w.,:/-]{0,40}\w)?")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a passage that can be shown by itself. `under` is what it stands under: title, headings, subject."""

    quote: Quote
    key: str
    passage: str
    under: str

    @property
    def text(self) -> str:
        """What an answer model reads."""
        return f"{self.under}: {self.quote.text}" if self.under else self.quote.text


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """A piece, and what the answer model says of it."""

    piece: Piece
    reading: Reading | None
    said: float = 0.0  # the share of the question that it says
    lacks: bool = False  # a number or a code of the question

    @property
    def probability(self) -> float:
        """That it answers. What lacks 1.4.1 is not known to answer a question about it, however well it reads."""
        read = self.reading.answers if self.reading else 0.0
        return min(read, LACKING) if self.lacks else read

    @property
    def score(self) -> float:
        odds = log_odds(self.probability) if self.reading else 0.0
        return odds + SAID * self.said - ORDERS * is_command(self.piece.quote.text)

    @property
    def mark(self) -> Quote | None:
        """The words that answer, if they are in the piece itself."""
        words = self.piece.quote
        before = len(self.piece.text) - len(words.text)
        start, end = (max(0, place - before) for place in self.reading.span) if self.reading else (0, 0)
        marked = words.text[start:end]
        start += len(marked) - len(marked.lstrip())
        marked = marked.strip()
        return Quote(words.doc_id, words.start + start, words.start + start + len(marked), marked) if marked else None


def log_odds(probability: float) -> float:
    near = min(max(probability, 1e-6), 1 - 1e-6)
    return math.log(near / (1 - near))


# --- pieces ---------------------------------------------------------------------------------------------------------


def best_passages(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The best passages, and the best one of each further document, so that one document does not speak for all."""
    best = list(evidence[:PASSAGES])
    for each in evidence[PASSAGES:]:
        if len(best) < PASSAGES + OTHERS and each.passage.doc_id not in {one.passage.doc_id for one in best}:
            best.append(each)
    return best


def pieces(evidence: Sequence[Evidence], document: Callable[[str], Document | None]) -> list[Piece]:
    """The pieces of these passages, best passage first. A piece that two passages share is that of the better one."""
    found: dict[tuple[str, int], Piece] = {}
    for each in evidence:
        source = document(each.passage.doc_id)
        if source is None:
            continue
        start = each.passage.start
        for (left, right), block in cut(source, start, each.passage.end):
            words = quote(each.passage, left - start, right - start)
            under = BETWEEN.join(standing(source, block, left, right))
            found.setdefault((words.doc_id, left), Piece(words, each.key, each.passage.id, under))
    return list(found.values())


def worth_reading(question: str, found: Sequence[Piece]) -> list[Piece]:
    """The pieces that say most of the question, in their order. Reading is what an answer takes its time for."""
    said = said_shares(question, [each.text for each in found])
    best = sorted(range(len(found)), key=lambda place: -said[place])[:READ]
    return [found[place] for place in sorted(best)]


def headings_and_subjects(document: Document, block: TextBlock | None, start: int) -> list[str]:
    return [*document.heading_at(start).split(BETWEEN), *(subjects(document.text, block, start) if block else ())]


def standing(document: Document, block: TextBlock, start: int, end: int) -> list[str]:
    """What a piece stands under and does not say itself: the title, the headings, the lines that introduce it, and the
    header of its table."""
    above = [document.title, *headings_and_subjects(document, block, start)]
    for table in tables_within(document.tables, start, end):
        columns = " | ".join(filter(None, table.columns))
        above += [table.caption, columns] if columns not in document.text[start:end] else [table.caption]
    said = {"", *map(_folded, document.text[start:end].split("\n"))}
    return list(dict.fromkeys(" ".join(each.split()) for each in above if _folded(each) not in said))


def cut(document: Document, start: int, end: int) -> list[tuple[Span, TextBlock]]:
    """The pieces of a span, each with its first block: neighbouring blocks as far as they fit. A heading begins a piece."""
    found: list[tuple[Span, TextBlock, int]] = []  # span, first block, rows
    last: TextBlock | None = None
    for block in blocks_around(document, start, end):
        for left, right in _parts(document.text, block):
            row = block.kind is BlockKind.row
            joins = last is not None and block.kind is not BlockKind.heading and (last.kind is BlockKind.row) == row
            joins = joins or (last is not None and last.kind is BlockKind.heading)
            if found and joins and _fits(document.text[found[-1][0][0] : right], found[-1][2] + row):
                (first, _), head, rows = found[-1]
                found[-1] = (first, right), head, rows + row
            else:
                found.append(((left, right), block, int(row)))
            last = block
    return [(span, block) for span, block, _ in found]


def _fits(text: str, rows: int) -> bool:
    return len(text) <= SIGNS and (rows <= ROWS if rows else len(text.split()) <= WORDS)


def _parts(text: str, block: TextBlock) -> list[Span]:
    """The block; its sentences, if it is too long to be shown whole."""
    if _fits(text[block.start : block.end], 0):
        return [(block.start, block.end)]
    parts = [
        (block.start + left, block.start + right) for left, right in split_sentences(text[block.start : block.end])
    ]
    return [piece for part in parts for piece in _lines(text, *part)]


def _lines(text: str, start: int, end: int) -> Iterable[Span]:
    """A span in parts that fit: whole if it does, else cut between words, or within one that is longer than an extract."""
    while not _fits(text[start:end], 0):
        words = list(islice(PRINTED.finditer(text, start, min(end, start + SIGNS + 1)), WORDS + 1))
        at = words[-1].start() if len(words) > 1 else start + SIGNS
        yield start, start + len(text[start:at].rstrip())
        start = at
    if start < end:
        yield start, end


# --- reading --------------------------------------------------------------------------------------------------------


def read_pieces(question: str, found: Sequence[Piece], readings: Sequence[Reading] | None) -> list[ReadPiece]:
    """The pieces with their readings, if there are any, and with what they say of the question."""
    said = said_shares(question, [each.text for each in found])
    given = readings if readings is not None else [None] * len(found)
    codes = _codes(question)
    lacks = [not codes <= _codes(each.text) for each in found]
    return [ReadPiece(*each) for each in zip(found, given, said, lacks, strict=True)]


def _codes(text: str) -> frozenset[str]:
    """Numbers, versions and codes: words with a digit."""
    return frozenset(each.replace(",", "") for each in CODE.findall(fold_case(text)))


def said_shares(question: str, texts: Sequence[str]) -> list[float]:
    """The share of the question that each text says, by groups of letters: rare ones count more, so that function words of any
    language count little, and other forms of a word count in part."""
    groups = [_letter_groups(each) for each in texts]
    weights = inverse_frequency(_letter_groups(question), groups)
    total = sum(weights.values()) or 1.0
    return [sum(weight for each, weight in weights.items() if each in own) / total for own in groups]


def _letter_groups(text: str) -> dict[str, None]:
    """Three letters of a word, two where words are not spaced; in order, so that sums come out the same every time."""
    found: dict[str, None] = {}
    for word in WORD.findall(fold_case(text)):
        size = 2 if WIDE.search(word) else 3
        found |= dict.fromkeys(word[place : place + size] for place in range(max(1, len(word) - size + 1)))
    return found


# --- choice ---------------------------------------------------------------------------------------------------------


def choose(read: Sequence[ReadPiece], most: int = SHOWN) -> list[ReadPiece]:
    """The best pieces, best first. Those that mark other words come before those that mark the same: of five documents that
    say one thing and one that says another, both things are shown."""
    chosen: list[ReadPiece] = []
    repeating: list[ReadPiece] = []
    for each in sorted(read, key=lambda one: -one.score):
        if not any(_repeats(each.piece, other.piece) for other in (*chosen, *repeating)):
            same = any(_marks_same(each, other) for other in chosen)
            (repeating if same else chosen).append(each)
    return [*chosen[:most], *repeating[: max(0, most - len(chosen))]]


def _repeats(one: Piece, other: Piece) -> bool:
    ours, theirs = one.quote, other.quote
    overlap = ours.doc_id == theirs.doc_id and ours.start < theirs.end and theirs.start < ours.end
    return overlap or ours.text.split() == theirs.text.split()


def _marks_same(one: ReadPiece, other: ReadPiece) -> bool:
    ours, theirs = (frozenset(fold_case(each.mark.text).split()) if each.mark else frozenset() for each in (one, other))
    return bool(ours and theirs) and (ours <= theirs or theirs <= ours)


def claim(read: ReadPiece) -> Claim:
    """An extract as a claim: a quotation with its mark."""
    return Claim("", (read.piece.key,), quote=read.piece.quote, marks=(read.mark,) if read.mark else ())


def draft(question: str, read: Sequence[ReadPiece], *, calibrated: bool) -> Drafted:
    """The extracts for a question; beside one that is found, only such as perhaps answer, too. They are only the nearest, if
    none is likely to answer. Values that differ are shown side by side; more is not said of them."""
    chosen = choose(read)
    if calibrated and (best_probability(chosen) or 0.0) >= FOUND:
        chosen = [each for each in chosen if each.probability >= PERHAPS]
    chosen, conflicts = with_conflicts(question, chosen, read)
    claims, sure = tuple(map(claim, chosen)), best_probability(chosen) if calibrated else None
    if not claims or (sure is not None and sure < PERHAPS):
        return Drafted((), Shape.list, near=claims, probability=sure)
    return Drafted((Block(claims),), Shape.list, tuple(conflicts), probability=sure)


def as_nearest(draft: Drafted) -> Drafted:
    """A draft whose extracts are only the nearest ones."""
    claims = tuple(claim for block in draft.blocks for claim in block.claims)
    return replace(draft, blocks=(), conflicts=(), near=claims) if claims else draft


def at_most_perhaps(draft: Drafted) -> Drafted:
    """A draft that is not said to have been found, whatever its probability."""
    return replace(draft, probability=None) if draft.blocks else draft


def best_probability(read: Sequence[ReadPiece]) -> float | None:
    """The probability that one of these answers; None if no answer model has read them."""
    known = [each.probability for each in read if each.reading]
    return round(max(known), 4) if known else None


def with_conflicts(
    question: str, chosen: Sequence[ReadPiece], read: Sequence[ReadPiece]
) -> tuple[list[ReadPiece], list[Conflict]]:
    """The chosen pieces, with one of another document in the last place if it gives another value for the same thing."""
    ordered = [
        *chosen,
        *(each for each in choose(read, COMPARED) if each not in chosen and each.probability >= PERHAPS),
    ]
    titles = [each.piece.under.partition(BETWEEN)[0] for each in ordered]
    said = [statements(answering(each), title) for each, title in zip(ordered, titles, strict=True)]
    found = [
        (one, other, dispute.about)
        for (one, other), dispute in among_documents(question, said).items()
        if ordered[one].piece.quote.doc_id != ordered[other].piece.quote.doc_id
        and one < len(chosen)
        and _differ_in_answers(dispute.about, ordered[one], ordered[other])
    ]
    shown = list(chosen)
    conflicts: list[Conflict] = []
    for one, other, about in found:
        if ordered[other] not in shown and one < SHOWN - 1:
            shown = [*shown[: SHOWN - 1], ordered[other]]
        if ordered[one] in shown and ordered[other] in shown:
            conflicts.append(Conflict(ordered[one].piece.key, ordered[other].piece.key, about))
    return shown, conflicts


def answering(read: ReadPiece) -> str:
    """The sentences with the words that answer: what else a block says is no answer that another could differ from."""
    words, mark = read.piece.quote, read.mark
    if mark is None:
        return words.text
    spans = [(words.start + left, words.start + right) for left, right in split_sentences(words.text)]
    held = [words.text[a - words.start : b - words.start] for a, b in spans if a < mark.end and mark.start < b]
    return " ".join(held) or words.text


def _differ_in_answers(about: str, one: ReadPiece, other: ReadPiece) -> bool:
    """Whether the values that differ are in the words that answer: what else two sentences say is beside the question."""
    values = about.split(BETWEEN_VALUES)
    marks = one.mark, other.mark
    if len(values) != 2 or None in marks:
        return True
    return all(value in mark.text or mark.text in value for value, mark in zip(values, marks, strict=True) if mark)


_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Words of a quotation, all of them marked or none."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class QuotedPart:
    """A quotation for display. `under` are the headings and the subject that it stands under and does not say itself."""

    under: tuple[str, ...]
    page: int | None
    words: tuple[Stretch, ...]
    table: TablePart | None


def quoted_in_place(document: Document, quote: Quote, marks: Sequence[Quote] = ()) -> QuotedPart:
    start = _below_headings(document, quote, marks)
    spans = [(mark.start, mark.end) for mark in marks]
    table = quoted_part(document, start, quote.end, spans)
    return QuotedPart(
        _under(document, start, quote.end, table.caption if table else ""),
        document.page_at(marks[0].start if marks else start),
        _stretches(document.text, start, quote.end, spans),
        table,
    )


def _below_headings(document: Document, quote: Quote, marks: Sequence[Quote]) -> int:
    """Where the words begin: below the headings that the quotation opens with, which are named above it."""
    start = quote.start
    first = min((mark.start for mark in marks), default=quote.end)
    for section in document.sections:
        if section.start <= start < section.end < quote.end:
            gap = document.text[section.end : quote.end]
            below = quote.end - len(gap.lstrip())
            start = below if below < quote.end and below <= first else start
    return start


def _under(document: Document, start: int, end: int, caption: str) -> tuple[str, ...]:
    blocks = blocks_around(document, start, end)
    above = headings_and_subjects(document, blocks[0] if blocks else None, start)
    said = {"", *map(_folded, (document.title, caption, *document.text[start:end].split("\n")))}
    return tuple(each for each in dict.fromkeys(" ".join(one.split()) for one in above) if _folded(each) not in said)


def _folded(words: str) -> str:
    return " ".join(words.casefold().split())


def _stretches(text: str, start: int, end: int, marks: Sequence[tuple[int, int]]) -> tuple[Stretch, ...]:
    """The words with their own line breaks, indented as far as they are beyond the first line."""
    before = text[text.rfind("\n", 0, start) + 1 : start]
    indent = len(before) if before.isspace() else 0
    lead = re.compile(rf"(?<=\n)[ \t]{{1,{indent}}}") if indent else None
    found: list[Stretch] = []
    at = start
    for left, right in sorted(marks):
        left, right = max(left, at), min(right, end)
        if left < right:
            found += [Stretch(text[at:left]), Stretch(text[left:right], marked=True)]
            at = right
    found.append(Stretch(text[at:end]))
    tidy = (_EMPTY_LINES.sub("\n\n", lead.sub("", each.text) if lead else each.text) for each in found)
    return tuple(Stretch(words, each.marked) for words, each in zip(tidy, found, strict=True) if words)
