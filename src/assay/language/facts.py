"""The facts of a sentence (names, numbers, dates, times): which of them a text lacks, and those of two sentences
aligned. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any

from assay.language.dates import DATED, Day, dates, is_date_missing, years
from assay.language.names import Name, find_names
from assay.language.quantities import ORDINALS, UNIT, UNITS, Number, is_number_missing, numbers
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, stem_word, stop_words, word_list

COMMON = re.compile(r"(?:ly|ing|tions?|ments?|ness|ities|ity|ists|ers)$")
MEASURED = re.compile(r"[\d.,]+[-–]?[^\W\d_]*(?:-[^\W\d_]+)*")  # "90-day", "5kg", "3rd", "1990s"
CODE = re.compile(r"[^\W_]+(?:[-./_][^\W_]+)*")
DEMONYM = re.compile(r"(?:ians?|ans?|ns?|ese|ish|s)$")
WORD = re.compile(r"[^\W_]+")


def names(words: str, ordinary: Collection[str] = ()) -> list[str]:
    """Names, and designations such as KX-40. A word capitalised at the start of a sentence is not a name if it is
    listed, looks like a common noun, or its stem is in `ordinary`: words seen elsewhere in lower case."""
    starts = {start for start, _ in split_sentences(words)}
    found: list[str] = []
    for name in find_names(words):
        first = WORD.match(name.text)
        own = name.text
        if first and name.start in starts and first[0][1:].islower() and is_plain(first[0].lower(), ordinary):
            own = own[first.end() :].strip(" -")
        if any(part[0].isupper() or part[0].isdigit() for part in WORD.findall(own)) and own.lower() not in UNITS:
            found.append(own)
    coded = (
        code
        for code in CODE.findall(DATED.sub(" ", words))
        if any(sign.isdigit() for sign in code)
        and sum(sign.isalpha() for sign in code)
        and not MEASURED.fullmatch(code)
    )
    return list(dict.fromkeys(name for name in (*found, *coded) if len(name) > 1))


def is_plain(word: str, ordinary: Collection[str] = ()) -> bool:
    """Whether a capital at the start of a sentence says nothing about this word."""
    return word in word_list("common_openers") or COMMON.search(word) is not None or stem_word(word) in ordinary


@lru_cache(maxsize=4096)
def lowercase_stems(words: str) -> frozenset[str]:
    """The stems of words that a text writes in lower case."""
    return frozenset(stem_word(fold_case(word)) for word in WORD.findall(words) if word.islower())


def is_name_missing(name: str, words: Collection[str], abbreviated: Collection[str] = ()) -> bool:
    """Whether some part of a name is missing. `words` are case-folded. An initial matches a word that starts with it,
    and a lower-case part ("Aire-expressing") is ignored."""
    if fold_case(name) in abbreviated:
        return False
    parts = [fold_case(part) for part in WORD.findall(name) if not part.islower()]
    return any(part not in stop_words() and not _has_name_part(part, words) for part in parts)


def _has_name_part(part: str, words: Collection[str]) -> bool:
    """Also matches demonyms: Canadian for Canada."""
    if part in words or f"{part}s" in words:
        return True
    if len(part) == 1:
        return part.isalpha() and any(word.startswith(part) for word in words)
    if not part.isalpha():
        return False
    root = DEMONYM.sub("", part)
    return len(root) >= 4 and any(
        word.startswith(root) and len(DEMONYM.sub("", word)) - len(root) <= 1 for word in words
    )


def short_forms(words: str) -> frozenset[str]:
    """Abbreviations that the names in a text would have: WHO for World Health Organization."""
    found: set[str] = set()
    for name in find_names(words):
        capitals = [part[0] for part in WORD.findall(name.text) if part[0].isupper()]
        if len(capitals) >= 2:
            found.add(fold_case("".join(capitals)))
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of a text that a claim about it may contain."""

    numbers: tuple[Number, ...]
    dates: tuple[frozenset[Day], ...]
    years: frozenset[Decimal]
    words: frozenset[str]  # case-folded
    short: frozenset[str]


@lru_cache(maxsize=4096)  # the same passages are read for every claim, and again before delivery
def facts_of(words: str) -> Facts:
    terms = frozenset(WORD.findall(fold_case(words)))
    return Facts(tuple(numbers(words)), tuple(dates(words)), years(words), terms, short_forms(words))


def missing_facts(words: str, known: str, ordinary: Collection[str] = ()) -> list[str]:
    """The numbers, dates and names in `words` that are missing from `known`, as written."""
    there = facts_of(known)
    absent = (each for each in numbers(words) if is_number_missing(each, there.numbers))
    written = (match[0] for match in DATED.finditer(words))
    return [
        *(each.text for each in absent if not each.values & there.years),  # a claim may give the year of a date alone
        *(each for each in written if any(is_date_missing(days, there.dates) for days in dates(each))),
        *(name for name in names(words, ordinary) if is_name_missing(name, there.words, there.short)),
    ]


def remove_numbers_and_dates(words: str) -> str:
    """The words without numbers, units of measure, dates, and the remainder of "doesn't"."""
    rest = DATED.sub(" ", words)
    for number in reversed(numbers(rest)):
        rest = f"{rest[: number.start]} {rest[number.end :]}"
    return re.sub(r"\b\w+n['’]t\b", " ", rest)


CLAUSE = re.compile(r"^\W*\d+(?:\.\d+)*\.?\s+(?=[A-Z])")  # "2.1 Raw telemetry": a clause number is not a measurement
YEAR = re.compile(r"(?<![\w.,$€£-])(1[0-9]{3}|20[0-9]{2})(?![\w%]|[.,:]\d|-\d)")
TIME = re.compile(r"(?<![\w:.])([01]?\d|2[0-3]):([0-5]\d)(?![\w:])")
TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
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
        put += [Token(match[0]) for match in TOKEN.finditer(words, ahead, start)]
        put.append(piece)
        ahead = end
    return (*put, *(Token(match[0]) for match in TOKEN.finditer(words, ahead)))


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
        first = TOKEN.match(name.text)
        if first and name.start in starts and is_plain(first[0].lower()):
            own = name.text[first.end() :].lstrip(" -")
            if not own[:1].isupper():
                continue
            name = Name(own, name.end - len(own), name.end)
        if content_terms(name.text):
            found.append(name)
    return found


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
    return any(short.isupper() and fold_case(short) in short_forms(long) for short, long in pairs)


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
