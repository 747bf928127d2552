"""Runs the tool calls that were decided on, in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from assay.agent.context import RunContext, mark
from assay.agent.toolbox import RULE_TOOLS
from assay.core.errors import ToolError
from assay.core.events import (
    RULES,
    Call,
    Decided,
    Event,
    ToolRan,
)
from assay.core.run import Run
from assay.index.search_filter import filter_for
from assay.models.llm import Role
from assay.models.meter import NoReply

T = TypeVar("T", bound=BaseModel)


async def call(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Run the pending calls in parallel. A tool's refusal is a result too."""

    async def consult(
        name: str, kind: type[T], build_prompt: Callable[[int], Mapping[str, str]], documents: Sequence[str]
    ) -> T | None:
        reply = await context.ask(Role.judge, name, kind, build_prompt, documents=sorted(documents), max_tokens=500)
        return None if isinstance(reply, NoReply) else reply[0]

    before = _as_decided(run)
    tool_context = replace(
        context.tool_context,
        where=filter_for(run.where, context.tool_context.traits),
        found=before.found,
        evidence=before.evidence,
        today=run.asked.today,
        mark=mark(run),
        consult=consult if run.asked.has_model else None,
    )

    # Calls decided by rule may use any tool; calls by a model only those it was offered.
    ours = {call.id for event in run.events if isinstance(event, Decided) and event.by == RULES for call in event.calls}

    async def made(one: Call) -> ToolRan:
        tool = context.tools.get(one.tool) or (RULE_TOOLS.get(one.tool) if one.id in ours else None)
        try:
            if tool is None:
                raise ToolError(f"There is no tool called {one.tool!r}. There are: {', '.join(sorted(context.tools))}.")
            result = await tool(tool_context, one.arguments)
            return ToolRan(
                one.id,
                result.found,
                result.note,
                documents=result.documents,
                left=result.left,
                whole=result.whole,
                undated=result.undated,
            )
        except ToolError as error:
            return ToolRan(one.id, (), error=str(error))

    for ran in await asyncio.gather(*(made(one) for one in run.calls_waiting)):
        yield ran


def _as_decided(run: Run) -> Run:
    """The run as it was when its last calls were decided. Parallel calls do not see each other's results, also when
    only some are run again after a restart."""
    places = (place for place in range(len(run.events) - 1, -1, -1) if isinstance(run.events[place], Decided))
    return Run(run.id, run.events[: next(places) + 1])
