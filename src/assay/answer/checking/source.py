"""What a claim cites, so that the claim can be held against it: sentence by sentence, each with its titles. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.answer.checking import facts
from assay.answer.evidence_text import Sources
from assay.answer.statements import split_statements
from assay.core.types import Evidence
from assay.language.injection import is_command
from assay.language.names import find_names
from assay.language.negation import count_negations, directions_by_stem, find_directions
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, stem_word


@dataclass(frozen=True, slots=True)
class Grounding:
    """How much of a claim's words must be found. Measured; see docs/decisions/0007-grounding.md."""

    near: float = 0.9  # of its words in the sentences it is nearest to: it says what they say
    least: float = 0.4  # of its words anywhere in what it cites: below, it speaks of something else
    hedged: float = 0.75  # the same, where the claim itself says that it is only suggested
    aligned: float = 0.8  # a sentence that has so much of the best one's share speaks of the same
    beside: float = 0.7  # a number's own sentence must have so much of the best one's share


# Words that tell who says something, and how; not what.
REPORTING_STEMS = frozenset(
    stem_word(word)
    for word in (
        "accord also author claim conclude describe document evidence explain find found indicate mention note overall "
        "passage quotation quote report respectively say said show source specifically state stated study suggest text "
        "therefore thus use"
    ).split()
)


