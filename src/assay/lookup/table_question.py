"""What a question asks of a table: its words, what is asked for, and the operation. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from assay.language.terms import content_terms, fold_case, stem_word
from assay.language.words import stop_words

TOKEN = re.compile(r"[^\W_]+(?:[-.:/’'][^\W_]+)*")
POSSESSIVE = re.compile(r"['’]s$")


class Operation(StrEnum):
    cell = "cell"  # a value, by row and column
    rows = "rows"  # all rows that meet conditions
    counted = "count"
    largest = "largest"
    smallest = "smallest"
    total = "total"


# Words that order rows. A direction is about values; for dates the first is the smallest.
SMALLEST = frozenset("first earliest oldest soonest least fewest lowest smallest shortest cheapest lightest".split())
LARGEST = frozenset(
    "last latest newest most highest largest biggest greatest longest tallest heaviest maximum max".split()
)
OF_DATES = frozenset("first earliest oldest soonest last latest newest".split())
TOTAL = frozenset("total sum altogether together combined".split())
# Words that ask for a measure under another name: a question says how high, a column says height.
MEASURES = {
    "high": "height",
    "tall": "height",
    "long": "length",
    "wide": "width",
    "deep": "depth",
    "heavy": "weight",
    "old": "age",
    "large": "size",
    "big": "size",
    "far": "distance",
    "fast": "speed",
    "expensive": "price",
    "cheap": "price",
    "pieces": "quantity",
    "units": "quantity",
    "items": "quantity",
}
# Forms of a verb that share no stem: a question says spend, a column says spent.
PAST = {
    "buy": "bought",
    "build": "built",
    "hold": "held",
    "keep": "kept",
    "lose": "lost",
    "make": "made",
    "pay": "paid",
    "sell": "sold",
    "send": "sent",
    "spend": "spent",
    "teach": "taught",
    "win": "won",
}
NEGATED = frozenset("without no not lack lacks lacking missing".split())
DETERMINING = frozenset("a an the of in at on for from by with to this that these those our my its their".split())


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question. `before` is the word in front of it, folded; `named` if it is a name, a number or a code."""

    text: str
    stem: str
    place: int
    before: str
    named: bool


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question as a table can answer it. `subject` are the words that say what is asked for."""

    text: str
    words: tuple[Word, ...]
    operation: Operation
    ordering: frozenset[int]  # places of the words that name the operation
    subject: tuple[Word, ...]
    negated: frozenset[int]  # places of negated words
    dates: bool = False  # the order is one of dates, if the table has any
    kind: str = ""  # the kind of value: number, date, name, place
    auxiliary: bool = False  # a verb stands apart from its auxiliary: did … subscribe, have … won


def tokens(text: str) -> list[str]:
    """The words of a text, folded; codes and numbers stay whole."""
    return [POSSESSIVE.sub("", each) for each in TOKEN.findall(fold_case(text))]


@lru_cache(maxsize=50_000)
def stems(text: str) -> frozenset[str]:
    """The stems of the words of a text, and of the parts of its codes."""
    found: set[str] = set()
    for word in tokens(text):
        found.add(stem_word(word))
        found.update(stem_word(part) for part in re.split(r"\W", word) if len(part) > 2)
    return frozenset(found)


KINDS = (
    ("number", re.compile(r"\bhow (?:many|much|long|far|old|high|large|big|tall|deep|wide|heavy|fast|often)\b", re.I)),
    ("date", re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|year)\b", re.I)),
    ("name", re.compile(r"\bwho(?:m|se)?\b", re.I)),
    ("place", re.compile(r"\bwhere\b", re.I)),
)
SEVERAL = re.compile(r"\b(?:all|every|each|list)\b", re.I)
AUXILIARY = re.compile(r"\b(?:do|does|did|have|has|had|can|could|will|would|may|must)\b", re.I)
COUNTED = re.compile(r"\bhow many\b|\b(?:what is|give) the (?:number|count) of\b", re.I)
ASKED = re.compile(r"\b(?:which|what|whose|list|name|all|every|each|how many|number of)\b", re.I)


def parse(question: str) -> TableQuestion:
    raw = [(POSSESSIVE.sub("", match[0]), match.start()) for match in TOKEN.finditer(question)]
    ignored = stop_words()
    words: list[Word] = []
    ordering: set[int] = set()
    negated: set[int] = set()
    direction: Operation | None = None
    dates = False
    for place, (text, _) in enumerate(raw):
        plain = fold_case(text)
        before = fold_case(raw[place - 1][0]) if place else ""
        if plain in SMALLEST | LARGEST:
            direction = Operation.smallest if plain in SMALLEST else Operation.largest
            dates = dates or plain in OF_DATES
            ordering.add(place)
        elif plain in NEGATED:
            ordering.add(place)
            negated.update(range(place + 1, place + 5))
        if plain in ignored or not content_terms(plain):
            continue
        named = any(sign.isdigit() for sign in text) or (text[0].isupper() and place > 0)
        words.append(Word(plain, stem_word(plain), place, before, named))
    kind = next((kind for kind, pattern in KINDS if pattern.search(question)), "")
    if COUNTED.search(question):
        operation = Operation.counted
    elif direction:
        operation = direction
    elif asks_total(question):
        operation = Operation.total
    elif (
        kind == "name"
        or SEVERAL.search(question)
        or re.match(r"\W*+(?:(?:in|at|on|for|of) )?(?:which|what)\b", question, re.I)
    ):
        operation = Operation.rows
    else:
        operation = Operation.cell
    return TableQuestion(
        question, tuple(words), operation, frozenset(ordering), _subject(question, raw, words), frozenset(negated),
        dates, kind, AUXILIARY.search(question) is not None,
    )  # fmt: skip


def asks_total(question: str) -> bool:
    return not TOTAL.isdisjoint(tokens(question))


def _subject(question: str, raw: list[tuple[str, int]], words: list[Word]) -> tuple[Word, ...]:
    """The words right after the one that asks: "which product codes", "how many sensors"."""
    asked = None
    for asked in ASKED.finditer(question):
        if not re.match(r"\W*(?:of\b|the\b|all\b|every\b|each\b)", question[asked.end() :], re.I):
            break
    if asked is None:
        return ()
    start = sum(1 for _, at in raw if at < asked.end())
    found: list[Word] = []
    by_place = {word.place: word for word in words}
    for place in range(start, len(raw)):
        if place in by_place and not by_place[place].named:
            found.append(by_place[place])
        elif found or fold_case(raw[place][0]) not in {"of", "the", "our", "my", "all", "these", "those"}:
            break
        if len(found) == 3:
            break
    return tuple(found)
