"""What a question will take, over HTTP: the same as in the terminal, and nothing is begun."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.parsed import Parsed
from assay.ingest.sources import SourceFile
from assay.serve.app import make_app
from assay.serve.state import Server
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.forecast import forecast_lines
from assay.workspace.types import AskOptions


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        return Parsed(text=data.decode(), kind="text", title=name)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory):
    model = {"llm_base_url": "http://127.0.0.1:9/v1", "llm_model": "m", "llm_prices": "m=1/4", "budget_run_calls": 1}
    with open_workspace(tmp_path_factory.mktemp("route") / "workspace", create=True, **model) as opened:
        opened.embedder = WordEmbedder()
        note = SourceFile(uri="notes/tower", name="tower.txt", data=b"The tower is 31 metres tall.")
        asyncio.run(opened.documents.add_sources([note], reader=Plain()))
        yield opened


async def test_a_question_is_forecast_as_in_the_terminal_and_nothing_is_begun(workspace: Workspace):
    app = make_app(Server(workspace))
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client,
    ):
        reply = await client.post("/api/forecast", json={"question": "How tall is the tower?"})
        ruled = await client.post("/api/forecast", json={"question": "How tall is the tower?", "model": False})
        strange = await client.post("/api/forecast", json={"question": "How tall?", "bases": ["nowhere"]})
        runs = await client.get("/api/runs")
    told = reply.json()
    expected = workspace.questions.forecast(AskOptions())
    assert reply.status_code == 200 and told["kind"] == "ask" and told["from_runs"] == 0 and told["error"] is None
    for name in ("calls", "tokens", "money", "seconds"):
        assert 0 < told[name]["low"] < told[name]["likely"] < told[name]["high"]
    assert told["calls"]["likely"] == expected.foreseen.calls.likely
    assert told["ceiling"] == {
        "setting": "budget_run_calls", "what": "calls", "of": "run", "most": 1.0, "probably": True
    }  # fmt: skip
    assert (told["documents"], told["passages"]) == (1, 1) and told["lines"] == forecast_lines(expected)
    assert ruled.json()["calls"] == {"low": 0.0, "likely": 0.0, "high": 0.0} and ruled.json()["ceiling"] is None
    assert strange.status_code in {400, 404}
    assert runs.json()["runs"] == []
