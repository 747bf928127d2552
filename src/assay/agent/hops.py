"""Hopping by name: which passages of a run belong together, and which name leads on from one to the next.

A run without a model is a list of searches. This module reads that list and nothing else: it scores every passage
found by how well it answers the question itself and by how well it continues a passage that does. Pure throughout.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from assay import text
from assay.types import Hit


@dataclass(frozen=True, slots=True)
class Hops:
    """How far to follow names. The defaults were measured; see docs/decisions/0004-multihop-without-a-model.md."""

    limit: int = 12  # searches for one question, the first included
    first: int = 50  # how many hits the first search asks for: they are also the sample that tells rare from common
    width: int = 20  # how many hits every later search asks for
    seeds: int = 5  # passages whose names are followed, per round
    rounds: int = 2  # hops after the first search
    per_round: tuple[int, ...] = (7, 3)  # searches each round may ask for
    named: int = 2  # searches for names that stand in the question
    named_worth: float = 0.6  # what being found under a name of the question is worth beside the question itself
    residual: bool = True  # ask for the name and what is still open, not for the name alone
    rarity: bool = True
    gain: bool = True
    carried: bool = True  # a passage reached by a hop can be a source as good as its link
    returned: float = 0.0  # how much of a link's certainty its source may claim
    rivals: float = 1.0  # what each better passage under the same name leaves to the next
    pieces: bool = True
    titled: float = 0.0
    phrase_titled: float = 0.0
    phrase_how: str = "sum"
    common: float = 0.1
    spread: float = 0.0
    oracle: object = None
    phrase: float = 0.0  # what holding a rare name of the question is worth
    linked: float = 2.0  # what a certain link is worth beside the score of the first search
    # The link's log-odds: how good the source is, how near the passage is to name and open question together,
    # how rare the name is, how much of the question's open words the passage adds.
    of_source: float = 5.0
    of_nearness: float = 6.2
    of_rarity: float = 1.18
    of_gain: float = 7.8
    bias: float = -8.4


@dataclass(frozen=True, slots=True)
class Lead:
    """A search worth making, and why. A hop knows the name it follows and the passage it comes from."""

    query: str
    reason: str
    k: int
    name: str = ""
    source: str = ""  # id of a passage already found


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """A search that was made: what was asked, the vector of its words, and what came back, best first."""

    lead: Lead
    vector: np.ndarray
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Why a passage continues another one: the name both hold, and how sure we are, between 0 and 1."""

    name: str
    source: str
    sure: float


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    hit: Hit
    score: float
    direct: float
    link: Link | None = None


PIECES = True
# --- reading passages -----------------------------------------------------------------------------------------------


def key(name: str) -> str:
    """A name as it is compared: folded words, single spaces. "The Exies" and "the exies" are one name."""
    return " ".join(re.findall(r"[^\W_]+", text.fold(name)))


def bare_title(title: str) -> str:
    """A title without the bracket that tells namesakes apart: "Brand (play)" is called Brand."""
    return re.sub(r"\s*\([^()]*\)\s*$", "", title) or title


@dataclass(frozen=True, slots=True)
class Page:
    """What the rules read off one passage, once."""

    padded: str  # its words with a space at both ends, so that a name is found by `in`
    terms: frozenset[str]
    names: Mapping[str, tuple[str, int]]  # key → the name as written, and the sentence it stands in (-1: the title)
    sentence_terms: tuple[frozenset[str], ...]
    called: str


@lru_cache(maxsize=4096)
def read(title: str, body: str) -> Page:
    spoken: dict[str, tuple[str, int]] = {}
    spans = text.sentences(body)
    for number, (start, end) in enumerate(spans):
        for name in text.names(body[start:end]):
            spoken.setdefault(key(name.text), (name.text, number))
            if PIECES and " of " in name.text:
                left, _, right = name.text.partition(" of ")
                right = right.removeprefix("the ")
                if " " in left:
                    spoken.setdefault(key(left), (left, number))
                    spoken.setdefault(key(right), (right, number))
    called = bare_title(title)
    spoken.setdefault(key(called), (called, -1))
    return Page(
        padded=f" {key(title)} {key(body)} ",
        terms=frozenset(text.terms(f"{title} {body}")),
        names={k: v for k, v in spoken.items() if len(k) > 2},
        sentence_terms=tuple(frozenset(text.terms(body[start:end])) for start, end in spans),
        called=key(called),
    )


def page_of(hit: Hit) -> Page:
    return read(hit.title, hit.passage.text)


# --- scoring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Board:
    """The run so far, scored: every passage once, what it is worth directly, and its best link."""

    question: str
    hits: Mapping[str, Hit]
    direct: Mapping[str, float]
    links: Mapping[str, Link]
    weights: Mapping[str, float]  # the question's terms, by how rare they are among what was found; they add up to 1
    hops: Hops = field(default_factory=Hops)
    out: Mapping[str, float] = field(default_factory=dict)

    def worth(self, passage: str) -> float:
        link = self.links.get(passage)
        sure = max(link.sure if link else 0.0, self.hops.returned * self.out.get(passage, 0.0))
        return self.direct[passage] + self.hops.linked * sure

    def as_source(self, passage: str) -> float:
        link = self.links.get(passage)
        return max(self.direct[passage], link.sure if link and self.hops.carried else 0.0)

    def path(self, passage: str) -> tuple[str, ...]:
        """The passage and those it was reached from, nearest first."""
        steps = [passage]
        while (link := self.links.get(steps[-1])) and link.source not in steps and self.direct[steps[-1]] < link.sure:
            steps.append(link.source)
        return tuple(steps)

    def covered(self, passages: Sequence[str]) -> frozenset[str]:
        return frozenset(t for t in self.weights if any(t in page_of(self.hits[p]).terms for p in passages))

    def weight(self, terms: frozenset[str]) -> float:
        return sum(self.weights.get(t, 0.0) for t in terms)


