"""The registry of tools, by name; all are read-only. Custom tools are loaded by import path and validated."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.agent.tool import WAIT, Tool, parameters_of
from assay.agent.toolbox.collection import catalogue
from assay.agent.toolbox.documents import get_document, list_sources
from assay.agent.toolbox.notes import compare_documents, extract_entities, summarise_results
from assay.agent.toolbox.reading import read_on, read_rest, read_rows, read_table
from assay.agent.toolbox.search import follow, recall, search, search_all, search_by_source, search_in
from assay.core.errors import UserError
from assay.language.terms import fold_case

__all__ = ["TOOLS", "load_tools", "tools_for"]

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        search,
        search_all,
        search_by_source,
        follow,
        read_on,
        read_table,
        list_sources,
        get_document,
        compare_documents,
        summarise_results,
        extract_entities,
    )
}

# Tools the rules may use.
RULE_TOOLS: dict[str, Tool] = {**TOOLS, **{each.name: each for each in (recall, catalogue, read_rows, read_rest)}}


def tools_for(
    names: Sequence[str] = (), bases: Mapping[str, str] | None = None, per_base: bool = False, own: Sequence[Tool] = ()
) -> dict[str, Tool]:
    """The tools that a model may use: the named ones (all if none is named), plus custom tools.

    bases: the knowledge bases in scope, name → description
    per_base: one search tool per base, `search_<base>`, instead of `search`
    own: custom tools
    """
    for name in names:
        if name not in TOOLS:
            raise UserError(f"There is no tool called {name!r}. There are: {', '.join(sorted(TOOLS))}.")
    selected = {name: tool for name, tool in TOOLS.items() if name in names or not names}
    if per_base and "search" in selected and bases:
        selected = _per_base(bases) | {name: tool for name, tool in selected.items() if name != "search"}
    for tool in own:
        allowed = admit_tool(tool, [*TOOLS, *selected])
        selected[allowed.name] = allowed
    return selected


def _per_base(bases: Mapping[str, str]) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    for base, description in sorted(bases.items()):
        plain = re.sub(r"[^a-z0-9]+", "_", fold_case(base)).strip("_")[:40] or "base"
        name, number = f"search_{plain}", 2
        while name in tools or name in TOOLS:
            name, number = f"search_{plain}_{number}", number + 1
        tools[name] = search_in(name, base, description)
    return tools


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


def admit_tool(tool: Tool, taken: Sequence[str]) -> Tool:
    """Validate a custom tool: it needs a description and an unused name, and gets a time limit."""
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
    return replace(tool, seconds=WAIT)
