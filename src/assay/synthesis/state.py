"""The state of a synthesis, computed from its events: portraits, questions, passages, insights, relations, plan. Pure.
What only older versions recorded is read here too, so that their accounts can still be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeVar

from assay.core.codec import digest
from assay.core.events import (
    Covered,
    Described,
    Gathered,
    InsightsDrawn,
    Merged,
    Paired,
    PassagesChosen,
    Related,
    Revised,
    SpineWritten,
    Translated,
)
from assay.core.run import Run
from assay.core.synthesis import Brief, Insight, Portrait, Question, Relation, Translation
from assay.core.types import Passage
from assay.language.identify import identify_language
from assay.models.ask import UNKNOWN_WINDOW
from assay.models.llm import Role

E = TypeVar("E")


def brief(run: Run) -> Brief:
    asked = run.asked.brief
    assert asked is not None, "a synthesis begins with its brief"
    return asked


def is_capable(run: Run) -> bool:
    """Whether a capable model reads, plans and writes. A small one only writes, document by document."""
    roles = (Role.write.value, Role.check.value)
    return run.asked.has_model and not any(each.small for each in run.asked.seats if each.role in roles)


def window(run: Run) -> int:
    """The smallest context window of the writing models, as recorded at the start of the run."""
    windows = (each.window for each in run.asked.seats if each.role == Role.write.value)
    return min(windows, default=0) or UNKNOWN_WINDOW


def language(run: Run) -> str:
    """In which language to write: that of the reader's question, else that of most documents."""
    spoken = Counter(
        found
        for event in opened(run).values()
        if (found := _language_of(tuple(each.passage.text for each in event.found[:4])))
    )
    found = identify_language(brief(run).focus) or next((code for code, _ in spoken.most_common(1)), "")
    return f"Write in the language with the code “{found}”." if found else "Write in the language of the documents."


@lru_cache(maxsize=4096)  # every prompt asks
def _language_of(texts: tuple[str, ...]) -> str | None:
    return identify_language("\n".join(texts))


def labels(run: Run) -> dict[str, str]:
    """Document → D1, D2, …: the label of a document in prompts, independent of its title."""
    return {doc: f"D{place}" for place, doc in enumerate(brief(run).documents, 1)}


def portraits(run: Run) -> dict[str, Portrait]:
    return {event.portrait.doc_id: event.portrait for event in _events_of(run, Described)}


def questions(run: Run) -> tuple[Question, ...]:
    """The questions of all passes, each once: a stage that was stopped and taken up again records them again."""
    return tuple({question.id: question for event in _events_of(run, Merged) for question in event.questions}.values())


def chosen_passages(run: Run) -> dict[str, PassagesChosen]:
    """What a search chose, by question."""
    return {event.question: event for event in _events_of(run, PassagesChosen) if not event.document}


def opened(run: Run) -> dict[str, PassagesChosen]:
    """The passages that are read, by document."""
    return {event.document: event for event in _events_of(run, PassagesChosen) if event.document}


def answers(run: Run) -> dict[str, tuple[str, ...]]:
    """Question → the evidence that answers it: what its insights cite, or, in older runs, what was weighed for it."""
    score = {each.key: each.score for each in run.evidence}
    found: dict[str, dict[str, None]] = {}
    for event in _events_of(run, Gathered):
        if event.question:
            keys = (each.key for each in event.evidence)
            found[event.question] = dict.fromkeys(sorted(keys, key=lambda key: (-score[key], key)))
    for insight in insights(run).values():
        if insight.question:
            found.setdefault(insight.question, {}).update(dict.fromkeys(insight.claim.cites))
    return {question: tuple(keys) for question, keys in found.items()}


def coverage_passes(run: Run) -> tuple[Covered, ...]:
    return _events_of(run, Covered)


def readings(run: Run) -> tuple[InsightsDrawn, ...]:
    """What was drawn from single documents, in order."""
    return tuple(event for event in _events_of(run, InsightsDrawn) if event.doc_id)


def read_again(run: Run) -> frozenset[str]:
    """The documents that were read since the first pass was recorded."""
    places = [place for place, event in enumerate(run.events) if isinstance(event, Covered)]
    later = run.events[places[0] :] if places else ()
    return frozenset(event.doc_id for event in later if isinstance(event, InsightsDrawn) and event.doc_id)


def points(run: Run) -> tuple[Insight, ...]:
    """The insights of all documents, by document."""
    own: dict[str, dict[str, Insight]] = {}
    for event in readings(run):
        own.setdefault(event.doc_id, {}).update({insight.id: insight for insight in event.insights})
    return tuple(insight for doc in brief(run).documents for insight in own.get(doc, {}).values())


def insights(run: Run) -> dict[str, Insight]:
    return {insight.id: insight for event in _events_of(run, InsightsDrawn) for insight in event.insights}


def pairing(run: Run) -> Paired | None:
    """What rules have compared."""
    return next(iter(_events_of(run, Paired)), None)


def compared(run: Run) -> str:
    """What was compared, by rule and by a model, in words."""
    return next((event.how for event in reversed(run.events) if isinstance(event, Paired)), "")


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
    """The translations of the text as it is now: none that was made before a claim was last changed."""
    since = max((place for place, event in enumerate(run.events) if isinstance(event, Revised)), default=0)
    later = (event for event in run.events[since:] if isinstance(event, Translated))
    return {event.translation.audience: event.translation for event in later}


def evidence_key(passage: Passage) -> str:
    """The key of a passage: the same in every request and every reading."""
    return digest(f"{passage.doc_id} {passage.start} {passage.end}")[:8]


def _events_of(run: Run, kind: type[E]) -> tuple[E, ...]:
    return tuple(event for event in run.events if isinstance(event, kind))


def unrecorded(run: Run, events: Iterable[E]) -> list[E]:
    """The events that a stage still has to record: it may have been stopped among them, and makes them all again."""
    return [event for event in events if event not in run.events]
