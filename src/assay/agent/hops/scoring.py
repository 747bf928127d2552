"""Hopping by name: which passages of a run belong together, and which of them a name leads to.

A run without a model is a list of searches. This module reads that list and nothing else, and scores every passage
found by how well it answers the question itself and by how well it continues one that does. leads.py decides from it.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from assay.core.events import (
    Mode,
)
from assay.core.types import Hit
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case


@dataclass(frozen=True, slots=True)
class HopSettings:
    """How far names are followed. Measured: see docs/decisions/0004-multihop-without-a-model.md."""

    limit: int = 12  # searches for one question, the first included
    rounds: tuple[int, ...] = (7, 4)  # searches each hop may add
    first: int = 50  # hits of the first search: they are also the sample that tells a rare word from a common one
    width: int = 20  # hits of every later search
    seeds: int = 5  # passages whose names are followed, each round
    missing: int = 2  # names of the question that no passage holds yet, searched on their own
    enough: float = 0.99  # share of the question the best chain must hold to stop early; above 1: never stop for it

    residual: bool = True  # ask for the name and what is still open, not for the name alone
    pieces: bool = True  # "Ann Lee of Oak Hill" is also Ann Lee, and Oak Hill

    # What a passage is worth directly: one search, plus the rare names of the question it holds, plus being about one.
    held: float = 0.5
    titled: float = 0.3

    # What a link is worth beside that, and its log-odds: how good the passage it comes from is, how near its end is to
    # name and open question together, how many passages hold the name, how many open words of the question it adds.
    linked: float = 2.0
    of_source: float = 5.0
    of_nearness: float = 6.2
    of_holders: float = 1.18
    of_gain: float = 7.8
    bias: float = -7.4
    rivals: float = 0.6  # what each better passage under the same name leaves to the next
    returned: float = 1.0  # how much of a link's certainty its source may claim: who leads on was worth finding


@dataclass(frozen=True, slots=True)
class Lead:
    """A search worth making, and why. A hop knows the name it follows and the passage it comes from."""

    query: str
    reason: str
    k: int
    name: str = ""
    source: str = ""  # id of a passage already found


@dataclass(frozen=True, slots=True, eq=False)
class PastSearch:
    """A search that was made: what was asked, the unit vector of its words, and what came back, best first."""

    lead: Lead
    vector: np.ndarray
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class NameLink:
    """Why a passage continues another one: the name both hold, and how sure that is, between 0 and 1."""

    name: str
    source: str
    sure: float


@dataclass(frozen=True, slots=True, eq=False)
class RankedPassage:
    """A passage in its place: what it is worth in all and by itself, and the link that brought it, if one did."""

    hit: Hit
    score: float
    direct: float
    link: NameLink | None = None


# --- reading passages -----------------------------------------------------------------------------------------------


def name_key(name: str) -> str:
    """A name as it is compared: folded words, single spaces."""
    return " ".join(re.findall(r"[^\W_]+", fold_case(name)))


def bare_title(title: str) -> str:
    """A title without the bracket that tells namesakes apart: "Brand (play)" is called Brand."""
    return re.sub(r"(?<!\s)\s*+\([^()]*+\)\s*$", "", title) or title


@dataclass(frozen=True, slots=True)
class PassageTerms:
    """What the rules read off a passage to compare it with others."""

    called: str
    words: str  # with a space at both ends, so that a name is found by `in`
    terms: frozenset[str]

    def holds(self, name: str) -> bool:
        return f" {name} " in self.words


def passage_terms(hit: Hit) -> PassageTerms:
    return _page(hit.title, hit.passage.text)


@lru_cache(maxsize=2048)  # a run scores all that it found again after every round
def _page(title: str, words: str) -> PassageTerms:
    whole = f"{title} {words}"
    return PassageTerms(name_key(bare_title(title)), f" {name_key(whole)} ", frozenset(content_terms(whole)))


def names_in(hit: Hit, pieces: bool) -> dict[str, tuple[str, frozenset[str]]]:
    """The names a passage holds, by key: as written, and the terms of the sentence each first stands in."""
    body = hit.passage.text
    found: dict[str, tuple[str, frozenset[str]]] = {}
    opening: frozenset[str] = frozenset()
    for number, (start, end) in enumerate(split_sentences(body)):
        told = frozenset(content_terms(body[start:end]))
        opening = opening if number else told
        for name in find_names(body[start:end]):
            if not name.start and not _is_name(name.text, f"{hit.title} {body}"):
                continue
            for part in _parts(name.text) if pieces else (name.text,):
                found.setdefault(name_key(part), (part, told))
    called = bare_title(hit.title)
    found.setdefault(name_key(called), (called, opening))
    return {k: v for k, v in found.items() if len(k) > 2}


def _is_name(opening: str, whole: str) -> bool:
    """Whether the word that opens a sentence is a name, and not just a word with a capital because it stands there:
    it has several words, or figures or capitals inside, or is written so in the middle of a sentence as well."""
    if not opening.isalpha() or not opening[1:].islower():
        return True
    return re.search(rf"(?:[^\W\d_]|[,;)]) {re.escape(opening)}\b", whole) is not None


def _parts(name: str) -> tuple[str, ...]:
    left, of, right = name.partition(" of ")
    return (name, left, right.removeprefix("the ")) if of and " " in left else (name,)


# --- scoring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPassages:
    """The run so far, scored: every passage once, what it is worth directly, and the best link to it."""

    question: str
    hits: Mapping[str, Hit]
    pages: Mapping[str, PassageTerms]
    weights: Mapping[str, float]  # the question's terms, by how rare they are among what was found; they add up to 1
    direct: Mapping[str, float]
    hops: HopSettings
    links: dict[str, NameLink] = field(default_factory=dict)

    def worth(self) -> dict[str, float]:
        """What every passage is worth in all: by itself, by the link to it, and by the links it gave rise to."""
        sure = {passage: link.sure for passage, link in self.links.items()}
        for link in self.links.values():
            sure[link.source] = max(sure.get(link.source, 0.0), link.sure * self.hops.returned)
        return {passage: own + self.hops.linked * sure.get(passage, 0.0) for passage, own in self.direct.items()}

    def as_source(self, passage: str) -> float:
        """How far a passage can be trusted to lead on: by itself, or because a link to it is sure."""
        link = self.links.get(passage)
        return min(1.0, max(self.direct[passage], link.sure if link else 0.0))

    def path(self, passage: str) -> tuple[str, ...]:
        """The passage and those it was reached from, nearest first."""
        steps = [passage]
        while (link := self.links.get(steps[-1])) and link.source not in steps and link.sure > self.direct[steps[-1]]:
            steps.append(link.source)
        return tuple(steps)

    def covered(self, passages: Iterable[str]) -> frozenset[str]:
        """The question's terms that stand in these passages."""
        pages = [self.pages[passage] for passage in passages]
        return frozenset(term for term in self.weights if any(term in page.terms for page in pages))

    def weight(self, terms: Collection[str]) -> float:
        return sum(self.weights.get(term, 0.0) for term in terms)

    def holders(self, name: str) -> list[str]:
        return [passage for passage, page in self.pages.items() if page.holds(name)]

    def best(self, count: int) -> list[str]:
        worth = self.worth()
        return sorted(worth, key=lambda passage: (-worth[passage], passage))[:count]


