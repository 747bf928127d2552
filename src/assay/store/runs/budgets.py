"""Budgets for model requests: reserved before a request is sent, settled when its reply arrives. One transaction
each.

Spent and reserved amounts together never exceed a ceiling, for any number of concurrent runs and processes; the
reservations of a killed process keep counting.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, not_, select, update

from assay.core.types import Usage
from assay.store.database import Store
from assay.store.dialect import Prepared
from assay.store.schema import spending

WRITE_ROLE = "write"  # the role for which the cost of the draft is reserved
SHARE = 0.25  # the fraction of a user's remaining seconds of the day that one request may take
SHORTEST = 1.0  # the minimum seconds for a request
RECENT_REQUESTS = 200  # requests used to estimate a model's speed
ROUNDING = 1e-9  # tolerance: sums of money are not exact


class SpendingState(StrEnum):
    reserved = "reserved"  # the request may have been sent
    settled = "settled"  # the reply has arrived
    lost = "lost"  # the process died first: counts with the reserved amount
    aside = "aside"  # kept for the final draft


class BudgetQuantity(StrEnum):
    """The quantity a ceiling limits."""

    calls = "calls"
    tokens = "tokens"
    money = "money"
    seconds = "seconds"


class CeilingScope(StrEnum):
    """The scope of a ceiling."""

    call = "call"
    run = "run"
    day = "day"  # one user, per day
    all = "all"  # all users together, per day


@dataclass(frozen=True, slots=True)
class CeilingReached:
    """The ceiling that a request would exceed."""

    what: BudgetQuantity
    whose: CeilingScope
    most: float


@dataclass(frozen=True, slots=True)
class SpendingReservation:
    """A permitted request and its time limit in seconds."""

    id: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Spending limits; money is in USD. 0 means no limit. The seconds of a run are limited by its clock."""

    run_calls: int = 0
    run_tokens: int = 0
    run_money: float = 0.0
    day_calls: int = 0  # of one user
    day_tokens: int = 0
    day_money: float = 0.0
    day_seconds: float = 0.0
    all_tokens: int = 0  # of all users together, per day
    all_money: float = 0.0
    call_tokens: int = 0


# Built once: building a statement takes longer than running it.
_INSERT = Prepared(
    insert(spending)
    .values({each.name: bindparam(each.name) for each in spending.c if each is not spending.c.id})
    .returning(spending.c.id)
)
_SETTLE = Prepared(
    update(spending)
    .where(spending.c.id == bindparam("place"))
    .values({name: bindparam(name) for name in ("state", "calls", "tokens_in", "tokens_out", "money", "seconds")})
)


def reserve(
    store: Store,
    who: str,
    run: str,
    role: str,
    model: str,
    tokens: int,
    money: float,
    ceilings: Ceilings,
    day: str,
    seconds: float = 0.0,
) -> SpendingReservation | CeilingReached:
    """Reserve budget for one request, or return the ceiling that it would exceed.

    Only the write role may use what its run has set aside, which is then released. A request gets a fraction of the
    user's remaining seconds, so that one slow request does not block others; the write role gets all of them.
    """
    if ceilings.call_tokens and tokens > ceilings.call_tokens:
        return CeilingReached(BudgetQuantity.tokens, CeilingScope.call, ceilings.call_tokens)
    writes = role == WRITE_ROLE
    with store.write() as connection:
        over = _ceiling_reached(connection, who, run, tokens, money, ceilings, day, own_aside=writes)
        if over is not None:
            return over
        if ceilings.day_seconds:
            left = ceilings.day_seconds - _seconds(connection, who, day)
            seconds = min(seconds, left if writes else left * SHARE)
            if seconds < SHORTEST:
                return CeilingReached(BudgetQuantity.seconds, CeilingScope.day, ceilings.day_seconds)
        if writes:
            connection.execute(delete(spending).where(_aside_of(run)))
        kept = seconds if ceilings.day_seconds else 0.0  # nothing to reserve without a limit on seconds
        row = {"who": who, "run": run, "role": role, "model": model, "day": day, "seconds": kept}
        return SpendingReservation(_insert(connection, SpendingState.reserved, tokens, money, **row), seconds)


def reserve_for_draft(
    store: Store, who: str, run: str, tokens: int, money: float, ceilings: Ceilings, day: str
) -> bool:
    """Reserve the cost of the final draft, replacing the run's earlier reservation; False if even that exceeds a
    ceiling."""
    with store.write() as connection:
        connection.execute(delete(spending).where(_aside_of(run)))
        if _ceiling_reached(connection, who, run, tokens, money, ceilings, day, own_aside=False) is not None:
            return False
        row = {"who": who, "run": run, "role": WRITE_ROLE, "model": "", "day": day, "seconds": 0.0}
        _insert(connection, SpendingState.aside, tokens, money, **row)
        return True


def release_draft(connection: Connection, run: str) -> None:
    """Release what an ended run had reserved for its draft."""
    connection.execute(delete(spending).where(_aside_of(run)))


def settle(store: Store, id: int, usage: Usage) -> None:
    """Replace the reservation by the actual usage, even if that is higher."""
    with store.write() as connection:
        _SETTLE.run(connection, place=id, state=SpendingState.settled.value, **asdict(usage))


def release(store: Store, id: int) -> None:
    """Release a reservation whose request was never sent."""
    store.execute(delete(spending).where(spending.c.id == id, spending.c.state == SpendingState.reserved.value))


def mark_lost(store: Store, run: str) -> int:
    """Mark what a dead process had reserved for this run as lost; it still counts. Returns the number of requests."""
    return store.execute(
        update(spending)
        .where(spending.c.run == run, spending.c.state == SpendingState.reserved.value)
        .values(state=SpendingState.lost.value)
    ).rowcount


