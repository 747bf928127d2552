"""The state of a server process: the workspace, the background loop and the active runs; and how requests access it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from assay.core.access import LOCAL, Base, Principal
from assay.core.errors import AssayError, Missing
from assay.core.settings import Settings, load_settings
from assay.ingest.parsed import file_limits
from assay.serve.background import BackgroundLoop, enlarge_thread_pool
from assay.serve.limits import RETRY_RUN, RETRY_UPLOAD, ServerLimits, UploadRoom
from assay.serve.live import LiveRuns
from assay.serve.metrics import ServerMetrics
from assay.serve.oidc import OpenIdClient, provider_of
from assay.serve.page_images import PageImageCache
from assay.serve.place_watcher import PlaceWatcher
from assay.serve.run_registry import RunRegistry
from assay.serve.stream import RunFollower
from assay.serve.upload_worker import UploadWorker
from assay.workspace.facade import Workspace
from assay.workspace.stored import ChangeListener

log = logging.getLogger("assay.serve")

INTERNAL_ERROR = "Assay broke down; the log says where."
LOOK, LOOK_AGAIN = 10.0, 1.0  # seconds between two looks at what the server rests on; while it cannot be reached
PATIENCE = 5.0  # seconds for it to answer
GRACE = 5.0  # seconds for runs to end when the server stops


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a request. `csrf` is the token that a change made with a session cookie must send."""

    principal: Principal
    admin: bool = False
    csrf: str = ""


