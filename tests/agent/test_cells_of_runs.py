"""Figures from tables in a whole run: what differs from its cell goes back once, and then only the cell speaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doubles import ChatServer, Script, enough, keeps, no_calls, one_step, research, role_of, supported, text_of
from doubles.protocol import keys_in
from doubles.replies import Json
from lighthouse_notes import answered, opened
from lighthouse_notes import script as scripted

from assay.core.events import Revised
from assay.core.run import Run
from assay.core.types import Outcome
from assay.evaluate.plain_text import WordEmbedder
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.sources import SourceFile
from assay.workspace.facade import open_workspace

QUESTION = "What were the net sales of Harrow Tides in 2021?"
REPORT = """# Annual report of Harrow Tides

Statement of income (in millions)

| | 2022 | 2021 |
|---|---|---|
| Net sales | 34,229 | 35,355 |
| Operating income | 6,539 | 7,369 |
"""
TRUE = "The net sales of Harrow Tides were 35,355 million in 2021."
FALSE = "The net sales of Harrow Tides were 34,229 million in 2021."
CELL = {"cell": "r1c2", "measure": "net sales", "period": "2021", "organisation": "Harrow Tides", "direction": ""}


class Parser:
    """Reads a file as it is, in this process."""

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        return read(data if isinstance(data, bytes) else data.read_bytes(), name, FileLimits())


async def ask(tmp_path: Path, script: Script) -> tuple[Run, list[str]]:
    """The run, and the prompts of its requests from the draft on."""
    folder = tmp_path / "workspace"
    with open_workspace(folder, create=True) as made:
        made.embedder = WordEmbedder()
        file = SourceFile(uri="notes/report.md", name="report.md", data=REPORT.encode())
        await made.documents.add_sources([file], reader=Parser())
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, QUESTION)
    assert not script.problems
    prompts = [role_of(each)[1] or role_of(each)[0] for each in server.requests]
    shown = text_of(server.requests[prompts.index("write")])
    assert "[r1]" in shown and "columns c1 2022, c2 2021" in shown
    return run, prompts[prompts.index("write") :]


def claim(text: str, schema: Any, words: str, value: str) -> Json:
    key = keys_in(text)[0]
    named = [CELL | {"cite": key, "value": value}] if value else []
    return {"text": words, "cites": [key], "calculation": None, "cells": named}


def model(words: str, value: str, again: str = "", other: str = "") -> Script:
    def write(text: str, schema: Any) -> Json:
        block = {"heading": "", "claims": [claim(text, schema, words, value)], "opinion": False}
        return {"shape": "sentence", "blocks": [block], "conflicts": [], "missing": []}

    def revise(text: str, schema: Any) -> Json:
        revision = {"claim": 1, "action": "rewrite", "argument": ""} | claim(
            text, schema, again or words, other or value
        )
        return {"revisions": [revision]}

    return scripted(
        route=research(), plan=one_step(QUESTION, "net sales"), decide=no_calls(), weigh=keeps("Net sales"),
        judge=enough(), write=write, revise=revise, check=supported(),
    )  # fmt: skip


def told(run: Run) -> list[str]:
    assert run.answer is not None
    return [each.text for each in run.answer.claims]


async def test_a_claim_that_agrees_with_its_cell_is_judged_and_delivered_with_what_the_cell_is(tmp_path: Path):
    run, prompts = await ask(tmp_path, model(TRUE, "35,355 million"))
    assert prompts == ["write", "check"] and told(run) == [TRUE]
    assert run.answer is not None and run.answer.outcome is Outcome.answered
    found = run.answer.claims[0].cells[0].found
    assert (
        found is not None and found.line.startswith("Net sales, 2021") and found.line.endswith("35,355 (in millions)")
    )


async def test_a_claim_that_differs_from_its_cell_goes_back_once(tmp_path: Path):
    run, prompts = await ask(tmp_path, model(FALSE, "34,229 million", TRUE, "35,355 million"))
    assert prompts == ["write", "revise", "check"] and told(run) == [TRUE]


async def test_if_it_still_differs_only_the_cell_is_delivered_whatever_the_judge_says(tmp_path: Path):
    run, prompts = await ask(tmp_path, model(FALSE, "34,229 million"))
    assert prompts == ["write", "revise"]
    assert len(told(run)) == 1 and told(run)[0].startswith("Net sales, 2021") and "35,355" in told(run)[0]
    assert run.answer is not None and run.answer.outcome is Outcome.partial
    assert [event.by for event in run.events if isinstance(event, Revised)][-1] == "rules"


async def test_a_figure_without_a_cell_goes_back_once_and_is_then_for_the_judge(tmp_path: Path):
    run, prompts = await ask(tmp_path, model(TRUE, ""))
    assert prompts == ["write", "revise", "check"] and told(run) == [TRUE]
