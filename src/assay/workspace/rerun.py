"""Reruns: replay a run from its record, or branch from one of its steps, possibly with another model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from assay.core.errors import AssayError, UserError
from assay.core.events import (
    Answered,
    Asked,
    AwaitingReview,
    Branch,
    Checked,
    Event,
    Failed,
    Gathered,
    Judged,
    ModelReplied,
    Narrowed,
    Resumed,
    Reviewed,
    Revised,
    Routed,
    Stakes,
    StepAnswered,
    Withheld,
)
from assay.core.run import Run
from assay.governance.replay import NoSearch, Replay, replay
from assay.governance.reviewing import any_review
from assay.models.factory import NO_MODEL, has_model, remote_hosts
from assay.store.runs import records, reviews
from assay.workspace import model_roles
from assay.workspace.ask import continue_run, record, run_context_for
from assay.workspace.context import WorkspaceContext
from assay.workspace.types import Steps

WITHIN_STEP = (ModelReplied, Failed, Resumed)  # recorded while a step is under way
REPEATED: tuple[tuple[type, ...], ...] = (  # one step may record several events of these types
    (Checked,),
    (Revised,),
    (Gathered,),
    (StepAnswered, Judged, Routed),
)
NOT_COPIED = (Withheld, Narrowed)  # withheld from this person


async def replay_run(context: WorkspaceContext, run: Run) -> Replay:
    """Recompute the run from its record, and compare the two. Vectors are compared only with a local embedder and an
    existing index; nothing else is needed."""
    if run.answer is None:
        raise UserError(f"Run {run.id} has no answer yet, or none that you may read: there is nothing to make again.")
    if not remote_hosts(context.settings.embedder, context.settings.proxy):
        with suppress(AssayError, OSError, RuntimeError):  # no index, a damaged one, or one of another embedder
            return await replay(run, await run_context_for(context, run))
    without_index = await run_context_for(context, run, search_context=NoSearch(context.store))
    return await replay(run, without_index, searchable=False)


def first_of_step(run: Run, place: int) -> int:
    """The first record of the step that record `place` belongs to. A step is always repeated as a whole, with its model
    replies. Reviews are not steps: a branch from a review begins at the answer under review."""
    if not 1 <= place < len(run.events):
        raise UserError(
            f"Run {run.id} has no record {place} to go on from: choose 1 to {len(run.events) - 1}, as `assay trace` shows them."
        )
    held = next((at for at, event in enumerate(run.events[:place]) if isinstance(event, AwaitingReview)), None)
    first = place if held is None else held
    made = next((event for event in run.events[first:] if not isinstance(event, WITHIN_STEP)), run.events[first])
    same = next((types for types in REPEATED if isinstance(made, types)), ())
    while (
        first > 1 and isinstance(run.events[first - 1], (*WITHIN_STEP, *same)) and not _is_choice(run.events[first - 1])
    ):
        first -= 1
    return first


def _is_choice(event: Event) -> bool:
    """Whether a person chose something here. That is a step of its own."""
    return isinstance(event, Resumed) and bool(event.choice)


async def branch(context: WorkspaceContext, origin: Run, place: int, model: str = "") -> Steps:
    """A new run that begins with the events of another one before the step of record `place`, and continues live: with the
    named model, or as the original did, with the models that are configured now or by rule. Recorded model calls are not
    repeated; access is as of now."""
    first = first_of_step(origin, place)
    by_rule = model == NO_MODEL or (not model and not origin.asked.has_model)
    if not model and not by_rule and not has_model(context.settings):
        raise UserError(
            f"Run {origin.id} has a language model, and the settings name none. `--model none` goes on by rule."
        )
    scope = context.scope(origin.asked.where.bases)  # a missing base is reported before anything is recorded
    roles = {} if by_rule else await model_roles.connect(model_roles.with_model(context, model))
    who = context.principal.id
    asked = replace(
        origin.asked,
        who=who,
        seats=model_roles.role_models(roles),
        about={base.name: base.description for base in scope.bases} if origin.asked.brief is None else {},
        thread="",  # it is no turn of the conversation, though it knows the history
        branch=Branch(origin.id, first, model),
    )
    gated = asked.stakes is Stakes.high or context.settings.review_always
    gated = gated or reviews.is_gated(context.store, origin.id)  # a branch must not bypass a review
    asked = replace(asked, may_be_reviewed=gated or any_review(context.store, context.settings))
    run = record(context, Run(records.begin(context.store, who, gated=gated), ()), asked)
    yield run, asked
    for event in copied_events(origin, first):
        run = record(context, run, event)
        yield run, event
    async for step in continue_run(context, run, roles):
        yield step


def copied_events(origin: Run, first: int) -> tuple[Event, ...]:
    """The events after the question that a branch copies. There is never an answer or a review among them."""
    copied = tuple(event for event in origin.events[1:first] if not isinstance(event, NOT_COPIED))
    assert not any(isinstance(event, Asked | AwaitingReview | Reviewed | Answered) for event in copied)
    return copied
