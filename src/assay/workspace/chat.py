"""A conversation: each turn is a run that knows the earlier turns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from assay.core.errors import UserError
from assay.core.run import Run
from assay.store import threads
from assay.store.threads import Thread
from assay.workspace.ask import ask
from assay.workspace.chat_history import history
from assay.workspace.context import WorkspaceContext
from assay.workspace.types import AskOptions, Steps


async def chat(context: WorkspaceContext, question: str, thread: str, how: AskOptions) -> Steps:
    """One turn: in the given thread, or in a new one."""
    if not question.strip():
        raise UserError("The question is empty. Ask something.")
    who = context.principal.id
    known = threads.named(context.store, thread, who) if thread else None
    earlier = _shown(context, threads.turns(context.store, known.id, who)) if known else []
    own = known or threads.begin(context.store, who, question)
    added = False
    try:
        async for run, event in ask(context, question, replace(how, thread=own.id, history=history(earlier))):
            if not added:
                threads.add(context.store, own.id, who, run.id)
                added = True
            yield run, event
    finally:
        if not added and known is None:
            threads.forget(context.store, own.id, who)  # the question was refused, so the new thread is empty


def thread(context: WorkspaceContext, name: str) -> tuple[Thread, list[Run]]:
    """A thread with its turns."""
    found = threads.named(context.store, name, context.principal.id)
    return found, _shown(context, threads.turns(context.store, found.id, context.principal.id))


def thread_page(context: WorkspaceContext, name: str, before: str, limit: int) -> tuple[Thread, list[Run], int]:
    """A thread with its latest turns, or those before a run; and how many are earlier still."""
    found = threads.named(context.store, name, context.principal.id)
    turns = threads.turns(context.store, found.id, context.principal.id)
    turns = turns[: turns.index(before)] if before in turns else turns
    return found, _shown(context, turns[-limit:]), max(0, len(turns) - limit)


def _shown(context: WorkspaceContext, turns: Sequence[str]) -> list[Run]:
    """The turns that can still be shown. Erased ones are skipped."""
    found: list[Run] = []
    for run in turns:
        with suppress(UserError):
            found.append(context.run(run))
    return found
