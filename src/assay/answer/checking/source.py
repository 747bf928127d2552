"""The text a claim cites, prepared for comparison with the claim: by sentence, each with its titles. Pure."""

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
    """Thresholds for the share of a claim's words that must be found. Measured; see docs/decisions/0007-grounding.md."""

    near: float = 0.9  # of its words in the nearest sentences: the claim says what they say
    least: float = 0.4  # of its words anywhere in its citations; below this it is about something else
    hedged: float = 0.75  # the same for a claim that is hedged
    aligned: float = 0.8  # a sentence with this fraction of the best sentence's share is on the same subject
    beside: float = 0.7  # a number's own sentence must have this fraction of the best sentence's share


# Words that say who reports something and how, not what.
REPORTING_STEMS = frozenset(
    stem_word(word)
    for word in (
        "accord also author claim conclude describe document evidence explain find found indicate mention note overall "
        "passage quotation quote report respectively say said show source specifically state stated study suggest text "
        "therefore thus use"
    ).split()
)


# CAUSAL: wording of a claim that states a cause. WHY: all wording by which a source may give or hint at a reason.
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
    """A sentence with its context: the titles above it, and the preceding sentence if it names nothing itself."""

    own: str
    words: str
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class Source:
    """The parsed citations of a claim."""

    words: str
    terms: frozenset[str]
    windows: tuple[tuple[Window, ...], ...]  # of each piece of evidence

    @staticmethod
    def of(cited: Sequence[Evidence], sources: Sources) -> Source:
        # Two quotations of one passage count as one piece; otherwise the passage would seem to corroborate itself.
        cited = tuple({each.passage.id: each for each in cited}.values())
        above = [_titles(each, sources) for each in cited]
        told = [remove_commands(each.passage.text) for each in cited]
        words = "\n".join(f"{over}\n{own}" for over, own in zip(above, told, strict=True))
        windows = tuple(_windows(over, own) for over, own in zip(above, told, strict=True))
        return Source(words, frozenset(content_terms(words)) | _direction_terms(words), windows)

    def nearest(self, terms: frozenset[str], by: Grounding) -> tuple[float, str]:
        """The share of the claim covered by the nearest sentences, one per piece of evidence; and all sentences that
        cover about as much as the best one."""
        scored = [[(share(terms, window.terms), window) for window in own] for own in self.windows]
        best = [max(own, key=lambda pair: pair[0]) for own in scored if own]
        if not best:
            return 0.0, ""
        top = max(share for share, _ in best)
        union = frozenset(term for _, window in best for term in window.terms)
        aligned = [window.words for own in scored for share, window in own if share >= by.aligned * top]
        return share(terms, union), "\n".join(aligned)

    def untied(self, words: str, terms: frozenset[str], common: frozenset[str], by: Grounding) -> bool:
        """Whether a claim joins unrelated pieces of evidence: no piece states it alone, and the nearest sentences share
        no name and no word that is uncommon in this run. A name in the claim itself does not relate them unless it is a
        designation: two things in one place are not one thing."""
        nearest = [max(own, key=lambda window: share(terms, window.terms)) for own in self.windows if own]
        best = list({window.own: window for window in nearest}.values())  # overlapping passages repeat sentences
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
        """Whether the claim repeats a whole sentence but with a different number of negations."""
        count = count_negations(words)
        alike = [window for window in self.all_windows if _are_alike(terms, claim_terms(window.own))]
        return bool(alike) and all(count_negations(window.own) != count for window in alike)

    def unreasoned(self, words: str, terms: frozenset[str]) -> str:
        """The causal word of a claim if no related sentence gives a reason: two adjacent facts are no cause. Empty
        otherwise."""
        said = CAUSAL.search(words)
        if said is None:
            return ""
        near = [window for window in self.all_windows if len(terms & window.terms) > 1]
        return "" if any(WHY.search(window.own) for window in near) else said[0].lower()

    def apart(self, words: str, terms: frozenset[str], least: float) -> str:
        """A number or date that occurs only apart from what the claim says about it; empty if there is none."""
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
    return f"{sources.titles.get(doc, '')}\n{evidence.passage.above}\n{sources.dates.get(doc, '')}".strip()


def remove_commands(passage: str) -> str:
    """A passage without the sentences that instruct a model: their content is not a statement of the document."""
    if not is_command(passage):
        return passage
    told = (passage[slice(*span)] for span in split_sentences(passage))
    return "\n\n".join(sentence for sentence in told if not is_command(sentence))


@lru_cache(maxsize=4096)
def instruction_terms(passage: str) -> tuple[frozenset[str], ...]:
    """The stems of each sentence that instructs a model."""
    if not is_command(passage):
        return ()
    told = (passage[slice(*span)] for span in split_sentences(passage))
    return tuple(frozenset(content_terms(sentence)) for sentence in told if is_command(sentence))


def _in_several(sets: Sequence[frozenset[str]]) -> set[str]:
    """The terms that occur in more than one set."""
    return {each for own in sets for each in own if sum(each in other for other in sets) > 1}


def _words(sentence: str) -> frozenset[str]:
    return frozenset(term for term in content_terms(sentence) if not term.isdigit())


def _has_digit(name: str) -> bool:
    return any(sign.isdigit() for sign in name)


def missing_terms(terms: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """The members of `terms` that are missing from `there`."""
    return frozenset(term for term in terms if not _has_term(term, there))


@lru_cache(maxsize=1024)
def _windows(above: str, passage: str) -> tuple[Window, ...]:
    spans = split_statements(passage) or [(0, len(passage))]  # table rows one by one
    found: list[Window] = []
    for place, (start, end) in enumerate(spans):
        own = passage[start:end]
        before = passage[slice(*spans[place - 1])] if place and not find_names(own) else ""
        words = f"{above}\n{before}\n{own}"
        found.append(Window(own, words, frozenset(content_terms(words)) | _direction_terms(words)))
    return tuple(found)


@lru_cache(maxsize=4096)
def claim_terms(words: str) -> frozenset[str]:
    """The stems of a claim without reporting words, numbers and dates; numbers and dates are checked separately."""
    return (
        frozenset(term for term in content_terms(facts.remove_numbers_and_dates(words)) if len(term) > 1)
        - REPORTING_STEMS
    )


def _direction_terms(words: str) -> frozenset[str]:
    """One term per direction of the words, so that "rose" matches "increased"."""
    return frozenset(f"→{pair}.{side}" for pair, sides in find_directions(words).items() for side in sides)


def share(terms: frozenset[str], there: frozenset[str]) -> float:
    """The fraction of `terms` found in `there`."""
    return sum(_has_term(term, there) for term in terms) / len(terms) if terms else 0.0


def _are_alike(terms: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two sentences have the same words except for a few."""
    return bool(others) and len(terms & others) >= 0.8 * max(len(terms), len(others))


def _has_term(term: str, there: frozenset[str]) -> bool:
    """Also matches other forms (leakage for leaks) and words of the same direction."""
    if term in there or term.isdigit():
        return term in there
    if any(f"→{pair}.{side}" in there for pair, side in directions_by_stem().get(term, ())):
        return True
    return len(term) >= 5 and any(
        len(other) >= 4 and (term.startswith(other) or other.startswith(term)) for other in there
    )
