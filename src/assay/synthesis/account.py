"""The account of a synthesis, computed from its events: the input of page, file and API. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from assay.core.events import Gathered, fallbacks
from assay.core.events.describe import count_of
from assay.core.run import Run
from assay.core.synthesis import (
    Diagnostics,
    Pipeline,
    Relation,
    RelationType,
    RerankerComparison,
    SpineSentence,
    Synthesis,
)
from assay.core.types import Answer, Document
from assay.language.injection import is_command
from assay.language.quotation import stands
from assay.language.readability import measure_readability
from assay.synthesis import audience, state
from assay.synthesis.coverage import ledger
from assay.synthesis.read import unseen_passages

LIMITED = {"money": "money", "tokens": "tokens", "calls": "calls of a model", "time": "time"}


def account(run: Run, document: Callable[[str], Document | None]) -> Synthesis:
    """The account of a delivered synthesis. A relation is included only while both documents still contain its
    quotations."""
    document = cache(document)
    answer = run.answer
    assert answer is not None, "a synthesis that is not delivered has no account"
    brief, spine = state.brief(run), state.spine(run)
    known = state.portraits(run)
    words = "\n\n".join(claim.words for claim in answer.claims)
    return Synthesis(
        run=run.id,
        brief=brief,
        question=run.question,
        made_on=run.asked.today,
        models=tuple(dict.fromkeys(role_model.model for role_model in run.asked.seats)),
        documents=tuple(known[doc] for doc in brief.documents if doc in known),
        questions=state.questions(run),
        answers=state.answers(run),
        evidence=run.evidence,
        insights=tuple(state.insights(run).values()),
        relations=tuple(each for each in state.relations(run) if is_quoted_on_both_sides(each, document)),
        pairing=state.compared(run),
        theme=spine.theme if spine else "",
        spine=_spine(run, answer),
        themes=spine.themes if spine else (),
        narrative=answer,
        readability=measure_readability(words),
        translations=tuple(audience.align_with_answer(each, run) for each in state.translations(run).values()),
        ledger=ledger(run),
        diagnostics=diagnose(run),
        notes=notes(run),
        usage=run.usage,
        left_out=left_out(run, answer),
    )


def _spine(run: Run, answer: Answer) -> tuple[SpineSentence, ...]:
    """The sentences that carry the text: its first paragraph, if it was planned; in older runs those recorded."""
    spine = state.spine(run)
    if spine is None or spine.spine:
        return spine.spine if spine else ()
    where = {each.key: each.quote.doc_id for each in run.evidence}
    first = answer.blocks[0].claims if answer.blocks else ()
    return tuple(SpineSentence(claim, tuple(dict.fromkeys(where[key] for key in claim.cites))) for claim in first)


def left_out(run: Run, answer: Answer) -> tuple[str, ...]:
    """What was not read, what was not shown to a model, and which points the text does not tell, each with the reason."""
    labels = state.labels(run)
    found: list[str] = []
    for doc, event in state.opened(run).items() if run.asked.has_model else ():  # rules read all of it
        if len(event.found) < event.considered:
            more = len(unseen_passages(run).get(doc, ()))
            found.append(
                f"{labels[doc]} was too long to be read whole: {len(event.found) + more:,} of {event.considered:,} passages "
                "were read, its beginning, its end, the beginnings of its sections and what searches found."
            )
        if orders := sum(is_command(each.passage.text) for each in event.found):
            found.append(f"{labels[doc]}: {orders:,} passages give a model orders and were not shown to it.")
    cited = {key for claim in answer.claims for key in claim.cites}
    untold = Counter(point.doc_id for point in state.points(run) if not cited & set(point.claim.cites))
    found += [
        f"{labels[doc]}: {count:,} noted {'point is' if count == 1 else 'points are'} not in the text: the writer left "
        f"{'it' if count == 1 else 'them'} out, or what was written did not hold."
        for doc, count in untold.items()
    ]
    return tuple(found)


def is_quoted_on_both_sides(relation: Relation, document: Callable[[str], Document | None]) -> bool:
    sides = ((side.quote, document(side.doc_id)) for side in (relation.left, relation.right))
    return all(source is not None and stands(quote, source) for quote, source in sides)


def notes(run: Run) -> tuple[str, ...]:
    """Notes for the reader on how the account was made: that there was no model, or where one could not be used."""
    brief = state.brief(run)
    notes: list[str] = []
    if not run.asked.has_model:
        notes.append(
            "Made without a language model: the documents' own sentences. A model would add one text that tells them "
            "together, how the documents relate, and questions that compare them."
        )
        if set(brief.audiences) != {"expert"}:
            notes.append("Texts for other readers need a model; they hold the same quotations.")
    elif not state.is_capable(run):
        notes.append(
            "The model is small: sentences were chosen by rule, and of what it wrote only what nearly repeats a sentence of "
            "its document stands."
        )
    for why in sorted({why for event in run.events for why in fallbacks(event)}):
        notes.append(
            f"A limit on {LIMITED[why]} was reached: from there on it went by rule."
            if why in LIMITED
            else "Some replies of the model could not be used: there it went by rule."
        )
    inexact = sum(len(event.inexact) for event in run.events if isinstance(event, Gathered))
    if inexact:
        notes.append(
            f"{inexact} quotations that a model gave were not in the passage; its best sentence stands instead."
        )
    return tuple(notes)


# --- diagnostics -----------------------------------------------------------------------------------------------------
# What other rerankers would have selected, and what the types of relations mean. They affect no decision.

FEW = 3  # with fewer relations, the distribution means nothing
ONE_KIND = 0.6  # share of one type above which the types are no mix
TORN = 0.3  # share of contradictions that is reported as high


def diagnose(run: Run) -> Diagnostics:
    counts = Counter(relation.type for relation in state.relations(run))
    dropped = tuple(why for _, event in sorted(state.related_blocks(run).items()) for why in event.dropped)
    were = f"{count_of(len(dropped), 'proposal')} {'was' if len(dropped) == 1 else 'were'} dropped"
    on_dropped = f"{were}, for the reasons given." if dropped else ""
    return Diagnostics(
        types={tie.value: counts[tie] for tie in RelationType},
        reading=" ".join(filter(None, (state.compared(run), _on_types(run, counts), on_dropped))),
        dropped=dropped,
        rerankers=rerankers(run),
    )


def _on_types(run: Run, counts: Counter[RelationType]) -> str:
    """What the distribution of types means, for a user who may ask again."""
    total = counts.total()
    if state.brief(run).pipeline is Pipeline.summary:
        return "A summary tells contradictions and looks for no other relations; the synthesis pipeline does."
    limit = "" if state.is_capable(run) else "By rule only contradictions are recognised."
    torn = counts[RelationType.contradiction]
    if total < FEW or limit:
        return f"{count_of(total, 'relation') if total else 'No relation was found'}. {limit}".strip()
    if torn >= TORN * total:
        return f"{torn} of {count_of(total, 'relation')} are contradictions: look at those first."
    kind, most = counts.most_common(1)[0]
    if most > ONE_KIND * total:
        return (
            f"{most} of {count_of(total, 'relation')} are of one type ({kind}): what was noted may be too general to "
            "bring out how the documents differ. Say what you want to know (--focus), or ask more of them (--questions)."
        )
    kinds = sum(count > 0 for count in counts.values())
    return f"A healthy mix: {count_of(total, 'relation')} of {count_of(kinds, 'type')}."


def rerankers(run: Run) -> tuple[RerankerComparison, ...]:
    """The reranker in use, and how far each compared one selected the same passages, over the questions for which
    they were compared; empty if none was."""
    in_use, selected, shared = Counter[str](), Counter[str](), Counter[str]()
    for event in (each for each in state.chosen_passages(run).values() if each.others):
        own = {found.passage.id for found in event.found}
        in_use[event.by] += len(own)
        for name, others in event.others.items():
            selected[name] += len(set(others))
            shared[name] += len(own & set(others))
    return (
        *(RerankerComparison(name, count, count) for name, count in in_use.items()),
        *(RerankerComparison(name, selected[name], shared[name]) for name in selected),
    )
