"""HTTP routes for conversations: a user's threads with their turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from assay.serve.schemas.run_schemas import (
    PageSize,
    RenameThreadRequest,
    ThreadListResponse,
    ThreadSummary,
    ThreadView,
    error_responses,
)
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.serve.views.run_views import run_view
from assay.store import threads as store
from assay.store.threads import Thread

router = APIRouter(
    prefix="/api/threads",
    tags=["threads"],
    responses=error_responses(413),
)


def line(thread: Thread) -> ThreadSummary:
    return ThreadSummary(
        id=thread.id, title=thread.title, created=thread.created, updated=thread.updated, turns=thread.turns
    )


@router.get("", response_model=ThreadListResponse)
def list_threads(
    workspace: CurrentWorkspace, after: str = "", limit: PageSize = 50, q: Annotated[str, Query(max_length=200)] = ""
) -> ThreadListResponse:
    """A page of threads, the one that was last spoken in first; `q` are words of their titles."""
    found, more = store.page(workspace.store, workspace.principal.id, after, limit, q)
    return ThreadListResponse(threads=tuple(map(line, found)), next=more)


@router.get("/{thread}", response_model=ThreadView)
def one_thread(thread: str, workspace: CurrentWorkspace, server: CurrentServer) -> ThreadView:
    """A thread with its turns, oldest first. A turn that was erased with a document is passed over."""
    found, runs = workspace.thread(thread)
    turns = tuple(run_view(workspace, run, server.live.under_way(run.id)) for run in runs)
    return ThreadView(**line(found).model_dump(), runs=turns)


@router.patch("/{thread}", response_model=ThreadSummary)
def rename_thread(thread: str, given: RenameThreadRequest, workspace: CurrentWorkspace) -> ThreadSummary:
    """The thread under another title."""
    store.rename(workspace.store, thread, workspace.principal.id, given.title)
    return line(store.named(workspace.store, thread, workspace.principal.id))


@router.delete("/{thread}", status_code=204)
def forget_thread(thread: str, workspace: CurrentWorkspace) -> Response:
    """The thread is no more; its runs and their records stay."""
    store.forget(workspace.store, thread, workspace.principal.id)
    return Response(status_code=204)
