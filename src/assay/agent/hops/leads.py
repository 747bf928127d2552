"""Deciding without a model: what the question asks for, what to search for next, and when to stop.

The loop asks, searches, and asks again; nothing here searches. hops.py scores what was found; its `order` ranks it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from assay.agent.hops.scoring import Board, Hops, Lead, Ran, key, names_in, question_names, score
from assay.core.events import StopReason
from assay.language.terms import content_terms, uncovered_words


@dataclass(frozen=True, slots=True)
class NextSearches:
    """The searches to make now, side by side. When there are none, `stop` says why."""

    leads: tuple[Lead, ...] = ()
    stop: StopReason | None = None
    why: str = ""  # the same, for people


def first_search(question: str, hops: Hops | None = None) -> list[Lead]:
    """What to search for before anything is known: the question, in its own words.

    Its names are not searched one by one: that spent two searches and found nothing the question had not found.
    """
    return [Lead(question, "the question", (hops or Hops()).first)]


def next_searches(question: str, ran: Sequence[Ran], hops: Hops | None = None) -> NextSearches:
    """What to search for, given what was searched and found. Each call opens the next round of hops."""
    hops = hops or Hops()
    if not ran:
        return NextSearches(tuple(first_search(question, hops)))
    followed = sum(bool(search.lead.name) for search in ran)
    allowed = next((total for total in accumulate(hops.rounds) if total > followed), followed)
    room = min(allowed - followed, hops.limit - len(ran))
    if room <= 0:
        return NextSearches(stop=StopReason.searches, why="limit")
    board = score(question, ran, hops)
    if _holds_enough(board):
        return NextSearches(stop=StopReason.sufficient, why="covered")
    leads = (_missing(board, ran) + _promising(board, ran))[:room]
    return NextSearches(tuple(leads)) if leads else NextSearches(stop=StopReason.nothing_new, why="nothing new")


def _holds_enough(board: Board) -> bool:
    """Whether the best passage, with those that led to it, holds what the question speaks of."""
    return any(board.weight(board.covered(board.path(passage))) >= board.hops.enough for passage in board.best(1))


def _missing(board: Board, ran: Sequence[Ran]) -> list[Lead]:
    """Names of the question that no passage found so far holds: lost among its other words, so asked for alone."""
    asked = _asked(ran)
    return [
        Lead(name, f"nothing found names {name}", board.hops.width, name=name)
        for k, name in question_names(board.question).items()
        if k not in asked and not board.holders(k)
    ][: board.hops.missing]


def _asked(ran: Sequence[Ran]) -> set[str]:
    return {key(search.lead.name) for search in ran if search.lead.name}


def _promising(board: Board, ran: Sequence[Ran]) -> list[Lead]:
    """Names to follow from the best passages, most promising first: well placed, in a sentence that speaks of the
    question, and not named by the question itself."""
    hops = board.hops
    asked = _asked(ran)
    question_key = f" {key(board.question)} "
    best: dict[str, tuple[float, Lead]] = {}
    for source in board.best(hops.seeds):
        hit = board.hits[source]
        rest = uncovered_words(board.question, board.covered(board.path(source))) if hops.residual else ""
        for k, (name, told) in names_in(hit, hops.pieces).items():
            if k in asked or f" {k} " in question_key or set(content_terms(name)) <= board.weights.keys():
                continue
            promise = board.as_source(source) + board.weight(told)
            if k not in best or promise > best[k][0]:
                reason = f"{hit.title or 'a passage found'} names {name}"
                best[k] = (promise, Lead(f"{name} {rest}".strip(), reason, hops.width, name, source))
    return [lead for _, lead in sorted(best.values(), key=lambda pair: -pair[0])]
