"""HTTP routes for the forecast of a question. Starts no run and calls no model."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from assay.serve.document_schemas import RangesView
from assay.serve.document_schemas import RangeView
from assay.serve.run_schemas import AskRequest
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentWorkspace
from assay.serve.run_schemas import ask_options
from assay.store.runs.forecasts import EstimateRange, WorkEstimate
from assay.workspace.forecast_text import forecast_lines

router = APIRouter(
    prefix="/api",
    tags=["runs"],
    responses=error_responses(413),
)


class CeilingView(ResponseModel):
    """The ceiling that would cut it short: `probably`, or else only if it takes more than is likely."""

    setting: str
    what: str  # calls, tokens, money, seconds
    of: str  # run, day, all
    most: float
    probably: bool


class ForecastErrorView(ResponseModel):
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


@router.post("/forecast", response_model=ForecastResponse)
async def forecast(request: AskRequest, workspace: CurrentWorkspace) -> ForecastResponse:
    """What a question will take: low, likely, high, from earlier ones of yours. Nothing is begun, and nobody is asked."""
    found = await asyncio.to_thread(workspace.forecast_question, ask_options(request))
    expected = found.foreseen
    met = found.reached[0] if found.reached else None
    return ForecastResponse(
        kind=found.kind,
        **dict(ranges(expected)),
        from_runs=expected.from_runs,
        documents=expected.counts["documents"],
        passages=expected.counts["passages"],
        ceiling=CeilingView(
            setting=met.ceiling.setting,
            what=met.ceiling.what,
            of=met.ceiling.whose,
            most=met.ceiling.most,
            probably=met.probably,
        )
        if met
        else None,
        error={name: ForecastErrorView(inside=each.inside, ratio=each.ratio) for name, each in found.errors.items()}
        or None,
        lines=tuple(forecast_lines(found)),
    )


def ranges(expected: WorkEstimate) -> RangesView:
    return RangesView(
        calls=_range(expected.calls),
        tokens=_range(expected.tokens),
        money=None if expected.money is None else _range(expected.money),
        seconds=_range(expected.seconds),
    )


def _range(found: EstimateRange) -> RangeView:
    return RangeView(low=round(found.low, 6), likely=round(found.likely, 6), high=round(found.high, 6))
