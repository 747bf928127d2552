"""Replaces the draft's text with a reviewer's."""

from __future__ import annotations

from collections.abc import AsyncIterator

from assay.agent.context import RunContext
from assay.core.events import (
    Event,
    Revised,
    RevisionCause,
)
from assay.core.run import Run
from assay.core.types import Claim


async def edit(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Replace the draft's text with a reviewer's; it is checked like any other."""
    reviewed = run.reviews[-1]
    for each in run.edits_due:
        claim = run.claims_by_place.get(each.place)
        if claim is not None and each.text.strip():
            edited = Claim(each.text.strip(), claim.cites, edited=reviewed.by)
            yield Revised(each.place, edited, "edited in review", f"review: {reviewed.by}", RevisionCause.review)
        else:
            yield Revised(each.place, None, "dropped in review", f"review: {reviewed.by}", RevisionCause.review)
