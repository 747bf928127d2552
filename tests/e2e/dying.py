"""A process that kills itself with SIGKILL just before or just after a durable write: the n-th of a commit, a write to the
index, or a file renamed, synced or deleted. Arguments: workspace, address of the model, its key, what is to be done, n. It says
each thing that it could rely on; with n = 0 it lives, and says in the end what it has passed."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from adding import Plain, say
from asking import begun, hasty
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.engine.default import DefaultDialect

from assay.core.events import Decision
from assay.core.run import Run
from assay.index.lance.tables import load_lancedb
from assay.ingest.sources import find_sources
from assay.workspace.facade import Workspace, open_workspace

passed: list[str] = []
_one_at_a_time = threading.Lock()


def passes(place: str, last: int) -> None:
    with _one_at_a_time:
        passed.append(place)
        if len(passed) == last:
            os.kill(os.getpid(), signal.SIGKILL)


def set_up(last: int) -> None:
    """From here on every durable write is passed twice: before it, and after it."""
    from lancedb.db import AsyncConnection
    from lancedb.merge import LanceMergeInsertBuilder
    from lancedb.table import AsyncTable

    def around(owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        def does(*args: Any, **named: Any) -> Any:
            passes(f"before {name}", last)
            done = real(*args, **named)
            passes(f"after {name}", last)
            return done

        setattr(owner, name, does)

    def around_slow(owner: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(owner, name)

        async def does(*args: Any, **named: Any) -> Any:
            passes(f"before {name}", last)
            done = await real(*args, **named)
            passes(f"after {name}", last)
            return done

        setattr(owner, name, does)

    around(DefaultDialect, "do_commit")
    for name in ("replace", "rename", "fsync", "unlink"):
        around(os, name)
    for owner, name in (
        (AsyncConnection, "create_table"),
        (LanceMergeInsertBuilder, "execute"),
        (AsyncTable, "add"),
        (AsyncTable, "delete"),
        (AsyncTable, "create_index"),
        (AsyncTable, "optimize"),
    ):
        around_slow(owner, name)

    def durable(statement: str) -> bool:
        return statement.startswith(("VACUUM", "PRAGMA wal_checkpoint"))

    def before(*told: Any) -> None:
        if durable(told[2]):
            passes("before checkpoint", last)

    def after(*told: Any) -> None:
        if durable(told[2]):
            passes("after checkpoint", last)

    event.listen(Engine, "before_cursor_execute", before)
    event.listen(Engine, "after_cursor_execute", after)


def tell(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def follow(steps: AsyncIterator[tuple[Run, Any]]) -> str:
    name = ""
    async for run, _ in steps:
        name = run.id
        tell("run", name, len(run.events))
    return name


def approved(workspace: Workspace, run: str) -> AsyncIterator[tuple[Run, Any]]:
    """What waits is approved, and the run goes on."""
    bench = workspace.reviews
    bench.decide(run, Decision.approve, bench.sheet(run).seal)
    return bench.resume(run)


async def do(what: str, workspace: Workspace, folder: Path) -> None:
    if what in {"ask", "synthesise"}:
        await follow(begun(what, workspace))
    elif what == "review":
        await follow(approved(workspace, await follow(begun("ask", workspace))))
    elif what == "add":
        await workspace.documents.add_sources(find_sources([folder]), say=say, reader=Plain())
    else:
        gone = await workspace.documents.remove(["lamp"])
        tell("erased", *(entry.id for entry in gone))


if __name__ == "__main__":
    load_lancedb()
    place, url, key, what, last = *sys.argv[1:5], int(sys.argv[5])
    settings: dict[str, Any] = {"llm_base_url": url, "llm_model": "scripted", "llm_api_key": key, "llm_concurrency": 4}
    set_up(last)
    with hasty(open_workspace(place, **settings, review_always=what == "review")) as opened:
        asyncio.run(do(what, opened, Path(place).with_name("notes")))
    if not last:
        tell("passed", *(each.replace(" ", "-") for each in passed))
