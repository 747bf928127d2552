"""Which names to follow, by rule: what to search for first and next, when to stop, and how all that was found ranks.
Pure: nothing here searches."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

import numpy as np

from assay.core.events import Mode, StopReason
from assay.core.types import Hit
from assay.language.names import Name, find_names
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, rarity_among, stop_words, uncovered_words

SHORT_TITLE = 3  # words of a title that may be a name without capitals
LABEL = re.compile(r"(?:^|(?<=; ))[^:;\n]{1,60}(?=: )", re.MULTILINE)  # of a cell, in a row that is written out
BEHIND = re.compile(r"[^\W_][,;)”»’]*$|\|$|(?:^|; ?):$")  # a word, or the start of a cell whose label is left out
CODE = re.compile(r"[^\W\d_]-?\d|\d[^\W\d_]")
LONGEST_CODE = 20  # characters; longer ones are keys and digests
HEADER_RULE = re.compile(r"\n\|(?: *:?-{3,}:? *\|)+")  # the line below the header of a table


@dataclass(frozen=True, slots=True)
class HopSettings:
    """How far names are followed. Measured values: see docs/decisions/0004-multihop-without-a-model.md."""

    limit: int = 12  # searches per question, including the first
    rounds: tuple[int, ...] = (7, 4)  # searches each hop may add
    first: int = 50  # hits of the first search; also the sample for telling rare words from common ones
    width: int = 20  # hits of every later search
    seeds: int = 5  # passages whose names are followed per round
    missing: int = 2  # names in the question that no passage contains yet, searched separately
    enough: float = 0.99  # share of the question that the best chain must cover to stop early; above 1 never stops

    # Weights of a direct score: one search, plus the rare names of the question it contains, plus being about one of
    # them.
    held: float = 0.5
    titled: float = 0.3

    # Weight of a link relative to the direct score, and the log-odds terms of a link: the score of its source passage,
    # the similarity of its target to name and open question combined, the number of passages that contain the name, and
    # the open question terms it adds.
    linked: float = 2.0
    of_source: float = 5.0
    of_nearness: float = 6.2
    of_holders: float = 1.18
    of_gain: float = 7.8
    bias: float = -7.4
    rivals: float = 0.6  # decay applied for each better passage under the same name
    returned: float = 1.0  # share of a link's certainty credited to its source passage


@dataclass(frozen=True, slots=True)
class Lead:
    """A candidate search and the reason for it. A hop records the name it follows and the passage it comes from."""

    query: str
    reason: str
    k: int
    name: str = ""
    source: str = ""  # id of a passage already found


@dataclass(frozen=True, slots=True, eq=False)
class PastSearch:
    """A completed search: the query, its unit vector, and the hits, best first."""

    lead: Lead
    vector: np.ndarray
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class NameLink:
    """Why a passage continues another one: the name both contain, and the certainty between 0 and 1."""

    name: str
    source: str
    sure: float


@dataclass(frozen=True, slots=True, eq=False)
class RankedPassage:
    """A passage with its total score, its direct score, and the link that led to it, if any."""

    hit: Hit
    score: float
    direct: float
    link: NameLink | None = None


# --- reading passages -----------------------------------------------------------------------------------------------


def name_key(name: str) -> str:
    """The comparison key of a name: case-folded words, single spaces."""
    return " ".join(re.findall(r"[^\W_]+", fold_case(name)))


def bare_title(title: str) -> str:
    """A title without its disambiguating bracket: "Brand (play)" becomes Brand."""
    return re.sub(r"(?<!\s)\s*+\([^()]*+\)\s*$", "", title) or title


@dataclass(frozen=True, slots=True)
class PassageTerms:
    """The terms the rules extract from a passage to compare it with others."""

    called: str
    words: str  # padded with a space at both ends, so that a name is found by `in`
    terms: frozenset[str]
    uncapitalised: frozenset[str]

    def holds(self, name: str) -> bool:
        return f" {name} " in self.words


def passage_terms(hit: Hit) -> PassageTerms:
    return _page(hit.title, hit.passage.text)


@lru_cache(maxsize=2048)  # a run scores all its results again after every round
def _page(title: str, words: str) -> PassageTerms:
    whole = f"{title} {words}"
    plain = frozenset(word for word in re.findall(r"[^\W\d_]+", whole) if word.islower())
    return PassageTerms(name_key(bare_title(title)), f" {name_key(whole)} ", frozenset(content_terms(whole)), plain)


def names_in(hit: Hit, ordinary: Collection[str] = ()) -> dict[str, tuple[str, frozenset[str]]]:
    """The names in a passage, by key: as written, and the terms of the sentence where each first occurs. `ordinary` are
    words that other passages write without a capital."""
    body = hit.passage.text
    labels = _column_labels(body)
    starts, ends = [0, *(b for _, b in labels)], [*(a for a, _ in labels), len(body)]
    prose = "".join(body[a:b] for a, b in zip(starts, ends, strict=True))  # without the labels
    found: dict[str, tuple[str, frozenset[str]]] = {}
    opening: frozenset[str] = frozenset()
    for number, (start, end) in enumerate(split_sentences(body)):
        told = frozenset(content_terms(body[start:end]))
        opening = opening if number else told
        for name in find_names(body[start:end]):
            if not _is_name(name, f"{prose}\n{hit.title}", ordinary):
                continue
            for part in _parts(name.text):
                found.setdefault(name_key(part), (part, told))
    called = bare_title(hit.title)
    if _is_proper(called):
        found.setdefault(name_key(called), (called, opening))
    return {k: v for k, v in found.items() if len(k) > 2}


def _column_labels(body: str) -> list[tuple[int, int]]:
    """Where the names of columns stand: before the colons of a row that is written out ("Town: Skelby; Depot: yes"), and in
    the header of a table."""
    found: list[tuple[int, int]] = []
    for line in re.finditer(r".+", body):
        if HEADER_RULE.match(body, line.end()):
            found.append(line.span())
        elif len(own := [each.span() for each in LABEL.finditer(body, *line.span())]) > 1:
            found += own
    return found


def _is_name(name: Name, prose: str, ordinary: Collection[str]) -> bool:
    """Whether somebody would search for it. A code has digits among its letters ("KX-40"). A single word, also with a number
    behind it, has to stand within a sentence or in a cell with its capital, since any word has one where a line begins, in a
    heading or behind a label ("Subject: Fwd"), and nowhere without one ("Section 2"). Several words need one of these."""
    words = name.text.split()
    if any(CODE.search(word) for word in words):
        return max(map(len, words)) <= LONGEST_CODE
    plain = [word.casefold() for word in words if not word[0].isdigit()]
    if not plain or not any(char.isupper() for char in name.text):  # quoted
        return False
    within, known = _is_within(name.text, prose), all(word in ordinary for word in plain)
    return within or not known if len(plain) > 1 else within and not known


def _is_within(name: str, prose: str) -> bool:
    """Whether a name stands behind a word of its sentence, or in a cell of a row."""
    for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", prose):
        before = prose[prose.rfind("\n", 0, match.start()) + 1 : match.start()].rstrip("(“\"‘'« ")
        if BEHIND.search(before):
            return True
    return False


def _is_proper(title: str) -> bool:
    """Whether a title is a name ("Oak Hill", "yard-6") rather than a description ("Minutes of the meeting in May"): it is
    short, or its words are capitalised."""
    words = re.findall(r"[^\W_]+(?:[-'’.][^\W_]+)*", title)
    return len(words) <= SHORT_TITLE or not any(word[0].islower() and word not in stop_words() for word in words)


def _parts(name: str) -> tuple[str, ...]:
    """A compound name and what it consists of: "Ann Lee of Oak Hill" also gives Ann Lee and Oak Hill."""
    left, of, right = name.partition(" of ")
    return (name, left, right.removeprefix("the ")) if of and " " in left else (name,)


# --- scoring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ScoredPassages:
    """The scored run so far: every passage once, with its direct score and the best link to it."""

    question: str
    hits: Mapping[str, Hit]
    pages: Mapping[str, PassageTerms]
    weights: Mapping[str, float]  # the question's terms, weighted by rarity among the results; they sum to 1
    direct: Mapping[str, float]
    hops: HopSettings
    links: dict[str, NameLink] = field(default_factory=dict)

    def worth(self) -> dict[str, float]:
        """Total score per passage: direct score, the link to it, and the links that start from it."""
        sure = {passage: link.sure for passage, link in self.links.items()}
        for link in self.links.values():
            sure[link.source] = max(sure.get(link.source, 0.0), link.sure * self.hops.returned)
        return {passage: own + self.hops.linked * sure.get(passage, 0.0) for passage, own in self.direct.items()}

    def as_source(self, passage: str) -> float:
        """How reliable a passage is as a link source: its direct score, or the certainty of the link to it."""
        link = self.links.get(passage)
        return min(1.0, max(self.direct[passage], link.sure if link else 0.0))

    def path(self, passage: str) -> tuple[str, ...]:
        """The passage and those it was reached from, nearest first."""
        steps = [passage]
        while (link := self.links.get(steps[-1])) and link.source not in steps and link.sure > self.direct[steps[-1]]:
            steps.append(link.source)
        return tuple(steps)

    def covered(self, passages: Iterable[str]) -> frozenset[str]:
        """The question's terms that occur in these passages."""
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
    """Score everything found so far. The first search must be the one for the question itself."""
    hits: dict[str, Hit] = {}
    for search in ran:
        for hit in search.hits:
            hits.setdefault(hit.passage.id, hit)
    pages = {passage: passage_terms(hit) for passage, hit in hits.items()}
    scored = ScoredPassages(
        question,
        hits,
        pages,
        rarity_among(question, [page.terms for page in pages.values()]),
        _direct(question, ran, hits, pages, hops),
        hops,
    )
    for search in ran:  # in execution order, because a second hop builds on the first
        if search.lead.source in hits:
            _follow(scored, search)
    return scored


