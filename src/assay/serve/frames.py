"""Events as they are sent to clients: with the titles and texts that the reader may see now, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from assay.core.codec import dumps, to_json
from assay.core.errors import Missing
from assay.core.events import Asked, AwaitingReview, Event, Gathered, Withheld
from assay.core.events.describe import describe
from assay.governance.reviewing import redact_event
from assay.store import documents
from assay.store.runs import records
from assay.store.runs.records import documents_in
from assay.workspace.facade import Workspace


@dataclass(frozen=True, slots=True)
class EventFrame:
    """One event as sent: `body` is an `EventView` as JSON."""

    seq: int
    kind: str
    body: str


def stored_frames(workspace: Workspace, run_id: str, after: int, most: int = 200) -> list[EventFrame]:
    """Frames a client has not seen, from the store, with the text this user may read now."""
    scope = workspace.scope()
    texts = documents.texts_for(workspace.store, scope)
    found = records.events_since(workspace.store, run_id, workspace.principal.id, texts, scope, after, most)
    if not found and after < 0:
        raise Missing(f"There is no run called {run_id!r}. `assay runs` lists them.")
    titles: dict[str, str] = {}
    watched = workspace.reviews.may_be_needed(run_id)
    return [build_frame(workspace, record.seq, record.at, event, titles, watched=watched) for record, event in found]


def withheld_frame(seq: int, at: str, event: Withheld) -> EventFrame:
    """The frame of an event hidden from this user: only its existence."""
    words = describe(event)
    body = {
        "seq": seq,
        "kind": event.kind,
        "title": words.title,
        "family": words.family,
        "at": at,
        "line": event.progress or event.why,
        "event": {},
        "documents": {},
        "pages": {},
    }
    return EventFrame(seq, event.kind, dumps(body))


def build_frame(
    workspace: Workspace, seq: int, at: str, event: Event, titles: dict[str, str], *, watched: bool = False
) -> EventFrame:
    """The frame of an event, with the titles of the documents it mentions. If the answer needs a review, or may need
    one (`watched`), the asker is not sent its draft."""
    if watched:
        event = redact_event(event)
    if isinstance(event, Withheld):
        return withheld_frame(seq, at, event)
    if isinstance(event, Asked):  # only knowledge bases that still exist are listed
        names = {base.name for base in workspace.scope().bases}
        event = replace(event, about={name: value for name, value in event.about.items() if name in names})
    plain = _unscored(to_json(event))
    if watched and isinstance(event, AwaitingReview):
        plain.pop("answer")
    spoken_of = documents_in(plain)
    if unknown := spoken_of - titles.keys():
        titles |= dict.fromkeys(unknown, "") | documents.titles(workspace.store, unknown, workspace.scope())
    evidence = event.evidence if isinstance(event, Gathered) else ()
    pages = documents.quoted_pages(workspace.store, evidence, workspace.scope()) if evidence else {}
    kind, words = type(event).__name__, describe(event, pages)
    body = {
        "seq": seq,
        "kind": kind,
        "title": words.title,
        "family": words.family,
        "at": at,
        "line": words.line,
        "event": plain,
        "documents": {doc: titles[doc] for doc in sorted(spoken_of) if titles[doc]},
        "pages": pages,
    }
    return EventFrame(seq, kind, dumps(body))


def _unscored(plain: dict[str, Any]) -> dict[str, Any]:
    """The data without index scores, which depend on documents this user may not read: only ranks and the evidence
    score, which has eleven steps, are sent."""
    for found in plain.get("found", ()):
        found.pop("score", None)
    for piece in plain.get("evidence", ()):
        piece["score"] = round(piece["score"])
    return plain
