"""Loads custom tools by import path and validates them before a model may use them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence

from assay.agent.tool import WAIT, Tool, guarded, parameters_of
from assay.core.errors import UserError

TOOL_PLACE = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def load_tools(places: str) -> tuple[Tool, ...]:
    """Load the tools named in a setting: `package.module:name`, comma-separated."""
    return tuple(_loaded(place.strip()) for place in places.split(",") if place.strip())


def _loaded(place: str) -> Tool:
    match = TOOL_PLACE.fullmatch(place)
    if match is None:
        raise UserError(f"{place!r} does not name a tool. Write package.module:name.")
    try:
        module = importlib.import_module(match["module"])
    except Exception as error:  # a third-party module may raise anything
        raise UserError(f"The tool {place!r} cannot be loaded: {type(error).__name__}: {error}.") from error
    found = getattr(module, match["name"], None)
    if not isinstance(found, Tool):
        raise UserError(f"{place!r} is not a tool. Put @tool from assay.agent.tool above the function.")
    return found


def admit_tool(tool: Tool, taken: Sequence[str], seconds: float = WAIT) -> Tool:
    """Validate and wrap a custom tool: it needs a description and an unused name, and gets a time limit."""
    if not isinstance(tool, Tool):
        raise UserError(f"{tool!r} is not a tool. Put @tool from assay.agent.tool above the function.")
    if not NAME.fullmatch(tool.name):
        raise UserError(f"A tool cannot be called {tool.name!r}. Use up to 64 letters, figures and underscores.")
    if tool.name in taken:
        raise UserError(f"There is a tool called {tool.name!r} already. Give yours another name.")
    if not tool.about.strip():
        raise UserError(f"The tool {tool.name!r} has no docstring. Say in it what the tool is for.")
    try:
        parameters_of(tool.body)
    except TypeError as error:
        raise UserError(f"The tool {tool.name!r} cannot be used: {error}.") from error
    return guarded(tool, seconds)
