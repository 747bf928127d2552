"""Feedback on answers, kept in the workspace's own chain. Its words are read only by who may still read the run's documents."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from sqlalchemy import select

from assay.core.access import Scope
from assay.core.events import WORKSPACE, FeedbackGiven
from assay.core.events.upgrade import read_event
from assay.store.database import Store
from assay.store.runs import records, visibility
from assay.store.schema import SAME_RECORD, payloads
from assay.store.schema import records as recorded


@dataclass(frozen=True, slots=True)
class FeedbackEntry:
    """Feedback, and when it was given. It is `withheld` if its run spoke of a document that the reader may not read."""

    at: str
    given: FeedbackGiven
    withheld: bool = False


def give(store: Store, feedback: FeedbackGiven) -> None:
    with store.write() as connection:
        records.note(connection, store, feedback)


def listing(store: Store, scope: Scope, by: str = "", limit: int = 200) -> list[FeedbackEntry]:
    """Feedback of one person, or of all, newest first."""
    rows = (
        select(recorded.c.at, payloads.c.body)
        .join(payloads, SAME_RECORD)
        .where(recorded.c.run == WORKSPACE, recorded.c.kind == FeedbackGiven.__name__)
        .order_by(recorded.c.seq.desc())
    )
    with store.read() as connection:
        events = [
            (row.at, read_event(FeedbackGiven.__name__, json.loads(row.body))) for row in connection.execute(rows)
        ]
        given = [(at, each) for at, each in events if isinstance(each, FeedbackGiven) and (not by or each.by == by)][
            :limit
        ]
        hidden = visibility.hidden_runs(connection, {each.run for _, each in given}, scope)
    return [
        FeedbackEntry(at, replace(each, words=""), True) if each.run in hidden else FeedbackEntry(at, each)
        for at, each in given
    ]
