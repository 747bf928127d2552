"""Tools by which a model takes notes on the results so far: `compare_documents`, `summarise_results`, `extract_entities`.
Only what this person may still read; a note is never evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field

from assay.agent.tool import Result, ToolContext, Within, as_found, tool
from assay.agent.toolbox.documents import document_named, shown, some
from assay.answer.weigh import evidence_key
from assay.core.errors import ToolError
from assay.core.types import Passage
from assay.index.filters import Eq
from assay.language.terms import fold_case
from assay.models.cost import estimate_tokens
from assay.prompts import context_label, fence

SHORTEST = 40  # tokens; shorter excerpts are not worth showing
FENCE = 60  # tokens taken by fence marks and labels
NO_NOTE = "no model could be asked for a note"
T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage, and what it is called before a model: its key, or the number of its document."""

    label: str
    title: str
    passage: Passage


def results(context: ToolContext) -> list[Piece]:
    """The evidence, best first; if nothing was kept yet, all results."""
    evidence = [(each.key, each.passage) for each in context.evidence]
    found = [(evidence_key(each.passage), each.passage) for each in context.found]
    kept = dict(evidence or found)
    titles = context.titles([passage.doc_id for passage in kept.values()])
    pieces = [
        Piece(key, titles[passage.doc_id], passage)
        for key, passage in kept.items()
        if passage.doc_id in titles and passage.text.strip()
    ]
    if not pieces:
        raise ToolError("Nothing has been found yet. Search first.")
    return pieces


def documents_of(pieces: Sequence[Piece]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(piece.passage.doc_id for piece in pieces))


async def _note(
    context: ToolContext, name: str, kind: type[T], place: str, label: str, words: str, pieces: Sequence[Piece]
) -> T | None:
    """What the model notes of these passages; None without a reply. The prompt `name` has the words at `place`."""

    def build_prompt(room: int) -> Mapping[str, str]:
        return {place: fence(context.mark, label, shown(words, 300)), "passages": quoted(context, pieces, room)}

    if context.consult is None or not pieces:
        return None
    return await context.consult(name, kind, build_prompt, documents_of(pieces))


def quoted(context: ToolContext, pieces: Sequence[Piece], room: int) -> str:
    """As many passages as fit the token budget, in order, each fenced with the run's mark."""
    parts: list[str] = []
    for piece in pieces:
        words = piece.passage.text
        length = estimate_tokens(words)
        room -= FENCE
        if room < min(SHORTEST, length):
            break
        if length > room:
            words = f"{words[: len(words) * room // length]}…"
        parts.append(fence(context.mark, f"{piece.label}, {shown(piece.title)}{context_label(piece.passage)}", words))
        room -= min(length, room)
    return "\n\n".join(parts)


EACH = 4  # passages per document


class DocumentStatement(BaseModel, extra="forbid"):
    number: int
    says: str = Field(max_length=500)


class Comparison(BaseModel, extra="forbid"):
    documents: list[DocumentStatement] = Field(max_length=6)
    difference: str = Field(max_length=500)


@tool
async def compare_documents(context: ToolContext, documents: Annotated[list[str], Within(2, 6)], aspect: str) -> Result:
    """Compare two to six documents."""
    entries = context.sources()
    compared = list(
        {entry.id: entry for name in documents for entry in [document_named(context, name, entries)]}.values()
    )
    if len(compared) < 2:
        raise ToolError("compare_documents: 'documents' must name at least 2 different documents.")
    hits = await asyncio.gather(*(context.retrieve(aspect, EACH, Eq("doc", each.id), deep=True) for each in compared))
    # Best passage of each document first, so that every document is represented when space is short.
    pieces = [
        Piece(f"document {number}", entry.title, own[rank].passage)
        for rank in range(EACH)
        for number, (entry, own) in enumerate(zip(compared, hits, strict=True), 1)
        if rank < len(own)
    ]
    note = await _note(context, "compare", Comparison, "aspect", "aspect", aspect, pieces)
    lines = [f"On {shown(aspect)}:"]
    if note is not None:
        says = {each.number: each.says for each in note.documents}
        for number, entry in enumerate(compared, 1):
            lines.append(f"- {shown(entry.title)}: {shown(says.get(number, 'nothing'), 500)}")
        lines.append(f"In all: {shown(note.difference, 500)}")
    found = sorted((hit for own in hits for hit in own), key=lambda hit: -hit.scores.get("fused", 0.0))
    return Result(as_found(found), "\n".join(lines) if note else NO_NOTE, tuple(entry.id for entry in compared))


class Summary(BaseModel, extra="forbid"):
    summary: str = Field(max_length=1500)


@tool
async def summarise_results(context: ToolContext, about: str) -> Result:
    """Sum up what was found."""
    pieces = results(context)
    head = f"{some(len(pieces), 'passage')} of {some(len(documents_of(pieces)), 'document')} found so far"
    note = await _note(context, "summarise", Summary, "about", "subject", about, pieces)
    said = f"{head}. In short: {shown(note.summary, 1500)}" if note else f"{head}; {NO_NOTE}"
    return Result((), said, documents_of(pieces))


MOST = 40
KEYS = 4  # passage keys listed per entity


class Entities(BaseModel, extra="forbid"):
    entities: list[str] = Field(max_length=100)


@tool
async def extract_entities(context: ToolContext, type: str) -> Result:
    """List things of one type (person, place, date) in the results."""
    pieces = results(context)
    note = await _note(context, "entities", Entities, "type", "kind", type, pieces)
    if note is None:
        return Result((), NO_NOTE, documents_of(pieces))
    places = _places(note.entities, pieces)
    what = f"{shown(type, 60)} in {some(len(pieces), 'passage')}"
    if not places:
        return Result((), f"no {what}", documents_of(pieces))
    lines = [
        f"- {name} [{', '.join(keys[:KEYS])}{', …' if len(keys) > KEYS else ''}]"
        for name, keys in list(places.items())[:MOST]
    ]
    more = f"; {MOST} listed, {len(places) - MOST} more" if len(places) > MOST else ""
    return Result((), "\n".join((f"{len(places)} {what}{more}:", *lines)), documents_of(pieces))


def _places(found: Iterable[str], pieces: Sequence[Piece]) -> dict[str, list[str]]:
    """Map each entity to the keys of the passages that contain it. Entities found in no passage are invented and
    dropped."""
    words = [(piece.label, f" {_flat(f'{piece.title} {piece.passage.text}')} ") for piece in pieces]
    places: dict[str, list[str]] = {}
    known: set[str] = set()
    for name in found:
        wanted = _flat(name)
        keys = [key for key, text in words if wanted and f" {wanted} " in text]
        if keys and wanted not in known:
            known.add(wanted)
            places[shown(name)] = keys
    return places


def _flat(words: str) -> str:
    return " ".join(re.findall(r"[^\W_]+|[%$€£]", fold_case(words)))
