"""Tools that write notes on the results so far: `compare_documents`, `summarise_results`, `extract_entities`. Only what
this person may still read; a note is never evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field

from assay.agent.hop_ranking import bare_title, name_key, names_in
from assay.agent.tool import Result, ToolContext, Within, as_found, tool
from assay.agent.toolbox.documents import document_named, shown, some
from assay.answer.weigh import evidence_key, rarity
from assay.core.errors import ToolError
from assay.core.types import Hit, Passage
from assay.index.filters import Eq
from assay.language import sentences
from assay.language.dates import MONTHS
from assay.language.terms import content_terms, fold_case
from assay.models.cost import estimate_tokens
from assay.prompts import context_label, fence
from assay.store.documents import Entry

SHORTEST = 40  # tokens; shorter excerpts are not worth showing
FENCE = 60  # tokens taken by fence marks and labels


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage with the key shown to people and models."""

    key: str
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


def quoted(context: ToolContext, pieces: Sequence[Piece], labels: Sequence[str], room: int) -> str:
    """As many passages as fit the token budget, in order, each fenced with the run's mark."""
    parts: list[str] = []
    for piece, label in zip(pieces, labels, strict=True):
        words = piece.passage.text
        length = estimate_tokens(words)
        room -= FENCE
        if room < min(SHORTEST, length):
            break
        if length > room:
            words = f"{words[: len(words) * room // length]}…"
        parts.append(fence(context.mark, f"{label}, {shown(piece.title)}{context_label(piece.passage)}", words))
        room -= min(length, room)
    return "\n\n".join(parts)


def sentences_about(about: str, pieces: Sequence[Piece], most: int) -> list[tuple[Piece, str]]:
    """The sentences most relevant to a topic, one per passage, best first. Used when there is no model."""
    rare = rarity(about, [piece.passage.text for piece in pieces])

    def speaks(words: str) -> float:
        return sum(rare.get(term, 0.0) for term in set(content_terms(words)))

    by_sentence: dict[str, Piece] = {}
    for piece in pieces:
        body = piece.passage.text
        all_of_it = [body[start:end] for start, end in sentences.split_statements(body)] or [body]
        by_sentence.setdefault(max(filter(sentences.is_statement, all_of_it), key=speaks, default=all_of_it[0]), piece)
    return [(by_sentence[words], shown(words, 300)) for words in sorted(by_sentence, key=speaks, reverse=True)[:most]]


EACH = 4  # passages per document


class DocumentStatement(BaseModel, extra="forbid"):
    number: int
    says: str = Field(max_length=500)


class Comparison(BaseModel, extra="forbid"):
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


NOTE_SENTENCES = 6  # sentences in the note when there is no model


class Summary(BaseModel, extra="forbid"):
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


MOST = 40
KEYS = 4  # passage keys listed per entity

_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
DATE = re.compile(
    rf"\b\d{{4}}-\d\d(?:-\d\d)?\b|\b(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?\d{{4}}\b|\b\d{{1,2}} {_MONTH}(?!\w)", re.I
)
NUMBER = re.compile(r"(?<![\w.,-])[-+]?[$€£]?\d[\d,.]*\d%?|(?<![\w.,-])[-+]?[$€£]?\d%?")
UNIT = re.compile(r"\s?(?:%|°C|[A-Za-zµ]{1,12}[23]?(?:/[A-Za-z]+)?)(?!\w)")


class Entities(BaseModel, extra="forbid"):
    entities: list[str] = Field(max_length=100)


@tool
async def extract_entities(context: ToolContext, type: str) -> Result:
    """List the things of one kind that the results so far name, and where. Not evidence.

    type: what kind: person, company, place, date, number, or any other
    """
    pieces = results(context)

    def build_prompt(room: int) -> Mapping[str, str]:
        fenced = fence(context.mark, "kind", shown(type, 300))
        return {"type": fenced, "passages": quoted(context, pieces, [piece.key for piece in pieces], room)}

    named: Sequence[str] | None = None
    if context.consult is not None:
        note = await context.consult("entities", Entities, build_prompt, documents_of(pieces))
        named = note.entities if note is not None else None
    by_rule = named is None
    places = _places(_finder(type)(pieces) if named is None else named, pieces)
    what = f"{'names' if by_rule and _finder(type) is _names else shown(type, 60)} in {some(len(pieces), 'passage')}"
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
    words = [(piece.key, f" {_flat(f'{piece.title} {piece.passage.text}')} ") for piece in pieces]
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


def _finder(type: str) -> Callable[[Sequence[Piece]], list[str]]:
    kind = fold_case(type)
    if re.search(r"\b(?:dates?|days?|months?|years?|times?)\b", kind):
        return _dates
    return _figures if re.search(r"\b(?:numbers?|figures?|amounts?|values?|quantit|sums?|prices?)", kind) else _names


def _names(pieces: Sequence[Piece]) -> list[str]:
    """The names that the rules would follow, excluding words capitalised only because they start a sentence."""
    found: list[str] = []
    for piece in pieces:
        hit = Hit(piece.passage, np.empty(0), {}, title=piece.title)
        title = name_key(bare_title(piece.title))
        found += [name for each, (name, _) in names_in(hit, pieces=False).items() if each != title]
    return found


def _dates(pieces: Sequence[Piece]) -> list[str]:
    return [match[0].rstrip(".") for piece in pieces for match in DATE.finditer(piece.passage.text)]


def _figures(pieces: Sequence[Piece]) -> list[str]:
    """Numbers with the word or sign that follows them, such as 52 mg/l. Numbers that are part of a date are excluded."""
    found: list[str] = []
    for piece in pieces:
        text = DATE.sub(lambda date: " " * len(date[0]), piece.passage.text)
        for match in NUMBER.finditer(text):
            unit = UNIT.match(text, match.end())
            found.append(match[0] + (unit[0] if unit else ""))
    return found