def score_passages(question: str, ran: Sequence[PastSearch], hops: HopSettings) -> ScoredPassages:
    """Score everything found so far. The first search is the one for the question itself."""
    hits: dict[str, Hit] = {}
    for search in ran:
        for hit in search.hits:
            hits.setdefault(hit.passage.id, hit)
    pages = {passage: passage_terms(hit) for passage, hit in hits.items()}
    scored = ScoredPassages(
        question, hits, pages, _weights(question, pages), _direct(question, ran, hits, pages, hops), hops
    )
    for search in ran:  # in the order they were made, so that a second hop stands on the first
        if search.lead.source in hits:
            _follow(scored, search)
    return scored


def question_names(question: str) -> dict[str, str]:
    """The names that stand in the question: key → as written."""
    return {name_key(name.text): name.text for name in find_names(question)}


def _weights(question: str, pages: Mapping[str, PassageTerms]) -> dict[str, float]:
    rare = {
        term: math.log(1 + len(pages) / (0.5 + sum(term in page.terms for page in pages.values())))
        for term in content_terms(question)
    }
    total = sum(rare.values()) or 1.0
    return {term: weight / total for term, weight in rare.items()}


def _direct(
    question: str,
    ran: Sequence[PastSearch],
    hits: Mapping[str, Hit],
    pages: Mapping[str, PassageTerms],
    hops: HopSettings,
) -> dict[str, float]:
    """What each passage is worth by itself, also those that the search for the question did not return."""
    first = ran[0]
    near = {passage: float(first.vector @ hit.vector) for passage, hit in hits.items()}
    # Both are stretched over what the first search returned, so that no scale of scores has to be agreed on. Of a
    # passage it left out only the nearness is known, which is most of its score but not all.
    nearness = _stretch([near[hit.passage.id] for hit in first.hits])
    scored = _stretch([hit.scores["fused"] for hit in first.hits])
    direct = {passage: 0.7 * nearness(value) for passage, value in near.items()}
    direct |= {hit.passage.id: scored(hit.scores["fused"]) for hit in first.hits}
    named, asked = question_names(question), f" {name_key(question)} "
    for name in named:
        holding = [passage for passage, page in pages.items() if page.holds(name)]
        for passage in holding:
            direct[passage] += hops.held * max(0.0, 1 - math.log(1 + len(holding)) / math.log(1 + hops.first))
    for passage, page in pages.items():
        # A title in lower case counts too, unless it is one word: "love" in a question is rarely the film.
        if page.called in named or (" " in page.called and f" {page.called} " in asked):
            direct[passage] += hops.titled
    return direct


