"""What each step does: it yields events and changes nothing else. A run with a model and a run without go the same way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from typing import TypeVar

from pydantic import BaseModel

from assay.agent import prompt_window
from assay.agent.context import RunContext, mark
from assay.agent.hops import Hops
from assay.agent.steps import by_rule, writing
from assay.agent.steps.decide import decide as decide_by_model
from assay.agent.steps.gather import gather as gather_by_model
from assay.agent.steps.plan import plan
from assay.agent.steps.recall import TOOL, brought_up, recall
from assay.agent.steps.rephrase import rephrase
from assay.agent.steps.route import reading_due, route
from assay.agent.steps.sift import hop, sift
from assay.agent.steps.sufficiency import critique
from assay.agent.steps.sufficiency import judge as judge_by_model
from assay.agent.tool import Tool
from assay.agent.toolbox import TOOLS
from assay.core.errors import ToolError
from assay.core.events import (
    ANSWER_NOW,
    EACH,
    GO_ON,
    MORE_SOURCES,
    OTHER_WORDS,
    RULES,
    Call,
    Checkpoint,
    Decided,
    Event,
    Gathered,
    Mode,
    Paused,
    Stopped,
    StopReason,
    ToolRan,
)
from assay.core.run import Run
from assay.index.search_filter import filter_for
from assay.models.llm import Role
from assay.models.meter import NoReply

T = TypeVar("T", bound=BaseModel)

HOPS: Mapping[Mode, Hops] = {
    Mode.quick: Hops(limit=6, rounds=(5,)),
    Mode.balanced: Hops(),
    Mode.thorough: Hops(limit=24, rounds=(7, 4, 4, 4, 4)),
}


INNER: Mapping[str, Tool] = {**TOOLS, TOOL: brought_up}  # what the rules may use; a model is never offered the last one


class Step(Enum):
    REPHRASE = auto()
    ROUTE = auto()
    RECALL = auto()
    PLAN = auto()
    DECIDE = auto()
    CALL = auto()
    HOP = auto()
    SIFT = auto()
    GATHER = auto()
    JUDGE = auto()
    COMPACT = auto()
    STOP = auto()
    PAUSE = auto()
    DRAFT = auto()
    CHECK = auto()
    SEEK = auto()
    REVISE = auto()
    CRITIQUE = auto()
    EDIT = auto()
    DELIVER = auto()


Doing = Callable[[Run, RunContext], AsyncIterator[Event]]


def _either(by_model: Doing, by_rules: Doing) -> Doing:
    def doing(run: Run, context: RunContext) -> AsyncIterator[Event]:
        return by_model(run, context) if run.asked.has_model else by_rules(run, context)

    return doing


async def call(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Make the calls that are waiting, side by side. What a tool refuses is a result too."""

    async def consult(
        name: str, kind: type[T], build_prompt: Callable[[int], Mapping[str, str]], documents: Sequence[str]
    ) -> T | None:
        reply = await context.ask(Role.judge, name, kind, build_prompt, documents=sorted(documents), max_tokens=500)
        return None if isinstance(reply, NoReply) else reply[0]

    before = _as_decided(run)
    tool_context = replace(
        context.tool_context,
        where=filter_for(run.where),
        found=before.found,
        evidence=before.evidence,
        today=run.asked.today,
        mark=mark(run),
        consult=consult if run.asked.has_model else None,
    )

    # What the rules decided on may use any tool; what a model wants, only those it was given.
    ours = {call.id for event in run.events if isinstance(event, Decided) and event.by == RULES for call in event.calls}

    async def made(one: Call) -> ToolRan:
        tool = context.tools.get(one.tool) or (INNER.get(one.tool) if one.id in ours else None)
        try:
            if tool is None:
                raise ToolError(f"There is no tool called {one.tool!r}. There are: {', '.join(sorted(context.tools))}.")
            result = await tool(tool_context, one.arguments)
            return ToolRan(one.id, result.found, result.note, documents=result.documents, left=result.left)
        except ToolError as error:
            return ToolRan(one.id, (), error=str(error))

    for ran in await asyncio.gather(*(made(one) for one in run.calls_waiting)):
        yield ran


