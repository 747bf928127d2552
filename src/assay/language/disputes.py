"""Detects what documents disagree about: another value in the same position, and which other documents support a side.
Pure, and conservative: what may concern two things of one name, or two times, is not a dispute. See decision 10."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

from assay.language import names
from assay.language.dates import is_date_missing
from assay.language.facts import Alignment, Slot, Token, align, are_incompatible, same, tokenize
from assay.language.names import find_names
from assay.language.sentences import is_table_row, split_sentences
from assay.language.terms import content_terms, fold_case

ALIKE = 0.5  # similarity by meaning; below this two sentences are about different things
KIN = 0.5  # share of the particulars of the passage with fewer that must be in the other
TWIN = 0.75  # from this share on, one passage retells the other
MANY = 5  # particulars in both passages before a small overlap is significant
BESIDE = 4  # equal words directly beside a position
COPIED = 0.75  # of the shorter sentence: one is a copy of the other, and a different word was changed
WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")
MONTHS = frozenset(each.lower() for each in (*calendar.month_name[1:], *calendar.day_name))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, its passage, and the title of its document."""

    words: str
    around: str = ""
    title: str = ""

    @property
    def passage(self) -> str:
        return self.around or self.words


def statements(words: str, title: str = "") -> tuple[Statement, ...]:
    """The sentences of a passage."""
    return tuple(Statement(words[start:end], words, title) for start, end in split_sentences(words))


@dataclass(frozen=True, slots=True)
class Dispute:
    """Two statements that cannot both be right. `kind` is number, date, time, name or word."""

    left: Statement
    right: Statement
    about: str  # both values as written: "30 days / 90 days"
    kind: str
    weight: float  # number of words that support it


def between_documents(question: str, left: Sequence[Statement], right: Sequence[Statement]) -> Dispute | None:
    """The dispute of two documents that most words support; None if none is relevant to the question."""
    found = [each for one in left for other in right if (each := between(one, other, 1.0, question))]
    return max(found, key=lambda each: each.weight, default=None)


def between(left: Statement, right: Statement, alike: float, question: str = "") -> Dispute | None:
    """The dispute of two sentences; None for table rows, issues of a series, or two things of one name."""
    if alike < ALIKE or is_table_row(left.words) or is_table_row(right.words) or is_series(left.title, right.title):
        return None
    if not same_thing(left, right, question):
        return None
    if _another_thing(align(left.words, right.words), question):
        return None
    return max(_changed(left, right, question), key=lambda each: each.weight, default=None)


def is_series(left: str, right: str) -> bool:
    """Whether titles differ only in dates and numbers: each issue is about its own time."""
    ours, theirs = (frozenset(WORD.findall(fold_case(each))) for each in (left, right))
    return bool(ours ^ theirs) and all(word in MONTHS or word.isdigit() for word in ours ^ theirs)


# --- a value in the same place --------------------------------------------------------------------------------------


def _changed(left: Statement, right: Statement, question: str) -> list[Dispute]:
    lined = align(left.words, right.words)
    found: list[Dispute] = []
    for slot in lined.slots:
        kind, about = _difference(slot, lined, left, right, question)
        if kind:
            found.append(Dispute(left, right, about, kind, slot.beside + 10 * _bears(left, right, question)))
    return found


def _difference(slot: Slot, lined: Alignment, left: Statement, right: Statement, question: str) -> tuple[str, str]:
    """The kind of the difference, and both sides as written; empty if it is not a dispute about the question."""
    wanted = names.kind(question)
    copied = lined.share >= COPIED
    if slot.in_words:
        about = _other_words(slot) if copied and names.asks_for_word(question) else ""
        return ("word", about) if about else ("", "")
    if slot.values is None or slot.beside < BESIDE:
        return "", ""
    ours, theirs = slot.values
    if not are_incompatible(ours, theirs) or _holds(right.words, ours) or _holds(left.words, theirs):
        return "", ""
    if wanted and not (ours.kind == wanted or (ours.kind, wanted) == ("time", "date")):
        return "", ""
    if question and not wanted and not copied:
        return "", ""
    if wanted in ("date", "number") and not _bears(left, right, question) and nearness(left, right, question) < TWIN:
        return "", ""
    if ours.kind == "number" and _dated(left) != _dated(right):  # a general rule and a single event
        return "", ""
    return ours.kind, f"{ours.text} / {theirs.text}"


