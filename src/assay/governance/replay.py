"""Replays a run from its record, without a model, a search or the network, and compares the conclusions.

Model replies, tool results, limits reached and user choices are taken from the record. Everything derived from them is
recomputed and compared: each step, each verdict, the answer. Steps that compare vectors need the index; without one,
they are taken from the record too, and the answer is still recomputed.

Only runs decided by this version of the decision code are recomputed. For older runs, the conclusions are taken as
recorded, and only what does not depend on decisions is checked: quotations, citations, and that each claim was
checked and found supported.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

from assay.agent.context import ROUNDS, Limits, RunContext
from assay.agent.loop import Step, next_step
from assay.agent.tool import ToolContext
from assay.answer import compose
from assay.core.access import Scope
from assay.core.codec import dumps, from_json, to_json
from assay.core.errors import AssayError, ModelError, UserError
from assay.core.events import (
    DECIDES,
    DECIDES_SYNTHESIS,
    RULES,
    Answered,
    Asked,
    AwaitingReview,
    Checked,
    Claimed,
    Compacted,
    Critiqued,
    Decided,
    Drafted,
    Event,
    Failed,
    Fallback,
    Gathered,
    HistorySummarised,
    Judged,
    ModelReplied,
    Narrowed,
    Paused,
    Planned,
    Rephrased,
    Resumed,
    Reviewed,
    Revised,
    RevisionCause,
    Routed,
    StepAnswered,
    Stopped,
    ToolRan,
    Withheld,
    fallbacks,
)
from assay.core.events.upgrade import read_event
from assay.core.identity import identified_title
from assay.core.run import Run
from assay.core.types import Answer, Document, Verdict
from assay.language.quotation import stands
from assay.models.llm import Heard, Prompt, Reply, Role, ToolCall
from assay.models.meter import ConnectedModel, Ledger, Meter, NoReply, request_digest
from assay.store.runs.budgets import SpendingReservation

# The step that made an event. Of an event that is not listed, it is the step that the loop names.
STEP_OF: Mapping[type, Step] = {
    HistorySummarised: Step.SUMMARISE,
    Rephrased: Step.REPHRASE,
    Routed: Step.ROUTE,
    Planned: Step.PLAN,
    Judged: Step.SUFFICIENCY,
    StepAnswered: Step.SUFFICIENCY,
    Compacted: Step.COMPACT,
    Claimed: Step.DRAFT,
    Drafted: Step.DRAFT,
    Checked: Step.CHECK,
    Revised: Step.REVISE,
    AwaitingReview: Step.DELIVER,
    Answered: Step.DELIVER,
}
TAKEN = (Asked, ToolRan, Stopped, Paused)  # taken as recorded: what was asked, what tools returned, where it ended
ASIDE = (ModelReplied, Failed, Resumed, Reviewed, Narrowed, Withheld)  # progress of a run, not conclusions
ENDS = {
    Step.ROUTE: (Routed, Planned),
    Step.GATHER: Gathered,
    Step.CHECK: (Checked, Critiqued),
    Step.SEEK: (Revised, Decided),
    Step.REVISE: Revised,
    Step.EDIT: Revised,
    Step.SUFFICIENCY: Judged,
    Step.REOPEN: Critiqued,
}


@dataclass(frozen=True, slots=True)
class Replay:
    """The recorded run, the recomputed answer, and the differences. `taken` counts steps taken from the record
    because they compare vectors and there is no index. `reworded` counts replies whose prompts read differently
    today, as they may in a later version. `as_recorded` says that an older version decided and nothing was
    recomputed; `checked` counts the quotations that were then compared with their documents."""

    run: Run
    answer: Answer | None
    differences: tuple[str, ...] = ()
    taken: int = 0
    reworded: int = 0
    as_recorded: bool = False
    checked: int = 0
    prompts: tuple[RebuiltPrompt, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the answer is the recorded one, byte for byte."""
        recorded = self.run.answer
        return recorded is not None and self.answer is not None and _canonical(self.answer) == _canonical(recorded)


class NoIndex(Exception):
    """A step needs vectors or the index, and there is no index."""


@dataclass(frozen=True, slots=True)
class NoSearch:
    """A search context without an index: only titles and dates can be looked up."""

    kept: Any = None

    @property
    def store(self) -> Any:
        if self.kept is None:
            raise NoIndex("store")
        return self.kept

    def __getattr__(self, name: str) -> Any:
        raise NoIndex(name)


