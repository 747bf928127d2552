"""Runs under way: each is carried on in the engine whoever watches, and anybody of right can watch from any event on.

What was recorded is the stream: a watcher who is behind reads from the store, at their own pace, and only the newest events of
a run are kept in memory, once, however many watch.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from assay.core.access import Principal
from assay.core.codec import dumps, to_json
from assay.core.errors import AssayError, Missing, StoreError, UserError
from assay.core.events import Asked, AwaitingReview, Event, Failed, Withheld
from assay.core.events.describe import describe
from assay.core.run import Run
from assay.governance.review.visibility import redact_event
from assay.serve.engine import BackgroundLoop
from assay.serve.schemas.run_schemas import RunState
from assay.store import documents
from assay.store.database import Store
from assay.store.runs import budgets, records, reviews, underway, visibility
from assay.store.runs.records import documents_in
from assay.workspace.facade import Workspace

log = logging.getLogger("assay.serve")

BUFFERED_FRAMES = 64  # events of a run under way that are at hand without a look at the disk
READ_BATCH = (
    16  # events that are read from the disk for one watcher: so many are kept for somebody who does not read them
)
HEARTBEAT = 15.0  # seconds of silence after which a watcher gets a sign of life
CANCELLED = "cancelled"  # what a run failed with, where the person who asked stopped it
STOPPED = "Stopped by the person who asked."
REMOVED = "removed"  # what a run failed with, where the person who asked is no member any more
GONE = "The person who asked was removed."

Steps = AsyncIterator[tuple[Run, Event]]


@dataclass(frozen=True, slots=True)
class EventFrame:
    """One event as it is sent: `body` is an `EventShape` as JSON."""

    seq: int
    kind: str
    body: str


@dataclass
class ActiveRun:
    """A run under way."""

    id: str
    who: str
    run: Run
    task: asyncio.Task[None] | None = None
    frames: deque[EventFrame] = field(default_factory=lambda: deque(maxlen=BUFFERED_FRAMES))
    titles: dict[str, str] = field(default_factory=dict)
    parked: bool = False  # stopped with the server: it stays listed, for the one that starts next


class LiveRuns:
    """The runs that this process carries on. Methods are called from the loop that serves; the work is in the engine."""

    def __init__(
        self, engine: BackgroundLoop, present: Callable[[Principal], Principal | None] = lambda principal: principal
    ) -> None:
        self._engine = engine
        self._present = present  # a person as they are now: groups may be left while a run goes on; none was removed
        self._under: dict[str, ActiveRun] = {}
        self._due: dict[str, Principal] = {}  # what an earlier server was cut off from, until it is taken up
        self._watchers: dict[str, set[asyncio.Event]] = {}
        self._lock = threading.Lock()
        self._serving: asyncio.AbstractEventLoop | None = None
        self.closing = False  # nothing new is taken on
        self._closed = False  # and nothing goes on any more

    def serve_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watchers wait on this loop."""
        self._serving = loop

    # Carrying on

    async def begin(self, workspace: Workspace, steps: Steps) -> Run:
        """Start a run, and give it back once its first event is on disk; it goes on whoever leaves."""
        return await self._engine.run(self._begin(workspace, steps))

    async def _begin(self, workspace: Workspace, steps: Steps) -> Run:
        self._open()
        run, event = await anext(steps)
        underway.begin(workspace.store, run.id, workspace.principal)
        own = ActiveRun(run.id, workspace.principal.id, run)
        self._add(workspace, own, run, event)
        with self._lock:
            self._under[run.id] = own
        self._start(workspace, own, steps)
        return run

    def _open(self) -> None:
        if self.closing:
            raise StoreError("The server is closing. Try again in a moment.")

    def _start(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        """From here on the run is carried on. No await stands between its being listed and this, so that whoever finds it
        listed also finds its task."""
        own.task = asyncio.ensure_future(self._carry(workspace, own, steps))
        own.parked = self.closing  # the server began to close while it was being asked: the next one takes it up
        if own.parked:
            asyncio.get_running_loop().call_soon(own.task.cancel)

    async def resume(self, workspace: Workspace, run_id: str, choice: str = "", words: str = "") -> None:
        """Carry a run on that waits, has failed or was cut off. What cannot be is said here, before anything is done."""
        await self._engine.run(self._resume(workspace, run_id, choice, words))

    async def _resume(
        self, workspace: Workspace, run_id: str, choice: str = "", words: str = "", *, if_due: bool = False
    ) -> None:
        # No await in here: of two who click at once the second finds it under way.
        self._open()
        run = workspace.run(run_id)  # says that there is none, where there is none of theirs
        if if_due and run_id not in self._due:
            return  # somebody has stopped it, or carries it on already
        if run_id in self._under:
            raise UserError(f"Run {run_id} is under way already.")
        if run.delivered:
            raise UserError(f"Run {run_id} is delivered: there is nothing to carry on.")
        if run.held:
            raise UserError(f"Run {run_id} waits for a reviewer: there is nothing to carry on before that.")
        if run.rejected:
            raise UserError(f"Run {run_id} was rejected in review; it cannot be carried on. Ask again.")
        workspace.check_choice(run, choice, words)  # says what does not fit
        underway.begin(workspace.store, run_id, workspace.principal)
        own = ActiveRun(run_id, workspace.principal.id, run)
        with self._lock:
            self._under[run_id] = own
            self._due.pop(run_id, None)
        self._start(workspace, own, workspace.resume(run_id, choice, words))

    async def go_on(self, workspace: Workspace, run_id: str) -> None:
        """Carry a run on that a reviewer has decided on, as whoever asked; it may just be coming to rest."""
        await self._engine.run(self._go_on(workspace, run_id))

    async def _go_on(self, workspace: Workspace, run_id: str) -> None:
        own = self._under.get(run_id)
        if own is not None and own.task is not None:
            await asyncio.wait([own.task])
        await self._resume(workspace, run_id)

    async def _carry(self, workspace: Workspace, own: ActiveRun, steps: Steps) -> None:
        try:
            async for run, event in steps:
                own.run = run
                now = self._present(workspace.principal)
                if now is None:
                    await cast(AsyncGenerator[Any], steps).aclose()
                    self._failed(workspace, own, REMOVED, GONE)
                    break
                workspace.principal = now
                self._add(workspace, own, run, event)
        except asyncio.CancelledError:
            if not own.parked:
                self._failed(workspace, own, CANCELLED, STOPPED)
        except StoreError as error:
            log.error("run %s: %s", own.id, error)
            if not self._elsewhere(workspace, own):
                self._failed(workspace, own, type(error).__name__, str(error))
        except AssayError as error:
            self._failed(workspace, own, type(error).__name__, str(error))
        except Exception as error:
            log.exception("run %s broke down", own.id)
            self._failed(workspace, own, type(error).__name__, "Assay broke down; the log says where.")
        finally:
            if own.run.delivered or not (own.parked or own.run.held):  # what is held goes on when it is decided
                self._ended(workspace, own)
            with self._lock:
                self._under.pop(own.id, None)
            self._wake(own.id)

    @staticmethod
    def _ended(workspace: Workspace, own: ActiveRun) -> None:
        try:
            underway.end(workspace.store, own.id)
        except AssayError as error:  # the next server finds it listed, and that there is nothing to carry on
            log.error("the end of run %s could not be noted: %s", own.id, error)

    @staticmethod
    def _elsewhere(workspace: Workspace, own: ActiveRun) -> bool:
        """Whether somebody else carries the run on, in a terminal perhaps: then its end is not ours to record."""
        try:
            return len(workspace.run(own.id).events) > len(own.run.events)
        except AssayError:
            return True

    def _failed(self, workspace: Workspace, own: ActiveRun, error: str, detail: str) -> None:
        """The run's ending, on record: what was recorded and not yet given out comes first."""
        try:
            budgets.mark_lost(workspace.store, own.id)  # what was in flight may have been paid for
            run = workspace.run(own.id)
            at_rest = run.delivered or run.failed or run.waiting or run.held or run.rejected
            if not at_rest:  # a question to a person is not taken back
                workspace.record(run, Failed(error, detail))
        except AssayError:
            log.exception("the ending of run %s could not be recorded", own.id)

    def _add(self, workspace: Workspace, own: ActiveRun, run: Run, event: Event) -> None:
        """Have the event at hand for who watches. It is on disk: where nobody does, or somebody comes now, it is read there."""
        if own.id not in self._watchers:
            with self._lock:
                own.frames.clear()  # those at hand follow each other without a gap
            return
        seq = len(run.events) - 1
        at, watched = records.recorded_at(workspace.store, own.id, seq), workspace.may_need_review(own.id)
        frame = build_frame(workspace, seq, at, event, own.titles, watched=watched)
        with self._lock:
            own.frames.append(frame)
        self._wake(own.id)

    async def cancel(self, workspace: Workspace, run_id: str) -> None:
        """Stop a run now. It is recorded as stopped and can be carried on later."""
        await self._engine.run(self._cancel(workspace, run_id))

    async def _cancel(self, workspace: Workspace, run_id: str) -> None:
        own = self._under.get(run_id)
        if own is None or own.task is None or own.who != workspace.principal.id:
            self._let_be(workspace, run_id)
            return
        await asyncio.sleep(0)  # one that was cancelled before its first step would never get to its ending
        own.task.cancel()
        await asyncio.wait([own.task])

    def _let_be(self, workspace: Workspace, run_id: str) -> None:
        """A run that is not under way has nothing to stop; one that was to be taken up is not."""
        run = workspace.run(run_id)  # says that there is none, where there is none of theirs
        with self._lock:
            due = self._due.pop(run_id, None)
        if due is not None:
            own = ActiveRun(run_id, workspace.principal.id, run)
            self._failed(workspace, own, CANCELLED, STOPPED)
            self._ended(workspace, own)
            self._wake(run_id)
        elif not (run.delivered or run.failed or run.waiting or run.held or run.rejected):
            raise UserError(f"Run {run_id} is not under way here.")

    def under_way(self, run_id: str) -> bool:
        """Whether a run is carried on here, or will be in a moment."""
        with self._lock:
            return run_id in self._under or run_id in self._due

    def count_for(self, who: str) -> int:
        """How many runs of a person are under way."""
        with self._lock:
            return sum(own.who == who for own in self._under.values())

    def expect(self, store: Store) -> None:
        """Look up what an earlier server was cut off from, before anybody is served: who comes back to watch such a run is
        not told that it has come to rest."""
        decided = {run: Principal(who) for run, who in reviews.undelivered(store)}
        with self._lock:
            self._due = decided | dict(underway.listing(store))

    async def take_up(self, store: Store, for_principal: Callable[[Principal], Workspace]) -> int:
        """Carry those runs on, each as the person it is for."""
        taken = 0
        for run_id, principal in list(self._due.items()):
            if self.closing:
                break  # the rest is left to the next server
            try:
                workspace = await asyncio.to_thread(for_principal, principal)
                await self._engine.run(self._resume(workspace, run_id, if_due=True))
                taken += 1
            except AssayError as error:  # delivered, or waiting, when the last server died; or erased since
                if self.closing:
                    continue
                log.info("run %s was not taken up again: %s", run_id, error)
                with self._lock:
                    self._due.pop(run_id, None)
                    left = run_id not in self._under
                if left:
                    await asyncio.to_thread(underway.end, store, run_id)
                self._wake(run_id)
        return taken

    async def park(self, grace: float) -> None:
        """No more work: runs have a moment to end, the others stop where they are and stay listed. Watchers are let go."""
        self.closing = True
        await self._engine.run(self._park(grace))
        self._closed = True
        for run_id in list(self._watchers):
            self._woken(run_id)

    async def _park(self, grace: float) -> None:
        with self._lock:
            under = [own for own in self._under.values() if own.task is not None]
        tasks = {own.task: own for own in under if own.task is not None}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace)
            for task in late:
                tasks[task].parked = True
                task.cancel()
            if late:
                await asyncio.wait(late)

    # Watching

    def _wake(self, run_id: str) -> None:
        if self._serving is not None and run_id in self._watchers:
            self._serving.call_soon_threadsafe(self._woken, run_id)

    def _woken(self, run_id: str) -> None:
        for each in self._watchers.get(run_id, ()):
            each.set()

    async def follow(self, workspace: Workspace, run_id: str, after: int = -1) -> AsyncIterator[EventFrame | None]:
        """The events of a run from after this one on: each once, in order, as they come, until it ends or the server closes.
        Nothing is given out for a sign of life. How it ended is in the store."""
        woken = asyncio.Event()
        self._watchers.setdefault(run_id, set()).add(woken)
        try:
            while True:
                woken.clear()
                ongoing = self.under_way(run_id)  # asked before reading: what is recorded until the end is then read
                frames = self._at_hand(run_id, workspace.principal.id, after)
                if frames is None or (frames and await asyncio.to_thread(self._closed_to, workspace, run_id)):
                    frames = await asyncio.to_thread(self._behind, workspace, run_id, after)
                for frame in frames:
                    yield frame
                    after = frame.seq
                if frames:
                    continue
                if self._closed or not ongoing:
                    return
                try:
                    await asyncio.wait_for(woken.wait(), HEARTBEAT)
                except TimeoutError:
                    yield None
        finally:
            own = self._watchers.get(run_id, set())
            own.discard(woken)
            if not own:
                self._watchers.pop(run_id, None)

    def _behind(self, workspace: Workspace, run_id: str, after: int) -> list[EventFrame]:
        self._as_now(workspace)
        return stored_frames(workspace, run_id, after, READ_BATCH)

    def _as_now(self, workspace: Workspace) -> None:
        """A stream may last for hours. Who was removed meanwhile is nobody, and reads nothing."""
        workspace.principal = self._present(workspace.principal) or Principal("")

    def _closed_to(self, workspace: Workspace, run_id: str) -> bool:
        """Whether a run speaks of something that this person may not read any more: then memory shows too much."""
        self._as_now(workspace)
        return visibility.hidden_since(workspace.store, run_id, workspace.scope()) is not None

    def _at_hand(self, run_id: str, who: str, after: int) -> list[EventFrame] | None:
        """The frames after this one, if all of them are in memory; none where the store has to be asked."""
        with self._lock:
            own = self._under.get(run_id)
            if own is None or own.who != who:
                return None
            frames = list(own.frames)
        if frames and frames[0].seq <= after + 1:
            return [frame for frame in frames if frame.seq > after]
        return None


