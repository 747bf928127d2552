"""Delivers the answer, or queues it for review."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.answer import compose
from assay.core.events import (
    Answered,
    AwaitingReview,
    Decision,
    Event,
    Failed,
    Stakes,
)
from assay.core.run import Run, seal_of
from assay.core.types import Answer


async def deliver(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Yield the answer, or `Failed` if anything in it fails the final check."""
    guard = compose.delivery_guard(run, context.document, context.judge)
    answer = compose.guarded_answer(run, guard, context.titles(run), context.unreadable())
    if wrong := compose.guarded_faults(answer, run, guard):
        yield Failed("Unverified", f"Nothing is delivered, since not everything in it holds: {'; '.join(wrong)}.")
        return
    yield release(run, context, answer)


def release(run: Run, context: RunContext, answer: Answer) -> Answered | AwaitingReview:
    """The answer, or a review request if the answer needs one and exactly this version is not approved."""
    reasons = context.oversees(run, answer)
    if not reasons and not run.gated and run.asked.stakes is Stakes.normal:
        return Answered(answer)
    decided, waited = run.decided, sum(isinstance(event, AwaitingReview) for event in run.events)
    seal = seal_of(run, answer, max(waited - 1, 0))  # of the answer last queued for review
    if decided and decided.decision is Decision.approve and decided.seal == seal and context.cleared(seal):
        return Answered(answer, seal)
    return AwaitingReview(
        answer, seal_of(run, answer, waited), reasons or ("it was looked at by a reviewer before",), context.four_eyes
    )
