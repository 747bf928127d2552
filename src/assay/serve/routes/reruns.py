"""HTTP routes for reruns: a new run from a step of an earlier one, optionally with another model; and the difference
of two runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, StringConstraints

from assay.core.run import Run
from assay.governance.difference import difference
from assay.serve.run_schemas import RequestModel
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import RunStartedResponse
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace
from assay.store import documents
from assay.workspace.facade import Workspace

router = APIRouter(
    prefix="/api/runs",
    tags=["runs"],
    responses=error_responses(502),
)

RunId = Annotated[str, Path(max_length=100)]
Model = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class RerunRequest(RequestModel):
    """Which record's step is done again, as the trace numbers them; and the model to go on with: empty for the one that is
    set, `none` for none."""

    begin: Annotated[int, Field(alias="from", ge=0, le=2**31, strict=True)]
    model: Model = ""


class ChangeView(ResponseModel):
    what: str
    a: str
    b: str


class DifferencePartView(ResponseModel):
    name: str  # question, route, plan, searches, evidence, claims, answer, cost
    same: bool
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[ChangeView, ...]


class DifferenceResponse(ResponseModel):
    """What differs between two runs. What they took is told, and does not count as a difference."""

    a: str
    b: str
    same: bool
    parts: tuple[DifferencePartView, ...]


@router.post("/{run}/rerun", status_code=201, response_model=RunStartedResponse)
async def rerun(
    run: RunId, wanted: RerunRequest, workspace: CurrentWorkspace, who: CurrentPerson, server: CurrentServer
) -> RunStartedResponse:
    """Begin a new run with what was recorded before this step; it goes on from there, like any run."""
    model = workspace.check_model_name(wanted.model)
    origin = await server.engine.run(_read(workspace, run))
    workspace.check_branch(origin, wanted.begin)
    with server.reserve_run(who):
        new = await server.live.begin(workspace, workspace.branch(origin, wanted.begin, model))
    return RunStartedResponse(run=new.id, thread="", events=f"/api/runs/{new.id}/events")


async def _read(workspace: Workspace, run: str) -> Run:
    return workspace.run(run)


@router.get("/{a}/diff/{b}", response_model=DifferenceResponse)
def diff(a: RunId, b: RunId, workspace: CurrentWorkspace) -> DifferenceResponse:
    """What differs between two runs of yours: question, route, plan, searches, evidence, claims, answer, cost."""
    one, other = map(workspace.run_for_asker, (a, b))
    found = {each.quote.doc_id for run in (one, other) for each in run.evidence}
    compared = difference(one, other, documents.titles(workspace.store, found, workspace.scope()))
    parts = tuple(
        DifferencePartView(
            name=part.name,
            same=part.same,
            only_a=part.only_a,
            only_b=part.only_b,
            changed=tuple(ChangeView(what=each.what, a=each.a, b=each.b) for each in part.changed),
        )
        for part in compared.parts
    )
    return DifferenceResponse(a=a, b=b, same=compared.same, parts=parts)
