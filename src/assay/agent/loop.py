"""The run loop: read the events so far, name the next step (pure), run it, and persist each event before publishing it.
A step only yields events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from enum import Enum, member

from assay.agent.context import Limits, Log, RunContext
from assay.agent.prompt_window import compaction_due
from assay.agent.steps.call import call, hop, hop_due
from assay.agent.steps.check import check, deliver, edit, judgement_due, revise
from assay.agent.steps.decide import compact, decide, found_since_draft, reopen_due, seek
from assay.agent.steps.draft import draft, fallback_due, without_source
from assay.agent.steps.gather import gather, sift, sift_due
from assay.agent.steps.plan import plan, replan_due
from assay.agent.steps.route import pause, pause_due, route, route_due
from assay.agent.steps.sufficiency import reopen, stop, sufficiency
from assay.agent.steps.turn import recall, recall_due, rephrase, summarise, summary_due
from assay.core.errors import ModelError, Stalled
from assay.core.events import ANSWER_NOW, Checkpoint, Event, Failed, ModelReplied, Resumed, Revised, Route, StopReason
from assay.core.run import Run

NO_SEARCH = frozenset({Route.direct, Route.rework})


class Step(Enum):
    """The steps of a run; the value of each is what it does."""

    SUMMARISE = member(summarise)
    REPHRASE = member(rephrase)
    ROUTE = member(route)
    RECALL = member(recall)
    PLAN = member(plan)
    DECIDE = member(decide)
    CALL = member(call)
    HOP = member(hop)
    SIFT = member(sift)
    GATHER = member(gather)
    SUFFICIENCY = member(sufficiency)
    COMPACT = member(compact)
    STOP = member(stop)
    PAUSE = member(pause)
    DRAFT = member(draft)
    CHECK = member(check)
    SEEK = member(seek)
    REVISE = member(revise)
    REOPEN = member(reopen)
    EDIT = member(edit)
    DELIVER = member(deliver)


def carry_on(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Advance a run until it is delivered, waits for a person, or fails on an endpoint; a failed run can be resumed."""
    return run_steps(run, context, lambda now: next_step(now, context.limits))


async def run_steps(
    run: Run, context: RunContext, after: Callable[[Run], Enum | None], late: Callable[[Run], bool] = lambda run: False
) -> AsyncIterator[Event]:
    """The loop shared by all kinds of runs. `after` names the next step, or returns None when the run is done; `late` ends a
    step that has more to do. A step that records nothing would be named for ever: then the run fails."""
    log = Log(run, context.record, context.flushed)
    if (meter := context.meter) is not None:
        # A reply that this run has not recorded may be recorded by the synthesis it is part of.
        known = lambda request: log.recorded_reply(request) or meter.recorded_reply(request)  # noqa: E731
        context = replace(
            context,
            meter=replace(
                meter, record=log.add, recorded_reply=known, restoring=lambda: log.restoring(meter.restoring)
            ),
        )
    try:
        while (step := after(log.run)) is not None:
            if (now := context.current(log.run)) is not log.run:  # access was withdrawn: drop what relied on it
                log.narrow(now)
                context.forget()
                for each in await log.unseen():
                    yield each
                continue
            before = log.run
            async with aclosing(step.value(before, context)) as events:
                async for event in events:
                    log.add(event)
                    for each in await log.unseen():
                        yield each
                    if late(log.run):
                        break
            if log.run is before:
                raise Stalled(f"The step “{step.name.lower()}” recorded nothing, so that the run cannot go on.")
    except (ModelError, Stalled) as error:
        log.add(Failed(type(error).__name__, str(error)))
        for each in await log.unseen():
            yield each


async def play(run: Run, context: RunContext) -> Run:
    """Advance a run as far as it goes and return it."""
    async for event in carry_on(run, context):
        run = run.then(event)
    return run


def next_step(run: Run, limits: Limits) -> Step | None:
    if run.delivered or run.waiting or run.failed or run.held or run.rejected:
        return None
    if run.rephrased is None and summary_due(run):
        return Step.SUMMARISE  # older turns of a long conversation
    if run.asked.history and run.rephrased is None:
        return Step.REPHRASE  # resolve a follow-up question before anything else uses it
    if route_due(run):
        return Step.ROUTE
    if run.calls_waiting:
        return Step.CALL
    if recall_due(run):
        return Step.RECALL  # recall results of earlier turns before searching
    if run.route is Route.rework and run.draft is not None and without_source(run):
        return Step.REPHRASE  # the last answer's passages do not give it: a question to the documents after all
    if run.asked.has_model and run.route is not Route.rework and hop_due(run):
        return Step.HOP  # follow names in the results by rule, without a model call
    if run.unweighed and not first_search_due(run):
        sifts = run.asked.has_model and run.route is not Route.rework and sift_due(run)
        return Step.SIFT if sifts else Step.GATHER  # new hits only, once each
    if run.route not in NO_SEARCH and run.stopped is None:
        return next_search_step(run, limits)
    if run.draft is None:
        return Step.PAUSE if pause_due(run) else Step.DRAFT  # from the evidence alone
    if pause_due(run):
        return Step.PAUSE
    if run.edits_due:
        return Step.EDIT  # a reviewer's text replaces the draft's and is checked the same way
    if run.unsupported and last_was_revision(run):
        return Step.REVISE  # all of them before any is checked again
    if run.unchecked or judgement_due(run):
        return Step.CHECK  # each claim, and the claims as an answer
    if not run.gated and reopen_due(run, limits) and (not run.sought or found_since_draft(run)):
        return Step.REOPEN if run.sought else Step.SEEK  # once, and only if what is missing brings something to write
    if run.unsupported:
        # One search for support per draft, if the judge says what to search for.
        return Step.SEEK if support_search_allowed(run, limits) else Step.REVISE
    if run.gated:
        return Step.DELIVER  # after a review, only reviewers change the answer
    if fallback_due(run):
        return Step.DRAFT  # the model's draft failed its checks: fall back to quotations
    return Step.DELIVER


def last_was_revision(run: Run) -> bool:
    """Whether the last event was the revision of a claim."""
    done = (event for event in reversed(run.events) if not isinstance(event, ModelReplied | Failed | Resumed))
    return isinstance(next(done), Revised)


def support_search_allowed(run: Run, limits: Limits) -> bool:
    """Whether support is searched for: once per draft, if the judge names something and the run is within its limits.
    It does not count as a round."""
    reached = limits.reached(run)
    asked = run.judgement is not None and bool(run.judgement.gap)
    return asked and not run.sought and (reached is None or reached.reason is StopReason.rounds)


def first_search_due(run: Run) -> bool:
    """Whether what earlier turns found still waits for the first search, to be weighed with it."""
    searches = run.asked.has_model and run.route not in NO_SEARCH and run.stopped is None
    return searches and not run.rounds and not run.nothing_left


def next_search_step(run: Run, limits: Limits) -> Step:
    if run.plan is None:
        return Step.PAUSE if pause_due(run) else Step.PLAN  # ask for the intended meaning where that is required
    if run.round_unjudged and not first_search_due(run):
        return Step.SUFFICIENCY  # enough? what is missing? what did each step find?
    if run.nothing_left or run.satisfied or limits.reached(run) or limits.barren(run):
        return Step.STOP  # the reason is an event
    if run.chose(Checkpoint.searches, ANSWER_NOW):
        return Step.STOP
    if pause_due(run):
        return Step.PAUSE
    if run.asked.has_model and replan_due(run):
        return Step.PLAN
    if run.asked.has_model and compaction_due(run, limits.room):
        return Step.COMPACT
    return Step.DECIDE
