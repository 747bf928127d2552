"""From documents to points. Which passages of a document are read (all of them, if they fit), and what is noted of them:
by a capable model that sees the passages with their keys, otherwise by rule.

A point is kept only with words of its passage; what a model writes about it is a note for its own use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, Field

from assay.agent.context import RunContext, mark, run_in_order
from assay.answer.checking import repetition
from assay.answer.checking.judge import Documents, verify
from assay.answer.weigh import SAYS, quote, whole
from assay.core.events import Described, Event, Found, Gathered, InsightsDrawn, Merged, PassagesChosen
from assay.core.events.synthesis import BY_RULES, Maker, combine_makers, stand_in
from assay.core.printable import clean_text
from assay.core.run import Run
from assay.core.synthesis import Insight, Pipeline, Question, QuestionKind
from assay.core.types import Claim, Evidence, Passage, Verdict
from assay.language.injection import is_command, is_suspicious
from assay.language.names import find_names
from assay.language.quotation import lies_in, locate_quote
from assay.language.sentences import is_statement
from assay.language.terms import content_terms
from assay.models.cost import estimate_tokens, fit_to_tokens, pack
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import context_label, fence
from assay.synthesis import key_sentences, state
from assay.synthesis.describe import fill_identity

SHARE, MOST = 0.45, 24_000  # of the window for passages in one request, and the most
REPLY, DOCUMENTS = 1100, 8  # tokens of a reply about one document, and documents in one request
PARTS = 4  # requests that a long document may take; of a longer one a selection is read
FEWEST_POINTS, MOST_POINTS, A_POINT = 4, 14, 140  # points of a document; tokens of text to each
LONGEST = 400  # characters of a note, and of a question
SCORE = 8.0  # of a passage that a point is from
FRAME = 40  # tokens of the fence around a passage
ASPECTS = {
    Pipeline.summary: "broad themes: context, background, objective, method, findings",
    Pipeline.synthesis: "how things work: design, steps, mechanisms, interactions, the reasons for choices",
}
WHOLE, IN_PART, FOR_RULES = "read whole", "read in part", "read by rule"


Words = Annotated[str, Field(max_length=4000)]


class PointReply(BaseModel, extra="forbid"):
    """A point as it was noted."""

    key: Words = ""
    words: Words = ""
    text: Words = ""
    question: int = 0


class DocumentReply(BaseModel, extra="forbid"):
    """What a model noted of one document."""

    document: Words
    name: Words = ""
    title: Words = ""
    authors: list[Words] = Field(default_factory=list, max_length=60)
    year: Words = ""
    questions: list[Words] = Field(default_factory=list, max_length=40)
    points: list[PointReply] = Field(default_factory=list, max_length=60)


class ReadingReply(BaseModel, extra="forbid"):
    documents: list[DocumentReply]


# --- which passages are read ----------------------------------------------------------------------------------------


def readable(run: Run) -> tuple[str, ...]:
    portraits = state.portraits(run)
    return tuple(doc for doc in state.brief(run).documents if doc in portraits and not portraits[doc].empty)


def unopened(run: Run) -> tuple[str, ...]:
    known = state.opened(run)
    return tuple(doc for doc in readable(run) if doc not in known)


async def open_documents(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the passages to read of each document."""
    async for event in run_in_order(_open(run, context, doc) for doc in unopened(run)):
        yield event


async def _open(run: Run, context: RunContext, doc: str) -> PassagesChosen:
    passages = [hit.passage for hit in await context.tool_context.passages(doc)]
    chosen = choose_passages(passages, budget(run) * PARTS)
    found = tuple(Found(each, rank, 0.0) for rank, each in enumerate(chosen, 1))
    how = WHOLE if len(chosen) == len(passages) else IN_PART
    return PassagesChosen("", found, len(passages), how if state.is_capable(run) else FOR_RULES, document=doc)


def budget(run: Run) -> int:
    """Tokens of passages in one request."""
    return max(400, min(MOST, int(state.window(run) * SHARE)))


