"""What a turn knows of earlier turns: recent answers at length, older ones shortened, and what each cites. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.run import Run
from assay.core.types import Answer, Exchange, Outcome

FULL, SHORT = 800, 160  # characters of an answer: of the latest turns, and of older ones
LATEST = 4  # turns whose answers are given at length
MOST = 40  # turns in the history
WITHHELD = "(withheld)"  # an answer about documents that may no longer be read


def history(turns: Sequence[Run]) -> tuple[Exchange, ...]:
    """The earlier turns, oldest first. Of an unfinished turn only the question is given. Cited passages are always listed,
    even of shortened answers, so that they can be cited again."""
    latest = turns[-MOST:]
    return tuple(_exchange(run, FULL if at >= len(latest) - LATEST else SHORT) for at, run in enumerate(latest))


def _exchange(run: Run, limit: int) -> Exchange:
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
        _shorten(answer, limit),
        tuple(dict.fromkeys(passage.doc_id for passage in cited)),
        tuple(dict.fromkeys(passage.id for passage in cited)),
    )


def _shorten(answer: Answer, limit: int) -> str:
    if answer.outcome is Outcome.direct:
        return f"(not from the documents) {answer.said}"[:limit]
    if answer.outcome is Outcome.abstained:
        return "(the documents do not answer it)"
    text = ""
    for claim in answer.claims:
        words = " ".join(claim.words.split())
        if text and len(text) + len(words) > limit:
            return f"{text} …"
        text = f"{text} {words}".strip()
    return text[:limit]
