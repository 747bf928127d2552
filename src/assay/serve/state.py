"""What a serving process holds: the workspace, the engine and the runs under way; and how a request gets at them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from assay.core.access import LOCAL, Principal
from assay.core.errors import AssayError
from assay.ingest.parsed import limits_from
from assay.serve.engine import Engine, roomy
from assay.serve.limits import Limits
from assay.serve.live import Live
from assay.serve.page_cache import Pages
from assay.serve.uploading.worker import Worker
from assay.store.access import members
from assay.workspace.facade import Workspace

if TYPE_CHECKING:
    from assay.serve.routes.metrics import Meters

log = logging.getLogger("assay.serve")

BROKEN = "Assay broke down; the log says where."
GRACE = 5.0  # seconds that runs have to end when the server stops


@dataclass(frozen=True, slots=True)
class Person:
    """Who makes a request. `csrf` is what a change made with a session's cookie has to bring along."""

    principal: Principal
    admin: bool = False
    csrf: str = ""


NOBODY_ELSE = Person(LOCAL, admin=True)  # the one person on a laptop


@dataclass(frozen=True, slots=True)
class Serving:
    """How people are known: `off` (one local person), `keys` (names and passwords, API keys), or `header` (a proxy in front
    names them)."""

    auth: str = "off"
    user_header: str = ""
    groups_header: str = ""
    proxies: tuple[str, ...] = ()  # addresses whose header is believed
    hosts: tuple[str, ...] = ()  # names that this server goes by; empty: any, where people sign in
    secure: bool = False  # cookies over HTTPS only


@dataclass
class Server:
    """One per process. The workspace is whole here; a request only ever gets it as its person sees it."""

    workspace: Workspace
    serving: Serving = field(default_factory=Serving)
    engine: Engine = field(default_factory=Engine)
    live: Live = field(init=False)
    worker: Worker = field(init=False)
    pages: Pages = field(init=False)
    limits: Limits = field(default_factory=Limits)
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)  # what else stops with the server
    problems: tuple[str, ...] = ()  # why it is not ready, if it is not
    grace: float = GRACE
    meters: Meters | None = None  # where the setting `metrics` is on

    def __post_init__(self) -> None:
        self.live = Live(self.engine, self.present)
        self.worker = Worker(self.engine, self.workspace)
        self.pages = Pages(limits_from(self.workspace.settings))
        self.closers += [self.worker.close, self.pages.close]

    def present(self, principal: Principal) -> Principal | None:
        """Somebody who asked earlier as they are now: in the groups that they have not left. Where a proxy says which groups
        people are in, the last that it said holds. Who was removed is nobody, where people have to be members; whoever asks
        at a terminal is none, and goes on."""
        if self.serving.auth == "off" or self.serving.groups_header:
            return principal
        member = members.named(self.workspace.store, principal.id)
        if member is not None:
            return member.principal
        needs_no_member = self.serving.auth != "keys" or principal.id == LOCAL.id
        return Principal(principal.id) if needs_no_member else None

    def seen_by(self, principal: Principal) -> Workspace:
        return self.workspace.seen_by(principal)

    async def start(self) -> None:
        self.engine.start()
        roomy(asyncio.get_running_loop())
        self.live.serve_on(asyncio.get_running_loop())
        await asyncio.to_thread(self.live.expect, self.workspace.store)

    async def load(self) -> None:
        """Make the heavy parts. What is in the way is a problem until it is gone."""
        try:
            await asyncio.to_thread(lambda: self.workspace.cache)
            await asyncio.to_thread(lambda: self.workspace.embedder)
            self.problems = ()
        except AssayError as error:
            self.problems = (str(error),)
            log.warning("not ready: %s", error)
        except Exception as error:
            self.problems = (BROKEN,)
            log.error("not ready", exc_info=error)

    async def park(self) -> None:
        """Stop taking work on: runs end or are parked, jobs stay listed, watchers are let go."""
        if not self.live.closing:
            await self.live.park(self.grace)
            for close in self.closers:
                await close()

    async def stop(self) -> None:
        await self.park()
        self.engine.stop()


# What every route needs, found without a thread: a plain function would have to wait for one, behind whoever reads a long list.


async def server_of(request: Request) -> Server:
    return request.app.state.server


async def person_of(request: Request) -> Person:
    """Who the request is from: the middleware of `auth.py` has found that out, or has refused it already."""
    return request.state.person


async def workspace_of(request: Request) -> Workspace:
    return request.app.state.server.seen_by(request.state.person.principal)


Here = Annotated[Server, Depends(server_of)]
Who = Annotated[Person, Depends(person_of)]
Mine = Annotated[Workspace, Depends(workspace_of)]  # the workspace as the person who asks sees it
