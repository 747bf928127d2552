"""Records as figures are made of them, by hand: what a run did in a few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from assay.governance.reports.figures import RunFigures, figures
from assay.store.runs.figures import Fact

DAY = datetime(2026, 3, 2, 12, tzinfo=UTC)  # a Monday


def facts(
    run: str,
    *,
    day: int = 0,
    who: str = "reader",
    rounds: int = 1,
    calls: int = 1,
    errors: int = 0,
    tool: str = "search",
    by: str = "model",
    mode: str = "balanced",
    route: str = "research",
    every: bool = False,
    stopped: str = "sufficient",
    outcome: str = "answered",
    seconds: float = 1.0,
    decisions: tuple[str, ...] = (),
    own: int | None = None,
    lost: int | None = None,
) -> list[Fact]:
    """The records of one run; it is delivered unless `outcome` is empty, and `lost` is a record that is not there."""
    begun = DAY + timedelta(days=day)
    told: list[tuple[str, object, object, object]] = [("Asked", mode, own, by), ("Routed", route, every, None)]
    number = 0
    for _ in range(rounds):
        made = [{"id": f"c{number + each}", "tool": tool} for each in range(calls)]
        number += calls
        told.append(("Decided", made, True, None))
        told += [("ToolRan", call["id"], int(call["id"][1:]) < errors, None) for call in made]
    told.append(("Stopped", stopped, None, None))
    told += [("Reviewed", decision, None, None) for decision in decisions]
    told += [("Answered", outcome, stopped, None)] if outcome else []
    step = seconds / max(len(told) - 1 - len(decisions), 1)
    made_of: list[Fact] = []
    for seq, (kind, *fields) in enumerate(told):
        at = begun + timedelta(seconds=step * seq)
        if seq != lost:
            made_of.append(Fact(0, run, who, _said(begun), seq, _said(at), kind, *fields))
    return made_of


def _said(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one(run: str = "r1", **told: object) -> RunFigures:
    return next(figures(facts(run, **told)))  # type: ignore[arg-type]


# For every figure that is watched: runs that come to exactly its limit, and runs that come to just more (or less) than it.


def _odd(number: int, **told: object) -> list[dict[str, object]]:
    """Fifty runs, of which so many are otherwise than they should be."""
    return [told] * number + [{}] * (50 - number)


def _reviewed(*decisions: str) -> list[dict[str, object]]:
    """Reviewed answers; one that was edited is approved in the end."""
    return [{"decisions": (decision, "approve") if decision == "edit" else (decision,)} for decision in decisions]


BOUNDARIES: dict[str, tuple[list[dict[str, object]], list[dict[str, object]]]] = {
    "iterations": ([{"rounds": 7}, {"rounds": 9}], [{"rounds": 8}, {"rounds": 9}]),
    "cap_hits": (_odd(5, stopped="rounds"), _odd(6, stopped="tokens")),
    "session_p95": ([{"seconds": 30.0}] * 19 + [{"seconds": 90.0}], [{"seconds": 30.1}] * 2 + [{}] * 18),
    "tool_errors": (_odd(1, errors=1), _odd(2, errors=1)),
    "overrides": (
        _reviewed(*["approve"] * 7, "edit", "edit", "reject"),
        _reviewed(*["approve"] * 69, *["reject"] * 31),
    ),
    "trace_completeness": ([{}] * 200, [{}] * 199 + [{"lost": 2}]),
}
