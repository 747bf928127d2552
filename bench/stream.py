"""How soon the first verified statement of an answer appears, while the answer is written at 40 tokens a second.

    .venv/bin/python bench/stream.py [--rate 40] [--statements 10] [--rounds 3] [--out FILE]

A scripted endpoint writes and judges, each reply at this rate (four characters a token), streamed where it is asked for so.
The answer has ten statements, each with its ruling. Counted is from the first token of the draft: to the first statement that
may be shown, and to the whole answer. `whole` is the same without streaming.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from result_file import add_out, write_result
from scripted import (
    ChatServer,
    ConnectionAction,
    Script,
    completion,
    event_text,
    events,
    keeps,
    lookup,
    passages_in,
    reply_of,
    role_of,
)

from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.workspace.facade import open_workspace

TOKEN = 4  # characters
HALLS = "one two three four five six seven eight nine ten eleven twelve".split()
QUESTION = "What was done in each hall of the Pellam plant?"


def fact(hall: str) -> str:
    return (
        f"In hall {hall} of the Pellam plant the valves were closed and the seals renewed before the winter inspection."
    )


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=str(data, "utf-8"), kind="text", title=name)


class Paced:
    """A model that writes so many tokens a second. `first` is when the first token of the draft came."""

    def __init__(self, halls: Sequence[str], rate: float, *, streams: bool) -> None:
        self.rate, self.streams, self.first = rate, streams, 0.0
        facts = [fact(hall) for hall in halls]
        lines: dict[str, Any] = {"route": lookup(), "weigh": keeps(*facts), "judge": {"enough": True}}
        self.script = Script(**lines, write=_draft(halls), check=_rulings)

    async def answer(self, request: dict[str, Any]) -> Any:
        role, output = role_of(request)[0], self.script.answer(request)
        if role not in ("write", "check"):
            return output
        reply = reply_of(output, request)
        if role == "write" and not self.first:
            self.first = time.perf_counter()
        if not (request.get("stream") and self.streams):
            await asyncio.sleep(len(reply.text) / TOKEN / self.rate)
            body = json.dumps(completion(reply, "scripted")).encode()
            return ConnectionAction(lambda exchange: exchange.reply(200, body))

        async def play(exchange: Any) -> None:
            await exchange.start("text/event-stream")
            for event in events(reply, request, "scripted"):
                await asyncio.sleep(len(event_text(event)) / TOKEN / self.rate)
                await exchange.write(event)
            await exchange.write(b"", last=True)

        return ConnectionAction(play)


def _draft(halls: Sequence[str]) -> Any:
    def write(text: str, schema: Any) -> dict[str, Any]:
        key = next(iter(passages_in(text)))
        stated = [f"Before winter, hall {hall} had its valves closed and its seals renewed." for hall in halls]
        claims = [{"text": words, "cites": [key], "calculation": None} for words in stated]
        block = {"heading": "", "opinion": False, "claims": claims}
        return {"shape": "list", "conflicts": [], "blocks": [block], "missing": []}

    return write


def _rulings(text: str, schema: Any) -> dict[str, Any]:
    """Every claim is supported, by the sentence about its hall."""
    why = "the log says so of this hall, in other words"
    rulings = [
        {"claim": int(number), "words": [fact(hall)], "why": why, "verdict": "supported"}
        for number, hall in re.findall(r"^Claim (\d+) .*?hall (\w+)", text, re.MULTILINE)
    ]
    return {"rulings": rulings, "answers": True, "missing": [], "search": ""}


async def measured(halls: Sequence[str], rate: float, *, streams: bool) -> dict[str, float]:
    """Seconds from the first token of the draft to the first statement that may be shown, and to the answer."""
    paced = Paced(halls, rate, streams=streams)
    with tempfile.TemporaryDirectory() as made, ChatServer(paced.answer) as server:
        model = {"llm_base_url": server.url, "llm_model": "scripted", "llm_api_key": "k", "llm_concurrency": 4}
        with open_workspace(Path(made) / "w", create=True, **model) as opened:
            opened.embedder = WordEmbedder()
            log = " ".join(map(fact, halls)).encode()
            await opened.documents.add_sources([SourceFile(uri="log", name="log", data=log)], reader=Plain())
            first = 0.0
            async for run, _ in opened.ask(QUESTION):
                if not first and any(each.claim for each in opened.questions.statements(run)):
                    first = time.perf_counter()
    assert run.answer is not None and len(run.answer.claims) == len(halls), "not every statement was delivered"
    return {"first": round(first - paced.first, 2), "whole": round(time.perf_counter() - paced.first, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=40.0)
    parser.add_argument("--statements", type=int, default=10, choices=range(5, len(HALLS) + 1))
    parser.add_argument("--rounds", type=int, default=3)
    add_out(parser)
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    for name, streams in (("streamed", True), ("not streamed", False)):
        rounds = [
            asyncio.run(measured(HALLS[: given.statements], given.rate, streams=streams)) for _ in range(given.rounds)
        ]
        row = {key: statistics.median(each[key] for each in rounds) for key in ("first", "whole")}
        figures[name] = row | {"share": round(row["first"] / row["whole"], 2)}
        print(f"{name}: first {row['first']:.1f} s, whole {row['whole']:.1f} s, share {figures[name]['share']:.2f}")
    write_result(given.out, {"seconds from the first token of the draft": figures})


if __name__ == "__main__":
    main()
