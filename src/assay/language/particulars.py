"""Extracts the particulars of a sentence (numbers, dates, times, names) and aligns those of two sentences. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from assay.language import facts
from assay.language.dates import DATED, dates
from assay.language.names import Name, find_names
from assay.language.quantities import ORDINALS, UNIT, numbers
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, stem_word
from assay.language.units import UNITS

CLAUSE = re.compile(r"^\W*\d+(?:\.\d+)*\.?\s+(?=[A-Z])")  # "2.1 Raw telemetry": a clause number is not a measurement
YEAR = re.compile(r"(?<![\w.,$€£-])(1[0-9]{3}|20[0-9]{2})(?![\w%]|[.,:]\d|-\d)")
TIME = re.compile(r"(?<![\w:.])([01]?\d|2[0-3]):([0-5]\d)(?![\w:])")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
ORDINAL = re.compile("|".join(ORDINALS), re.I)  # "the second largest" is not a count
HUNDREDS = 2  # trailing zeros from which on a number may be rounded
SHORT = 3  # words; a longer difference is a rewrite, not a changed value


@dataclass(frozen=True, slots=True)
class Token:
    """A word, or a particular with its kind: number, date, time or name. Two tokens are equal if `meaning` is."""

    text: str
    kind: str = ""
    meaning: frozenset[Any] = frozenset()

    @property
    def place(self) -> str:
        """The alignment key: the word itself, or the kind of a particular."""
        return f"\x00{self.kind}" if self.kind else stem_word(fold_case(self.text))


@lru_cache(maxsize=20_000)
def tokenize(words: str) -> tuple[Token, ...]:
    """The words in order, each particular as one token; clause numbers are left out."""
    words = CLAUSE.sub("", words)
    put: list[Token] = []
    ahead = 0
    for start, end, piece in _particulars(words):
        put += [Token(match[0]) for match in WORD.finditer(words, ahead, start)]
        put.append(piece)
        ahead = end
    return (*put, *(Token(match[0]) for match in WORD.finditer(words, ahead)))


def _particulars(words: str) -> list[tuple[int, int, Token]]:
    """Dates first, then times, years, numbers and names, each in the text left by the previous ones."""
    found: list[tuple[int, int, Token]] = []
    rest = words

    def take(start: int, end: int, kind: str, meaning: frozenset[Any]) -> None:
        nonlocal rest
        found.append((start, end, Token(words[start:end].strip(), kind, meaning)))
        rest = rest[:start] + " " * (end - start) + rest[end:]

    for match in DATED.finditer(words):
        if days := dates(match[0]):
            take(*match.span(), "date", days[0])
    for match in TIME.finditer(rest):
        take(*match.span(), "time", frozenset({(int(match[1]), int(match[2]))}))
    for match in YEAR.finditer(rest):
        unit = UNIT.match(rest, match.end())
        if not unit or unit[1].lower() not in UNITS:
            take(*match.span(), "date", frozenset({(int(match[1]), 0, 0)}))
    for number in numbers(rest):
        if not ORDINAL.fullmatch(number.text):
            take(number.start, number.end, "number", frozenset((value, number.unit) for value in number.values))
    for name in _names(words):
        if rest[name.start : name.end] == name.text:
            take(name.start, name.end, "name", frozenset(content_terms(name.text)))
    return sorted(found, key=lambda each: each[:2])


def _names(words: str) -> list[Name]:
    """Names, except words capitalised only because they start a sentence."""
    starts = {start for start, _ in split_sentences(words)}
    found: list[Name] = []
    for name in find_names(words):
        first = WORD.match(name.text)
        if first and name.start in starts and facts.is_plain(first[0].lower()):
            own = name.text[first.end() :].lstrip(" -")
            if not own[:1].isupper():
                continue
            name = Name(own, name.end - len(own), name.end)
        if content_terms(name.text):
            found.append(name)
    return found


# --- same or not ----------------------------------------------------------------------------------------------------


def same(left: Token, right: Token) -> bool:
    """Whether both may mean the same: May 2024 and 17 May 2024, 93.9 km and 94 km, Tolkien and J. R. R. Tolkien."""
    if left.kind != right.kind:
        return False
    pairs = [(mine, theirs) for mine in left.meaning for theirs in right.meaning]
    match left.kind:
        case "date":
            return any(
                all(not a or not b or a == b for a, b in zip(mine, theirs, strict=True)) for mine, theirs in pairs
            )
        case "number":
            return any(
                _as_good_as(mine, theirs) and (not unit or not other or unit == other)
                for (mine, unit), (theirs, other) in pairs
            )
        case "name":
            return left.meaning <= right.meaning or right.meaning <= left.meaning or _short_for(left.text, right.text)
        case _:
            return left.meaning == right.meaning


def are_incompatible(left: Token, right: Token) -> bool:
    """Whether they cannot mean the same. Names that share a word may be the same, so they are left open. So are numbers
    of different units."""
    if left.kind != right.kind or same(left, right):
        return False
    if left.kind == "name":
        return not left.meaning & right.meaning
    if left.kind == "number":
        return {unit for _, unit in left.meaning} == {unit for _, unit in right.meaning}
    return True


def _as_good_as(one: Decimal, other: Decimal) -> bool:
    """Equal, or one is the other rounded: 93.9 and 94, 1,417 and 1,400. But 90 is not 93 rounded."""
    fine, coarse = sorted((one, other), key=_last_figure)
    place = _last_figure(coarse)
    unit = Decimal(1).scaleb(0 if 0 < place < HUNDREDS else place)
    return one == other or round(fine / unit) * unit == coarse


def _last_figure(number: Decimal) -> int:
    """The position of the last non-zero digit: -1 for 93.9, 0 for 94, 2 for 1,400."""
    exponent = number.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _short_for(left: str, right: str) -> bool:
    """Whether one abbreviates the other: "NBA" and "National Basketball Association"."""
    pairs = ((left, right), (right, left))
    return any(short.isupper() and fold_case(short) in facts.short_forms(long) for short, long in pairs)


# --- alignment ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slot:
    """A difference at the same position of two sentences, and the number of equal words directly beside it."""

    left: tuple[Token, ...]
    right: tuple[Token, ...]
    beside: int

    @property
    def values(self) -> tuple[Token, Token] | None:
        """The two particulars of the same kind at this position; None unless there is exactly one on each side."""
        ours, theirs = ([each for each in side if each.kind] for side in (self.left, self.right))
        if len(ours) == len(theirs) == 1 and ours[0].kind == theirs[0].kind:
            return ours[0], theirs[0]
        return None

    @property
    def in_words(self) -> bool:
        return not any(each.kind for each in (*self.left, *self.right))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Two aligned sentences: the differences at equal positions, and how many tokens, and particulars among them, are
    equal."""

    slots: tuple[Slot, ...]
    equal: int
    agree: int
    share: float  # of the shorter sentence that is equal


