"""Deciding without a model: what the question asks for, what to search for next, and when to stop.

The loop asks, searches, and asks again; nothing here searches. hops.py scores what was found; its `order` ranks it.
"""

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
    """The searches to make now, side by side. When there are none, `stop` says why."""

    leads: tuple[Lead, ...] = ()
    stop: StopReason | None = None
    why: str = ""  # the same, for people


def first_search(question: str, hops: HopSettings | None = None) -> list[Lead]:
    """What to search for before anything is known: the question, in its own words.

    Its names are not searched one by one: that spent two searches and found nothing the question had not found.
    """
    return [Lead(question, "the question", (hops or HopSettings()).first)]


def next_searches(question: str, ran: Sequence[PastSearch], hops: HopSettings | None = None) -> NextSearches:
    """What to search for, given what was searched and found. Each call opens the next round of hops."""
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
    """Whether the best passage, with those that led to it, holds what the question speaks of."""
    return any(scored.weight(scored.covered(scored.path(passage))) >= scored.hops.enough for passage in scored.best(1))


def _missing(scored: ScoredPassages, ran: Sequence[PastSearch]) -> list[Lead]:
    """Names of the question that no passage found so far holds: lost among its other words, so asked for alone."""
    asked = _asked(ran)
    return [
        Lead(name, f"nothing found names {name}", scored.hops.width, name=name)
        for k, name in question_names(scored.question).items()
        if k not in asked and not scored.holders(k)
    ][: scored.hops.missing]


def _asked(ran: Sequence[PastSearch]) -> set[str]:
    return {name_key(search.lead.name) for search in ran if search.lead.name}


def _promising(scored: ScoredPassages, ran: Sequence[PastSearch]) -> list[Lead]:
    """Names to follow from the best passages, most promising first: well placed, in a sentence that speaks of the
    question, and not named by the question itself."""
    hops = scored.hops
    asked = _asked(ran)
    question_key = f" {name_key(scored.question)} "
    best: dict[str, tuple[float, Lead]] = {}
    for source in scored.best(hops.seeds):
        hit = scored.hits[source]
        rest = uncovered_words(scored.question, scored.covered(scored.path(source))) if hops.residual else ""
        for k, (name, told) in names_in(hit, hops.pieces).items():
            if k in asked or f" {k} " in question_key or set(content_terms(name)) <= scored.weights.keys():
                continue
            promise = scored.as_source(source) + scored.weight(told)
            if k not in best or promise > best[k][0]:
                reason = f"{hit.title or 'a passage found'} names {name}"
                best[k] = (promise, Lead(f"{name} {rest}".strip(), reason, hops.width, name, source))
    return [lead for _, lead in sorted(best.values(), key=lambda pair: -pair[0])]
