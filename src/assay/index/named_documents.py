"""Which documents a question names: by organisation, file name and period. Pure; a search weights them and hides no others.

docs/decisions/0022-finding-the-page.md has the effect of each part.
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from assay.core.identity import ORGANISATION, PERIOD, file_words
from assay.language.dates import MONTHS
from assay.language.terms import fold_case, stop_words, word_list

NAME_WEIGHT, PERIOD_WEIGHT = 0.8, 0.6  # in units of the spread of the fused scores
MOST_NAMED = 24  # documents that are searched on their own
FILE_SHARES = (0.25, 0.75)  # a word of file names in this share of the documents selects fully; not at all
# The same for a word of organisations: a name means it even if half the documents are its own.
ORGANISATION_SHARES = (0.6, 0.95)
FILE_WORD = 0.6  # of a word that only a file name has: weaker than the name of an organisation
LOWER_CASE = 0.3  # the same of a word that the question does not write as a name
LEAST_NAMED = 0.5  # so one ordinary word names no file, and two do
ABBREVIATED = 0.7  # of capitals that a name begins with

WORD = re.compile(r"[^\W_]+(?:[&.'’-][^\W_]+)*")
YEARS = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
SHORT_YEAR = re.compile(r"\bFY ?['’]?(\d\d)\b(?!\d)", re.IGNORECASE)
QUARTERS = re.compile(r"\bq([1-4])(?!\d)|\b(first|second|third|fourth)[- ](?:fiscal )?quarter", re.IGNORECASE)
_NAMES = "|".join(calendar.month_name[1:])
MONTH = re.compile(rf"\b({_NAMES}),? (?:19|20)\d\d|\b(?:19|20)\d\d-(0[1-9]|1[0-2])\b(?!-\d)", re.IGNORECASE)
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """What a document may be called in a question."""

    id: str
    name: str  # of its organisation, written as one word
    organisation: frozenset[str]  # the words of it
    aliases: frozenset[str]  # initials
    file: frozenset[str]  # words of the file name
    years: frozenset[int]
    quarter: int  # 0 for none
    month: int


def named_document(id: str, uri: str, meta: Mapping[str, str]) -> NamedDocument:
    organisation = [fold_case(word) for word in re.findall(r"[^\W_]+|&", meta.get(ORGANISATION, ""))]
    core = [word for word in organisation if word not in word_list("legal_words")]
    words = [word for word in core if word != "&"]
    file = [fold_case(word) for word in file_words(uri)]
    dated = f"{meta.get(PERIOD, '')} {' '.join(file_words(uri))}"
    own = re.search(r"(?:FY)?((?:19|20)\d\d)", meta.get(PERIOD, ""))  # the year that the document calls its own
    years = {int(own[1])} if own else set()
    return NamedDocument(
        id,
        "".join(words),
        frozenset(words),
        frozenset(_initials(core)),
        frozenset(word for word in file if not YEARS.fullmatch(word)),
        frozenset(years | {int(year) for year in YEARS.findall(" ".join(file))}),
        _quarter(dated),
        _month(meta.get(PERIOD, "")),
    )


def _initials(words: Sequence[str]) -> Iterator[str]:
    if len(words) >= 2:
        for joint in ("", "n", "and"):
            yield "".join(joint if word == "&" else word[0] for word in words)


@dataclass(frozen=True, slots=True)
class NameTable:
    """The documents of a search by what they may be called."""

    documents: tuple[NamedDocument, ...] = ()
    by_name: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_organisation: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_alias: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_file: Mapping[str, frozenset[str]] = field(default_factory=dict)


def name_table(documents: Iterable[NamedDocument]) -> NameTable:
    listed = tuple(documents)
    return NameTable(
        listed,
        _inverted((each.id, {each.name} - {""}) for each in listed),
        _inverted((each.id, each.organisation) for each in listed),
        _inverted((each.id, each.aliases) for each in listed),
        _inverted((each.id, each.file) for each in listed),
    )


def _inverted(pairs: Iterable[tuple[str, Iterable[str]]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for id, words in pairs:
        for word in words:
            found.setdefault(word, set()).add(id)
    return {word: frozenset(ids) for word, ids in found.items()}


@dataclass(frozen=True, slots=True)
class NamedWeights:
    """What a question adds to the fused scores of documents, and the documents that it names."""

    weights: Mapping[str, float] = field(default_factory=dict)
    named: tuple[str, ...] = ()


def words_of_names(question: str, table: NameTable) -> dict[str, frozenset[str]]:
    """Words of the question that are part of the name of an organisation which the question does not name in full, with its
    documents. Such a word is a name only if it is rare: see `weigh_named`."""
    words = [word for word, _ in _words(question)]
    in_full = frozenset().union(*(table.by_name.get(word, ()) for word in words))
    found = {word: table.by_organisation[word] for word in words if word in table.by_organisation}
    return {word: ids for word, ids in found.items() if not ids <= in_full}


def weigh_named(question: str, table: NameTable, common: Collection[str] = ()) -> NamedWeights:
    """The documents that a question names, with weights. Words that most documents share have none.

    common: of `words_of_names`, those that other documents have, too: "water" does not mean a company called Valley Water
    """
    if len(table.documents) < 2:
        return NamedWeights()
    scores = _name_scores(question, table, common)
    best = max(scores.values(), default=0.0)
    strength = min(1.0, best)
    close = {id: (score / best) ** 2 for id, score in scores.items()}
    years, quarter, month = _years(question), _quarter(question), _month(question)
    if not close and not years:
        return NamedWeights()
    candidates = [each for each in table.documents if each.id in close] if close else table.documents
    periods = {each.id: _period_score(each, years, quarter, month) for each in candidates} if years or quarter else {}
    covering = sum(score >= 1 for score in periods.values())
    year_alone = 0.5 * _selectivity(covering, len(table.documents), FILE_SHARES) if covering and not close else 0.0
    weights: dict[str, float] = {}
    for each in candidates:
        name = strength * close.get(each.id, 0.0)
        period = periods.get(each.id, 0.0) * (name if close else year_alone)
        weights[each.id] = NAME_WEIGHT * name + PERIOD_WEIGHT * period
    named = [id for id in weights if strength >= 0.5 and close.get(id, 0.0) >= 0.5]
    named.sort(key=lambda id: (-weights[id], id))
    return NamedWeights(weights, tuple(named[:MOST_NAMED]))


def _name_scores(question: str, table: NameTable, common: Collection[str]) -> dict[str, float]:
    """For each document, the weight of the words of the question that its names have."""
    scores: dict[str, float] = defaultdict(float)
    matched: dict[str, float] = defaultdict(float)
    for word, shown in _words(question):
        is_name = any(map(str.isupper, shown)) or any(map(str.isdigit, shown))
        found = dict.fromkeys(table.by_file.get(word, ()), FILE_WORD if is_name else LOWER_CASE)
        if shown[1:2].isupper() or "&" in shown:
            found |= dict.fromkeys(table.by_alias.get(word, ()), 1.0)
            if len(word) >= 3 and shown.isupper() and not found:
                begun = (ids for name, ids in table.by_organisation.items() if name.startswith(word))
                found |= {id: ABBREVIATED for ids in begun for id in ids}
        organisations = table.by_name.get(word, frozenset()) | (
            frozenset() if word in common else table.by_organisation.get(word, frozenset())
        )
        found |= dict.fromkeys(organisations, 1.0)
        shares = ORGANISATION_SHARES if organisations else FILE_SHARES
        selective = _selectivity(len(found), len(table.documents), shares)
        for id, strength in found.items():
            scores[id] += selective * strength
            matched[id] += strength
    return {id: score for id, score in scores.items() if score > 0 and matched[id] >= LEAST_NAMED}


def _words(question: str) -> Iterator[tuple[str, str]]:
    """Words of the question that may name a document, folded and as written; up to five together also as one word."""
    shown = [re.sub(r"['’]s?$", "", word) for word in WORD.findall(question)]
    folded = [re.sub(r"[&.'’-]", "", fold_case(word)) for word in shown]
    seen: set[str] = set()
    ignored = stop_words() | word_list("legal_words") | word_list("file_kinds")
    for size in range(1, 6):
        for first in range(len(shown) - size + 1):
            word = "".join(folded[first : first + size])
            phrase = " ".join(shown[first : first + size])
            if word in seen or (size == 1 and (word in ignored or (YEARS.fullmatch(word) is not None))):
                continue
            if size > 1 and not phrase[:1].isalnum():
                continue
            seen.add(word)
            yield word, phrase
            for part in re.split(r"[.'’-]", shown[first]) if size == 1 and re.search(r"[.'’-]", shown[first]) else ():
                if (piece := fold_case(part)) not in seen and piece not in ignored and len(piece) > 1:
                    seen.add(piece)
                    yield piece, part


def _selectivity(found: int, count: int, shares: tuple[float, float]) -> float:
    rare, common = shares
    return min(1.0, max(0.0, (common - found / count) / (common - rare)))


def _years(text: str) -> set[int]:
    return {int(year) for year in YEARS.findall(text)} | {2000 + int(year) for year in SHORT_YEAR.findall(text)}


def _quarter(text: str) -> int:
    match = QUARTERS.search(text)
    return 0 if match is None else int(match[1]) if match[1] else ORDINALS[match[2].lower()]


def _month(text: str) -> int:
    match = MONTH.search(text)
    return 0 if match is None else int(match[2]) if match[2] else MONTHS[match[1].lower()]


def _period_score(document: NamedDocument, years: Iterable[int], quarter: int, month: int) -> float:
    """1 if the document covers the latest period that the question names; a report also has the figures of the year before."""
    asked = sorted(years)
    if not asked:
        score = 0.5
    elif not document.years:
        score = 0.3
    elif asked[-1] in document.years:
        score = 1.0
    elif asked[-1] + 1 in document.years or {*asked} & document.years:
        score = 0.4
    else:
        score = 0.0
    if month and document.month:
        return score * (1.0 if document.month == month else 0.5)
    if quarter:
        return score * (1.0 if document.quarter == quarter else 0.5)
    return score * (0.7 if document.quarter in (1, 2, 3) else 1.0)  # the fourth quarter closes the year
