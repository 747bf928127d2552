"""What models may cost: reserved before a request leaves, settled when its reply is there. One transaction each.

What was spent and what is reserved together never pass a ceiling, however many runs of a person go on at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, insert, select, update

from assay.store.open import Store
from assay.store.schema import spending
from assay.types import Usage

WRITES = "write"  # the role for which the price of the draft is set aside
CENT = 1e-9  # sums of money are not exact; by less than this nothing is passed


class State(StrEnum):
    reserved = "reserved"  # the request may be out
    settled = "settled"  # its reply is there
    lost = "lost"  # the process died before it came: it counts at what was reserved
    aside = "aside"  # kept for the final draft


class Over(StrEnum):
    """Which ceiling a request would pass."""

    calls = "calls"
    tokens = "tokens"
    money = "money"


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that may be spent; money is in USD. A ceiling of 0 is none."""

    run_calls: int = 0
    run_tokens: int = 0
    run_money: float = 0.0
    day_tokens: int = 0  # of one person
    day_money: float = 0.0
    call_tokens: int = 0


# Spelt once: putting a statement together takes longer than running it.
_PLACE = insert(spending).returning(spending.c.id)
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
) -> int | Over:
    """A place for one request, or the ceiling that it would pass.

    Writing may use what its run has set aside, which is then given back; nothing else may.
    """
    if ceilings.call_tokens and tokens > ceilings.call_tokens:
        return Over.tokens
    writes = role == WRITES
    with store.write() as connection:
        over = _passes(connection, who, run, tokens, money, ceilings, day, own_aside=writes)
        if over is not None:
            return over
        if writes:
            connection.execute(delete(spending).where(_aside_of(run)))
        return _insert(connection, State.reserved, who, run, role, model, tokens, money, day)


def set_aside(store: Store, who: str, run: str, tokens: int, money: float, ceilings: Ceilings, day: str) -> bool:
    """Keep the price of the final draft, in the place of what the run kept before; False where even that is too much."""
    with store.write() as connection:
        connection.execute(delete(spending).where(_aside_of(run)))
        if _passes(connection, who, run, tokens, money, ceilings, day, own_aside=False) is not None:
            return False
        _insert(connection, State.aside, who, run, WRITES, "", tokens, money, day)
        return True


def give_back(store: Store, run: str) -> None:
    """The run has ended: what it kept for a draft is free again."""
    with store.write() as connection:
        connection.execute(delete(spending).where(_aside_of(run)))


def settle(store: Store, id: int, usage: Usage) -> None:
    """What the request took, in the place of what was reserved; more than that is kept as it is."""
    with store.write() as connection:
        connection.execute(
            _SETTLE,
            {
                "place": id,
                "state": State.settled.value,
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
        connection.execute(delete(spending).where(spending.c.id == id, spending.c.state == State.reserved.value))


def lost(store: Store, run: str) -> int:
    """What a dead process had reserved for this run is lost, and goes on counting. How many requests that were."""
    with store.write() as connection:
        return connection.execute(
            update(spending)
            .where(spending.c.run == run, spending.c.state == State.reserved.value)
            .values(state=State.lost.value)
        ).rowcount


def spent(store: Store, who: str, day: str) -> Usage:
    """What a person has used in a day, with what is reserved and lost. Where only the sum of tokens is known they count as
    read. What is set aside is not spent."""
    return _used(store, and_(spending.c.who == who, spending.c.day == day))


def spent_by_run(store: Store, run: str) -> Usage:
    """The same for a run."""
    return _used(store, spending.c.run == run)


_SETTLED = spending.c.state == State.settled.value
_TOKENS = case((_SETTLED, spending.c.tokens_in + spending.c.tokens_out), else_=spending.c.reserved_tokens)
_MONEY = case((_SETTLED, spending.c.money), else_=spending.c.reserved_money)


def paid_to(store: Store, model: str) -> Usage:
    """What a model has been asked here so far, by anyone, as far as its replies came back: how fast it is."""
    return _used(store, and_(spending.c.model == model, _SETTLED))


def _aside_of(run: str) -> ColumnElement[bool]:
    return and_(spending.c.run == run, spending.c.state == State.aside.value)


def _passes(
    connection: Connection,
    who: str,
    run: str,
    tokens: int,
    money: float,
    ceilings: Ceilings,
    day: str,
    own_aside: bool,
) -> Over | None:
    """The first ceiling that so much more would pass; what the run has set aside counts unless it is about to be used."""
    if ceilings.run_calls or ceilings.run_tokens or ceilings.run_money:
        used = _sums(connection, spending.c.run == run, run, own_aside)
        if ceilings.run_calls and used[0] + 1 > ceilings.run_calls:
            return Over.calls
        if over := _over(used, tokens, money, ceilings.run_tokens, ceilings.run_money):
            return over
    if ceilings.day_tokens or ceilings.day_money:
        used = _sums(connection, and_(spending.c.who == who, spending.c.day == day), run, own_aside)
        return _over(used, tokens, money, ceilings.day_tokens, ceilings.day_money)
    return None


def _over(used: tuple[int, int, float], tokens: int, money: float, most_tokens: int, most_money: float) -> Over | None:
    if most_tokens and used[1] + tokens > most_tokens:
        return Over.tokens
    if most_money and used[2] + money > most_money + CENT:
        return Over.money
    return None


def _sums(connection: Connection, of: ColumnElement[bool], run: str, own_aside: bool) -> tuple[int, int, float]:
    """Calls, tokens and money."""
    counted = and_(of, ~_aside_of(run)) if own_aside else of
    row = connection.execute(
        select(func.sum(spending.c.calls), func.sum(_TOKENS), func.sum(_MONEY)).where(counted)
    ).one()
    return int(row[0] or 0), int(row[1] or 0), float(row[2] or 0.0)


def _insert(
    connection: Connection,
    state: State,
    who: str,
    run: str,
    role: str,
    model: str,
    tokens: int,
    money: float,
    day: str,
) -> int:
    row = {"who": who, "run": run, "role": role, "model": model, "day": day, "state": state.value, "calls": 1}
    price = {"reserved_tokens": tokens, "reserved_money": money}
    taken = {"tokens_in": 0, "tokens_out": 0, "money": 0.0, "seconds": 0.0}
    made = connection.execute(_PLACE, row | price | taken)
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
            ).where(of, spending.c.state != State.aside.value)
        ).one()
    return Usage(int(row[0] or 0), int(row[1] or 0), int(row[2] or 0), float(row[3] or 0.0), float(row[4] or 0.0))