# A claim that says one thing is the cause of another; and all that a source may say of why, or only hint at.
CAUSAL = re.compile(
    r"\b(?:because|due to|owing to|thanks to|therefore|hence|consequently|as a result|which is why|caus(?:e|es|ed|ing)"
    r"|lead(?:s|ing)? to|led to|result(?:s|ed|ing)? (?:in|from))\b",
    re.I,
)
WHY = re.compile(
    rf"{CAUSAL.pattern}|\b(?:since|so|thus|reason\w*|why|mak(?:e|es|ing)|made|allow\w*|prevent\w*|enabl\w*|depend\w*"
    r"|explain\w*|produc\w*|induc\w*|trigger\w*|promot\w*|effect\w*|affect\w*|respons\w*|when|if|after|by|through)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Window:
    """A sentence with what it needs to be understood: the titles above it, and the sentence before it if it names nothing."""

    own: str
    words: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Source:
    """What a claim cites, read once."""

    words: str
    terms: frozenset[str]
    windows: tuple[tuple[Window, ...], ...]  # of each piece of evidence

    @staticmethod
    def of(cited: Sequence[Evidence], sources: Sources) -> Source:
        # Two quotations of one passage are one piece to read: it would otherwise seem to bear itself out.
        cited = tuple({each.passage.id: each for each in cited}.values())
        above = [_titles(each, sources) for each in cited]
        told = [remove_commands(each.passage.text) for each in cited]
        words = "\n".join(f"{over}\n{own}" for over, own in zip(above, told, strict=True))
        windows = tuple(_windows(over, own) for over, own in zip(above, told, strict=True))
        return Source(words, frozenset(content_terms(words)) | _direction_terms(words), windows)

    def nearest(self, terms: frozenset[str], by: Grounding) -> tuple[float, str]:
        """How much of the claim the nearest sentences have, one of each piece of evidence; and every sentence that speaks of
        about as much of it as the best one."""
        scored = [[(share(terms, window.terms), window) for window in own] for own in self.windows]
        best = [max(own, key=lambda pair: pair[0]) for own in scored if own]
        if not best:
            return 0.0, ""
        top = max(share for share, _ in best)
        union = frozenset(term for _, window in best for term in window.terms)
        aligned = [window.words for own in scored for share, window in own if share >= by.aligned * top]
        return share(terms, union), "\n".join(aligned)

    def untied(self, words: str, terms: frozenset[str], common: frozenset[str], by: Grounding) -> bool:
        """Whether a claim joins pieces of evidence that have nothing to do with each other: no piece says it alone, and the
        nearest sentences share no name and no word that is not common in this run. What the claim itself names joins
        nothing, unless it is a designation: that two things are in one place does not make them one."""
        nearest = [max(own, key=lambda window: share(terms, window.terms)) for own in self.windows if own]
        best = list({window.own: window for window in nearest}.values())  # overlapping passages have it twice
        if len(best) < 2 or max(share(terms, window.terms) for window in best) >= by.near:
            return False
        own = fold_case(words)
        named = [frozenset(fold_case(name) for name in facts.names(window.own)) for window in best]
        ties = {name for name in frozenset.union(*named) if _has_digit(name) or name not in own}
        places = {term for name in frozenset.union(*named) - ties for term in content_terms(name)}
        told = [_words(window.own) - common - places for window in best]
        return not (_in_several(named) & ties or _in_several(told))

    @property
    def all_windows(self) -> list[Window]:
        return [window for own in self.windows for window in own]

    def miscounted(self, words: str, terms: frozenset[str]) -> bool:
        """Whether the claim says a whole sentence again, but denies something once more or once less."""
        count = count_negations(words)
        alike = [window for window in self.all_windows if _are_alike(terms, claim_terms(window.own))]
        return bool(alike) and all(count_negations(window.own) != count for window in alike)

    def unreasoned(self, words: str, terms: frozenset[str]) -> str:
        """The word by which a claim says why, where nothing that it is nearest to does: two facts side by side are no cause."""
        said = CAUSAL.search(words)
        if said is None:
            return ""
        near = [window for window in self.all_windows if len(terms & window.terms) > 1]
        return "" if any(WHY.search(window.own) for window in near) else said[0].lower()

    def apart(self, words: str, terms: frozenset[str], least: float) -> str:
        """A number or date that stands here only away from what the claim says of it; empty if there is none."""
        all_windows = self.all_windows
        for fact, name in facts.facts_with_subjects(words):
            holding = [window for window in all_windows if not facts.missing_facts(fact, window.words)]
            if name and not any(not facts.missing_facts(name, window.words) for window in holding):
                return f"“{fact}” and “{name}” stand in different sentences"
            if max((share(terms, window.terms) for window in holding), default=0.0) < least / len(self.windows):
                return f"“{fact}” is said of something else"
        return ""


def _titles(evidence: Evidence, sources: Sources) -> str:
    doc = evidence.passage.doc_id
    return f"{sources.titles.get(doc, '')}\n{evidence.passage.heading}\n{sources.dates.get(doc, '')}".strip()


def remove_commands(passage: str) -> str:
    """A passage without the sentences that give a model orders: what they order is nothing that the document states."""
    if not is_command(passage):
        return passage
    told = (passage[slice(*span)] for span in split_sentences(passage))
    return "\n\n".join(sentence for sentence in told if not is_command(sentence))


@lru_cache(maxsize=4096)
def instruction_terms(passage: str) -> tuple[frozenset[str], ...]:
    """The stems of each sentence that gives a model orders."""
    if not is_command(passage):
        return ()
    told = (passage[slice(*span)] for span in split_sentences(passage))
    return tuple(frozenset(content_terms(sentence)) for sentence in told if is_command(sentence))


def _in_several(sets: Sequence[frozenset[str]]) -> set[str]:
    """What stands in more than one of them."""
    return {each for own in sets for each in own if sum(each in other for other in sets) > 1}


def _words(sentence: str) -> frozenset[str]:
    return frozenset(term for term in content_terms(sentence) if not term.isdigit())


def _has_digit(name: str) -> bool:
    return any(sign.isdigit() for sign in name)


def missing_terms(terms: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """What of `terms` is not there."""
    return frozenset(term for term in terms if not _has_term(term, there))


@lru_cache(maxsize=1024)
def _windows(above: str, passage: str) -> tuple[Window, ...]:
    spans = split_statements(passage) or [(0, len(passage))]  # the rows of a table one by one
    found: list[Window] = []
    for place, (start, end) in enumerate(spans):
        own = passage[start:end]
        before = passage[slice(*spans[place - 1])] if place and not find_names(own) else ""
        words = f"{above}\n{before}\n{own}"
        found.append(Window(own, words, frozenset(content_terms(words)) | _direction_terms(words)))
    return tuple(found)


@lru_cache(maxsize=4096)
def claim_terms(words: str) -> frozenset[str]:
    """The stems of what a claim says, without who says it, and without numbers and dates, which are looked at by themselves."""
    return (
        frozenset(term for term in content_terms(facts.remove_numbers_and_dates(words)) if len(term) > 1)
        - REPORTING_STEMS
    )


def _direction_terms(words: str) -> frozenset[str]:
    """A word that points somewhere stands for all that point there: "rose" for "increased"."""
    return frozenset(f"→{pair}.{side}" for pair, sides in find_directions(words).items() for side in sides)


def share(terms: frozenset[str], there: frozenset[str]) -> float:
    """How much of `terms` is there."""
    return sum(_has_term(term, there) for term in terms) / len(terms) if terms else 0.0


def _are_alike(terms: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences say the same words, but for a few."""
    return bool(others) and len(terms & others) >= 0.8 * max(len(terms), len(others))


def _has_term(term: str, there: frozenset[str]) -> bool:
    """Also in another form: leakage where it says leaks; or as a word that points the same way."""
    if term in there or term.isdigit():
        return term in there
    if any(f"→{pair}.{side}" in there for pair, side in directions_by_stem().get(term, ())):
        return True
    return len(term) >= 5 and any(
        len(other) >= 4 and (term.startswith(other) or other.startswith(term)) for other in there
    )