def _stretch(values: Sequence[float]) -> Callable[[float], float]:
    """A scale on which the least of the values is 0 and the greatest 1; what lies outside is put at its ends."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high <= low:
        return lambda value: 1.0
    return lambda value: min(1.0, max(0.0, (value - low) / (high - low)))


def _follow(scored: ScoredPassages, search: PastSearch) -> None:
    """Link the passages that hold the followed name to the passage it came from, where nothing better links them."""
    hops, lead = scored.hops, search.lead
    holding = scored.holders(name_key(lead.name))
    path = scored.path(lead.source)
    known = scored.covered(path)
    fixed = hops.bias + hops.of_source * scored.as_source(lead.source) - hops.of_holders * math.log(1 + len(holding))
    sure = {}
    for passage in holding:
        if passage not in path:
            near = float(search.vector @ scored.hits[passage].vector)
            gain = scored.weight(scored.covered((passage,)) - known)
            sure[passage] = 1 / (1 + math.exp(-(fixed + hops.of_nearness * near + hops.of_gain * gain)))
    for place, passage in enumerate(sorted(sure, key=lambda p: (-sure[p], p))):
        link = NameLink(lead.name, lead.source, sure[passage] * hops.rivals**place)
        if passage not in scored.links or link.sure > scored.links[passage].sure:
            scored.links[passage] = link


def rank_passages(question: str, ran: Sequence[PastSearch], hops: HopSettings | None = None) -> list[RankedPassage]:
    """Everything found, best first: what answers the question and what continues it, in one list."""
    if not ran:
        return []
    scored = score_passages(question, ran, hops or HopSettings())
    worth = scored.worth()
    return [
        RankedPassage(scored.hits[passage], worth[passage], scored.direct[passage], scored.links.get(passage))
        for passage in sorted(worth, key=lambda passage: (-worth[passage], passage))
    ]


HOP_SETTINGS: Mapping[Mode, HopSettings] = {
    Mode.quick: HopSettings(limit=6, rounds=(5,)),
    Mode.balanced: HopSettings(),
    Mode.thorough: HopSettings(limit=24, rounds=(7, 4, 4, 4, 4)),
}
