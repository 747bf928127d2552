"""The state of a synthesis, computed from its events: portraits, questions, evidence, insights, relations, spine.
Pure."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from assay.core.account import Brief, Insight, Portrait, Question, Relation, Translation
from assay.core.codec import digest
from assay.core.events import (
    Covered,
    Described,
    Gathered,
    InsightsDrawn,
    Merged,
    Paired,
    PassagesChosen,
    Questioned,
    Related,
    SpineWritten,
    Translated,
)
from assay.core.run import Run
from assay.core.types import Evidence, Quote

AT_ONCE = 8  # tasks that run concurrently

E = TypeVar("E")
T = TypeVar("T")


def brief(run: Run) -> Brief:
    asked = run.asked.brief
    assert asked is not None, "a synthesis begins with its brief"
    return asked


def labels(run: Run) -> dict[str, str]:
    """Document → D1, D2, …: the label of a document in prompts, independent of its title."""
    return {doc: f"D{place}" for place, doc in enumerate(brief(run).documents, 1)}


def portraits(run: Run) -> dict[str, Portrait]:
    return {event.portrait.doc_id: event.portrait for event in _events_of(run, Described)}


def questions_of_pass(run: Run, pass_: int = 1) -> dict[str, Questioned]:
    """The questions of each document in a pass; the comparative questions are under ""."""
    return {event.doc_id: event for event in _events_of(run, Questioned) if event.pass_ == pass_}


def merges(run: Run) -> tuple[Merged, ...]:
    return _events_of(run, Merged)


def questions(run: Run) -> tuple[Question, ...]:
    """The questions of all passes."""
    return tuple(question for event in merges(run) for question in event.questions)


def chosen_passages(run: Run) -> dict[str, PassagesChosen]:
    return {event.question: event for event in _events_of(run, PassagesChosen)}


def gathered_evidence(run: Run) -> dict[str, Gathered]:
    return {event.question: event for event in _events_of(run, Gathered) if event.question}


def evidence_by_question(run: Run) -> dict[str, tuple[Evidence, ...]]:
    """The evidence of each question, best first. A span that answers two questions is one piece of evidence."""
    known = {each.key: each for each in run.evidence}
    return {
        question: tuple(sorted((known[each.key] for each in event.evidence), key=lambda each: (-each.score, each.key)))
        for question, event in gathered_evidence(run).items()
    }


def evidence_by_document(run: Run) -> dict[str, dict[str, tuple[Evidence, ...]]]:
    """Question → document → its evidence. Each such pair gets one insight."""
    found: dict[str, dict[str, tuple[Evidence, ...]]] = {}
    for question, evidence in evidence_by_question(run).items():
        own: dict[str, tuple[Evidence, ...]] = {}
        for each in evidence:
            own[each.quote.doc_id] = (*own.get(each.quote.doc_id, ()), each)
        found[question] = own
    return found


def coverage_passes(run: Run) -> tuple[Covered, ...]:
    return _events_of(run, Covered)


def insights_by_question(run: Run) -> dict[str, InsightsDrawn]:
    return {event.question: event for event in _events_of(run, InsightsDrawn)}


def insights(run: Run) -> dict[str, Insight]:
    return {insight.id: insight for event in _events_of(run, InsightsDrawn) for insight in event.insights}


def pairing(run: Run) -> Paired | None:
    return next(iter(_events_of(run, Paired)), None)


def related_blocks(run: Run) -> dict[int, Related]:
    return {event.block: event for event in _events_of(run, Related)}


def relations(run: Run) -> tuple[Relation, ...]:
    """The relations without duplicates: two questions may lead to the same two spans."""
    found: dict[tuple[str, frozenset[tuple[str, int]]], Relation] = {}
    for _, event in sorted(related_blocks(run).items()):
        for each in event.relations:
            spans = frozenset((side.doc_id, side.quote.start) for side in (each.left, each.right))
            found.setdefault((each.type, spans), each)
    return tuple(found.values())


def spine(run: Run) -> SpineWritten | None:
    return next(iter(_events_of(run, SpineWritten)), None)


def translations(run: Run) -> dict[str, Translation]:
    return {event.translation.audience: event.translation for event in _events_of(run, Translated)}


def evidence_key(quote: Quote) -> str:
    """The key of a piece of evidence in a synthesis: one per span, whichever questions it answers."""
    return digest(f"{quote.doc_id} {quote.start} {quote.end}")[:8]


def insight_id(question: str, label: str) -> str:
    return f"{question}-{label}"


def _events_of(run: Run, kind: type[E]) -> tuple[E, ...]:
    return tuple(event for event in run.events if isinstance(event, kind))


def batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[at : at + size] for at in range(0, len(items), size)]


async def run_in_order(work: Iterable[Coroutine[None, None, T]], at_once: int = AT_ONCE) -> AsyncIterator[T]:
    """Results in input order, whatever order the work finishes in, so that an interrupted run records the same
    events. At most `at_once` tasks run ahead of the first unfinished one, which limits memory and yields early
    results first."""
    left = iter(work)
    tasks = deque(asyncio.ensure_future(each) for each in islice(left, at_once))
    try:
        while tasks:
            yield await tasks[0]
            tasks.popleft()
            tasks.extend(asyncio.ensure_future(each) for each in islice(left, 1))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in left:
            each.close()  # never started
