"""`summarise_results`: a note on the results so far. It informs decisions and is never evidence."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.tool import Result, tool
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.agent.toolbox.results import documents_of, quoted, results, sentences_about
from assay.agent.toolbox.search import some
from assay.prompts.fence import fence

NOTE_SENTENCES = 6  # sentences in the note when there is no model


class Summary(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    summary: str = Field(max_length=1500)


@tool
async def summarise_results(context: ToolContext, about: str) -> Result:
    """Sum up what was found so far, to see what is still missing. Not evidence.

    about: what to sum up, in a few words
    """
    pieces = results(context)
    head = f"{some(len(pieces), 'passage')} of {some(len(documents_of(pieces)), 'document')} found so far"

    def build_prompt(room: int) -> Mapping[str, str]:
        fenced = fence(context.mark, "subject", shown(about, 300))
        return {"about": fenced, "passages": quoted(context, pieces, [piece.key for piece in pieces], room)}

    if context.consult is not None:
        note = await context.consult("summarise", Summary, build_prompt, documents_of(pieces))
        if note is not None:
            return Result((), f"{head}. In short: {shown(note.summary, 1500)}", documents_of(pieces))
    lines = (f"- [{piece.key}] {words}" for piece, words in sentences_about(about, pieces, NOTE_SENTENCES))
    return Result((), "\n".join((f"{head}. The sentences nearest to it:", *lines)), documents_of(pieces))
