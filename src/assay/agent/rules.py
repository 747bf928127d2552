"""Deciding without a model: what to search for first, what to search for next, and when to stop.

The loop asks, searches, and asks again; nothing here searches. What was found is ordered in hops.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay import text
from assay.agent.hops import Board, Hops, Lead, Ran, key, page_of, score


@dataclass(frozen=True, slots=True)
class Next:
    """The searches to make now; none, and `stop` says why: covered, nothing new, or limit."""

    leads: tuple[Lead, ...]
    stop: str = ""


def plan(question: str, hops: Hops | None = None) -> list[Lead]:
    """The question itself, then the names that stand in it, longest first."""
    hops = hops or Hops()
    leads = [Lead(question, "the question", hops.first)]
    named = {key(n.text): n.text for n in text.names(question)}
    for k in sorted(named, key=len, reverse=True)[: hops.named]:
        leads.append(Lead(named[k], f"the question names {named[k]}", hops.width, name=named[k]))
    return leads


def next_searches(question: str, ran: Sequence[Ran], hops: Hops | None = None) -> Next:
    hops = hops or Hops()
    planned = sum(not search.lead.source for search in ran)
    room = hops.limit - len(ran)
    done = len(ran) - planned
    which, spent = 0, 0
    while which < len(hops.per_round) and spent + hops.per_round[which] <= done:
        spent += hops.per_round[which]
        which += 1
    if room <= 0 or which >= min(hops.rounds, len(hops.per_round)):
        return Next((), "limit")
    board = score(question, ran, hops)
    leads = _hops(board, ran, hops)[: min(room, hops.per_round[which] - (done - spent))]
    return Next(tuple(leads), "" if leads else "nothing new")


def _hops(board: Board, ran: Sequence[Ran], hops: Hops) -> list[Lead]:
    asked = {key(search.lead.name) for search in ran if search.lead.name}
    question_key = f" {key(board.question)} "
    question_terms = frozenset(board.weights)
    seeds = sorted(board.hits, key=lambda p: (-board.worth(p), p))[: hops.seeds]
    best: dict[str, tuple[float, Lead]] = {}
    pages = [page_of(hit) for hit in board.hits.values()]
    for rank, source in enumerate(seeds):
        taken = 0
        page = page_of(board.hits[source])
        known = board.covered(board.path(source))
        rest = text.residual(board.question, known) if hops.residual else ""
        for k, (name, sentence) in page.names.items():
            if k in asked or f" {k} " in question_key or set(text.terms(name)) <= question_terms:
                continue
            told = page.sentence_terms[max(0, sentence)] if page.sentence_terms else frozenset()
            promise = board.as_source(source) + board.weight(told & question_terms)
            if hops.common:
                promise -= hops.common * math.log(1 + sum(f" {k} " in other.padded for other in pages))
            promise -= hops.spread * taken
            taken += 1
            if k not in best or promise > best[k][0]:
                reason = f"{board.hits[source].title or 'a passage found'} names {name}"
                best[k] = (promise, Lead(f"{name} {rest}".strip(), reason, hops.width, name, source))
    return [lead for _, lead in sorted(best.values(), key=lambda pair: -pair[0])]
