"""What a question asks of a table: its words, what is asked for, and the operation. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from assay.language.terms import content_terms, data_lines, fold_case, stem_word, stop_words

TOKEN = re.compile(r"[^\W_]+(?:[-.:/’'][^\W_]+)*")
POSSESSIVE = re.compile(r"['’]s$")


class Operation(StrEnum):
    cell = "cell"  # a value, by row and column
    rows = "rows"  # all rows that meet conditions
    counted = "count"
    largest = "largest"
    smallest = "smallest"
    total = "total"


# Words that order rows. For dates the first is the smallest.
SMALLEST = frozenset("first earliest oldest least fewest lowest smallest shortest cheapest lightest minimum".split())
LARGEST = frozenset(
    "last latest newest most highest largest biggest greatest longest tallest heaviest widest deepest maximum".split()
)
OF_DATES = frozenset("first earliest oldest last latest newest".split())
TOTAL = frozenset("total totals subtotal sum altogether together combined".split())
NEGATED = frozenset("without no not lack lacks lacking missing hasn't isn't aren't haven't doesn't don't".split())
# A question says how high or the highest, a column says height.
MEASURES = {
    **dict.fromkeys(("high", "highest", "tall", "tallest"), "height"),
    **dict.fromkeys(("long", "longest", "shortest"), "length"),
    **dict.fromkeys(("wide", "widest"), "width"),
    **dict.fromkeys(("deep", "deepest"), "depth"),
    **dict.fromkeys(("heavy", "heaviest", "lightest"), "weight"),
}
AUXILIARIES = frozenset("do does did have has had is are was were be been can could will would may must".split())

KINDS = (
    ("number", re.compile(r"\bhow (?!is|are|was|were|do|does|did|can)\w+", re.I)),
    ("date", re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|year)\b", re.I)),
    ("name", re.compile(r"\bwho(?:m|se)?\b", re.I)),
    ("place", re.compile(r"\bwhere\b", re.I)),
)
SEVERAL = re.compile(r"^\W*+(?:(?:in|at|on|for|of|from) )?(?:which|what|who)\b|\b(?:all|every|each|list)\b", re.I)
COUNTED = re.compile(r"\bhow many\b|\bnumber of\b", re.I)
ASKED = re.compile(
    r"\b(?:which|what|whose|list|name|all|every|each|how many|number of)\b(?: (?:of|the|all|our|my|these|those)\b)*+",
    re.I,
)


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
    auxiliary: bool = False  # a verb may stand apart from its auxiliary: did … subscribe, have … won


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


@cache
def _small_words() -> dict[str, frozenset[str]]:
    """By language, the words that name nothing."""
    lines = (line.partition(":") for line in data_lines("question_words"))
    return {"en": stop_words(), **{code: frozenset(map(fold_case, words.split())) for code, _, words in lines}}


def small_words(question: str) -> frozenset[str]:
    """The words that name nothing in the language of a question: the one that most of its words are of."""
    said = [part for word in tokens(question) for part in re.split(r"['’]", word)]
    return max(_small_words().values(), key=lambda words: sum(word in words for word in said))


def parse(question: str) -> TableQuestion:
    ignored = small_words(question)
    raw = [POSSESSIVE.sub("", match[0]) for match in TOKEN.finditer(question)]
    words: list[Word] = []
    negated: set[int] = set()
    for place, text in enumerate(raw):
        plain = re.sub(r"^(?:[ldst]|qu)['’]", "", fold_case(text))  # l'hôtel, d’Oslo
        if plain in NEGATED:
            negated.update(range(place + 1, place + 5))
        if plain in SMALLEST | LARGEST or (plain not in ignored | NEGATED and content_terms(plain)):
            named = any(map(str.isdigit, text)) or (text[0].isupper() and place > 0)
            before = fold_case(raw[place - 1]) if place else ""
            words.append(Word(plain, stem_word(plain), place, before, named))
    ordering = [word for word in words if word.text in SMALLEST | LARGEST]
    operation = Operation.rows if SEVERAL.search(question) else Operation.cell
    if COUNTED.search(question):
        operation = Operation.counted
    elif ordering:
        operation = Operation.smallest if ordering[0].text in SMALLEST else Operation.largest
    elif not TOTAL.isdisjoint(tokens(question)):
        operation = Operation.total
    return TableQuestion(
        question,
        tuple(words),
        operation,
        frozenset(word.place for word in ordering),
        _subject(question, words),
        frozenset(negated),
        any(word.text in OF_DATES for word in ordering),
        next((kind for kind, pattern in KINDS if pattern.search(question)), ""),
        not AUXILIARIES.isdisjoint(tokens(question)),
    )


def _subject(question: str, words: list[Word]) -> tuple[Word, ...]:
    """The words right after the one that asks: "which product codes", "how many sensors"."""
    asked = ASKED.search(question)
    start = len(TOKEN.findall(question[: asked.end()])) if asked else 0
    found: list[Word] = []
    for word in words if asked else ():
        if word.place == start + len(found) and word.text not in SMALLEST | LARGEST and len(found) < 3:
            found.append(word)
    return tuple(found)
