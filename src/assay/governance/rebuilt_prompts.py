"""Models that answer from the record of a run, and what they were asked: prompts are made again on the way and compared with
the recorded digests."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from assay.agent.context import RunContext
from assay.core.errors import ModelError
from assay.core.events import RULES, AwaitingReview, Event, Fallback, ModelReplied, fallbacks
from assay.core.run import Run
from assay.core.types import Usage
from assay.models.llm import Prompt, Reply, Role, ToolCall
from assay.models.meter import ConnectedModel, Meter, NoReply, request_digest
from assay.store.runs.budgets import SpendingReservation


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
    context = replace(
        context,
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
    reworded: int = 0
    made: dict[str, Prompt] = field(default_factory=dict)  # the prompts that came out, by the digest of their request

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
    ) -> ModelReplied | NoReply:
        self.made[request_digest(role, name, prompt)] = prompt
        return await super().consult(connected, role, name, prompt, documents, tokens)


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
        self.heard.reworded += 1
        calls = tuple(ToolCall(call.id, call.tool, call.arguments) for call in own.calls)
        return Reply(own.text, calls, own.finish, own.usage)


@dataclass(frozen=True, slots=True)
class _NoBudget:
    """A budget that allows nothing. If a reply is missing from the record, the run had none, for the recorded
    reason."""

    refusal: NoReply | None

    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        return self.refusal or SpendingReservation(0, seconds)

    def settle(self, id: int, model: str, usage: Usage) -> Usage:
        return usage

    def one_transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def flushed(self) -> None:
        return None

    def release(self, id: int) -> None:
        return None


def refusal(expected: Sequence[Event]) -> NoReply | None:
    """Why a reply may be missing in this step, according to its events. An unusable reply is itself in the record,
    so any other reason takes precedence."""
    found = [(why, getattr(event, "why", "")) for event in expected for why in fallbacks(event)]
    for why, detail in sorted(found, key=lambda each: each[0] is Fallback.unusable):
        return NoReply(why, detail)
    by_rule = any(getattr(event, "by", "") == RULES for event in expected)
    return NoReply(Fallback.tokens, "") if by_rule else None