def score(question: str, ran: Sequence[Ran], hops: Hops) -> Board:
    """Score everything found so far. The first search is the one for the question itself."""
    hits: dict[str, Hit] = {}
    for search in ran:
        for hit in search.hits:
            hits.setdefault(hit.passage.id, hit)
    board = Board(question, hits, _direct(ran, hits, hops), {}, _weights(question, hits), hops)
    links: dict[str, Link] = {}
    for search in ran:  # in the order they were made, so a second hop sees the link of the first
        lead = search.lead
        if not lead.name or lead.source not in hits:
            continue
        board = Board(question, hits, board.direct, links, board.weights, hops)
        reached = sorted(_reached(board, search).items(), key=lambda pair: -pair[1])
        for place, (link_to, odds) in enumerate(reached):
            sure = odds * hops.rivals**place
            if link_to not in links or sure > links[link_to].sure:
                links[link_to] = Link(lead.name, lead.source, sure)
    board = Board(question, hits, board.direct, links, board.weights, hops)
    if hops.returned:
        out: dict[str, float] = {}
        for link in links.values():
            out[link.source] = max(out.get(link.source, 0.0), link.sure)
        board = Board(question, hits, board.direct, links, board.weights, hops, out)
    return board


def _direct(ran: Sequence[Ran], hits: Mapping[str, Hit], hops: Hops) -> dict[str, float]:
    """What one search for the question says of each passage, between 0 and 1, also for those it did not return."""
    first = ran[0]
    near = {hit.passage.id: float(first.vector @ hit.vector) for hit in hits.values()}
    returned = [near[hit.passage.id] for hit in first.hits] or [0.0]
    low, high = min(returned), max(returned)
    direct = {p: 0.7 * min(1.0, max(0.0, (n - low) / (high - low or 1.0))) for p, n in near.items()}
    direct |= {hit.passage.id: hit.scores["fused"] for hit in first.hits}
    if hops.phrase:
        bonus: dict[str, list[float]] = {}
        held = {key(name.text): name for name in text.names(ran[0].lead.query)}
        for k in held:
            wanted = f" {k} "
            holding = [p for p, hit in hits.items() if wanted in page_of(hit).padded]
            df = hops.oracle(k) if hops.oracle else len(holding)
            for p in holding:
                rare = max(0.0, 1 - math.log(1 + df) / math.log(50))
                bonus.setdefault(p, []).append(rare + (hops.phrase_titled if page_of(hits[p]).called == k else 0.0))
        for p, parts in bonus.items():
            how = {"sum": sum(parts), "max": max(parts), "mean": sum(parts) / len(held), "root": sum(parts) / len(held) ** 0.5}
            direct[p] += hops.phrase * how[hops.phrase_how]
    for search in ran[1:]:
        if search.lead.source:
            continue
        for hit in search.hits:  # found under a name that stands in the question
            if f" {key(search.lead.name)} " in page_of(hit).padded:
                worth = hops.named_worth * hit.scores["fused"]
                direct[hit.passage.id] = max(direct[hit.passage.id], worth)
    return direct


def _weights(question: str, hits: Mapping[str, Hit]) -> dict[str, float]:
    pages = [page_of(hit) for hit in hits.values()]
    rare = {
        term: math.log(1 + len(pages) / (0.5 + sum(term in page.terms for page in pages)))
        for term in text.terms(question)
    }
    total = sum(rare.values()) or 1.0
    return {term: weight / total for term, weight in rare.items()}


def _reached(board: Board, search: Ran) -> dict[str, float]:
    """How sure it is that each passage holding the followed name continues the passage the name came from."""
    hops, source = board.hops, search.lead.source
    wanted = f" {key(search.lead.name)} "
    holding = [p for p, hit in board.hits.items() if wanted in page_of(hit).padded]
    path = board.path(source)
    known = board.covered(path)
    fixed = hops.bias + hops.of_source * min(1.0, board.as_source(source))
    if hops.rarity:
        df = hops.oracle(wanted[1:-1]) if hops.oracle else len(holding)
        fixed -= hops.of_rarity * math.log(1 + df)
    sure = {}
    for passage in holding:
        if passage in path:
            continue
        odds = fixed + hops.of_nearness * float(search.vector @ board.hits[passage].vector)
        if hops.gain:
            odds += hops.of_gain * board.weight(board.covered((passage,)) - known)
        if hops.titled and page_of(board.hits[passage]).called == wanted[1:-1]:
            odds += hops.titled
        sure[passage] = 1 / (1 + math.exp(-odds))
    return sure


def order(question: str, ran: Sequence[Ran], hops: Hops | None = None) -> list[Ranked]:
    """Everything found, best first: what answers the question and what continues it, in one list."""
    board = score(question, ran, hops or Hops())
    ranked = [Ranked(hit, board.worth(p), board.direct[p], board.links.get(p)) for p, hit in board.hits.items()]
    return sorted(ranked, key=lambda r: (-r.score, r.hit.passage.id))
