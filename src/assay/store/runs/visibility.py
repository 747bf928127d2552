"""Which parts of a run a user may see now. From the first mention of a document they may not read, every record may
contain its text, also in model output: none of it is shown. Erased and inaccessible documents are indistinguishable."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, Text, and_, bindparam, delete, select

from assay.core.access import Scope
from assay.core.codec import dumps
from assay.core.events import Answered, Asked, AwaitingReview, Event
from assay.core.types import Answer, Exchange
from assay.store.database import Store
from assay.store.dialect import Prepared, insert_new, json_text, one_of
from assay.store.schema import SAME_RECORD, documents, facts, mentions, payloads, records

WITHHELD_REASON = "It spoke of a document that was erased, or that you may not read any more."
WITHHELD_ANSWER = "The answer is withheld: it spoke of a document that was erased, or that you may not read any more."
ERASED = "gone "  # prefix of facts about erased documents, and about active runs that mentioned one
WITHHELD_TURN = "(withheld)"  # replaces an answer in the history that a follow-up sees

# Built once: used on every read of a run and on every step.
READABLE = and_(
    one_of(documents.c.base, bindparam("bases", type_=Text)), one_of(documents.c.label, bindparam("labels", type_=Text))
)
_READABLE = and_(documents.c.id == mentions.c.document, READABLE)
_CLOSED = (
    select(mentions.c.seq)
    .distinct()
    .select_from(mentions.outerjoin(documents, _READABLE))
    .where(mentions.c.run == bindparam("of"), documents.c.id.is_(None))
    .order_by(mentions.c.seq)
)
_ANY_CLOSED = Prepared(_CLOSED.limit(1))
_CLOSED_RUNS = (
    select(mentions.c.run)
    .distinct()
    .select_from(mentions.outerjoin(documents, _READABLE))
    .where(mentions.c.run.in_(bindparam("runs", expanding=True)), documents.c.id.is_(None))
)
_NARROWED = (
    select(records.c.seq, json_text(payloads.c.body, "$.since").label("since"))
    .join(payloads, SAME_RECORD)
    .where(records.c.run == bindparam("of"), records.c.kind == "Narrowed")
    .order_by(records.c.seq)
)
_GONE = Prepared(select(facts.c.name).where(one_of(facts.c.name, bindparam("marks", type_=Text))).limit(1))


@dataclass(frozen=True, slots=True)
class HiddenRecords:
    """The hidden records of a run, as half-open spans. `since` is the start of the span that has no end yet."""

    spans: tuple[tuple[int, int], ...] = ()
    since: int | None = None

    def covers(self, seq: int) -> bool:
        over = any(first <= seq < last for first, last in self.spans)
        return over or (self.since is not None and seq >= self.since)


def hidden_records(connection: Connection, run: str, scope: Scope) -> HiddenRecords:
    """The records of a run that are hidden in this scope."""
    aside = narrowings(connection, run)
    spans = spans_from(list(connection.scalars(_CLOSED, {"of": run, **readable_values(scope)})), aside)
    since = spans[-1][0] if spans and spans[-1][1] is None else None
    ended = ((first, last) for first, last in spans if last is not None)
    # Narrowed spans stay hidden from everyone, even if access is restored.
    return HiddenRecords((*ended, *((as_of, seq) for seq, as_of in aside)), since)


def narrowings(connection: Connection, run: str) -> list[tuple[int, int]]:
    """The narrowings of a run: the position of each, and the record since which events no longer count."""
    return [(row.seq, int(row.since)) for row in connection.execute(_NARROWED, {"of": run})]


def spans_from(closed: Sequence[int], narrowings: Sequence[tuple[int, int]]) -> list[tuple[int, int | None]]:
    """Spans from each mention of an inaccessible document to the narrowing of the run because of it: later records
    do not depend on it. The last span may have no end yet. Pure."""
    spans: list[tuple[int, int | None]] = []
    since: int | None = None
    for seq, as_of in sorted([*((seq, -1) for seq in closed), *narrowings]):
        if as_of < 0:
            since = seq if since is None else since
        elif since is not None and since >= as_of:
            spans.append((since, seq))
            since = None
    return [*spans, (since, None)] if since is not None else spans


def must_erase(connection: Connection, run: str, spoken_of: Sequence[str]) -> bool:
    """Whether the event about to be recorded may contain text of a document that was erased meanwhile."""
    marks = [ERASED + each for each in (run, *spoken_of)]
    return _GONE.first(connection, marks=dumps(marks)) is not None


def mark_erased(connection: Connection, run: str) -> None:
    """Have the next records of a run erased as they are recorded: they may come from what was erased."""
    connection.execute(insert_new(facts).values(name=ERASED + run, value=""))


def clear_erasure_mark(connection: Connection, run: str) -> None:
    """Clear the mark after the run was narrowed: later records do not depend on what was erased."""
    connection.execute(delete(facts).where(facts.c.name == ERASED + run))


def hidden_since(store: Store, run: str, scope: Scope) -> int | None:
    """The first record from which the rest of the run is hidden, or None."""
    with store.read() as connection:
        if _ANY_CLOSED.first(connection, of=run, **readable_values(scope)) is None:
            return None
        return hidden_records(connection, run, scope).since


def hidden_events(store: Store, run: str, scope: Scope) -> HiddenRecords:
    """The records of a run that are hidden in this scope."""
    with store.read() as connection:
        return hidden_records(connection, run, scope)


def hidden_runs(connection: Connection, runs: Collection[str], scope: Scope) -> set[str]:
    """Those of these runs whose end is hidden in this scope."""
    found = connection.scalars(_CLOSED_RUNS, {"runs": sorted(runs), **readable_values(scope)}).all() if runs else ()
    return {run for run in found if hidden_records(connection, run, scope).since is not None}


def redact(connection: Connection, event: Event, scope: Scope) -> Event:
    """A visible event as the user may see it: the inputs of a question are reduced to what they may know."""
    match event:
        case Asked(history=history, brief=brief) if history or brief:
            return _asked(connection, event, scope)
        case Answered(answer=answer) if answer.unread:
            return replace(event, answer=_listed(connection, answer, scope))
        case AwaitingReview(answer=answer) if answer.unread:
            return replace(event, answer=_listed(connection, answer, scope))
        case _:
            return event


def _asked(connection: Connection, asked: Asked, scope: Scope) -> Asked:
    turns, brief = asked.history, asked.brief
    named = {each for turn in turns for each in turn.documents} | set(brief.documents if brief else ())
    may = readable(connection, named, scope)
    hidden = hidden_runs(connection, {turn.run for turn in turns}, scope)
    history = tuple(
        Exchange(turn.run, "", WITHHELD_TURN) if turn.run in hidden or not may.issuperset(turn.documents) else turn
        for turn in turns
    )
    if brief is not None:
        brief = replace(brief, documents=tuple(each for each in brief.documents if each in may))
    return replace(asked, history=history, brief=brief)


def readable(connection: Connection, ids: Iterable[str], scope: Scope) -> set[str]:
    """Those of these documents that may be read now, in any state."""
    query = select(documents.c.id).where(documents.c.id.in_(sorted(ids)), within(scope))
    return set(connection.scalars(query))


def _listed(connection: Connection, answer: Answer, scope: Scope) -> Answer:
    """The answer without the names of files that this user may not know of now."""
    there = set(connection.scalars(select(documents.c.uri).where(documents.c.uri.in_(answer.unread), within(scope))))
    return replace(answer, unread=tuple(uri for uri in answer.unread if uri in there))


def within(scope: Scope) -> ColumnElement[bool]:
    """The condition for documents that the scope may read."""
    return documents.c.base.in_([base.id for base in scope.bases]) & documents.c.label.in_(sorted(scope.labels))


def readable_values(scope: Scope) -> dict[str, str]:
    """The values of `READABLE`."""
    return {"bases": dumps([base.id for base in scope.bases]), "labels": dumps(sorted(scope.labels))}