def _as_decided(run: Run) -> Run:
    """The run as it was when its last calls were decided on. They are made side by side and see nothing of each other, also
    when only some of them are made again."""
    places = (place for place in range(len(run.events) - 1, -1, -1) if isinstance(run.events[place], Decided))
    return Run(run.id, run.events[: next(places) + 1])


async def compact(run: Run, context: RunContext) -> AsyncIterator[Event]:
    told = prompt_window.due(run, context.limits.room)
    assert told is not None
    yield told


async def stop(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The search ends, and why is an event."""
    judged = run.judged
    if run.chose(Checkpoint.searches, ANSWER_NOW) or run.chose(Checkpoint.nothing, ANSWER_NOW):
        yield Stopped(StopReason.person, "the person asked for an answer now")
    elif cut := _cut_short(run):
        yield cut
    elif run.satisfied and judged is not None:
        exhausted = run.every and not (run.examined and run.examined.left)
        yield Stopped(StopReason.exhausted if exhausted else StopReason.sufficient, judged.why)
    elif limit := context.limits.reached(run):
        yield limit
    elif context.limits.barren(run) and not run.nothing_left:
        yield Stopped(StopReason.nothing_new, "two rounds brought nothing new")
    else:
        yield Stopped(_reason(run), run.nothing_left)


def _cut_short(run: Run) -> Stopped | None:
    """The limit that kept a model from weighing all that was found, if one did: enough of half is not enough."""
    for event in run.current:
        if isinstance(event, Gathered) and event.fallback:
            left = "not everything that was found could be weighed"
            return Stopped(StopReason(event.fallback[0].value), f"{event.why}; {left}" if event.why else left)
    return None


def _reason(run: Run) -> StopReason:
    """Why nothing was left to try, as the last decision says."""
    decided = next(event for event in reversed(run.current) if isinstance(event, Decided) and event.is_round)
    return decided.stop or StopReason.nothing_new


PAUSES: Mapping[Checkpoint, tuple[str, tuple[str, ...]]] = {
    Checkpoint.searches: ("Three searches were made. Go on, or answer from what there is?", (GO_ON, ANSWER_NOW)),
    Checkpoint.nothing: (
        "Nothing relevant was found. Try other words, or have the gap said?",
        (OTHER_WORDS, ANSWER_NOW),
    ),
    Checkpoint.sources: ("These are the sources. Answer from them, or look for more?", (ANSWER_NOW, MORE_SOURCES)),
}


def pause_due(run: Run) -> Checkpoint | None:
    """Where the person wants to be asked, if that is here. Each checkpoint stops a run once."""
    wanted = frozenset(run.asked.checkpoints) - run.pauses
    if run.plan is None:
        return Checkpoint.reading if reading_due(run) else None
    if run.stopped is None:
        if Checkpoint.searches in wanted and len(run.results) >= 3 and not run.round_unjudged:
            return Checkpoint.searches
    elif run.draft is None:
        if Checkpoint.nothing in wanted and not run.evidence:
            return Checkpoint.nothing
        if Checkpoint.sources in wanted and run.evidence:
            return Checkpoint.sources
    return None


async def pause(run: Run, context: RunContext) -> AsyncIterator[Event]:
    at = pause_due(run)
    assert at is not None
    if at is Checkpoint.reading:
        yield Paused(at, "The question can be read in several ways. Which is meant?", (*run.readings, EACH))
    else:
        yield Paused(at, *PAUSES[at])


STEPS: Mapping[Step, Doing] = {
    Step.REPHRASE: rephrase,
    Step.ROUTE: route,
    Step.RECALL: recall,
    Step.PLAN: plan,
    Step.DECIDE: _either(decide_by_model, by_rule.decide),
    Step.CALL: call,
    Step.HOP: hop,
    Step.SIFT: sift,
    Step.GATHER: _either(gather_by_model, by_rule.gather),
    Step.JUDGE: _either(judge_by_model, by_rule.judge),
    Step.COMPACT: compact,
    Step.STOP: stop,
    Step.PAUSE: pause,
    Step.DRAFT: writing.draft,
    Step.CHECK: writing.check,
    Step.SEEK: writing.seek,
    Step.REVISE: writing.revise,
    Step.CRITIQUE: critique,
    Step.EDIT: writing.edit,
    Step.DELIVER: writing.deliver,
}
