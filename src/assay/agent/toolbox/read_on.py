"""`read_on`: the neighbouring passages of a passage in its document."""

from __future__ import annotations

from typing import Literal

from assay.agent.tool import Result, as_found, built_in
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.search import some

AROUND = 3  # passages returned


@built_in(hides_note=True, reads_one=True)
async def read_on(context: ToolContext, passage: str, direction: Literal["after", "before"] = "after") -> Result:
    """Read what comes right after a passage, or right before it, in the same document.

    passage: the key of a passage that was found
    direction: after or before
    """
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
