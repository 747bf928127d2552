"""What rules notice about a claim and the passages it cites. Pure.

Where a capable model judges, hints only advise it and the reader. Where none does, `claim_rules` and `judge` pass a claim
as a repetition, a cell or an edit only if it has no hints. A synthesis does not count an open claim with hints as
telling its item, which is then quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from assay.language import facts
from assay.language.negation import count_negations, find_denial, find_reversal
from assay.language.qualifiers import Qualifier, find_qualifiers, stems_after
from assay.language.quantities import is_number_missing, numbers
from assay.language.roles import find_swapped_roles
from assay.language.sentences import split_statements
from assay.language.table_figures import (
    Tables,
    find_misplaced,
    find_missing,
    find_other_signs,
    find_other_units,
    find_turned_rows,
    plain,
)
from assay.language.terms import content_terms, fold_case
from assay.language.words import word_list

OPENING = re.compile(r"^\s*(?:(?:yes|no)\b\s*[,:;.–—-]\s*|[A-Z][^:.;,?!\d]{0,50}:\s+(?=\S))", re.I)  # "Yes," or a label
PREFIXES = ("contra", "counter", "mis", "anti", "un", "dis", "non", "in", "im", "il", "ir", "pseudo")
JOINED = re.compile(rf"\b({'|'.join(PREFIXES)})[-‐‑](?=[a-z]{{4}})", re.I)
MOVED = re.compile(r"\b(?:go|goes|going|went|gone|was|were|is|are|came|come) (up|down)\b", re.I)
OUT = re.compile(r"\bout of\b", re.I)
DIGITS = re.compile(r"\d+")
# A claim that has a word of one of these classes keeps what the passage qualifies. Other classes keep only themselves.
KEPT_BY = {
    "plan": ("plan", "chance", "forecast"),
    "forecast": ("forecast", "chance", "belief"),
    "chance": ("chance", "plan", "belief", "forecast"),
    "report": ("report", "belief"),
}
NARROW, BOUNDS, WIDE = ("some", "most", "only"), ("at least", "up to"), ("all", "only")
BACK = re.compile(r"(?:It|They|He|She|This|These|That|Those|The (?:[Cc]ompany|[Gg]roup|[Ff]irm|latter|former))\b")
SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}
CODE = re.compile(rf"\b({'|'.join(SIGNS)})\s?(?=\d)")
LONGEST, MOST = 1500, 8  # characters of a claim that are read; hints
SENTENCES = 3  # at most, that a claim is compared with
REACH = 3  # words after a word of scope that it is about
# Shares of a claim's words that one sentence has:
REPEATED = 0.8  # the claim repeats the sentence
SIMILAR = 0.5  # both are about the same
APART = 0.2  # the sentence is about something else


def find_hints(claim_text: str, passages: Sequence[str], above: Sequence[str] = ()) -> tuple[str, ...]:
    """One short sentence for each thing that the rules notice. `above` are titles, headings and dates of the passages:
    they tell what a passage is about, and state nothing."""
    claim = _plain(OPENING.sub("", claim_text, count=1) or claim_text)[:LONGEST]
    passages = [_plain(passage) for passage in passages]
    near = nearest(claim, passages, above)
    found = [
        *_facts(claim, passages, above),
        *_elsewhere(claim, passages),
        *_polarity(claim, near),
        *_prefixes(claim, near, passages),
        *(hint for sentence in near for rule in (_qualified, _scope, _roles) for hint in rule(claim, sentence)),
    ]
    return tuple(dict.fromkeys(found))[:MOST]


def _plain(text: str) -> str:
    """Without marks, and with a sign for each currency that has one: "USD 5" is no name."""
    return CODE.sub(lambda match: SIGNS[match[1]], plain(text))


def nearest(claim: str, passages: Sequence[str], above: Sequence[str] = ()) -> list[str]:
    """The sentences that together have most words of the claim, best first. Words of titles say little: they break ties."""
    wanted = _terms(claim)
    left, titled = set(wanted), {term for title in above for term in content_terms(title)}
    known = [(own, _terms(own)) for own in _sentences(passages)]
    found: list[str] = []
    while known and len(found) < SENTENCES:
        own, terms = max(
            known, key=lambda pair: (len(left & pair[1]) - len(left & pair[1] & titled) / 2, -len(pair[1]))
        )
        if len(left & terms) < (max(2, len(wanted) // 4) if found else 1):
            break
        found.append(own)
        left -= terms
    return found


def _sentences(passages: Sequence[str]) -> list[str]:
    return [sentence for text in passages for sentence in _sentences_of(text)]


@lru_cache(maxsize=1024)  # the same passages are read for every claim
def _sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a passage. One that begins with a reference to the sentence before it is joined to that."""
    found: list[str] = []
    for start, end in split_statements(text):
        if found and BACK.match(text, start):
            found[-1] += f" {text[start:end]}"
        else:
            found.append(text[start:end])
    return tuple(found)


@lru_cache(maxsize=4096)
def _terms(words: str) -> frozenset[str]:
    """Stems, figures and dates."""
    found = facts.facts_of(words)
    figures = [each.text for each in found.numbers] + [str(max(days)) for days in found.dates]
    return frozenset((*content_terms(facts.remove_numbers_and_dates(words)), *figures))


