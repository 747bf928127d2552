"""What models may cost: reserved before a request leaves, settled when its reply is there. One transaction each.

What was spent and what is reserved together never pass a ceiling, however many runs go on at once, in however many
processes; and whatever a killed process had reserved goes on counting.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, select, update

from assay.core.types import Usage
from assay.store.database import Store
from assay.store.schema import spending

WRITE_ROLE = "write"  # the role for which the price of the draft is set aside
SHARE = 0.25  # of the seconds that a person has left in a day: what one request may take of them
SHORTEST = 1.0  # seconds in which something can be asked
RECENT_REQUESTS = 200  # requests that say how fast a model is
ROUNDING = 1e-9  # sums of money are not exact; by less than this nothing is passed


class SpendingState(StrEnum):
    reserved = "reserved"  # the request may be out
    settled = "settled"  # its reply is there
    lost = "lost"  # the process died before it came: it counts at what was reserved
    aside = "aside"  # kept for the final draft


class Quantity(StrEnum):
    """What is counted."""

    calls = "calls"
    tokens = "tokens"
    money = "money"
    seconds = "seconds"


class CeilingScope(StrEnum):
    """For whom, or for what, a ceiling holds."""

    call = "call"
    run = "run"
    day = "day"  # of one person
    all = "all"  # everybody together, in a day


@dataclass(frozen=True, slots=True)
class CeilingReached:
    """The ceiling that a request would pass."""

    what: Quantity
    whose: CeilingScope
    most: float


@dataclass(frozen=True, slots=True)
class SpendingReservation:
    """A request that may leave, and take so many seconds."""

    id: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that may be spent; money is in USD. A ceiling of 0 is none. The seconds of a run are held by its clock."""

    run_calls: int = 0
    run_tokens: int = 0
    run_money: float = 0.0
    day_calls: int = 0  # of one person
    day_tokens: int = 0
    day_money: float = 0.0
    day_seconds: float = 0.0
    all_tokens: int = 0  # of everybody together, in a day
    all_money: float = 0.0
    call_tokens: int = 0


