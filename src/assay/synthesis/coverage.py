"""Coverage: how much each document contributes to the synthesis. Documents that gave little are read once more."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.core.events import Covered, Event
from assay.core.run import Run
from assay.core.synthesis import Coverage
from assay.core.types import Verdict
from assay.language.injection import is_suspicious
from assay.synthesis import state
from assay.synthesis.read import unseen_passages

THIN = 2  # a readable document with fewer insights is read once more
NOT_FOUND = "it was read, and nothing was found in it that can be quoted"
NOT_REACHED = "the time was used up before it was read"
ORDERS = "what was found in it reads like an instruction to a model"
NO_CLAIM_HELD = "what it says could not be told in words that hold"


async def cover(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Record the coverage of a pass. After the first pass of a capable model, documents with fewer than `THIN` insights
    are marked thin, and those of which searches found more than was read."""
    pass_ = len(state.coverage_passes(run)) + 1
    rows = ledger(run)
    again = unseen_passages(run)
    thin = tuple(
        row.doc_id for row in rows if row.doc_id in state.opened(run) and (row.insights < THIN or row.doc_id in again)
    )
    yield Covered(rows, thin if pass_ == 1 and state.is_capable(run) else (), pass_)


def ledger(run: Run) -> tuple[Coverage, ...]:
    """One row per document, in label order. A claim counts for every document it cites."""
    evidence = {each.key: each.quote.doc_id for each in run.evidence}
    asked = Counter(doc for question in state.questions(run) for doc in question.documents)
    noted = Counter(insight.doc_id for insight in state.points(run))
    gathered = Counter(evidence.values())
    drawn = Counter(insight.doc_id for insight in state.insights(run).values())
    related = Counter(side.doc_id for each in state.relations(run) for side in (each.left, each.right))
    passed = [claim for claim in run.checked.values() if claim.verdict is Verdict.supported]
    told = Counter(doc for claim in passed for doc in {evidence[key] for key in claim.cites if key in evidence})
    rows: list[Coverage] = []
    for doc in state.brief(run).documents:
        reason = _reason(run, doc, gathered[doc], told[doc])
        insights = noted[doc] or drawn[doc]
        rows.append(Coverage(doc, asked[doc], gathered[doc], insights, told[doc], related[doc], reason))
    return tuple(rows)


def _reason(run: Run, doc: str, evidence: int, claims: int) -> str:
    """Why a document contributes nothing; empty if it contributes."""
    portrait = state.portraits(run).get(doc)
    if portrait is not None and portrait.empty:
        return portrait.empty
    if run.stopped is not None and doc not in {event.doc_id for event in state.readings(run)}:
        return NOT_REACHED
    if not evidence:
        found = [each.passage for each in run.found if each.passage.doc_id == doc]
        return ORDERS if found and all(is_suspicious(passage.text) for passage in found) else NOT_FOUND
    return NO_CLAIM_HELD if run.checked and not claims else ""
