"""Commands say in a sentence on standard error that an earlier version read documents, and do their work."""

from __future__ import annotations

import asyncio
import json

import pytest
from terminal import Typed

from assay.cli.serve import describe_server
from assay.ingest import pipeline
from assay.serve.state import ServeOptions
from assay.workspace.facade import Workspace

SENTENCE = "read by an earlier version"


@pytest.fixture
def outdated(noted: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setattr(pipeline, "PARSER", "next")
    return noted


@pytest.mark.usefixtures("outdated")
@pytest.mark.parametrize(
    "words", [("search", "beacon"), ("sources",), ("ask", "Who tends the beacon?"), ("chat", "Who?")]
)
def test_a_command_that_searches_or_lists_says_it_once_aside(typed: Typed, words: tuple[str, ...]):
    done = typed(*words)
    assert done.err.count(SENTENCE) == 1 and SENTENCE not in done.out and done.out


@pytest.mark.usefixtures("outdated")
def test_json_is_without_it(typed: Typed):
    listed, found = typed("sources", "--json"), typed("search", "beacon", "--json")
    assert json.loads(listed.out) and json.loads(found.out)
    assert SENTENCE not in listed.out + found.out
    assert SENTENCE not in typed("ask", "Who tends the beacon?", "--quiet").err


def test_after_a_reindex_nothing_is_said(typed: Typed, outdated: Workspace):
    assert SENTENCE in typed("sources").err
    assert typed("reindex").code == 0
    assert SENTENCE not in typed("sources").err


def test_doctor_and_the_start_of_a_server_say_it(typed: Typed, outdated: Workspace):
    line = next(each for each in json.loads(typed("doctor", "--json").out) if each["check"] == "documents")
    assert line["ok"] is None and SENTENCE in line["found"]
    lines = describe_server(outdated, ServeOptions(), "http://127.0.0.1:1/")
    assert sum(SENTENCE in each for each in lines) == 1
    asyncio.run(outdated.documents.reindex())
    assert not any(SENTENCE in each for each in describe_server(outdated, ServeOptions(), "http://127.0.0.1:1/"))
