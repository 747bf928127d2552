"""Conversations: each turn is a run that knows the earlier turns. Of a shared one a reader sees the questions, and the answers
whose documents they may read themselves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from assay.core.errors import Missing, UserError
from assay.core.events import Answered
from assay.core.run import Run
from assay.store import documents, threads
from assay.store.access import grants, offers
from assay.store.runs import records
from assay.store.threads import Thread
from assay.workspace.chat_history import history
from assay.workspace.context import OnStore, Service
from assay.workspace.services.ask import ask
from assay.workspace.types import AskOptions, Steps


@dataclass(frozen=True)
class Threads(Service):
    """Conversations, of a person and shared with them."""

    forget = OnStore(threads.forget)
    named = OnStore(threads.named)
    page_of_list = OnStore(threads.page)
    rename = OnStore(threads.rename)

    async def chat(self, question: str, thread: str, how: AskOptions, instead_of: str = "") -> Steps:
        """One turn: in the given thread, or in a new one. One that is asked `instead_of` another knows only those before."""
        if not question.strip():
            raise UserError("The question is empty. Ask something.")
        who = self.principal.id
        known = threads.named(self.store, thread, who) if thread else None
        turns = threads.turns(self.store, known.id, who) if known else []
        earlier = self._shown(turns[: turns.index(instead_of)] if instead_of in turns else turns)
        own = known or threads.begin(self.store, who, question)
        added = False
        try:
            async for run, event in ask(self.context, question, replace(how, thread=own.id, history=history(earlier))):
                if not added:
                    threads.add(self.store, own.id, who, run.id)
                    added = True
                yield run, event
        finally:
            if not added and known is None:
                threads.forget(self.store, own.id, who)  # the question was refused, so the new thread is empty

    def listing(self, limit: int = 50) -> list[Thread]:
        """This person's conversations, the latest first."""
        return threads.listing(self.store, self.principal.id, limit)

    def share(self, thread: str, name: str, may: bool) -> list[str]:
        """Let a person or a group read a conversation of this person's, or no longer. Returns who may read it."""
        grants.check_grantee(name)
        self.readers(thread)  # raises where the thread is not theirs
        if name == f"user:{self.principal.id}":
            raise UserError("The thread is yours already.")
        threads.set_shared(self.store, thread, self.principal.id, name, may)
        return self.readers(thread)

    def readers(self, thread: str) -> list[str]:
        """Who else may read a conversation of this person's."""
        return threads.readers(self.store, thread, self.principal.id)

    def accepted(self, thread: str) -> tuple[str, ...]:
        """Those of its readers who accepted a conversation of this person's."""
        readers = self.readers(thread)
        return tuple(each for each in offers.accepted(self.store, thread) if each in readers)

    def shared(self) -> list[Thread]:
        """Conversations of others that this person has accepted."""
        return threads.shared_with(self.store, self.principal)[0]

    def offered(self) -> list[tuple[Thread, bool]]:
        """Conversations that others share with this person and that they have not accepted, with whether they declined."""
        return threads.shared_with(self.store, self.principal)[1]

    def answer_offer(self, thread: str, accepted: bool) -> None:
        threads.answer_offer(self.store, self.principal, thread, accepted)

    def read_shared(self, thread: str) -> tuple[Thread, list[Run]]:
        """The thread with its delivered turns. Each is read with what the reader may read now, never with what its owner
        may."""
        found = next((each for each in self.shared() if each.id == thread), None)
        if found is None:
            raise Missing(f"There is no thread called {thread!r} that is shared with you.")
        scope = self.context.scope()
        texts = documents.texts_for(self.store, scope)
        turns: list[Run] = []
        for run in threads.turns(self.store, found.id, found.who):
            with suppress(Missing):  # erased meanwhile
                turns.append(Run(run, tuple(records.events_of(self.store, run, found.who, texts, scope))))
        return found, [_without_counts(run) for run in turns if run.delivered]

    def get(self, name: str) -> tuple[Thread, list[Run]]:
        """A thread with its turns."""
        found = threads.named(self.store, name, self.principal.id)
        return found, self._shown(threads.turns(self.store, found.id, self.principal.id))

    def page(self, name: str, before: str, limit: int) -> tuple[Thread, list[Run], int]:
        """A thread with its latest turns, or those before a run; and how many are earlier still."""
        found = threads.named(self.store, name, self.principal.id)
        turns = threads.turns(self.store, found.id, self.principal.id)
        turns = turns[: turns.index(before)] if before in turns else turns
        return found, self._shown(turns[-limit:]), max(0, len(turns) - limit)

    def _shown(self, turns: Sequence[str]) -> list[Run]:
        """The turns that can still be shown. Erased ones are skipped."""
        found: list[Run] = []
        for run in turns:
            with suppress(UserError):
                found.append(self.context.run(run))
        return found


def _without_counts(run: Run) -> Run:
    """The run without how much was searched: that was counted over everything that its owner may read."""
    last = run.events[-1]
    if not isinstance(last, Answered):
        return run
    answer = replace(last.answer, searched=(), unread=(), examined=None)
    return Run(run.id, (*run.events[:-1], replace(last, answer=answer)))
