"""Somebody's own tools: let in, kept in bounds, loaded by name."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tool_contexts import ANN, BOB, PUMPS, SECRET, Library

from assay.agent.tool import Result, ToolContext, tool
from assay.agent.toolbox import load_tools, tools_for
from assay.core.codec import from_json, to_json
from assay.core.errors import ToolError, UserError
from assay.core.events import Found, ToolRan
from assay.core.types import Passage


@tool
async def glossary(context: ToolContext, word: str) -> str:
    """Say what a word means here.

    word: the word
    """
    return f"{word} means\u200b pump"


@tool
def plain(context: ToolContext, word: str) -> Result:
    """Not async."""
    return Result(note=f"{word}: {len(context.sources())} documents")


def test_a_tool_of_somebodys_own_stands_beside_the_others(plant: Library):
    tools = tools_for(["search"], own=[glossary, plain])
    assert list(tools) == ["search", "glossary", "plain"]
    assert asyncio.run(tools["glossary"](plant.tool_context(), {"word": "P7"})) == Result((), "P7 means pump")
    assert asyncio.run(tools["plain"](plant.tool_context(BOB), {"word": "P7"})).note == "P7: 2 documents"
    with pytest.raises(ToolError, match=r"glossary needs the argument 'word'\."):
        asyncio.run(tools["glossary"](plant.tool_context(), {}))


def own(body: Callable[..., Any], context: ToolContext, seconds: float = 5.0) -> Result:
    made = tool(body)
    return asyncio.run(replace(made, name="mine", about="Mine.", seconds=seconds)(context, {}))


class Odd(BaseException):
    pass


@pytest.mark.parametrize(
    "error", [ValueError("no\x07pe"), SystemExit(3), RecursionError("deep"), Odd("odd"), KeyError("k")]
)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_whatever_an_own_tool_raises_is_a_result_and_not_a_crash(
    plant: Library, error: BaseException, asynchronous: bool
):
    async def fails(context: ToolContext) -> Result:
        raise error

    def breaks(context: ToolContext) -> Result:
        raise error

    with pytest.raises(ToolError, match=f"^mine failed: {type(error).__name__}: ") as said:
        own(fails if asynchronous else breaks, plant.tool_context())
    assert "\x07" not in str(said.value)


def test_an_own_tool_that_refuses_is_taken_at_its_word(plant: Library):
    async def refuses(context: ToolContext) -> Result:
        raise ToolError("There is no such word.")

    with pytest.raises(ToolError, match=r"^There is no such word\.$"):
        own(refuses, plant.tool_context())


def test_an_own_tool_gets_only_so_long_even_if_it_will_not_stop(plant: Library):
    """Neither ends before `over` is set, which happens after it was given up."""
    over = threading.Event()

    async def stubborn(context: ToolContext) -> Result:
        while True:
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                if over.is_set():
                    raise
            if over.is_set():
                raise ToolError("late")

    def blocks(context: ToolContext) -> str:
        over.wait()
        return "late"

    for body in (stubborn, blocks):
        over.clear()
        with pytest.raises(ToolError, match=r"^mine took longer than 0\.1 seconds\.$"):
            asyncio.run(_stopped(body, plant.tool_context(), over))


async def _stopped(body: Callable[..., Any], context: ToolContext, over: threading.Event) -> Result:
    try:
        return await replace(tool(body), name="mine", seconds=0.1)(context, {})
    finally:
        over.set()


@pytest.mark.parametrize("value", [None, 5, {"note": "x"}])
def test_an_own_tool_gives_back_a_result_or_text_and_nothing_else(plant: Library, value: Any):
    async def gives(context: ToolContext) -> Any:
        return value

    with pytest.raises(ToolError, match=f"it gave back {type(value).__name__}, not a Result or text"):
        own(gives, plant.tool_context())


def test_an_own_tool_can_neither_invent_a_passage_nor_show_one_that_is_not_theirs(plant: Library):
    secret = next(entry for entry in plant.tool_context(ANN).sources() if "contract" in entry.name)
    pumps = next(entry for entry in plant.tool_context(ANN).sources() if entry.name == "pumps.txt")
    hidden = Passage("p", secret.id, SECRET[:20], 0, 20)
    invented = Passage("p", pumps.id, "Pigs can fly.", 0, 13)
    true = Passage("p", pumps.id, PUMPS[:20], 0, 20)

    def giving(passage: Passage) -> Callable[..., Any]:
        async def gives(context: ToolContext) -> Result:
            return Result((Found(passage, 1, 1.0),), "", (secret.id, pumps.id, "nonsense"), left=-5)

        return gives

    bob = plant.tool_context(BOB)
    for passage in (hidden, invented):
        with pytest.raises(ToolError, match="does not stand in a document"):
            own(giving(passage), bob)
    result = own(giving(true), bob)
    assert result.found[0].passage == true and result.documents == (pumps.id,) and result.left == 0


@tool
async def search(context: ToolContext, query: str) -> str:
    """Take the place of search."""
    return ""


@tool
async def silent(context: ToolContext, query: str) -> str:
    return ""


@tool
async def untyped(context: ToolContext, query) -> str:
    """No type."""
    return ""


@tool
async def without_context(query: str) -> str:
    """No context."""
    return ""


@tool
async def greedy(context: ToolContext, **rest: str) -> str:
    """Takes anything."""
    return ""


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (search, "There is a tool called 'search' already. Give yours another name."),
        (silent, "The tool 'silent' has no docstring. Say in it what the tool is for."),
        (untyped, "The tool 'untyped' cannot be used: 'query' must be str, int, float, bool, list[str] or a Literal"),
        (without_context, "The tool 'without_context' cannot be used: its first argument must be called 'context'."),
        (greedy, "The tool 'greedy' cannot be used: 'rest' must be an argument with a name of its own."),
        (
            replace(glossary, name="a b"),
            "A tool cannot be called 'a b'. Use up to 64 letters, figures and underscores.",
        ),
        (len, "<built-in function len> is not a tool. Put @tool from assay.agent.tool above the function."),
    ],
)
def test_an_own_tool_that_a_model_could_not_be_told_of_is_refused(made: Any, words: str):
    with pytest.raises(UserError, match=re.escape(words)):
        tools_for(own=[made])


def test_two_own_tools_of_one_name_are_refused():
    with pytest.raises(UserError, match="There is a tool called 'glossary' already"):
        tools_for(["search"], own=[glossary, glossary])


def test_own_tools_are_loaded_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_own_tools.py").write_text(
        "from assay.agent.tool import ToolContext, tool\n\n@tool\nasync def one(context: ToolContext, word: str) -> str:\n"
        '    """One."""\n    return word\n\ntwo = 2\n'
    )
    (tmp_path / "my_broken_tools.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_tools("") == ()
    assert [each.name for each in load_tools(" my_own_tools:one, ")] == ["one"]
    for place, words in (
        ("one", "'one' does not name a tool. Write package.module:name."),
        ("os.path", "'os.path' does not name a tool."),
        ("no_such_module:x", "The tool 'no_such_module:x' cannot be loaded: ModuleNotFoundError"),
        ("my_broken_tools:x", "The tool 'my_broken_tools:x' cannot be loaded: RuntimeError: not today"),
        ("my_own_tools:two", "'my_own_tools:two' is not a tool. Put @tool"),
        ("my_own_tools:three", "'my_own_tools:three' is not a tool. Put @tool"),
    ):
        with pytest.raises(UserError, match=re.escape(words)):
            load_tools(place)


def test_what_a_tool_says_fits_its_event():
    result = Result((), "n", ("d1",), 3)
    ran = ToolRan("c1", result.found, result.note, documents=result.documents, left=result.left)
    assert from_json(ToolRan, to_json(ran)) == ran