def stored_frames(workspace: Workspace, run_id: str, after: int, most: int = 200) -> list[EventFrame]:
    """What a watcher has not seen, from the store, in the words that this person may read now."""
    scope = workspace.scope()
    texts = documents.texts_for(workspace.store, scope)
    found = records.events_since(workspace.store, run_id, workspace.principal.id, texts, scope, after, most)
    if not found and after < 0:
        raise Missing(f"There is no run called {run_id!r}. `assay runs` lists them.")
    titles: dict[str, str] = {}
    watched = workspace.may_need_review(run_id)
    return [build_frame(workspace, record.seq, record.at, event, titles, watched=watched) for record, event in found]


def withheld_frame(seq: int, at: str, event: Withheld) -> EventFrame:
    """What is left of an event that this person does not see: that there was one."""
    words = describe(event)
    body = {
        "seq": seq,
        "kind": event.kind,
        "title": words.title,
        "family": words.family,
        "at": at,
        "line": event.why,
        "event": {},
        "documents": {},
    }
    return EventFrame(seq, event.kind, dumps(body))


def build_frame(
    workspace: Workspace, seq: int, at: str, event: Event, titles: dict[str, str], *, watched: bool = False
) -> EventFrame:
    """An event as it is sent, with the titles of the documents that it speaks of. Where a reviewer has to look at the answer
    first, or may have to (`watched`), whoever asked is not sent its draft."""
    if watched:
        event = redact_event(event)
    if isinstance(event, Withheld):
        return withheld_frame(seq, at, event)
    if isinstance(event, Asked):  # knowledge bases that there were are told of only where they are there still
        names = {base.name for base in workspace.scope().bases}
        event = replace(event, about={name: said for name, said in event.about.items() if name in names})
    plain = _unscored(to_json(event))
    if watched and isinstance(event, AwaitingReview):
        plain.pop("answer")
    spoken_of = documents_in(plain)
    if unknown := spoken_of - titles.keys():
        titles |= dict.fromkeys(unknown, "") | documents.titles(workspace.store, unknown, workspace.scope())
    kind, words = type(event).__name__, describe(event)
    body = {
        "seq": seq,
        "kind": kind,
        "title": words.title,
        "family": words.family,
        "at": at,
        "line": words.line,
        "event": plain,
        "documents": {doc: titles[doc] for doc in sorted(spoken_of) if titles[doc]},
    }
    return EventFrame(seq, kind, dumps(body))


def _unscored(plain: dict[str, Any]) -> dict[str, Any]:
    """The same without what an index counted, over documents too that this person may not read: ranks are told, and evidence
    on a scale of eleven steps."""
    for found in plain.get("found", ()):
        found.pop("score", None)
    for piece in plain.get("evidence", ()):
        piece["score"] = round(piece["score"])
    return plain


def run_state(run: Run, under_way: bool) -> RunState:
    if run.delivered:
        return RunState.delivered
    if under_way:
        return RunState.running
    if run.waiting:
        return RunState.waiting
    if run.held:
        return RunState.held
    if run.rejected:
        return RunState.rejected
    if run.failed:
        return RunState.cancelled if run.failed.error == CANCELLED else RunState.failed
    return RunState.parked
