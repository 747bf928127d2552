"""Relations and plan: a capable model sees the points of all documents, says how they are related, and orders them into
paragraphs by what they are about. Reasons are judged like claims. Many documents are planned in groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from assay.agent.context import RunContext, mark, run_in_order
from assay.agent.steps.check import judge_claims
from assay.core.events import Event, InsightsDrawn, Merged, Paired, Related, SpineWritten
from assay.core.events.synthesis import Maker, combine_makers, stand_in
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.synthesis import Insight, Question, QuestionKind, Relation, RelationSide, RelationType, Theme
from assay.core.types import Claim, Verdict
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.models.cost import estimate_tokens, fit_to_tokens, pack
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.synthesis import state
from assay.synthesis.material import Material, gather_material
from assay.synthesis.read import question_key, stands_alone

SHARE, MOST = 0.4, 20_000  # of the window for points in one request, and the most
RELATIONS, COMPARISONS, PARAGRAPHS = 16, 5, 16  # in one reply
FEWEST = 3  # comparisons
TOPIC, THEME, REASON = 120, 160, 400  # characters


class RelationReply(BaseModel, extra="forbid"):
    left: int
    right: int
    type: Literal["extension", "contradiction", "complement", "improvement", "parallel"]
    reason: str = ""


class ComparisonReply(BaseModel, extra="forbid"):
    question: str
    points: list[int]


class ParagraphReply(BaseModel, extra="forbid"):
    topic: str = ""
    points: list[int]


class PlanReply(BaseModel, extra="forbid"):
    """How points are related, and the plan of the text."""

    relations: list[RelationReply] = Field(default_factory=list, max_length=200)
    comparisons: list[ComparisonReply] = Field(default_factory=list, max_length=50)
    theme: str = ""
    paragraphs: list[ParagraphReply] = Field(default_factory=list, max_length=100)


@dataclass(frozen=True, slots=True)
class _Group:
    """Points that are planned in one request, and what came of it."""

    points: tuple[str, ...]
    reply: PlanReply | None
    maker: Maker


async def plan(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the relations, the comparative questions with what answers them, what was compared, and the plan."""
    of = gather_material(run, context)
    cut = await group_points(of, context, budget(run))
    planned = [each async for each in run_in_order(_ask_model(run, context, of, points) for points in cut)]
    made: list[Event] = []
    for block, group in enumerate(planned, 1):
        relations, dropped = await _relations(run, context, of, group)
        made.append(Related(block, relations, dropped, group.maker.by, group.maker.fallback))
    paired = state.pairing(run)
    compared, refused = _comparisons(run, of, planned)
    last = made[-1]
    assert isinstance(last, Related)
    made[-1] = replace(last, dropped=(*last.dropped, *refused))
    made += compared
    made.append(Paired((), f"{paired.how if paired else ''} {_how(of, cut)}".strip()))
    maker = combine_makers(group.maker for group in planned)
    themes = tuple(theme for group in planned for theme in _paragraphs(of, group))
    made.append(SpineWritten(_theme(of, planned), (), themes, maker.by, maker.fallback))
    for event in state.unrecorded(run, made):
        yield event


def budget(run: Run) -> int:
    return max(400, min(MOST, int(state.window(run) * SHARE)))


def _how(of: Material, cut: Sequence[Sequence[str]]) -> str:
    documents = len({point.doc_id for point in of.points.values()})
    together = (
        "in one request" if len(cut) == 1 else f"in {len(cut):,} requests, each of documents that are near in meaning"
    )
    return f"{len(of.points):,} points of {documents:,} documents were compared by a model, {together}."


async def group_points(of: Material, context: RunContext, room: int) -> list[tuple[str, ...]]:
    """The points that share a request: all, if they fit; otherwise those of documents that are near in meaning, along the
    direction in which they differ most."""
    cost = {id: estimate_tokens(of.line(id)) + 1 for id in of.points}
    if sum(cost.values()) <= room or not of.points:
        return [tuple(of.points)]
    own: dict[str, list[str]] = {}
    for id, point in of.points.items():
        own.setdefault(point.doc_id, []).append(id)
    texts = [" ".join(of.points[id].claim.words for id in ids[:4]) for ids in own.values()]
    vectors = np.asarray(await context.tool_context.search_context.embedder.queries(texts), dtype=np.float64)
    _, _, axes = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    along = np.round((vectors - vectors.mean(axis=0)) @ axes[0], 6)  # smaller differences are noise
    along = along if along[0] <= 0 else -along
    order = sorted(zip(along.tolist(), own.values(), strict=True), key=lambda each: each[0])
    return list(map(tuple, pack((id for _, ids in order for id in ids), cost.__getitem__, room)))