async def replay(recorded: Run, context: RunContext, *, searchable: bool = True) -> Replay:
    """Replay a run. Without an index (`searchable` is False), steps that compare vectors are taken from the record."""
    if recorded.asked.version != (DECIDES if recorded.asked.brief is None else DECIDES_SYNTHESIS):
        return check_recorded(recorded, context.document)
    if not searchable:
        tools = context.tool_context
        search = (
            tools.search_context if isinstance(tools.search_context, NoSearch) else NoSearch(tools.search_context.store)
        )
        context = replace(context, tool_context=replace(tools, search_context=search))
    if recorded.asked.brief is None:
        step_at = partial(_step_at, limits=context.limits)
        return await _replay_pieces(
            recorded, context, step_at, lambda each: not isinstance(each, TAKEN + ASIDE), "step"
        )
    context = replace(context, record=Run.then)
    if searchable:
        return await _replay_synthesis(recorded, context)
    return await _replay_pieces(recorded, context, _stage_at, lambda event: not isinstance(event, ASIDE), "record")


Make = Callable[[Run, RunContext], AsyncIterator[Event]]
Piece = tuple[int, str, Make]  # the end of a step or a stage, its name, and what makes it again


async def _replay_pieces(
    recorded: Run,
    context: RunContext,
    piece_at: Callable[[Run, Run], Piece | None],
    counts: Callable[[Event], bool],
    called: str,
) -> Replay:
    """Replay a run piece by piece, each from the events recorded before it. Those that search or compare vectors without an
    index are taken from the record."""
    differences: list[str] = []
    answer: Answer | None = None
    place, taken, heard = 1, 0, RecordedReplies()
    while place < len(recorded.events):
        before = Run(recorded.id, recorded.events[:place])
        piece = piece_at(recorded, before)
        if piece is None:
            place += 1
            continue
        end, name, make = piece
        expected = [each for each in _in_force(recorded, place, end) if counts(each)]
        heard.left = _replies(recorded.events, place, end)
        try:
            bound = bind_record(context, recorded, expected, heard)
            made = [event async for event in make(before, bound) if counts(event)]
        except NoIndex:
            taken += 1
        except AssayError as error:
            differences.append(f"{called} {place} ({name.lower()}) could not be made again: {error}")
        else:
            differences += _compare(place, expected, made)
            answer = next((each.answer for each in made if isinstance(each, Answered)), answer)
        place = end
    return Replay(recorded, answer, tuple(differences), taken, heard.reworded, prompts=heard.rebuilt(recorded))


def _step_at(recorded: Run, before: Run, limits: Limits) -> Piece | None:
    place = len(before.events)
    event = recorded.events[place]
    step = None if isinstance(event, TAKEN + ASIDE) else _step_of(event) or next_step(before, limits)
    if step is None or _belongs_to_no_draft(recorded, before):
        return None
    if isinstance(event, Routed) and before.route:  # a look-up that found nothing, or not everything
        step = Step.REOPEN if before.draft else Step.SUFFICIENCY
    return place + _length(recorded, place, step), step.name, step.value


def _stage_at(recorded: Run, before: Run) -> Piece | None:
    from assay.synthesis.pipeline import next_stage

    place = len(before.events)
    events = recorded.events
    stage = next_stage(before) if not isinstance(events[place], (*ASIDE, Stopped)) else None
    if stage is None:
        return None
    end = place + 1
    while end < len(events) and next_stage(Run(recorded.id, events[:end])) is stage:
        if isinstance(events[end], Stopped):  # the time was used up amid the stage: the rest was not made
            break
        end += 1
    else:
        return end, stage.name, stage.value
    known = set(map(_canonical, events[place:end]))
    return end, stage.name, lambda run, context: _only(stage.value(run, context), known)


async def _only(events: AsyncIterator[Event], known: Set[str]) -> AsyncIterator[Event]:
    async for event in events:
        if _canonical(event) in known:
            yield event


