"""The run's searches with their vectors, and pieces of the evidence as the answer model reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.agent.context import RunContext
from assay.agent.toolbox.search import follow, recall
from assay.answer import extracts, weigh
from assay.answer.extracts import ReadPiece
from assay.core.events import Call, Decided
from assay.core.run import Run
from assay.core.types import Evidence, Hit
from assay.index import hop_ranking
from assay.index.hop_ranking import Lead, PastSearch
from assay.index.retrieve import fetch, query_vectors
from assay.language.identify import identify_language

CALIBRATED = frozenset({None, "en"})  # languages of text for which the probability was fitted; None: too short to tell


@dataclass(frozen=True, slots=True)
class ReadEvidence:
    """The pieces of the evidence as the answer model reads them; without such a model, by what they say of the question."""

    pieces: Sequence[ReadPiece]
    calibrated: bool  # whether its probabilities were fitted on such text


async def read_evidence(run: Run, context: RunContext) -> ReadEvidence:
    """The pieces of the best passages, read for the question."""
    weighed: Sequence[Evidence] = run.evidence
    if run.asked.has_model:
        done = await past_searches(run, context)
        ranked = hop_ranking.rank_passages(run.query, done, context.hops) if done else []
        weighed = weigh.rescore(run.evidence, {each.hit.passage.id: each.score for each in ranked})
    found = extracts.worth_reading(run.query, extracts.pieces(extracts.best_passages(weighed), context.document))
    model = context.tool_context.search_context.answer_model
    readings = await model.read(run.query, [each.text for each in found]) if model else None
    read = extracts.read_pieces(run.query, found, readings)
    if model is None or not read:
        return ReadEvidence(read, calibrated=False)
    best = max(read, key=lambda each: each.score).piece.quote
    source = context.document(best.doc_id)
    languages = {identify_language(run.query), source.language if source else None}
    alone = run.query == run.question  # no words of an earlier turn
    return ReadEvidence(read, calibrated=alone and languages <= CALIBRATED)


async def may_answer_turn(run: Run, context: RunContext, read: ReadEvidence) -> bool:
    """Whether one of the best pieces may answer the turn itself, where it was searched for with words of the turn before."""
    model = context.tool_context.search_context.answer_model
    best = extracts.choose(read.pieces)
    if model is None or run.query == run.question or not best:
        return True
    own = await model.read(run.question, [each.piece.text for each in best])
    return max(each.answers for each in own) >= extracts.PERHAPS


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
    decided = [event for event in run.events if isinstance(event, Decided)]
    first = next((call.id for event in decided if event.is_round for call in event.calls), "")
    by_rule = (event for event in decided if not event.recalls and (event.hops or not run.asked.has_model))
    return frozenset(call.id for event in by_rule for call in event.calls) - {first}


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
