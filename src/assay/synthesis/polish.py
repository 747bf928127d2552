"""One pass over a written text, for its flow. It may join, part and reorder sentences and work in points that are not told
yet; it may not add a name, number or date to what a sentence is made from. Everything is judged afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from assay.agent.context import RunContext, mark
from assay.answer import claims
from assay.core.events.synthesis import BY_RULES, Maker, stand_in
from assay.core.run import Run
from assay.core.synthesis import Insight
from assay.core.types import Block, Claim
from assay.language import facts
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.synthesis import state
from assay.synthesis.material import Material

SENTENCES, PARAGRAPHS, CITES = 40, 24, 6
A_SENTENCE = 70  # tokens of a sentence in the reply


class SentenceReply(BaseModel, extra="forbid"):
    """A sentence, and the numbers of the sentences and points that it is made from; without text these stay as they are."""

    text: str
    sources: list[int] = []
    points: list[int] = []


class ParagraphReply(BaseModel, extra="forbid"):
    sentences: list[SentenceReply]


class PolishedReply(BaseModel, extra="forbid"):
    paragraphs: list[ParagraphReply]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of the text, and who wrote it."""

    blocks: tuple[Block, ...]
    maker: Maker = BY_RULES


async def polish(
    run: Run, context: RunContext, of: Material, blocks: tuple[Block, ...], ids: Sequence[str]
) -> WrittenPart:
    """The text after one pass; as it was, if there is no reply or it does not fit."""
    written = [claim for block in blocks for claim in block.claims]
    untold = untold_points(of, ids, written)
    size = sum(estimate_tokens(claim.text) + 6 for claim in written)
    if not written or size + A_SENTENCE * len(written) > state.window(run) * 3 // 4:
        return WrittenPart(blocks)
    reply = await context.ask(
        Role.write,
        "polish",
        PolishedReply,
        lambda room: build_prompt(of, blocks, untold, mark(run), room),
        schema=schema(len(written), [of.numbers[id] for id in untold]),
        documents=sorted(of.documents([key for claim in written for key in claim.cites])),
        max_tokens=300 + A_SENTENCE * (len(written) + len(untold)),
    )
    if isinstance(reply, NoReply):
        return WrittenPart(blocks, stand_in(reply.why))
    points = {of.numbers[id]: of.points[id] for id in untold}
    return WrittenPart(read(reply[0], blocks, points, of), Maker(reply[1]))


def untold_points(of: Material, ids: Sequence[str], written: Sequence[Claim]) -> tuple[str, ...]:
    """The points whose passage no sentence cites."""
    cited = {key for claim in written for key in claim.cites}
    return tuple(id for id in ids if not cited & set(of.points[id].claim.cites))


def build_prompt(of: Material, blocks: Sequence[Block], untold: Sequence[str], mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `polish`: the sentences, numbered, and the points that are not told yet."""
    lines: list[str] = []
    number = 0
    for place, block in enumerate(blocks, 1):
        lines.append(f"Paragraph {place}")
        for claim in block.claims:
            number += 1
            lines.append(f"{number}: {' '.join(claim.words.split())}")
    left = "\n".join(of.line(id) for id in untold)
    points = f"Not told yet:\n{fence(mark, 'points', fit_to_tokens(left, room // 3))}\n\n" if untold else ""
    text = fit_to_tokens("\n".join(lines), max(16, room - estimate_tokens(points) - 40))
    return {"text": fence(mark, "text", text), "untold": points}


def schema(count: int, points: Sequence[int]) -> dict[str, Any]:
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    point = {"type": "integer", "enum": list(points) or [0]}
    sentence = object_schema(
        text={"type": "string"}, sources=list_schema(number, 0, 8), points=list_schema(point, 0, max(1, len(points)))
    )
    return object_schema(
        paragraphs=list_schema(object_schema(sentences=list_schema(sentence, 1, SENTENCES)), 1, PARAGRAPHS)
    )


def read(
    reply: PolishedReply, blocks: Sequence[Block], points: Mapping[int, Insight], of: Material
) -> tuple[Block, ...]:
    """The text after the pass. A sentence that is made from nothing is left out. One that adds a fact, or has no text,
    stands for the sentences it was made from. What the pass loses is put back into its paragraph."""
    written = dict(enumerate((claim for block in blocks for claim in block.claims), 1))
    told: set[int] = set()
    made: list[list[Claim]] = []
    for paragraph in reply.paragraphs[:PARAGRAPHS]:
        own: list[Claim] = []
        for sentence in paragraph.sentences[:SENTENCES]:
            numbers = [number for number in dict.fromkeys(sentence.sources) if number in written]
            added = [points[number] for number in dict.fromkeys(sentence.points) if number in points]
            unchanged = not sentence.text.strip()
            split = None if unchanged else _claims(sentence.text, [written[number] for number in numbers], added, of)
            own += [written[number] for number in numbers if number not in told] if split is None else split
            told |= set(numbers)
        made.append(own)
    first = 1
    for at, block in enumerate(blocks):
        lost = [written[number] for number in range(first, first + len(block.claims)) if number not in told]
        first += len(block.claims)
        if lost and made:
            made[min(at, len(made) - 1)] += lost
    distinct = (tuple({claim.text: claim for claim in own}.values()) for own in made)
    return tuple(Block(own) for own in distinct if own) or tuple(blocks)


def _claims(text: str, sources: Sequence[Claim], added: Sequence[Insight], of: Material) -> list[Claim] | None:
    """The claims of one sentence, which cite what it is made from; None if it adds a fact."""
    cites = dict.fromkeys(key for claim in (*sources, *(each.claim for each in added)) for key in claim.cites)
    words = [*(claim.words for claim in sources), *(f"{each.note}\n{each.claim.words}" for each in added)]
    known = "\n".join((*words, *of.names.values()))
    if not cites:
        return []
    if facts.missing_facts(text, known, facts.lowercase_stems(known)):
        return None
    split, _ = claims.split_claims(text, tuple(cites)[:CITES], of.known.keys())
    return list(split)
