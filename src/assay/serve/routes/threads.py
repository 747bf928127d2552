"""Conversations: a person's threads, each with its turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from assay.serve.schemas.run_schemas import Problem, Renamed, Some, ThreadLine, Threads, ThreadWhole
from assay.serve.state import Here, Mine
from assay.serve.views.run_views import whole
from assay.store import threads as store
from assay.store.threads import Thread

router = APIRouter(
    prefix="/api/threads",
    tags=["threads"],
    responses={code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429, 503)},
)


def line(thread: Thread) -> ThreadLine:
    return ThreadLine(
        id=thread.id, title=thread.title, created=thread.created, updated=thread.updated, turns=thread.turns
    )


@router.get("", response_model=Threads)
def list_threads(
    mine: Mine, after: str = "", limit: Some = 50, q: Annotated[str, Query(max_length=200)] = ""
) -> Threads:
    """A page of threads, the one that was last spoken in first; `q` are words of their titles."""
    found, more = store.page(mine.store, mine.principal.id, after, limit, q)
    return Threads(threads=tuple(map(line, found)), next=more)


@router.get("/{thread}", response_model=ThreadWhole)
def one_thread(thread: str, mine: Mine, server: Here) -> ThreadWhole:
    """A thread with its turns, oldest first. A turn that was erased with a document is passed over."""
    found, runs = mine.thread(thread)
    turns = tuple(whole(mine, run, server.live.under_way(run.id)) for run in runs)
    return ThreadWhole(**line(found).model_dump(), runs=turns)


@router.patch("/{thread}", response_model=ThreadLine)
def rename_thread(thread: str, given: Renamed, mine: Mine) -> ThreadLine:
    """The thread under another title."""
    store.rename(mine.store, thread, mine.principal.id, given.title)
    return line(store.named(mine.store, thread, mine.principal.id))


@router.delete("/{thread}", status_code=204)
def forget_thread(thread: str, mine: Mine) -> Response:
    """The thread is no more; its runs and their records stay."""
    store.forget(mine.store, thread, mine.principal.id)
    return Response(status_code=204)
