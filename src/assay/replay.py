"""A run gone through again from its record, with no model, no search and no network: what it concluded must follow from it.

Replies, tool results, limits reached and people's choices are taken as they were recorded. Everything that was made of them
is made again and held against the record: each step, each verdict, the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from assay.access import Scope
from assay.agent.kit import Kit
from assay.agent.limits import ROUNDS, Limits
from assay.agent.steps import STEPS, Step
from assay.agent.tool import Desk
from assay.agent.writing import RECITED
from assay.codec import dumps, from_json, to_json
from assay.errors import AssayError, ModelError, UserError
from assay.events import (
    KINDS,
    Answered,
    Bound,
    Checked,
    Compacted,
    Consulted,
    Critiqued,
    Decided,
    Drafted,
    Event,
    Failed,
    Gathered,
    Judged,
    Planned,
    Rephrased,
    Resumed,
    Revised,
    Route,
    Routed,
)
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import FreeBook, Meter, Seated, Why
from assay.run import Run
from assay.stages import fell_back
from assay.types import Answer, Document, Usage

CONCLUDED = (
    Rephrased,
    Routed,
    Planned,
    Decided,
    Gathered,
    Judged,
    Bound,
    Compacted,
    Drafted,
    Checked,
    Revised,
    Critiqued,
    Answered,
)
STEP_OF: Mapping[type, Step] = {
    Rephrased: Step.REPHRASE,
    Routed: Step.ROUTE,
    Planned: Step.PLAN,
    Judged: Step.JUDGE,
    Bound: Step.JUDGE,
    Compacted: Step.COMPACT,
    Drafted: Step.DRAFT,
    Checked: Step.CHECK,
    Revised: Step.REVISE,
    Critiqued: Step.CRITIQUE,
    Answered: Step.DELIVER,
}
ASIDE = (Consulted, Failed, Resumed)  # how a run got on, not what it came to
ENDS = {
    Step.GATHER: Gathered,
    Step.CHECK: Checked,
    Step.SEEK: (Revised, Decided),
    Step.REVISE: Revised,
    Step.JUDGE: Judged,
}


@dataclass(frozen=True, slots=True)
class Replayed:
    """The run as recorded, the answer that was made again, and where that differs from what was recorded."""

    run: Run
    answer: Answer | None
    differences: tuple[str, ...] = ()


async def replay(recorded: Run, kit: Kit, *, searchable: bool = True) -> Replayed:
    """Go through a run again. Without an index (`searchable`), steps that compare vectors are taken as recorded."""
    if recorded.asked.brief is not None:
        if not searchable:
            raise UserError("A synthesis is gone through again only where its documents are indexed.")
        return await _synthesised_again(recorded, kit)
    differences: list[str] = []
    answer: Answer | None = None
    place = 1
    while place < len(recorded.events):
        event = recorded.events[place]
        if not isinstance(event, CONCLUDED):
            place += 1
            continue
        before = Run(recorded.id, recorded.events[:place])
        step = _step_of(event) if not (isinstance(event, Routed) and before.route) else Step.JUDGE  # routed anew
        count = _length(recorded, place, step)
        if not searchable and _needs_index(step, event, before):
            place += count
            continue
        expected = [each for each in recorded.events[place : place + count] if isinstance(each, CONCLUDED)]
        made = await _again(step, before, _bound(kit, recorded, expected), place, differences)
        if made is not None:
            differences += _compared(place, expected, made)
            answer = next((each.answer for each in made if isinstance(each, Answered)), answer)
        place += count
    return Replayed(recorded, answer, tuple(differences))


async def _synthesised_again(recorded: Run, kit: Kit) -> Replayed:
    """A synthesis made again from its questions on, over the documents as they are now, with the replies it had then."""
    from assay.synthesis import pipeline

    kit = replace(_bound(kit, recorded, recorded.events), record=Run.then)
    again = Run(recorded.id, recorded.events[:1])
    async for event in pipeline.carry_on(again, kit):
        if isinstance(event, Answered):  # replies cost what they cost then
            event = Answered(replace(event.answer, usage=recorded.usage))
        again = again.then(event)
    before, after = (_in_order(run) for run in (recorded, again))
    differences = [
        f"record {place}: {type(one).__name__} came out differently"
        for place, (one, other) in enumerate(zip(before, after, strict=False))
        if dumps(to_json(one)) != dumps(to_json(other))
    ]
    if len(before) != len(after):
        differences.append(f"{len(before)} events were recorded, and {len(after)} came out")
    return Replayed(recorded, again.answer, tuple(differences))


def _in_order(run: Run) -> list[Event]:
    """What a run came to. Claims are checked side by side, and seen as their verdicts come: here they stand by place."""
    told = [event for event in run.events if not isinstance(event, ASIDE)]
    grouped = groupby(told, key=lambda event: isinstance(event, Checked))
    return [
        event
        for checked, group in grouped
        for event in (sorted(group, key=lambda each: getattr(each, "place", 0)) if checked else group)
    ]


def _step_of(event: Event) -> Step:
    if isinstance(event, Decided):
        return Step.RECALL if event.recalls else Step.HOP if event.hops else Step.SEEK if event.seeks else Step.DECIDE
    if isinstance(event, Revised) and event.why.startswith(RECITED):
        return Step.SEEK
    if isinstance(event, Gathered):
        return Step.GATHER if event.evidence or event.dropped else Step.SIFT
    return STEP_OF[type(event)]


def _length(recorded: Run, place: int, step: Step) -> int:
    """How many events the step took up, replies among them."""
    kind = ENDS.get(step)
    if kind is None:
        return 1
    last = place
    for at in range(place, len(recorded.events)):
        event = recorded.events[at]
        if isinstance(event, kind) and _step_of(event) is step:
            last = at
            if step is Step.JUDGE:
                break
        elif not isinstance(event, (Consulted, Bound, Routed)):
            break
    return last - place + 1


def _needs_index(step: Step, event: Event, before: Run) -> bool:
    """Whether a step looks at vectors, or into the index."""
    if step in (Step.HOP, Step.SIFT):
        return True
    if isinstance(event, Routed):
        return event.route is Route.direct or event.why.startswith("the documents speak of")
    by_rule = not before.asked.has_model or (isinstance(event, Drafted) and event.by.startswith("rules"))
    return by_rule and step in (Step.DECIDE, Step.GATHER, Step.DRAFT) and bool(before.found)


async def _again(step: Step, before: Run, kit: Kit, place: int, differences: list[str]) -> list[Event] | None:
    try:
        return [event async for event in STEPS[step](before, kit) if isinstance(event, CONCLUDED)]
    except AssayError as error:
        differences.append(f"step {place} ({step.name.lower()}) could not be made again: {error}")
        return None


def _compared(place: int, expected: Sequence[Event], made: Sequence[Event]) -> list[str]:
    """What was recorded and not made again, and the other way round, in words. Side by side work comes in any order."""
    left = [dumps(to_json(event)) for event in made]
    wrong: list[str] = []
    for event in expected:
        spelled = dumps(to_json(event))
        if spelled in left:
            left.remove(spelled)
        else:
            wrong.append(f"record {place}: {type(event).__name__} came out differently")
    return wrong or ([f"record {place}: more came out than was recorded"] if left else [])


def _bound(kit: Kit, recorded: Run, expected: Sequence[Event]) -> Kit:
    """The kit with the record in the place of models; which files could not be read was a fact of that day."""
    if recorded.answer is not None:
        unread = recorded.answer.unread
        kit = replace(kit, unreadable=lambda: unread)
    if not recorded.asked.has_model:
        return kit
    absent = _Absent()
    seats: dict[Role, tuple[Seated, ...]] = {}
    for seat in recorded.asked.seats:
        role = Role(seat.role)
        seats[role] = (*seats.get(role, ()), Seated(absent, seat))
    known = recorded.consulted
    meter = Meter(seats, lambda _: None, known.get, _Closed(_refusal(expected)))
    return replace(kit, meter=meter)


class _Absent:
    """No model: what is not in the record cannot be asked."""

    name = "the record"

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        raise ModelError("the reply is not in the record")


@dataclass(frozen=True, slots=True)
class _Closed:
    """A purse that pays for nothing. Where a reply is missing from the record the run had none, for the reason it gave."""

    why: Why | None

    def reserve(self, role: Role, model: str, tokens: int, max_tokens: int) -> int | Why:
        return self.why or FreeBook().reserve(role, model, tokens, max_tokens)

    def settle(self, id: int, model: str, usage: Usage) -> Usage:
        return usage

    def release(self, id: int) -> None:
        return None


def _refusal(expected: Sequence[Event]) -> Why | None:
    """Why a reply may be missing in this step, as its events tell."""
    if named := [why for event in expected for why in fell_back(event) if why in set(Why) - {Why.unusable}]:
        return Why(named[0])  # an unusable reply is in the record itself
    by_rule = [event for event in expected if getattr(event, "by", "").startswith("rules")]
    told = " ".join(f"{getattr(event, 'by', '')} {getattr(event, 'why', '')}" for event in by_rule)
    found = re.search(rf"\b({'|'.join(Why)})\b", told)
    return Why(found[1]) if found else Why.tokens if by_rule else None


# --- runs as files --------------------------------------------------------------------------------------------------


def save(run: Run, document: Callable[[str], Document | None], root: Path | None = None) -> str:
    """A run with the documents that it found, as lines of JSON: all that a replay needs. Files under `root` are named by
    their place below it."""
    found = [document(doc) for doc in dict.fromkeys(each.passage.doc_id for each in run.found)]
    lines: list[dict[str, Any]] = [{"run": run.id}]
    lines += [{"document": to_json(each)} for each in found if each is not None]
    lines += [{"event": type(event).__name__, **to_json(event)} for event in run.events]
    text = "".join(dumps(line) + "\n" for line in lines)
    return text.replace(f"{root}/", "") if root else text


def load(text: str) -> tuple[Run, Kit]:
    """The run and a kit to go through it with, from what `save` wrote. There is no index in it, and no model."""
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    if not lines or "run" not in lines[0]:
        raise UserError("This is no saved run: its first line does not name one.")
    documents = {(found := from_json(Document, line["document"])).id: found for line in lines[1:] if "document" in line}
    events = tuple(_event(line) for line in lines[1:] if "event" in line)
    run = Run(lines[0]["run"], events)
    return run, replace(_kit(documents), limits=Limits(rounds=ROUNDS[run.asked.mode]))


def _event(line: dict[str, Any]) -> Event:
    kind = KINDS[line.pop("event")]
    return from_json(kind, line)


def _kit(documents: Mapping[str, Document]) -> Kit:
    nowhere: Any = None  # a desk without a shelf: nothing that needs one is made again
    return Kit(
        desk=Desk(nowhere, lambda: Scope("nobody", (), frozenset())),
        record=Run.then,
        document=documents.get,
        titled=lambda ids: {doc: documents[doc].title for doc in ids if doc in documents},
    )
