"""Arguments of a size and depth that no one means: refused in a line, and soon."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from tool_contexts import Library, after, call

from assay.agent.tool import schema_of
from assay.agent.toolbox import TOOLS
from assay.core.errors import ToolError


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


HUGE = {
    "10^9": 10**9,
    "10^400": 10**400,
    "negative": -(10**9),
    "NaN": math.nan,
    "infinity": math.inf,
    "10 MB": "x" * 10_000_000,
    "10 MB of spaces": " " * 10_000_000,
    "deep": deep(100_000),
    "a million names": ["x"] * 1_000_000,
    "an object": {"k" * 1_000_000: {"$ne": None}},
}
FITTING = {"string": "pump", "integer": 2, "boolean": True, "array": ["pump", "valve"]}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(TOOLS))
def test_no_argument_of_any_tool_is_too_much_for_it(plant: Library, name: str):
    tool_context = plant.tool_context()
    tool_context = after(tool_context, call(tool_context, "search", query="pump", k=2))
    properties = schema_of(TOOLS[name]).parameters["properties"]
    good = {each: of["enum"][0] if "enum" in of else FITTING[of["type"]] for each, of in properties.items()}
    for argument in properties:
        for value in HUGE.values():
            if argument == "k" and type(value) is int and value > 0:
                continue  # it counts as the highest one
            with pytest.raises(ToolError) as refused:
                asyncio.run(TOOLS[name](tool_context, {**good, argument: value}))
            assert len(str(refused.value)) < 1_200 and "\n" not in str(refused.value)


@pytest.mark.parametrize("arguments", [deep(100_000), {f"a{n}": 1 for n in range(200_000)}, "x" * 10_000_000])
def test_arguments_that_are_none_at_all_are_refused_as_well(plant: Library, arguments: Any):
    with pytest.raises(ToolError) as refused:
        asyncio.run(TOOLS["search"](plant.tool_context(), arguments))
    assert len(str(refused.value)) < 1_200
