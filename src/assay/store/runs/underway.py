"""Runs in progress on servers, with their owners, and leases: the process that works on a run or a job, and until when. The
process renews it; when it runs out, the process has died and another takes the work up."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import delete, insert, select, update

from assay.core.access import Principal
from assay.core.errors import UserError
from assay.store.database import Store
from assay.store.schema import reviews, underway


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in progress, or one that waits to be taken up."""

    run: str
    principal: Principal
    process: str
    until: str
    stop: bool  # somebody wants it stopped


def begin(store: Store, run: str, principal: Principal, process: str = "") -> None:
    """Register a run and take its lease; without a process it waits for one. From now on it survives the process. Refused
    while another process holds it. A process that has claimed it before is still to stop it if somebody has asked for that."""
    with store.write() as connection:
        now = store.now()
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
        if row is not None and is_elsewhere(row, process, now):
            raise UserError(f"Run {run} is under way already, at another process.")
        stop = row is not None and bool(process) and row.process == process and row.stop
        connection.execute(delete(underway).where(underway.c.run == run))
        own = {"run": run, "who": principal.id, "groups": sorted(principal.groups), "stop": stop}
        connection.execute(insert(underway).values(**own, **lease(process, now)))


def end(store: Store, run: str, process: str = "") -> None:
    """Remove a run from the list; with a process only if that has its lease. One that another process took up is that one's to
    end, also if it has died since."""
    own = [underway.c.run == run, *([underway.c.process == process] if process else [])]
    store.execute(delete(underway).where(*own))


def renew(store: Store, process: str, runs: Collection[str]) -> set[str]:
    """Renew the leases of a process. Returns those of its runs that another process has taken up."""
    own = (underway.c.run.in_(sorted(runs)), underway.c.process == process)
    with store.write() as connection:
        connection.execute(update(underway).where(*own).values(lease(process, store.now())))
        return set(runs) - set(connection.scalars(select(underway.c.run).where(*own)))


def release(store: Store, process: str, runs: Collection[str]) -> None:
    """Give up the leases of runs that a process leaves unfinished: another may take them up at once."""
    with store.write() as connection:
        own = update(underway).where(underway.c.run.in_(sorted(runs)), underway.c.process == process)
        connection.execute(own.values(FREE))


def claim(
    store: Store, process: str, working_on: Collection[str] = (), most: int | None = None
) -> dict[str, Principal]:
    """Take the leases of all interrupted runs, at most so many: those that no living process works on. Returns them with
    their owners."""
    with store.write() as connection:
        now = store.now()
        rows = [
            row
            for row in connection.execute(_INTERRUPTED)
            if row.run not in working_on and not is_elsewhere(row, process, now)
        ][:most]
        for row in rows:
            connection.execute(update(underway).where(underway.c.run == row.run).values(lease(process, now)))
    return {row.run: _principal(row) for row in rows}


def request_stop(store: Store, run: str, process: str) -> bool:
    """Ask the process that works on a run to stop it. True if there is none: then this process holds the run, to stop it."""
    with store.write() as connection:
        now = store.now()
        own = underway.c.run == run
        row = connection.execute(select(underway).where(own)).first()
        if row is None:
            raise UserError(f"Run {run} is not under way.")
        elsewhere = is_elsewhere(row, process, now)
        connection.execute(update(underway).where(own).values({"stop": True} if elsewhere else lease(process, now)))
        return not elsewhere


def is_listed(store: Store, run: str) -> bool:
    """Whether a run is in progress at some process, or waits to be taken up by one."""
    return store.first(_INTERRUPTED.where(underway.c.run == run)) is not None


def listing(store: Store) -> list[ListedRun]:
    """All runs in progress or interrupted."""
    return [ListedRun(row.run, _principal(row), row.process, row.until, row.stop) for row in store.rows(_INTERRUPTED)]


def asker(store: Store, run: str) -> Principal | None:
    """The asker of a run started by a server, with their groups at that time."""
    row = store.first(select(underway).where(underway.c.run == run))
    return _principal(row) if row else None


# A run that waits for review is not interrupted: it stays listed to keep the asker's groups, and continues after the
# decision.
_INTERRUPTED = (
    select(underway)
    .where(underway.c.run.not_in(select(reviews.c.run).where(reviews.c.state == "waiting")))
    .order_by(underway.c.run)
)


def _principal(row: Any) -> Principal:
    return Principal(row.who, frozenset(row.groups))


LEASE = 30.0  # seconds until the work of a process that has died is taken up
SIGNAL_ASKS = os.name != "nt"  # on Windows signal 0 interrupts the process, so that only the lease tells
FREE = {"process": "", "until": ""}  # the columns of work that nobody holds


def this_process() -> str:
    """The name of this process, unique among machines and containers."""
    return f"{_system()} {os.getpid()}"


def _system() -> str:
    """The machine, or the container: process ids are unique within it."""
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {namespace.readlink() if namespace.exists() else ''}".strip()


def lease(process: str, now: str) -> dict[str, str]:
    """The columns of work that this process holds from now on."""
    if not process:
        return FREE
    return {"process": process, "until": (datetime.fromisoformat(now) + timedelta(seconds=LEASE)).isoformat()}


def is_held(work: Any, now: str) -> bool:
    """Whether the lease on this row has not run out, and its process is not known to have died on this machine."""
    if not work.process or datetime.fromisoformat(work.until) <= datetime.fromisoformat(now):
        return False
    system, _, process = work.process.rpartition(" ")
    return system != _system() or _is_alive(int(process))


def is_elsewhere(work: Any, process: str, now: str) -> bool:
    """Whether a process other than this one holds the lease."""
    return work.process != process and is_held(work, now)


def _is_alive(process: int) -> bool:
    if not SIGNAL_ASKS:
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
