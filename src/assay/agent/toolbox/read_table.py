"""`read_table`: the other passages of the table that a passage is part of."""

from __future__ import annotations

from collections.abc import Sequence

from assay.agent.tool import Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some
from assay.core.formats import format_named
from assay.core.types import Hit, Passage, Table
from assay.language.sentences import is_table_row

BESIDE = 4  # passages returned, those nearest to the given one


@built_in(hides_note=True, reads_one=True)
async def read_table(context: ToolContext, passage: str) -> Result:
    """Read the rest of the table or statement that a passage is part of.

    passage: the key of a passage that was found
    """
    here = context.passage(passage)
    document = context.document(here.doc_id)
    rest = nearest(here, table_around(here, await context.passages(here.doc_id), document.tables if document else ()))
    if not rest:
        return Result((), "the passage is not part of a longer table")
    return Result(as_found(rest), f"{some(len(rest), 'passage')} of the same table")


def nearest(here: Passage, table: Sequence[Hit], most: int = BESIDE) -> list[Hit]:
    """The passages of a table that are nearest to one of them, in reading order."""
    others = [hit for hit in table if hit.passage.id != here.id]
    near = sorted(others, key=lambda hit: abs(hit.passage.start - here.start))[:most]
    return sorted(near, key=lambda hit: hit.passage.start)


def table_around(here: Passage, document: Sequence[Hit], tables: Sequence[Table] = ()) -> list[Hit]:
    """The adjacent passages of a document, in reading order, that belong to the table of a passage: they hold rows of the
    same table, or rows under the same heading, as the two halves of a balance sheet do."""
    place = next((at for at, other in enumerate(document) if other.passage.id == here.id), None)
    if place is None or not (is_table(document[place]) or tables_in(here, tables)):
        return []
    own = tables_in(here, tables)

    def belongs(other: Hit) -> bool:
        theirs = tables_in(other.passage, tables)
        same_heading = other.passage.heading == here.heading and (is_table(other) or bool(theirs))
        return same_heading or bool(own & theirs)

    first = last = place
    while first > 0 and belongs(document[first - 1]):
        first -= 1
    while last + 1 < len(document) and belongs(document[last + 1]):
        last += 1
    return list(document[first : last + 1])


def tables_in(passage: Passage, tables: Sequence[Table]) -> set[int]:
    """The places of the tables that a passage holds rows of."""
    return {at for at, table in enumerate(tables) if table.start < passage.end and passage.start < table.end}


def is_table(hit: Hit) -> bool:
    """Whether a passage consists of rows of a table."""
    lines = [line for line in hit.passage.text.splitlines() if line.strip()]
    return format_named(str(hit.fields.get("type"))).rows or 2 * sum(map(is_table_row, lines)) > len(lines)
