"""The run's searches with their vectors, and pieces of the evidence as the answer model reads them: for the question,
or for one of the two that it was split into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.agent import hop_ranking, prompt_window
from assay.agent.context import RunContext
from assay.agent.hop_ranking import Lead, PastSearch
from assay.agent.toolbox.search import follow, recall
from assay.answer import extracts, weigh
from assay.answer.extracts import ReadPiece
from assay.core.events import Call, Decided, StepAnswered
from assay.core.run import Run
from assay.core.types import Evidence, Hit
from assay.index.retrieve import fetch, query_vectors
from assay.language.identify import identify_language
from assay.language.terms import content_terms, fold_case

FIRST, SECOND = "s1", "s2"  # the steps of a question that was split
LED = 10  # passages that the search for the first question adds to the evidence
BINDS = 0.3  # probability from which on marked words are what the first question asks for
LONGEST_NAME = 8  # words of what the first question finds
CALIBRATED = frozenset({None, "en"})  # languages of text for which the probability was fitted; None: too short to tell


@dataclass(frozen=True, slots=True)
class ReadEvidence:
    """The pieces of the evidence as the answer model reads them; without such a model, by what they say of the question."""

    pieces: Sequence[ReadPiece]
    calibrated: bool  # whether its probabilities were fitted on such text


async def read_evidence(run: Run, context: RunContext, question: str, first: Sequence[str] = ()) -> ReadEvidence:
    """The pieces of the best passages, read for a question. `first` are passages that come before all others."""
    weighed: Sequence[Evidence] = run.evidence
    if run.asked.has_model:
        done = await past_searches(run, context)
        ranked = hop_ranking.rank_passages(run.query, done, context.hops) if done else []
        weighed = weigh.rescore(run.evidence, {each.hit.passage.id: each.score for each in ranked})
    places = {passage: place for place, passage in enumerate(first)}
    weighed = sorted(weighed, key=lambda each: places.get(each.passage.id, len(places)))
    found = extracts.worth_reading(question, extracts.pieces(extracts.best_passages(weighed), context.document))
    model = context.tool_context.search_context.answer_model
    readings = await model.read(question, [each.text for each in found]) if model else None
    read = extracts.read_pieces(question, found, readings)
    if model is None or not read:
        return ReadEvidence(read, calibrated=False)
    best = max(read, key=lambda each: each.score).piece.quote
    source = context.document(best.doc_id)
    languages = {identify_language(question), source.language if source else None}
    alone = question != run.query or run.query == run.question  # no words of an earlier turn
    return ReadEvidence(read, calibrated=alone and languages <= CALIBRATED)


async def may_answer_turn(run: Run, context: RunContext, read: ReadEvidence) -> bool:
    """Whether one of the best pieces may answer the turn itself, where it was searched for with words of the turn before."""
    model = context.tool_context.search_context.answer_model
    best = extracts.choose(read.pieces)
    if model is None or run.query == run.question or not best:
        return True
    own = await model.read(run.question, [each.piece.text for each in best])
    return max(each.answers for each in own) >= extracts.PERHAPS


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
    """The words that answer the first question of a split one, if the answer model marks some."""
    if run.plan is None or not is_split(run) or FIRST in run.bound:
        return None
    question = run.plan.steps[0].question
    read = await read_evidence(run, context, question, first_found(run))
    known = frozenset(content_terms(question))
    for best in extracts.choose(read.pieces, 1):
        mark = best.mark
        new = mark is not None and frozenset(content_terms(mark.text)) - known
        if mark and new and best.reading and best.reading.answers >= BINDS and len(mark.text.split()) <= LONGEST_NAME:
            return StepAnswered(FIRST, " ".join(mark.text.split()), (best.piece.key,))
    return None


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


def holding(name: str, pieces: Sequence[ReadPiece]) -> list[ReadPiece]:
    """The pieces that have a name, in their own words."""
    return [each for each in pieces if fold_case(name) in fold_case(each.piece.quote.text)]


def build_calls(run: Run, leads: Sequence[Lead]) -> tuple[Call, ...]:
    first = len(run.calls) + 1
    return tuple(_call(f"c{number}", lead) for number, lead in enumerate(leads, first))


def _call(number: str, lead: Lead) -> Call:
    if lead.source:
        return Call(number, follow.name, {"passage": lead.source, "name": lead.name, "query": lead.query, "k": lead.k})
    return Call(number, "search", {"query": lead.query, "k": lead.k})


def _lead(call: Call, by_name: bool) -> Lead:
    """Convert a call to a `Lead`, the reverse of `_call`. Every search the rules made after the first follows a name."""
    of = call.arguments
    query, source = str(of["query"]), str(of.get("passage", ""))
    name = str(of.get("name", "")) if source else query if by_name else ""
    return Lead(query, "", int(str(of.get("k", 8))), name, source)


def _name_calls(run: Run) -> frozenset[str]:
    """The calls the rules made to follow names: all but their first."""
    first = next(
        (call.id for event in run.events if isinstance(event, Decided) and event.is_round for call in event.calls), ""
    )
    return frozenset(
        call.id
        for event in run.events
        if isinstance(event, Decided) and not event.recalls and (event.hops or not run.asked.has_model)
        for call in event.calls
        if call.id != first
    )


async def past_searches(run: Run, context: RunContext, *, include_recall: bool = True) -> list[PastSearch]:
    """The run's searches, that for the question first, each with the vectors of its query and of its results.

    `include_recall` includes passages recalled from earlier turns."""
    done = [
        (call, run.results[call.id])
        for call in run.calls
        if call.id in run.results and not run.results[call.id].error and "query" in call.arguments
        if include_recall or call.tool != recall.name
    ]
    # Passages are scored by the search for the question, also where a planner's queries were made before it.
    done.sort(key=lambda each: str(each[0].arguments["query"]) != run.query)
    named = _name_calls(run)
    hits = await fetch_hits(run, context)
    vectors = await query_vectors(
        context.tool_context.search_context, [str(call.arguments["query"]) for call, _ in done]
    )
    return [
        PastSearch(
            _lead(call, call.id in named),
            vector,
            tuple(
                replace(hits[found.passage.id], scores={"fused": found.score}, rank=found.rank)
                for found in result.found
                if found.passage.id in hits
            ),
        )
        for (call, result), vector in zip(done, vectors, strict=True)
    ]


async def fetch_hits(run: Run, context: RunContext) -> Mapping[str, Hit]:
    """Every passage of the run with its vector: from memory, or fetched again after a restart."""
    missing = {found.passage.id for found in run.found} - context.tool_context.seen.keys()
    if missing:
        for hit in await fetch(context.tool_context.search_context, sorted(missing), context.tool_context.scope()):
            context.tool_context.seen[hit.passage.id] = hit
    return context.tool_context.seen
