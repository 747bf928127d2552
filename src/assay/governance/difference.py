"""The differences between two runs, part by part: question, steps, results and cost. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.core.events.describe import format_call
from assay.core.run import Run
from assay.core.types import Claim, Evidence

PARTS = ("question", "route", "plan", "searches", "evidence", "claims", "answer", "cost")
NONE = "–"
LONG = 200  # maximum characters of a quotation


@dataclass(frozen=True, slots=True)
class Change:
    """An item that both runs have, with different values."""

    what: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class DifferencePart:
    """One part of two runs: items that only one of them has, and items that differ."""

    name: str
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[Change, ...] = ()

    @property
    def same(self) -> bool:
        return not (self.only_a or self.only_b or self.changed)


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences between two runs. Cost is reported but does not count as a difference, since it is never quite
    the same."""

    a: str
    b: str
    parts: tuple[DifferencePart, ...]

    @property
    def same(self) -> bool:
        return all(part.same for part in self.parts if part.name != "cost")


def difference(a: Run, b: Run, titles: Mapping[str, str]) -> Difference:
    """Compare two runs. `titles` are those of the documents that may be read. For a run under review, only searches
    and evidence are compared, not the draft."""
    return Difference(
        a.id,
        b.id,
        (
            _values("question", _question(a), _question(b)),
            _values("route", _route(a), _route(b)),
            _keyed("plan", _plan(a), _plan(b)),
            _keyed("searches", _searches(a), _searches(b)),
            _keyed("evidence", _evidence(a, titles), _evidence(b, titles)),
            _delivered_claims(a, b, titles),
            _values("answer", _answer(a, beside=b), _answer(b, beside=a)),
            _values("cost", _cost(a), _cost(b)),
        ),
    )


def _values(name: str, a: Mapping[str, str], b: Mapping[str, str]) -> DifferencePart:
    """Compare values by name."""
    named = [*a, *(key for key in b if key not in a)]
    return DifferencePart(
        name,
        changed=tuple(
            Change(key, a.get(key, NONE), b.get(key, NONE)) for key in named if a.get(key, NONE) != b.get(key, NONE)
        ),
    )


KeyedItems = Mapping[str, tuple[str, str]]  # identity → (how it is described, what may differ)


def _keyed(name: str, a: KeyedItems, b: KeyedItems) -> DifferencePart:
    """Compare items by key."""
    return DifferencePart(
        name,
        tuple(a[key][0] for key in a if key not in b),
        tuple(b[key][0] for key in b if key not in a),
        tuple(Change(a[key][0], a[key][1], b[key][1]) for key in a if key in b and a[key][1] != b[key][1]),
    )


def _question(run: Run) -> dict[str, str]:
    asked = run.asked
    return {
        "asked": asked.question,
        "understood as": run.question,
        "mode": asked.mode.value,
        "models": ", ".join(sorted({role_model.model for role_model in asked.seats})) or "none",
        "limited to": ", ".join((*asked.where.bases, *asked.where.sources, *asked.where.types)) or "nothing",
        "dates": f"{asked.where.since or '…'} to {asked.where.until or '…'}",
        "stakes": asked.stakes.value,
    }


def _route(run: Run) -> dict[str, str]:
    routed = run.routed
    if routed is None:
        return {}
    return {
        "route": routed.route.value,
        "whole set": "yes" if routed.every else "no",
        "dates": f"{routed.since or '…'} to {routed.until or '…'}",
        "readings": "; ".join(routed.readings) or NONE,
    }


def _plan(run: Run) -> KeyedItems:
    """The steps of the final plan, by question, with the result of each."""
    plan, bound = run.plan, run.bound
    return {
        _plain(step.question): (step.question, bound[step.id].value if step.id in bound else "nothing bound")
        for step in (plan.steps if plan else ())
    }


def _searches(run: Run) -> KeyedItems:
    made = [(format_call(call), run.results[call.id]) for call in run.calls if call.id in run.results]
    return {call: (call, f"refused: {of.error}" if of.error else f"{len(of.found)} found") for call, of in made}


def _evidence(run: Run, titles: Mapping[str, str]) -> KeyedItems:
    """Evidence by document and span, independent of its key: two pieces are the same if they have the same location."""
    return {
        f"{each.quote.doc_id} {each.quote.start} {each.quote.end}": (_quoted(each, titles), f"{each.score:g} of 10")
        for each in run.evidence
    }


def _quoted(each: Evidence, titles: Mapping[str, str]) -> str:
    words = " ".join(each.quote.text.split())
    shown = words if len(words) <= LONG else f"{words[: LONG - 1]}…"
    return f"{titles.get(each.quote.doc_id) or each.quote.doc_id}: “{shown}”"


def _delivered_claims(a: Run, b: Run, titles: Mapping[str, str]) -> DifferencePart:
    """Claims are compared if both answers were delivered; what is held is not shown as missing."""
    if a.answer and b.answer:
        return _keyed("claims", _claims(a, titles), _claims(b, titles))
    states = [f"{len(run.answer.claims)} delivered" if run.answer else _answer(run, run)["state"] for run in (a, b)]
    return _values("claims", {"claims": states[0]}, {"claims": states[1]})


def _claims(run: Run, titles: Mapping[str, str]) -> KeyedItems:
    """The delivered claims, by their words, with verdicts and sources."""
    from_where = {each.key: titles.get(each.quote.doc_id) or each.quote.doc_id for each in run.evidence}
    claims = run.answer.claims if run.answer else ()
    return {_plain(claim.words): (claim.words, _verdict(claim, from_where)) for claim in claims}


def _verdict(claim: Claim, from_where: Mapping[str, str]) -> str:
    parts = (
        claim.verdict.value if claim.verdict else "unchecked",
        ", ".join(sorted({from_where.get(key, key) for key in claim.cites})),
        f"edited by {claim.edited}" if claim.edited else "",
    )
    return "; ".join(filter(None, parts))


def _answer(run: Run, beside: Run) -> dict[str, str]:
    answer = run.answer
    if answer is None:
        return {"state": "waits for a reviewer" if run.held else "rejected" if run.rejected else "not delivered"}
    if beside.answer is None:
        return {"state": "delivered"}
    return {
        "state": "delivered",
        "outcome": answer.outcome.value,
        "words": " ".join(claim.words for claim in answer.claims) or answer.said or NONE,
        "gaps": "; ".join(answer.gaps) or NONE,
        "search ended": answer.stopped or NONE,
        "conflicts": str(len(answer.conflicts)),
    }


def _cost(run: Run) -> dict[str, str]:
    """The cost of all replies that the run uses, including those copied from another run."""
    usage = run.usage
    return {
        "calls": str(usage.calls),
        "tokens in": str(usage.tokens_in),
        "tokens out": str(usage.tokens_out),
        "usd": f"{usage.money:.6f}",
        "seconds of models": f"{usage.seconds:.1f}",
        "rounds": str(run.rounds),
    }


def _plain(words: str) -> str:
    return " ".join(words.split()).casefold()


def render_difference(compared: Difference) -> list[str]:
    """For a terminal: one line for each equal part, and the differences below the others."""
    lines = [f"a  {compared.a}", f"b  {compared.b}"]
    for part in compared.parts:
        lines.append("")
        lines.append(f"{part.name}: the same" if part.same else f"{part.name}:")
        lines += [f"  - {each}" for each in part.only_a]
        lines += [f"  + {each}" for each in part.only_b]
        for each in part.changed:
            lines += [f"  ~ {each.what}", f"      a  {each.a}", f"      b  {each.b}"]
    return lines
