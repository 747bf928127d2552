"""HTTP routes for the evaluations of a workspace, with the figures of their report. For administrators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter, HTTPException

from assay.evaluate.grading import COST, Estimate, Graded, compare, estimate_metric, result_words, summarise, verdict
from assay.evaluate.html_report import (
    WORDS,
    format_difference,
    format_estimate,
    grading_words,
    meaning,
    shown_metrics,
    tag_rows,
    worst_cases,
)
from assay.evaluate.kept_evaluations import KeptEvaluation, kept_evaluations
from assay.serve.routes.people import require_administrator
from assay.serve.run_schemas import Id
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentWorkspace

router = APIRouter(prefix="/api/evaluations", tags=["evaluations"], responses=error_responses())


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


@router.get("", response_model=EvaluationsResponse)
def evaluations(workspace: CurrentWorkspace, who: CurrentPerson) -> EvaluationsResponse:
    """What `assay evaluate run` measured in this workspace, newest first."""
    require_administrator(who)
    return EvaluationsResponse(
        evaluations=tuple(_entry(name, each) for name, each in kept_evaluations(workspace.path).items())
    )


@router.get("/{name}", response_model=EvaluationResponse)
def evaluation(name: Id, workspace: CurrentWorkspace, who: CurrentPerson) -> EvaluationResponse:
    """One evaluation: figures with intervals, the verdict, figures by tag, and the worst cases with their runs."""
    require_administrator(who)
    found = kept_evaluations(workspace.path).get(name)
    if found is None:
        raise HTTPException(404, "Not Found")
    return _shape(found)


def _entry(name: str, kept: KeptEvaluation) -> EvaluationEntry:
    last = kept.sides[-1].results
    right = estimate_metric("right", last)
    return EvaluationEntry(
        name=name,
        title=kept.title,
        day=kept.day,
        questions=len(last),
        sides=tuple(each.name for each in kept.sides),
        right=format_estimate("right", right) if right.n else "",
    )


def _shape(kept: KeptEvaluation) -> EvaluationResponse:
    sides: Sequence[tuple[str, str, Sequence[Graded]]] = [
        (each.name, each.description, each.results) for each in kept.sides
    ]
    figures = [summarise(graded) for _, _, graded in sides]
    compared = compare(sides[0][2], sides[1][2]) if len(sides) == 2 else None
    last = kept.sides[-1].results
    return EvaluationResponse(
        title=kept.title,
        day=kept.day,
        questions=len(last),
        sides=tuple(SideView(name=each.name, description=each.description) for each in kept.sides),
        verdict=verdict(compared, sides[0][0], sides[1][0]) if compared else result_words(last),
        grading=grading_words(sides),
        metrics=tuple(
            MetricView(
                name=name,
                label=WORDS[name],
                meaning=meaning(name),
                share=name not in COST,
                cells=tuple(_estimate(name, each.get(name)) for each in figures),
                difference=_estimate(name, compared.differences.get(name), format_difference) if compared else None,
            )
            for name in shown_metrics(figures)
        ),
        tags=tuple(
            TagView(tag=row["tag"], questions=row["count"], cells=tuple(row["cells"])) for row in tag_rows(sides)
        ),
        worst=tuple(
            WorstCaseView(question=each.question, expected=each.expected, outcome=each.outcome, run=each.run)
            for each in worst_cases(last)
        ),
    )


def _estimate(
    name: str, found: Estimate | None, words: Callable[[str, Estimate], str] = format_estimate
) -> EstimateView | None:
    if found is None or not found.n:
        return None
    return EstimateView(mean=found.mean, low=found.low, high=found.high, n=found.n, words=words(name, found))
