"""Estimates of work, stored when it begins, and the actual amounts, stored when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import Connection, insert, select, update

from assay.core.codec import from_json, to_json
from assay.store.database import Store
from assay.store.schema import forecasts

LATEST = 100  # past forecasts of one kind used to assess accuracy


class WorkKind(StrEnum):
    ask = "ask"
    synthesise = "synthesise"
    add = "add"


@dataclass(frozen=True, slots=True)
class EstimateRange:
    """An 80 % range: four of five outcomes should lie between `low` and `high`, half of them below `likely`."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Amount:
    """What a piece of work takes. Money is in USD, None if the price is unknown."""

    calls: float = 0
    tokens: float = 0
    money: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    """`guess` is computed from counts alone; the ranges are corrected by what similar work took before."""

    guess: Amount
    calls: EstimateRange
    tokens: EstimateRange
    seconds: EstimateRange
    money: EstimateRange | None = None
    from_runs: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastWork:
    """Finished work: the estimate and the actual amount."""

    foreseen: WorkEstimate
    came: Amount


def add_forecast(
    store: Store, run: str, kind: WorkKind, who: str, alike: str, foreseen: WorkEstimate, came: Amount | None = None
) -> None:
    """Store an estimate, with the actual amount if already known. `alike` is the key of comparable work, such as a
    mode and its model."""
    row = {"run": run, "kind": kind.value, "who": who, "alike": alike, "foreseen": to_json(foreseen)}
    store.execute(insert(forecasts).values(**row, came=None if came is None else to_json(came), at=store.now()))


def add_outcome(connection: Connection, run: str, came: Amount) -> None:
    """Store the actual amount, once; ignored for a run without a forecast."""
    connection.execute(
        update(forecasts).where(forecasts.c.run == run, forecasts.c.came.is_(None)).values(came=to_json(came))
    )


def past_work(store: Store, kind: WorkKind, who: str, alike: str) -> tuple[PastWork, ...]:
    """The user's latest finished work of this kind. Work of other users has no influence."""
    alike_of = (forecasts.c.who == who, forecasts.c.kind == kind.value, forecasts.c.alike == alike)
    latest = (
        select(forecasts.c.foreseen, forecasts.c.came)
        .where(*alike_of, forecasts.c.came.is_not(None))
        .order_by(forecasts.c.at.desc())
        .limit(LATEST)
    )
    rows = store.rows(latest)
    return tuple(PastWork(from_json(WorkEstimate, row.foreseen), from_json(Amount, row.came)) for row in rows)
