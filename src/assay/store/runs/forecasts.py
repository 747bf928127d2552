"""What a piece of work was expected to take, kept when it begins, and what it took, kept when it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sqlalchemy import Connection, insert, select, update

from assay.core.codec import from_json, to_json
from assay.store.database import Store
from assay.store.schema import forecasts

LATEST = 100  # of one kind, that say how good forecasts are


class WorkKind(StrEnum):
    ask = "ask"
    synthesise = "synthesise"
    add = "add"


@dataclass(frozen=True, slots=True)
class EstimateRange:
    """Four of five should come to something between `low` and `high`, half of them to less than `likely`."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True, slots=True)
class Amount:
    """What a piece of work takes. Money is in USD, and none where nobody knows the price."""

    calls: float = 0
    tokens: float = 0
    money: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    """`guess` is what the counts alone come to; the ranges are that, put right by what such work took before."""

    guess: Amount
    calls: EstimateRange
    tokens: EstimateRange
    seconds: EstimateRange
    money: EstimateRange | None = None
    from_runs: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastWork:
    """A piece of work that has ended: what was foreseen, and what it came to."""

    foreseen: WorkEstimate
    came: Amount


def add_forecast(
    store: Store, run: str, kind: WorkKind, who: str, alike: str, foreseen: WorkEstimate, came: Amount | None = None
) -> None:
    """Keep what is expected; with what it came to, where that is known already. `alike` names what is compared with each
    other: a mode and its model, say."""
    row = {"run": run, "kind": kind.value, "who": who, "alike": alike, "foreseen": to_json(foreseen)}
    with store.write() as connection:
        connection.execute(
            insert(forecasts).values(**row, came=None if came is None else to_json(came), at=store.now())
        )


def add_outcome(connection: Connection, run: str, came: Amount) -> None:
    """Keep what it took, once; of a run that was never foreseen, nothing."""
    connection.execute(
        update(forecasts).where(forecasts.c.run == run, forecasts.c.came.is_(None)).values(came=to_json(came))
    )


def past_work(store: Store, kind: WorkKind, who: str, alike: str) -> tuple[PastWork, ...]:
    """The latest work of this person that was like this, and has ended. What others did changes nothing here."""
    alike_of = (forecasts.c.who == who, forecasts.c.kind == kind.value, forecasts.c.alike == alike)
    latest = (
        select(forecasts.c.foreseen, forecasts.c.came)
        .where(*alike_of, forecasts.c.came.is_not(None))
        .order_by(forecasts.c.at.desc())
        .limit(LATEST)
    )
    with store.read() as connection:
        rows = connection.execute(latest).all()
    return tuple(PastWork(from_json(WorkEstimate, row.foreseen), from_json(Amount, row.came)) for row in rows)
