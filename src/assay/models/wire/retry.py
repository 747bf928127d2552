"""The retry loop: retries transient failures, honours the wait that the endpoint asks for, and ends at the deadline."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from assay.core.errors import Late

T = TypeVar("T")

SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 20.0


class TransientFailure(Exception):
    """An attempt failed in a way that may pass.

    error: raised instead if there is no time for another attempt
    wait: seconds that the endpoint asks for; None for exponential backoff
    """

    def __init__(self, error: Exception, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class CorrectedRequest(Exception):
    """The request was refused for its form; the next attempt sends a corrected one, without a pause."""


async def with_retries(
    attempt: Callable[[float], Awaitable[T]],
    seconds: float,
    *,
    late: Callable[[], str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The result or the error of the first `attempt` that is not a `TransientFailure`; always within `seconds`.

    attempt: receives the seconds that are left
    late: message of the error if the time runs out during an attempt
    """
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    failures = 0
    try:
        async with asyncio.timeout_at(end):
            while True:
                try:
                    return await attempt(end - clock())
                except CorrectedRequest:
                    continue
                except TransientFailure as failure:
                    failures += 1
                    pause = pause_before(failures, failure.wait)
                    if clock() + pause >= end:
                        raise failure.error from None
                await sleep(pause)
    except TimeoutError:
        raise Late(late()) from None


def pause_before(failures: int, wait: float | None) -> float:
    """Seconds to wait after this many failures, or as many as the endpoint asks for; never 0."""
    if wait is not None:
        return max(wait, SHORTEST_PAUSE)
    return min(SHORTEST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait according to a response's headers, at least 0; None if they do not say."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is None:
        try:
            seconds = (parsedate_to_datetime(value) - now).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
