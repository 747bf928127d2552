"""`read_rest`: the passages of a document that were not found yet, so that it is read to its end. Only the rules use it."""

from __future__ import annotations

from assay.agent.tool import Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some

LONGEST = 80  # passages that are still to be read, at most: a longer document is searched, not read


@built_in(hides_note=True)
async def read_rest(context: ToolContext, document: str) -> Result:
    """Read what was not found yet of a document, to its end.

    document: the document's id
    """
    known = {found.passage.id for found in context.found}
    rest = [hit for hit in await context.passages(document) if hit.passage.id not in known]
    if len(rest) > LONGEST:
        return Result((), f"{some(len(rest), 'passage')} are left, too many to read", (document,), left=len(rest))
    return Result(as_found(rest), f"{some(len(rest), 'passage')} more, to its end", (document,), whole=(document,))
