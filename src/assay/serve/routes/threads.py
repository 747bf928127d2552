"""HTTP routes for conversations: a user's threads with their turns."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import StringConstraints

from assay.core.run import Run
from assay.serve.run_views import AnswerView, RecheckView, RunView, recheck_view, run_view, shared_answer
from assay.serve.schemas import (
    NOT_BLANK,
    Name,
    PageSize,
    PathId,
    RequestModel,
    ResponseModel,
    StrictFlag,
    error_responses,
)
from assay.serve.state import CurrentServer, CurrentWorkspace
from assay.workspace.facade import Workspace
from assay.workspace.stored import WITHHELD_ANSWER


class ThreadSummary(ResponseModel):
    id: str
    title: str
    created: str
    updated: str
    turns: int


class ThreadListResponse(ResponseModel):
    threads: tuple[ThreadSummary, ...]
    next: str


class PickedDocument(ResponseModel):
    id: str
    title: str


class WhereView(ResponseModel):
    """What the latest turn of a thread searched, as the next one may: only documents and bases that there still are."""

    bases: tuple[str, ...]
    sources: tuple[str, ...]
    documents: tuple[PickedDocument, ...]
    gone: int  # documents that were picked, and cannot be read any more
    since: str | None
    until: str | None
    undated: bool
    meta: dict[str, str]


class ThreadView(ThreadSummary):
    runs: tuple[RunView, ...]
    earlier: int  # turns before these
    where: WhereView | None


class ThreadReadersResponse(ResponseModel):
    """Who else may read a thread: `user:NAME`, `group:NAME`; and who of them accepted it. To others it is offered."""

    readers: tuple[str, ...]
    accepted: tuple[str, ...]


class ShareThreadRequest(RequestModel):
    name: Name  # user:NAME or group:NAME
    may: StrictFlag


class SharedThreadSummary(ThreadSummary):
    owner: str


class OfferedThread(ResponseModel):
    """A thread that somebody shares with you, and that you have not accepted."""

    id: str
    title: str
    owner: str
    declined: bool


class SharedThreadsResponse(ResponseModel):
    threads: tuple[SharedThreadSummary, ...]
    offers: tuple[OfferedThread, ...]


class AnswerThreadRequest(RequestModel):
    accept: StrictFlag  # false: decline it, or leave it


class SharedTurnView(ResponseModel):
    """A question that somebody else asked, and its answer as far as the reader may read the documents behind it."""

    question: str
    answer: AnswerView | None
    withheld: str  # why there is no answer
    recheck: RecheckView | None


class SharedThreadView(SharedThreadSummary):
    shared_turns: tuple[SharedTurnView, ...]


class RenameThreadRequest(RequestModel):
    title: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=NOT_BLANK)]


threads_router = APIRouter(prefix="/api/threads", tags=["threads"], responses=error_responses(413))


shared_router = APIRouter(prefix="/api/shared-threads", tags=["threads"], responses=error_responses(413))


@threads_router.get("")
def list_threads(
    workspace: CurrentWorkspace, after: str = "", limit: PageSize = 50, q: Annotated[str, Query(max_length=200)] = ""
) -> ThreadListResponse:
    """A page of threads, the one that was last spoken in first; `q` are words of their titles."""
    found, more = workspace.threads.page_of_list(workspace.principal.id, after, limit, q)
    return ThreadListResponse.made_from(threads=found, next=more)


@threads_router.get("/{thread}")
def one_thread(
    thread: str, workspace: CurrentWorkspace, server: CurrentServer, before: str = "", limit: PageSize = 200
) -> ThreadView:
    """A thread with its latest turns, or those before the run `before`, oldest first. A turn that was erased with a document
    is passed over."""
    found, runs, earlier = workspace.threads.page(thread, before, limit)
    turns = tuple(run_view(workspace, run, server.runs.under_way_anywhere(workspace, run.id)) for run in runs)
    return ThreadView.made_from(found, runs=turns, earlier=earlier, where=_where(workspace, runs[-1]) if runs else None)


def _where(workspace: Workspace, run: Run) -> WhereView:
    where, scope = run.asked.where, workspace.scope()
    titles = workspace.documents.titles(where.picked, scope)
    picked = tuple(PickedDocument(id=id, title=titles[id]) for id in where.picked if id in titles)
    bases = tuple(name for name in where.bases if name in {base.name for base in scope.bases})
    gone = len(where.picked) - len(picked)
    return WhereView.made_from(where, bases=bases, documents=picked, gone=gone, meta=dict(where.meta))


@threads_router.get("/{thread}/readers")
def thread_readers(thread: str, workspace: CurrentWorkspace) -> ThreadReadersResponse:
    """Who else may read a thread of yours."""
    return _readers(workspace, thread)


@threads_router.post("/{thread}/readers")
def share_thread(thread: str, given: ShareThreadRequest, workspace: CurrentWorkspace) -> ThreadReadersResponse:
    """Let a person or a group read a thread of yours, or no longer. They see its questions, and the answers whose documents
    they may read themselves."""
    workspace.threads.share(thread, given.name, given.may)
    return _readers(workspace, thread)


def _readers(workspace: Workspace, thread: str) -> ThreadReadersResponse:
    readers, accepted = workspace.threads.readers(thread), workspace.threads.accepted(thread)
    return ThreadReadersResponse(readers=tuple(readers), accepted=accepted)


@threads_router.patch("/{thread}")
def rename_thread(thread: str, given: RenameThreadRequest, workspace: CurrentWorkspace) -> ThreadSummary:
    """The thread under another title."""
    workspace.threads.rename(thread, workspace.principal.id, given.title)
    return ThreadSummary.made_from(workspace.threads.named(thread, workspace.principal.id))


@threads_router.delete("/{thread}", status_code=204)
def forget_thread(thread: str, workspace: CurrentWorkspace) -> Response:
    """The thread is no more; its runs and their records stay."""
    workspace.threads.forget(thread, workspace.principal.id)
    return Response(status_code=204)


@shared_router.get("")
def list_shared_threads(workspace: CurrentWorkspace) -> SharedThreadsResponse:
    """Threads of others that you have accepted, and those that are offered to you."""
    return SharedThreadsResponse(
        threads=tuple(SharedThreadSummary.made_from(each, owner=each.who) for each in workspace.threads.shared()),
        offers=tuple(
            OfferedThread(id=each.id, title=each.title, owner=each.who, declined=declined)
            for each, declined in workspace.threads.offered()
        ),
    )


@shared_router.post("/{thread}", status_code=204)
def answer_shared_thread(thread: PathId, answer: AnswerThreadRequest, workspace: CurrentWorkspace) -> Response:
    """Accept a thread that somebody shares with you; or decline it, or leave it."""
    workspace.threads.answer_offer(thread, answer.accept)
    return Response(status_code=204)


@shared_router.get("/{thread}")
def one_shared_thread(thread: str, workspace: CurrentWorkspace) -> SharedThreadView:
    """A thread that somebody shares with you: its questions, and the answers whose documents you may read now."""
    found, runs = workspace.threads.read_shared(thread)
    turns = tuple(
        SharedTurnView(
            question=run.asked.question,
            answer=shared_answer(workspace, run),
            withheld=WITHHELD_ANSWER if run.withheld else "",
            recheck=recheck_view(workspace, run),
        )
        for run in runs
    )
    return SharedThreadView.made_from(found, owner=found.who, shared_turns=turns)
