"""Plans a question as a DAG of steps, where later steps use the results of earlier ones. A model proposes, in most runs
with the route; invalid graphs are repaired."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from assay import prompts
from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.agent.near import documents_near
from assay.core.errors import UserError
from assay.core.events import Event, Mode, Planned, Route
from assay.core.run import Run
from assay.core.types import Plan, PlanStep
from assay.language import dates
from assay.language.glossary import describe_measures
from assay.language.terms import content_terms
from assay.models.cost import estimate_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply

MOST = 6  # steps per plan
PLANS = 3  # plans per run, at most

Short = Annotated[str, Field(max_length=300)]


class Proposed(BaseModel, extra="forbid"):
    id: Annotated[str, Field(pattern=r"^s[1-9]$")]
    question: Annotated[str, Field(min_length=1, max_length=400)]
    query: Short
    needs: list[Annotated[str, Field(pattern=r"^s[1-9]$")]] = Field(default_factory=list, max_length=MOST)
    binds: Annotated[str, Field(max_length=60)] = ""
    since: Annotated[str, Field(max_length=40)] = ""
    until: Annotated[str, Field(max_length=40)] = ""


class Planning(BaseModel, extra="forbid"):
    steps: list[Proposed] = Field(min_length=1, max_length=MOST)


async def plan(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The plan of a run that has none yet, or whose plan did not fit. One step for a look-up, and for a small model in
    haste: its plans cost more than they bring."""
    if not run.asked.has_model:
        yield Planned(Plan((PlanStep("s1", run.question),)))
    elif run.route is not Route.research or (context.small(Role.plan) and (run.every or run.asked.mode is Mode.quick)):
        yield Planned(one_step(run))
    elif len(run.readings) > 1:
        yield Planned(Plan(tuple(PlanStep(f"s{n}", each, query=each) for n, each in enumerate(run.readings, 1))))
    else:
        shown = await documents_near(run, context)
        reply = await context.ask(
            Role.plan,
            "plan",
            Planning,
            lambda room: _build_prompt(run, context, shown, room),
            documents=sorted({*shown, *prompt_window.evidence_documents(run)}),
            max_tokens=500,
        )
        if isinstance(reply, NoReply):
            yield Planned(one_step(run))
        else:
            proposed, by = reply
            made = build_plan(proposed.steps, run.asked.today, dated=not context.small(Role.plan))
            yield Planned(made if made.steps else one_step(run), by)


def one_step(run: Run) -> Plan:
    return Plan((PlanStep("s1", run.question, query=run.query),))


def render_measures(question: str, context: RunContext) -> str:
    defined = describe_measures(question, context.glossary)
    return f"Usual definitions, unless the question gives its own: {defined}.\n" if defined else ""


def _build_prompt(run: Run, context: RunContext, shown: Mapping[str, str], room: int) -> dict[str, str]:
    before = "The question asks for a whole set.\n" if run.every else ""
    if run.plan is not None:
        found = prompt_window.render_evidence(run, context.dated_titles(run), room // 2)
        before += (
            f"An earlier plan did not fit.\n{prompt_window.render_steps(run)}\n{prompt_window.render_missing(run)}\n"
        )
        before += f"Evidence so far:\n{found}\n"
    question = run.question if len(run.readings) != 1 else run.readings[0]
    listed = prompt_window.render_documents(run, shown)
    return {
        "steps": prompts.template("steps"),
        "bases": prompt_window.render_bases(run),
        "documents": listed if estimate_tokens(listed) <= room // 3 else "",
        "so_far": before,
        "measures": render_measures(question, context),
        "question": question,
        "today": dates.with_weekday(run.asked.today),
    }


def build_plan(proposed: Sequence[Proposed], today: str, *, dated: bool = True) -> Plan:
    """The steps in topological order. Whatever is invalid is dropped: dependencies on unknown steps or in a cycle,
    duplicate steps, placeholders that nothing fills; without `dated` also dates, which small models make up."""
    wanted = {step.id: step for step in reversed(proposed)}
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
        since, until = _days(each.since, dates.first_day, today), _days(each.until, dates.last_day, today)
        if not dated or (since and until and since > until):
            since = until = ""
        steps.append(
            PlanStep(each.id, each.question.strip(), needs, each.binds.strip(), each.query.strip(), since, until)
        )
    return Plan(tuple(steps))


def _days(words: str, parse: Callable[[str, str], str], today: str) -> str:
    """A date of a step as a day; empty if it is none."""
    try:
        return parse(words, today) if words.strip() else ""
    except UserError:
        return ""


def replan_due(run: Run) -> bool:
    """Whether to replan: retrieval returned something unexpected, and the number of plans is below its limit."""
    plans = [event for event in run.events if isinstance(event, Planned)]
    judged = run.judged
    if judged is None or not judged.surprise or judged.enough or len(plans) >= PLANS:
        return False
    last = next((event for event in reversed(run.events) if isinstance(event, Planned) or event is judged), judged)
    return last is judged
