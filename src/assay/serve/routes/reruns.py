"""Runs once more: begun anew from one of their steps, perhaps with another model; and what differs between two of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, StringConstraints

from assay.core.run import Run
from assay.governance.difference import difference
from assay.governance.review.visibility import as_asked
from assay.serve.limits import room_for_a_run
from assay.serve.schemas.run_schemas import Begun, Given, Problem, Told
from assay.serve.state import Here, Mine, Who
from assay.store import documents
from assay.workspace import rerun as branching
from assay.workspace.facade import Workspace
from assay.workspace.review import watched

router = APIRouter(
    prefix="/api/runs",
    tags=["runs"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 422, 429, 502, 503)},
)

RunId = Annotated[str, Path(max_length=100)]
Model = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class Rerun(Given):
    """Which record's step is done again, as the trace numbers them; and the model to go on with: empty for the one that is
    set, `none` for none."""

    begin: Annotated[int, Field(alias="from", ge=0, le=2**31, strict=True)]
    model: Model = ""


class Changed(Told):
    what: str
    a: str
    b: str


class PartShape(Told):
    name: str  # question, route, plan, searches, evidence, claims, answer, cost
    same: bool
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[Changed, ...]


class DifferenceShape(Told):
    """What differs between two runs. What they took is told, and does not count as a difference."""

    a: str
    b: str
    same: bool
    parts: tuple[PartShape, ...]


@router.post("/{run}/rerun", status_code=201, response_model=Begun)
async def rerun(run: RunId, wanted: Rerun, mine: Mine, who: Who, server: Here) -> Begun:
    """Begin a new run with what was recorded before this step; it goes on from there, like any run."""
    model = branching.at_the_endpoint(mine, wanted.model)
    origin = await server.engine.do(_read(mine, run))
    branching.step_begins(origin, wanted.begin)
    with room_for_a_run(server, who):
        new = await server.live.begin(mine, branching.branch(mine, origin, wanted.begin, model))
    return Begun(run=new.id, thread="", events=f"/api/runs/{new.id}/events")


async def _read(mine: Workspace, run: str) -> Run:
    return mine.run(run)


@router.get("/{a}/diff/{b}", response_model=DifferenceShape)
def diff(a: RunId, b: RunId, mine: Mine) -> DifferenceShape:
    """What differs between two runs of yours: question, route, plan, searches, evidence, claims, answer, cost."""
    one, other = (as_asked(mine.run(each), watched=watched(mine, each)) for each in (a, b))
    found = {each.quote.doc_id for run in (one, other) for each in run.evidence}
    told = difference(one, other, documents.titles(mine.store, found, mine.scope()))
    parts = tuple(
        PartShape(
            name=part.name,
            same=part.same,
            only_a=part.only_a,
            only_b=part.only_b,
            changed=tuple(Changed(what=each.what, a=each.a, b=each.b) for each in part.changed),
        )
        for part in told.parts
    )
    return DifferenceShape(a=a, b=b, same=told.same, parts=parts)
