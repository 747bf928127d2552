"""The question that most of table E is asked with, the model that answers it in one round, and how its runs are looked at."""

from __future__ import annotations

from typing import Any

from doubles import (
    ChatServer,
    Script,
    ScriptedCalls,
    calls,
    drops,
    enough,
    keeps,
    one_step,
    research,
    role_of,
    supported,
    text_of,
    writes,
)
from hostile_runs import Ended, asked, door, kept, secret, sound, typed_end

from assay.answer.citations import of_answer
from assay.answer.render import as_text
from assay.core.events import Answered, Mode
from assay.core.run import Run
from assay.workspace.facade import Workspace

QUESTION = "Which gateway release would have prevented the late alarm in the Pellam incident?"
WAITED = "The alarm waited for 38 minutes"
OVERTAKES = "alarm messages overtake all measurements"
ANSWER = f"The alarm waited for 38 minutes because the gateway at Pellam was still running Heron 4.1. [{{{WAITED}}}]"


def script(**lines: Any) -> Script:
    """A model that answers the question in one round, but for what a test says otherwise."""
    usual: dict[str, Any] = {
        "route": research(),
        "plan": one_step(QUESTION, "gateway release late alarm"),
        "weigh": keeps(WAITED, OVERTAKES),
        "judge": enough(),
        "write": writes(ANSWER),
        "check": supported(),
        "revise": drops(),
    }
    return Script(**(usual | lines))


async def run_with(
    opened: Workspace, model: Script, mode: Mode = Mode.quick, **settings: Any
) -> tuple[Ended, ChatServer]:
    """A question asked of this model, with everything checked that holds of every run."""
    with ChatServer(model.answer) as server:
        ended = await asked(door(opened, server.url, probed=None, **settings), QUESTION, mode)
    assert not server.problems, server.problems
    assert not typed_end(ended) + kept(ended, opened) + secret(ended)
    if isinstance(ended.last, Answered):
        assert not sound(ended.run, opened)
    return ended, server


def prompts_of(server: ChatServer, role: str) -> list[str]:
    return [text_of(request) for request in server.requests if role_of(request)[0] == role]


def told(run: Run, opened: Workspace) -> str:
    """The answer as a person reads it."""
    assert run.answer is not None
    return as_text(run.answer, of_answer(run.answer, run.evidence, opened.documents.get))


def searching(*queries: str) -> list[ScriptedCalls]:
    """decide: one query after another."""
    return [calls("search", query=query) for query in queries]
