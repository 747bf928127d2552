"""HTTP routes for conversations: a user's threads with their turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from assay.serve.run_schemas import (
    PageSize,
    RenameThreadRequest,
    SharedThreadsResponse,
    SharedThreadSummary,
    SharedThreadView,
    SharedTurnView,
    ShareThreadRequest,
    ThreadListResponse,
    ThreadReadersResponse,
    ThreadSummary,
    ThreadView,
    error_responses,
)
from assay.serve.run_views import run_view, shared_answer
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.store import threads as store
from assay.store.runs import visibility
from assay.store.threads import Thread

threads_router = APIRouter(
    prefix="/api/threads",
    tags=["threads"],
    responses=error_responses(413),
)


shared_router = APIRouter(prefix="/api/shared-threads", tags=["threads"], responses=error_responses(413))


def line(thread: Thread) -> ThreadSummary:
    return ThreadSummary(
        id=thread.id, title=thread.title, created=thread.created, updated=thread.updated, turns=thread.turns
    )


@threads_router.get("", response_model=ThreadListResponse)
def list_threads(
    workspace: CurrentWorkspace, after: str = "", limit: PageSize = 50, q: Annotated[str, Query(max_length=200)] = ""
) -> ThreadListResponse:
    """A page of threads, the one that was last spoken in first; `q` are words of their titles."""
    found, more = store.page(workspace.store, workspace.principal.id, after, limit, q)
    return ThreadListResponse(threads=tuple(map(line, found)), next=more)


@threads_router.get("/{thread}", response_model=ThreadView)
def one_thread(
    thread: str, workspace: CurrentWorkspace, server: CurrentServer, before: str = "", limit: PageSize = 200
) -> ThreadView:
    """A thread with its latest turns, or those before the run `before`, oldest first. A turn that was erased with a document
    is passed over."""
    found, runs, earlier = workspace.threads.page(thread, before, limit)
    turns = tuple(run_view(workspace, run, server.live.under_way_anywhere(workspace.store, run.id)) for run in runs)
    return ThreadView(**line(found).model_dump(), runs=turns, earlier=earlier)


@threads_router.get("/{thread}/readers", response_model=ThreadReadersResponse)
def thread_readers(thread: str, workspace: CurrentWorkspace) -> ThreadReadersResponse:
    """Who else may read a thread of yours."""
    return ThreadReadersResponse(readers=tuple(workspace.threads.readers(thread)))


@threads_router.post("/{thread}/readers", response_model=ThreadReadersResponse)
def share_thread(thread: str, given: ShareThreadRequest, workspace: CurrentWorkspace) -> ThreadReadersResponse:
    """Let a person or a group read a thread of yours, or no longer. They see its questions, and the answers whose documents
    they may read themselves."""
    return ThreadReadersResponse(readers=tuple(workspace.threads.share(thread, given.name, given.may)))


@threads_router.patch("/{thread}", response_model=ThreadSummary)
def rename_thread(thread: str, given: RenameThreadRequest, workspace: CurrentWorkspace) -> ThreadSummary:
    """The thread under another title."""
    store.rename(workspace.store, thread, workspace.principal.id, given.title)
    return line(store.named(workspace.store, thread, workspace.principal.id))


@threads_router.delete("/{thread}", status_code=204)
def forget_thread(thread: str, workspace: CurrentWorkspace) -> Response:
    """The thread is no more; its runs and their records stay."""
    store.forget(workspace.store, thread, workspace.principal.id)
    return Response(status_code=204)


@shared_router.get("", response_model=SharedThreadsResponse)
def list_shared_threads(workspace: CurrentWorkspace) -> SharedThreadsResponse:
    """Threads that others share with you."""
    found = workspace.threads.shared()
    return SharedThreadsResponse(
        threads=tuple(SharedThreadSummary(**line(each).model_dump(), owner=each.who) for each in found)
    )


@shared_router.get("/{thread}", response_model=SharedThreadView)
def one_shared_thread(thread: str, workspace: CurrentWorkspace) -> SharedThreadView:
    """A thread that somebody shares with you: its questions, and the answers whose documents you may read now."""
    found, runs = workspace.threads.read_shared(thread)
    turns = tuple(
        SharedTurnView(
            question=run.asked.question,
            answer=shared_answer(workspace, run),
            withheld=visibility.WITHHELD_ANSWER if run.withheld else "",
        )
        for run in runs
    )
    return SharedThreadView(**line(found).model_dump(), owner=found.who, shared_turns=turns)
