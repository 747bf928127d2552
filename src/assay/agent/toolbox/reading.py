"""Tools that read on where something was found: `read_on`, `read_table`; `read_rows` and `read_rest` for the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from assay.agent.tool import Query, Result, ToolContext, as_found, built_in
from assay.agent.toolbox.documents import some
from assay.core.errors import ToolError
from assay.core.formats import format_named
from assay.core.types import Hit, Passage, Table
from assay.language.sentences import is_table_row

BESIDE = 4  # passages returned, those nearest to the given one


@built_in(hides_note=True, reads_one=True)
async def read_table(context: ToolContext, passage: str) -> Result:
    """Read the rest of a passage's table."""
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


AROUND = 3  # passages returned


@built_in(hides_note=True, reads_one=True)
async def read_on(context: ToolContext, passage: str, direction: Literal["after", "before"] = "after") -> Result:
    """Read what stands right after or before a passage."""
    here = context.passage(passage)
    hits = await context.passages(here.doc_id)
    if direction == "after":
        beside = [hit for hit in hits if hit.passage.start > here.start][:AROUND]
    else:
        beside = [hit for hit in hits if hit.passage.start < here.start][-AROUND:]
    if not beside:
        return Result(
            (), f"nothing comes {direction} it: it stands at the {'end' if direction == 'after' else 'beginning'}"
        )
    return Result(as_found(beside), f"{some(len(beside), 'passage')} {direction} it, in reading order")


LONGEST = 80  # passages that are still to be read, at most: a longer document is searched, not read


@built_in(hides_note=True)
async def read_rest(context: ToolContext, document: str) -> Result:
    """Read what was not weighed yet of a document, to its end.

    document: the document's id
    """
    rest = [hit for hit in await context.passages(document) if hit.passage.id not in context.weighed]
    if len(rest) > LONGEST:
        return Result((), f"{some(len(rest), 'passage')} are left, too many to read", (document,), left=len(rest))
    return Result(as_found(rest), f"{some(len(rest), 'passage')} more, to its end", (document,), whole=(document,))


MOST = 60  # passages


@built_in(reads_one=True)
async def read_rows(context: ToolContext, document: str, rows: Query) -> Result:
    """Read the passages of a document that contain certain rows of a table.

    document: the id of the document
    rows: where the rows begin and end in its text: 120-184 184-260
    """
    try:
        spans = row_spans(rows)
    except ValueError:
        raise ToolError(f"{rows!r} are no places of rows.") from None
    hits = await context.passages(document)
    by_passage: dict[str, Hit] = {}
    for start, end in spans:
        for hit in hits:
            if hit.passage.start <= start and end <= hit.passage.end:
                by_passage.setdefault(hit.passage.id, hit)
                break
    found = list(by_passage.values())[:MOST]
    return Result(as_found(found), f"{some(len(spans), 'row')} in {some(len(found), 'passage')}")


def row_spans(rows: str) -> list[tuple[int, int]]:
    return [(int(start), int(end)) for start, _, end in (each.partition("-") for each in rows.split())]
