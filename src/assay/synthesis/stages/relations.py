"""From insights to relations: which insights are compared (`pairs.py`), and how they relate (`classify.py`).

A request contains pairs of the same two documents only, so that no document can influence the relation of two
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from assay.agent.context import RunContext, mark
from assay.answer.evidence_text import Sources, quotations
from assay.core.account import Insight, Pair, Relation, RelationType
from assay.core.events import Paired, Related
from assay.core.events.maker import Maker, combine_makers, stand_in
from assay.core.run import Run
from assay.core.types import Evidence, Verdict
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.relating import classify, pairs
from assay.synthesis.relating.classify import Documents, InsightPair, ProposedRelation
from assay.synthesis.relating.pairs import OF_DOCUMENTS, ComparableInsight

BLOCK, ALONE = OF_DOCUMENTS, 1  # pairs per request; small models mix up several
EMBEDDED = 256  # insights that are embedded at a time
SHOWN, LITTLE = 6000, 1200  # tokens per request; small models lose track in longer prompts
INSIGHT = 80  # tokens per insight
NONE = "none"
AGAIN = " They were left out when they were first asked for."


class RelationReply(BaseModel):
    """How one pair stands, by its number in the request."""

    model_config = ConfigDict(strict=True, extra="forbid")

    pair: int
    left: str = ""
    right: str = ""
    reason: str = ""
    type: Literal["extension", "contradiction", "complement", "improvement", "parallel", "none"]


class RelationReplies(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    relations: list[RelationReply]


# --- selection of pairs ---------------------------------------------------------------------------------------------


async def pair(run: Run, context: RunContext) -> AsyncIterator[Paired]:
    """Yield the pairs worth comparing. Insights whose document no longer supports them are left out."""
    places = {doc: place for place, doc in enumerate(state.brief(run).documents)}
    odd = {each.key for each in run.evidence if each.flagged}
    items = [
        ComparableInsight(
            each.id, each.question, places[each.doc_id], each.claim.words, bool(odd & set(each.claim.cites))
        )
        for each in state.insights(run).values()
        if each.claim.verdict is Verdict.supported
    ]
    documents = len({item.document for item in items})
    if documents < 2:
        yield Paired((), pairs.describe_choice((), 0, documents))
        return
    import numpy as np

    embedder = context.tool_context.search_context.embedder
    rows = [await embedder.queries([item.words for item in block]) for block in state.batches(items, EMBEDDED)]
    selected = await asyncio.to_thread(pairs.choose_pairs, items, np.concatenate(rows))
    possible = pairs.count_possible(items)
    yield Paired(selected, pairs.describe_choice(selected, possible, documents), possible - len(selected))


# --- classification -------------------------------------------------------------------------------------------------


def pair_blocks(run: Run) -> list[Sequence[Pair]]:
    """The pairs that share a request: of the same two documents, few enough for the model that judges them."""
    known, paired = state.insights(run), state.pairing(run)
    size = ALONE if _small(run) else BLOCK

    def documents(pair: Pair) -> tuple[str, str]:
        return known[pair.left].doc_id, known[pair.right].doc_id

    grouped = groupby(paired.pairs if paired else (), key=documents)
    return [block for _, group in grouped for block in state.batches(tuple(group), size)]


def open_blocks(run: Run) -> tuple[int, ...]:
    """The numbers of the blocks that are not classified yet."""
    done = state.related_blocks(run)
    return tuple(number for number in range(len(pair_blocks(run))) if number not in done)


def _small(run: Run) -> bool:
    return any(role_model.small for role_model in run.asked.seats if role_model.role == Role.judge.value)


async def relate(run: Run, context: RunContext) -> AsyncIterator[Related]:
    """Yield the relations of each block that is not classified yet."""
    document = lru_cache(maxsize=64)(context.document)
    cut = insight_pairs(run)
    work = (_relate_block(run, context, number, cut[number], document) for number in open_blocks(run))
    async for event in state.run_in_order(work):
        yield event


def insight_pairs(run: Run) -> list[list[InsightPair]]:
    """The blocks, each pair with both insights and their evidence."""
    known, labels = state.insights(run), state.labels(run)
    asked = {question.id: question.text for question in state.questions(run)}
    evidence = {each.key: each for each in run.evidence}

    def couple(pair: Pair) -> InsightPair:
        left, right = known[pair.left], known[pair.right]
        ours, theirs = (tuple(evidence[key] for key in each.claim.cites if key in evidence) for each in (left, right))
        question = asked.get(left.question, "") if left.question == right.question else ""
        return InsightPair(pair, left, right, ours, theirs, (labels[left.doc_id], labels[right.doc_id]), question)

    return [[couple(pair) for pair in block] for block in pair_blocks(run)]


async def _relate_block(
    run: Run, context: RunContext, block: int, insight_pairs: Sequence[InsightPair], document: Documents
) -> Related:
    """Classify one block by model. Pairs missing from the reply are requested once more. Pairs that it never
    classifies, or must not see, are classified by rule."""
    relations: dict[int, Relation | None] = {}  # by position in the block
    dropped: list[str] = []
    made: list[Maker] = []
    shown = [place for place, couple in enumerate(insight_pairs) if not couple.odd and couple.ours and couple.theirs]
    left = shown if run.asked.has_model else []
    again = False
    while left:
        reply = await _ask_model(run, context, [insight_pairs[place] for place in left], again=again)
        if isinstance(reply, NoReply):
            made.append(stand_in(reply.why))
            break
        made.append(Maker(reply[1]))
        for place, found in _read_reply(
            reply[0], [insight_pairs[place] for place in left], document, reply[1], small=_small(run)
        ):
            if place is None:
                dropped.append(str(found))
            elif left[place] not in relations:
                relations[left[place]] = found if isinstance(found, Relation) else None
                dropped += [found] if isinstance(found, str) and found else []
        left = [] if again else [place for place in shown if place not in relations]
        again = True
    kept = [
        relations[place] if place in relations else classify.by_rule(couple, document)
        for place, couple in enumerate(insight_pairs)
    ]
    maker = combine_makers(made)
    return Related(block, tuple(each for each in kept if each), tuple(dropped), maker.by, maker.fallback)


async def _ask_model(
    run: Run, context: RunContext, insight_pairs: Sequence[InsightPair], *, again: bool
) -> tuple[RelationReplies, str] | NoReply:
    most = LITTLE if _small(run) else SHOWN
    return await context.ask(
        Role.judge,
        "relate",
        RelationReplies,
        lambda room: build_prompt(insight_pairs, mark(run), min(room, most), again=again),
        schema=schema(len(insight_pairs)),
        documents=sorted({side.doc_id for couple in insight_pairs for side in (couple.left, couple.right)}),
        max_tokens=60 + 240 * len(insight_pairs),
    )


# --- prompt and reply -----------------------------------------------------------------------------------------------


def build_prompt(insight_pairs: Sequence[InsightPair], mark: str, room: int, *, again: bool = False) -> dict[str, str]:
    """The values of the prompt `relate`, in at most `room` tokens; all sides of all pairs share the remaining tokens
    equally."""
    left = room - 24
    parts: list[str] = []
    for place, couple in enumerate(insight_pairs):
        sides = 2 * (len(insight_pairs) - place)
        head = f"Pair {place + 1}"
        if couple.question:
            asked = fit_to_tokens(" ".join(couple.question.split()), max(left // (4 * sides), 12))
            head += "\n" + fence(mark, "the question that both answer", asked)
        left -= estimate_tokens(head) + 2
        lines = [head]
        for name, insight, evidence, label in (
            ("Left", couple.left, couple.ours, couple.labels[0]),
            ("Right", couple.right, couple.theirs, couple.labels[1]),
        ):
            part = _side(f"{name}, {label}:", insight, evidence, mark, left // sides)
            left -= estimate_tokens(part) + 1
            sides -= 1
            lines.append(part)
        parts.append("\n".join(lines))
    return {"pairs": "\n\n".join(parts), "count": str(len(insight_pairs)), "again": AGAIN if again else ""}


def _side(head: str, insight: Insight, evidence: Sequence[Evidence], mark: str, room: int) -> str:
    """An insight with its evidence. An insight that is a quotation is not repeated."""
    lines = [head]
    if insight.claim.quote is None:
        lines.append(fence(mark, "insight", fit_to_tokens(insight.claim.text, min(INSIGHT, room // 3))))
    used = estimate_tokens("\n".join(lines)) + 2
    return "\n".join((*lines, quotations(evidence, Sources(), mark, room - used)[0]))


def schema(count: int) -> dict[str, Any]:
    """JSON schema of a reply about `count` pairs."""
    words = {"type": "string"}
    tied = {
        "type": "object",
        "properties": {
            "pair": {"type": "integer", "enum": list(range(1, count + 1))},
            "left": words,
            "right": words,
            "reason": words,
            "type": {"type": "string", "enum": [*(tie.value for tie in RelationType), NONE]},
        },
        "required": ["pair", "left", "right", "reason", "type"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"relations": {"type": "array", "items": tied, "minItems": count, "maxItems": count}},
        "required": ["relations"],
        "additionalProperties": False,
    }


def _read_reply(
    reply: RelationReplies, insight_pairs: Sequence[InsightPair], document: Documents, by: str, *, small: bool
) -> list[tuple[int | None, Relation | str]]:
    """By position, for each pair in the reply: the relation, the reason why it is dropped, or None if there is no
    relation. Entries for pairs that were not shown are ignored."""
    found: list[tuple[int | None, Relation | str]] = []
    done: set[int] = set()
    for each in reply.relations:
        place = each.pair - 1
        if not 0 <= place < len(insight_pairs):
            if each.type != NONE:
                found.append((None, f"{each.type} of a pair that was not shown"))
        elif place in done:
            if each.type != NONE:
                found.append((None, f"{each.type} between {insight_pairs[place].name}: said before of the same pair"))
        elif each.type == NONE:
            done.add(place)
            found.append((place, ""))
        else:
            done.add(place)
            proposed = ProposedRelation(RelationType(each.type), each.reason, each.left, each.right)
            found.append((place, classify.verify_proposal(insight_pairs[place], proposed, document, by, small=small)))
    return found
