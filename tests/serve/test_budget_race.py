"""Requests at the same moment, through every door of the server, spend no more than the ceiling."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import httpx
import pytest
from doubles import ChatServer
from serving import QUESTION, Served, script, slow

from assay.store.runs import budgets

Serve = Callable[..., AbstractContextManager[Served]]
DOORS = {
    "/api/ask": {"question": QUESTION},
    "/v1/chat/completions": {"model": "assay", "messages": [{"role": "user", "content": QUESTION}]},
    "/mcp": {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "ask", "arguments": {"question": QUESTION}},
    },
}


TRIED = 5  # requests that find out what a model can do, once for each: three probes, and two of its trial as a judge


def calls_of_one(serve: Serve) -> int:
    """How many requests one question takes where nothing limits it."""
    with ChatServer(script().answer) as model, serve(model) as at, at.client() as client:
        assert client.post("/api/ask", json=DOORS["/api/ask"]).status_code == 200
        return sum(model.counts.values()) - model.counts[""]


@pytest.mark.parametrize("at_once", [2, pytest.param(9, marks=pytest.mark.long)])
def test_requests_at_the_same_moment_spend_no_more_than_the_ceiling(serve: Serve, at_once: int):
    one = calls_of_one(serve)
    most = 2 * (one + TRIED) + 1  # that question is on the same day's account, so that there is enough for one more
    start = threading.Barrier(at_once)
    doors = [list(DOORS.items())[n % len(DOORS)] for n in range(at_once)]
    with ChatServer(slow(0.05)) as model, serve(model, budget_day_calls=most) as at:

        def ask(door: tuple[str, object]) -> httpx.Response:
            with at.client(Accept="application/json, text/event-stream") as client:
                start.wait(20)
                return client.post(door[0], json=door[1])

        with ThreadPoolExecutor(at_once) as people:
            replies = list(people.map(ask, doors))
        store = at.server.workspace.store
        spent = budgets.spent(store, "local", store.now()[:10])
        reached = sum(model.counts.values()) - model.counts[""]
    assert [reply.status_code for reply in replies] == [200] * at_once, [reply.text for reply in replies]
    assert all("31 metres" in reply.text for reply in replies), "a question without budget is answered by quoting"
    assert one + 2 * TRIED < spent.calls <= most and reached == spent.calls - one - 2 * TRIED