def question_names(question: str) -> dict[str, str]:
    """The names in the question: key → as written."""
    return {name_key(name.text): name.text for name in find_names(question)}


def _direct(
    question: str,
    ran: Sequence[PastSearch],
    hits: Mapping[str, Hit],
    pages: Mapping[str, PassageTerms],
    hops: HopSettings,
) -> dict[str, float]:
    """The direct score of each passage, including those that the search for the question did not return."""
    first = ran[0]
    near = {passage: float(first.vector @ hit.vector) for passage, hit in hits.items()}
    # Both are normalised over the first search's results, so that no absolute score scale is needed. For passages it
    # did not return only the similarity is known, which is most of the score but not all.
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
        # A lower-case title counts too unless it is one word: "love" in a question is rarely the film.
        if page.called in named or (" " in page.called and f" {page.called} " in asked):
            direct[passage] += hops.titled
    return direct


def _stretch(values: Sequence[float]) -> Callable[[float], float]:
    """A scale that maps the minimum to 0 and the maximum to 1, and clamps values outside."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if high <= low:
        return lambda value: 1.0
    return lambda value: min(1.0, max(0.0, (value - low) / (high - low)))


def _follow(scored: ScoredPassages, search: PastSearch) -> None:
    """Link the passages that contain the followed name to its source passage, unless a better link exists."""
    hops, lead = scored.hops, search.lead
    holding = scored.holders(name_key(lead.name))
    path = scored.path(lead.source)
    known = scored.covered(path)
    fixed = hops.bias + hops.of_source * scored.as_source(lead.source) - hops.of_holders * math.log(1 + len(holding))
    sure = {}
    for passage in holding:
        if passage not in path and not _is_own(scored, lead, passage):
            near = float(search.vector @ scored.hits[passage].vector)
            gain = scored.weight(scored.covered((passage,)) - known)
            sure[passage] = 1 / (1 + math.exp(-(fixed + hops.of_nearness * near + hops.of_gain * gain)))
    for place, passage in enumerate(sorted(sure, key=lambda p: (-sure[p], p))):
        link = NameLink(lead.name, lead.source, sure[passage] * hops.rivals**place)
        if passage not in scored.links or link.sure > scored.links[passage].sure:
            scored.links[passage] = link


def _is_own(scored: ScoredPassages, lead: Lead, passage: str) -> bool:
    """Whether the name only leads back into its document: all passages of a document are about a name in its title."""
    source, target = scored.hits[lead.source], scored.hits[passage]
    same = source.passage.doc_id == target.passage.doc_id
    return same and f" {name_key(lead.name)} " in f" {name_key(source.title)} "


def rank_passages(question: str, ran: Sequence[PastSearch], hops: HopSettings | None = None) -> list[RankedPassage]:
    """Everything found, best first: direct answers and linked passages in one list."""
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


@dataclass(frozen=True, slots=True)
class NextSearches:
    """The searches to run now, in parallel. If there are none, `stop` gives the reason."""

    leads: tuple[Lead, ...] = ()
    stop: StopReason | None = None
    why: str = ""  # the reason as text for people


def first_search(question: str, hops: HopSettings | None = None) -> list[Lead]:
    """The initial search: the question verbatim.

    Its names are not searched separately: measured, that cost two searches and found nothing the question had not
    found.
    """
    return [Lead(question, "the question", (hops or HopSettings()).first)]


def next_searches(question: str, ran: Sequence[PastSearch], hops: HopSettings | None = None) -> NextSearches:
    """What to search for next, given past searches and their results. Each call starts the next round of hops."""
    hops = hops or HopSettings()
    if not ran:
        return NextSearches(tuple(first_search(question, hops)))
    followed = sum(bool(search.lead.name) for search in ran)
    allowed = next((total for total in accumulate(hops.rounds) if total > followed), followed)
    room = min(allowed - followed, hops.limit - len(ran))
    if room <= 0:
        return NextSearches(stop=StopReason.searches, why="limit")
    scored = score_passages(question, ran, hops)
    if _holds_enough(scored):
        return NextSearches(stop=StopReason.sufficient, why="covered")
    leads = (_missing(scored, ran) + _promising(scored, ran))[:room]
    return NextSearches(tuple(leads)) if leads else NextSearches(stop=StopReason.nothing_new, why="nothing new")


def _holds_enough(scored: ScoredPassages) -> bool:
    """Whether the best passage, together with those that led to it, covers the terms of the question."""
    return any(scored.weight(scored.covered(scored.path(passage))) >= scored.hops.enough for passage in scored.best(1))


def _missing(scored: ScoredPassages, ran: Sequence[PastSearch]) -> list[Lead]:
    """Names in the question that no passage contains yet. They get lost among its other words, so each is searched
    alone."""
    asked = _asked(ran)
    return [
        Lead(name, f"nothing found names {name}", scored.hops.width, name=name)
        for k, name in question_names(scored.question).items()
        if k not in asked and not scored.holders(k)
    ][: scored.hops.missing]


def _asked(ran: Sequence[PastSearch]) -> set[str]:
    return {name_key(search.lead.name) for search in ran if search.lead.name}


def _promising(scored: ScoredPassages, ran: Sequence[PastSearch]) -> list[Lead]:
    """Names to follow from the best passages, most promising first: from a highly ranked passage, in a sentence about
    the question, and not in the question itself."""
    hops = scored.hops
    asked = _asked(ran)
    question_key = f" {name_key(scored.question)} "
    ordinary = frozenset[str]().union(*(page.uncapitalised for page in scored.pages.values()))
    best: dict[str, tuple[float, Lead]] = {}
    for source in scored.best(hops.seeds):
        hit = scored.hits[source]
        rest = uncovered_words(scored.question, scored.covered(scored.path(source)))
        for k, (name, told) in names_in(hit, ordinary).items():
            if k in asked or f" {k} " in question_key or set(content_terms(name)) <= scored.weights.keys():
                continue
            if is_unit(name, hit.passage.text):
                continue
            promise = scored.as_source(source) + scored.weight(told)
            if k not in best or promise > best[k][0]:
                reason = f"{hit.title or 'a passage found'} names {name}"
                best[k] = (promise, Lead(f"{name} {rest}".strip(), reason, hops.width, name, source))
    return [lead for _, lead in sorted(best.values(), key=lambda pair: -pair[0])]


def is_unit(name: str, text: str) -> bool:
    """Whether a text uses a name mostly behind figures, as in "50 NTU"."""
    counted = len(re.findall(rf"(?<![\d-])\d[\d.,]*\s?{re.escape(name)}(?!\w)", text))
    return 2 * counted > text.count(name)
