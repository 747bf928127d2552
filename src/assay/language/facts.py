"""Extracts facts that do not depend on wording from a sentence: numbers, dates and names. Pure.

A claim must not contain a fact that is missing from its citations; `claim_rules.py` applies that rule.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from assay.language.dates import DATED, Day, dates, is_date_missing, years
from assay.language.names import find_names
from assay.language.quantities import Number, is_number_missing, numbers
from assay.language.sentences import split_sentences
from assay.language.terms import fold_case, stem_word
from assay.language.units import UNITS
from assay.language.words import stop_words

# --- names ----------------------------------------------------------------------------------------------------------

# Words often capitalised only because they start a sentence.
OPENERS = frozenset(
    (
        "active additional adult adults analysis annual answer any approximately article articles author authors "
        "average based big case cases certain change changes children claim claims common companies company compared "
        "complete consumers costs countries country current customers data days demand despite details different "
        "direct document documents doses drugs due early effects elevated employees energy even everybody everyone "
        "evidence excess exercise experts extra far female figure figures finding findings first following food full "
        "general given global government health high higher history households human humans ice income increased "
        "individuals instead key large larger late later levels limited local long low lower main major male measures "
        "members men model models modern money multiple natural nearly new newer none normal notably note numerous "
        "observed office old older only operators option options overall owners paper papers part participants parts "
        "passage passages patients people personnel plants poor power present previous primary prior problems "
        "production products professional profits public quotation quotations rain rates raw readers recent reduced "
        "report reports research researcher researchers residents result results review rising risk rules safe sales "
        "satellite satellites schools science scientific scientists sea second section senior services several severe "
        "short side similar simple single small smaller social some source sources special staff standard state "
        "states strong students studies study supply support survey systems table tables taxes teachers team teams "
        "tests text theory third thousands three today total trade trial trials true two type types typical unlike "
        "users various visitors voters wages warm warmer waste water wild winter women wood work workers world yes "
        "young younger "
    ).split()
)
COMMON = re.compile(r"(?:ly|ing|tions?|ments?|ness|ities|ity|ists|ers)$")
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
        if any(sign.isdigit() for sign in code) and sum(sign.isalpha() for sign in code) and not _is_measure(code)
    )
    return list(dict.fromkeys(name for name in (*found, *coded) if len(name) > 1))


def is_plain(word: str, ordinary: Collection[str] = ()) -> bool:
    """Whether a capital at the start of a sentence says nothing about this word."""
    return word in OPENERS or COMMON.search(word) is not None or stem_word(word) in ordinary


def lowercase_stems(words: str) -> frozenset[str]:
    """The stems of words that a text writes in lower case."""
    return frozenset(stem_word(fold_case(word)) for word in WORD.findall(words) if word.islower())


def _is_measure(code: str) -> bool:
    """Whether a code is a number with a suffix: "90-day", "5kg", "3rd", "1990s"."""
    return re.fullmatch(r"[\d.,]+[-–]?[^\W\d_]*(?:-[^\W\d_]+)*", code) is not None


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


# --- together -------------------------------------------------------------------------------------------------------


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
    found = [each.text for each in missing_numbers(words, there)] + missing_dates(words, there)
    return found + missing_names(words, there, ordinary)


def missing_numbers(words: str, there: Facts) -> list[Number]:
    """A claim may give the year of a date alone."""
    found = (each for each in numbers(words) if is_number_missing(each, there.numbers))
    return [each for each in found if not each.values & there.years]


def missing_dates(words: str, there: Facts) -> list[str]:
    found = (match[0] for match in DATED.finditer(words))
    return [each for each in found if any(is_date_missing(days, there.dates) for days in dates(each))]


def missing_names(words: str, there: Facts, ordinary: Collection[str] = ()) -> list[str]:
    return [name for name in names(words, ordinary) if is_name_missing(name, there.words, there.short)]


def remove_numbers_and_dates(words: str) -> str:
    """The words without numbers, units of measure, dates, and the remainder of "doesn't"."""
    rest = DATED.sub(" ", words)
    for number in reversed(numbers(rest)):
        rest = f"{rest[: number.start]} {rest[number.end :]}"
    return re.sub(r"\b\w+n['’]t\b", " ", rest)
