"""HTTP routes for the audit: a run as a bundle, and verification; and the server's schedule of sealing and erasing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Response

from assay.core.errors import AssayError
from assay.governance.audit import witness
from assay.governance.audit.export import export_bundle
from assay.governance.audit.retention import erase_old
from assay.governance.audit.witness import audit_context
from assay.governance.audit.witness import seal
from assay.governance.audit.witness import erasure_signer
from assay.governance.audit.verify import verify
from assay.serve.run_schemas import ResponseModel
from assay.serve.run_schemas import error_responses
from assay.serve.state import CurrentPerson, CurrentServer, CurrentWorkspace, Server

log = logging.getLogger("assay.serve")

router = APIRouter(
    prefix="/api",
    tags=["audit"],
    responses=error_responses(),
)

DAY = 86_400.0  # seconds between two retention checks
SERVER = "the server"  # the actor of those erasures


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


@router.get(
    "/runs/{run}/bundle",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The bundle."}},
)
def run_bundle(run: Annotated[str, Path(max_length=100)], workspace: CurrentWorkspace) -> Response:
    """A run with its evidence and its proof, as a file that anybody can check with Python alone."""
    seen = workspace.run_for_asker(run)
    made = export_bundle(workspace.store, workspace.path, workspace.settings, seen, workspace.scope())
    headers = {"Content-Disposition": f'attachment; filename="{run}.zip"'}
    return Response(made, media_type="application/zip", headers=headers)


@router.get("/verify", response_model=VerificationResponse)
def verify_all(who: CurrentPerson, server: CurrentServer) -> VerificationResponse:
    """Check every record, as `assay verify` does. For administrators."""
    if not who.admin:
        raise HTTPException(404, "Not Found")
    opened = server.workspace
    found = verify(opened.store, witness.witness_file(opened.settings.audit_copy, opened.path))
    sealed = found.sealed
    return VerificationResponse(
        whole=found.whole,
        records=found.records,
        seconds=found.seconds,
        faults=tuple(FaultView(record=each.record, what=each.words) for each in found.faults),
        sealed=SealView(n=sealed.n, at=sealed.at, where=sealed.where) if sealed else None,
        since=found.since,
    )


@asynccontextmanager
async def sealing(server: Server) -> AsyncIterator[None]:
    """While the server runs, and once more after it stopped: seal new records, and erase those past retention."""
    minutes = server.workspace.settings.audit_minutes
    tasks = [
        asyncio.create_task(_every(minutes * 60, lambda: seal_now(server), at_once=False)),
        asyncio.create_task(_every(DAY, lambda: erase_now(server), at_once=True)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(_tried, lambda: seal_now(server))


async def _every(seconds: float, work: Callable[[], None], *, at_once: bool) -> None:
    if not at_once:
        await asyncio.sleep(seconds)
    while True:
        await asyncio.to_thread(_tried, work)
        await asyncio.sleep(seconds)


def _tried(work: Callable[[], None]) -> None:
    """An unavailable second location or a full disk must not stop the server."""
    try:
        work()
    except AssayError as error:
        log.error("audit: %s", error)
    except Exception as error:
        log.error("audit: it broke down", exc_info=error)


def seal_now(server: Server) -> None:
    opened = server.workspace
    seal(audit_context(opened.store, opened.path, opened.settings))


def erase_now(server: Server) -> None:
    opened = server.workspace
    sign = erasure_signer(opened.path, opened.settings)
    gone = erase_old(opened.store, opened.settings.retention_days, SERVER, sign)
    if gone.payloads:
        log.warning("erased what %s runs recorded before %s", gone.runs, gone.before[:10])
