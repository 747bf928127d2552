"""A run as server-sent events: what was recorded, each event once with its number as id, then how it ended. The reader
pulls: whoever reads slowly holds up nobody, and nothing is kept for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from fastapi.responses import StreamingResponse

from assay.serve.live import LiveRuns
from assay.serve.schemas.run_schemas import RunState
from assay.serve.views.run_views import run_summary
from assay.store.runs import history
from assay.workspace.facade import Workspace

RETRY_MILLISECONDS = 1000  # milliseconds after which a client that lost the stream asks for the rest
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # no proxy keeps anything back
HEARTBEAT = ": still here\n\n"
EVENT = {
    "event": {"type": "string"},
    "data": {"type": "string"},
    "id": {"type": "string"},
    "retry": {"type": "integer"},
}
SSE = {"text/event-stream": {"itemSchema": {"type": "object", "required": ["data"], "properties": EVENT}}}


def sse(event: str, data: str, number: int | None = None) -> str:
    """One event as it goes over the wire. The data is JSON on one line, so that nothing in it can end the event: also not
    for clients that take more for the end of a line than the standard does."""
    for sign in ("\x85", "\u2028", "\u2029"):
        data = data.replace(sign, f"\\u{ord(sign):04x}")
    return (f"id: {number}\n" if number is not None else "") + f"event: {event}\ndata: {data}\n\n"


def stream_response(live: LiveRuns, workspace: Workspace, run_id: str, after: int = -1) -> StreamingResponse:
    """The run's stream as a response; that there is such a run was looked at before."""
    return StreamingResponse(events(live, workspace, run_id, after), media_type="text/event-stream", headers=HEADERS)


async def events(live: LiveRuns, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[str]:
    """Every event after this one, signs of life in between, and at the end what became of the run: `end` with its state, or
    `parked` where the server closes before that."""
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
        # Somebody has carried it on between the two looks.


def current_state(live: LiveRuns, workspace: Workspace, run_id: str) -> RunState:
    under_way = live.under_way(run_id)  # asked before reading: what has ended by then is on record
    return run_summary(
        history.run_progress(workspace.store, run_id, workspace.principal.id, workspace.scope()), under_way
    ).state


async def wait_until_ended(live: LiveRuns, workspace: Workspace, run_id: str) -> None:
    """Waits until a run is delivered, has failed or waits for somebody."""
    after = 2**31
    while True:
        async for _ in live.follow(workspace, run_id, after):
            pass
        if live.closing or await asyncio.to_thread(current_state, live, workspace, run_id) is not RunState.running:
            return
