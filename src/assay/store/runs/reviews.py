"""Answers that wait for review and their outcome: the source of truth for approvals, each valid for one seal and one
use."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, bindparam, func, insert, or_, select, update

from assay.core.errors import StoreError, UserError
from assay.core.events import AwaitingReview, Decision, Reviewed
from assay.store.database import Store, shifted
from assay.store.dialect import Prepared, among
from assay.store.schema import bases, documents, grants, members, mentions, reviews, runs

HOURS = 24.0  # default validity of an approval

_STANDING = Prepared(select(runs.c.gated, runs.c.delivered).where(runs.c.id == bindparam("of")))
_MARKED = Prepared(select(bases.c.id, bases.c.name).where(bases.c.review))


class ReviewState(StrEnum):
    waiting = "waiting"
    approved = "approved"  # not delivered yet
    edited = "edited"
    rejected = "rejected"
    delivered = "delivered"
    superseded = "superseded"  # replaced by a later answer of the run


STATE_AFTER = {
    Decision.approve: ReviewState.approved,
    Decision.edit: ReviewState.edited,
    Decision.reject: ReviewState.rejected,
}


# These run inside the transaction that appends the event, called by `records.append`.


def add_waiting(connection: Connection, store: Store, run: str, held: AwaitingReview) -> None:
    """Add an answer that waits for review. Earlier open reviews of the run are superseded."""
    who = connection.scalar(select(runs.c.who).where(runs.c.id == run))
    supersede(connection, [run])
    connection.execute(update(runs).where(runs.c.id == run).values(gated=True))
    row = {"run": run, "seal": held.seal, "who": who, "state": ReviewState.waiting.value, "created": store.now()}
    connection.execute(insert(reviews).values(**row, reasons=list(held.reasons), four_eyes=held.four_eyes))


def supersede(connection: Connection, run_ids: Collection[str]) -> None:
    """Mark the open reviews of these runs (waiting, or approved and not delivered) as superseded."""
    open_ = reviews.c.state.in_((ReviewState.waiting.value, ReviewState.approved.value))
    own = among(reviews.c.run, run_ids)
    connection.execute(update(reviews).where(own, open_).values(state=ReviewState.superseded.value))


def decide(connection: Connection, store: Store, run: str, reviewed: Reviewed, hours: float) -> None:
    """Record a decision on the answer that waits now. Raises if it is not the one that was reviewed."""
    waiting = (reviews.c.run == run, reviews.c.state == ReviewState.waiting.value)
    row = connection.execute(select(reviews).where(*waiting)).first()
    if row is None:
        raise UserError(f"Nothing of run {run} waits for a reviewer any more.")
    if row.seal != reviewed.seal:
        raise UserError(f"What waits in run {run} is no longer what you looked at. Look again.")
    if row.four_eyes and reviewed.by == row.who:
        raise UserError("Whoever asked cannot review the answer: somebody else has to look at it.")
    now = store.now()
    expires = shifted(now, hours=hours) if reviewed.decision is Decision.approve else ""
    decided = {"state": STATE_AFTER[reviewed.decision].value, "decided": now, "expires": expires}
    connection.execute(
        update(reviews).where(reviews.c.id == row.id).values(**decided, by=reviewed.by, note=reviewed.note)
    )


def deliver(connection: Connection, store: Store, run: str, seal: str | None) -> None:
    """Do nothing if no review is required; otherwise use up the approval of exactly this answer, or raise."""
    if not connection.scalar(select(runs.c.gated).where(runs.c.id == run)):
        return
    approved = _approval(store, run, seal or "")
    used = connection.execute(update(reviews).where(approved).values(state=ReviewState.delivered.value))
    if used.rowcount != 1:
        raise StoreError(f"Run {run} may not be delivered: no reviewer has approved exactly this answer.")


def refuse_after_rejection(connection: Connection, run: str) -> None:
    rejected = select(reviews.c.id).where(reviews.c.run == run, reviews.c.state == ReviewState.rejected.value)
    if connection.scalar(rejected) is not None:
        raise UserError(f"Run {run} was rejected in review; it cannot be carried on. Ask again.")


def is_approved(store: Store, run: str, seal: str) -> bool:
    """Whether there is an unused, unexpired approval for exactly this answer."""
    return store.scalar(select(reviews.c.id).where(_approval(store, run, seal))) is not None


def _approval(store: Store, run: str, seal: str) -> ColumnElement[bool]:
    approved = and_(reviews.c.state == ReviewState.approved.value, reviews.c.expires > store.now())
    return and_(reviews.c.run == run, reviews.c.seal == seal, approved)


DECIDED = (ReviewState.approved, ReviewState.edited, ReviewState.rejected, ReviewState.delivered)
PLACE = "~"  # separates time and id in a cursor


@dataclass(frozen=True, slots=True)
class Review:
    """An answer that waits, or waited, for review."""

    id: int
    run: str
    seal: str
    who: str  # the asker
    state: ReviewState
    reasons: tuple[str, ...]
    four_eyes: bool
    by: str
    note: str
    created: str
    decided: str
    expires: str


_COLUMNS = [reviews.c[name] for name in Review.__dataclass_fields__]


def page(store: Store, *, waiting: bool, after: str = "", limit: int = 50) -> tuple[list[Review], str]:
    """Waiting answers, oldest first, or decided ones, newest first, after this cursor; and the next cursor, empty at
    the end."""
    moment, _, place = after.partition(PLACE)
    own = int(place) if place.isascii() and place.isdigit() else 0
    by = reviews.c.created if waiting else reviews.c.decided
    states = (ReviewState.waiting,) if waiting else DECIDED
    which = reviews.c.state.in_([each.value for each in states])
    if after and waiting:
        which &= or_(by > moment, and_(by == moment, reviews.c.id > own))
    elif after:
        which &= or_(by < moment, and_(by == moment, reviews.c.id < own))
    order = (by, reviews.c.id) if waiting else (by.desc(), reviews.c.id.desc())
    rows = store.rows(select(*_COLUMNS).where(which).order_by(*order).limit(limit + 1))
    found = [_review(row) for row in rows[:limit]]
    more = found[-1] if len(rows) > limit else None
    return found, f"{more.created if waiting else more.decided}{PLACE}{more.id}" if more else ""


def latest(store: Store, run: str) -> Review | None:
    """The latest review of a run; None if it never needed one."""
    row = store.first(select(*_COLUMNS).where(reviews.c.run == run).order_by(reviews.c.id.desc()).limit(1))
    return _review(row) if row else None


def _review(row: Row[Any]) -> Review:
    fields = dict(row._mapping)
    return Review(**fields | {"state": ReviewState(fields["state"]), "reasons": tuple(fields["reasons"])})


def undelivered(store: Store) -> list[tuple[str, str]]:
    """Runs with a decision that have not been resumed since, each with its asker."""
    last = select(func.max(reviews.c.id)).group_by(reviews.c.run)
    open_ = reviews.c.state.in_((ReviewState.approved.value, ReviewState.edited.value))
    rows = store.rows(select(reviews.c.run, reviews.c.who).where(reviews.c.id.in_(last), open_))
    return [(row.run, row.who) for row in rows]


def is_gated(store: Store, run: str) -> bool:
    """Whether a run needs a reviewer's approval and is not delivered yet."""
    with store.read() as connection:
        gated, delivered = _STANDING.first(connection, of=run) or (False, False)
        return bool(gated and not delivered)


