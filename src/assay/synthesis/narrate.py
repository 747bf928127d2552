"""The text. A capable model writes it from the plan, with the whole plan in view, and goes over it once for its flow; what
it leaves out of a contradiction or of a document is quoted. A small model writes document by document. Without a model the
text is a digest: contradictions, then the key sentences of each document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pydantic import BaseModel

from assay.agent.context import RunContext, mark, run_in_order
from assay.answer import claims
from assay.answer.claims import quotations
from assay.core.events import Drafted, Event
from assay.core.events.synthesis import BY_RULES, Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.synthesis import DISAGREE, Insight, Pipeline, Relation, RelationType, Theme
from assay.core.types import Block, Claim, Conflict, Quote, Shape
from assay.language import facts
from assay.models.cost import estimate_tokens, fit_to_tokens, pack
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.synthesis import state
from assay.synthesis.material import Material, gather_material

SHARE, MOST = 0.5, 24_000  # of the window for passages, points and plan in one request, and the most
CITES, SENTENCES, PARAGRAPHS = 6, 40, 24  # in one reply
AUTHORS, TITLE = 3, 24  # authors, and words of the title, in the heading of a document
REPLY, LONGEST = 75, 4500  # reply tokens per point, and the most
PLANNED = (
    "Follow the plan: one paragraph for each entry, in its order. The first is the thread of the whole: three to five "
    "sentences that mention every document. Tell every point."
)
FREE = (
    "A few paragraphs that tell every point and mention every document. Group what you tell by what it is about, not by "
    "document, in an order that leads from one thing to the next."
)
ONE = "One short paragraph about this document. Keep to its own sentences and words, and change as little as you can."


class SentenceReply(BaseModel, extra="forbid"):
    text: str
    cites: list[str] = []


class ParagraphReply(BaseModel, extra="forbid"):
    sentences: list[SentenceReply]


class TextReply(BaseModel, extra="forbid"):
    paragraphs: list[ParagraphReply]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part of the text, and who wrote it."""

    blocks: tuple[Block, ...]
    maker: Maker = BY_RULES


