"""A question that takes several steps, the notes that answer it, and a model that says what follows from what it is shown: it
does not know that anybody was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from doubles import (
    ChatServer,
    Script,
    calls,
    enough,
    keeps,
    missing,
    no_calls,
    research,
    role_of,
    steps,
    supported,
    writes,
)

PAINT = "The lamp room is painted with orpiment."
GROUND = "All orpiment is ground at the dunmere works."
TENDS = "The warden tends the beacon."
NOTES = {"lamp": PAINT, "works": GROUND, "beacon": TENDS} | {
    f"yard {n}": f"The paint of room {n} is ground in yard {n}. The lamp of the room was out." for n in range(5)
}


def model() -> Script:
    def judge(text: str, schema: Any) -> Any:
        if "found: orpiment" not in text:
            return missing(s1="orpiment")(text, schema)
        if "found: dunmere" not in text:
            return missing("who tends the beacon", s2="dunmere")(text, schema)
        return enough()(text, schema)

    return Script(
        route=research(),
        plan=steps(
            ("What is the lamp room painted with?", "lamp room painted"), ("Where is {s1} ground?", "{s1} works")
        ),
        decide=lambda text, schema: (
            no_calls() if "tends beacon log" in text else calls("search", query="tends beacon log")
        ),
        weigh=keeps(PAINT, GROUND, TENDS),
        judge=judge,
        write=writes(
            "All orpiment is ground at the dunmere works [{dunmere}].", "The warden tends the beacon [{tends}]."
        ),
        check=supported(),
    )


@contextmanager
def serving(answer: Any, seconds: float = 0.0) -> Iterator[ChatServer]:
    """The model behind an endpoint, where it thinks for so long; nothing that it was asked was out of order."""

    async def thinks(request: dict[str, Any]) -> Any:
        if seconds:
            await asyncio.sleep(seconds)
        return answer(request)

    with ChatServer(thinks) as running:
        yield running
    assert not running.problems


def requests(server: ChatServer, key: str) -> int:
    """How many requests of runs were made with this key."""
    asked = zip(server.requests, server.headers, strict=False)
    return sum(bool(role_of(body)[0]) and head.get("authorization") == f"Bearer {key}" for body, head in asked)
