"""`get_document`: a document in parts, each small enough to read at once."""

from __future__ import annotations

from typing import Annotated

from assay.agent.tool import Result, Within, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import document_named, line, shown
from assay.core.errors import ToolError
from assay.core.types import Document, Hit

PART = 8  # passages per part
OUTLINE = 30  # headings shown


@built_in(reads_one=True)
async def get_document(context: ToolContext, source: str, part: Annotated[int, Within(1, 10_000)] = 1) -> Result:
    """Read a document from its beginning. A long one has parts; the outline says what stands in which.

    source: the document's name, as list_sources gives it
    part: which part to read
    """
    entry = document_named(context, source)
    document = context.document(entry.id)
    hits = await context.passages(entry.id)
    parts = max(1, -(-len(hits) // PART))
    if document is None or not hits:  # deleted between the two reads
        raise ToolError(f"There is no document called {shown(source)!r}. list_sources shows what there is.")
    if part > parts:
        raise ToolError(f"{shown(entry.name)} has {parts} parts; there is no part {part}.")
    note = f"{line(entry, shown(entry.name))}, part {part} of {parts}."
    if part < parts:
        note += f" Part {part + 1} comes next."
    if outline := _outline(document, hits):
        note += f"\n{outline}"
    return Result(as_found(hits[(part - 1) * PART : part * PART]), note, (entry.id,))


def _outline(document: Document, hits: list[Hit]) -> str:
    """The headings, each with the part it is in; only the upper levels if there are many."""
    sections = list(document.sections)
    while len(sections) > OUTLINE and len({section.level for section in sections}) > 1:
        deepest = max(section.level for section in sections)
        sections = [section for section in sections if section.level < deepest]
    lines = [
        f"- part {_part_at(section.start, hits)}: {shown(section.title, 80)}"
        for section in sections[:OUTLINE]
        if section.title.strip()
    ]
    if len(sections) > OUTLINE:
        lines.append(f"- and {len(sections) - OUTLINE} more headings")
    return "\n".join(lines)


def _part_at(offset: int, hits: list[Hit]) -> int:
    before = sum(hit.passage.start <= offset for hit in hits)
    return max(0, before - 1) // PART + 1