def check_recorded(run: Run, document: Callable[[str], Document | None]) -> Replay:
    """Check a run that another version of the code decided: its recorded conclusions, and the faults that can be
    found without repeating any decision."""
    document = cache(document)
    answer, checked = run.answer, run.checked
    claims = (*answer.claims, *answer.near) if answer else ()
    quotes = {each.quote for each in run.evidence} | {claim.quote for claim in claims if claim.quote}
    readable = {quote: found for quote in quotes if (found := document(quote.doc_id)) is not None}
    faults = [
        f"“{quote.text}” is not in {found.title}" for quote, found in readable.items() if not stands(quote, found)
    ]
    known = {each.key for each in run.evidence}
    for claim in claims:
        if missing := [key for key in claim.cites if key not in known]:
            faults.append(f"“{claim.words}” cites {missing[0]}, which is no evidence of this run")
    supported = {claim for claim in checked.values() if claim.verdict is Verdict.supported}
    faults += [
        f"“{claim.words}” was not found to be supported"
        for claim in (answer.claims if answer else ())
        if claim not in supported
    ]
    return Replay(run, None if faults else answer, tuple(faults), as_recorded=True, checked=len(readable))


def _replies(events: Sequence[Event], place: int, end: int) -> list[ModelReplied]:
    """The model replies within these events and directly before them: those of one step. A reply that weighed passages may
    also judge the evidence, one step later."""
    first = place
    while first > 1 and isinstance(events[first - 1], ModelReplied | Failed | Resumed | Gathered):
        first -= 1
    return [event for event in events[first:end] if isinstance(event, ModelReplied)]


def _canonical(value: Any) -> str:
    return dumps(to_json(value))


async def _replay_synthesis(recorded: Run, context: RunContext) -> Replay:
    """Recompute a synthesis from its questions on, over the current documents, with the recorded replies."""
    from assay.synthesis import pipeline

    heard = RecordedReplies([event for event in recorded.events if isinstance(event, ModelReplied)])
    context = bind_record(context, recorded, recorded.events, heard)
    again = Run(recorded.id, recorded.events[:1])
    stop = next((place for place, each in enumerate(_in_order(recorded)) if isinstance(each, Stopped)), None)
    seconds = lambda: 0.0 if stop is not None and len(_in_order(again)) >= stop else context.limits.seconds  # noqa: E731
    limits = replace(context.limits, seconds_left=seconds)
    async for event in pipeline.carry_on(again, replace(context, limits=limits)):
        if isinstance(event, Answered):  # replies cost what they cost then
            event = Answered(replace(event.answer, usage=recorded.usage))
        again = again.then(event)
    before, after = (_in_order(run) for run in (recorded, again))
    differences = [
        f"record {place}: {type(one).__name__} came out differently"
        for place, (one, other) in enumerate(zip(before, after, strict=False))
        if _canonical(one) != _canonical(other)
    ]
    if len(before) != len(after):
        differences.append(f"{len(before)} events were recorded, and {len(after)} came out")
    return Replay(recorded, again.answer, tuple(differences), reworded=heard.reworded, prompts=heard.rebuilt(recorded))


def _in_order(run: Run) -> list[Event]:
    """The conclusions of a run. Claims are checked concurrently and recorded as their verdicts arrive; here they are
    sorted by position."""
    events = [event for event in run.events if not isinstance(event, ASIDE)]
    grouped = groupby(events, key=lambda event: isinstance(event, Checked))
    return [
        event
        for checked, group in grouped
        for event in (sorted(group, key=lambda each: getattr(each, "place", 0)) if checked else group)
    ]


def _step_of(event: Event) -> Step | None:
    if isinstance(event, Decided):
        return Step.RECALL if event.recalls else Step.HOP if event.hops else Step.SEEK if event.seeks else Step.DECIDE
    if isinstance(event, Revised) and event.cause is RevisionCause.recited:
        return Step.SEEK
    if isinstance(event, Revised) and event.cause is RevisionCause.review:
        return Step.EDIT
    if isinstance(event, Critiqued):
        return Step.CHECK if event.final else Step.REOPEN
    if isinstance(event, Planned) and event.by.startswith("route@"):
        return Step.ROUTE  # in the same reply
    if isinstance(event, Gathered):
        return Step.GATHER if event.evidence or event.dropped else Step.SIFT
    return STEP_OF.get(type(event))


def _length(recorded: Run, place: int, step: Step) -> int:
    """The number of events of the step, including replies."""
    if step is Step.DRAFT:
        return _end_of_draft(recorded.events, place) - place + 1
    kind = ENDS.get(step)
    if kind is None:
        return 1
    last = place
    for at in range(place, len(recorded.events)):
        event = recorded.events[at]
        if isinstance(event, kind) and _step_of(event) is step:
            last = at
            if step is Step.SUFFICIENCY:
                break
        elif not isinstance(event, (ModelReplied, StepAnswered, Routed)):
            break
    return last - place + 1


