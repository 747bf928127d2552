"""`compare_documents`: what each of a few documents says on one aspect, side by side. The note is never evidence; the
passages it is based on are returned as results."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.tool import Result, Within, as_found, tool
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import document_named, shown
from assay.agent.toolbox.results import Piece, quoted, sentences_about
from assay.answer.weigh import evidence_key
from assay.core.errors import ToolError
from assay.core.types import Hit
from assay.index.filters import Eq
from assay.prompts.fence import fence
from assay.store.documents import Entry

EACH = 4  # passages per document


class DocumentStatement(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    number: int
    says: str = Field(max_length=500)


class Comparison(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    documents: list[DocumentStatement] = Field(max_length=6)
    difference: str = Field(max_length=500)


@dataclass(frozen=True, slots=True)
class Side:
    entry: Entry
    hits: tuple[Hit, ...]

    @property
    def pieces(self) -> list[Piece]:
        return [Piece(evidence_key(hit.passage), self.entry.title, hit.passage) for hit in self.hits]


@tool
async def compare_documents(context: ToolContext, documents: Annotated[list[str], Within(2, 6)], aspect: str) -> Result:
    """Compare a few documents in one respect.

    documents: their names, as list_sources gives them
    aspect: in what respect, in a few keywords
    """
    entries = context.sources()
    compared = list(
        {entry.id: entry for name in documents for entry in [document_named(context, name, entries)]}.values()
    )
    if len(compared) < 2:
        raise ToolError("compare_documents: 'documents' must name at least 2 different documents.")
    hits = await asyncio.gather(*(context.retrieve(aspect, EACH, Eq("doc", each.id), deep=True) for each in compared))
    sides = [Side(entry, tuple(found)) for entry, found in zip(compared, hits, strict=True)]
    note = await _by_model(context, sides, aspect) or _by_rule(sides, aspect)
    found = sorted((hit for side in sides for hit in side.hits), key=lambda hit: -hit.scores.get("fused", 0.0))
    return Result(as_found(found), note, tuple(entry.id for entry in compared))


async def _by_model(context: ToolContext, sides: Sequence[Side], aspect: str) -> str:
    numbered = [(place, piece) for place, side in enumerate(sides, 1) for piece in side.pieces]
    # Best passage of each document first, so that every document is represented when space is short.
    ranked = sorted(numbered, key=lambda pair: sides[pair[0] - 1].pieces.index(pair[1]))

    def build_prompt(room: int) -> Mapping[str, str]:
        labels = [f"document {place}" for place, _ in ranked]
        fenced = fence(context.mark, "aspect", shown(aspect, 300))
        return {"aspect": fenced, "passages": quoted(context, [piece for _, piece in ranked], labels, room)}

    if context.consult is None or not numbered:
        return ""
    note = await context.consult("compare", Comparison, build_prompt, [side.entry.id for side in sides])
    if note is None:
        return ""
    says = {each.number: each.says for each in note.documents}
    lines = [
        f"- {shown(side.entry.title)}: {shown(says.get(place, 'nothing'), 500)}" for place, side in enumerate(sides, 1)
    ]
    return "\n".join((f"On {shown(aspect)}:", *lines, f"In all: {shown(note.difference, 500)}"))


def _by_rule(sides: Sequence[Side], aspect: str) -> str:
    lines = []
    for side in sides:
        quoted_sentences = sentences_about(aspect, side.pieces, 1)
        lines.append(
            f"- {shown(side.entry.title)}: {quoted_sentences[0][1] if quoted_sentences else 'nothing about it'}"
        )
    return "\n".join((f"Nearest to {shown(aspect)}, side by side:", *lines))
