"""Summaries of a user's runs: state, cost and route. Reads no document text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select

from assay.core.access import Scope
from assay.core.errors import Missing
from assay.core.events import BUDGETS, Asked, Decision, Route, StopReason
from assay.core.events.upgrade import current_kind, read_event
from assay.core.types import Usage
from assay.store.database import Store
from assay.store.runs import budgets, visibility
from assay.store.schema import SAME_RECORD, mentions, payloads, records, runs

CUT_SHORT = frozenset({reason.value for reason in BUDGETS} | {StopReason.unusable.value})
STATES = {"Paused": "waiting", "Failed": "failed", "AwaitingReview": "held"}


@dataclass(frozen=True, slots=True)
class RunOverview:
    """A run summary. `state` is the outcome of a delivered run; otherwise waiting, held, rejected, failed or
    unfinished. It is `withheld` if the run mentions a document that was erased or that the user may no longer read."""

    id: str
    started: str
    question: str
    state: str
    delivered: bool
    usage: Usage
    stopped: str = ""  # why the search of a delivered run ended
    documents: int = 0  # of a synthesis: their number

    @property
    def cut_short(self) -> bool:
        """Whether a limit or unusable replies ended it, for quality monitoring. Without a model a full round of
        searches is the normal end."""
        return self.stopped in CUT_SHORT and self.usage.calls > 0


def history(store: Store, who: str, scope: Scope, limit: int = 20) -> list[RunOverview]:
    """A user's runs, newest first."""
    return [
        RunOverview(
            run.id,
            run.started,
            run.asked.question if run.asked else "",
            _state(run),
            run.last == "Answered",
            budgets.spent_by_run(store, run.id),
            run.stopped,
            len(run.asked.brief.documents) if run.asked and run.asked.brief else 0,
        )
        for run in _progress_of(store, runs.c.who == who, limit, scope)
    ]


def _state(run: RunProgress) -> str:
    if run.last == "Answered":
        return run.outcome or "withheld"
    return "rejected" if run.rejected and not run.withheld else STATES.get(run.last, "unfinished")


def _asked(body: str | None) -> Asked | None:
    if not body:
        return None
    asked = read_event(Asked.__name__, json.loads(body), texts=lambda document, start, end: ("", "", ""))
    assert isinstance(asked, Asked)
    return asked


def routes(store: Store, who: str) -> Iterator[Route]:
    """The route of each of a user's questions, newest first, where a model chose it."""
    rows = (
        select(records.c.run, records.c.kind, payloads.c.body)
        .join(runs, runs.c.id == records.c.run)
        .join(payloads, SAME_RECORD)
        .where(runs.c.who == who, records.c.kind.in_(("Asked", "Routed")))
        .order_by(runs.c.started.desc(), runs.c.id, records.c.seq)
    )
    with store.read() as connection:
        for _, each in groupby(connection.execute(rows), key=lambda row: row.run):
            asked, *routed = [json.loads(row.body) for row in each]
            if routed and asked.get("seats") and not asked.get("route"):
                yield Route(routed[-1]["route"])


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The state of a run, from its first and last record alone. If it mentions a document that was erased or that
    the user may no longer read, it has few details and its end is `withheld`."""

    id: str
    started: str
    asked: Asked | None
    last: str  # the kind of the last record
    outcome: str = ""  # of a delivered run
    error: str = ""  # of a failed run
    withheld: bool = False
    rejected: bool = False  # in review
    stopped: str = ""  # why the search of a delivered run ended


def page(
    store: Store, who: str, scope: Scope, after: str = "", limit: int = 50, synthesis: bool | None = None
) -> tuple[list[RunProgress], str]:
    """A user's runs, newest first, after this cursor; and the next cursor, empty at the end. Optionally only
    syntheses, or only questions."""
    started, _, run = after.partition(PLACE)
    which = runs.c.who == who
    if after:
        which &= or_(runs.c.started < started, and_(runs.c.started == started, runs.c.id > run))
    if synthesis is not None:
        has = exists().where(payloads.c.run == runs.c.id, payloads.c.seq == 0, payloads.c.body.contains(BRIEF))
        which &= has if synthesis else ~has
    found = _progress_of(store, which, limit + 1, scope)
    more = found[limit - 1] if len(found) > limit else None
    return found[:limit], f"{more.started}{PLACE}{more.id}" if more else ""


BRIEF = '"brief":{'  # only the first event of a synthesis has one; in a question the quotes would be escaped
PLACE = "~"  # separates time and id in a cursor


def run_progress(store: Store, run: str, who: str, scope: Scope) -> RunProgress:
    """The state of a run of this user."""
    found = _progress_of(store, and_(runs.c.id == run, runs.c.who == who), 1, scope)
    if not found:
        raise Missing(f"There is no run called {run!r}. `assay runs` lists them.")
    return found[0]


def _progress_of(store: Store, which: ColumnElement[bool], limit: int, scope: Scope) -> list[RunProgress]:
    first, last = records.alias("first"), records.alias("last")
    page = (  # a run interrupted before its question was recorded does not exist yet
        select(runs.c.id, runs.c.started)
        .join(first, and_(first.c.run == runs.c.id, first.c.seq == 0))
        .where(which)
        .order_by(runs.c.started.desc(), runs.c.id)
        .limit(limit)
        .subquery()
    )
    newest = select(func.max(records.c.seq)).where(records.c.run == page.c.id).correlate(page).scalar_subquery()
    asked, ended = payloads.alias("asked"), payloads.alias("ended")
    last_event = and_(
        ended.c.run == page.c.id, ended.c.seq == last.c.seq, last.c.kind.in_(("Answered", "Failed", "Reviewed"))
    )
    rows = (
        select(page, last.c.kind, asked.c.body.label("asked"), ended.c.body.label("ended"))
        .select_from(page)
        .join(last, and_(last.c.run == page.c.id, last.c.seq == newest))
        .outerjoin(asked, and_(asked.c.run == page.c.id, asked.c.seq == 0))
        .outerjoin(ended, last_event)
        .order_by(page.c.started.desc(), page.c.id)
    )
    with store.read_shown() as connection:
        found = connection.execute(rows).all()
        hidden = visibility.hidden_runs(connection, {row.id for row in found}, scope)
    return [_progress(row, row.id in hidden) for row in found]


def _progress(row: Any, hidden: bool) -> RunProgress:
    ended = json.loads(row.ended) if row.ended else {}
    answer = {} if hidden else ended.get("answer", {})
    return RunProgress(
        row.id,
        row.started,
        _asked(row.asked),
        current_kind(row.kind),
        outcome=answer.get("outcome", ""),
        error=ended.get("error", ""),
        withheld=hidden or (row.kind == "Answered" and not row.ended),
        rejected=ended.get("decision") == Decision.reject,
        stopped=answer.get("stopped", ""),
    )


def runs_mentioning(store: Store, who: str, document: str, limit: int) -> list[str]:
    """A user's delivered runs that speak of a document, newest first."""
    of_document = select(mentions.c.run).where(mentions.c.document == document)
    query = select(runs.c.id).where(runs.c.who == who, runs.c.delivered.is_(True), runs.c.id.in_(of_document))
    return store.scalars(query.order_by(runs.c.started.desc(), runs.c.id).limit(limit))
