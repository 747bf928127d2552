"""The one retry loop: tries again while that can help, waits as long as it is asked to, and ends at the deadline."""

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
    """An attempt that failed in a way that may pass.

    error: raised instead, where there is no time for another attempt
    wait: seconds that the other side asks for; None for exponential backoff
    """

    def __init__(self, error: Exception, wait: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait


class CorrectedRequest(Exception):
    """The request was refused for its form, and the next attempt sends it in another. It follows without a pause."""


async def with_retries(
    attempt: Callable[[float], Awaitable[T]],
    seconds: float,
    *,
    late: Callable[[], str],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """What `attempt` returns or raises, once that is no `TransientFailure`; always within `seconds`.

    attempt: is given the seconds that are left
    late: the message of the error when the time runs out during an attempt
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
    """Seconds to wait after so many failures, or as many as the endpoint asks for, but never none."""
    if wait is not None:
        return max(wait, SHORTEST_PAUSE)
    return min(SHORTEST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE)


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that a reply's headers ask to wait, at least 0; None where they do not say."""
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
