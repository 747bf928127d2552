"""From checked claims to an answer. The one place that decides what is delivered; nothing unverified gets past it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assay.answer.extract import is_partial, missing
from assay.events import Drafted
from assay.evidence.quote import stands
from assay.run import Run
from assay.types import Answer, Block, Claim, Document, Evidence, Outcome, Shape, Verdict

Documents = Callable[[str], Document | None]


def checked(claim: Claim, evidence: Sequence[Evidence], document: Documents) -> Claim:
    """The claim with its verdict: its key is evidence of this run, its words stand in that evidence's passage, and the
    document says them at that place."""
    cited = {each.key: each for each in evidence if each.key in claim.cites}
    quote = claim.quote
    if not claim.cites:
        return replace(claim, verdict=Verdict.uncited, why="it cites nothing")
    if len(cited) < len(claim.cites):
        return replace(claim, verdict=Verdict.unsupported, why="it cites evidence that this run did not gather")
    if quote is None:
        return replace(claim, verdict=Verdict.unsupported, why="it is not a quotation")
    if not any(
        each.passage.doc_id == quote.doc_id and each.passage.start <= quote.start and quote.end <= each.passage.end
        for each in cited.values()
    ):
        return replace(claim, verdict=Verdict.unsupported, why="its words are not in the passage it cites")
    source = document(quote.doc_id)
    if source is None or not stands(quote, source):
        return replace(claim, verdict=Verdict.unsupported, why="the document does not say this at that place")
    return replace(claim, verdict=Verdict.supported, why="found word for word in the document")


def answer(run: Run, document: Documents, titles: Mapping[str, str], unread: Sequence[str] = ()) -> Answer:
    """What is delivered: the claims that passed, and an honest account of the rest. `titles` are those of what was found."""
    draft = run.draft or Drafted((), Shape.list)
    delivered = _passed(draft.blocks, run.checked)
    evidence = run.evidence
    keys = {key for block in delivered for claim in block.claims for key in claim.cites}
    gaps = missing(run.question, evidence, [claim for block in delivered for claim in block.claims], titles)
    failed = any(claim.verdict is not Verdict.supported for claim in run.checked.values())
    return Answer(
        question=run.question,
        blocks=delivered,
        outcome=_outcome(run.question, delivered, gaps, failed=failed),
        shape=draft.shape,
        conflicts=tuple(each for each in draft.conflicts if {each.left, each.right} <= keys),
        gaps=gaps,
        searched=run.searched,
        stopped=run.stopped.reason if run.stopped else "",
        near=tuple(
            each for claim in draft.near if (each := checked(claim, evidence, document)).verdict is Verdict.supported
        ),
        unread=tuple(unread),
        since=run.where.since,
        until=run.where.until,
    )


def _outcome(question: str, delivered: Sequence[Block], gaps: Sequence[str], *, failed: bool) -> Outcome:
    """Answered: every part of the question is spoken of. Partial: a claim failed, or something that was named is missing."""
    if not delivered:
        return Outcome.abstained
    return Outcome.partial if failed or is_partial(question, gaps) else Outcome.answered


def _passed(blocks: Sequence[Block], verdicts: dict[int, Claim]) -> tuple[Block, ...]:
    """The blocks again, with only those claims whose verdict is good; a block that loses all of them is gone."""
    kept: list[Block] = []
    place = 0
    for block in blocks:
        good: list[Claim] = []
        for _ in block.claims:
            claim = verdicts.get(place)
            place += 1
            if claim is not None and claim.verdict is Verdict.supported:
                good.append(claim)
        if good:
            kept.append(replace(block, claims=tuple(good)))
    return tuple(kept)