async def _ask_model(run: Run, context: RunContext, of: Material, points: tuple[str, ...]) -> _Group:
    if len({of.points[id].doc_id for id in points}) < 2:
        return _Group(points, None, Maker())
    reply = await context.ask(
        Role.write,
        "relate",
        PlanReply,
        lambda room: build_prompt(run, of, points, mark(run), room),
        schema=schema([of.numbers[id] for id in points]),
        documents=sorted({of.points[id].doc_id for id in points}),
        max_tokens=min(3500, max(900, state.window(run) // 3)),
    )
    if isinstance(reply, NoReply):
        return _Group(points, None, stand_in(reply.why))
    return _Group(points, reply[0], Maker(reply[1]))


def build_prompt(run: Run, of: Material, points: Sequence[str], mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `relate`, in at most `room` tokens: the points by document, each on a line of its own."""
    focus = state.brief(run).focus
    each = max(16, (room - 200) // max(1, len(points)))
    lines = [fit_to_tokens(of.line(id), each) for id in points]
    found = [
        f"{of.numbers[one.left.insight]} and {of.numbers[one.right.insight]}"
        for one in of.contradictions
        if one.left.insight in points and one.right.insight in points
    ]
    conflicts = f"Rules have found that these contradict each other: {'; '.join(found)}.\n" if found else ""
    return {
        "points": fence(mark, "points", "\n".join(lines)),
        "conflicts": conflicts,
        "relations": str(RELATIONS),
        "focus": f"The reader wants to know: {fit_to_tokens(focus, 80)}\n" if focus else "",
    }


def schema(numbers: Sequence[int]) -> dict[str, Any]:
    """JSON schema of the reply: only points that were shown can be named."""
    number, text = {"type": "integer", "enum": list(numbers)}, {"type": "string"}
    types = {"type": "string", "enum": [each.value for each in RelationType]}
    return object_schema(
        relations=list_schema(object_schema(left=number, right=number, type=types, reason=text), 0, RELATIONS),
        comparisons=list_schema(object_schema(question=text, points=list_schema(number, 2, 24)), FEWEST, COMPARISONS),
        theme=text,
        paragraphs=list_schema(object_schema(topic=text, points=list_schema(number, 1, 40)), 1, PARAGRAPHS),
    )


# --- relations ------------------------------------------------------------------------------------------------------


async def _relations(
    run: Run, context: RunContext, of: Material, group: _Group
) -> tuple[tuple[Relation, ...], tuple[str, ...]]:
    """The relations that hold, and why others were dropped. A reason is a claim on the words of both sides, and its judge
    says whether it follows. What rules have found already is not told twice."""
    by_number = {of.numbers[id]: of.points[id] for id in group.points}
    spans = {frozenset((each.left.insight, each.right.insight)) for each in of.contradictions}
    found: list[tuple[Relation, Claim]] = []
    dropped: list[str] = []
    for each in (group.reply.relations if group.reply else ())[:RELATIONS]:
        left, right = by_number.get(each.left), by_number.get(each.right)
        about = f"{each.type} between {each.left} and {each.right}"
        if left is None or right is None:
            dropped.append(f"{about}: a point that was not shown")
        elif left.doc_id == right.doc_id:
            dropped.append(f"{about}: both are of the same document")
        elif each.type == "contradiction" and _is_known(of, left, right, each.reason):
            dropped.append(f"{about}: rules have found it already")
        elif frozenset((left.id, right.id)) not in spans:
            spans.add(frozenset((left.id, right.id)))
            reason = " ".join(clean_text(each.reason).split())[:REASON]
            claim = Claim(reason, tuple(dict.fromkeys((left.claim.cites[0], right.claim.cites[0]))))
            relation = Relation(_side(left), _side(right), RelationType(each.type), reason, group.maker.by)
            found.append((relation, claim))
    claims = [claim for _, claim in found]
    verdicts = await judge_claims(run, context, claims, of.evidence, of.sources, lambda each: of.documents(each.cites))
    kept: list[Relation] = []
    for (relation, _), verdict in zip(found, verdicts, strict=True):
        if verdict.verdict is Verdict.supported:
            kept.append(relation)
        else:
            dropped.append(
                f"{relation.type} between {relation.left.insight} and {relation.right.insight}: {verdict.why}"
            )
    return tuple(kept), tuple(dropped)


def _is_known(of: Material, left: Insight, right: Insight, reason: str) -> bool:
    """Whether rules have found these passages to contradict each other in the values that the reason names."""
    keys = {left.claim.cites[0], right.claim.cites[0]}
    found = (each.about.split(" / ") for each in of.contradictions if {each.left.key, each.right.key} == keys)
    return any(len(values) == 2 and all(value in reason for value in values) for values in found)


def _side(point: Insight) -> RelationSide:
    assert point.claim.quote is not None
    return RelationSide(point.id, point.doc_id, point.claim.cites[0], point.claim.quote)


# --- comparisons and paragraphs -------------------------------------------------------------------------------------


def _comparisons(run: Run, of: Material, planned: Sequence[_Group]) -> tuple[list[Event], list[str]]:
    """The comparative questions, and for each the point of each document that answers it; and why others were dropped."""
    asked = [each for each in state.questions(run) if each.kind is not QuestionKind.comparative]
    labels = of.labels
    known = {question_key(each.text) for each in asked}
    questions: list[Question] = []
    drawn: list[InsightsDrawn] = []
    dropped: list[str] = []
    over = 0
    for group in planned:
        by_number = {of.numbers[id]: of.points[id] for id in group.points}
        for each in group.reply.comparisons if group.reply else ():
            text = " ".join(clean_text(each.question).split())
            cells = {point.doc_id: point for number in reversed(each.points) if (point := by_number.get(number))}
            if why := _unusable(text, len(cells), known):
                dropped.append(f"question “{fit_to_tokens(text, 40)}”: {why}" if not is_suspicious(text) else why)
            elif len(questions) == COMPARISONS:
                over += 1
            else:
                known.add(question_key(text))
                id = f"q{len(asked) + len(questions) + 1}"
                docs = tuple(doc for doc in labels if doc in cells)
                questions.append(Question(id, text, QuestionKind.comparative, docs))
                cell = tuple(replace(cells[doc], id=f"{id}-{labels[doc]}", question=id) for doc in docs)
                drawn.append(InsightsDrawn(id, cell, (), group.maker.by))
    dropped += [f"{over} more questions that compare the documents: {COMPARISONS} are asked already"] if over else []
    return [Merged(tuple(questions)), *drawn] if questions else [], dropped


def _unusable(text: str, documents: int, known: Collection[str]) -> str:
    """Why a comparative question is not asked; empty if it is."""
    if is_suspicious(text):
        return "a question that reads like an instruction to a model"
    if not text.endswith(("?", "？", "؟")) or len(text) > REASON:
        return "it is no question, or too long"
    if not stands_alone(text):
        return "it does not name what it asks about"
    if documents < 2:
        return "points of fewer than two documents answer it"
    return "it is asked already" if question_key(text) in known else ""


def _paragraphs(of: Material, group: _Group) -> list[Theme]:
    """The paragraphs of a group. Points that the plan leaves out come last, without a topic."""
    by_number: Mapping[int, str] = {of.numbers[id]: id for id in group.points}
    found: list[Theme] = []
    for each in (group.reply.paragraphs if group.reply else ())[:PARAGRAPHS]:
        ids = tuple(dict.fromkeys(by_number[number] for number in each.points if number in by_number))
        if ids:
            found.append(Theme(name_only(each.topic, of, TOPIC), _documents(of, ids), ids))
    told = {id for theme in found for id in theme.insights}
    rest = tuple(id for id in group.points if id not in told)
    return [*found, *([Theme("", _documents(of, rest), rest)] if rest else [])]


def _documents(of: Material, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(of.points[id].doc_id for id in ids))


def _theme(of: Material, planned: Sequence[_Group]) -> str:
    """The theme, if there is one plan."""
    return name_only(planned[0].reply.theme, of, THEME) if len(planned) == 1 and planned[0].reply else ""


def name_only(words: str, of: Material, most: int) -> str:
    """What a model calls a subject, if it brings no name, number or date of its own and no instruction; otherwise empty.
    It is shown as a heading, and nobody judges it."""
    text = " ".join(clean_text(words).split()).rstrip(".")
    known = "\n".join(f"{of.sources.titles.get(each.passage.doc_id, '')}\n{each.passage.text}" for each in of.evidence)
    strange = facts.missing_facts(text, known, facts.lowercase_stems(known))
    return "" if len(text) > most or strange or is_suspicious(text) else text
