"""A run as server-sent events: each recorded event once, with its number as id, then the final state. Pull-based: a
slow client delays nobody, and nothing is buffered for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse

from assay.serve.live import LiveRuns
from assay.serve.run_schemas import RunState
from assay.serve.run_views import run_summary
from assay.store.runs import history
from assay.workspace.facade import Workspace

RETRY_MILLISECONDS = 1000  # milliseconds until a disconnected client reconnects
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # disables caching and proxy buffering
HEARTBEAT = ": still here\n\n"
EVENT = {
    "event": {"type": "string"},
    "data": {"type": "string"},
    "id": {"type": "string"},
    "retry": {"type": "integer"},
}
SSE = {"text/event-stream": {"itemSchema": {"type": "object", "required": ["data"], "properties": EVENT}}}


def sse(event: str, data: str, number: int | None = None) -> str:
    """One event in wire format. The data is JSON on one line, so that nothing in it can end the event, even for
    clients that accept more line terminators than the standard."""
    for sign in ("\x85", "\u2028", "\u2029"):
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return (f"id: {number}\n" if number is not None else "") + f"event: {event}\ndata: {data}\n\n"


def stream_response(live: LiveRuns, workspace: Workspace, run_id: str, after: int = -1) -> StreamingResponse:
    """The run's stream as a response; the caller has checked that the run exists."""
    return StreamingResponse(events(live, workspace, run_id, after), media_type="text/event-stream", headers=HEADERS)


async def events(live: LiveRuns, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[str]:
    """All events after this one with heartbeats in between, and at the end the final state: `end` with the run's
    state, or `parked` if the server closes first."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    while True:
        async for frame in live.follow(workspace, run_id, after):
            if frame is None:
                yield HEARTBEAT
                continue
            yield sse(frame.kind, frame.body, frame.seq)
            after = frame.seq
        state = await asyncio.to_thread(current_state, live, workspace, run_id)
        if state is RunState.parked and live.closing:
            yield sse("parked", "{}")
            return
        if state is not RunState.running:
            yield sse("end", json.dumps({"state": state}))
            return
        # The run was resumed between the two checks.


def current_state(live: LiveRuns, workspace: Workspace, run_id: str) -> RunState:
    # Checked before reading: a run that has ended by then is recorded.
    under_way = live.under_way_anywhere(workspace.store, run_id)
    return run_summary(
        history.run_progress(workspace.store, run_id, workspace.principal.id, workspace.scope()), under_way
    ).state


async def wait_until_ended(live: LiveRuns, workspace: Workspace, run_id: str) -> None:
    """Wait until a run is delivered, has failed or waits for someone."""
    after = 2**31
    while True:
        async for _ in live.follow(workspace, run_id, after):
            pass
        if live.closing or await asyncio.to_thread(current_state, live, workspace, run_id) is not RunState.running:
            return
