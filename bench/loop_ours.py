"""Assay as one of the agents of loop.py: the real loop, meter, records and checks, with a search that is not measured.

The index is the one in memory: the others index nothing, and Lance, which an installation has, takes 190 MB more.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.agent.loop import carry_on
from assay.agent.tool import Result, Tool, ToolContext, as_found
from assay.core.events import Asked, Mode
from assay.core.run import Run
from assay.core.types import Hit
from assay.evaluate.plain_text import PlainTextReader
from assay.ingest.sources import SourceFile
from assay.store.runs import records
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services import ask, models


class Flat:
    """An embedder to which everything is alike."""

    name, dim, window = "flat", 8, 10_000

    def tokens(self, text: str) -> int:
        return len(text.split())

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), self.dim), self.dim**-0.5, np.float32)

    queries = passages


async def filled(folder: Path, texts: Sequence[str], **flags: Any) -> tuple[Workspace, list[Hit]]:
    """A workspace with these texts, each one passage, and the passages in their order."""
    opened = open_workspace(folder / "workspace", create=True, passage_tokens=2000, **flags)
    opened.embedder = Flat()
    written = [json.dumps({"title": f"Valve log {n}", "text": each}).encode() for n, each in enumerate(texts)]
    files = [SourceFile(f"log:{n:03}", f"{n:03}", data=data) for n, data in enumerate(written)]
    await opened.documents.add_sources(files, reader=PlainTextReader())
    scope = opened.scope()
    tool_context = ToolContext(await opened.context.search_context(scope), lambda: scope)
    entries = sorted(opened.documents.listing(), key=lambda entry: entry.uri)
    hits = [hit for entry in entries for hit in await tool_context.passages(entry.id)]
    assert len(hits) == len(texts), len(hits)
    return opened, [replace(hit, scores={"fused": 1 - place / 1000}) for place, hit in enumerate(hits)]


async def agent(
    url: str, question: str, texts: Sequence[str], together: int, searches: int, folder: Path
) -> Callable[[], Awaitable[Run]]:
    endpoint = {"llm_base_url": url, "llm_model": "scripted", "llm_api_key": "k"}
    opened, hits = await filled(folder, texts, search_rounds=searches, index="memory", **endpoint)

    async def search(context: ToolContext, query: str, k: int = 8) -> Result:
        place = int(query.rpartition(" ")[2]) if query.startswith("valves ") else 0
        mine = hits[place * together :][:together]
        context.seen.update({hit.passage.id: hit for hit in mine})
        return Result(as_found(mine), f"{len(mine)} passages")

    async def follow(context: ToolContext, passage: str, name: str, query: str = "", k: int = 8) -> Result:
        return await search(context, query)

    tools = {"search": Tool("search", "Search.", search), "follow": Tool("follow", "Follow a name.", follow)}
    roles = await opened.models.connect()  # the endpoint is asked once what it can do

    async def run() -> Run:
        asked = Asked(question, opened.principal.id, "2026-01-01", Mode.balanced, seats=models.role_models(roles))
        run = opened.questions.record(Run(records.begin(opened.store, opened.principal.id), ()), asked)
        context = replace(await ask.run_context_for(opened.context, run, roles), tools=tools)
        async for event in carry_on(run, context):
            run = run.then(event)
        assert run.answer and len(run.answer.blocks[0].claims) == 4, run.events[-1]
        assert run.rounds == searches, (run.rounds, run.stopped)
        return run

    return run
