"""Countable fields of records, for reports and monitoring. Together with spending they are the only source of these
figures; no text of documents or questions is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Table, and_, case, func, null, select

from assay.core.events import WORKSPACE
from assay.core.events.upgrade import current_kind, stored_kinds
from assay.core.types import Usage
from assay.store.database import Store
from assay.store.dialect import json_length, json_text
from assay.store.runs.budgets import SUMS, SpendingState
from assay.store.schema import forecasts, jobs, payloads, records, reviews, runs, spending, underway

AT_ONCE = 20_000  # records per batch


class Fact(NamedTuple):
    """One record with only its counted fields, which depend on its kind (see `COUNTED_FIELDS`). `erased`: the
    payload is gone. A tuple rather than a dataclass, since there are hundreds of thousands of them."""

    n: int
    run: str
    who: str
    started: str
    seq: int
    at: str
    kind: str
    one: Any = None
    two: Any = None
    three: Any = None
    erased: bool = False


@dataclass(frozen=True, slots=True)
class ForecastOutcome:
    """A forecast and its outcome: `foreseen` maps names to low, likely and high, `came` maps names to actual values."""

    run: str
    kind: str
    at: str
    foreseen: dict[str, dict[str, float | None]]
    came: dict[str, float | None] | None


def _of(path: str) -> ColumnElement[Any]:
    return json_text(payloads.c.body, path)


def _size(path: str) -> ColumnElement[Any]:
    return func.coalesce(json_length(payloads.c.body, path), 0)


_SEARCHES = and_(_size("$.seeks") == 0, _of("$.hops") == "false", _of("$.recalls") == "false")
COUNTED_FIELDS: dict[str, tuple[Any, Any, Any]] = {
    # mode · for a run continued from another, the position it continues from · model, rules or synthesis
    "Asked": (
        _of("$.mode"),
        _of("$.branch.at"),
        case((_of("$.brief").is_not(None), '"synthesis"'), (_size("$.seats") > 0, '"model"'), else_='"rules"'),
    ),
    "Routed": (_of("$.route"), _of("$.every"), null()),
    "Decided": (_of("$.calls"), case((_SEARCHES, "true"), else_="false"), null()),  # calls · whether it is a round
    "ToolRan": (
        _of("$.call"),
        case((_of("$.error") != '""', "true"), else_="false"),
        null(),
    ),  # call · whether it failed
    "Stopped": (_of("$.reason"), null(), null()),
    "Answered": (_of("$.answer.outcome"), _of("$.answer.stopped"), null()),
    "Reviewed": (_of("$.decision"), null(), null()),
    "Failed": (_of("$.error"), null(), null()),
}


def _counted_field(place: int) -> ColumnElement[Any]:
    return case(*((records.c.kind == kind, fields[place]) for kind, fields in COUNTED_FIELDS.items()), else_=null())


_COUNTED = records.c.kind.in_(tuple(COUNTED_FIELDS))  # the payloads of other kinds are not read
_FACTS = (
    select(
        records.c.n,
        records.c.run,
        runs.c.who,
        runs.c.started,
        records.c.seq,
        records.c.at,
        records.c.kind,
        _counted_field(0).label("one"),
        _counted_field(1).label("two"),
        _counted_field(2).label("three"),
        and_(payloads.c.run.is_(None), _COUNTED).label("erased"),
    )
    .join(runs, runs.c.id == records.c.run)
    .outerjoin(payloads, and_(_COUNTED, payloads.c.run == records.c.run, payloads.c.seq == records.c.seq))
    .where(runs.c.id != WORKSPACE)
)


def facts(
    store: Store, since: str = "", until: str = "", who: str | None = None, kinds: Sequence[str] = ()
) -> Iterator[Fact]:
    """All records of the runs started in a period (`until` included; dates or timestamps), run by run, in order; of
    all users or of one. With `kinds`, only records of those kinds."""
    asked = _FACTS.where(*_between(since, until, who))
    if kinds:
        asked = asked.where(records.c.kind.in_(stored_kinds(*kinds)))
    with store.read() as connection:
        for row in connection.execute(asked.order_by(records.c.run, records.c.seq)):
            yield _fact(row)


def facts_of_run(store: Store, run: str) -> Iterator[Fact]:
    """All records of one run, in order."""
    yield from map(_fact, store.rows(_FACTS.where(runs.c.id == run).order_by(records.c.seq)))


def record_times(store: Store, run: str) -> list[str]:
    """The timestamp of each record of a run, in order."""
    return store.scalars(select(records.c.at).where(records.c.run == run).order_by(records.c.seq))


def facts_after(store: Store, n: int, most: int = AT_ONCE) -> list[Fact]:
    """The records after the nth of all records, in order."""
    return [_fact(row) for row in store.rows(_FACTS.where(records.c.n > n).order_by(records.c.n).limit(most))]


def _fact(row: Any) -> Fact:
    one, two, three = (None if value is None else json.loads(value) for value in (row.one, row.two, row.three))
    return Fact._make(row)._replace(kind=current_kind(row.kind), one=one, two=two, three=three, erased=bool(row.erased))


def _between(
    since: str, until: str, who: str | None, table: Table = runs, at: str = "started"
) -> Iterator[ColumnElement[bool]]:
    """The conditions for what began in a period, of one person or of all."""
    if since:
        yield table.c[at] >= since
    if until:
        yield table.c[at] < f"{until}\x7f"  # includes the whole day or second
    if who is not None:
        yield table.c.who == who


def spent(store: Store, since: str = "", until: str = "", who: str | None = None) -> dict[str, Usage]:
    """The spending of each run started in a period."""
    rows = _sums(spending.c.run).join(runs, runs.c.id == spending.c.run).where(*_between(since, until, who))
    return {row[0]: Usage(*row[1:]) for row in store.rows(rows)}


def spent_by_role(store: Store, since: str = "", until: str = "", who: str | None = None) -> dict[str, Usage]:
    """The spending by role: all of it, or that of runs started in a period or by one person."""
    rows = _sums(spending.c.role)
    if since or until or who is not None:
        rows = rows.join(runs, runs.c.id == spending.c.run).where(*_between(since, until, who))
    return {row[0]: Usage(*row[1:]) for row in store.rows(rows)}


def _sums(by: ColumnElement[Any]) -> Any:
    return select(by, *SUMS).where(spending.c.state != SpendingState.aside.value).group_by(by)


def forecast_outcomes(store: Store, since: str = "", until: str = "", who: str | None = None) -> list[ForecastOutcome]:
    """Forecasts for work started in a period, oldest first; of all users or of one."""
    limits = _between(since, until, who, forecasts, "at")
    rows = store.rows(select(forecasts).where(*limits).order_by(forecasts.c.at, forecasts.c.run))
    return [ForecastOutcome(row.run, row.kind, row.at, row.foreseen, row.came) for row in rows]


def count_waiting(store: Store) -> int:
    """The number of answers that wait for review."""
    return store.scalar(select(func.count()).select_from(reviews).where(reviews.c.state == "waiting"))


def count_under_way(store: Store) -> int:
    """The number of runs in progress on servers."""
    return store.scalar(select(func.count()).select_from(underway))


def jobs_by_state(store: Store) -> dict[str, int]:
    """The number of upload jobs by state."""
    return dict(store.rows(select(jobs.c.state, func.count()).group_by(jobs.c.state)))