def _facts(claim: str, passages: Sequence[str], above: Sequence[str]) -> Iterator[str]:
    tables = Tables.of(passages)
    for each in find_missing(claim, (*above, *passages), tables):
        yield f"“{each}” is not in the passages."
    for figure, unit in find_other_units(claim, passages):
        yield f"The passages do not give “{figure}” in that unit, but in {unit}."
    for figure, sign in find_other_signs(claim, passages, tables):
        yield f"The passages have “{figure}” {sign} a minus sign."
    for figure, where, label in find_misplaced(claim, tables):
        yield f"“{figure}” stands in the {where} “{label}”."
    yield from find_turned_rows(claim, tables)


def _polarity(claim: str, near: Sequence[str]) -> Iterator[str]:
    """A negation or an opposite direction on one side only, where the claim repeats a sentence. Both together agree."""
    claim, best = (OUT.sub("not in", MOVED.sub(_moved, text)) for text in (claim, "".join(near[:1])))
    if _repeated(claim, best) < SIMILAR:
        return
    denied = find_denial(*(DIGITS.sub(" ", text) for text in (claim, best)))  # a number is denied with what it counts
    turned = find_reversal(claim, best)
    if turned and not denied:
        yield "The claim says “{}”, the passage “{}”.".format(*turned.split(" / "))
    if denied and not turned and _denies(claim) != _denies(best):
        yield f"A negation stands on one side only, at “{denied}”."


def _denies(text: str) -> bool:
    return count_negations(text) > 0 or any(each.kind == "denial" for each in find_qualifiers(text))


def _moved(match: re.Match[str]) -> str:
    return "rose" if match[1].lower() == "up" else "fell"


def _repeated(claim: str, sentence: str) -> float:
    """The share of a claim's words that a sentence has."""
    here = _terms(claim)
    return len(here & _terms(sentence)) / len(here) if here else 0.0


def _elsewhere(claim: str, passages: Sequence[str]) -> Iterator[str]:
    """Figures that stand only in sentences with hardly any other word of the claim. A row of a table has few words."""
    words, sentences = facts.remove_numbers_and_dates(claim), _sentences(passages)
    for number in (each for each in numbers(claim) if each.is_figure):
        holding = [each for each in sentences if not is_number_missing(number, facts.facts_of(each).numbers)]
        prose = all(each.rstrip().endswith((".", ";", "”")) for each in holding)
        if holding and prose and max(_repeated(words, each) for each in holding) < APART:
            yield f"“{number.text}” stands in a sentence about something else."


def _prefixes(claim: str, near: Sequence[str], passages: Sequence[str]) -> Iterator[str]:
    """A word that one side has only with a prefix that turns it round: "indicated", "contraindicated"."""
    ours, close, known = (_words(text) for text in (claim, "\n".join(near), "\n".join(passages)))
    for bare, turned, mine in ((ours, close, True), (close, ours, False)):
        for word in sorted(bare):
            for prefix in PREFIXES:
                other = prefix + word
                if len(word) < 4 or word in word_list("not_prefixed"):
                    continue
                if other in turned and other not in bare:
                    one, two = (word, other) if mine else (other, word)
                    yield f"The claim says “{one}”, the passage “{two}”."
                elif mine and other in known and word not in known and word not in turned:
                    yield f"The claim says “{word}”, the passage “{other}”."


def _words(text: str) -> frozenset[str]:
    return frozenset(facts.WORD.findall(JOINED.sub(r"\1", fold_case(text))))


def _qualified(claim: str, sentence: str) -> Iterator[str]:
    """Words of report or doubt around what the claim repeats, where the claim has none of their kind."""
    kept = {each.kind for each in find_qualifiers(claim)} | ({"denial"} if count_negations(claim) else set())
    dropped: dict[str, Qualifier] = {}
    for each in find_qualifiers(sentence):
        if not kept.intersection(KEPT_BY.get(each.kind, (each.kind,))) and not _keeps_end(claim, sentence, each):
            dropped.setdefault(each.kind, each)
    for each in dropped.values():
        yield f"The passage says “{each.text}” ({each.meaning}), and the claim does not."


def _keeps_end(claim: str, sentence: str, each: Qualifier) -> bool:
    """Whether the claim has the date or number that a passage names after "until"."""
    end = " ".join(sentence[each.end :].split()[:3])
    named = facts.facts_of(end).numbers or facts.facts_of(end).dates
    return each.text == "until" and bool(named) and not facts.missing_facts(end, claim)


def _scope(claim: str, sentence: str) -> Iterator[str]:
    """Words of scope on one side only, beside words that both sides have. What the claim adds counts only if the claim
    repeats the sentence."""
    ours, theirs = find_qualifiers(claim, "scopes"), find_qualifiers(sentence, "scopes")
    here, there = _terms(claim), _terms(sentence)
    mine, other = {each.kind for each in ours}, {each.kind for each in theirs}
    for each in theirs:
        narrows = each.kind in NARROW and stems_after(sentence, each, REACH) & here
        if each.kind not in mine and (narrows or (each.kind in BOUNDS and _bounds(sentence[each.end :], claim))):
            yield f"The passage says “{each.text}”, and the claim does not."
            return
    if len(here & there) < REPEATED * len(here):
        return
    for each in ours:
        if each.kind not in other and each.kind in WIDE and stems_after(claim, each, REACH) & there:
            yield f"The claim says “{each.text}”, and the passage does not."
            return


def _bounds(rest: str, claim: str) -> bool:
    """Whether the text after a bound begins with a number of the claim."""
    number = numbers(" ".join(rest.split()[:3]))[:1]
    return bool(number) and number[0].is_figure and not is_number_missing(number[0], numbers(claim))


def _roles(claim: str, sentence: str) -> Iterator[str]:
    if verb := find_swapped_roles(claim, sentence):
        yield f"The words around “{verb}” stand the other way round in the passage."