TENSE = frozenset(("had", "has", "have"))  # "had received" and "received" say the same of a value


@lru_cache(maxsize=20_000)
def align(left: str, right: str) -> Alignment:
    ours, theirs = (
        tuple(token for token in tokenize(each) if token.text.lower() not in TENSE) for each in (left, right)
    )
    a, b = [each.place for each in ours], [each.place for each in theirs]
    equal: set[tuple[int, int]] = set()
    broken: list[tuple[int, int, int, int]] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            for i, j in zip(range(i1, i2), range(j1, j2), strict=True):
                if not ours[i].kind or same(ours[i], theirs[j]):
                    equal.add((i, j))
                else:
                    broken.append((i, i + 1, j, j + 1))
        elif tag == "replace" and max(i2 - i1, j2 - j1) <= SHORT:
            broken.append((i1, i2, j1, j2))
    slots = tuple(
        Slot(ours[i1:i2], theirs[j1:j2], _run(equal, i1 - 1, j1 - 1, -1) + _run(equal, i2, j2, 1))
        for i1, i2, j1, j2 in broken
    )
    agree = sum(bool(ours[i].kind) for i, _ in equal)
    return Alignment(slots, len(equal), agree, len(equal) / max(min(len(a), len(b)), 1))


def _run(equal: set[tuple[int, int]], i: int, j: int, step: int) -> int:
    """The number of equal tokens from here on."""
    long = 0
    while (i, j) in equal:
        long, i, j = long + 1, i + step, j + step
    return long
