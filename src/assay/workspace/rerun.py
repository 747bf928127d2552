"""A run once more: gone through again from its record, or begun anew from one of its steps, perhaps with another model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

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
from assay.governance.replay import NoSearch, Replayed, replay
from assay.models.factory import NO_MODEL, has_model, is_provider, remote_hosts
from assay.models.llm import Role
from assay.store.runs import records, reviews
from assay.workspace import model_roles
from assay.workspace.ask import carried_on, recorded, roles_of, run_context_for

if TYPE_CHECKING:
    from assay.workspace.facade import Workspace

Steps = AsyncIterator[tuple[Run, Event]]

ASIDE = (ModelReplied, Failed, Resumed)  # replies that a step had, and its getting up again after a fall
TOGETHER: tuple[tuple[type, ...], ...] = (  # kinds that one step may record several of
    (Checked,),
    (Revised,),
    (Gathered,),
    (StepAnswered, Judged, Routed),
)
NOT_TAKEN_OVER = (Withheld, Narrowed)  # what is withheld did not happen, as far as this person is concerned


# --- gone through again ---------------------------------------------------------------------------------------------


async def replayed(workspace: Workspace, run: Run) -> Replayed:
    """The run made again from its record, and held against it. Its vectors are looked at where they are at hand: on this
    machine, in an index that is there. Nothing else is needed."""
    if run.answer is None:
        raise UserError(f"Run {run.id} has no answer yet, or none that you may read: there is nothing to make again.")
    if not remote_hosts(workspace.settings.embedder, workspace.settings.proxy):
        with suppress(AssayError, OSError, RuntimeError):  # no index, a broken one, or one of another embedder
            return await replay(run, await run_context_for(workspace, run))
    return await replay(
        run, await run_context_for(workspace, run, search_context=NoSearch(workspace.store)), searchable=False
    )


# --- begun anew from a step -----------------------------------------------------------------------------------------


def seated_with(workspace: Workspace, model: str) -> Workspace:
    """The same workspace with this model in every role; as it is, where none is named."""
    if not model:
        return workspace
    roles = {f"llm_{role}_model": "" for role in Role}
    settings = workspace.settings.model_copy(update={**roles, "llm_model": model, "llm_fallback_model": ""})
    other = workspace.seen_by(workspace.principal)
    other.settings = settings
    return other


def at_the_endpoint(workspace: Workspace, model: str) -> str:
    """A model that anybody who may ask may name: one of the endpoint that is set, or none at all. Which company is reached is
    for whoever looks after the workspace to say."""
    named = model.strip()
    if named and named != NO_MODEL and is_provider(workspace.settings, named):
        raise UserError(f"{named!r} is a provider's model. Here only a model of the endpoint that is set can be named.")
    return named


def step_begins(run: Run, place: int) -> int:
    """Where the step begins that this record belongs to: a step is done again as a whole, with every reply that it had. A
    review is no step of a search: it is begun anew from the answer that waited first."""
    if not 1 <= place < len(run.events):
        raise UserError(
            f"Run {run.id} has no record {place} to go on from: choose 1 to {len(run.events) - 1}, as `assay trace` shows them."
        )
    reviewed = next((at for at, event in enumerate(run.events[:place]) if isinstance(event, AwaitingReview)), None)
    first = place if reviewed is None else reviewed
    made = next((event for event in run.events[first:] if not isinstance(event, ASIDE)), run.events[first])
    same = next((kinds for kinds in TOGETHER if isinstance(made, kinds)), ())
    while first > 1 and isinstance(run.events[first - 1], (*ASIDE, *same)) and not _chosen(run, first - 1):
        first -= 1
    return first


def _chosen(run: Run, place: int) -> bool:
    """Whether somebody chose something there: that is a step of theirs, and not taken back."""
    event = run.events[place]
    return isinstance(event, Resumed) and bool(event.choice)


async def branch(workspace: Workspace, origin: Run, place: int, model: str = "") -> Steps:
    """A new run whose first events are those of another, up to the step that this record belongs to; from there on it is
    carried on live, with the model that is named, or as it was: with the models that are set now, or by rule. What is recorded
    is not asked again; what may be read is as of now."""
    first = step_begins(origin, place)
    goes_by_rule = model == NO_MODEL or (not model and not origin.asked.has_model)
    if not model and not goes_by_rule and not has_model(workspace.settings):
        raise UserError(
            f"Run {origin.id} has a language model, and the settings name none. `--model none` goes on by rule."
        )
    scope = workspace.scope(origin.asked.where.bases)  # a base that is gone is said before anything is written down
    roles = {} if goes_by_rule else await roles_of(seated_with(workspace, model))
    who = workspace.principal.id
    asked = replace(
        origin.asked,
        who=who,
        seats=model_roles.seats(roles),
        about={base.name: base.description for base in scope.bases} if origin.asked.brief is None else {},
        thread="",  # it is no turn of the conversation, though it knows what was said
        branch=Branch(origin.id, first, model),
    )
    gated = asked.stakes is Stakes.high or workspace.settings.review_always
    gated = gated or reviews.is_gated(workspace.store, origin.id)  # no way around a reviewer who has it, or has said no
    run = recorded(workspace, Run(records.begin(workspace.store, who, gated=gated), ()), asked)
    yield run, asked
    for event in taken_over(origin, first):
        run = recorded(workspace, run, event)
        yield run, event
    async for step in carried_on(workspace, run, roles):
        yield step


def taken_over(origin: Run, first: int) -> tuple[Event, ...]:
    """The events that a branch begins with, after its question. Nobody's decision on an answer, and no answer, is among
    them."""
    kept = tuple(event for event in origin.events[1:first] if not isinstance(event, NOT_TAKEN_OVER))
    assert not any(isinstance(event, Asked | AwaitingReview | Reviewed | Answered) for event in kept)
    return kept


def as_begun(workspace: Workspace, run: Run) -> Workspace:
    """The workspace with the model that a branch was begun with, when it is carried on later."""
    return seated_with(workspace, run.asked.branch.model if run.asked.branch else "")
