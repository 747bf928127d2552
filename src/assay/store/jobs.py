"""Ingestion jobs for uploaded files: a job belongs to a user and survives the process. Jobs of other users are
invisible."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import RowMapping, and_, bindparam, case, delete, func, insert, select, update

from assay.core.access import Base, Principal
from assay.core.errors import Missing
from assay.store.database import Store
from assay.store.runs.underway import FREE, is_elsewhere, lease
from assay.store.schema import job_files, jobs

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
GOING = (WAITING, RUNNING)
KEPT = 200  # finished jobs that are kept per user


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job, by its number; `outcome` is empty while it waits. `report` describes the result."""

    n: int
    name: str
    bytes: int
    outcome: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """A job summary; `done` of its `files` have finished."""

    id: str
    who: str
    groups: tuple[str, ...]
    base: str
    state: str
    error: str
    passages: int
    seconds: float
    created: str
    updated: str
    files: int
    done: int
    process: str = field(default="", compare=False)  # that reads its files
    until: str = field(default="", compare=False)

    @property
    def principal(self) -> Principal:
        """The owner, as of when the job was created."""
        return Principal(self.who, frozenset(self.groups))

    @property
    def going(self) -> bool:
        return self.state in GOING


_OF_JOB = job_files.c.job == jobs.c.id
_JOBS = select(
    jobs,
    select(func.count()).where(_OF_JOB).scalar_subquery().label("files"),
    select(func.count()).where(_OF_JOB, job_files.c.outcome != "").scalar_subquery().label("done"),
)


def _job(row: RowMapping) -> Job:
    values: dict[str, Any] = {str(name): value for name, value in row.items()}
    return Job(**{**values, "groups": tuple(values["groups"])})


def begin(store: Store, job: str, principal: Principal, base: str, files: Sequence[JobFile]) -> None:
    """Create a job. From now on its files are processed even if this process dies. Old finished jobs are pruned."""
    now = store.now()
    row = {"id": job, "who": principal.id, "groups": sorted(principal.groups), "base": base, "state": WAITING}
    rows = [{"job": job, **{each.name: getattr(file, each.name) for each in fields(file)}} for file in files]
    own = and_(jobs.c.who == principal.id, jobs.c.state.not_in(GOING))
    old = select(jobs.c.id).where(own).order_by(jobs.c.created.desc(), jobs.c.id.desc()).offset(KEPT)
    with store.write() as connection:
        connection.execute(delete(jobs).where(jobs.c.id.in_(old.scalar_subquery())))
        connection.execute(insert(jobs).values(**row, error="", created=now, updated=now))
        connection.execute(insert(job_files), rows)


def get(store: Store, job: str, who: str) -> Job:
    with store.read() as connection:
        row = connection.execute(_JOBS.where(jobs.c.id == job, jobs.c.who == who)).mappings().first()
    if row is None:
        raise Missing(f"There is no job called {job!r}.")
    return _job(row)


def listing(store: Store, who: str, limit: int) -> list[Job]:
    """A user's jobs: unfinished ones in processing order, then the newest."""
    own = _JOBS.where(jobs.c.who == who)
    going = own.where(jobs.c.state.in_(GOING)).order_by(jobs.c.created, jobs.c.id).limit(limit)
    newest = own.where(jobs.c.state.not_in(GOING)).order_by(jobs.c.created.desc(), jobs.c.id.desc()).limit(limit)
    with store.read() as connection:
        rows = [*connection.execute(going).mappings(), *connection.execute(newest).mappings()]
    return [_job(row) for row in rows[:limit]]


def unfinished(store: Store) -> list[Job]:
    """All users' jobs that are waiting or were interrupted, oldest first: for the worker."""
    oldest = _JOBS.where(jobs.c.state.in_(GOING)).order_by(jobs.c.created, jobs.c.id)
    return [_job(row) for row in store.mappings(oldest)]


