"""The naive design, to compare with: whatever a search returns is weighed, one passage a request, at every round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowing import Knowing
from labelled import Case, Cost, Setting, asked, costed

from assay.agent.context import RunContext
from assay.agent.loop import Step, play
from assay.agent.steps import call
from assay.agent.steps.gather import gather_by_model
from assay.answer.weigh import BatchLimits
from assay.core.events import Decided, Found, Gathered, Mode, Stopped, StopReason, ToolRan
from assay.core.run import Run
from assay.core.types import Usage

ALONE = BatchLimits(together=1, alone=1)


async def naive(setting: Setting, case: Case, width: int, hopping: bool, mode: Mode = Mode.balanced) -> Cost:
    """The same loop, but whatever a search returns is weighed, whether it was weighed before or not."""
    model = Knowing(case.question, case.gold)
    context = setting.context(model, mode, ALONE)
    run = await done(Step.PLAN, await done(Step.ROUTE, asked(case, model, mode), context), context)
    while not (run.satisfied or run.nothing_left or context.limits.reached(run) or context.limits.barren(run)):
        before = len(run.events)
        run = narrowed(await done(Step.DECIDE, run, context), before, width)
        if run.calls_waiting:
            run = await done(Step.CALL, run, context)
        if hopping and call.hop_due(run):
            begun = len(run.events)
            run = narrowed(await done(Step.HOP, run, context), begun, width)
            run = await done(Step.CALL, run, context) if run.calls_waiting else run
        results = [event for event in run.events[before:] if isinstance(event, ToolRan)]
        unique = {found.passage.id: found for result in results for found in result.found}
        run = await weighed(run, context, setting, model, tuple(unique.values()))
        if run.round_unjudged:
            run = await done(Step.SUFFICIENCY, run, context)
    run = await play(run.then(Stopped(StopReason.sufficient)), context)
    assert run.delivered, run.events[-1]
    return costed(case, model, [each.passage.doc_id for each in run.evidence])


async def done(step: Step, run: Run, context: RunContext) -> Run:
    async for event in step.value(run, context):
        run = run.then(event)
    return run


def narrowed(run: Run, since: int, width: int) -> Run:
    """The same, with searches that return this much at most."""
    events = list(run.events)
    for place in range(since, len(events)):
        event = events[place]
        if isinstance(event, Decided):
            calls = [replace(each, arguments={**each.arguments, "k": width}) for each in event.calls]
            events[place] = replace(event, calls=tuple(calls))
    return replace(run, events=tuple(events))


async def weighed(run: Run, context: RunContext, setting: Setting, model: Knowing, found: Sequence[Found]) -> Run:
    """What the model says of these passages, each paid for anew. It would say the same again, so that is looked up."""
    before = tuple(event for event in run.events if not isinstance(event, ToolRan | Gathered))
    for each in found:
        if each.passage.id not in setting.weights:
            asked = model.spent
            events = tuple(
                [event async for event in gather_by_model(Run(run.id, (*before, ToolRan("c", (each,)))), context)]
            )
            spent = Usage(1, model.spent.tokens_in - asked.tokens_in, model.spent.tokens_out - asked.tokens_out)
            setting.weights[each.passage.id] = (spent, events)
        else:
            model.recall(each.passage.text)
            model.spent += setting.weights[each.passage.id][0]
        for event in setting.weights[each.passage.id][1]:
            run = run.then(event)
    return run
