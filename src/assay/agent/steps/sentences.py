"""Reads the sentences of the evidence with the answer model: for the question, or for one of the two that it was split
into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from assay.agent import prompt_window
from assay.agent.context import RunContext
from assay.agent.first_look import read_texts
from assay.agent.hops import scoring
from assay.agent.hops.split import split_question
from assay.agent.past_searches import past_searches
from assay.agent.toolbox.follow import follow
from assay.answer.extractive import extract
from assay.answer.extractive.selection import Candidate, best_places, field
from assay.core.events import Call, StepAnswered
from assay.core.run import Run
from assay.core.tables import header_spans
from assay.core.types import Evidence
from assay.evidence import weigh
from assay.models.answer_model import Reading

FIRST, SECOND = "s1", "s2"  # the steps of a question that was split
LED = 10  # passages that the search for the first question adds to the evidence


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """The sentences of the evidence, the vectors of question and sentences, and what the answer model says of the best
    ones; None without such a model."""

    found: Sequence[Candidate]
    vectors: np.ndarray
    readings: Mapping[int, Reading] | None


async def read_sentences(run: Run, context: RunContext, question: str, first: Sequence[str] = ()) -> Sentences:
    """The sentences of the best passages, read for a question. `first` are passages that come before all others."""
    done = await past_searches(run, context)
    ranked = scoring.rank_passages(run.query, done, context.hops) if done else []
    ties = [(each.hit.passage.id, each.link.source, each.link.name) for each in ranked if each.link]
    weighed: Sequence[Evidence] = run.evidence
    if run.asked.has_model:
        weighed = weigh.rescore(run.evidence, {each.hit.passage.id: each.score for each in ranked})
    places = {passage: place for place, passage in enumerate(first)}
    weighed = sorted(weighed, key=lambda each: places.get(each.passage.id, len(places)))
    documents = {each.passage.doc_id for each in extract.best_passages(weighed)}
    sources = [document for each in sorted(documents) if (document := context.document(each))]
    headers = {each.id: header_spans(each) for each in sources if each.tables}
    plain = {each.id: each.title for each in sources}
    found = extract.candidates(weighed, ties, context.titles(run), headers=headers, plain=plain)
    vectors = await context.tool_context.search_context.embedder.queries([question, *(each.said for each in found)])
    return Sentences(found, vectors, await _read(run, context, question, found, vectors))


async def _read(
    run: Run, context: RunContext, question: str, found: Sequence[Candidate], vectors: np.ndarray
) -> Mapping[int, Reading] | None:
    model = context.tool_context.search_context.answer_model
    if model is None or not found:
        return None
    by = extract.DEFAULT
    places = best_places(field(question, found, vectors, by), by)
    readings = await read_texts(run, model, question, [found[place].in_context for place in places])
    return dict(zip(places, readings, strict=True))


# --- a question that was split --------------------------------------------------------------------------------------


def is_split(run: Run) -> bool:
    """Whether the plan has a first question whose answer the second one needs."""
    if run.plan is None or [step.id for step in run.plan.steps] != [FIRST, SECOND]:
        return False
    return bool(prompt_window.PLACEHOLDER.search(run.plan.steps[1].question))


def joined_parts(run: Run) -> tuple[str, ...]:
    """The questions that a question joins, each of which is answered by itself; empty if it is one."""
    steps = run.plan.steps if run.plan else ()
    apart = len(steps) > 1 and not any(step.needs for step in steps)
    return tuple(step.question for step in steps) if apart and not run.asked.has_model else ()


def first_found(run: Run) -> list[str]:
    """The best passages that the search for the first question of a split one found."""
    question = run.plan.steps[0].question if run.plan and is_split(run) else ""
    calls = [call.id for call in run.calls if question and call.arguments.get("query") == question]
    return [each.passage.id for call in calls if call in run.results for each in run.results[call].found][:LED]


async def answer_first_step(run: Run, context: RunContext) -> StepAnswered | None:
    """The name that answers the first question of a split one, if a sentence gives it."""
    if run.plan is None or not is_split(run) or FIRST in run.bound:
        return None
    question = run.plan.steps[0].question
    read = await read_sentences(run, context, question, first_found(run))
    answer = extract.name_answer(question, read.found, read.vectors, read.readings)
    split = split_question(run.question)
    if answer is None or (split and split.noun and not extract.is_called(answer[0], split.noun, read.found)):
        return None
    return StepAnswered(FIRST, answer[0], (answer[1].key,))


def second_question(run: Run) -> str:
    """The second question of a split one, with what the first one found; empty if that is not known."""
    if run.plan is None or not is_split(run) or FIRST not in run.bound:
        return ""
    return prompt_window.fill_placeholders(run.plan.steps[1].question, run)


def second_search(run: Run) -> Call | None:
    """The search for the second question, if it has been made."""
    question = second_question(run)
    done = (call for call in run.calls if call.id in run.results and call.tool == follow.name)
    return next((call for call in done if question and call.arguments.get("query") == question), None)
