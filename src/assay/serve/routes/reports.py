"""HTTP routes for reports, as tables with charts or as CSV. Administrators see all users' figures, others their own."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse

from assay.core.errors import UserError
from assay.governance.reports import ReportKind
from assay.governance.reports.definitions import build_report, build_run_account
from assay.governance.reports.report import Report, to_csv
from assay.serve.run_schemas import Date
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentWorkspace

router = APIRouter(
    prefix="/api/reports",
    tags=["reports"],
    responses=error_responses(),
)


class ReportFormat(StrEnum):
    json = "json"
    csv = "csv"


class ColumnView(ResponseModel):
    name: str
    about: str


class SeriesView(ResponseModel):
    name: str
    y: tuple[float | None, ...]


class ChartView(ResponseModel):
    title: str
    kind: str  # bar, line
    x: tuple[str, ...]
    series: tuple[SeriesView, ...]
    threshold: float | None  # the alarm threshold


class ReportResponse(ResponseModel):
    title: str
    about: str
    columns: tuple[ColumnView, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]
    charts: tuple[ChartView, ...]


@router.get("/{kind}", response_model=ReportResponse, responses={200: {"content": {"text/csv": {}}}})
def report(
    kind: ReportKind,
    workspace: CurrentWorkspace,
    who: CurrentPerson,
    since: Date | None = None,
    until: Date | None = None,
    run: Annotated[str, Query(max_length=100)] = "",
    format: ReportFormat = ReportFormat.json,
) -> Any:
    """A report on the runs that were begun in a time, both days included; of `runs`, also the account of one of yours."""
    if run and kind is not ReportKind.runs:
        raise UserError(f"The report on {kind.value} is about all runs. The one on runs can be about one of them.")
    if run:
        made = build_run_account(workspace.store, workspace.run_for_asker(run))
    else:
        whose = None if who.admin else workspace.principal.id
        made = build_report(workspace.store, kind, since or "", until or "", whose)
    if format is ReportFormat.csv:
        name = {"Content-Disposition": f'attachment; filename="assay-{kind.value}.csv"'}
        return PlainTextResponse(to_csv(made), media_type="text/csv", headers=name)
    return shape(made)


def shape(made: Report) -> ReportResponse:
    return ReportResponse(
        title=made.title,
        about=made.about,
        columns=tuple(ColumnView(name=each.name, about=each.about) for each in made.columns),
        rows=made.rows,
        charts=tuple(
            ChartView(
                title=each.title,
                kind=each.kind,
                x=each.x,
                series=tuple(SeriesView(name=own.name, y=own.y) for own in each.series),
                threshold=each.threshold,
            )
            for each in made.charts
        ),
    )
