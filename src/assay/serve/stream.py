"""A run as a stream: each recorded event once, with the titles and texts that the reader may see now and nothing else; as
server-sent events with the final state at the end. Pull-based: a slow client delays nobody, and nothing is buffered for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from typing import Any

from fastapi.responses import StreamingResponse

from assay.answer.compose import Statement
from assay.core.access import Principal
from assay.core.codec import dumps, to_json
from assay.core.errors import Missing
from assay.core.events import Asked, AwaitingReview, Event, Gathered, Withheld
from assay.core.events.describe import Description, describe
from assay.governance.reviewing import hide_unchecked, redact_event, shows_statements
from assay.serve.run_registry import EventFrame, RunRegistry
from assay.serve.run_views import RunState, RunSummary, run_summary
from assay.workspace.facade import Workspace
from assay.workspace.stored import documents_in

READ_BATCH = 16  # events per read from the store for one client: this many are held for a client that does not read
SILENCE = 15.0  # seconds of silence before a heartbeat
POLL = 0.5  # seconds between two reads of a run that another process works on, if nobody tells of its changes
LOOK = 5.0  # the same if somebody does: only a change that was missed waits as long
RETRY_MILLISECONDS = 1000  # milliseconds until a disconnected client reconnects
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # disables caching and proxy buffering
WRITING = frozenset({"Claimed", "Drafted", "Checked", "Revised", "Critiqued", "Narrowed"})  # may change the statements
RETRYING = "retrying"  # a model that does not answer is asked again; an empty line: it has answered
HEARTBEAT = ": still here\n\n"
EVENT = {key: {"type": "string"} for key in ("event", "data", "id")} | {"retry": {"type": "integer"}}
SSE = {"text/event-stream": {"itemSchema": {"type": "object", "required": ["data"], "properties": EVENT}}}


def sse(event: str, data: str, number: int | None = None) -> str:
    """One event in wire format. The data is JSON on one line, so that nothing in it can end the event, even for
    clients that accept more line terminators than the standard."""
    for sign in ("\x85", "\u2028", "\u2029"):
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return (f"id: {number}\n" if number is not None else "") + f"event: {event}\ndata: {data}\n\n"


def stored_frames(workspace: Workspace, run_id: str, after: int, most: int = 200) -> list[EventFrame]:
    """Frames a client has not seen, from the store, with the text this user may read now."""
    scope = workspace.scope()
    texts = workspace.documents.texts_for(scope)
    found = workspace.questions.events_since(run_id, workspace.principal.id, texts, scope, after, most)
    if not found and after < 0:
        raise Missing(f"There is no run called {run_id!r}. `assay runs` lists them.")
    titles: dict[str, str] = {}
    watched = workspace.reviews.may_be_needed(run_id)
    progress = workspace.questions.progress(run_id, workspace.principal.id, scope)
    hides = progress.last != "Answered" and (progress.asked is None or shows_statements(progress.asked))
    return [
        build_frame(workspace, record.seq, record.at, event, titles, watched=watched, hides=hides)
        for record, event in found
    ]


def build_frame(
    workspace: Workspace,
    seq: int,
    at: str,
    event: Event,
    titles: dict[str, str],
    *,
    watched: bool = False,
    hides: bool = False,
) -> EventFrame:
    """The frame of an event, with the titles of the documents it mentions. If the answer needs a review, or may need
    one (`watched`), the asker is not sent its draft; before delivery (`hides`), no words that are not checked."""
    if watched:
        event = redact_event(event)
    elif hides:
        event = hide_unchecked(event)
    if isinstance(event, Withheld):
        return _frame(seq, event.kind, at, describe(event), event.progress or event.why)  # only its existence
    if isinstance(event, Asked):  # only knowledge bases that still exist are listed
        names = {base.name for base in workspace.scope().bases}
        event = replace(event, about={name: value for name, value in event.about.items() if name in names})
    plain = _unscored(to_json(event))
    if watched and isinstance(event, AwaitingReview):
        plain.pop("answer")
    spoken_of = documents_in(plain)
    if unknown := spoken_of - titles.keys():
        titles |= dict.fromkeys(unknown, "") | workspace.documents.titles(unknown, workspace.scope())
    evidence = event.evidence if isinstance(event, Gathered) else ()
    pages = workspace.documents.quoted_pages(evidence, workspace.scope()) if evidence else {}
    words = describe(event, pages)
    named = {doc: titles[doc] for doc in sorted(spoken_of) if titles[doc]}
    return _frame(seq, type(event).__name__, at, words, words.line, event=plain, documents=named, pages=pages)


def _frame(seq: int, kind: str, at: str, words: Description, line: str, **about: Any) -> EventFrame:
    body = {"seq": seq, "kind": kind, "title": words.title, "family": words.family, "at": at, "line": line}
    return EventFrame(seq, kind, dumps(body | {"event": {}, "documents": {}, "pages": {}} | about))


def _statement(stated: Statement) -> dict[str, Any]:
    """A statement as it is sent; one without text is still being checked."""
    claim = stated.claim
    words = {"text": claim.words, "quotation": claim.quote is not None, "cites": list(claim.cites)} if claim else {}
    return {"place": stated.place, "heading": stated.heading, "opinion": stated.opinion, **words}


def _unscored(plain: dict[str, Any]) -> dict[str, Any]:
    """The data without index scores, which depend on documents this user may not read: only ranks and the evidence
    score, which has eleven steps, are sent."""
    for found in plain.get("found", ()):
        found.pop("score", None)
    for piece in plain.get("evidence", ()):
        piece["score"] = round(piece["score"])
    return plain


class RunFollower:
    """Follows runs for authorised clients. The record is the stream: a client that lags behind reads from the store at its own
    pace. Only the newest events of a run are buffered in memory, once for all clients."""

    def __init__(
        self, runs: RunRegistry, present: Callable[[Principal], Principal | None], hears: Callable[[], bool]
    ) -> None:
        self._runs = runs
        self._present = present  # the current state of a user, whose groups may change during a run; None if removed
        self._hears = hears  # whether this process is told of others' changes

    async def follow(self, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[EventFrame | None]:
        """The events of a run after this one: each once, in order, as they occur, until it ends or the server
        closes. None is a heartbeat, `RETRYING` no event of the record. The final state is in the store."""
        silent, trouble = 0.0, ""
        with self._runs.watchers.watching(run_id) as woken:
            while True:
                woken.clear()
                closed = self._runs.closed
                here, ongoing, frames = await asyncio.to_thread(self._after, workspace, run_id, after)
                for frame in frames:
                    yield frame
                    after = frame.seq
                if (now := self._runs.trouble(run_id, workspace.principal.id)) != trouble:
                    trouble = now
                    yield EventFrame(after, RETRYING, dumps({"line": trouble}))
                if len(frames) >= READ_BATCH:
                    continue  # there may be more
                if closed or not ongoing:
                    return
                pause = SILENCE if here else LOOK if self._hears() else POLL
                try:
                    await asyncio.wait_for(woken.wait(), pause)
                    silent = 0.0
                except TimeoutError:
                    silent += pause
                    if silent >= SILENCE:
                        silent = 0.0
                        yield None

    def _after(self, workspace: Workspace, run_id: str, after: int) -> tuple[bool, bool, list[EventFrame]]:
        """Whether a run is active here and whether anywhere, both as of before the reading, so that fewer frames than a batch
        from a run that is not are its last; and its frames after this one."""
        here = self._runs.under_way(run_id)
        ongoing = here or self._runs.under_way_anywhere(workspace, run_id)
        frames = self._at_hand(run_id, workspace.principal.id, after)
        if frames is None or self._hides(workspace, run_id, [frame.seq for frame in frames]):
            self._as_now(workspace)
            frames = stored_frames(workspace, run_id, after, READ_BATCH)
        return here, ongoing, frames

    def _as_now(self, workspace: Workspace) -> None:
        """Refresh the user's access, since a stream may last for hours. A removed user reads nothing."""
        workspace.principal = self._present(workspace.principal) or Principal("")

    def _hides(self, workspace: Workspace, run_id: str, places: Collection[int]) -> bool:
        """Whether one of these events speaks of something that this user may no longer read, also if the run was narrowed
        since: then what is in memory would show too much."""
        if not places:
            return False
        self._as_now(workspace)
        hidden = workspace.questions.hidden_events(run_id, workspace.scope())
        return any(map(hidden.covers, places))

    def _at_hand(self, run_id: str, who: str, after: int) -> list[EventFrame] | None:
        """The buffered frames after this one, or None if they are incomplete and the store must be read."""
        with self._runs.lock:
            own = self._runs.active.get(run_id)
            if own is None or own.who != who:
                return None
            frames = list(own.frames)
        if frames and frames[0].seq <= after + 1:
            return [frame for frame in frames if frame.seq > after]
        return None

    def _statements(self, workspace: Workspace, run_id: str) -> str:
        """What of the answer may be shown so far, in order."""
        with self._runs.lock:
            own = self._runs.active.get(run_id)
        run = own.run if own is not None and own.who == workspace.principal.id else None
        told = [place for place, event in enumerate(run.events if run else ()) if not isinstance(event, Withheld)]
        if run is None or self._hides(workspace, run_id, told[1:]):  # the first is the question
            run = workspace.questions.run(run_id)
        return dumps({"statements": [_statement(each) for each in workspace.questions.statements(run)]})

    def response(self, workspace: Workspace, run_id: str, after: int = -1) -> StreamingResponse:
        """The run's stream as a response; the caller has checked that the run exists."""
        return StreamingResponse(self.events(workspace, run_id, after), media_type="text/event-stream", headers=HEADERS)

    async def events(self, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[str]:
        """All events after this one with heartbeats in between, and at the end the final state: `end` with the run's
        state, or `parked` if the server closes first."""
        yield f"retry: {RETRY_MILLISECONDS}\n\n"
        told = dumps({"statements": []})
        while True:
            async for frame in self.follow(workspace, run_id, after):
                if frame is None:
                    yield HEARTBEAT
                    continue
                if frame.kind == RETRYING:
                    yield sse(RETRYING, frame.body)
                    continue
                yield sse(frame.kind, frame.body, frame.seq)
                after = frame.seq
                if frame.kind in WRITING:
                    now = await asyncio.to_thread(self._statements, workspace, run_id)
                    if now != told:
                        yield sse("statements", now)
                    told = now
            state = (await asyncio.to_thread(self.summary, workspace, run_id)).state
            if state is RunState.parked and self._runs.closing:
                yield sse("parked", "{}")
                return
            if state is not RunState.running:
                yield sse("end", json.dumps({"state": state}))
                return
            # The run was resumed between the two checks.

    async def wait_until_ended(self, workspace: Workspace, run_id: str) -> None:
        """Wait until a run is delivered, has failed or waits for someone."""
        while True:
            async for _ in self.follow(workspace, run_id, 2**31):
                pass
            summary = await asyncio.to_thread(self.summary, workspace, run_id)
            if self._runs.closing or summary.state is not RunState.running:
                return

    def summary(self, workspace: Workspace, run_id: str) -> RunSummary:
        # Checked before reading: a run that has ended by then is recorded.
        under_way = self._runs.under_way_anywhere(workspace, run_id)
        found = workspace.questions.progress(run_id, workspace.principal.id, workspace.scope())
        return run_summary(found, under_way)
