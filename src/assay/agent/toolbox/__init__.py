"""The registry of built-in tools, by name. One file per tool; all are read-only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.agent.tool import Tool
from assay.agent.toolbox.collection import catalogue
from assay.agent.toolbox.compare_documents import compare_documents
from assay.agent.toolbox.custom import admit_tool, load_tools
from assay.agent.toolbox.extract_entities import extract_entities
from assay.agent.toolbox.follow import follow
from assay.agent.toolbox.get_document import get_document
from assay.agent.toolbox.list_sources import list_sources
from assay.agent.toolbox.read_on import read_on
from assay.agent.toolbox.read_rest import read_rest
from assay.agent.toolbox.read_rows import read_rows
from assay.agent.toolbox.read_table import read_table
from assay.agent.toolbox.recall import recall
from assay.agent.toolbox.search import search, search_in
from assay.agent.toolbox.search_all import search_all
from assay.agent.toolbox.search_by_source import search_by_source
from assay.agent.toolbox.summarise_results import summarise_results
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