def _end_of_draft(events: Sequence[Event], place: int) -> int:
    """The first record from here on that is no part of writing a draft, other than the draft."""
    within = (Claimed, Checked, ModelReplied, Failed, Resumed)
    return next((at for at in range(place, len(events)) if not isinstance(events[at], within)), len(events) - 1)


def _belongs_to_no_draft(recorded: Run, before: Run) -> bool:
    """Whether this is the record of a draft that was never whole, since a document was withdrawn meanwhile."""
    events, place = recorded.events, len(before.events)
    writes = isinstance(events[place], Claimed) or (isinstance(events[place], Checked) and before.draft is None)
    return writes and not isinstance(events[_end_of_draft(events, place)], Drafted)


def _in_force(recorded: Run, place: int, end: int) -> list[Event]:
    """The records of a step. Of claims that were written twice, since a stream broke off, those of the draft."""
    events = recorded.events[place:end]
    if not isinstance(events[-1], Drafted):
        return list(events)
    claimed = compose.whole_claims(events[-1])
    verdicts = Run(recorded.id, recorded.events[:end]).checked_early
    return [
        each
        for at, each in enumerate(events)
        if not (isinstance(each, Claimed) and (each not in claimed or each in events[:at]))
        and not (isinstance(each, Checked) and (verdicts.get(each.place) != each.claim or each in events[:at]))
    ]


def _compare(place: int, expected: Sequence[Event], made: Sequence[Event]) -> list[str]:
    """Describe events that were recorded but not recomputed, and vice versa. The order is ignored, because
    concurrent work is recorded in any order."""
    left = [_canonical(event) for event in made]
    wrong: list[str] = []
    for event in expected:
        spelled = _canonical(event)
        if spelled in left:
            left.remove(spelled)
        else:
            wrong.append(f"record {place}: {type(event).__name__} came out differently")
    return wrong or ([f"record {place}: more came out than was recorded"] if left else [])


def save(run: Run, document: Callable[[str], Document | None], root: Path | None = None) -> str:
    """Serialise a run and the documents it found as JSON lines: all that a replay needs. Paths under `root` are
    stored relative to it."""
    found = [document(doc) for doc in dict.fromkeys(each.passage.doc_id for each in run.found)]
    lines: list[dict[str, Any]] = [{"run": run.id}]
    lines += [{"document": to_json(each)} for each in found if each is not None]
    lines += [{"event": type(event).__name__, **to_json(event)} for event in run.events]
    text = "".join(dumps(line) + "\n" for line in lines)
    return text.replace(f"{root}/", "") if root else text


def load(text: str) -> tuple[Run, RunContext]:
    """The run and a context to replay it with, from the output of `save`. The context has no index and no model."""
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not lines or "run" not in lines[0]:
        raise UserError("This is no saved run: its first line does not name one.")
    documents = {(found := from_json(Document, line["document"])).id: found for line in lines[1:] if "document" in line}
    events = tuple(read_event(line.pop("event"), line) for line in lines[1:] if "event" in line)
    run = Run(lines[0]["run"], events)
    return run, replace(_offline_context(documents), limits=Limits(rounds=ROUNDS[run.asked.mode]))


def _offline_context(documents: Mapping[str, Document]) -> RunContext:
    nowhere: Any = NoSearch()  # steps that need a search are not recomputed

    def titled(ids: Iterable[str]) -> dict[str, str]:
        known = (documents[each] for each in ids if each in documents)
        return {each.id: identified_title(each.title, each.uri, each.meta) for each in known}

    return RunContext(
        tool_context=ToolContext(nowhere, lambda: Scope("nobody", (), frozenset())),
        record=Run.then,
        document=documents.get,
        titled=titled,
    )


@dataclass(frozen=True, slots=True)
class RebuiltPrompt:
    """What a model was asked, word for word, made again from the events before record `place`. Its digest is the recorded
    one; `prompt` is None if no prompt with that digest came out."""

    place: int
    reply: ModelReplied
    prompt: Prompt | None


