"""Ranks new results by rule and passes only the best on to a model: retrieval is cheap, model calls are not. See
docs/decisions/0008-cost.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.agent.hops import scoring
from assay.agent.past_searches import past_searches
from assay.agent.toolbox import TOOLS
from assay.core.events import Decided, Event, Found, Gathered, Mode, Route, ToolRan
from assay.core.run import Run
from assay.core.types import Hit, Passage
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.prompts.fence import context_label, fence

OVERLAP = 0.7  # share of a passage that another one holds, from which on it says nothing new
RERANKED = 40  # passages of the shortlist that a model scores


@dataclass(frozen=True, slots=True)
class SiftLimits:
    """Most passages weighed per round: the best of the run, and the best of each call that was decided on."""

    of_run: int
    of_call: int
    read: int = 8  # of a call that reads within one document
    of_lookup: int = 8  # together, of a look-up: they are weighed in one request


SIFT_LIMITS = {Mode.quick: SiftLimits(6, 3), Mode.balanced: SiftLimits(12, 4), Mode.thorough: SiftLimits(16, 6)}


def sift_due(run: Run) -> bool:
    """Whether several results are unweighed and were not sifted since they came in."""
    if run.every or run.route is Route.one_shot or len(run.unweighed) < 2:
        return False
    last = next((event for event in reversed(run.events) if isinstance(event, Gathered | ToolRan)), None)
    return isinstance(last, ToolRan)


async def sift(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Skip the unpromising passages; the rest is weighed next."""
    limits = SIFT_LIMITS[run.asked.mode]
    waiting = dict.fromkeys(found.passage.id for found in run.unweighed)
    ranked = [each.hit for each in scoring.rank_passages(run.query, await past_searches(run, context), context.hops)]
    if context.reranks and not context.small(Role.weigh):
        ranked = await _rerank(run, context, ranked)
    best: list[str] = []
    for result, called in _of_this_round(run):
        most = limits.read if called in TOOLS and TOOLS[called].reads_one else limits.of_call
        best += [found.passage.id for found in result if found.passage.id in waiting][:most]
    # Ranked over the whole run, so that a later round does not weigh what an earlier one rightly skipped.
    first = [hit.passage.id for hit in ranked[: limits.of_run] if hit.passage.id in waiting]
    kept = _distinct([*best, *first], run)
    if run.route is Route.lookup:
        kept = kept[: max(limits.of_lookup, len(best))]
    yield Gathered((), skipped=tuple(each for each in waiting if each not in kept))


class Score(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str
    score: int = Field(ge=0, le=10)


class Scores(BaseModel):
    model_config = ConfigDict(extra="forbid")

    scores: list[Score] = Field(max_length=RERANKED)


async def _rerank(run: Run, context: RunContext, ranked: Sequence[Hit]) -> list[Hit]:
    """The shortlist in the order of a model's scores; the recorded reply keeps them. Without a reply, as it was."""
    near, rest = ranked[:RERANKED], ranked[RERANKED:]

    def build_prompt(room: int) -> Mapping[str, str]:
        own = max(20, (room - 2 * estimate_tokens(run.question)) // max(1, len(near)) - 40)
        shown = [
            fence(
                mark(run),
                f"P{place}, from {hit.title!r}{context_label(hit.passage)}",
                fit_to_tokens(hit.passage.text, own),
            )
            for place, hit in enumerate(near, 1)
        ]
        return {"question": run.question, "passages": "\n".join(shown)}

    reply = await context.ask(
        Role.weigh,
        "rerank",
        Scores,
        build_prompt,
        documents=sorted({hit.passage.doc_id for hit in near}),
        max_tokens=100 + 20 * len(near),
    )
    if isinstance(reply, NoReply):
        return list(ranked)
    scores = {each.id: each.score for each in reversed(reply[0].scores)}
    order = sorted(enumerate(near, 1), key=lambda pair: (-scores.get(f"P{pair[0]}", 0), pair[0]))
    return [*(hit for _, hit in order), *rest]


def _distinct(passages: Sequence[str], run: Run) -> list[str]:
    """The passages without those that say the same as an earlier one, or as one weighed before: the same words, or mostly
    the same place of a document."""
    found = {found.passage.id: found.passage for found in run.found}
    seen = [each.passage for each in run.evidence]
    kept: list[str] = []
    for each in dict.fromkeys(passages):
        if not any(_is_same(found[each], other) for other in seen):
            seen.append(found[each])
            kept.append(each)
    return kept


def _is_same(one: Passage, other: Passage) -> bool:
    if one.doc_id != other.doc_id:
        return one.text.split() == other.text.split()
    shared = min(one.end, other.end) - max(one.start, other.start)
    return shared >= OVERLAP * (one.end - one.start)


def _of_this_round(run: Run) -> list[tuple[Sequence[Found], str]]:
    """Results of the last calls decided on, and what was read since; searches that follow names are ranked with the
    rest."""
    found: list[tuple[Sequence[Found], str]] = []
    results: dict[str, ToolRan] = run.results
    for event in reversed(run.events):
        if isinstance(event, Decided) and event.calls:
            calls = [call for call in event.calls if call.id in results]
            found += [
                (results[call.id].found, call.tool)
                for call in calls
                if not event.hops or (call.tool in TOOLS and TOOLS[call.tool].reads_one)
            ]
            if not event.hops:
                break
    return found
