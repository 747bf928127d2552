"""What must hold while things go wrong (safety), and what must come to an end once they no longer do (liveness)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hostile_runs import sound
from sqlalchemy import func, select

from assay.core.codec import dumps, to_json
from assay.core.errors import AssayError
from assay.core.events import Checked, Failed, Stakes
from assay.core.run import Run
from assay.core.types import Verdict
from assay.governance.audit.verify import verify
from assay.index import memory_index
from assay.serve.stream import stored_frames
from assay.store import jobs
from assay.store.documents import READY
from assay.store.runs import records, underway
from assay.store.runs.budgets import SpendingState
from assay.store.schema import payloads, reviews, runs, spending
from assay.store.schema import records as record_table
from assay.workspace.facade import Workspace
from simulation.loop import NOBODY, process
from simulation.machine import Machine
from simulation.world import PEOPLE, World

ENDS_WITHIN = 1200.0  # seconds of simulated time after the last fault
STEPS_AFTER = 400_000  # of the loop, after the last fault


class Promises:
    """Looks at the workspace as a process of its own, to which nothing happens."""

    def __init__(self, world: World, workspace: Workspace) -> None:
        self.world, self.machine, self.workspace = world, world.machine, workspace
        self.worked: dict[tuple[str, str], tuple[float, float, int]] = {}  # (run, process) → since, until, last event
        self.longest: dict[str, float] = {}  # run → seconds at a stretch
        self._hashes: dict[tuple[str, int], str] = {}
        self._looked: dict[
            str, tuple[int, frozenset[str]]
        ] = {}  # run → its length and what was forbidden, at the last look

    # --- safety -------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """What can be seen at any moment."""
        assert process.get() == NOBODY
        for words in (*self._lost(), *self._shown(), *self._spent()):
            self.machine.problem(words)

    def _lost(self) -> Iterator[str]:
        """What was recorded once is there for good, and what was shown was recorded."""
        table = record_table.c
        found = {
            (row.run, row.seq): (row.hash, row.kind)
            for row in self.workspace.store.rows(select(table.run, table.seq, table.hash, table.kind))
        }
        for place, known in self._hashes.items():
            if place not in found or found[place][0] != known:
                yield f"record {place[1]} of {place[0]} is lost"
        self._hashes |= {place: hash for place, (hash, _) in found.items()}
        for place, kind in self.world.promised.seen.items():
            if found.get(place, ("", ""))[1] != kind:
                yield f"event {place[1]} of {place[0]} ({kind}) was shown and is not recorded"

    def _shown(self) -> Iterator[str]:
        """Nobody sees anything of a document that they may not read."""
        lengths = Counter(run for run, _ in self._hashes)
        for who in PEOPLE:
            forbidden = frozenset(self.world.promised.forbidden(who.id))
            own = self.workspace.for_principal(who)
            views = [("the list of documents", dumps([[each.name, each.title] for each in own.documents.listing()]))]
            for run in [run for run, asker in self.world.promised.runs.items() if asker == who.id]:
                now = lengths[run], forbidden
                if self._looked.get(run) != now:
                    self._looked[run] = now
                    views += self._views(own, run)
            yield from (
                f"{where} shows {who.id} the text {mark}"
                for where, words in views
                for mark in forbidden
                if mark in words
            )

    @staticmethod
    def _views(own: Workspace, run_id: str) -> Iterator[tuple[str, str]]:
        try:
            run = own.questions.run_for_asker(run_id)
            frames = stored_frames(own, run_id, -1)
        except AssayError:
            return
        yield f"run {run_id}", dumps([to_json(each) for each in run.events])
        yield f"the stream of {run_id}", "".join(frame.body for frame in frames)

    def _spent(self) -> Iterator[str]:
        """No run has more requests than it may make, and no person more in a day."""
        settings = self.workspace.settings
        counted = select(spending.c.run, func.count()).where(spending.c.state != SpendingState.aside.value)
        for run, calls in self.workspace.store.rows(counted.group_by(spending.c.run)):
            asked = run in self.world.promised.questions  # otherwise a synthesis, or nobody was told what it is
            most = settings.budget_run_calls if asked else max(settings.budget_run_calls, settings.synthesis_calls)
            if calls > most:
                yield f"run {run} made {calls} requests, and {most} are its limit"
        by_day = select(spending.c.who, spending.c.day, func.count())
        for who, day, calls in self.workspace.store.rows(by_day.group_by(spending.c.who, spending.c.day)):
            if settings.budget_day_calls and calls > settings.budget_day_calls:
                yield f"{who} made {calls} requests on {day}, and {settings.budget_day_calls} are the limit"

    def delivered(self, own: Workspace, run: Run) -> None:
        """An answer is being shown for the first time."""
        if run.asked.brief is None and not run.withheld and run.answer is not None:
            for fault in sound(run, own):
                self.machine.problem(f"the answer of {run.id}: {fault}")

    # --- the end ------------------------------------------------------------------------------------------------------

    def _ended(self) -> list[str]:
        """What has not ended yet."""
        store = self.workspace.store
        left = [f"run {each.run} of {each.process or 'nobody'}" for each in underway.listing(store)]
        left += [f"job {each.id} of {each.process or 'nobody'}" for each in jobs.unfinished(store)]
        listed = {each.run for each in underway.listing(store)}
        undelivered = store.scalars(select(runs.c.id).where(~runs.c.delivered))
        return left + [why for run_id in undelivered if run_id not in listed and (why := self._at_rest(run_id))]

    def _at_rest(self, run_id: str) -> str:
        """Why a run that nobody works on is not at an end; empty if it is."""
        if run_id not in self.world.promised.runs:
            return ""  # the server died before it could say that it had begun
        store, table = self.workspace.store, record_table.c
        last = store.scalar(select(table.kind).where(table.run == run_id).order_by(table.seq.desc()).limit(1))
        rejected = select(reviews.c.id).where(reviews.c.run == run_id, reviews.c.state == "rejected")
        question = select(payloads.c.run).where(payloads.c.run == run_id, payloads.c.seq == 0)
        if store.first(question) is None:
            return ""  # erased as a whole, with a document that its conversation speaks of
        rests = last in records.IDLE or (last == "Reviewed" and store.first(rejected) is not None)
        return "" if rests else f"run {run_id}, which nobody works on, after {last}"

    async def come_to_an_end(self) -> None:
        """Once faults have stopped: everything ends, in bounded time and steps."""
        began, steps = self.machine.clock[0], self.machine.loop.steps
        while left := self._ended():
            if self.machine.clock[0] - began > ENDS_WITHIN:
                self.machine.problem(f"not at an end after {ENDS_WITHIN:.0f} s without faults: {', '.join(left[:3])}")
                return
            if self.machine.loop.steps - steps > STEPS_AFTER:
                self.machine.problem(f"not at an end after {STEPS_AFTER} steps without faults: {', '.join(left[:3])}")
                return
            await asyncio.sleep(5.0)

    def at_the_end(self) -> None:
        """What holds when nothing goes on any more, and an interrupted erasure was finished by whoever opens the workspace."""
        self.machine.open().close()
        self.workspace = self.machine.open()  # the originals may have moved
        self.look()
        store = self.workspace.store
        for fault in verify(store, None).faults:
            self.machine.problem(f"the record: {fault.words}")
        held = store.rows(select(underway.underway.c.run, underway.underway.c.process))
        waiting = set(store.scalars(select(reviews.c.run).where(reviews.c.state == "waiting")))
        for run, owner in held:
            if run not in waiting:
                self.machine.problem(f"{owner or 'the list'} still holds {run}")
        ends: Counter[str] = Counter()
        for run_id, who in self.world.promised.runs.items():
            owner = next(each for each in PEOPLE if each.id == who)
            own = self.workspace.for_principal(owner)
            try:
                run = own.run(run_id)
            except AssayError:
                ends["erased"] += 1
                continue
            ends[run.kinds[-1]] += 1
            self._checked(run)
            self._in_time(run)
        for words in (*self._read(), *self._left()):
            self.machine.problem(words)
        self.machine.note(f"ends {sorted(ends.items())}")

    def _read(self) -> Iterator[str]:
        """The files of an upload that was accepted were read, or it says why not; and each document has its original."""
        store, texts = self.workspace.store, self.world.promised.texts
        for who in PEOPLE:
            own = self.workspace.for_principal(who)
            entries = {entry.name: entry for entry in own.documents.listing([f"notes of {who.id}"])}
            for job, marks in self.world.promised.jobs.items():
                if texts[marks[0]].owner == who.id and jobs.get(store, job, who.id).state == jobs.DONE:
                    missing = [
                        mark for mark in marks if texts[mark].there is not False and texts[mark].name not in entries
                    ]
                    yield from (f"upload {job} is done without {texts[mark].name}" for mark in missing)
            for entry in entries.values():
                if entry.state == READY and not own.blobs.has(entry.digest):
                    yield f"the original of {entry.name} is missing"

    def _left(self) -> Iterator[str]:
        """Nothing is left of what was erased, anywhere in the workspace."""
        erased = [mark for mark, text in self.world.promised.texts.items() if text.there is False]
        own = (self.machine.folder, self.machine.folder.parent / "originals elsewhere")
        places = {str(file): file.read_bytes() for each in own for file in each.rglob("*") if file.is_file()}
        for (folder, base), index in memory_index._INDEXES.items():
            if folder == self.machine.folder.resolve():
                places[f"the index of {base}"] = " ".join(row.passage.text for row in index.held.values()).encode()
        for mark in erased:
            found = [Path(name).name for name, content in places.items() if mark.encode() in content]
            if found:
                yield f"the text {mark} was erased and is still in {', '.join(sorted(found))}"

    def _checked(self, run: Run) -> None:
        """Every claim that was delivered was checked in this run and approved where it had to be, and nothing broke down."""
        for event in run.events:
            if isinstance(event, Failed) and ("broke down" in event.detail or event.error == "Stalled"):
                self.machine.problem(f"run {run.id}: {event.error}: {event.detail}")
        reviewed = run.asked.stakes is Stakes.high or run.asked.reviewed
        if run.delivered and reviewed and run.id not in self.world.promised.approved:
            self.machine.problem(f"run {run.id} was delivered and nobody has approved it")
        if run.answer is None or run.asked.brief is not None:
            return
        passed = {each.claim for each in run.events if isinstance(each, Checked)}
        passed = {claim for claim in passed if claim.verdict is Verdict.supported}
        for claim in run.answer.claims:
            if claim not in passed and claim.quote is None:
                self.machine.problem(f"run {run.id} delivered “{claim.words}” unchecked")

    def _in_time(self, run: Run) -> None:
        """No process has worked on a run for longer than it may take, and its last requests. The time between the death of a
        process and the next one is nobody's."""
        settings = self.workspace.settings
        most = settings.synthesis_seconds if run.asked.brief else settings.budget_run_seconds
        took = self.longest.get(run.id, 0.0)
        if took > most + settings.llm_timeout:
            self.machine.problem(f"run {run.id} was worked on for {took:.0f} s, and {most:.0f} s are its limit")


def witnessed(machine: Machine, world: World, promises: Promises, own: Workspace, run: Run) -> None:
    """A server has an event to show."""
    kind, now, seq = type(run.events[-1]).__name__, machine.clock[0], len(run.events) - 1
    began, _, before = promises.worked.get((run.id, process.get()), (now, now, seq - 1))
    if before != seq - 1 or world.promised.seen.get((run.id, before)) in records.IDLE:  # it rested meanwhile
        began = now
    promises.worked[run.id, process.get()] = began, now, seq
    promises.longest[run.id] = max(promises.longest.get(run.id, 0.0), now - began)
    machine.note(f"shows {run.id} {len(run.events) - 1} {kind}")
    world.promised.seen[run.id, len(run.events) - 1] = kind
    if kind == "Answered":
        promises.delivered(own, run)
