"""Plans a question as a DAG of steps, where later steps use the results of earlier ones. A model proposes, in most runs
with the route; invalid graphs are repaired. Without a model a question is split by rule."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
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
from assay.language.terms import content_terms, stop_words
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
        yield Planned(plan_by_rule(run.question))
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


def step_instructions() -> str:
    return prompts.template("steps")


def render_measures(question: str, context: RunContext) -> str:
    defined = describe_measures(question, context.glossary)
    return f"Usual definitions: {defined}.\n" if defined else ""


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
        "steps": step_instructions(),
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
    """A plan by rule: a thing that is described and not named is asked for first; questions that are joined are asked
    side by side. Otherwise it is the question itself."""
    if split := split_question(question):
        return Plan((PlanStep("s1", split.first), PlanStep("s2", split.second, needs=("s1",))))
    parts = split_compound(question) or (question,)
    return Plan(tuple(PlanStep(f"s{number}", part) for number, part in enumerate(parts[:MOST], 1)))


FOUND = "{s1}"  # stands in the second question for what the first one finds


@dataclass(frozen=True, slots=True)
class Split:
    """Two questions instead of one; the second has a placeholder for the answer to the first."""

    first: str
    second: str


PREPOSITION = r"(?:in|at|on|from|for|by|with|to|of|under|through|near|during)"
DESCRIBED = re.compile(
    rf"^(?P<head>.{{0,300}})\b(?:the|a|an|our|that) (?P<noun>(?:[\w’'-]{{1,30}} ){{0,3}}?[\w-]{{1,30}}?),? "
    rf"(?P<link>that|which|who|whose|where|{PREPOSITION} (?:which|whom|whose))\b (?P<clause>.{{1,300}})$",
    re.I,
)
PLACED = re.compile(
    r"^(?P<head>.{0,300})\bthe (?P<noun>[\w-]{1,30}) (?P<clause>(?:at the (?:end|start|top|foot|bottom|mouth|source) of"
    r"|next to|behind|opposite|above|below|responsible for|in charge of) .{1,300})$",
    re.I,
)
# "the fact that …" describes nothing, and "the month that …" is no thing with a name.
NOT_A_THING = frozenset(
    "fact idea claim way reason evidence day time times month year years date hour hours case amount number one".split()
)
DO = frozenset("do does did can could will would should may might must".split())
BE = frozenset("is are was were".split())
SUBJECT = re.compile(r"(?:the|a|an|our|we|you|they|he|she|it|his|her|their|its|my|your|I)\b|[A-Z]", re.S)
VERB = re.compile(r"(?:ed|en|ing|wn|ught|ilt|old|eld|ept|elt|ade|orn)$")


def split_question(question: str) -> Split | None:
    """The two questions; None if nothing in it is described by a clause."""
    plain = " ".join(question.split()).rstrip("?.! ")
    if match := DESCRIBED.match(plain):
        return _by_clause(match)
    if match := PLACED.match(plain):
        head, noun = match["head"], match["noun"]
        clause, tail = _without_predicate(head, match["clause"])
        return _made(head, tail, f"Which {noun} is {clause}?", noun)
    return None


JOINED = re.compile(
    r"[,;? ] ?and (?=(?:(?:in|at|on|for|from|to|by|with) )?(?:what|which|who|whom|whose|when|where|why|how)\b)",
    re.I,
)
POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|there|one|ones|so)\b", re.I
)
ASKS = re.compile(r"(?:\w{1,20} )?(?:what|which|who|whom|whose|when|where|why|how)\b", re.I)


def split_compound(question: str) -> tuple[str, ...]:
    """The questions that one sentence joins: "Who tends the light, and how tall is the tower?". Empty if it is one
    question, or if a later part points back to an earlier one."""
    plain = " ".join(question.split()).rstrip("?.! ")
    parts = [part.strip(" ,;?") for part in JOINED.split(plain)]
    whole = len(parts) > 1 and all(ASKS.match(part) and len(part.split()) > 2 for part in parts)
    if not whole or any(POINTS_BACK.search(part) for part in parts[1:]):
        return ()
    return tuple(f"{part[0].upper()}{part[1:]}?" for part in parts)


def _by_clause(match: re.Match[str]) -> Split | None:
    head, noun, link, clause = match["head"], match["noun"], match["link"].lower(), match["clause"]
    between = ""
    if " " in link and " " in noun and _last(head) in DO:  # "does the room have in which …"
        noun, _, between = noun.rpartition(" ")
    tail = ""
    if not between:
        clause, tail = _without_predicate(head, clause)
    if not clause:
        return None
    preposition, _, relative = link.rpartition(" ")
    if relative == "whose":
        first = f"{preposition} which {noun}’s {clause}"
    elif preposition or link == "where":
        first = f"{preposition or 'in'} which {noun} {clause}"
    elif SUBJECT.match(clause):  # "the room that the committee chose"
        first = f"which {noun} is it that {clause}"
    else:
        first = f"which {noun} {clause}"
    first = first.strip()
    return _made(head, " ".join(filter(None, (between, tail))), f"{first[0].upper()}{first[1:]}?", noun)


def _made(head: str, tail: str, first: str, noun: str) -> Split | None:
    """The split, unless the noun is no single thing, or nothing is asked of it."""
    words = noun.lower().split()
    several = re.search(r"[^su]s$", words[-1])
    if several or words[-1] in NOT_A_THING or any(map(_is_function_word, words)) or len(head.split()) < 2:
        return None
    return Split(first, f"{' '.join(filter(None, (head.strip(), FOUND, tail)))}?")


def _last(words: str) -> str:
    return (words.lower().split() or [""])[-1]


def _without_predicate(head: str, clause: str) -> tuple[str, str]:
    """The clause, and the predicate of the question after it: "the man who made it | live before"."""
    words = clause.split()
    before = _last(head)
    if before in DO:
        for place in range(2, len(words)):
            ends = _is_function_word(" ".join(words[place + 1 : place + 2])) or place == len(words) - 1
            if ends and _is_bare_verb(words[place]) and not _is_function_word(words[place - 1]):
                return " ".join(words[:place]), " ".join(words[place:])
        return "", ""
    if before in BE and len(words) > 2 and VERB.search(words[-1]) and not _is_function_word(words[-2]):
        return " ".join(words[:-1]), words[-1]
    return clause, ""


def _is_function_word(word: str) -> bool:
    return word.lower() in stop_words() or word.lower() in DO | BE


def _is_bare_verb(word: str) -> bool:
    """Whether a word may be a verb in its plain form; a noun may pass too."""
    return (
        word.isalpha()
        and word.islower()
        and not _is_function_word(word)
        and not re.search(r"(?:s|(?<!e)ed|ing|ly)$", word)
    )
