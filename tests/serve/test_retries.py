"""A model that does not answer is told while it is asked again: on the stream of the run and on no record. What had passed its
check when a run was stopped is kept."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, HttpReply, Script, role_of
from doubles.held_stream import HeldStream
from notes import until
from serving import Served, served
from test_streamed_answers import FACTS, QUESTION, folder, model, word  # noqa: F401  `folder` is a fixture

from assay.models.http import Retries, Retry, TransientFailure, tries_in, watched, with_retries


class Failing:
    """Does not answer requests to write until it is well."""

    def __init__(self, script: Script) -> None:
        self.script, self.well = script, False

    def answer(self, request: dict[str, Any]) -> Any:
        failing = role_of(request)[0] == "write" and not self.well
        return HttpReply(503, "busy") if failing else self.script.answer(request)


def test_how_many_tries_there_are_is_known_from_the_time_that_is_left():
    assert tries_in(179.5, 1, None) + 1 == 14
    assert tries_in(0.4, 1, None) == 0
    assert tries_in(10.5, 1, 2.0) == 5


async def test_what_is_tried_again_is_told_and_forgotten_when_it_has_answered():
    told: list[str] = []
    retries = Retries(lambda: told.append(retries.line))
    watched.set(retries)
    failures = iter([TransientFailure(ValueError(), None, "answered with status 503")] * 2)

    async def attempt(_: float) -> str:
        if failure := next(failures, None):
            raise failure
        return "here"

    async def at_once(_: float) -> None:
        await asyncio.sleep(0)

    assert await with_retries(attempt, 180.0, late=lambda: "", sleep=at_once) == "here"
    first = "The model does not answer (status 503), try 2 of 14."
    assert told == [first, first.replace("2 of 14", "3 of 14"), ""]
    assert Retry("embedding", "", 2, 9).line == "The embedding endpoint does not answer, try 2 of 9."


def test_a_stream_tells_each_try_and_that_it_is_over_and_the_record_does_not(folder: Path):  # noqa: F811
    failing = Failing(model())
    with ChatServer(failing.answer) as server, served(folder, server, llm_concurrency=4) as at, at.client() as client:
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        told: list[str] = []
        kinds: list[str] = []
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            kind = ""
            for line in stream.iter_lines():
                name, _, value = line.partition(": ")
                kind = value if name == "event" else kind
                if name == "data":
                    kinds.append(kind)
                if name == "data" and kind == "retrying":
                    told.append(json.loads(value)["line"])
                    failing.well = True
        assert re.match(r"The model does not answer \(status 503\), try \d+ of \d+\.", told[0])
        assert told[-1] == ""
        assert "127.0.0.1" not in "".join(told)
        assert kinds[-1] == "end"
        recorded = client.get(f"/api/runs/{run}/events?format=json").json()["events"]
        assert "retrying" not in {each["kind"] for each in recorded}
        assert client.get(f"/api/runs/{run}").json()["state"] == "delivered"


@pytest.fixture
def held() -> HeldStream:
    return HeldStream(model().answer, upto="zanthoricf")


@pytest.fixture
def at(folder: Path, held: HeldStream) -> Iterator[Served]:  # noqa: F811
    with ChatServer(held) as server, served(folder, server, llm_concurrency=4) as there:
        try:
            yield there
        finally:
            held.release()


def test_what_had_passed_is_kept_when_a_run_is_stopped_and_nothing_else(at: Served, held: HeldStream):
    with at.client() as client:
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        shown = ""
        with client.stream("GET", f"/api/runs/{run}/events") as stream:
            for line in stream.iter_lines():
                shown = line if '"statements"' in line else shown
                if word(2) in shown:
                    break
        until(held.reached.is_set)
        assert client.get(f"/api/runs/{run}").json()["statements"] == []  # of a run that goes on, the stream tells
        client.post(f"/api/runs/{run}/cancel")
        stopped = client.get(f"/api/runs/{run}").json()
        assert stopped["state"] == "cancelled"
        told = [each["text"] for each in json.loads(shown.partition(": ")[2])["statements"] if each.get("text")]
        assert [each["text"] for each in stopped["statements"]] == told
        assert not any(word(place) in json.dumps(stopped) for place in range(3, len(FACTS)))