def _other_words(slot: Slot) -> str:
    """The differing words as "defender / forward"; empty if a verb or adverb differs, which may be a synonym: residing,
    living."""
    ours, theirs = (" ".join(each.text for each in side) for side in (slot.left, slot.right))
    mine, other = frozenset(content_terms(ours)), frozenset(content_terms(theirs))
    if slot.beside < BESIDE + 2 or mine <= other or other <= mine or VERB.search(ours) or VERB.search(theirs):
        return ""
    return f"{ours} / {theirs}"


VERB = re.compile(r"(?:ing|ed|ly)\b", re.I)


def _bears(left: Statement, right: Statement, question: str) -> bool:
    """Whether both sentences have a word of the question."""
    about = names.focus(question)
    return all(about & frozenset(content_terms(each.words)) for each in (left, right))


def _holds(words: str, value: Token) -> bool:
    """Whether the value occurs anywhere in the words: then the order differs, not the value."""
    same_kind = [each for each in tokenize(words) if each.kind == value.kind]
    return any(each.meaning == value.meaning if value.kind == "name" else same(each, value) for each in same_kind)


def _dated(statement: Statement) -> bool:
    return any(each.kind in ("date", "time") for each in tokenize(statement.words))


def _another_thing(lined: Alignment, question: str) -> bool:
    """Whether more particulars differ than agree: the same template, filled in for two things. Without a question only
    one may differ."""
    values = [slot.values for slot in lined.slots if slot.values]
    counted = [pair for pair in values if not question or pair[0].kind != "name" or not are_incompatible(*pair)]
    differ = {(ours.text, theirs.text) for ours, theirs in counted}
    return len(differ) > 1 and (not question or len(differ) > lined.agree)


# --- the same thing -------------------------------------------------------------------------------------------------


def same_thing(left: Statement, right: Statement, question: str) -> bool:
    """Whether both passages are about one thing: they share many particulars, or one that is nearly unique; and they do
    not extend the name in the question to two different longer names, unless one retells the other."""
    near = nearness(left, right, question)
    if near < KIN and not distinctive_particulars(left.passage) & distinctive_particulars(right.passage):
        return False
    return near >= TWIN or not _rivals(left, right, question)


def nearness(left: Statement, right: Statement, question: str) -> float:
    """The share of the particulars of the passage with fewer that the other has too; 0.5 if there are too few to tell."""
    ours, theirs = (particulars(each.passage, question) for each in (left, right))
    fewer = min(len(ours), len(theirs))
    return len(ours & theirs) / fewer if fewer >= MANY else 0.5


@lru_cache(maxsize=20_000)
def particulars(words: str, question: str) -> frozenset[Any]:
    """Numbers, dates and the words of names, except those in the question."""
    known = frozenset(content_terms(question))
    found: set[Any] = set()
    for piece in tokenize(words):
        if piece.kind == "name":
            found |= piece.meaning - known
        elif piece.kind:
            found.add(piece.meaning)
    return frozenset(found)


@lru_cache(maxsize=20_000)
def distinctive_particulars(words: str) -> frozenset[Any]:
    """Nearly unique particulars: a full date, a four-digit number that is not round."""
    found: set[Any] = set()
    for piece in tokenize(words):
        if piece.kind == "date" and all(day[0] and day[2] for day in piece.meaning):
            found.add(piece.meaning)
        if piece.kind == "number" and all(len(value.normalize().as_tuple().digits) > 3 for value, _ in piece.meaning):
            found.add(frozenset(value for value, _ in piece.meaning))
    return frozenset(found)


def _rivals(left: Statement, right: Statement, question: str) -> bool:
    """Whether the passages are about two things of one name. "When was Senator Bloomer born?": Asa and Robert Bloomer
    are two."""
    ours, theirs = (_bynames(f"{each.title}\n{each.passage}", question) for each in (left, right))
    return bool(ours and theirs and not ours & theirs)