def files(store: Store, job: str, limit: int | None = None) -> list[JobFile]:
    """The files of a job in order; with a limit, failed files come first."""
    failed_first = (case((job_files.c.outcome == "failed", 0), else_=1), job_files.c.n)
    query = select(job_files.c.n, job_files.c.name, job_files.c.bytes, job_files.c.outcome, job_files.c.report)
    query = query.where(job_files.c.job == job).order_by(*failed_first).limit(limit)
    found = [JobFile(**row) for row in store.mappings(query)]
    return sorted(found, key=lambda each: each.n)


def start(store: Store, job: str, process: str = "") -> bool:
    """Mark a job as running and take its lease. False if it was cancelled, or another process holds it."""
    with store.write() as connection:
        now = store.now()
        row = connection.execute(select(jobs).where(jobs.c.id == job, jobs.c.state.in_(GOING))).first()
        if row is None or is_elsewhere(row, process, now):
            return False
        running = {"state": RUNNING, "updated": now, **lease(process, now)}
        connection.execute(update(jobs).where(jobs.c.id == job).values(running))
        return True


def park(store: Store, job: str, process: str = "") -> None:
    """Let a running job wait again."""
    own = (jobs.c.id == job, jobs.c.state == RUNNING, jobs.c.process == process)
    store.execute(update(jobs).where(*own).values(state=WAITING, updated=store.now(), **FREE))


def held(store: Store, process: str) -> set[str]:
    """The unfinished jobs whose lease a process has."""
    return set(store.scalars(select(jobs.c.id).where(jobs.c.process == process, jobs.c.state.in_(GOING))))


def renew(store: Store, process: str, ids: Collection[str]) -> None:
    """Renew the leases of a process, as far as it still has them."""
    own = (jobs.c.id.in_(sorted(ids)), jobs.c.process == process, jobs.c.state.in_(GOING))
    with store.write() as connection:  # the lease begins once it may write
        connection.execute(update(jobs).where(*own).values(lease(process, store.now())))


def release(store: Store, job: str, process: str) -> None:
    """Give up the lease of a job that a process leaves unfinished."""
    store.execute(update(jobs).where(jobs.c.id == job, jobs.c.process == process).values(FREE))


def waiting_bytes(store: Store, who: str) -> int:
    """How much a person has sent that is not read yet."""
    unread = and_(jobs.c.who == who, jobs.c.state.in_(GOING), job_files.c.outcome == "")
    query = select(func.coalesce(func.sum(job_files.c.bytes), 0)).where(_OF_JOB, unread)
    return int(store.scalar(query) or 0)


def note(store: Store, job: str, passages: int, seconds: float, reports: Sequence[JobFile], process: str = "") -> None:
    """Record the progress, and the files that have finished since. Of a job that another process took up nothing is."""
    ended = (
        update(job_files)
        .where(job_files.c.job == job, job_files.c.n == bindparam("number"))
        .values(outcome=bindparam("how"), report=bindparam("told"))
    )
    rows = [{"number": each.n, "how": each.outcome, "told": dict(each.report)} for each in reports]
    with store.write() as connection:
        if connection.scalar(select(jobs.c.process).where(jobs.c.id == job)) != process:
            return
        if rows:
            connection.execute(ended, rows)
        connection.execute(
            update(jobs)
            .where(jobs.c.id == job, jobs.c.state.in_(GOING))
            .values(passages=passages, seconds=seconds, updated=store.now())
        )


def end(store: Store, job: str, state: str, error: str = "", process: str | None = None) -> None:
    """Record how a job ended; a final state never changes. With a `process` only if that holds it."""
    own = [jobs.c.id == job, jobs.c.state.in_(GOING), *([jobs.c.process == process] if process is not None else [])]
    store.execute(update(jobs).where(*own).values(state=state, error=error, updated=store.now(), **FREE))


def filling(store: Store, base: Base) -> set[str]:
    """The unfinished jobs that write to this base."""
    return {job.id for job in unfinished(store) if job.base == base.name and job.principal.owns(base)}


def going(store: Store) -> set[str]:
    """Jobs that are waiting or running: their files are still needed."""
    return set(store.scalars(select(jobs.c.id).where(jobs.c.state.in_(GOING))))
