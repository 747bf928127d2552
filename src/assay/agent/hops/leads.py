"""Decides without a model: what to search for first, what to search for next, and when to stop.

Nothing here searches; the loop does. scoring.py scores the results, and its `rank_passages` orders them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from assay.agent.hops.scoring import (
    HopSettings,
    Lead,
    PastSearch,
    ScoredPassages,
    name_key,
    names_in,
    question_names,
    score_passages,
)
from assay.core.events import StopReason
from assay.language.terms import content_terms, uncovered_words


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
        rest = uncovered_words(scored.question, scored.covered(scored.path(source))) if hops.residual else ""
        for k, (name, told) in names_in(hit, hops.pieces, ordinary).items():
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
