"""Runs in progress on servers, with their owners. A server holds a lease on each run that it works on and renews it; when
the lease runs out, the server has died and another takes the run up."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import delete, insert, select, update

from assay.core.access import Principal
from assay.core.errors import UserError
from assay.store.database import Store
from assay.store.schema import reviews, underway

LEASE = 30.0  # seconds until the runs of a process that has died are taken up


def this_process() -> str:
    """The name of this process, unique among machines and containers."""
    return f"{_system()} {os.getpid()}"


def _system() -> str:
    """The machine, or the container: process ids are unique within it."""
    namespace = Path("/proc/self/ns/pid")
    return f"{socket.gethostname()} {namespace.readlink() if namespace.exists() else ''}".strip()


def begin(store: Store, run: str, principal: Principal, process: str = "") -> None:
    """Register a run and take its lease. From now on it survives the process. Refused while another process holds it."""
    with store.write() as connection:
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
        if row is not None and row.process != process and _held(row, store.now()):
            raise UserError(f"Run {run} is under way already, at another process.")
        connection.execute(delete(underway).where(underway.c.run == run))
        lease = {"process": process, "until": _later(store.now()) if process else ""}
        connection.execute(insert(underway).values(run=run, who=principal.id, groups=sorted(principal.groups), **lease))


def end(store: Store, run: str, process: str = "") -> None:
    """Remove a run from the list, unless a process other than this one holds it."""
    with store.write() as connection:
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
        if row is not None and not (process and row.process != process and _held(row, store.now())):
            connection.execute(delete(underway).where(underway.c.run == run))


def renew(store: Store, process: str, runs: Collection[str]) -> set[str]:
    """Renew the leases of a process. Returns those of its runs that another process has taken up."""
    own = (underway.c.run.in_(sorted(runs)), underway.c.process == process)
    with store.write() as connection:
        connection.execute(update(underway).where(*own).values(until=_later(store.now())))
        return set(runs) - set(connection.scalars(select(underway.c.run).where(*own)))


def release(store: Store, process: str, runs: Collection[str]) -> None:
    """Give up the leases of runs that a process leaves unfinished: another may take them up at once."""
    with store.write() as connection:
        own = update(underway).where(underway.c.run.in_(sorted(runs)), underway.c.process == process)
        connection.execute(own.values(process="", until=""))


def claim(store: Store, process: str, working_on: Collection[str] = ()) -> dict[str, Principal]:
    """Take the leases of all interrupted runs: those that no living process works on. Returns them with their owners."""
    with store.write() as connection:
        now = store.now()
        rows = [
            row
            for row in connection.execute(_INTERRUPTED)
            if row.run not in working_on and (row.process == process or not _held(row, now))
        ]
        for row in rows:
            lease = update(underway).where(underway.c.run == row.run)
            connection.execute(lease.values(process=process, until=_later(now)))
    return {row.run: _principal(row) for row in rows}


def is_listed(store: Store, run: str) -> bool:
    """Whether a run is in progress at some process, or waits to be taken up by one."""
    with store.read() as connection:
        return connection.execute(_INTERRUPTED.where(underway.c.run == run)).first() is not None


def listing(store: Store) -> list[tuple[str, Principal]]:
    """All runs in progress or interrupted, with their owners."""
    with store.read() as connection:
        return [(row.run, _principal(row)) for row in connection.execute(_INTERRUPTED)]


def asker(store: Store, run: str) -> Principal | None:
    """The asker of a run started by a server, with their groups at that time."""
    with store.read() as connection:
        row = connection.execute(select(underway).where(underway.c.run == run)).first()
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


def _held(row: Any, now: str) -> bool:
    """Whether the lease has not run out, and its process is not known to have died on this machine."""
    if not row.process or datetime.fromisoformat(row.until) <= datetime.fromisoformat(now):
        return False
    system, _, process = row.process.rpartition(" ")
    return system != _system() or _is_alive(int(process))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _later(now: str) -> str:
    return (datetime.fromisoformat(now) + timedelta(seconds=LEASE)).isoformat()
