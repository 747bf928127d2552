"""Asks a model whether the checked draft answers the whole question; a gap may reopen the search once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from pydantic import BaseModel, ConfigDict

from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.agent.limits import Limits
from assay.agent.steps.judge import Short
from assay.core.events import Critiqued, Event, Mode, Route
from assay.core.run import Run
from assay.models.llm import Role
from assay.models.meter import NoReply


class Critique(BaseModel):
    model_config = ConfigDict(extra="forbid")

    complete: bool
    gap: Short = ""


def critique_due(run: Run, limits: Limits) -> bool:
    """Once per run, if the question was routed to research and a gap could still be searched for."""
    return (
        run.asked.has_model
        and run.asked.mode is not Mode.quick
        and run.route is Route.research
        and run.critiqued is None
        and bool(run.checked)
        and limits.reached(run) is None
    )


async def critique(run: Run, context: RunContext) -> AsyncIterator[Event]:
    claims = [claim.words for _, claim in sorted(run.checked.items()) if claim.verdict == "supported"]

    def build_prompt(room: int) -> Mapping[str, str]:
        from assay.models.token_estimate import fit_to_tokens
        from assay.prompts.fence import fence, fence_mark

        rest = max(100, room - prompt_window.estimate_tokens(run.question) - 60)
        shown = fence(
            fence_mark(run.id), "the draft", fit_to_tokens("\n".join(f"- {each}" for each in claims), rest * 2 // 3)
        )
        return {"question": run.question, "draft": shown, "searched": prompt_window.render_searches(run, rest // 3)}

    reply = await context.ask(
        Role.judge,
        "critique",
        Critique,
        build_prompt,
        documents=sorted({each.passage.doc_id for each in run.evidence}),
        max_tokens=150,
    )
    if isinstance(reply, NoReply):
        yield Critiqued(True, "", f"not reviewed: {reply.detail}")
        return
    verdict, by = reply
    gap = verdict.gap.strip()
    yield Critiqued(verdict.complete or not gap, "" if verdict.complete else gap, "", by)
