"""The machine that Assay runs on in the simulation: processes that die, a disk and a network that fail, a clock, and chance.

All of it comes from one seed. `with machine.installed():` puts it in the place of the real ones.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import secrets
import sqlite3
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

import filelock
import httpx
from doubles import WordAnswers
from sqlalchemy.exc import OperationalError

from assay.core.errors import AssayError
from assay.core.settings import write_settings
from assay.evaluate.plain_text import WordEmbedder
from assay.index import memory_index
from assay.ingest import workers
from assay.ingest.parsed import Parsed
from assay.models.http import EndpointClient
from assay.serve import background, housekeeping, state, upload_worker
from assay.serve.state import ServeOptions, Server
from assay.store import database, dialect
from assay.store.blobs import FolderBlobs
from assay.store.database import Store
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services import records
from simulation.loop import NOBODY, Killed, SimulatedLoop, process
from simulation.model import SimulatedModel

T = TypeVar("T")
MORNING = datetime(2026, 3, 2, 8, tzinfo=UTC)
ADDRESS = "http://127.0.0.1:9/v1"
ATTEMPTS = 20  # of a move, until one is not killed
HEARD = 0.1  # seconds until a process has heard of what another has written


class Gone(AssayError):
    """The process that was asked has died."""


@dataclass
class Faults:
    """How often things go wrong: the chance at each write, and the seconds between two kills, on average."""

    disk: float = 0.0
    flush: float = 0.0
    at_write: float = 0.0
    kill_every: float = 0.0
    stop_every: float = 0.0

    @property
    def none(self) -> bool:
        return not (self.disk or self.flush or self.at_write or self.kill_every or self.stop_every)


@dataclass(eq=False)
class Process:
    """One server process: it takes requests and works on what is due."""

    name: str
    context: Context
    server: Server | None = None
    ready: bool = False
    broken: bool = False  # its disk failed once, so that it trusts nothing it writes any more
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[asyncio.Future[Any]] = field(default_factory=list)

    @property
    def workspace(self) -> Workspace:
        assert self.server is not None
        return self.server.workspace


class Machine:
    def __init__(self, seed: str, folder: Path, places: int = 2, **settings: Any) -> None:
        self.seed, self.folder = seed, folder
        self.clock = [0.0]
        self.random = Random(f"{seed} machine")
        self.loop = SimulatedLoop(Random(f"{seed} order"), self.clock)
        self.model = SimulatedModel(Random(f"{seed} model"), self.note)
        self.faults = Faults()
        self.settings = settings
        self.places: dict[int, Process | None] = dict.fromkeys(range(places))
        self.trace: list[str] = []
        self.problems: list[str] = []
        self.dead: set[str] = set()
        self.paused = False  # nobody starts a server again
        self._mover, self._dies = "", False
        self._starts = 0
        self._buried: list[Any] = []
        self._locks: dict[str, list[filelock.BaseFileLock]] = {}
        self._told: set[str] = set()
        self._chance = Random(f"{seed} ids")
        self._thread = threading.get_ident()

    # --- what is remembered of a simulation ---------------------------------------------------------------------------

    def note(self, words: str) -> None:
        self.trace.append(f"{self.clock[0]:.4f} {process.get()} {words}")

    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]

    def problem(self, words: str) -> None:
        if words not in self.problems:
            self.problems.append(words)

    # --- processes ----------------------------------------------------------------------------------------------------

    @property
    def alive(self) -> list[Process]:
        return [each for each in self.places.values() if each is not None and each.ready]

    def start(self, place: int) -> None:
        self._starts += 1
        context = copy_context()
        name = f"place-{place} {self._starts}"
        context.run(process.set, name)
        born = self.places[place] = context.run(lambda: Process(name, context))
        self.loop.create_task(self._live(place, born), context=context)

    async def _live(self, place: int, own: Process) -> None:
        """The life of a process, as `assay serve` with sign-in."""
        try:
            workspace = self.open()
            own.server = Server(
                workspace,
                ServeOptions(auth="keys"),
                SharedLoop(self.loop),
                process=own.name,
                most_runs=3,
                shared=True,
                grace=self.random.choice((0.0, 5.0)),
            )
            self.note("starts")
            async with housekeeping.sealing(own.server):
                own.ready = True
                await housekeeping.work_until(own.server, own.stop)
            workspace.close()
            self.note("stops")
        except (AssayError, OSError) as error:  # it could not be opened: whoever runs the server tries again
            self.note(f"did not live: {type(error).__name__}")
        except Exception as error:
            self.problem(f"a server broke down: {error!r}")
            raise
        self._remove(place, own)

    def open(self) -> Workspace:
        workspace = open_workspace(self.folder, **self.settings)
        workspace.embedder = WordEmbedder()
        workspace.parts.answer_model = WordAnswers()
        return workspace

    def kill(self, own: Process) -> None:
        """Nothing of the process runs any more, and its locks are free."""
        place = next((place for place, each in self.places.items() if each is own), None)
        if place is None:
            return
        self.note(f"kill {own.name}")
        self.dead.add(own.name)
        self.loop.kill(own.name)
        self._buried.append(own)
        for lock in self._locks.pop(own.name, []):
            lock.release(force=True)
        self._remove(place, own)

    def _remove(self, place: int, own: Process) -> None:
        own.ready = False
        for call in own.calls:
            if not call.done():
                call.set_exception(Gone("The server is gone."))
        if self.places[place] is own:
            self.places[place] = None
            context = copy_context()
            context.run(process.set, NOBODY)
            self.loop.call_later(self.random.uniform(0.1, 40.0), self._again, place, context=context)

    def _again(self, place: int) -> None:
        if self.places[place] is None and not self.paused:
            self.start(place)

    async def call(self, own: Process, work: Callable[[Workspace], Coroutine[Any, Any, T]], who: Any) -> T:
        """Have a process do something for a person. `Gone` if it dies meanwhile."""
        waits: asyncio.Future[T] = self.loop.create_future()
        own.calls.append(waits)

        async def done() -> None:
            try:
                result = await work(own.workspace.for_principal(who))
            except Exception as error:
                if not waits.done():
                    waits.set_exception(error)
            else:
                if not waits.done():
                    waits.set_result(result)

        self.loop.create_task(done(), context=own.context.copy())
        try:
            return await waits
        finally:
            own.calls.remove(waits)

    async def move_originals(self, to: Path) -> None:
        """Stop every server, move the originals with the command that does it, as often as it takes, and go on."""
        self.paused = True
        for own in self.alive:
            own.stop.set()
        while any(self.places.values()):
            await asyncio.sleep(1.0)
            for own in self.alive:
                own.stop.set()
        for attempt in range(1, ATTEMPTS + 1):
            self._mover = f"migration {attempt}"
            context = copy_context()
            context.run(process.set, self._mover)
            self._dies = attempt < ATTEMPTS
            with suppress(Killed, AssayError):
                context.run(self._move, to)
                self.note(f"moved at attempt {attempt}")
                break
            self.dead.add(self._mover)
            for lock in self._locks.pop(self._mover, []):
                lock.release(force=True)
        self.paused = False
        for place in self.places:
            self._again(place)

    def _move(self, to: Path) -> None:
        """It may die while it copies. A move that dies after that leaves the former copies to the person."""
        with self.open() as opened:
            opened.records.copy_originals(str(to))
            self._dies = False
            write_settings(opened.path, {"blobs": str(to)})
            opened.records.drop_originals()

    async def mishaps(self) -> None:
        """Kill and stop processes now and then, for as long as there are faults."""
        while not self.faults.none:
            every = [each for each in (self.faults.kill_every, self.faults.stop_every) if each]
            if not every:
                return
            await asyncio.sleep(self.random.expovariate(sum(1 / each for each in every)))
            if self.faults.none or not self.alive:
                continue
            own = self.random.choice(self.alive)
            if self.random.random() < (1 / every[0]) / sum(1 / each for each in every) and self.faults.kill_every:
                self.kill(own)
            else:
                self.note(f"stop {own.name}")
                own.stop.set()

    # --- the store ----------------------------------------------------------------------------------------------------

    def _living(self) -> str:
        name = process.get()
        if name in self.dead:
            raise Killed
        return name

    def _die(self) -> None:
        name = process.get()
        if name == self._mover and self._dies:
            self.dead.add(name)
            raise Killed
        own = next((each for each in self.places.values() if each is not None and each.name == name), None)
        if own is not None:
            self.kill(own)
            raise Killed

    def _at_write(self, when: str) -> None:
        if process.get() != NOBODY and self.faults.at_write and self.random.random() < self.faults.at_write / 2:
            self.note(f"dies {when} a write")
            self._die()

    def _full(self) -> bool:
        return process.get() != NOBODY and bool(self.faults.disk) and self.random.random() < self.faults.disk

    @contextmanager
    def _write(self, store: Store) -> Iterator[Any]:
        name = self._living()
        shared = database._shared.get()
        if shared is not None and shared.engine is store.engine:
            with WRITE(store) as connection:
                yield connection
            return
        self._at_write("before")
        with WRITE(store) as connection:
            yield connection
            if self._full():
                self.note("disk full")
                raise OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full"))
        if name == process.get():
            self._at_write("after")
        self._tell()

    @contextmanager
    def _read(self, store: Store) -> Iterator[Any]:
        self._living()
        with READ(store) as connection:
            yield connection

    def _tell(self) -> None:
        """Every process hears of a write, a little later."""
        for own in self.alive:
            if own.name not in self._told and own.server is not None:
                self._told.add(own.name)
                self.loop.call_later(self.random.uniform(0, HEARD), self._heard, own, context=own.context)

    def _heard(self, own: Process) -> None:
        self._told.discard(own.name)
        if own.server is not None:
            own.server.changed.set()

    async def _flushed(self, flush: dialect.FileFlush) -> None:
        await asyncio.sleep(self.random.uniform(0, 0.01))
        self._living()
        flush.now()

    def _sync(self, file: int) -> None:
        if process.get() != NOBODY and self.faults.flush and self.random.random() < self.faults.flush:
            self.note("flush fails")
            own = next((each for each in self.places.values() if each is not None and each.name == process.get()), None)
            if own is not None:
                own.broken = True
            raise OSError(5, "Input/output error")

    def _at_file(self, change: Callable[..., T]) -> Callable[..., T]:
        """The process may die before or after an original is put or deleted."""

        def changed(*given: Any) -> T:
            self._living()
            self._at_write("before")
            done = change(*given)
            self._at_write("after")
            return done

        return changed

    # --- clock, chance, locks -------------------------------------------------------------------------------------------

    def now(self) -> str:
        moment = MORNING + timedelta(seconds=self.clock[0])
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _seconds(self) -> float:
        return MORNING.timestamp() + self.clock[0] if self._is_here() else TIME()

    def _monotonic(self) -> float:
        return self.clock[0] if self._is_here() else MONOTONIC()

    def _sleep(self, seconds: float) -> None:
        if not self._is_here():
            SLEEP(seconds)
        else:
            self.clock[0] += seconds

    def _is_here(self) -> bool:
        """Whether this is the thread of the simulation: others know nothing of it."""
        return threading.get_ident() == self._thread

    def _acquire(self, lock: filelock.BaseFileLock, timeout: Any = None, **how: Any) -> Any:
        """A lock that another process holds is waited for in simulated time: the whole time, since nothing else runs."""
        try:
            held = ACQUIRE(lock, blocking=False)
        except filelock.Timeout:
            patience = lock.timeout if timeout is None else timeout
            if how.get("blocking") is not False:
                assert patience is not None and patience >= 0, f"{lock.lock_file} is waited for without an end"
                self._sleep(patience)
            raise
        self._locks.setdefault(process.get(), []).append(lock)
        return held

    @contextmanager
    def installed(self) -> Iterator[None]:
        """In the place of the real ones."""
        hexed = lambda size=32: self._chance.randbytes(size or 32).hex()  # noqa: E731
        machine, collects = self, gc.isenabled()
        client = httpx.AsyncClient(transport=Network(self), trust_env=False)
        before = asyncio.get_event_loop_policy()
        with ExitStack() as patches:
            for target, name, value in (
                (time, "time", self._seconds),
                (time, "monotonic", self._monotonic),
                (time, "time_ns", lambda: int(self._seconds() * 1e9)),
                (time, "sleep", self._sleep),
                (secrets, "token_hex", hexed),
                (secrets, "token_urlsafe", hexed),
                (secrets, "token_bytes", lambda size=32: self._chance.randbytes(size or 32)),
                (uuid, "uuid4", lambda: uuid.UUID(bytes=self._chance.randbytes(16), version=4)),
                (database, "now", self.now),
                (Store, "write", lambda store: machine._write(store)),
                (Store, "read", lambda store: machine._read(store)),
                (dialect.FileFlush, "wait", lambda flush: machine._flushed(flush)),
                (dialect, "sync_file", self._sync),
                (filelock.BaseFileLock, "acquire", lambda lock, *given, **how: machine._acquire(lock, *given, **how)),
                (state, "ChangeListener", Hears),
                (records, "ThreadPoolExecutor", AtOnce),
                (EndpointClient, "_client", lambda own: client),
                (FolderBlobs, "put", lambda *given: machine._at_file(PUT)(*given)),
                (FolderBlobs, "delete", lambda *given: machine._at_file(DELETE)(*given)),
                (workers, "Sandbox", PlainSandbox),
                (upload_worker, "Sandbox", PlainSandbox),
            ):
                patches.enter_context(patch.object(target, name, value))
            asyncio.set_event_loop_policy(Threads(self))
            gc.collect()
            gc.disable()  # what is cleaned up when depends on nothing but the seed
            try:
                yield
            finally:
                asyncio.set_event_loop_policy(before)
                self._bury()
                if collects:
                    gc.enable()

    def _bury(self) -> None:
        """Let go of everything that was left where it stood. Of what it does then nothing counts any more."""
        self.dead |= {each.name for each in self.places.values() if each is not None}
        for own in [*self._buried, *self.alive]:
            if own.server is not None:
                own.server.workspace.close()
        self.loop.set_exception_handler(lambda *_: None)
        asyncio.events._set_running_loop(self.loop)  # some of it asks for the loop
        with patch.object(sys, "unraisablehook", lambda _: None), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for task in [task for tasks in self.loop.tasks.values() for task in tasks]:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                if not task.done():
                    with suppress(BaseException):
                        task.get_coro().close()  # type: ignore[union-attr]
            task = own = None
            self.loop.tasks.clear()
            self._buried.clear()
            self.places.clear()
            self.loop.forget()
            gc.collect()
        asyncio.events._set_running_loop(None)
        self.loop.close()
        for key in [key for key in memory_index._INDEXES if key[0] == self.folder.resolve()]:
            del memory_index._INDEXES[key]


WRITE, READ = Store.write, Store.read
PUT, DELETE = FolderBlobs.put, FolderBlobs.delete
TIME, MONOTONIC, SLEEP = time.time, time.monotonic, time.sleep
ACQUIRE = filelock.BaseFileLock.acquire


class SharedLoop(background.BackgroundLoop):
    """The background loop of a process, on the loop of the simulation."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Hears:
    """Every process hears of what others write: `Machine._tell`."""

    hears = True

    def __init__(self, store: Store, changed: Callable[[], object]) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class Threads(asyncio.DefaultEventLoopPolicy):
    """The loop of a thread runs at once, to its end, in the same time."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def new_event_loop(self) -> SimulatedLoop:
        return SimulatedLoop(self._machine.loop.random, self._machine.clock, 1e6, inner=True)


class AtOnce:
    """A pool whose only work is done at once, as in a thread."""

    def __init__(self, workers: int = 1) -> None:
        pass

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, work: Callable[..., T], *given: Any) -> asyncio.Future[T]:
        outer = asyncio.events._get_running_loop()
        asyncio.events._set_running_loop(None)
        done: Any = _Result()
        try:
            done.value = work(*given)
        except Exception as error:
            done.error = error
        finally:
            asyncio.events._set_running_loop(outer)
        return done


class _Result:
    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class PlainSandbox:
    """Reads texts that need no parsing, in this process."""

    missing = ()

    def __init__(self, limits: Any = None, **_: Any) -> None:
        pass

    def __enter__(self) -> PlainSandbox:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    async def check_guards(self) -> None:
        pass

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        await asyncio.sleep(0)
        return Parsed(text=data.decode() if isinstance(data, bytes) else data.read_text(), kind="text", title=name)


class Network(httpx.AsyncBaseTransport):
    """The way to the endpoint of the model."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        played = self._machine.model.play(request)
        await asyncio.sleep(played.wait)
        if played.fails:
            raise played.fails
        return httpx.Response(played.status, headers=played.headers, stream=Body(played.pieces))


@dataclass
class Body(httpx.AsyncByteStream):
    """A reply, piece by piece."""

    pieces: Iterator[tuple[float, bytes | Exception]]

    async def __aiter__(self) -> Any:
        for wait, piece in self.pieces:
            await asyncio.sleep(wait)
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        pass
