"""HTTP routes for syntheses: the start, and the account in three formats; and for forecasts, which start no run and call no
model."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from assay.core.codec import to_json
from assay.core.errors import Missing
from assay.core.events import Stakes
from assay.core.synthesis import Approach, Pipeline
from assay.serve import schemas
from assay.serve.routes.runs import RunStartedResponse, run_started
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.synthesis import render
from assay.workspace.facade import Workspace
from assay.workspace.forecast import forecast_lines
from assay.workspace.synthesis_forecast import in_words, is_large
from assay.workspace.types import SynthesisRequest


class CreateSynthesisRequest(schemas.RequestModel):
    """Which documents, by id, or every one of these bases; and what is to be made of them."""

    documents: Annotated[tuple[schemas.Id, ...], Field(max_length=2000)] = ()
    bases: schemas.Names = ()
    pipeline: Pipeline = Pipeline.synthesis
    focus: Annotated[str, StringConstraints(max_length=2000)] = ""
    questions: Annotated[int, Field(ge=1, le=20), BeforeValidator(schemas.require_number)] = 3
    audiences: Annotated[tuple[schemas.Name, ...], Field(max_length=8)] = ()
    approach: Approach = Approach.search
    model: schemas.StrictFlag = True
    stakes: Stakes = Stakes.normal  # high: a person reviews the account before delivery


Rounded = Annotated[float, AfterValidator(lambda value: round(value, 6))]


class RangeView(schemas.ResponseModel):
    """Four of five should come to something between `low` and `high`."""

    low: Rounded
    likely: Rounded
    high: Rounded


class RangesView(schemas.ResponseModel):
    calls: RangeView
    tokens: RangeView
    money: RangeView | None  # USD; None if the price is unknown
    seconds: RangeView


class SynthesisForecastResponse(schemas.ResponseModel):
    """What a synthesis will take, as far as that can be told before it begins."""

    documents: int
    questions: int
    calls: int
    tokens: int
    money: float | None  # USD; None if the price is unknown
    seconds: float
    large: bool
    lines: tuple[str, ...]  # the same as text
    ranges: RangesView | None  # low, likely, high
    from_runs: int  # earlier runs that the ranges are based on


synthesis_router = APIRouter(prefix="/api/synthesis", tags=["synthesis"], responses=schemas.error_responses(502))


@synthesis_router.post("/forecast", name="forecast")
async def forecast_synthesis(
    wanted: CreateSynthesisRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> SynthesisForecastResponse:
    """What a synthesis will take, as far as that can be told before it begins. Nothing is begun."""
    ids = await asyncio.to_thread(selected_documents, workspace, wanted)
    expected = await server.background.run(workspace.syntheses.plan(ids, _synthesis_options(wanted)))
    return SynthesisForecastResponse.made_from(
        expected,
        tokens=expected.tokens_in + expected.tokens_out,
        large=is_large(expected),
        lines=(in_words(expected), *expected.notes),
        ranges=expected.foreseen,
        from_runs=expected.foreseen.from_runs if expected.foreseen else 0,
    )


@synthesis_router.post("", status_code=201)
async def begin(
    wanted: CreateSynthesisRequest, workspace: CurrentWorkspace, server: CurrentServer
) -> RunStartedResponse:
    """Begin a synthesis. It goes on whoever leaves, and after a restart; it is followed, stopped and resumed like any run."""
    ids = await asyncio.to_thread(selected_documents, workspace, wanted)
    with server.reserve_run(workspace.principal):
        run = await server.live.begin(workspace, workspace.syntheses.begin(ids, _synthesis_options(wanted)))
    return run_started(run.id)


@synthesis_router.get("/{run}", response_model=dict[str, Any])
def account_of(run: schemas.PathId, workspace: CurrentWorkspace) -> Any:
    """The account of a synthesis that is done, in the words of the documents that you may still read."""
    return to_json(workspace.syntheses.account(run))


@synthesis_router.get("/{run}/page", response_class=Response, responses={200: {"content": {"text/html": {}}}})
def page_of(run: schemas.PathId, workspace: CurrentWorkspace) -> HTMLResponse:
    """The account as a page. It may be framed by this server's own page, reaches nothing, and runs nothing but its script."""
    policy = f"{render.policy()}; sandbox allow-scripts; frame-ancestors 'self'"
    return HTMLResponse(
        render.html(workspace.syntheses.account(run), workspace.documents.get),
        headers={"Content-Security-Policy": policy},
    )


@synthesis_router.get("/{run}/markdown", response_class=Response, responses={200: {"content": {"text/markdown": {}}}})
def markdown_of(run: schemas.PathId, workspace: CurrentWorkspace) -> PlainTextResponse:
    """The account as Markdown."""
    name = {"Content-Disposition": f'attachment; filename="synthesis-{"".join(filter(str.isalnum, run))}.md"'}
    return PlainTextResponse(
        render.markdown(workspace.syntheses.account(run), workspace.documents.get),
        media_type="text/markdown",
        headers=name,
    )


def _synthesis_options(wanted: CreateSynthesisRequest) -> SynthesisRequest:
    return SynthesisRequest(**wanted.model_dump(exclude={"documents", "bases"}))


def selected_documents(workspace: Workspace, wanted: CreateSynthesisRequest) -> list[str]:
    """The named documents and all documents of the named bases; if nothing is named, all readable documents."""
    within = wanted.bases if wanted.bases or wanted.documents else ()
    named = list(dict.fromkeys(wanted.documents))
    if named:
        known = workspace.documents.titles(named, workspace.scope())
        if strange := [each for each in named if each not in known]:
            raise Missing(f"There is no document with the id {strange[0]!r} that can be read.")
    if named and not within:
        return named
    listed = [entry.id for entry in workspace.documents.in_state(workspace.scope(within))]
    return list(dict.fromkeys([*named, *listed]))


forecast_router = APIRouter(prefix="/api", tags=["runs"], responses=schemas.error_responses(413))


class CeilingView(schemas.ResponseModel):
    """The ceiling that would cut it short: `probably`, or else only if it takes more than is likely."""

    setting: str
    what: str  # calls, tokens, money, seconds
    of: str  # run, day, all
    most: float
    probably: bool


class ForecastErrorView(schemas.ResponseModel):
    """Of earlier forecasts: the share inside their range, and the middle of what it took by what was likely."""

    inside: float
    ratio: float


class ForecastResponse(RangesView):
    """What a question will take, as far as that can be told."""

    kind: str
    from_runs: int  # the user's earlier questions that the ranges are based on
    documents: int
    passages: int
    ceiling: CeilingView | None
    error: dict[str, ForecastErrorView] | None
    lines: tuple[str, ...]  # the same as text


@forecast_router.post("/forecast", name="forecast")
async def forecast_question(request: schemas.AskRequest, workspace: CurrentWorkspace) -> ForecastResponse:
    """What a question will take: low, likely, high, from earlier ones of yours. Nothing is begun, and nobody is asked."""
    found = await asyncio.to_thread(workspace.questions.forecast, schemas.ask_options(request))
    expected = found.foreseen
    met = found.reached[0] if found.reached else None
    return ForecastResponse.made_from(
        expected,
        found,
        documents=expected.counts["documents"],
        passages=expected.counts["passages"],
        ceiling=CeilingView.made_from(met, of=met.whose) if met else None,
        error=found.errors or None,
        lines=tuple(forecast_lines(found)),
    )