async def narrate(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield one draft in which every document appears and both sides of every contradiction are told."""
    of = gather_material(run, context)
    conflicts = tuple(
        Conflict(each.left.key, each.right.key, each.about)
        for each in of.relations
        if each.type is RelationType.contradiction
    )
    if not run.asked.has_model or not of.points:
        yield Drafted(_digest(run, of), Shape.list, conflicts)
        return
    if not state.is_capable(run):
        yield await _by_small_model(run, context, of, conflicts)
        return
    paragraphs = plan_of(run, of)
    work = (_write(run, context, of, part, paragraphs) for part in parts(run, of, paragraphs))
    written = [each async for each in run_in_order(work)]
    blocks = tuple(block for part in written for block in part.blocks)
    maker = combine_makers(part.maker for part in written)
    blocks = with_every_document(with_contradictions(blocks, of), of)
    yield Drafted(blocks, Shape.prose, conflicts, by=maker.by, fallback=maker.fallback)


def plan_of(run: Run, of: Material) -> tuple[Theme, ...]:
    """The paragraphs of the plan; without one, a single entry with every point."""
    spine = state.spine(run)
    planned = tuple(
        replace(theme, insights=tuple(id for id in theme.insights if id in of.points))
        for theme in (spine.themes if spine else ())
        if any(id in of.points for id in theme.insights)
    )
    return planned or (Theme("", tuple(dict.fromkeys(each.doc_id for each in of.points.values())), tuple(of.points)),)


def budget(run: Run) -> int:
    return max(500, min(MOST, int(state.window(run) * SHARE)))


def parts(run: Run, of: Material, paragraphs: Sequence[Theme]) -> list[tuple[Theme, ...]]:
    """The paragraphs that are written in one request: all, if they fit. One that is too long by itself is cut."""
    room = budget(run) // 2  # the other half is for the passages themselves
    pieces = [
        replace(theme, insights=tuple(piece)) for theme in paragraphs for piece in pack(theme.insights, of.cost, room)
    ]
    return [tuple(part) for part in pack(pieces, lambda each: sum(map(of.cost, each.insights)), room)]


# --- by a capable model ---------------------------------------------------------------------------------------------


async def _write(
    run: Run, context: RunContext, of: Material, part: Sequence[Theme], paragraphs: Sequence[Theme]
) -> WrittenPart:
    """Write one part of the text, and go over it once. Without a reply its points are quoted."""
    planned = state.spine(run) is not None and bool(paragraphs[0].name)
    reply = await _ask_model(run, context, of, part, paragraphs, PLANNED if planned else FREE)
    ids = _told_in(part)
    if isinstance(reply, NoReply):
        return WrittenPart(_quoted(of, ids), stand_in(reply.why))
    polished = await polish(run, context, of, read_text(reply[0], of), ids)
    return WrittenPart(polished.blocks or _quoted(of, ids), combine_makers((Maker(reply[1]), polished.maker)))


def _told_in(part: Sequence[Theme]) -> tuple[str, ...]:
    """The points of a part of the plan."""
    return tuple(dict.fromkeys(id for theme in part for id in theme.insights))


async def _ask_model(
    run: Run, context: RunContext, of: Material, part: Sequence[Theme], paragraphs: Sequence[Theme], shape: str
) -> tuple[TextReply, str] | NoReply:
    ids = _told_in(part)
    keys = list(dict.fromkeys(key for id in ids for key in of.points[id].claim.cites))
    return await context.ask(
        Role.write,
        "narrate",
        TextReply,
        lambda room: build_prompt(run, of, part, paragraphs, shape, mark(run), room),
        schema=schema(keys),
        documents=sorted(of.documents(keys)),
        max_tokens=min(LONGEST, max(500, state.window(run) // 3), 300 + REPLY * len(ids)),
    )


def schema(keys: Sequence[str]) -> dict[str, Any]:
    """JSON schema of the reply: sentences that can cite only what was shown."""
    cites = list_schema({"type": "string", "enum": list(keys)}, 1, CITES)
    sentence = object_schema(text={"type": "string"}, cites=cites)
    paragraph = object_schema(sentences=list_schema(sentence, 1, SENTENCES))
    return object_schema(paragraphs=list_schema(paragraph, 1, PARAGRAPHS))


def build_prompt(
    run: Run,
    of: Material,
    part: Sequence[Theme],
    paragraphs: Sequence[Theme],
    shape: str,
    mark: str,
    room: int,
) -> dict[str, str]:
    """The values of the prompt `narrate`, in at most `room` tokens: the plan with its points, how they are related, and as
    much of the passages as fits."""
    focus = state.brief(run).focus
    ids = set(_told_in(part))
    planned = fence(mark, "plan", _plan_lines(of, part, max(16, room // 2 // max(1, len(ids)))))
    own = {"", *(theme.name for theme in part)}
    others = [theme.name for theme in paragraphs if theme.name not in own]
    wanted = [f"The reader wants to know: {fit_to_tokens(focus, 80)}"] if focus else []
    if len(part) < len(paragraphs):
        listed = fence(mark, "the other paragraphs of the text", fit_to_tokens("\n".join(others), 200))
        wanted.append(f"{listed}\nThis is a part of the text: write only the paragraphs of the plan above.")
    wanted.append("Write the text.")
    relations = _relation_lines(of, ids, mark, room // 8)
    used = sum(estimate_tokens(words) for words in (planned, relations, "\n".join(wanted))) + 8
    keys = {key for id in ids for key in of.points[id].claim.cites}
    evidence = [each for each in of.evidence if each.key in keys]
    return {
        "evidence": quotations(evidence, of.sources, mark, max(room - used, 0)),
        "plan": planned,
        "relations": relations,
        "shape": shape,
        "language": state.language(run),
        "wanted": "\n".join(wanted),
    }


def _plan_lines(of: Material, part: Sequence[Theme], each: int) -> str:
    lines: list[str] = []
    unnamed = ["the thread of the whole", *["a topic of its own"] * len(part)]
    unnamed[len(part) - 1] = "points without a place yet; tell them where they belong"
    for number, theme in enumerate(part, 1):
        lines.append(f"Paragraph {number}: {theme.name or unnamed[number - 1]}")
        lines += (f"  {fit_to_tokens(of.line(id), each)}" for id in theme.insights)
    return "\n".join(lines[1:] if len(part) == 1 and not part[0].name else lines)


def _relation_lines(of: Material, ids: set[str], mark: str, room: int) -> str:
    """How the points are related, contradictions first, as far as it fits."""
    lines: list[str] = []
    for each in sorted(of.relations, key=lambda each: each.type is not RelationType.contradiction):
        sides = (each.left.insight, each.right.insight)
        if ids.issuperset(sides):
            numbers = " and ".join(str(of.numbers[id]) for id in sides)
            line = f"{numbers}: {each.type}: {' '.join(each.reason.split())}"
            if estimate_tokens("\n".join((*lines, line))) > room:
                break
            lines.append(line)
    return f"How points are related:\n{fence(mark, 'relations', chr(10).join(lines))}\n\n" if lines else ""


def read_text(reply: TextReply, of: Material) -> tuple[Block, ...]:
    """The paragraphs as claims of one sentence each, which cite only evidence of this run."""
    blocks: list[Block] = []
    known: set[str] = set()
    for paragraph in reply.paragraphs[:PARAGRAPHS]:
        own: list[Claim] = []
        for sentence in paragraph.sentences[:SENTENCES]:
            split, _ = claims.split_claims(sentence.text, sentence.cites[:CITES], of.known.keys())
            own += (claim for claim in split if claim.text not in known)
            known |= {claim.text for claim in split}
        if own:
            blocks.append(Block(tuple(own)))
    return tuple(blocks)


# --- once more, for its flow ----------------------------------------------------------------------------------------
# The pass may join, part and reorder sentences and work in points that are not told yet; it may not add a name, number or date
# to what a sentence is made from. Everything is judged afterwards.

A_SENTENCE = 70  # tokens of a sentence in the reply


class PolishedSentence(BaseModel, extra="forbid"):
    """A sentence, and the numbers of the sentences and points that it is made from; without text these stay as they are."""

    text: str
    sources: list[int] = []
    points: list[int] = []


class PolishedParagraph(BaseModel, extra="forbid"):
    sentences: list[PolishedSentence]


class PolishedReply(BaseModel, extra="forbid"):
    paragraphs: list[PolishedParagraph]


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
        lambda room: polish_prompt(of, blocks, untold, mark(run), room),
        schema=polish_schema(len(written), [of.numbers[id] for id in untold]),
        documents=sorted(of.documents([key for claim in written for key in claim.cites])),
        max_tokens=300 + A_SENTENCE * (len(written) + len(untold)),
    )
    if isinstance(reply, NoReply):
        return WrittenPart(blocks, stand_in(reply.why))
    points = {of.numbers[id]: of.points[id] for id in untold}
    return WrittenPart(read_polished(reply[0], blocks, points, of), Maker(reply[1]))


def untold_points(of: Material, ids: Sequence[str], written: Sequence[Claim]) -> tuple[str, ...]:
    """The points whose passage no sentence cites."""
    cited = {key for claim in written for key in claim.cites}
    return tuple(id for id in ids if not cited & set(of.points[id].claim.cites))


def polish_prompt(of: Material, blocks: Sequence[Block], untold: Sequence[str], mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `polish`: the sentences, numbered, and the points that are not told yet."""
    lines: list[str] = []
    numbers = count(1)
    for place, block in enumerate(blocks, 1):
        lines.append(f"Paragraph {place}")
        lines += (f"{next(numbers)}: {' '.join(claim.words.split())}" for claim in block.claims)
    left = "\n".join(of.line(id) for id in untold)
    points = f"Not told yet:\n{fence(mark, 'points', fit_to_tokens(left, room // 3))}\n\n" if untold else ""
    text = fit_to_tokens("\n".join(lines), max(16, room - estimate_tokens(points) - 40))
    return {"text": fence(mark, "text", text), "untold": points}


def polish_schema(count: int, points: Sequence[int]) -> dict[str, Any]:
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    point = {"type": "integer", "enum": list(points) or [0]}
    sentence = object_schema(
        text={"type": "string"}, sources=list_schema(number, 0, 8), points=list_schema(point, 0, max(1, len(points)))
    )
    return object_schema(
        paragraphs=list_schema(object_schema(sentences=list_schema(sentence, 1, SENTENCES)), 1, PARAGRAPHS)
    )


def read_polished(
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
            split = _claims(sentence.text, [written[number] for number in numbers], added, of)
            own += [written[number] for number in numbers if number not in told] if split is None else split
            told |= set(numbers)
        made.append(own)
    places = (at for at, block in enumerate(blocks) for _ in block.claims)
    for at, (number, claim) in zip(places, written.items(), strict=True):
        if made and number not in told:
            made[min(at, len(made) - 1)].append(claim)
    distinct = (tuple({claim.text: claim for claim in own}.values()) for own in made)
    return tuple(Block(own) for own in distinct if own) or tuple(blocks)


def _claims(text: str, sources: Sequence[Claim], added: Sequence[Insight], of: Material) -> list[Claim] | None:
    """The claims of one sentence, which cite what it is made from; None if it adds a fact or has no text."""
    if not text.strip():
        return None
    cites = dict.fromkeys(key for claim in (*sources, *(each.claim for each in added)) for key in claim.cites)
    words = [*(claim.words for claim in sources), *(f"{each.note}\n{each.claim.words}" for each in added)]
    known = "\n".join((*words, *of.names.values()))
    if not cites:
        return []
    if facts.missing_facts(text, known, facts.lowercase_stems(known)):
        return None
    split, _ = claims.split_claims(text, tuple(cites)[:CITES], of.known.keys())
    return list(split)


# --- what must be there ---------------------------------------------------------------------------------------------


def with_contradictions(blocks: tuple[Block, ...], of: Material) -> tuple[Block, ...]:
    """The text with both sentences of each contradiction that rules have found. One that a sentence tells, or two
    sentences of one paragraph, is not quoted again."""
    for each in of.contradictions:
        told = {claim.quote for block in blocks for claim in block.claims if claim.quote}
        new = tuple(claim for claim in _both_sides(each) if claim.quote not in told)
        if new and not _is_told(each, blocks):
            blocks = (*blocks, Block(new))
    return blocks


def _is_told(each: Relation, blocks: Sequence[Block]) -> bool:
    """Whether a paragraph cites both sides and has the values they disagree in."""
    keys = {each.left.key, each.right.key}
    values = each.about.split(" / ") if " / " in each.about else []
    for block in blocks:
        own = [claim for claim in block.claims if keys.intersection(claim.cites)]
        text = " ".join(claim.words for claim in own)
        if keys.issubset(key for claim in own for key in claim.cites) and all(value in text for value in values):
            return True
    return False


def _both_sides(each: Relation) -> tuple[Claim, Claim]:
    left, right = (Claim("", (side.key,), quote=side.quote) for side in (each.left, each.right))
    return left, right


def with_every_document(blocks: tuple[Block, ...], of: Material) -> tuple[Block, ...]:
    """The text with the first point of each document that no sentence cites, quoted."""
    cited = {doc for block in blocks for claim in block.claims for doc in of.documents(claim.cites)}
    first = {point.doc_id: point for point in reversed(list(of.points.values()))}
    lost = [replace(first[doc].claim, verdict=None, why="") for doc in of.labels if doc in first and doc not in cited]
    return (*blocks, Block(tuple(lost))) if lost else blocks


def _quoted(of: Material, ids: Sequence[str]) -> tuple[Block, ...]:
    """Points as quotations, a paragraph for each document; of two that overlap the first."""
    own: dict[str, list[Claim]] = {}
    for id in ids:
        claim = replace(of.points[id].claim, verdict=None, why="")
        known = own.setdefault(of.points[id].doc_id, [])
        known += [] if any(_overlap(each.quote, claim.quote) for each in known) else [claim]
    return tuple(Block(tuple(found)) for found in own.values())


def _overlap(one: Quote | None, other: Quote | None) -> bool:
    return one is not None and other is not None and one.start < other.end and other.start < one.end


# --- without a capable model ----------------------------------------------------------------------------------------


def _digest(run: Run, of: Material) -> tuple[Block, ...]:
    """Both sentences of each contradiction, then the key sentences of each document under what it says of itself."""
    told = ((doc, block) for doc in of.labels for block in _quoted(of, of.of_document(doc)))
    return (*_disagreeing(of), *(replace(block, heading=_heading(run, doc)) for doc, block in told))


def _heading(run: Run, doc: str) -> str:
    """Label, title, authors and year of a document, as far as they are known."""
    portrait = state.portraits(run)[doc]
    authors = ", ".join(portrait.authors[:AUTHORS]) + (" and others" if len(portrait.authors) > AUTHORS else "")
    parts = (state.labels(run)[doc], " ".join(portrait.title.split()[:TITLE]), authors, portrait.year)
    return " · ".join(filter(None, parts))


def _disagreeing(of: Material) -> tuple[Block, ...]:
    quoted = tuple(dict.fromkeys(claim for each in of.contradictions for claim in _both_sides(each)))
    return (Block(quoted, DISAGREE),) if quoted else ()


async def _by_small_model(run: Run, context: RunContext, of: Material, conflicts: tuple[Conflict, ...]) -> Drafted:
    """A paragraph for each document by the model, and the contradictions as quotations before them. Only sentences that
    nearly repeat one of the document's will pass their check; the others become quotations."""
    work = (_write_document(run, context, of, doc) for doc in of.labels if of.of_document(doc))
    written = [each async for each in run_in_order(work)]
    blocks = with_every_document((*_disagreeing(of), *(block for part in written for block in part.blocks)), of)
    maker = combine_makers(part.maker for part in written)
    shape = Shape.prose if state.brief(run).pipeline is Pipeline.summary else Shape.list
    return Drafted(blocks, shape, conflicts, by=maker.by, fallback=maker.fallback)


async def _write_document(run: Run, context: RunContext, of: Material, doc: str) -> WrittenPart:
    ids = of.of_document(doc)
    theme = Theme("", (doc,), ids)
    reply = await _ask_model(run, context, of, (theme,), (theme,), ONE)
    head = _heading(run, doc)
    if isinstance(reply, NoReply):
        return WrittenPart(tuple(replace(block, heading=head) for block in _quoted(of, ids)), stand_in(reply.why))
    own = tuple(claim for block in read_text(reply[0], of) for claim in block.claims)
    return WrittenPart((Block(own, head),) if own else (), Maker(reply[1]))
