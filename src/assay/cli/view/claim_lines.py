"""Claims and judge requests in detail, as lines below a record or a claim. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.answer import claim_details, compose, render
from assay.answer.checking.judge import Rulings
from assay.core.events import Checked, Event, ModelReplied
from assay.core.events.describe import LONGEST
from assay.models.replies import UnreadableReply, read

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.core.types import Basis, Claim, Document

JUDGES = 3  # the version of the decision code from which on a judge names the words that carry a claim


def event_lines(event: Event, run: Run, document: Callable[[str], Document | None]) -> list[str]:
    """What stands below the line of an event: proof steps and words of a claim, or the verdicts of a request."""
    match event:
        case ModelReplied(prompt="check", text=text) if run.asked.version >= JUDGES:
            return _shortened(_rulings(text))
        case Checked(place=place, claim=claim) if claim.working or claim.carried_by or claim.disputed:
            working = claim_details.show_working(claim, run.evidence, document)
            basis = claim_details.basis(claim, opinion=place in compose.opinions(run))
            return _shortened(claim_lines(claim, basis, claim_details.judged_by(claim), working))
        case _:
            return []


def claim_lines(claim: Claim, basis: Basis, by: str, working: claim_details.ShownWorking | None) -> list[str]:
    """Basis, who gave the verdict, the words that carry the claim, and its working."""
    return [
        f"{claim_details.BASIS_TEXT[basis]}{f', judged by {by}' if by else ''}",
        *filter(None, [claim_details.dispute(claim)]),
        *(f"words: “{render.one_line(each.text)}”" for each in claim.carried_by if each.text),
        *(f"working: {each}" for each in (working.lines if working else ())),
    ]


def _rulings(reply: str) -> list[str]:
    """The verdicts of a reply, and its judgement of the whole. A reply that is not usable has none."""
    try:
        parsed = read(Rulings, reply)
    except UnreadableReply:
        return []
    lines = [f"{each.claim}. {each.verdict}{f': {each.why}' if each.why else ''}" for each in parsed.rulings]
    whole = [
        *([] if parsed.answers else ["they do not answer the question"]),
        *([f"missing: {'; '.join(parsed.missing)}"] if parsed.missing else []),
        *([f"search for: {parsed.search}"] if parsed.search else []),
    ]
    return [*lines, *([f"as an answer: {', '.join(whole)}"] if whole else [])]


def _shortened(lines: list[str]) -> list[str]:
    flat = [" ".join(each.split()) for each in lines]
    return [each if len(each) <= LONGEST else f"{each[: LONGEST - 1]}…" for each in flat]
