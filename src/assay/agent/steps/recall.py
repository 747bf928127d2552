"""Recalls results of earlier turns of a conversation before searching. They are weighed again for the new question, and
access is checked again for the person who asks now."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.agent.toolbox.recall import MOST
from assay.agent.toolbox.recall import recall as recall_tool
from assay.core.events import Call, Decided, Event, Route
from assay.core.run import Run
from assay.language.terms import content_terms


def recall_due(run: Run) -> bool:
    """Whether earlier turns have results to recall and nothing was searched yet."""
    return not run.calls and run.route not in (None, Route.direct) and not run.every and bool(_passages(run))


async def recall(run: Run, context: RunContext) -> AsyncIterator[Event]:
    given = {"query": run.query, "passages": _passages(run)}
    if run.route is Route.rework:
        call = Call("c1", recall_tool.name, given | {"every": True})
        yield Decided((call,), "what the last answer rests on", recalls=True)
    else:
        yield Decided((Call("c1", recall_tool.name, given),), "what earlier turns found comes first", recalls=True)


def _passages(run: Run) -> tuple[str, ...]:
    """The passages that earlier turns cite, latest first: for work on the last answer its own; for a question those of
    turns that share a word with it."""
    if run.route is Route.rework:
        return run.last_answer.passages[:MOST] if run.last_answer else ()
    asked = set(content_terms(run.query))
    near = [turn for turn in run.asked.history if asked & set(content_terms(f"{turn.question} {turn.answer}"))]
    return tuple(dict.fromkeys(passage for turn in reversed(near) for passage in turn.passages))[:MOST]
