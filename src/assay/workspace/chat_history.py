"""What a turn knows of those before it: the latest in full, older ones in a line each, and where all of it stands. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.run import Run
from assay.core.types import Answer, Exchange, Outcome

FULL, SHORT = 800, 160  # characters of an answer, of the latest turns and of older ones
LATEST = 4  # turns that are told in full
MOST = 40  # turns that are told at all
WITHHELD = "(withheld)"  # an answer that spoke of what may not be read any more


def history(turns: Sequence[Run]) -> tuple[Exchange, ...]:
    """The turns before, oldest first. A turn that was not finished is told by its question; whatever is shortened, the passages
    it cites stay known, so that they can be brought up and cited again."""
    told = turns[-MOST:]
    return tuple(_exchange(run, FULL if place >= len(told) - LATEST else SHORT) for place, run in enumerate(told))


def _exchange(run: Run, room: int) -> Exchange:
    answer = run.answer
    if run.withheld:
        return Exchange(run.id, "", WITHHELD)
    if answer is None:
        return Exchange(run.id, run.question, "(not finished)")
    known = {each.key: each.passage for each in run.evidence}
    cited = [known[key] for claim in answer.claims for key in claim.cites if key in known]
    return Exchange(
        run.id,
        run.question,
        _said(answer, room),
        tuple(dict.fromkeys(passage.doc_id for passage in cited)),
        tuple(dict.fromkeys(passage.id for passage in cited)),
    )


def _said(answer: Answer, room: int) -> str:
    if answer.outcome is Outcome.direct:
        return f"(not from the documents) {answer.said}"[:room]
    if answer.outcome is Outcome.abstained:
        return "(the documents do not answer it)"
    said = ""
    for claim in answer.claims:
        words = " ".join(claim.words.split())
        if said and len(said) + len(words) > room:
            return f"{said} …"
        said = f"{said} {words}".strip()
    return said[:room]