def bind_record(context: RunContext, recorded: Run, expected: Sequence[Event], heard: RecordedReplies) -> RunContext:
    """The context with the record in place of models and reviewers. Unreadable files are taken from the record too."""
    held = next((each for each in reversed(recorded.events) if isinstance(each, AwaitingReview)), None)
    own = next((each for each in expected if isinstance(each, AwaitingReview)), None)
    given = recorded.answer or (held.answer if held else None)
    if given is not None:
        unread = given.unread
        context = replace(context, unreadable=lambda: unread)
    reasons, four_eyes = (own.reasons, own.four_eyes) if own else ((), False)
    shown = {
        (each.document, each.page, each.box): each for reply in recorded.consulted.values() for each in reply.pictures
    }
    context = replace(
        context,
        shown_before=shown,
        current=lambda run: run,
        oversees=lambda run, answer: reasons,
        cleared=lambda seal: own is None,
        four_eyes=four_eyes,
    )
    if not recorded.asked.has_model:
        return context
    models: dict[Role, tuple[ConnectedModel, ...]] = {}
    for role_model in recorded.asked.seats:
        role = Role(role_model.role)
        models[role] = (*models.get(role, ()), ConnectedModel(_RecordedModel(role_model.role, heard), role_model))
    known = recorded.consulted

    def recorded_reply(request: str) -> ModelReplied | None:
        found = known.get(request)
        if found is not None and found in heard.left:
            heard.left.remove(found)
        return found

    meter = _ReplayMeter(models, lambda _: None, recorded_reply, _NoBudget(refusal(expected)), made=heard.made)
    return replace(context, meter=meter)


@dataclass
class RecordedReplies:
    """The replies of a step that have not been used yet, and how many were given to a reworded prompt."""

    left: list[ModelReplied] = field(default_factory=list)
    given: set[str] = field(default_factory=set)  # requests whose reply was given to a reworded prompt
    made: dict[str, Prompt] = field(default_factory=dict)  # the prompts that came out, by the digest of their request

    @property
    def reworded(self) -> int:
        return len(self.given)

    def rebuilt(self, recorded: Run) -> tuple[RebuiltPrompt, ...]:
        return tuple(
            RebuiltPrompt(place, event, self.made.get(event.request))
            for place, event in enumerate(recorded.events)
            if isinstance(event, ModelReplied)
        )


@dataclass(eq=False)
class _ReplayMeter(Meter):
    """A meter that keeps the prompts that it is asked with."""

    made: dict[str, Prompt] = field(default_factory=dict)

    async def consult(
        self,
        connected: ConnectedModel,
        role: Role,
        name: str,
        prompt: Prompt,
        documents: tuple[str, ...] = (),
        tokens: int = 0,
        heard: Heard | None = None,
    ) -> ModelReplied | NoReply:
        self.made[request_digest(role, name, prompt)] = prompt.without_pixels
        return await super().consult(connected, role, name, prompt, documents, tokens, heard)


@dataclass(frozen=True, slots=True)
class _RecordedModel:
    """A model that only returns recorded replies. If a prompt reads differently today, the step's recorded replies
    are returned in order, and counted in `reworded`."""

    role: str
    heard: RecordedReplies
    name: str = "the record"

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        own = next((each for each in self.heard.left if each.role == self.role), None)
        if own is None:
            raise ModelError("the reply is not in the record")
        self.heard.left.remove(own)
        self.heard.given.add(own.request)
        calls = tuple(ToolCall(call.id, call.tool, call.arguments) for call in own.calls)
        return Reply(own.text, calls, own.finish, own.usage)


@dataclass(frozen=True, slots=True)
class _NoBudget(Ledger):
    """A budget that allows nothing. If a reply is missing from the record, the run had none, for the recorded
    reason."""

    refusal: NoReply | None

    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        return self.refusal or SpendingReservation(0, seconds)


def refusal(expected: Sequence[Event]) -> NoReply | None:
    """Why a reply may be missing in this step, according to its events. An unusable reply is itself in the record,
    so any other reason takes precedence."""
    found = [(why, getattr(event, "why", "")) for event in expected for why in fallbacks(event)]
    for why, detail in sorted(found, key=lambda each: each[0] is Fallback.unusable):
        return NoReply(why, detail)
    by_rule = any(getattr(event, "by", "") == RULES for event in expected)
    return NoReply(Fallback.tokens, "") if by_rule else None
