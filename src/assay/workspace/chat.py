"""A conversation over a workspace: each turn is a run that knows the turns before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.core.errors import UserError
from assay.core.events import Event
from assay.core.run import Run
from assay.store import threads
from assay.store.threads import Thread
from assay.workspace.ask import AskOptions, ask
from assay.workspace.chat_history import history

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace


async def chat(workspace: Workspace, question: str, thread: str, how: AskOptions) -> AsyncIterator[tuple[Run, Event]]:
    """One turn: asked in its thread, or in a new one."""
    if not question.strip():
        raise UserError("The question is empty. Ask something.")
    who = workspace.principal.id
    known = threads.named(workspace.store, thread, who) if thread else None
    before = _turns(workspace, known.id) if known else []
    own = known or threads.begin(workspace.store, who, question)
    begun = False
    try:
        async for run, event in ask(workspace, question, replace(how, thread=own.id, history=history(before))):
            if not begun:
                threads.add(workspace.store, own.id, who, run.id)
                begun = True
            yield run, event
    finally:
        if not begun and known is None:
            threads.forget(workspace.store, own.id, who)  # nothing was asked in it after all


def _turns(workspace: Workspace, thread: str) -> list[Run]:
    """The turns that can still be shown: one that was erased with a document is passed over."""
    found: list[Run] = []
    for run in threads.turns(workspace.store, thread, workspace.principal.id):
        with suppress(UserError):
            found.append(workspace.run(run))
    return found


def thread(workspace: Workspace, name: str) -> tuple[Thread, list[Run]]:
    """A thread with its turns, in the words of the documents that this person may still read."""
    found = threads.named(workspace.store, name, workspace.principal.id)
    return found, _turns(workspace, found.id)
