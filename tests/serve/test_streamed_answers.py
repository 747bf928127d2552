"""While an answer is written, no word of it leaves before it has passed its check: not on the stream, not on any route, not at
the terminal, not in a log. What has passed is told in its place."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles import ChatServer, Script, keeps, lookup, supported, verdicts
from doubles.held_stream import HeldReply, HeldStream
from doubles.replies import Json, _claim
from notes import folder_of, until
from serving import Served, sent, served
from test_mcp import over_http

from assay.cli.run_view import view
from assay.core.events import Checked
from assay.workspace.facade import open_workspace

FACTS = [
    f"The ferry to Oster {each}."
    for each in (
        "leaves Velden at nine",
        "carries 120 people",
        "burns oil",
        "was built in Lund",
        "is green",
        "has two masts",
    )
]
SAID = [f"as the zanthoric{letter} says" for letter in "abcdef"]
QUESTION = "What does the ferry do?"
folder = folder_of({"ferry": " ".join(FACTS)})


def writes(text: str, schema: Any) -> Json:
    key = _claim(text, "x [{0}]")["cites"]
    claims = [{"text": f"{fact[:-1]}, {words}.", "cites": key} for fact, words in zip(FACTS, SAID, strict=True)]
    return {
        "shape": "prose",
        "conflicts": [],
        "blocks": [{"heading": "", "opinion": False, "claims": claims}],
        "missing": [],
    }


def model(**other: Any) -> Script:
    lines: dict[str, Any] = {"route": lookup(), "weigh": keeps(*FACTS), "judge": {"enough": True}}
    return Script(**lines | {"write": writes, "check": supported()} | other)


def word(place: int) -> str:
    return f"zanthoric{'abcdef'[place]}"


def words_in(text: str) -> set[int]:
    return {place for place in range(len(FACTS)) if word(place) in text}


@pytest.fixture
def held() -> HeldStream:
    return HeldStream(model().answer, upto="zanthoricf")


@pytest.fixture
def at(folder: Path, held: HeldStream) -> Iterator[Served]:
    with ChatServer(held) as server, served(folder, server, llm_concurrency=4) as there:
        try:
            yield there
        finally:
            held.release()


def everything(client: httpx.Client, run: str) -> str:
    """What every route tells of a run."""
    paths = ("", "/events?format=json", "/trace", "/account")
    return "\n".join(client.get(f"/api/runs/{run}{path}").text for path in paths)


def shown(frames: list[Any]) -> list[list[Any]]:
    """The statements that were told, each time they changed."""
    return [each.data["statements"] for each in list(frames) if each.event == "statements"]


def test_no_unchecked_word_leaves_the_server_while_the_draft_is_held(folder: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    checks = HeldReply(model().answer, "check", words=word(3))
    held = HeldStream(checks, upto="zanthoricf")
    with ChatServer(held) as server, served(folder, server, llm_concurrency=4) as at, at.client() as client:
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        frames: list[Any] = []

        def read() -> None:
            with client.stream("GET", f"/api/runs/{run}/events") as reply:
                frames.extend(sent(reply.iter_lines()))

        reading = threading.Thread(target=read)
        reading.start()
        until(lambda: held.reached.is_set())
        with open_workspace(folder) as opened:
            until(lambda: sum(isinstance(each, Checked) for each in opened.questions.run(run).events) == 3)
            now = opened.questions.run(run)
            told = opened.questions.statements(now)
            shown_now = opened.questions.run_for_asker(run, now)
        assert [each.claim is not None for each in told] == [True, True, True, False, False]
        assert words_in(everything(client, run)) == set()
        assert words_in(repr(view(shown_now, {}, 1.0, statements=told))) <= {0, 1, 2}
        assert words_in(repr(shown_now.events)) == set()
        until(lambda: any(words_in(json.dumps(each)) == {0, 1, 2} for each in shown(frames)))
        held.release()
        until(lambda: any(each.event == "Drafted" for each in list(frames)))
        before = [each.data for each in frames if each.event != "statements"]
        checks.released.set()
        reading.join(30)
        assert words_in(everything(client, run)) == {0, 1, 2, 3, 4, 5}
    assert words_in(json.dumps(before)) == set()
    first = next(each for each in shown(frames) if any("text" in one for one in each))
    assert words_in(json.dumps(first)) <= {0, 1, 2} and [one["place"] for one in first] == list(range(len(first)))
    assert not words_in(caplog.text)


def test_a_statement_that_fails_is_never_told(folder: Path):
    revise = {
        "revisions": [{"claim": 1, "action": "drop", "text": "", "cites": [], "argument": "", "calculation": None}]
    }
    script = model(check=[verdicts("unsupported", "supported"), supported()], revise=revise)
    held = HeldReply(script.answer, "revise")
    with ChatServer(held) as server, served(folder, server) as there, there.client() as client:
        run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        frames: list[Any] = []
        with client.stream("GET", f"/api/runs/{run}/events") as reply:
            for each in sent(reply.iter_lines()):
                frames.append(each)
                if words_in(json.dumps(shown(frames))):
                    held.released.set()
    assert word(0) not in json.dumps(shown(frames)) and word(1) in json.dumps(shown(frames))


def test_one_who_asks_over_mcp_or_as_a_chat_gets_the_answer_alone(at: Served, held: HeldStream):
    heard: list[str] = []

    def ask() -> None:
        with at.client() as client:
            body = {"model": "assay", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}
            with client.stream("POST", "/v1/chat/completions", json=body, timeout=60) as reply:
                heard.extend(reply.iter_lines())

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: held.reached.is_set())
    assert not words_in("".join(heard))
    held.release()
    asking.join(60)
    assert words_in("".join(heard)) == {0, 1, 2, 3, 4, 5}


async def test_progress_over_mcp_has_no_word_of_the_answer(at: Served, held: HeldStream):
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with over_http(at) as session:
        asking = asyncio.ensure_future(session.call_tool("ask", {"question": QUESTION}, progress_callback=progress))
        while not held.reached.is_set():  # noqa: ASYNC110  it is set in another thread
            await asyncio.sleep(0.01)
        held.release()
        reply = await asking
    assert not words_in("".join(told)) and words_in(str(reply)) == {0, 1, 2, 3, 4, 5}
