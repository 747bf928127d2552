"""Answers that wait for a reviewer, and what became of them: the truth about approvals, each for one seal and for one use."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from sqlalchemy import Connection, insert, select, update

from assay.errors import StoreError, UserError
from assay.store.open import Store
from assay.store.schema import reviews, runs
from assay.trust import Decision, Held, Reviewed

HOURS = 24.0  # that an approval holds, where nobody says otherwise


class State(StrEnum):
    waiting = "waiting"
    approved = "approved"  # and not delivered yet
    edited = "edited"
    rejected = "rejected"
    delivered = "delivered"
    superseded = "superseded"  # another answer waits, or waited, in its place


BECOMES = {Decision.approve: State.approved, Decision.edit: State.edited, Decision.reject: State.rejected}


# Inside the transaction that appends the event: `records.append` calls these.


def hold(connection: Connection, store: Store, run: str, held: Held) -> None:
    """An answer waits. Whatever waited before it, or was approved and not delivered, counts no more."""
    who = connection.scalar(select(runs.c.who).where(runs.c.id == run))
    open_ = reviews.c.state.in_((State.waiting.value, State.approved.value))
    connection.execute(update(reviews).where(reviews.c.run == run, open_).values(state=State.superseded.value))
    connection.execute(update(runs).where(runs.c.id == run).values(gated=True))
    connection.execute(
        insert(reviews).values(
            run=run,
            seal=held.seal,
            who=who,
            state=State.waiting.value,
            reasons=list(held.reasons),
            four_eyes=held.four_eyes,
            created=store.now(),
        )
    )


def decide(connection: Connection, store: Store, run: str, reviewed: Reviewed, hours: float) -> None:
    """A decision on the answer that waits now, and only if it is the one that was looked at."""
    row = connection.execute(
        select(reviews.c.id, reviews.c.seal, reviews.c.who, reviews.c.four_eyes).where(
            reviews.c.run == run, reviews.c.state == State.waiting.value
        )
    ).first()
    if row is None:
        raise UserError(f"Nothing of run {run} waits for a reviewer any more.")
    if row.seal != reviewed.seal:
        raise UserError(f"What waits in run {run} is no longer what you looked at. Look again.")
    if row.four_eyes and reviewed.by == row.who:
        raise UserError("Whoever asked cannot review the answer: somebody else has to look at it.")
    now = store.now()
    connection.execute(
        update(reviews)
        .where(reviews.c.id == row.id)
        .values(
            state=BECOMES[reviewed.decision].value,
            by=reviewed.by,
            note=reviewed.note,
            decided=now,
            expires=_later(now, hours) if reviewed.decision is Decision.approve else "",
        )
    )


def deliver(connection: Connection, store: Store, run: str, seal: str | None) -> None:
    """Nothing where no review is needed; else the approval of exactly this is used, once, or nothing is delivered."""
    if not connection.scalar(select(runs.c.gated).where(runs.c.id == run)):
        return
    used = connection.execute(
        update(reviews)
        .where(
            reviews.c.run == run,
            reviews.c.seal == (seal or ""),
            reviews.c.state == State.approved.value,
            reviews.c.expires > store.now(),
        )
        .values(state=State.delivered.value)
    )
    if used.rowcount != 1:
        raise StoreError(f"Run {run} may not be delivered: no reviewer has approved exactly this answer.")


def refuse_after_rejection(connection: Connection, run: str) -> None:
    rejected = select(reviews.c.id).where(reviews.c.run == run, reviews.c.state == State.rejected.value)
    if connection.scalar(rejected) is not None:
        raise UserError(f"Run {run} was rejected in review; it cannot be carried on. Ask again.")


def cleared(store: Store, run: str, seal: str) -> bool:
    """Whether an approval for exactly this is there, unused and not lapsed."""
    with store.read() as connection:
        found = connection.scalar(
            select(reviews.c.id).where(
                reviews.c.run == run,
                reviews.c.seal == seal,
                reviews.c.state == State.approved.value,
                reviews.c.expires > store.now(),
            )
        )
    return found is not None


def _later(moment: str, hours: float) -> str:
    later = datetime.fromisoformat(moment) + timedelta(hours=hours)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
