"""Deciding without a model: what the question asks for, what to search for next, and when to stop.

The loop asks, searches, and asks again; nothing here searches. hops.py scores what was found; its `order` ranks it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from assay import text
from assay.agent.hops import Board, Hops, Lead, Ran, key, names_in, question_names, score
from assay.types import Plan, Step


@dataclass(frozen=True, slots=True)
class Next:
    """The searches to make now, side by side. When there are none, `stop` says why."""

    leads: tuple[Lead, ...] = ()
    stop: str = ""  # covered, nothing new, limit


def plan(question: str) -> Plan:
    """One step for every name in the question, side by side, then the question itself, which needs them all."""
    named = list(question_names(question).values())
    about = [Step(f"s{n}", f"What do the documents say about {name}?", binds=name) for n, name in enumerate(named, 1)]
    if len(about) < 2:
        return Plan((Step("s1", question),))
    return Plan((*about, Step(f"s{len(about) + 1}", question, needs=tuple(step.id for step in about))))


def next_searches(question: str, ran: Sequence[Ran], hops: Hops | None = None) -> Next:
    """What to search for, given what was searched and found. Each call opens the next round of hops."""
    hops = hops or Hops()
    if not ran:
        return Next((Lead(question, "the question", hops.first),))
    hop = 1 + max(search.lead.hop for search in ran)
    room = hops.limit - len(ran)
    if room <= 0 or hop > len(hops.rounds):
        return Next(stop="limit")
    board = score(question, ran, hops)
    if _holds_enough(board):
        return Next(stop="covered")
    missing = _missing(board, ran, hop) if hop == 1 else []
    leads = (missing + _promising(board, ran, hop))[: min(room, hops.rounds[hop - 1])]
    return Next(tuple(leads), "" if leads else "nothing new")


def _holds_enough(board: Board) -> bool:
    """Whether the best passage, with those that led to it, holds what the question speaks of."""
    return any(board.weight(board.covered(board.path(passage))) >= board.hops.enough for passage in board.best(1))


def _missing(board: Board, ran: Sequence[Ran], hop: int) -> list[Lead]:
    """Names of the question that no passage found so far holds: lost among its other words, so asked for alone."""
    return [
        Lead(name, f"nothing found names {name}", board.hops.width, name=name, hop=hop)
        for k, name in question_names(board.question).items()
        if not board.holders(k)
    ][: board.hops.missing]


def _promising(board: Board, ran: Sequence[Ran], hop: int) -> list[Lead]:
    """Names to follow from the best passages, most promising first: well placed, in a sentence that speaks of the
    question, and not named by the question itself."""
    hops = board.hops
    asked = {key(search.lead.name) for search in ran if search.lead.name}
    question_key = f" {key(board.question)} "
    best: dict[str, tuple[float, Lead]] = {}
    for source in board.best(hops.seeds):
        hit = board.hits[source]
        rest = text.residual(board.question, board.covered(board.path(source))) if hops.residual else ""
        for k, (name, told) in names_in(hit, hops.pieces).items():
            if k in asked or f" {k} " in question_key or set(text.terms(name)) <= board.weights.keys():
                continue
            promise = board.as_source(source) + board.weight(told)
            if k not in best or promise > best[k][0]:
                reason = f"{hit.title or 'a passage found'} names {name}"
                best[k] = (promise, Lead(f"{name} {rest}".strip(), reason, hops.width, name, source, hop))
    return [lead for _, lead in sorted(best.values(), key=lambda pair: -pair[0])]
