"""`list_sources`: the documents this person can read within the scope of the search."""

from __future__ import annotations

from typing import Annotated

from assay.agent.tool import Count, Result, Within, tool
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import line, names, shown
from assay.agent.toolbox.search import some
from assay.language.terms import fold_case


@tool
async def list_sources(
    context: ToolContext, contains: str = "", k: Count = 20, page: Annotated[int, Within(1, 10_000)] = 1
) -> Result:
    """List the documents: name, title, type and date.

    contains: only documents whose name, title, type or date has these letters in it
    k: how many to list
    page: 2 for the next k, and so on
    """
    entries = context.sources()
    called = names(entries)
    wanted = fold_case(contains).strip()
    found = [
        entry
        for entry in entries
        if wanted in fold_case(f"{called[entry.id]} {entry.title} {entry.kind} {entry.date or ''}")
    ]
    listed = found[(page - 1) * k : page * k]
    after = max(0, len(found) - page * k)
    like = f" with {shown(contains)!r}" if wanted else ""
    if not listed:
        hint = (
            "use fewer letters" if wanted and not found else "there is no such page" if found else "nothing was added"
        )
        return Result((), f"{some(len(found), 'document')}{like}; {hint}")
    more = f"; {after} more on page {page + 1}" if after else ""
    lines = (f"- {line(entry, called[entry.id])}" for entry in listed)
    head = f"{some(len(found), 'document')}{like}; {len(listed)} listed{more}"
    return Result((), "\n".join((f"{head}:", *lines)), tuple(entry.id for entry in listed))
