"""Relations and plan: a capable model sees the points of all documents, says how they are related, and orders them into
paragraphs by what they are about. Reasons are judged like claims. Many documents are planned in groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from assay.agent.context import RunContext, mark, run_in_order
from assay.agent.steps.check import settle_claims
from assay.answer.checking.claim_rules import unsupported
from assay.core.events import Event, InsightsDrawn, Merged, Paired, Related, SpineWritten
from assay.core.events.synthesis import Maker, combine_makers, stand_in
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.synthesis import Insight, Question, QuestionKind, Relation, RelationSide, RelationType, Theme
from assay.core.types import Claim, Verdict
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.models.cost import fit_to_tokens, pack
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
THEMES, CITES = 3, 12  # of several plans, in a title; passages that a heading is judged by


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
    planned = [each async for each in run_in_order(_ask_model(run, context, of, points, len(cut)) for points in cut)]
    proposed, dropped = _proposals(of, planned)
    headings = _headings(of, planned)
    doubtful = [words for words, claim in headings.items() if claim.verdict is None]
    claims = [*(claim for _, _, claim in proposed), *(headings[words] for words in doubtful)]
    judged = await settle_claims(
        run,
        context,
        claims,
        of.evidence,
        of.sources,
        lambda each: of.documents(each.cites),
        headings=set(range(len(proposed), len(claims))),
    )
    kept: dict[int, list[Relation]] = {block: [] for block in dropped}
    for (block, relation, _), verdict in zip(proposed, judged, strict=False):
        if verdict.verdict is Verdict.supported:
            kept[block].append(replace(relation, reason=verdict.text))
        else:
            dropped[block].append(f"{_about(of, relation)}: {verdict.why}")
    headings |= zip(doubtful, judged[len(proposed) :], strict=True)
    names = {words: each.text for words, each in headings.items() if each.verdict is Verdict.supported}
    compared, refused = _comparisons(run, of, planned)
    lost = [f"heading {_shown(words)}: {each.why}" for words, each in headings.items() if words not in names]
    dropped[len(planned)] += [*lost, *refused]
    made: list[Event] = [
        Related(block, tuple(kept[block]), tuple(dropped[block]), group.maker.by, group.maker.fallback)
        for block, group in enumerate(planned, 1)
    ]
    paired = state.pairing(run)
    made += [*compared, Paired((), f"{paired.how if paired else ''} {_how(of, cut)}".strip())]
    maker = combine_makers(group.maker for group in planned)
    paragraphs = tuple(theme for group in planned for theme in _paragraphs(of, group, names))
    themes = [names[group.reply.theme] for group in planned if group.reply and group.reply.theme in names]
    theme = "; ".join(themes[:THEMES])
    made.append(SpineWritten(theme, (), paragraphs, maker.by, maker.fallback))
    for event in state.unrecorded(run, made):
        yield event


def budget(run: Run) -> int:
    return max(400, min(MOST, int(state.window(run) * SHARE)))


def _how(of: Material, cut: Sequence[Sequence[str]]) -> str:
    many = f"{len(of.points):,} points of {len(of.documents_of(of.points)):,} documents were compared by a model, "
    if len(cut) == 1:
        return f"{many}in one request."
    return f"{many}in {len(cut):,} requests, each of documents that are near in meaning."


async def group_points(of: Material, context: RunContext, room: int) -> list[tuple[str, ...]]:
    """The points that share a request: all, if they fit; otherwise those of documents that are near in meaning, along the
    direction in which they differ most."""
    if sum(map(of.cost, of.points)) <= room:
        return [tuple(of.points)]
    own = [of.of_document(doc) for doc in of.documents_of(of.points)]
    texts = [" ".join(of.points[id].claim.words for id in ids[:4]) for ids in own]
    vectors = np.asarray(await context.tool_context.search_context.embedder.queries(texts), dtype=np.float64)
    _, _, axes = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    along = np.round((vectors - vectors.mean(axis=0)) @ axes[0], 6)  # smaller differences are noise
    along = along if along[0] <= 0 else -along
    order = sorted(zip(along.tolist(), own, strict=True), key=lambda each: each[0])
    return list(map(tuple, pack((id for _, ids in order for id in ids), of.cost, room)))


async def _ask_model(run: Run, context: RunContext, of: Material, points: tuple[str, ...], groups: int) -> _Group:
    if len(documents := of.documents_of(points)) < 2:
        return _Group(points, None, Maker())
    reply = await context.ask(
        Role.write,
        "relate",
        PlanReply,
        lambda room: build_prompt(run, of, points, mark(run), room),
        check=_too_few(run, of, points) if groups == 1 else lambda _: "",
        schema=schema([of.numbers[id] for id in points]),
        documents=sorted(documents),
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
    sides = ((one.left.insight, one.right.insight) for one in of.contradictions)
    found = [f"{of.numbers[one]} and {of.numbers[other]}" for one, other in sides if {one, other} <= set(points)]
    conflicts = f"Rules have found that these contradict each other: {'; '.join(found)}.\n" if found else ""
    return {
        "points": fence(mark, "points", "\n".join(lines)),
        "conflicts": conflicts,
        "relations": str(RELATIONS),
        "language": state.language(run),
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


def _proposals(
    of: Material, planned: Sequence[_Group]
) -> tuple[list[tuple[int, Relation, Claim]], dict[int, list[str]]]:
    """The relations that are to be judged, each with its block and its reason as a claim on the words of both sides; and, by
    block, why others were dropped. What rules have found already is not told twice."""
    spans = {frozenset((each.left.insight, each.right.insight)) for each in of.contradictions}
    found: list[tuple[int, Relation, Claim]] = []
    dropped: dict[int, list[str]] = {}
    for block, group in enumerate(planned, 1):
        by_number = {of.numbers[id]: of.points[id] for id in group.points}
        lost = dropped.setdefault(block, [])
        for each in (group.reply.relations if group.reply else ())[:RELATIONS]:
            left, right = by_number.get(each.left), by_number.get(each.right)
            if left is None or right is None:
                lost.append(f"{each.type} between {each.left} and {each.right}: a point that was not shown")
                continue
            reason = " ".join(clean_text(each.reason).split())[:REASON]
            relation = Relation(_side(left), _side(right), RelationType(each.type), reason, group.maker.by)
            if left.doc_id == right.doc_id:
                lost.append(f"{_about(of, relation)}: both are of the same document")
            elif each.type == "contradiction" and _is_known(of, left, right, each.reason):
                lost.append(f"{_about(of, relation)}: rules have found it already")
            elif frozenset((left.id, right.id)) not in spans:
                spans.add(frozenset((left.id, right.id)))
                keys = dict.fromkeys((left.claim.cites[0], right.claim.cites[0]))
                found.append((block, relation, Claim(reason, tuple(keys))))
    return found, dropped


def _about(of: Material, relation: Relation) -> str:
    return f"{relation.type} between {of.labels[relation.left.doc_id]} and {of.labels[relation.right.doc_id]}"


def _is_known(of: Material, left: Insight, right: Insight, reason: str) -> bool:
    """Whether rules have found these passages to contradict each other in the values that the reason names."""
    keys = {left.claim.cites[0], right.claim.cites[0]}
    found = (each.about.split(" / ") for each in of.contradictions if {each.left.key, each.right.key} == keys)
    return any(len(values) == 2 and all(value in reason for value in values) for values in found)


def _side(point: Insight) -> RelationSide:
    assert point.claim.quote is not None
    return RelationSide(point.id, point.doc_id, point.claim.cites[0], point.claim.quote)


# --- comparisons and paragraphs -------------------------------------------------------------------------------------


Usable = tuple[str, Mapping[str, Insight]]  # a question, and for each document the point that answers it


def _comparisons(run: Run, of: Material, planned: Sequence[_Group]) -> tuple[list[Event], list[str]]:
    """The comparative questions, of all groups in turn, and for each the points that answer it; and why others were
    dropped."""
    asked = _asked(run)
    known, labels = {question_key(each.text) for each in asked}, of.labels
    found: list[list[tuple[Usable, str]]] = []
    dropped: list[str] = []
    for group in planned:
        usable, refused = _usable(of, group.points, group.reply, known)
        known |= {question_key(text) for text, _ in usable}
        found.append([(each, group.maker.by) for each in usable])
        dropped += refused
    ordered = [each for row in zip_longest(*found) for each in row if each is not None]
    questions: list[Question] = []
    drawn: list[InsightsDrawn] = []
    for number, ((text, cells), by) in enumerate(ordered[:COMPARISONS], len(asked) + 1):
        docs = tuple(doc for doc in labels if doc in cells)
        questions.append(Question(f"q{number}", text, QuestionKind.comparative, docs))
        cell = tuple(replace(cells[doc], id=f"q{number}-{labels[doc]}", question=f"q{number}") for doc in docs)
        drawn.append(InsightsDrawn(f"q{number}", cell, (), by))
    if (over := len(ordered) - COMPARISONS) > 0:
        dropped.append(f"{over} more questions that compare the documents: {COMPARISONS} are asked already")
    if len(ordered) < FEWEST and any(group.reply for group in planned):
        dropped.append(f"{FEWEST - len(ordered)} of {FEWEST} questions that compare the documents: none was proposed")
    return [Merged(tuple(questions)), *drawn] if questions else [], dropped


def _asked(run: Run) -> list[Question]:
    return [each for each in state.questions(run) if each.kind is not QuestionKind.comparative]


def _usable(
    of: Material, points: Sequence[str], reply: PlanReply | None, known: Collection[str]
) -> tuple[list[Usable], list[str]]:
    """The comparative questions of a reply that can be asked, and why others cannot."""
    by_number = {of.numbers[id]: of.points[id] for id in points}
    found: dict[str, Usable] = {}
    dropped: list[str] = []
    for each in reply.comparisons if reply else ():
        text = " ".join(clean_text(each.question).split())
        cells = {point.doc_id: point for number in reversed(each.points) if (point := by_number.get(number))}
        if why := _unusable(text, len(cells), {*known, *found}):
            dropped.append(f"question {_shown(text)}: {why}")
        else:
            found[question_key(text)] = text, cells
    return list(found.values()), dropped


def _too_few(run: Run, of: Material, points: Sequence[str]) -> Callable[[PlanReply], str]:
    """What a plan is told if too few of its questions can be asked. It is told once: a second plan is taken as it is."""
    told = False
    known = {question_key(each.text) for each in _asked(run)}

    def wrong(reply: PlanReply) -> str:
        nonlocal told
        usable, dropped = _usable(of, points, reply, known)
        if told or len(usable) >= FEWEST:
            return ""
        told = True
        return f"comparisons: {FEWEST} to {COMPARISONS} questions are wanted, {len(usable)} can be used. {'; '.join(dropped)}"

    return wrong


def _unusable(text: str, documents: int, known: Collection[str]) -> str:
    """Why a comparative question is not asked; empty if it is."""
    if is_suspicious(text):
        return "it reads like an instruction to a model"
    if not text or len(text) > REASON:
        return "it is empty or too long"
    if not stands_alone(text):
        return "it does not name what it asks about"
    if documents < 2:
        return "points of fewer than two documents answer it"
    return "it is asked already" if question_key(text) in known else ""


def _headings(of: Material, planned: Sequence[_Group]) -> dict[str, Claim]:
    """Theme and topics, by the words of the plans, on the points that they stand for. One that brings a number, date or name
    of its own, or an instruction, fails. The theme, and a topic whose first word may be a name, have no verdict yet."""
    titles = (of.sources.titles.get(each.passage.doc_id, "") for each in of.evidence)
    known = "\n".join((*titles, *(each.passage.text for each in of.evidence)))
    ordinary = facts.lowercase_stems(known)
    found: dict[str, Claim] = {}
    for group in planned:
        points = {of.numbers[id]: of.points[id].claim.cites[0] for id in group.points}
        plans = group.reply.paragraphs[:PARAGRAPHS] if group.reply else []
        theme = group.reply.theme if group.reply else ""
        for words, most, own in (
            (theme, THEME, plans[0].points if plans else ()),
            *((each.topic, TOPIC, each.points) for each in plans),
        ):
            text = " ".join(clean_text(words).split()).rstrip(".")
            keys = dict.fromkeys(points[number] for number in own if number in points)
            claim = Claim(text, tuple(keys)[:CITES])
            if not text or words in found:
                continue
            strange = facts.missing_facts(text[0].lower() + text[1:], known, ordinary)
            if len(text) > most or strange or is_suspicious(text):
                claim = unsupported(claim, "it is too long, gives orders, or names what no document has")
            elif words != theme and not facts.missing_facts(text, known, ordinary):
                claim = replace(claim, verdict=Verdict.supported)
            found[words] = claim
    return found


def _shown(text: str) -> str:
    """What a model wrote, shortened, for the list of what was dropped."""
    return "(it reads like an instruction)" if is_suspicious(text) else f"“{fit_to_tokens(text, 40)}”"


def _paragraphs(of: Material, group: _Group, names: Mapping[str, str]) -> list[Theme]:
    """The paragraphs of a group. Points that the plan leaves out come last, without a topic."""
    by_number: Mapping[int, str] = {of.numbers[id]: id for id in group.points}
    found: list[Theme] = []
    for each in (group.reply.paragraphs if group.reply else ())[:PARAGRAPHS]:
        ids = tuple(dict.fromkeys(by_number[number] for number in each.points if number in by_number))
        if ids:
            found.append(Theme(names.get(each.topic, ""), of.documents_of(ids), ids))
    told = {id for theme in found for id in theme.insights}
    rest = tuple(id for id in group.points if id not in told)
    return [*found, *([Theme("", of.documents_of(rest), rest)] if rest else [])]
