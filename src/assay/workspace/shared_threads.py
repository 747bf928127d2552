"""Conversations that people share. A reader sees the questions, and the answers whose documents they may read themselves."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from assay.core.errors import Missing, UserError
from assay.core.events import Answered
from assay.core.run import Run
from assay.store import documents, threads
from assay.store.access import grants
from assay.store.runs import records
from assay.store.threads import Thread
from assay.workspace.context import WorkspaceContext


def share(context: WorkspaceContext, thread: str, name: str, may: bool) -> list[str]:
    grants.check_grantee(name)
    readers(context, thread)  # raises where the thread is not theirs
    if name == f"user:{context.principal.id}":
        raise UserError("The thread is yours already.")
    threads.set_shared(context.store, thread, context.principal.id, name, may)
    return readers(context, thread)


def readers(context: WorkspaceContext, thread: str) -> list[str]:
    return threads.readers(context.store, thread, context.principal.id)


def listing(context: WorkspaceContext) -> list[Thread]:
    return threads.shared_with(context.store, context.principal)


def shared_thread(context: WorkspaceContext, thread: str) -> tuple[Thread, list[Run]]:
    """The thread with its delivered turns. Each is read with what the reader may read now, never with what its owner may."""
    found = next((each for each in listing(context) if each.id == thread), None)
    if found is None:
        raise Missing(f"There is no thread called {thread!r} that is shared with you.")
    scope = context.scope()
    texts = documents.texts_for(context.store, scope)
    turns: list[Run] = []
    for run in threads.turns(context.store, found.id, found.who):
        with suppress(Missing):  # erased meanwhile
            turns.append(Run(run, tuple(records.events_of(context.store, run, found.who, texts, scope))))
    return found, [_without_counts(run) for run in turns if run.delivered]


def _without_counts(run: Run) -> Run:
    """The run without how much was searched: that was counted over everything that its owner may read."""
    last = run.events[-1]
    if not isinstance(last, Answered):
        return run
    answer = replace(last.answer, searched=(), unread=(), examined=None)
    return Run(run.id, (*run.events[:-1], replace(last, answer=answer)))