def spent(store: Store, who: str, day: str) -> Usage:
    """A user's usage of a day, including reserved and lost requests. If only the total number of tokens is known,
    they count as input tokens. The amount set aside for drafts is not included."""
    return _used(store, and_(spending.c.who == who, spending.c.day == day))


def spent_by_run(store: Store, run: str) -> Usage:
    """The same for a run."""
    return _used(store, spending.c.run == run)


def spent_by_all(store: Store, day: str) -> Usage:
    """The same for all users together in a day."""
    return _used(store, spending.c.day == day)


def describe_ceiling(over: CeilingReached, tokens: int, money: float) -> str:
    """A message that names the ceiling, for the asker."""
    whose = {
        CeilingScope.call: "one request may take",
        CeilingScope.run: "this run may take",
        CeilingScope.day: "one person may use in a day",
        CeilingScope.all: "all together may use in a day",
    }[over.whose]
    return {
        BudgetQuantity.calls: f"one request more would pass the {over.most:,.0f} requests that {whose}",
        BudgetQuantity.seconds: f"of the {over.most:,.0f} seconds of models' time that {whose} too few are left",
        BudgetQuantity.money: f"${money:.4f} more would pass the ${over.most:,.4f} that {whose}",
        BudgetQuantity.tokens: f"{tokens:,} tokens more would pass the {over.most:,.0f} tokens that {whose}",
    }[over.what]


_SETTLED = spending.c.state == SpendingState.settled.value
_TOKENS = case((_SETTLED, spending.c.tokens_in + spending.c.tokens_out), else_=spending.c.reserved_tokens)
_MONEY = case((_SETTLED, spending.c.money), else_=spending.c.reserved_money)
_INPUT = spending.c.tokens_in + case((_SETTLED, 0), else_=spending.c.reserved_tokens)
SUMS = tuple(map(func.sum, (spending.c.calls, _INPUT, spending.c.tokens_out, _MONEY, spending.c.seconds)))  # of `Usage`


def recent_usage(store: Store, model: str, who: str) -> Usage:
    """Usage of a user's latest answered requests to a model, for estimating its speed."""
    latest = (
        select(spending.c.id)
        .where(spending.c.who == who, spending.c.model == model, _SETTLED)
        .order_by(spending.c.day.desc(), spending.c.id.desc())  # matches the index order
        .limit(RECENT_REQUESTS)
    )
    return _used(store, spending.c.id.in_(latest))


_ASIDE = spending.c.state == SpendingState.aside.value


def _aside_of(run: str) -> ColumnElement[bool]:
    return and_(spending.c.run == run, _ASIDE)


def _ceiling_reached(
    connection: Connection, who: str, run: str, tokens: int, money: float, ceilings: Ceilings, day: str, own_aside: bool
) -> CeilingReached | None:
    """The first ceiling that this much more would exceed; the run's set-aside amount counts unless it is about to be
    used."""
    asked = (1, tokens, money)
    for whose, most in (
        (CeilingScope.run, (ceilings.run_calls, ceilings.run_tokens, ceilings.run_money)),
        (CeilingScope.day, (ceilings.day_calls, ceilings.day_tokens, ceilings.day_money)),
        (CeilingScope.all, (0, ceilings.all_tokens, ceilings.all_money)),
    ):
        if not any(most):
            continue
        values = {"of_who": who, "of_run": run, "of_day": day}
        calls, total, paid = _sums(whose, own_aside).all(connection, **values)[0]
        used = int(calls or 0), int(total or 0), float(paid or 0.0)
        for what, already, more, ceiling in zip(BudgetQuantity, used, asked, most, strict=False):
            if ceiling and already + more > ceiling + (ROUNDING if what is BudgetQuantity.money else 0):
                return CeilingReached(what, whose, ceiling)
    return None


def _seconds(connection: Connection, who: str, day: str) -> float:
    """The model seconds a user has used and reserved, including requests of the write role."""
    mine = and_(spending.c.who == who, spending.c.day == day)
    return float(connection.scalar(select(func.sum(spending.c.seconds)).where(mine)) or 0.0)


@cache
def _sums(whose: CeilingScope, own_aside: bool) -> Prepared:
    """The sums of calls, tokens and money that count for a ceiling."""
    run, who, day = (
        column == bindparam(f"of_{column.name}") for column in (spending.c.run, spending.c.who, spending.c.day)
    )
    of = {CeilingScope.run: run, CeilingScope.day: and_(who, day), CeilingScope.all: day}[whose]
    counted = and_(of, not_(and_(run, _ASIDE))) if own_aside else of
    return Prepared(select(func.sum(spending.c.calls), func.sum(_TOKENS), func.sum(_MONEY)).where(counted))


def _insert(connection: Connection, state: SpendingState, tokens: int, money: float, **row: Any) -> int:
    """Reserve this much; nothing of it is used yet."""
    used = {"calls": 1, "tokens_in": 0, "tokens_out": 0, "money": 0.0}
    reserved = {"state": state.value, "reserved_tokens": tokens, "reserved_money": money}
    ((id,),) = _INSERT.all(connection, **row, **used, **reserved)
    return int(id)


def _used(store: Store, of: ColumnElement[bool]) -> Usage:
    with store.read() as connection:
        row: Any = connection.execute(select(*SUMS).where(of, ~_ASIDE)).one()
    return Usage(int(row[0] or 0), int(row[1] or 0), int(row[2] or 0), float(row[3] or 0.0), float(row[4] or 0.0))
