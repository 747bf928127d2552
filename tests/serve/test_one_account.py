"""One account with many long questions delays nobody else: questions have a length, a person's runs share their turns, and
what was stopped leaves its place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest
from notes import WordEmbedder
from serving import ANSWER, QUESTION, Served, until
from team import team

from assay.core.errors import UserError
from assay.serve.background import SharedThreads, asks
from assay.workspace.facade import open_workspace
from assay.workspace.types import MAX_QUESTION


def submitted(threads: SharedThreads, who: str, work: Callable[[], object]):
    token = asks.set(who)
    try:
        return threads.submit(work)
    finally:
        asks.reset(token)


async def test_a_question_that_is_a_document_is_refused_with_what_to_do_everywhere(
    serve: Callable[..., AbstractContextManager[Served]], folder: Path
):
    long = "How tall is the tower? " * 2700
    with serve() as at, at.client() as client:
        chat = {"model": "assay", "messages": [{"role": "user", "content": long}]}
        for path, body in (
            ("/api/runs", {"question": long}),
            ("/api/ask", {"question": long, "talk": True}),
            ("/api/search", {"query": long}),
            ("/v1/chat/completions", chat),
        ):
            reply = client.post(path, json=body)
            assert reply.status_code == 400, reply.text
            assert f"{MAX_QUESTION:,} is the most. Shorten it, or add the text as a document" in reply.text
    with open_workspace(folder) as opened, pytest.raises(UserError, match="Shorten it, or add the text as a document"):
        await anext(opened.ask(long))


def test_the_runs_of_one_person_share_their_turns_and_others_begin_at_once():
    gate, order = threading.Event(), []
    with SharedThreads(turns=1) as threads:
        held = [submitted(threads, "flood", lambda n=n: (order.append(n), gate.wait(30))) for n in range(8)]
        assert submitted(threads, "other", lambda: "answered").result(30) == "answered"
        assert threads.submit(lambda: "listed").result(30) == "listed"  # what is nobody's run waits for none
        assert order == [0] and not any(each.running() for each in held[1:])
        assert all(each.cancel() for each in held[1:7])  # what was cancelled takes no turn
        gate.set()
        held[7].result(30)
    assert order == [0, 7]


class Stuck(WordEmbedder):
    """Embeds the questions of one subject in a thread that does not end before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.stuck = threading.Event(), 0

    async def queries(self, texts):
        if any("flood" in text for text in texts):
            await asyncio.to_thread(self._wait)
        return await super().queries(texts)

    def _wait(self) -> None:
        self.stuck += 1
        self.gate.wait(60)


def begun(client: httpx.Client, n: int) -> list[str]:
    return [client.post("/api/runs", json={"question": f"When is flood {i}?"}).json()["run"] for i in range(n)]


def test_a_person_is_answered_while_all_runs_of_another_compute_and_what_is_stopped_leaves_its_place(folder: Path):
    with team(folder, serve_runs_per_person=3) as made, made.as_("reader") as reader, made.as_("editor") as editor:
        made.at.server.workspace.embedder = slow = Stuck()
        editor.post("/api/bases/default/access", json={"name": "user:reader", "may": True})
        for offer in reader.get("/api/offers").json():
            reader.post(f"/api/offers/{offer['id']}", json={"accept": True})
        try:
            runs = begun(reader, 3)
            until(lambda: slow.stuck > 0)
            answered = editor.post("/api/ask", json={"question": QUESTION}).json()
            assert ANSWER in str(answered["answer"])
            assert reader.post("/api/runs", json={"question": QUESTION}).status_code == 429
            for run in runs:
                assert reader.post(f"/api/runs/{run}/cancel").json()["state"] == "cancelled"
            assert made.at.server.runs.count_for("reader") == 0 and not slow.gate.is_set()
            assert reader.post("/api/runs", json={"question": QUESTION}).status_code == 201
        finally:
            slow.gate.set()