def may_need_review(store: Store, run: str, *, by_rule: bool) -> bool:
    """Whether a run is not delivered yet, and either gated or within reach of a rule or a marked base."""
    with store.read() as connection:
        gated, delivered = _STANDING.first(connection, of=run) or (False, False)
        return not delivered and bool(gated or by_rule or _MARKED.first(connection))


def set_review_required(store: Store, base: str, *, on: bool) -> None:
    """Set whether answers that use this knowledge base, by id, need a review."""
    store.execute(update(bases).where(bases.c.id == base).values(review=on))


def bases_with_review(store: Store) -> dict[str, str]:
    """The knowledge bases whose answers need a review, by id."""
    with store.read() as connection:
        return dict(_MARKED.all(connection))


def reviewed_bases_of(store: Store, ids: Collection[str]) -> list[str]:
    """The names of the knowledge bases with required review that contain these documents."""
    if not (known := bases_with_review(store)):
        return []
    rows = store.rows(select(documents.c.id, documents.c.base).where(documents.c.base.in_(sorted(known))))
    return sorted({known[row.base] for row in rows if row.id in ids})


def mentioned_documents(store: Store, run: str) -> set[str]:
    """All documents that the record of a run mentions."""
    return set(store.scalars(select(mentions.c.document).where(mentions.c.run == run).distinct()))


def unreadable(connection: Connection, names: Iterable[str], ids: Collection[str]) -> set[str]:
    """Those of these documents that none of these names (`user:…`, `group:…`) may read."""
    own = select(grants.c.label).where(grants.c.name.in_(sorted(names)))
    may = among(documents.c.id, ids) & documents.c.label.in_(own)
    return set(ids) - set(connection.scalars(select(documents.c.id).where(may)))


def is_admin(connection: Connection, name: str) -> bool:
    return bool(connection.scalar(select(members.c.admin).where(members.c.name == name)))


def not_notified(store: Store, limit: int = 20) -> list[Review]:
    """Waiting answers for which no notification was sent yet, oldest first."""
    which = and_(reviews.c.state == ReviewState.waiting.value, reviews.c.notified == "")
    rows = store.rows(select(*_COLUMNS).where(which).order_by(reviews.c.id).limit(limit))
    return [_review(row) for row in rows]


def mark_notified(store: Store, review: int) -> None:
    """Record that the notification was sent. After a crash before this it is sent again: at-least-once delivery."""
    store.execute(update(reviews).where(reviews.c.id == review).values(notified=store.now()))
