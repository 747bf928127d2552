"""Keys and passwords never enter a record, whoever repeats them: an endpoint, a proxy, a tool, an error."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, HttpReply
from ledger import QUESTION

from assay.core.events import Asked, Failed, Mode, ToolRan
from assay.core.run import Run
from assay.core.settings import Settings, hider
from assay.evaluate.plain_text import WordEmbedder
from assay.store.runs import records
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import AskOptions

KEY = "sk-very-secret-0123456789"


def recorded(opened: Workspace) -> str:
    """Every byte of the state's file, with what has not reached it yet."""
    opened.close()
    return "".join(file.read_bytes().decode("latin-1") for file in opened.path.glob("state.db*"))


def door(opened: Workspace, url: str) -> Workspace:
    at = open_workspace(opened.path, llm_base_url=url, llm_model="scripted", llm_api_key=KEY, llm_timeout=5.0)
    at.embedder = WordEmbedder()
    return at


async def asked(opened: Workspace, how: AskOptions) -> list[Any]:
    return [event async for _, event in opened.ask(QUESTION, how)]


@pytest.mark.parametrize("status", [200, 401])
def test_an_endpoint_that_repeats_its_headers_leaves_no_key_in_any_record(opened: Workspace, status: int):
    def echo(request: dict[str, Any]) -> Any:
        said = str(server.headers[-1])
        return f"You sent {said}." if status == 200 else HttpReply(status, said.encode())

    with ChatServer(echo) as server:
        at = door(opened, server.url)
        try:
            events = asyncio.run(asked(at, AskOptions(mode=Mode.quick)))
        except Exception as error:
            events = [str(error)]
        assert any(KEY in str(each) for each in server.headers), "the endpoint has seen the key"
    assert KEY not in str(events) and KEY not in recorded(at)
    if status == 200:
        assert "You sent" in str(events), "what it said is recorded, without the key"


def test_a_tool_or_an_error_that_repeats_a_key_leaves_none_in_any_record(opened: Workspace):
    at = door(opened, "http://127.0.0.1:9/v1")
    run = at.questions.record(Run(records.begin(at.store, "local"), ()), Asked("Why?", "local", "2026-01-01"))
    run = at.questions.record(run, ToolRan("c1", (), note=f"The key is {KEY}.", error=f"{KEY} was refused"))
    run = at.questions.record(run, Failed("ModelError", f"The proxy said {KEY}."))
    assert KEY not in str(run.events) and "The key is …." in str(run.events)
    assert KEY not in recorded(at)


def test_every_form_of_a_secret_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "key").write_text("from-a-file-123\n")
    monkeypatch.setenv("OPENAI_API_KEY", "of-a-provider-1")
    monkeypatch.setenv("HTTPS_PROXY", "http://somebody:by%40environment@proxy:3128")
    hide = hider(
        Settings(
            llm_api_key='with"quotes-and\\more',
            embedder_api_key=f"file:{tmp_path / 'key'}",
            reranker_api_key="file:/not/there",
            proxy="http://somebody:pass%40word1@proxy:3128",
            llm_base_url="https://me:endpoint-word@host/v1",
        )
    )
    for words in (
        'with"quotes-and\\more', 'with\\"quotes-and\\\\more', "from-a-file-123", "of-a-provider-1", "pass%40word1",
        "pass@word1", "endpoint-word", "by@environment",
    ):  # fmt: skip
        assert hide(f"<{words}>") == "<…>", words
    assert "c29tZWJvZHk6cGFzc0B3b3JkMQ==" not in hide("Basic c29tZWJvZHk6cGFzc0B3b3JkMQ==")


def test_a_key_that_is_no_secret_does_not_eat_the_text():
    assert hider(Settings(llm_api_key="k"))("a kettle") == "a kettle"
