"""The results so far, for tools that write notes about them: only what this person may still read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.answer.weigh import evidence_key, rarity
from assay.core.errors import ToolError
from assay.core.types import Passage
from assay.language import sentences
from assay.language.terms import content_terms
from assay.models.cost import estimate_tokens
from assay.prompts.fence import context_label, fence

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
