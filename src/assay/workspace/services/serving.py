"""What servers and their workers share through the store: files to read, runs under way, and figures of the work."""

from __future__ import annotations

from dataclasses import dataclass

from assay.store import jobs, watches
from assay.store.access import grants
from assay.store.runs import figures, underway
from assay.workspace.context import OnStore, Service


@dataclass(frozen=True)
class Jobs(Service):
    """Uploads that are read in the background."""

    begin = OnStore(jobs.begin)
    end = OnStore(jobs.end)
    files = OnStore(jobs.files)
    get = OnStore(jobs.get)
    going = OnStore(jobs.going)
    held = OnStore(jobs.held)
    listing = OnStore(jobs.listing)
    note = OnStore(jobs.note)
    park = OnStore(jobs.park)
    release = OnStore(jobs.release)
    renew = OnStore(jobs.renew)
    start = OnStore(jobs.start)
    unfinished = OnStore(jobs.unfinished)
    waiting_bytes = OnStore(jobs.waiting_bytes)


@dataclass(frozen=True)
class Watches(Service):
    """Places that a server watches."""

    bases = OnStore(grants.every_base)
    begin = OnStore(watches.begin)
    claim = OnStore(watches.claim)
    end = OnStore(watches.end)
    listing = OnStore(watches.listing)
    note = OnStore(watches.note)
    one = OnStore(watches.one)
    release = OnStore(watches.release)


@dataclass(frozen=True)
class Underway(Service):
    """Runs that a server works on, or will."""

    asker = OnStore(underway.asker)
    begin = OnStore(underway.begin)
    claim = OnStore(underway.claim)
    end = OnStore(underway.end)
    is_listed = OnStore(underway.is_listed)
    listing = OnStore(underway.listing)
    release = OnStore(underway.release)
    renew = OnStore(underway.renew)
    request_stop = OnStore(underway.request_stop)


@dataclass(frozen=True)
class Figures(Service):
    """Counts of the work that was done."""

    count_under_way = OnStore(figures.count_under_way)
    count_waiting = OnStore(figures.count_waiting)
    facts_after = OnStore(figures.facts_after)
    jobs_by_state = OnStore(figures.jobs_by_state)
    spent_by_role = OnStore(figures.spent_by_role)
