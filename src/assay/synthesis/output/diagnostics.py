"""Diagnostics of a synthesis, computed from its events: the distribution of relation types with an interpretation,
and what other rerankers would have selected. They affect no decision. Pure."""

from __future__ import annotations

from collections import Counter

from assay.core.run import Run
from assay.core.synthesis import Diagnostics, Pipeline, RelationType, RerankerComparison
from assay.synthesis import state

FEW = 3  # with fewer relations, the distribution means nothing
ALIKE = 0.9  # share of complementary and parallel relations from which the questions brought out no difference
TORN = 0.3  # share of contradictions that is reported as high


def diagnostics(run: Run) -> Diagnostics:
    counts = Counter(relation.type for relation in state.relations(run))
    dropped = tuple(why for _, event in sorted(state.related_blocks(run).items()) for why in event.dropped)
    return Diagnostics(
        types={tie.value: counts[tie] for tie in RelationType},
        reading=" ".join(part for part in (_reading(run, counts), _on_dropped(len(dropped))) if part),
        dropped=dropped,
        rerankers=rerankers(run),
    )


def _reading(run: Run, counts: Counter[RelationType]) -> str:
    """What was compared, and what the distribution of types means, for a user who may ask again."""
    return " ".join(part for part in (state.compared(run), _on_types(run, counts)) if part)


def _on_types(run: Run, counts: Counter[RelationType]) -> str:
    total = counts.total()
    if state.brief(run).pipeline is Pipeline.summary:
        return "A summary tells contradictions and looks for no other relations; the synthesis pipeline does."
    limit = "" if state.is_capable(run) else "By rule only contradictions and shared names are recognised."
    torn, alike = counts[RelationType.contradiction], counts[RelationType.complement] + counts[RelationType.parallel]
    if not total:
        return f"No relation was found. {limit}".strip()
    if total < FEW or limit:
        return f"{_several(total, 'relation')}. {limit}".strip()
    if torn >= TORN * total:
        return f"{torn} of {_several(total, 'relation')} are contradictions: look at those first."
    if alike >= ALIKE * total:
        return (
            f"{alike} of {_several(total, 'relation')} are complementary or parallel: what was noted is too general to "
            "bring out how the documents differ. Say what you want to know (--focus), or ask more of them (--questions)."
        )
    kinds = sum(count > 0 for count in counts.values())
    return f"A healthy mix: {_several(total, 'relation')} of {_several(kinds, 'type')}."


def _on_dropped(count: int) -> str:
    if not count:
        return ""
    return (
        f"{_several(count, 'relation')} {'was' if count == 1 else 'were'} proposed and dropped, for the reasons given."
    )


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def rerankers(run: Run) -> tuple[RerankerComparison, ...]:
    """The reranker in use, and how far each compared one selected the same passages, over the questions for which
    they were compared; empty if none was."""
    compared = [event for event in state.chosen_passages(run).values() if event.others]
    in_use, selected, shared = Counter[str](), Counter[str](), Counter[str]()
    for event in compared:
        own = {found.passage.id for found in event.found}
        in_use[event.by] += len(own)
        for name, others in event.others.items():
            selected[name] += len(set(others))
            shared[name] += len(own & set(others))
    return (
        *(RerankerComparison(name, count, count) for name, count in in_use.items()),
        *(RerankerComparison(name, selected[name], shared[name]) for name in selected),
    )
