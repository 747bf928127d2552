"""Summarises older results, so that the prompt fits the model's context window."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.core.events import (
    Event,
)
from assay.core.run import Run


async def compact(run: Run, context: RunContext) -> AsyncIterator[Event]:
    event = prompt_window.compaction_due(run, context.limits.room)
    assert event is not None
    yield event
