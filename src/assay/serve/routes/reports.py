"""HTTP routes for reports, as tables with charts or as CSV, where administrators see all users' figures and others their
own; for evaluations; and for the audit: a run as a bundle, and verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Response
from fastapi.responses import PlainTextResponse

from assay.core.errors import UserError
from assay.evaluate import html_report
from assay.evaluate.grading import COST, Estimate, Graded, compare, estimate_metric, result_words, summarise, verdict
from assay.evaluate.user_cases import KeptEvaluation, kept_evaluations
from assay.governance.audit import witness
from assay.governance.audit.export import export_bundle
from assay.governance.audit.verify import verify
from assay.governance.reports import ReportKind
from assay.governance.reports.definitions import build_report, build_run_account
from assay.governance.reports.report import Report, to_csv
from assay.serve.schemas import Date, Id, PathId, ResponseModel, error_responses
from assay.serve.state import Administrator, CurrentPerson, CurrentServer, CurrentWorkspace

reports_router = APIRouter(prefix="/api/reports", tags=["reports"], responses=error_responses())


class ReportFormat(StrEnum):
    json = "json"
    csv = "csv"


@reports_router.get("/{kind}", response_model=Report, responses={200: {"content": {"text/csv": {}}}})
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
        made = build_run_account(workspace.store, workspace.questions.run_for_asker(run))
    else:
        whose = None if who.admin else workspace.principal.id
        made = build_report(workspace.store, kind, since or "", until or "", whose)
    if format is ReportFormat.csv:
        name = {"Content-Disposition": f'attachment; filename="assay-{kind.value}.csv"'}
        return PlainTextResponse(to_csv(made), media_type="text/csv", headers=name)
    return made


evaluations_router = APIRouter(prefix="/api/evaluations", tags=["evaluations"], responses=error_responses())


class EvaluationEntry(ResponseModel):
    name: str
    title: str
    day: str
    questions: int
    sides: tuple[str, ...]
    right: str  # of the last side, with its interval; empty if no case says what is right


class EvaluationsResponse(ResponseModel):
    evaluations: tuple[EvaluationEntry, ...]


class EstimateView(ResponseModel):
    """A mean with its 95 % interval, and the same in words."""

    mean: float
    low: float
    high: float
    n: int
    words: str


class MetricView(ResponseModel):
    name: str
    label: str
    meaning: str
    share: bool  # between 0 and 1
    cells: tuple[EstimateView | None, ...]  # one for each side
    difference: EstimateView | None  # the second side minus the first


class SideView(ResponseModel):
    name: str
    description: str


class TagView(ResponseModel):
    tag: str
    questions: int
    cells: tuple[str, ...]


class WorstCaseView(ResponseModel):
    question: str
    expected: str
    outcome: str
    run: str


class EvaluationResponse(ResponseModel):
    title: str
    day: str
    questions: int
    sides: tuple[SideView, ...]
    verdict: str
    grading: str
    metrics: tuple[MetricView, ...]
    tags: tuple[TagView, ...]
    worst: tuple[WorstCaseView, ...]


@evaluations_router.get("")
def evaluations(workspace: CurrentWorkspace, who: Administrator) -> EvaluationsResponse:
    """What `assay evaluate run` measured in this workspace, newest first."""
    return EvaluationsResponse(
        evaluations=tuple(_entry(name, each) for name, each in kept_evaluations(workspace.path).items())
    )


@evaluations_router.get("/{name}")
def evaluation(name: Id, workspace: CurrentWorkspace, who: Administrator) -> EvaluationResponse:
    """One evaluation: figures with intervals, the verdict, figures by tag, and the worst cases with their runs."""
    found = kept_evaluations(workspace.path).get(name)
    if found is None:
        raise HTTPException(404, "Not Found")
    return _evaluation_view(found)


def _entry(name: str, kept: KeptEvaluation) -> EvaluationEntry:
    last = kept.sides[-1].results
    right = estimate_metric("right", last)
    return EvaluationEntry.made_from(
        kept,
        name=name,
        questions=len(last),
        sides=tuple(each.name for each in kept.sides),
        right=html_report.format_estimate("right", right) if right.n else "",
    )


def _evaluation_view(kept: KeptEvaluation) -> EvaluationResponse:
    sides: Sequence[tuple[str, str, Sequence[Graded]]] = [
        (each.name, each.description, each.results) for each in kept.sides
    ]
    figures = [summarise(graded) for _, _, graded in sides]
    compared = compare(sides[0][2], sides[1][2]) if len(sides) == 2 else None
    last = kept.sides[-1].results
    return EvaluationResponse.made_from(
        kept,
        questions=len(last),
        sides=tuple(SideView.made_from(each) for each in kept.sides),
        verdict=verdict(compared, sides[0][0], sides[1][0]) if compared else result_words(last),
        grading=html_report.grading_words(sides),
        metrics=tuple(
            MetricView(
                name=name,
                label=html_report.WORDS[name],
                meaning=html_report.meaning(name),
                share=name not in COST,
                cells=tuple(_estimate(name, each.get(name)) for each in figures),
                difference=_estimate(name, compared.differences.get(name), html_report.format_difference)
                if compared
                else None,
            )
            for name in html_report.shown_metrics(figures)
        ),
        tags=tuple(
            TagView(tag=row["tag"], questions=row["count"], cells=tuple(row["cells"]))
            for row in html_report.tag_rows(sides)
        ),
        worst=tuple(WorstCaseView.made_from(each) for each in html_report.worst_cases(last)),
    )


def _estimate(
    name: str, found: Estimate | None, words: Callable[[str, Estimate], str] = html_report.format_estimate
) -> EstimateView | None:
    if found is None or not found.n:
        return None
    return EstimateView.made_from(found, words=words(name, found))


audit_router = APIRouter(prefix="/api", tags=["audit"], responses=error_responses())


class FaultView(ResponseModel):
    record: str
    what: str


class SealView(ResponseModel):
    n: int
    at: str
    where: str


class VerificationResponse(ResponseModel):
    """Whether the record is whole; if not, what is wrong with it, the first bad record first."""

    whole: bool
    records: int
    seconds: float
    faults: tuple[FaultView, ...]
    sealed: SealView | None
    since: int  # records after the last signed head
    unsealed_since: str  # when that was; of what came later, nobody could tell a cut
    conclusion: str


@audit_router.get(
    "/runs/{run}/bundle",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle."}},
)
def run_bundle(run: PathId, workspace: CurrentWorkspace) -> Response:
    """A run with its evidence and its proof, as a file that anybody can check with Python alone."""
    seen = workspace.questions.run_for_asker(run)
    made = export_bundle(workspace.store, workspace.path, workspace.settings, seen, workspace.scope())
    headers = {"Content-Disposition": f'attachment; filename="{run}.zip"'}
    return Response(made, media_type="application/zip", headers=headers)


@audit_router.get("/verify")
def verify_all(who: Administrator, server: CurrentServer) -> VerificationResponse:
    """Check every record, as `assay verify` does. For administrators."""
    opened = server.workspace
    found = verify(opened.store, witness.witness_file(opened.settings.audit_copy, opened.path))
    faults = tuple(FaultView(record=each.record, what=each.words) for each in found.faults)
    return VerificationResponse.made_from(found, faults=faults)