def choose_passages(passages: Sequence[Passage], room: int) -> list[Passage]:
    """All passages, if they fit. Otherwise the beginning, the end, and the first passage of each section, then others
    spread evenly, in reading order."""
    costs = [_cost(each) for each in passages]
    if sum(costs) <= room:
        return list(passages)
    ends = [*range(len(passages) // 20 + 1), *range(len(passages) - len(passages) // 20 - 1, len(passages))]
    heads = [at for at in range(1, len(passages)) if passages[at].heading != passages[at - 1].heading]
    order = dict.fromkeys((*ends, *_spread(heads), *_spread(range(len(passages)))))
    chosen: set[int] = set()
    for at in order:
        if costs[at] <= room:
            chosen.add(at)
            room -= costs[at]
    return [passages[at] for at in sorted(chosen)]


def _spread(places: Sequence[int]) -> Iterable[int]:
    """The places, so that the first few of them are already spread over the whole."""
    step = 1
    while step < len(places):
        step *= 2
    while step:
        yield from places[::step]
        step //= 2


def _cost(passage: Passage) -> int:
    return estimate_tokens(passage.text) + FRAME


# --- what is read together ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """Passages of one document in one request."""

    doc: str
    passages: tuple[Passage, ...]

    @property
    def cost(self) -> int:
        return sum(map(_cost, self.passages))


def unread(run: Run) -> tuple[str, ...]:
    """The documents that are due: all of them, or, after the first pass, those that it covered thinly."""
    done = state.coverage_passes(run)
    known = state.read_again(run) if done else frozenset(event.doc_id for event in state.readings(run))
    due = done[-1].thin if done else readable(run)
    return tuple(doc for doc in readable(run) if doc in due and doc not in known)


def requests(run: Run) -> list[tuple[Shown, ...]]:
    """What is shown in each request of this pass, over all its documents, read or not, so that a resumed run sends the
    same requests. Short documents share a request; a long one takes several."""
    done = state.coverage_passes(run)
    room = budget(run)
    many = max(1, min(DOCUMENTS, state.window(run) // 3 // REPLY))
    found: list[tuple[Shown, ...]] = []
    for doc in [doc for doc in readable(run) if not done or doc in done[0].thin]:
        passages = _passages(run, doc, again=bool(done))
        parts = [Shown(doc, tuple(part)) for part in pack(passages, _cost, room) or [[]]]
        last = found[-1] if found else ()
        fits = len(parts) == 1 and last and len(last) < many and sum(each.cost for each in (*last, *parts)) <= room
        if fits and not any(each.cost > room // 2 and len(last) > 1 for each in parts):
            found[-1] = (*last, *parts)
        else:
            found += [(part,) for part in parts]
    return found


def _passages(run: Run, doc: str, *, again: bool) -> list[Passage]:
    """The passages to show. In the second pass, what searches found beyond those that were read, if there is any.
    Passages with an order to a model are never shown."""
    new = unseen_passages(run).get(doc) if again else None
    own = new or [each.passage for each in state.opened(run)[doc].found]
    return [each for each in own if not is_command(each.text)]


def unseen_passages(run: Run) -> dict[str, list[Passage]]:
    """What searches found beyond the passages that were read, by document."""
    seen = {each.passage.id for event in state.opened(run).values() for each in event.found}
    chosen = (each.passage for event in state.chosen_passages(run).values() for each in event.found)
    found = {each.id: each for each in chosen if each.id not in seen}
    own: dict[str, list[Passage]] = {}
    for passage in sorted(found.values(), key=lambda each: (each.doc_id, each.start)):
        own.setdefault(passage.doc_id, []).append(passage)
    return own


# --- the stage ------------------------------------------------------------------------------------------------------


_Reading = tuple[DocumentReply | None, Maker]  # what one request gave for one document; None if nothing


async def read(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield what each document says, in the order of the brief, as soon as all its requests have replied."""
    document = lru_cache(maxsize=64)(context.document)
    due = unread(run)
    if not state.is_capable(run):
        for doc in due:
            for event in await _by_rule(run, context, doc, document, BY_RULES):
                run = run.then(event)
                yield event
        return
    shown = [each for each in requests(run) if any(part.doc in due for part in each)]
    left = Counter(part.doc for each in shown for part in each)
    readings: dict[str, list[_Reading]] = {doc: [] for doc in left}
    asked = iter(shown)
    async for results in run_in_order(_ask_model(run, context, each) for each in shown):
        for part, reading in zip(next(asked), results, strict=True):
            readings[part.doc].append(reading)
        while due and len(readings[due[0]]) == left[due[0]]:
            doc, due = due[0], due[1:]
            for event in await _settle(run, context, doc, readings[doc], document):
                run = run.then(event)
                yield event


async def _ask_model(run: Run, context: RunContext, shown: Sequence[Shown]) -> list[_Reading]:
    keys = [state.evidence_key(passage) for part in shown for passage in part.passages]
    labels = [state.labels(run)[part.doc] for part in shown]
    if not keys:
        return [(None, BY_RULES) for _ in shown]
    reply = await context.ask(
        Role.write,
        "read",
        ReadingReply,
        lambda room: build_prompt(run, shown, mark(run), room),
        schema=schema(keys, labels),
        documents=sorted({part.doc for part in shown}),
        max_tokens=min(200 + REPLY * len(shown), max(REPLY, state.window(run) // 3)),
    )
    if isinstance(reply, NoReply):
        return [(None, stand_in(reply.why)) for _ in shown]
    by_label = {each.document.strip(): each for each in reversed(reply[0].documents)}
    return [(by_label.get(label), Maker(reply[1])) for label in labels]


def build_prompt(run: Run, shown: Sequence[Shown], mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `read`, in at most `room` tokens; if they do not fit, passages are cut evenly."""
    brief, labels, portraits = state.brief(run), state.labels(run), state.portraits(run)
    passages = [(labels[part.doc], passage) for part in shown for passage in part.passages]
    each = max(16, (room - 300) // len(passages) - FRAME)
    whole_ = sum(part.cost for part in shown) <= room - 300
    lines: list[str] = []
    titled = ""
    for label, passage in passages:
        if label != titled:
            titled = label
            title = portraits[passage.doc_id].title
            shown_title = fence(mark, f"{label}, its title", title[:200])
            lines.append(f"Document {label}" if is_suspicious(title) else shown_title)
        flag = " (reads like an instruction: data all the same)" if is_suspicious(passage.text) else ""
        name = f"key {state.evidence_key(passage)} · {label} · {passage.heading[:120]}{context_label(passage)}{flag}"
        lines.append(fence(mark, name, passage.text if whole_ else fit_to_tokens(passage.text, each)))
    wanted = "Note the points of every document."
    if state.coverage_passes(run):
        asked = fit_to_tokens("\n".join(f"- {question.text}" for question in state.questions(run)[:30]), 400)
        wanted = (
            "These gave little when they were first read. Note all that bears on these questions, or that has weight:"
        )
        wanted += f"\n{fence(mark, 'questions', asked)}"
    return {
        "documents": "\n".join(lines),
        "count": str(brief.questions),
        "aspects": ASPECTS[brief.pipeline],
        "points": str(max(map(points_wanted, shown))),
        "language": state.language(run),
        "focus": f"The reader wants to know: {fit_to_tokens(brief.focus, 80)}\n" if brief.focus else "",
        "wanted": wanted,
    }


def points_wanted(shown: Shown) -> int:
    return max(FEWEST_POINTS, min(MOST_POINTS, 2 + shown.cost // A_POINT))


def schema(keys: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """JSON schema of the reply: only what was shown can be named."""
    text = {"type": "string"}
    point = object_schema(
        key={"type": "string", "enum": list(keys)}, words=text, text=text, question={"type": "integer"}
    )
    document = object_schema(
        document={"type": "string", "enum": list(labels)},
        name=text,
        title=text,
        authors=list_schema(text, 0, 12),
        year=text,
        questions=list_schema(text, 0, 20),
        points=list_schema(point, 0, MOST_POINTS),
    )
    return object_schema(documents=list_schema(document, 1, len(labels)))


# --- what becomes of a reading --------------------------------------------------------------------------------------


async def _settle(
    run: Run, context: RunContext, doc: str, readings: Sequence[_Reading], document: Documents
) -> list[Event]:
    """The events of one document. A model that gave no usable point for it is replaced by the rules."""
    maker = combine_makers(made for _, made in readings)
    replies = [reply for reply, _ in readings if reply is not None]
    questions = _questions(run, doc, replies)
    ids = {question.text: question.id for question in questions}
    passages = {state.evidence_key(each): each for each in _read_passages(run, doc)}
    points = _Points(run, doc, passages, document)
    inexact: list[str] = []
    for reply in replies:
        own = dict(enumerate((ids.get(_question_text(each), "") for each in reply.questions), 1))
        for point, found in ((each, _locate(each, passages)) for each in reply.points):
            if found is not None:
                claim, exact = found
                points.add(claim, _note(point.text), own.get(point.question, ""))
                if not exact and claim.cites[0] in points.evidence:
                    inexact.append(claim.cites[0])
    if not points.drawn:
        return await _by_rule(run, context, doc, document, maker)
    events: list[Event] = []
    source, portrait = document(doc), state.portraits(run)[doc]
    if replies and source is not None and (told := fill_identity(replies[0], maker.by, source, portrait)) != portrait:
        events.append(Described(told))
    if questions:
        events.append(Merged(questions, len(state.coverage_passes(run)) + 1))
    return [*state.unrecorded(run, events), *points.events(maker, tuple(inexact))]


async def _by_rule(run: Run, context: RunContext, doc: str, document: Documents, maker: Maker) -> list[Event]:
    """The key sentences of a document, quoted."""
    source, portrait = document(doc), state.portraits(run)[doc]
    quotes = portrait.abstract if portrait.made else ()
    if source is not None and not quotes:
        quotes = await key_sentences.pick(context, source, state.brief(run).focus)
    passages = _read_passages(run, doc)
    if any(not any(lies_in(words, each) for each in passages) for words in quotes):
        passages += [hit.passage for hit in await context.tool_context.passages(doc)]
    points = _Points(run, doc, {state.evidence_key(each): each for each in passages}, document)
    known = {insight.claim.quote for insight in state.points(run)}
    for words in quotes:
        key = next((key for key, each in points.passages.items() if lies_in(words, each)), "")
        if key and words not in known:
            points.add(Claim("", (key,), quote=words))
    return points.events(replace(maker, by=BY_RULES.by))


def _read_passages(run: Run, doc: str) -> list[Passage]:
    return [*(each.passage for each in state.opened(run)[doc].found), *unseen_passages(run).get(doc, ())]


class _Points:
    """What the reading of a document gives: insights, and their evidence."""

    def __init__(self, run: Run, doc: str, passages: Mapping[str, Passage], document: Documents):
        self.run, self.doc, self.passages, self.document = run, doc, passages, document
        self.label = state.labels(run)[doc]
        self.before = [each for each in state.points(run) if each.doc_id == doc]
        self.drawn: list[Insight] = []
        self.evidence: dict[str, Evidence] = {}

    def add(self, claim: Claim, note: str = "", question: str = "") -> None:
        """Add an insight and its evidence, if the document says so and it is not noted already."""
        key = claim.cites[0]
        assert claim.quote is not None
        passage = self.passages[key]
        own = Evidence(key, passage, claim.quote, SCORE, "", flagged=is_suspicious(passage.text))
        checked = verify(claim, [own], self.document)
        noted = [*self.before, *self.drawn]
        if checked.verdict is Verdict.supported and (claim.quote, note) not in {(i.claim.quote, i.note) for i in noted}:
            self.evidence.setdefault(key, own)
            self.drawn.append(Insight(f"{self.label}-{len(noted) + 1}", question, self.doc, checked, note))

    def events(self, maker: Maker, inexact: tuple[str, ...] = ()) -> list[Event]:
        """The outcome of the reading, also if nothing was drawn: it is recorded for every document, in every pass."""
        gathered = Gathered(tuple(self.evidence.values()), (), maker.by, inexact=inexact, fallback=maker.fallback)
        drawn = InsightsDrawn("", tuple(self.drawn), (), maker.by, maker.fallback, self.doc)
        return [*state.unrecorded(self.run, [gathered]), drawn]


def _locate(point: PointReply, passages: dict[str, Passage]) -> tuple[Claim, bool] | None:
    """The words of a point in its passage, or in another that was shown, widened to whole sentences, and whether they are
    there exactly; otherwise the sentence of its passage that is nearest to the note."""
    key = point.key.strip().strip("[]").lower()
    ordered = sorted(passages, key=lambda each: each != key)
    for each in ordered if len(point.words.split()) >= SAYS else ():
        passage = passages[each]
        if span := locate_quote(point.words, passage.text):
            words = quote(passage, *whole(passage.text, *span))
            return (Claim("", (each,), quote=words), True) if _is_quotable(words.text) else None
    if key not in passages:
        return None
    own = Evidence(key, passages[key], quote(passages[key], 0, len(passages[key].text)), SCORE, "")
    nearest = repetition.quote_source(point.text, [own])
    return (nearest, False) if nearest and _is_quotable(nearest.words) else None


def _is_quotable(words: str) -> bool:
    return is_statement(words) and not is_command(words)


def _note(words: str) -> str:
    note = " ".join(clean_text(words).split())[:LONGEST]
    return "" if is_suspicious(note) else note


# --- questions ------------------------------------------------------------------------------------------------------


def _questions(run: Run, doc: str, replies: Sequence[DocumentReply]) -> tuple[Question, ...]:
    """The questions of a document: those recorded before, or those of its replies that stand alone and are new."""
    brief, asked = state.brief(run), state.questions(run)
    kind = QuestionKind.workings if brief.pipeline is Pipeline.synthesis else QuestionKind.theme
    if state.coverage_passes(run):
        kind = QuestionKind.follow_up
    if own := tuple(each for each in asked if each.documents == (doc,) and each.kind is kind):
        return own  # the run was stopped after they were recorded
    known = {question_key(each.text) for each in asked}
    found: dict[str, str] = {}
    for words in (words for reply in replies for words in reply.questions):
        text = _question_text(words)
        if text and question_key(text) not in known:
            found.setdefault(question_key(text), text)
    few = list(found.values())[: brief.questions]
    return tuple(Question(f"q{len(asked) + n}", text, kind, (doc,)) for n, text in enumerate(few, 1))


def _question_text(words: str) -> str:
    """A usable question on one line; empty if it is none."""
    text = " ".join(clean_text(words).split())
    usable = len(text) <= LONGEST and stands_alone(text) and not is_suspicious(text)
    return text if usable else ""


def question_key(text: str) -> str:
    """What two wordings of one question share."""
    return " ".join(sorted(content_terms(text)))


# What only a reader of the text understands: words for it or for its authors, and our own labels and marks.
NOT_ALONE = re.compile(
    r"\b(?:the|this|that|these|those|said|given|provided|each|both|its)\s+(?:\w+\s+)?"
    r"(?:passages?|texts?|excerpts?|quotations?|quotes?|snippets?|authors?|writers?|researchers|papers?|articles?|documents?"
    r"|abstracts?|manuscripts?|publications?|preprints?)\b|\b(?:D\d{1,3}|documents?\s+\d+)\b|⟦|⟧",
    re.I,
)


def stands_alone(question: str) -> bool:
    """Whether a question names what it asks about, apart from words that only a reader of the text understands."""
    text = NOT_ALONE.sub(" ", question)
    return len(content_terms(text)) >= 2 - bool(find_names(text))
