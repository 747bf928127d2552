"""What a turn knows of earlier turns: recent answers at length, older ones summed up or shortened, what each cites, and the
last answer in full. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.agent.prompt_window import DIRECT, LATEST, summary_of
from assay.core.run import Run
from assay.core.types import Answer, Exchange, Outcome, Usage

FULL, SHORT = 800, 160  # characters of an answer: of the latest turns, and of older ones
MOST = 40  # turns in the history
WITHHELD = "(withheld)"  # an answer about documents that may no longer be read


def history(turns: Sequence[Run]) -> tuple[Exchange, ...]:
    """The earlier turns, oldest first: a summary of the oldest if a model has made one, then the others. Of an unfinished
    turn only the question is given. Cited passages are always listed, even of shortened answers, so that they can be
    cited again."""
    summary, rest = _summarised(turns)
    latest = rest[-MOST:]
    exchanges = [_exchange(run, FULL if at >= len(latest) - LATEST else SHORT) for at, run in enumerate(latest)]
    return (*summary, *_with_last_answer(exchanges, latest))


def _summarised(turns: Sequence[Run]) -> tuple[tuple[Exchange, ...], Sequence[Run]]:
    """The latest summary, and the turns that it does not cover. It is not used if a turn that it covers is withheld."""
    place = {run.id: at for at, run in enumerate(turns)}
    for done in (run.summarised for run in reversed(turns)):
        if done is None or not done.words or done.upto not in place:
            continue
        end = place[done.upto] + 1
        if not any(run.withheld for run in turns[:end]):
            return (summary_of(done),), turns[end:]
    return (), turns


def _with_last_answer(exchanges: Sequence[Exchange], turns: Sequence[Run]) -> list[Exchange]:
    """The last answer from the documents, in full with what it cites: the next turn may work on it. Talk since then is
    passed over."""
    found = list(exchanges)
    for at in range(len(turns) - 1, -1, -1):
        answer = turns[at].answer
        if answer is not None and answer.outcome is Outcome.direct:
            continue
        if answer is not None and answer.claims and not turns[at].withheld:
            keys = answer.cited_keys
            whole = replace(answer, searched=(), near=(), unread=(), usage=Usage())
            cited = tuple(replace(each, note="") for each in turns[at].evidence if each.key in keys)
            found[at] = replace(found[at], whole=whole, evidence=cited)
        break
    return found


def _exchange(run: Run, limit: int) -> Exchange:
    answer = run.answer
    if run.withheld:
        return Exchange(run.id, "", WITHHELD)
    if answer is None:
        return Exchange(run.id, run.asked.question, "(not finished)")  # a reviewer may not have seen the rest
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
        return f"{DIRECT} {answer.said}"[:limit]
    if answer.outcome is Outcome.abstained:
        return "(the documents do not answer it)"
    text = ""
    for claim in answer.claims:
        words = " ".join(claim.words.split())
        if text and len(text) + len(words) > limit:
            return f"{text} …"
        text = f"{text} {words}".strip()
    return text[:limit]
