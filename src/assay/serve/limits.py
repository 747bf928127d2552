"""Per-user limits: request rate, concurrent runs and uploads, password attempts. A refusal says when to retry."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from starlette.exceptions import HTTPException

MAX_ENTRIES = 10_000  # maximum tracked names and addresses; the least recently seen is evicted
FREE_ATTEMPTS = {"name": 5, "address": 20}  # wrong passwords before delays start
MAX_WAIT = 60.0  # maximum seconds until the next attempt: long for guessing, short after a typo
FORGET_AFTER = 900.0  # seconds after which wrong passwords are forgotten
CONCURRENT_SIGN_INS = 2  # concurrent password checks: each takes memory and a core
RETRY_RUN, RETRY_UPLOAD = 5, 30  # suggested seconds until a retry
MAX_OPEN_REQUESTS = 200  # concurrent requests per user: each holds a connection, a stream for hours


def too_many_requests(detail: str, seconds: float) -> HTTPException:
    return HTTPException(429, detail, {"Retry-After": str(max(1, math.ceil(seconds)))})


class RateLimiter:
    """A token bucket per user, refilled at a constant rate; a request takes one token."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MAX_ENTRIES) -> None:
        self._clock, self._most = clock, most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # user → (level, timestamp)

    def take(self, who: str, per_minute: int) -> float:
        """Take a token. Returns 0 if there was one, else the seconds until the next. A rate of 0 means no limit."""
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


class PasswordAttempts:
    """Wrong passwords by address, and by name and address together: nobody can lock out a person from elsewhere. An attempt
    is counted before the check and removed if correct, so that parallel attempts cannot bypass the limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MAX_ENTRIES) -> None:
        self._clock, self._most = clock, most
        self._wrong: OrderedDict[tuple[str, str], tuple[int, float, float]] = OrderedDict()  # count, latest, until

    def begin(self, name: str, address: str) -> None:
        """Count an attempt; refuse it after too many wrong ones."""
        now = self._clock()
        own = (("name", f"{address} {name}"), ("address", address))
        wait = max(self._until(each, now) for each in own) - now
        if wait > 0:
            raise too_many_requests(f"Too many wrong passwords. Try again in {math.ceil(wait)} seconds.", wait)
        for kind, each in own:
            count, latest, _ = self._wrong.pop((kind, each), (0, now, 0.0))
            count = 1 if now - latest > FORGET_AFTER else count + 1
            over = count - FREE_ATTEMPTS[kind]
            until = now + min(MAX_WAIT, 2.0 ** min(over, 16)) if over >= 0 else 0.0
            self._wrong[kind, each] = (count, now, until)
        while len(self._wrong) > self._most:
            self._wrong.popitem(last=False)

    def right(self, name: str, address: str) -> None:
        """Reset the count of the name at this address. The address keeps its earlier wrong attempts: signing in with one's
        own password must not reset the limit on guessing others'."""
        self._wrong.pop(("name", f"{address} {name}"), None)
        count, latest, _ = self._wrong.get(("address", address), (1, 0.0, 0.0))
        self._wrong["address", address] = (count - 1, latest, 0.0)

    def _until(self, key: tuple[str, str], now: float) -> float:
        _, latest, until = self._wrong.get(key, (0, now, 0.0))
        return until if now - latest <= FORGET_AFTER else 0.0

    def __len__(self) -> int:
        return len(self._wrong)


@dataclass
class ServerLimits:
    """The in-memory limits of a server."""

    requests: RateLimiter = field(default_factory=RateLimiter)
    tries: PasswordAttempts = field(default_factory=PasswordAttempts)
    signing_in: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONCURRENT_SIGN_INS))
    beginning: Counter[str] = field(default_factory=Counter)  # work that is being started, by kind and user
    uploads: dict[str, OwnerUploads] = field(default_factory=dict)  # that are arriving, by owner of the base
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def reserve(self, key: str, most: int, under_way: Callable[[], int], full: str, retry: float) -> Iterator[None]:
        """A slot for one more piece of work, by kind and user; 429 if there is none. It is held while the work starts, since
        that is not listed anywhere else until then."""
        with self.lock:
            if most and under_way() + self.beginning[key] >= most:
                raise too_many_requests(full, retry)
            self.beginning[key] += 1
        try:
            yield
        finally:
            with self.lock:
                self.beginning[key] -= 1
                if self.beginning[key] <= 0:
                    del self.beginning[key]

    def reserve_request(self, who: str) -> AbstractContextManager[None]:
        """A slot for one more open request of this user. Streams count."""
        full = f"{MAX_OPEN_REQUESTS} of your requests are open, including streams. Close some, or wait."
        return self.reserve(f"reply:{who}", MAX_OPEN_REQUESTS, lambda: 0, full, RETRY_RUN)


@dataclass
class OwnerUploads:
    """The uploads of one owner that are open: how many, their bytes, and what was stored before and meanwhile."""

    stored: int = 0
    arriving: int = 0
    open: int = 0


@dataclass
class UploadRoom:
    """What may still be stored for one owner. Uploads that arrive at the same time count together."""

    limits: ServerLimits
    owner: str
    most: int  # bytes; 0: no limit
    used: int  # as the store says
    taken: int = 0

    def take(self, size: int) -> None:
        """Count bytes that arrive, before they are written. 413 if there is no room for them."""
        with self.limits.lock:
            own = self.limits.uploads[self.owner]
            if self.most and own.stored + own.arriving + size > self.most:
                raise HTTPException(413, f"There is no room for this upload: {self._told(own)}")
            own.arriving += size
            self.taken += size

    def __enter__(self) -> UploadRoom:
        with self.limits.lock:
            own = self.limits.uploads.setdefault(self.owner, OwnerUploads(stored=self.used))
            own.stored = max(own.stored, self.used)
            if self.most and own.stored >= self.most and not own.open:
                del self.limits.uploads[self.owner]
            if self.most and own.stored >= self.most:
                raise HTTPException(507, f"There is no room for more files: {self._told(own)}")
            own.open += 1
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        with self.limits.lock:
            own = self.limits.uploads[self.owner]
            own.arriving -= self.taken
            own.stored += 0 if failed else self.taken
            own.open -= 1
            if not own.open:
                del self.limits.uploads[self.owner]

    def _told(self, own: OwnerUploads) -> str:
        used, most = (own.stored + own.arriving) / 1e6, self.most / 1e6
        return f"{used:,.1f} of {most:,.0f} MB are used. Remove documents, or ask whoever runs the server for more."