LOCAL_PERSON = Person(LOCAL, admin=True)  # the single user of a local workspace


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How users are authenticated: `off` (one local user), `keys` (passwords and API keys), or `header` (named by a
    proxy)."""

    auth: str = "off"
    token: str = ""  # with `off`: what a request must have; empty for none
    user_header: str = ""
    groups_header: str = ""
    proxies: tuple[str, ...] = ()  # addresses whose user header is trusted
    hosts: tuple[str, ...] = ()  # the server's host names; empty: any, if users sign in
    secure: bool = False  # cookies over HTTPS only


@dataclass
class Server:
    """One per process. The workspace is unrestricted here; a request only gets it scoped to its user."""

    workspace: Workspace
    serving: ServeOptions = field(default_factory=ServeOptions)
    background: BackgroundLoop = field(default_factory=BackgroundLoop)
    live: LiveRuns = field(init=False)
    runs: RunRegistry = field(init=False)
    follower: RunFollower = field(init=False)
    worker: UploadWorker = field(init=False)
    watcher: PlaceWatcher = field(init=False)
    pages: PageImageCache = field(init=False)
    limits: ServerLimits = field(default_factory=ServerLimits)
    problems: tuple[str, ...] = ()  # why the server is not ready, if so
    unreachable: tuple[str, ...] = ()  # what could not be reached at the last look
    _looked: float = float("-inf")
    grace: float = GRACE
    process: str = ""  # the name under which it holds leases; by default that of this process
    works: bool = True  # on runs and uploads; otherwise other processes do
    most_runs: int | None = None  # that it works on at once; None: no limit
    shared: bool = False  # other processes use the workspace too; always so with the state on a server
    stored: Settings = field(init=False)  # without the flags of this process, as last read
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # other processes have written
    listener: ChangeListener | None = None
    metrics: ServerMetrics | None = None  # set if the setting `metrics` is on
    _open_id: OpenIdClient | None = None
    _unnamed_proxy: str = ""

    def __post_init__(self) -> None:
        self.shared = self.shared or bool(self.workspace.settings.state)
        self.stored = load_settings(self.workspace.path)
        self.live = LiveRuns(
            self.background,
            self.present,
            self.process,
            works=self.works,
            most=self.most_runs,
            has_room=self.changed.set,
        )
        self.runs = self.live.runs
        self.follower = RunFollower(self.runs, self.present, self.hears)
        self.worker = UploadWorker(self.background, self.workspace, self.process, shared=self.shared, hears=self.hears)
        self.watcher = PlaceWatcher(self.background, self.process)
        self.pages = PageImageCache(file_limits(self.workspace.settings))

    @property
    def signs_in(self) -> bool:
        """Whether people sign in: then one person's choice of a model concerns others."""
        return self.serving.auth != "off"

    def present(self, principal: Principal) -> Principal | None:
        """An earlier asker with their current groups. If a proxy provides groups, its latest information applies.
        Returns None for a removed user where membership is required; the command-line user is no member and is
        always accepted."""
        if self.serving.auth == "off" or self.serving.groups_header:
            return principal
        member = self.workspace.people.named(principal.id)
        if member is not None:
            return member.principal
        needs_no_member = self.serving.auth != "keys" or principal.id == LOCAL.id
        return Principal(principal.id) if needs_no_member else None

    def read_settings(self) -> None:
        """Follow changes that another process has made to the settings. Flags of this process keep their effect."""
        now, before = load_settings(self.workspace.path), self.stored
        changed = {name: value for name, value in now if value != getattr(before, name)}
        if changed:
            self.stored, self.workspace = now, self.workspace.with_settings(**changed)

    def open_id(self) -> OpenIdClient | None:
        """The provider with which people sign in, as the settings are now."""
        provider = provider_of(self.workspace.settings) if self.serving.auth == "keys" else None
        if provider is not None and (self._open_id is None or self._open_id.provider != provider):
            self._open_id = OpenIdClient(provider)
        return self._open_id if provider else None

    def unnamed_proxy(self, address: str) -> None:
        """Say once that a proxy is in front whose word on people's addresses does not count: they share its limits."""
        if not self._unnamed_proxy:
            self._unnamed_proxy = address
            log.warning(
                "requests come through a proxy at %s, so that wrong passwords of one person slow everybody's sign-in: "
                "start with --trust-proxy %s if it is yours",
                *(address, address),
            )

    def hears(self) -> bool:
        """Whether this process is told of what others write."""
        return self.listener is not None and self.listener.hears

    def current_workspace(self, principal: Principal) -> Workspace:
        """The workspace for an earlier asker with their current access: groups they have left no longer count."""
        now = self.present(principal)
        if now is None:
            raise Missing(f"There is no user called {principal.id!r} any more.")
        return self.workspace.for_principal(now)

    def reserve_run(self, principal: Principal) -> AbstractContextManager[None]:
        """Reserve a slot for one more run of this user; 429 if there is none. Use it as a context manager around the
        start of the run, so that concurrent starts count too."""
        who, most = principal.id, self.workspace.settings.serve_runs_per_person
        full = f"{most} of your runs are in progress, which is the limit. Wait for one to end, or stop one."
        return self.limits.reserve(f"run:{who}", most, lambda: self.runs.count_for(who), full, RETRY_RUN)

    def reserve_upload(self, principal: Principal) -> AbstractContextManager[None]:
        """The same for uploads. Reads the store, so call it in a thread."""
        who, most = principal.id, self.workspace.settings.serve_uploads_per_person
        open_jobs = sum(job.who == who for job in self.workspace.jobs.unfinished()) if most else 0
        full = f"{most} of your uploads are waiting to be read, which is the limit. Wait for one to end, or stop one."
        return self.limits.reserve(f"upload:{who}", most, lambda: open_jobs, full, RETRY_UPLOAD)

    def upload_room(self, base: Base, principal: Principal) -> UploadRoom:
        """How much more the owner of this base may keep here. Reads the store, so call it in a thread."""
        workspace, most = self.workspace, self.workspace.settings.serve_megabytes_per_person * 1_000_000
        used = workspace.documents.bytes_owned(base.owner) + workspace.jobs.waiting_bytes(principal.id) if most else 0
        return UploadRoom(self.limits, base.owner, most, used)

    async def start(self) -> None:
        self.background.start()
        loop = asyncio.get_running_loop()
        enlarge_thread_pool(loop)
        self.runs.watchers.loop = self.worker.watchers.loop = loop
        await asyncio.to_thread(self.workspace.setup.notice)
        await asyncio.to_thread(self.live.expect, self.workspace, alone=not self.shared)
        if self.shared:
            self.listener = ChangeListener(self.workspace.store, lambda: loop.call_soon_threadsafe(self.changed.set))
            self.listener.start()

    async def load(self) -> None:
        """Load the heavy components. A failure is listed as a problem until it is fixed."""
        try:
            await asyncio.to_thread(lambda: self.workspace.context.cache)
            await asyncio.to_thread(lambda: self.workspace.embedder)
            self.problems = ()
        except AssayError as error:
            self.problems = (str(error),)
            log.warning("not ready: %s", error)
        except Exception as error:
            self.problems = (INTERNAL_ERROR,)
            log.error("not ready", exc_info=error)

    async def look_around(self) -> None:
        """Look now and then whether the database, the index and the originals can be reached; more often while they cannot."""
        now = asyncio.get_running_loop().time()
        if now - self._looked < (LOOK_AGAIN if self.unreachable else LOOK):
            return
        self._looked = now
        try:
            async with asyncio.timeout(PATIENCE):
                await self.workspace.context.check_reachable()
            self.unreachable = ()
        except TimeoutError:
            self.unreachable = ("The database, the index or the originals do not answer.",)
        except AssayError as error:
            self.unreachable = (str(error),)
        except Exception as error:
            self.unreachable = (INTERNAL_ERROR,)
            log.error("not ready", exc_info=error)

    async def park(self) -> None:
        """Stop accepting work: runs end or are parked, jobs stay listed, clients are disconnected."""
        if not self.runs.closing:
            await self.live.park(self.grace)
            await self.watcher.close()
            await self.worker.close()
            await self.pages.close()

    async def stop(self) -> None:
        await self.park()
        if self.listener is not None:
            await asyncio.to_thread(self.listener.stop)
        self.background.stop()


# Dependencies of every route. Coroutines, since plain functions would wait for a pool thread behind slow requests.


async def server_of(request: Request) -> Server:
    return request.app.state.server


async def person_of(request: Request) -> Person:
    """The user of the request: the middleware of `guard.py` has identified them or already rejected the request."""
    return request.state.person


async def administrator_of(request: Request) -> Person:
    """The same of what only administrators may do. To others there is nothing."""
    if not request.state.person.admin:
        raise HTTPException(404, "Not Found")
    return request.state.person


async def workspace_of(request: Request) -> Workspace:
    return request.app.state.server.workspace.for_principal(request.state.person.principal)


CurrentServer = Annotated[Server, Depends(server_of)]
CurrentPerson = Annotated[Person, Depends(person_of)]
Administrator = Annotated[Person, Depends(administrator_of)]
CurrentWorkspace = Annotated[Workspace, Depends(workspace_of)]  # the workspace scoped to the user of the request
