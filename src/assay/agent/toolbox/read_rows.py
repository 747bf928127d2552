"""`read_rows`: the passages that contain rows of a table. Only the rules use it."""

from __future__ import annotations

from assay.agent.tool import Query, Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some
from assay.core.errors import ToolError
from assay.core.types import Hit

MOST = 60  # passages


@built_in(reads_one=True)
async def read_rows(context: ToolContext, document: str, rows: Query) -> Result:
    """Read the passages of a document that contain certain rows of a table.

    document: the id of the document
    rows: where the rows begin and end in its text: 120-184 184-260
    """
    try:
        spans = [(int(start), int(end)) for start, _, end in (each.partition("-") for each in rows.split())]
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
