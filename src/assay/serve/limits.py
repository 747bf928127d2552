"""How much one person may take: requests a minute, runs at once, and tries at a password. What is refused is told when to
come back."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from assay.store import jobs

if TYPE_CHECKING:
    from assay.serve.state import Person, Server

MOST = 10_000  # names and addresses that are kept in mind; the one not heard of longest goes first
FREE_TRIES = {"name": 5, "address": 20}  # wrong passwords that cost nothing but the time they take
LONGEST_WAIT = 60.0  # seconds until the next try: long for who guesses, short for who has mistyped
FORGOTTEN = 900.0  # seconds after which wrong passwords are forgotten
SIGNING_IN = 2  # passwords that are checked at the same time: each takes memory and a core
RETRY_RUN, RETRY_UPLOAD = 5, 30  # seconds after which one may have ended
MOST_OPEN = 200  # requests of one person that are under way at once: each holds a connection, a stream for hours


def too_many(detail: str, seconds: float) -> HTTPException:
    return HTTPException(429, detail, {"Retry-After": str(max(1, math.ceil(seconds)))})


class Buckets:
    """A bucket for each person, filled at an even pace; a request takes one drop out."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock, self._most = clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # who → what is in it, as of when

    def take(self, who: str, per_minute: int) -> float:
        """Nothing, where there was a drop left; otherwise the seconds until there is one. 0 a minute: no limit."""
        if per_minute <= 0:
            return 0.0
        now, pace = self._clock(), per_minute / 60
        level, since = self._levels.pop(who, (float(per_minute), now))
        level = min(float(per_minute), level + (now - since) * pace)
        wait = 0.0 if level >= 1 else (1 - level) / pace
        self._levels[who] = (level if wait else level - 1, now)
        while len(self._levels) > self._most:
            self._levels.popitem(last=False)
        return wait

    def __len__(self) -> int:
        return len(self._levels)


class Tries:
    """Wrong passwords, by name and by address. A try is counted before the password is looked at, and taken back when it
    was right: many at once are no way around."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MOST) -> None:
        self._clock, self._most = clock, most
        self._wrong: OrderedDict[tuple[str, str], tuple[int, float, float]] = OrderedDict()  # count, latest, until

    def begin(self, name: str, address: str) -> None:
        """Count a try; refuse it, where there were too many wrong ones."""
        now = self._clock()
        own = (("name", name), ("address", address))
        wait = max(self._until(each, now) for each in own) - now
        if wait > 0:
            raise too_many(f"Too many wrong passwords. Try again in {math.ceil(wait)} seconds.", wait)
        for kind, each in own:
            count, latest, _ = self._wrong.pop((kind, each), (0, now, 0.0))
            count = 1 if now - latest > FORGOTTEN else count + 1
            over = count - FREE_TRIES[kind]
            until = now + min(LONGEST_WAIT, 2.0 ** min(over, 16)) if over >= 0 else 0.0
            self._wrong[kind, each] = (count, now, until)
        while len(self._wrong) > self._most:
            self._wrong.popitem(last=False)

    def right(self, name: str, address: str) -> None:
        """The name starts anew. The address does not: one's own password is no way to go on guessing others'."""
        self._wrong.pop(("name", name), None)
        count, latest, _ = self._wrong.get(("address", address), (1, 0.0, 0.0))
        self._wrong["address", address] = (count - 1, latest, 0.0)

    def _until(self, key: tuple[str, str], now: float) -> float:
        _, latest, until = self._wrong.get(key, (0, now, 0.0))
        return until if now - latest <= FORGOTTEN else 0.0

    def __len__(self) -> int:
        return len(self._wrong)


@dataclass
class Limits:
    """What a server keeps in mind of who did how much."""

    requests: Buckets = field(default_factory=Buckets)
    tries: Tries = field(default_factory=Tries)
    signing_in: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIGNING_IN))
    beginning: Counter[str] = field(default_factory=Counter)  # what is about to be under way, by kind and person
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Room:
    """Room for one more piece of work, kept while it begins: until then nobody but this knows of it."""

    limits: Limits
    key: str  # whose, and of what kind
    most: int
    under_way: Callable[[], int]
    full: str
    retry: float

    def check(self) -> None:
        if self.most and self.under_way() + self.limits.beginning[self.key] >= self.most:
            raise too_many(self.full, self.retry)

    def __enter__(self) -> None:
        with self.limits.lock:
            self.check()
            self.limits.beginning[self.key] += 1

    def __exit__(self, *_: object) -> None:
        with self.limits.lock:
            self.limits.beginning[self.key] -= 1
            if self.limits.beginning[self.key] <= 0:
                del self.limits.beginning[self.key]


def room_for_a_reply(person: Person, limits: Limits) -> Room:
    """Whether one more request of this person is answered now, streams that they watch counted."""
    full = f"{MOST_OPEN} requests of yours are under way, streams among them. Close some, or wait."
    return Room(limits, f"reply:{person.principal.id}", MOST_OPEN, lambda: 0, full, RETRY_RUN)


def room_for_a_run(server: Server, person: Person) -> Room:
    """Whether this person may begin or resume one more run: 429 where not. Used as `with room_for_a_run(…):` around the
    beginning, so that many that begin at once count too."""
    who, most = person.principal.id, server.workspace.settings.serve_runs_per_person
    full = f"{most} runs of yours are under way, and no more are carried on at once. Wait for one to end, or stop one."
    room = Room(server.limits, f"run:{who}", most, lambda: server.live.of(who), full, RETRY_RUN)
    room.check()
    return room


def room_for_an_upload(server: Server, person: Person) -> Room:
    """The same for files that are sent. It looks into the store, so it is called in a thread; the room is then taken
    where the files are received."""
    who, most = person.principal.id, server.workspace.settings.serve_uploads_per_person
    going = sum(job.who == who for job in jobs.unfinished(server.workspace.store)) if most else 0
    full = f"{most} uploads of yours wait to be read, and no more are taken. Wait for one to end, or stop one."
    room = Room(server.limits, f"upload:{who}", most, lambda: going, full, RETRY_UPLOAD)
    room.check()
    return room