ASIDE = re.compile(r"(?<!\s)\s*+\(\s*+([^()]{2,60}?)\s*+\)")


@lru_cache(maxsize=20_000)
def _bynames(words: str, question: str) -> frozenset[str]:
    """Additions to a name of the question, within the name or in brackets after it."""
    subject, known = names.subject(question), frozenset(content_terms(question))
    found: set[str] = set()
    for name in find_names(words):
        own = frozenset(content_terms(name.text))
        if own & subject and 2 * len(own & subject) >= len(subject):
            aside = ASIDE.match(words, name.end)
            found |= own.union(content_terms(aside[1]) if aside else ()) - known
    return frozenset(found)


RELATED = 0.2  # share of the particulars: enough for a document with the same value to join another

Pair = tuple[int, int]  # indexes of two documents, the smaller first


def among_documents(question: str, documents: Sequence[Sequence[Statement]]) -> dict[Pair, Dispute]:
    """Each pair that disagrees, with both sentences. A document that states one side's value, and nowhere the other's,
    joins that side, even if its wording is too different to be compared with the other's."""
    found: dict[Pair, Dispute] = {}
    for one, other in combinations(range(len(documents)), 2):
        if dispute := between_documents(question, documents[one], documents[other]):
            found[one, other] = dispute
    joined: dict[Pair, Dispute] = {}
    for (one, other), dispute in found.items():
        for place in range(len(documents)):
            for against, beside, turned in ((one, other, False), (other, one, True)):
                pair = (min(against, place), max(against, place))
                if place in (one, other) or pair in found or pair in joined:
                    continue
                statement = _joins(documents[place], documents[beside], dispute, question, turned=turned)
                if statement is not None:
                    joined[pair] = _dispute(dispute, statement, against < place, turned=turned)
    return found | joined


def _joins(
    document: Sequence[Statement], beside: Sequence[Statement], dispute: Dispute, question: str, *, turned: bool
) -> Statement | None:
    """The sentence with which a document takes the right side of a dispute (the left one if `turned`); None if it does
    not."""
    against, own = _values(dispute)[:: -1 if turned else 1]
    if against is None or own is None or any(_says(each, against) for each in document):
        return None
    statement = next((each for each in document if _says(each, own) and _says_all(each, own)), None)
    return statement if statement and nearness(statement, beside[0], question) >= RELATED else None


Value = Token | frozenset[str]  # a particular, or the stems of plain words


def _values(dispute: Dispute) -> tuple[Value | None, Value | None]:
    return _value(dispute, dispute.left, 0), _value(dispute, dispute.right, 1)


def _value(dispute: Dispute, statement: Statement, side: int) -> Value | None:
    value = dispute.about.split(" / ")[side:][:1]
    if not value:
        return None
    if dispute.kind == "word":
        return frozenset(content_terms(value[0]))
    return next(
        (each for each in tokenize(statement.words) if (each.kind, each.text) == (dispute.kind, value[0])), None
    )


def _says(statement: Statement, value: Value) -> bool:
    if isinstance(value, frozenset):
        return value <= frozenset(content_terms(statement.words))
    same_kind = (each for each in tokenize(statement.words) if each.kind == value.kind)
    return any(value.meaning <= each.meaning if value.kind == "name" else same(value, each) for each in same_kind)


def _says_all(statement: Statement, value: Value) -> bool:
    """Whether the sentence gives a day if the value is a day: 1900 alone does not state 14 August 1900."""
    if isinstance(value, frozenset) or value.kind != "date":
        return True
    return not is_date_missing(
        value.meaning, [each.meaning for each in tokenize(statement.words) if each.kind == "date"]
    )


def _dispute(found: Dispute, joining: Statement, first: bool, *, turned: bool) -> Dispute:
    """The same dispute with the sentence of the document that joined; the first document is on the left."""
    mine = found.right if turned else found.left
    ours, theirs = found.about.split(" / ")[:: -1 if turned else 1]
    left, right = (mine, joining) if first else (joining, mine)
    about = f"{ours} / {theirs}" if first else f"{theirs} / {ours}"
    return Dispute(left, right, about, found.kind, 0.0)
