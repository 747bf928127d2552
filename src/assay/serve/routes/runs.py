"""Questions and what was done about them: begin, follow, answer, carry on, stop, look back."""

from __future__ import annotations

import base64
import hashlib
import re
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from assay.answer import render
from assay.core.codec import to_json
from assay.core.errors import UserError
from assay.core.run import Run
from assay.serve import stream
from assay.serve.limits import room_for_a_run
from assay.serve.live import behind
from assay.serve.schemas.run_schemas import (
    Ask,
    AskNow,
    Begun,
    Choice,
    EventShape,
    Problem,
    Replayed,
    RunLine,
    Runs,
    RunWhole,
    Some,
    Told,
    Trace,
)
from assay.serve.state import Here, Mine, Person, Server, Who
from assay.serve.views import run_views
from assay.serve.views.request_options import how_of
from assay.store.access import withheld
from assay.store.runs import budgets, history, records
from assay.store.runs.records import Record
from assay.workspace.facade import Workspace

router = APIRouter(
    prefix="/api",
    tags=["runs"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429, 502, 503)},
)

RunId = Annotated[str, Path(max_length=100)]


class Events(Told):
    events: tuple[EventShape, ...]


class Kind(StrEnum):
    question = "question"
    synthesis = "synthesis"


class Form(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


FORMS = {
    Form.text: "text/plain",
    Form.markdown: "text/markdown",
    Form.html: "text/html",
    Form.json: "application/json",
    Form.bibtex: "application/x-bibtex",
}


OTHERS = ("n", "link")  # of a record: its place among everybody's, which says how much others do


class Streamed(StrEnum):
    sse = "sse"
    json = "json"


# --- asking ---------------------------------------------------------------------------------------------------------


@router.post("/runs", status_code=201, response_model=Begun)
async def begin_run(wish: Ask, mine: Mine, who: Who, server: Here) -> Begun:
    """Ask. The run goes on whoever leaves, and after a restart; it is followed where `events` says."""
    run = await _begun(server, who, mine, wish)
    return begun(run.id, run.asked.thread)


@router.post(
    "/ask", response_model=RunWhole, responses={200: {"content": stream.SSE, "description": "The run, or its events."}}
)
async def ask(wish: AskNow, mine: Mine, who: Who, server: Here) -> Any:
    """Ask and wait: for the run, once it has ended or waits for a choice, or (`stream`) for its events as they come."""
    run = await _begun(server, who, mine, wish)
    if wish.stream:
        return stream.streamed(server.live, mine, run.id)
    await stream.ended(server.live, mine, run.id)
    return await server.engine.do(_told(server, mine, run.id))


async def _begun(server: Server, who: Person, mine: Workspace, wish: Ask) -> Run:
    how = how_of(wish)
    talks = bool(wish.thread or wish.talk)
    steps = mine.chat(wish.question, wish.thread, how) if talks else mine.ask(wish.question, how)
    with room_for_a_run(server, who):
        return await server.live.begin(mine, steps)


def begun(run: str, thread: str) -> Begun:
    return Begun(run=run, thread=thread, events=f"/api/runs/{run}/events")


# --- looking --------------------------------------------------------------------------------------------------------


@router.get("/runs", response_model=Runs)
def list_runs(mine: Mine, server: Here, after: str = "", limit: Some = 50, kind: Kind | None = None) -> Runs:
    """A page of what was asked, newest first; only questions, or only syntheses, where that is said."""
    only = None if kind is None else kind is Kind.synthesis
    found, more = history.page(mine.store, mine.principal.id, mine.scope(), after, limit, only)
    return Runs(runs=tuple(run_views.line(each, server.live.under_way(each.id)) for each in found), next=more)


@router.get("/runs/{run}", response_model=RunWhole)
def one_run(run: RunId, mine: Mine, server: Here) -> RunWhole:
    """A run as it stands."""
    return _whole(server, mine, run)


def _whole(server: Server, mine: Workspace, run_id: str) -> RunWhole:
    under_way = server.live.under_way(run_id)  # asked before reading: what has ended by then is on record
    return run_views.whole(mine, mine.run(run_id), under_way)


@router.get(
    "/runs/{run}/events",
    response_model=Events,
    responses={200: {"content": stream.SSE, "description": "Server-sent events, or all there are so far as JSON."}},
)
def run_events(
    run: RunId,
    mine: Mine,
    server: Here,
    format: Streamed = Streamed.sse,
    after: Annotated[int, Query(ge=-1, le=2**31)] = -1,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Any:
    """Everything that happens in a run, each event once: from the first on, or from after the one that `Last-Event-ID` or
    `after` names. The stream ends with `event: end` and the run's state, or with `event: parked` when the server closes."""
    # Says that there is none, while that can still be said.
    history.standing(mine.store, run, mine.principal.id, mine.scope())
    seen = after if last_event_id is None or not re.fullmatch(r"\d{1,9}", last_event_id) else int(last_event_id)
    if format is Streamed.json:
        return Events(events=_events(mine, run, seen))
    return stream.streamed(server.live, mine, run, seen)


def _events(mine: Workspace, run: str, after: int = -1) -> tuple[EventShape, ...]:
    found: list[EventShape] = []
    while frames := behind(mine, run, after):
        found += [EventShape.model_validate_json(frame.body) for frame in frames]
        after = frames[-1].seq
    return tuple(found)


def chained(record: Record) -> dict[str, Any]:
    """A record in the chain of its run."""
    return {name: told for name, told in to_json(record).items() if name not in OTHERS}


@router.get("/runs/{run}/trace", response_model=Trace)
def run_trace(run: RunId, mine: Mine, response: Response, download: bool = False) -> Trace:
    """The whole record of a run, and whether it is whole; `download` has a browser keep it as a file."""
    chain = records.chain(mine.store, run, mine.principal.id)
    told = _events(mine, run)
    if download:
        response.headers["Content-Disposition"] = f'attachment; filename="assay-{re.sub("[^a-z0-9]", "", run)}.json"'
    return Trace(
        run=run,
        events=told,
        chain=tuple(map(chained, chain)),
        faults=tuple(records.faults(mine.store, run)),
        usage=run_views.usage(budgets.spent_by_run(mine.store, run)),
        seconds=records.active_seconds(mine.store, run),
    )


@router.get(
    "/runs/{run}/answer",
    response_class=Response,
    responses={
        200: {
            "description": "The answer in the format asked for.",
            "content": {kind: {} for kind in FORMS.values()},
        }
    },
)
def run_answer(run: RunId, mine: Mine, format: Form = Form.text) -> Response:
    """A delivered answer as a text, a page, data, or a list of what it cites."""
    found = mine.run(run)
    if found.withheld:
        raise UserError(withheld.ANSWER)
    if found.answer is None:
        raise UserError(f"Run {run} has no answer yet.")
    cited = render.citations(found.answer, found.evidence, mine.document)
    match format:
        case Form.markdown:
            return PlainTextResponse(render.as_markdown(found.answer, cited), media_type=FORMS[format])
        case Form.html:
            return HTMLResponse(render.as_html(found.answer, cited), headers={"Content-Security-Policy": CSP})
        case Form.bibtex:
            return PlainTextResponse(render.as_bibtex(cited), media_type=FORMS[format])
        case Form.json:
            return JSONResponse({"run": run, **render.as_json(found.answer, cited)})
        case _:
            return PlainTextResponse(render.as_text(found.answer, cited))


def _style() -> str:
    """The digest of the page's own style, which is all that it may use."""
    found = re.search(r"<style>(.*?)</style>", render.PAGE.format(title="", body=""), re.DOTALL)
    assert found is not None
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


CSP = (
    f"default-src 'none'; style-src '{_style()}'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox"
)


# --- carrying on and stopping ---------------------------------------------------------------------------------------


@router.post("/runs/{run}/choice", status_code=202, response_model=Begun)
async def choose(run: RunId, given: Choice, mine: Mine, who: Who, server: Here) -> Begun:
    """Answer what a run asks at a checkpoint; it goes on from there."""
    with room_for_a_run(server, who):
        await server.live.resume(mine, run, given.choice, given.words)
    return begun(run, await _thread(server, mine, run))


@router.post("/runs/{run}/resume", status_code=202, response_model=Begun)
async def resume_run(run: RunId, mine: Mine, who: Who, server: Here) -> Begun:
    """Carry on a run that has failed, was stopped or was cut off."""
    with room_for_a_run(server, who):
        await server.live.resume(mine, run)
    return begun(run, await _thread(server, mine, run))


@router.post("/runs/{run}/cancel", response_model=RunLine)
async def cancel_run(run: RunId, mine: Mine, server: Here) -> RunLine:
    """Stop a run now. What it did is kept, and it can be carried on."""
    await server.live.cancel(mine, run)
    return await server.engine.do(_line(server, mine, run))


@router.post("/runs/{run}/replay", response_model=Replayed)
async def replay_run(run: RunId, mine: Mine, who: Who, server: Here) -> Replayed:
    """Go through a delivered run again from its record alone, and compare every step. No model is asked."""
    with room_for_a_run(server, who):
        return await server.engine.do(_replayed(mine, run))


async def _replayed(mine: Workspace, run_id: str) -> Replayed:
    from assay.workspace.rerun import replayed

    again = await replayed(mine, mine.run(run_id))
    return Replayed(run=run_id, same=again.same and not again.differences, differences=again.differences)


async def _told(server: Server, mine: Workspace, run: str) -> RunWhole:
    return _whole(server, mine, run)


async def _line(server: Server, mine: Workspace, run: str) -> RunLine:
    return run_views.line(
        history.standing(mine.store, run, mine.principal.id, mine.scope()), server.live.under_way(run)
    )


async def _thread(server: Server, mine: Workspace, run: str) -> str:
    return (await server.engine.do(_line(server, mine, run))).thread
