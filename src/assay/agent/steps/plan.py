"""Plans a question as a DAG of steps, where later steps use the results of earlier ones. A model proposes; invalid
graphs are repaired."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.agent.hops.scoring import question_names
from assay.core.events import Event, Planned, Route
from assay.core.run import Run
from assay.core.types import Plan, PlanStep
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply

MOST = 6  # steps per plan
PLANS = 3  # plans per run, at most

Short = Annotated[str, Field(max_length=300)]


class Proposed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(pattern=r"^s[1-9]$")]
    question: Annotated[str, Field(min_length=1, max_length=400)]
    query: Short
    needs: list[Annotated[str, Field(pattern=r"^s[1-9]$")]] = Field(default_factory=list, max_length=MOST)
    binds: Annotated[str, Field(max_length=60)] = ""


class Planning(BaseModel):
    model_config = ConfigDict(extra="forbid")

    steps: list[Proposed] = Field(min_length=1, max_length=MOST)


async def plan(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """One step for a look-up; otherwise the model's steps, or those derived by rule."""
    if not run.asked.has_model:
        yield Planned(plan_by_rule(run.question))
    elif run.route is Route.lookup or run.every:
        yield Planned(Plan((PlanStep("s1", run.question, query=run.question),)))
    elif len(run.readings) > 1:
        yield Planned(Plan(tuple(PlanStep(f"s{n}", each, query=each) for n, each in enumerate(run.readings, 1))))
    else:
        reply = await context.ask(
            Role.plan, "plan", Planning, lambda room: _build_prompt(run, context, room), max_tokens=500
        )
        if isinstance(reply, NoReply):
            yield Planned(Plan((PlanStep("s1", run.question, query=run.question),)))
        else:
            proposed, by = reply
            made = build_plan(proposed)
            yield Planned(made if made.steps else Plan((PlanStep("s1", run.question, query=run.question),)), by)


def _build_prompt(run: Run, context: RunContext, room: int) -> dict[str, str]:
    before = ""
    if run.plan is not None:
        found = prompt_window.render_evidence(run, context.titles(run), room // 2)
        before = (
            f"An earlier plan did not fit.\n{prompt_window.render_steps(run)}\n{prompt_window.render_missing(run)}\n"
        )
        before += f"Evidence so far:\n{found}\n"
    question = run.question if len(run.readings) != 1 else run.readings[0]
    return {"bases": prompt_window.render_bases(run), "so_far": before, "question": question}


def build_plan(proposed: Planning) -> Plan:
    """The steps in topological order. Whatever is invalid is dropped: dependencies on unknown steps or in a cycle,
    duplicate steps, placeholders that nothing fills."""
    wanted = {step.id: step for step in reversed(proposed.steps)}
    ordered: list[Proposed] = []
    while wanted:
        done = {step.id for step in ordered}
        ready = [id for id, step in wanted.items() if not (set(step.needs) & wanted.keys()) - done - {id}]
        ordered.append(wanted.pop(min(ready or wanted)))
    seen: dict[tuple[str, ...], None] = {}
    steps: list[PlanStep] = []
    for each in ordered:
        earlier = {step.id for step in steps}
        needs = tuple(dict.fromkeys(need for need in each.needs if need in earlier))
        binds = {step.binds: step.id for step in steps if step.id in needs and step.binds}
        places = set(prompt_window.PLACEHOLDER.findall(f"{each.question} {each.query}"))
        if places - set(needs) - binds.keys() or tuple(content_terms(each.question)) in seen:
            continue
        seen[tuple(content_terms(each.question))] = None
        steps.append(PlanStep(each.id, each.question.strip(), needs, each.binds.strip(), each.query.strip()))
    return Plan(tuple(steps))


def replan_due(run: Run) -> bool:
    """Whether to replan: retrieval returned something unexpected, and the number of plans is below its limit."""
    plans: Sequence[Event] = [event for event in run.events if isinstance(event, Planned)]
    judged = run.judged
    return (
        judged is not None and judged.surprise and not judged.enough and len(plans) < PLANS and not _planned_since(run)
    )


def _planned_since(run: Run) -> bool:
    for event in reversed(run.events):
        if isinstance(event, Planned):
            return True
        if event is run.judged:
            return False
    return False


def plan_by_rule(question: str) -> Plan:
    """A plan by rule: one parallel step per name in the question, then the question itself, which depends on all of them."""
    named = list(question_names(question).values())
    about = [
        PlanStep(f"s{n}", f"What do the documents say about {name}?", binds=name) for n, name in enumerate(named, 1)
    ]
    if len(about) < 2:
        return Plan((PlanStep("s1", question),))
    return Plan((*about, PlanStep(f"s{len(about) + 1}", question, needs=tuple(step.id for step in about))))
