"""A model grades an answer against its case. How often it agrees with people is counted in `grading`."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from assay.answer.checking.judge import AskModel
from assay.core.errors import UserError
from assay.core.events import RoleModel
from assay.evaluate.cases import Case
from assay.models.ask import ask as ask_meter
from assay.models.capability import probe
from assay.models.factory import has_model, llm_for, models_by_role
from assay.models.llm import Role
from assay.models.meter import ConnectedModel, Ledger, Meter, NoReply
from assay.prompts import fence, fence_mark
from assay.workspace.facade import Workspace

Ask = Callable[..., Any]


class ModelGrade(BaseModel):
    model_config = ConfigDict(extra="forbid")

    right: bool
    covered: list[int] = Field(default_factory=list, max_length=100)


async def connect_judge(opened: Workspace) -> AskModel:
    """Asks the model that the settings name for the role `check`, through the product's prompts and parser."""
    settings = opened.settings
    if not has_model(settings):
        raise UserError("There is no model to judge: set `llm_base_url` and `llm_model`.")
    opened.context.check_model_consent()
    llm = llm_for(settings, models_by_role(settings)[Role.check][0])
    can = await probe(llm, settings.llm_timeout)
    window = settings.llm_window or can.window
    role_model = RoleModel(Role.check.value, llm.name, can.tools, can.schema, can.json, window, small=False)
    models = {Role.check: (ConnectedModel(llm, role_model),)}
    meter = Meter(models, lambda _: None, lambda _: None, Ledger(), timeout=settings.llm_timeout)
    return functools.partial(ask_meter, meter)


def judge_on_demand(opened: Workspace) -> AskModel:
    """The same, connected at the first question: where everything is graded, the endpoint may be gone."""
    connected: AskModel | None = None
    connecting = asyncio.Lock()

    async def ask(role: Role, name: str, kind: type[Any], build_prompt: Callable[[int], Any], **more: Any) -> Any:
        nonlocal connected
        async with connecting:
            connected = connected or await connect_judge(opened)
        return await connected(role, name, kind, build_prompt, **more)

    return ask


async def grade_by_model(ask: Ask, case: Case, answer: str) -> ModelGrade | None:
    """The model's grade; None if the case says nothing about what an answer says, or if no usable reply came."""
    if not answer or case.abstain or not case.expects_text:
        return None
    mark = fence_mark(case.id)
    points = [f"{number}. {point}" for number, point in enumerate(case.points, 1)]
    expected = "\n".join(filter(None, (case.answer, *points)))
    values = {
        "question": fence(mark, "question", case.question),
        "expected": fence(mark, "expected", expected),
        "answer": fence(mark, "answer", answer),
    }

    def check(found: ModelGrade) -> str:
        known = set(range(1, len(points) + 1))
        return "" if known.issuperset(found.covered) else f"covered has numbers that no point has: use {sorted(known)}"

    reply = await ask(Role.check, "grade", ModelGrade, lambda _: values, check=check, max_tokens=300)
    return None if isinstance(reply, NoReply) else reply[0]