# Spelt once: putting a statement together takes longer than running it.
_INSERT = insert(spending).returning(spending.c.id)
_SETTLE = (
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
    """A place for one request, or the ceiling that it would pass.

    Writing may use what its run has set aside, which is then given back; nothing else may. Of the seconds that a person has
    left a request gets a part, so that one that may take long does not keep others from being asked; writing gets all.
    """
    if ceilings.call_tokens and tokens > ceilings.call_tokens:
        return CeilingReached(Quantity.tokens, CeilingScope.call, ceilings.call_tokens)
    writes = role == WRITE_ROLE
    with store.write() as connection:
        over = _ceiling_reached(connection, who, run, tokens, money, ceilings, day, own_aside=writes)
        if over is not None:
            return over
        if ceilings.day_seconds:
            left = ceilings.day_seconds - _seconds(connection, who, day)
            seconds = min(seconds, left if writes else left * SHARE)
            if seconds < SHORTEST:
                return CeilingReached(Quantity.seconds, CeilingScope.day, ceilings.day_seconds)
        if writes:
            connection.execute(delete(spending).where(_aside_of(run)))
        kept = seconds if ceilings.day_seconds else 0.0  # where nobody counts seconds, none are reserved
        id = _insert(connection, SpendingState.reserved, who, run, role, model, tokens, money, day, kept)
        return SpendingReservation(id, seconds)


def reserve_for_draft(
    store: Store, who: str, run: str, tokens: int, money: float, ceilings: Ceilings, day: str
) -> bool:
    """Keep the price of the final draft, in the place of what the run kept before; False where even that is too much."""
    with store.write() as connection:
        connection.execute(delete(spending).where(_aside_of(run)))
        if _ceiling_reached(connection, who, run, tokens, money, ceilings, day, own_aside=False) is not None:
            return False
        _insert(connection, SpendingState.aside, who, run, WRITE_ROLE, "", tokens, money, day)
        return True


def release_draft(connection: Connection, run: str) -> None:
    """Release what an ended run had reserved for its draft."""
    connection.execute(delete(spending).where(_aside_of(run)))


def settle(store: Store, id: int, usage: Usage) -> None:
    """What the request took, in the place of what was reserved; more than that is kept as it is."""
    with store.write() as connection:
        connection.execute(
            _SETTLE,
            {
                "place": id,
                "state": SpendingState.settled.value,
                "calls": usage.calls,
                "tokens_in": usage.tokens_in,
                "tokens_out": usage.tokens_out,
                "money": usage.money,
                "seconds": usage.seconds,
            },
        )


def release(store: Store, id: int) -> None:
    """The request never left."""
    with store.write() as connection:
        connection.execute(
            delete(spending).where(spending.c.id == id, spending.c.state == SpendingState.reserved.value)
        )


def mark_lost(store: Store, run: str) -> int:
    """Mark what a dead process had reserved for this run as lost; it still counts. Returns the number of requests."""
    with store.write() as connection:
        return connection.execute(
            update(spending)
            .where(spending.c.run == run, spending.c.state == SpendingState.reserved.value)
            .values(state=SpendingState.lost.value)
        ).rowcount


def spent(store: Store, who: str, day: str) -> Usage:
    """What a person has used in a day, with what is reserved and lost. Where only the sum of tokens is known they count as
    read. What is set aside is not spent."""
    return _used(store, and_(spending.c.who == who, spending.c.day == day))


def spent_by_run(store: Store, run: str) -> Usage:
    """The same for a run."""
    return _used(store, spending.c.run == run)


def spent_by_all(store: Store, day: str) -> Usage:
    """The same for everybody together in a day."""
    return _used(store, spending.c.day == day)


def describe_ceiling(over: CeilingReached, tokens: int, money: float) -> str:
    """Which ceiling it is, for the person who asked."""
    whose = {
        CeilingScope.call: "one request may take",
        CeilingScope.run: "this run may take",
        CeilingScope.day: "one person may use in a day",
        CeilingScope.all: "all together may use in a day",
    }[over.whose]
    if over.what is Quantity.calls:
        return f"one request more would pass the {over.most:,.0f} requests that {whose}"
    if over.what is Quantity.seconds:
        return f"of the {over.most:,.0f} seconds of models' time that {whose} too few are left"
    if over.what is Quantity.money:
        return f"${money:.4f} more would pass the ${over.most:,.4f} that {whose}"
    return f"{tokens:,} tokens more would pass the {over.most:,.0f} tokens that {whose}"


_SETTLED = spending.c.state == SpendingState.settled.value
_TOKENS = case((_SETTLED, spending.c.tokens_in + spending.c.tokens_out), else_=spending.c.reserved_tokens)
_MONEY = case((_SETTLED, spending.c.money), else_=spending.c.reserved_money)


def recent_usage(store: Store, model: str, who: str) -> Usage:
    """Usage of a person's latest answered requests to a model: an estimate of its speed."""
    latest = (
        select(spending.c.id)
        .where(spending.c.who == who, spending.c.model == model, _SETTLED)
        .order_by(spending.c.day.desc(), spending.c.id.desc())  # as the index has it
        .limit(RECENT_REQUESTS)
    )
    return _used(store, spending.c.id.in_(latest))


def _aside_of(run: str) -> ColumnElement[bool]:
    return and_(spending.c.run == run, spending.c.state == SpendingState.aside.value)


def _ceiling_reached(
    connection: Connection,
    who: str,
    run: str,
    tokens: int,
    money: float,
    ceilings: Ceilings,
    day: str,
    own_aside: bool,
) -> CeilingReached | None:
    """The first ceiling that so much more would pass; what the run has set aside counts unless it is about to be used."""
    asked = (1, tokens, money)
    for whose, of, most in (
        (CeilingScope.run, spending.c.run == run, (ceilings.run_calls, ceilings.run_tokens, ceilings.run_money)),
        (
            CeilingScope.day,
            and_(spending.c.who == who, spending.c.day == day),
            (ceilings.day_calls, ceilings.day_tokens, ceilings.day_money),
        ),
        (CeilingScope.all, spending.c.day == day, (0, ceilings.all_tokens, ceilings.all_money)),
    ):
        if not any(most):
            continue
        used = _sums(connection, of, run, own_aside)
        for what, already, more, ceiling in zip(Quantity, used, asked, most, strict=False):
            if ceiling and already + more > ceiling + (ROUNDING if what is Quantity.money else 0):
                return CeilingReached(what, whose, ceiling)
    return None


def _seconds(connection: Connection, who: str, day: str) -> float:
    """What a person has used and reserved of models' time; writing has its own requests counted too."""
    mine = and_(spending.c.who == who, spending.c.day == day)
    return float(connection.scalar(select(func.sum(spending.c.seconds)).where(mine)) or 0.0)


def _sums(connection: Connection, of: ColumnElement[bool], run: str, own_aside: bool) -> tuple[int, int, float]:
    """Calls, tokens and money."""
    counted = and_(of, ~_aside_of(run)) if own_aside else of
    row = connection.execute(
        select(func.sum(spending.c.calls), func.sum(_TOKENS), func.sum(_MONEY)).where(counted)
    ).one()
    return int(row[0] or 0), int(row[1] or 0), float(row[2] or 0.0)


def _insert(
    connection: Connection,
    state: SpendingState,
    who: str,
    run: str,
    role: str,
    model: str,
    tokens: int,
    money: float,
    day: str,
    seconds: float = 0.0,
) -> int:
    row = {"who": who, "run": run, "role": role, "model": model, "day": day, "state": state.value, "calls": 1}
    price = {"reserved_tokens": tokens, "reserved_money": money}
    taken = {"tokens_in": 0, "tokens_out": 0, "money": 0.0, "seconds": seconds}
    made = connection.execute(_INSERT, row | price | taken)
    return int(made.scalar_one())


def _used(store: Store, of: ColumnElement[bool]) -> Usage:
    unsettled = case((_SETTLED, 0), else_=spending.c.reserved_tokens)
    with store.read() as connection:
        row = connection.execute(
            select(
                func.sum(spending.c.calls),
                func.sum(spending.c.tokens_in + unsettled),
                func.sum(spending.c.tokens_out),
                func.sum(_MONEY),
                func.sum(spending.c.seconds),
            ).where(of, spending.c.state != SpendingState.aside.value)
        ).one()
    return Usage(int(row[0] or 0), int(row[1] or 0), int(row[2] or 0), float(row[3] or 0.0), float(row[4] or 0.0))
