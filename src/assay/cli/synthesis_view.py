"""The live view of a synthesis: progress of each stage, findings per document, contradicting documents. Pure: the
elapsed seconds are a parameter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from assay.cli.run_view import DONE, OPEN, footer, part, row
from assay.core.events import (
    Asked,
    Checked,
    Covered,
    Described,
    Drafted,
    Event,
    InsightsDrawn,
    Merged,
    Paired,
    PassagesChosen,
    Related,
    Revised,
    SpineWritten,
    Translated,
)
from assay.core.events.describe import count_of
from assay.core.run import Run
from assay.core.synthesis import EXPERT, Pipeline, QuestionKind, Relation, RelationType
from assay.core.types import Verdict
from assay.synthesis import state

EVERY = 10  # questions per line if each is fast
STRIP = 60  # documents per line, if there are too many for one line each


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stage of the work: its name, whether it is done, its progress, and the text shown while it is active."""

    name: str
    done: bool
    far: str
    doing: str


def view(run: Run, seconds: float, rows: int) -> RenderableType:
    """The current state of the synthesis, in lines that fit on the screen."""
    return Group(
        row(title(run), "bold"),
        *map(_stretch, stretches(run)),
        *_documents(run, rows),
        *(_relations(run, rows) if rows > 1 else ()),
        row(footer(run, doing(run), seconds), "dim"),
    )


def _stretch(each: Stretch) -> Text:
    words = f"{each.name}: {each.far}" if each.far else each.name
    return row(f"{DONE} {words}", "green", indent=2) if each.done else row(f"{OPEN} {words}", indent=2)


def title(run: Run) -> str:
    brief = state.brief(run)
    what = f"{str(brief.pipeline).capitalize()} of {count_of(len(brief.documents), 'document')}"
    return f"{what}: {brief.focus}" if brief.focus else what


def stretches(run: Run) -> list[Stretch]:
    """All stages in order; those not started have no text yet."""
    return [*_reading(run), *_relating(run), *_telling(run)]


def _reading(run: Run) -> list[Stretch]:
    documents, read = len(state.brief(run).documents), {event.doc_id for event in state.readings(run)}
    described, points, covered = len(state.portraits(run)), state.points(run), state.coverage_passes(run)
    found = f"{len(read)} of {documents}, {count_of(len(points), 'point')}" if read else ""
    if len(covered) == 1 and covered[0].thin:
        found += f", {count_of(len(covered[0].thin), 'document')} read again"
    looked, asked, first = len(state.chosen_passages(run)), len(state.questions(run)), _next(run, state.portraits(run))
    return [
        Stretch(
            "describe",
            described == documents,
            f"{described} of {documents}",
            f"looking at {first}",
        ),
        Stretch("read", bool(covered), found, "searching" if 0 < looked < asked else f"reading {_next(run, read)}"),
    ]


def _next(run: Run, done: Container[str]) -> str:
    """The first document that a stage has not done: label and title, as far as it has them."""
    portraits = state.portraits(run)
    left = ((label, portraits.get(doc)) for doc, label in state.labels(run).items() if doc not in done)
    return next(
        (f"{label} {portrait.title}".strip() if portrait else label for label, portrait in left), "documents again"
    )


def _relating(run: Run) -> list[Stretch]:
    compared, spine, found = state.pairing(run), state.spine(run), state.relations(run)
    types = Counter(str(each.type) for each in found)
    named = ", ".join(f"{count} {name}" for name, count in types.most_common())
    here = [Stretch("compare", compared is not None, named if compared else "", "comparing documents")]
    if state.is_capable(run) and state.brief(run).pipeline is Pipeline.synthesis:
        far = count_of(len(spine.themes), "paragraph") if spine else ""
        here.append(Stretch("plan", spine is not None, far, "planning the text"))
    return here


def _telling(run: Run) -> list[Stretch]:
    draft, checked, claims = run.draft, run.checked, run.claims_by_place
    wanted = [name for name in state.brief(run).audiences if name != EXPERT]
    translations = state.translations(run)
    passed = sum(claim.verdict is Verdict.supported for claim in checked.values())
    sound = draft is not None and len(checked) == len(claims)
    here = [Stretch("narrate", draft is not None, count_of(len(claims), "claim") if draft else "", "writing")]
    here.append(Stretch("check", sound, f"{passed} of {len(claims)} hold" if draft else "", "checking claims"))
    if wanted:
        far = ", ".join(name for name in wanted if name in translations)
        here.append(Stretch("translate", len(translations) == len(wanted), far, "telling it for other readers"))
    return here


def _documents(run: Run, most: int) -> list[Text]:
    """A line for each document, or a symbol for each if there are too many."""
    labels, portraits = state.labels(run), state.portraits(run)
    if not portraits:
        return []
    evidence = Counter(each.quote.doc_id for each in run.evidence)
    drawn = Counter(insight.doc_id for insight in state.points(run))
    if len(labels) > max(most, 3):
        signs = "".join(_sign(doc in portraits, evidence[doc], drawn[doc]) for doc in labels)
        lines = [signs[at : at + STRIP] for at in range(0, len(signs), STRIP)]
        legend = "Documents (· not looked at, ○ described, ◐ quoted, ● with points)"
        return part(legend, [row(line, indent=2) for line in lines[:most]], (len(lines) - most) * STRIP)
    rows = [
        row(f"{label} ({_found(evidence[doc], drawn[doc])}) {portraits[doc].title}", indent=2)
        for doc, label in labels.items()
        if doc in portraits
    ]
    return part("Documents", rows)


def _found(evidence: int, insights: int) -> str:
    quoted = count_of(evidence, "passage")
    return f"{quoted}, {count_of(insights, 'point')}" if insights else quoted


def _sign(described: bool, evidence: int, insights: int) -> str:
    if insights:
        return "●"
    return "◐" if evidence else "○" if described else "·"


def _relations(run: Run, most: int) -> list[Text]:
    """The latest relations, contradictions first."""
    labels = state.labels(run)
    latest = state.relations(run)[::-1]
    found = sorted(latest, key=lambda each: each.type is not RelationType.contradiction)
    rows = [
        row(related(each, labels), "yellow" if each.type is RelationType.contradiction else "", indent=2)
        for each in found[: most - 1]
    ]
    return part("Relations", rows, len(found) - most + 1)


def related(relation: Relation, labels: dict[str, str]) -> str:
    left, right = (labels.get(side.doc_id, "a document") for side in (relation.left, relation.right))
    return f"{relation.type} {left}–{right}: {relation.reason}"


def doing(run: Run) -> str:
    if run.answer is not None:
        return run.answer.outcome
    if run.failed:
        return "failed"
    if run.held or run.rejected:
        return "waiting for a reviewer" if run.held else "rejected in review"
    return next((each.doing for each in stretches(run) if not each.done), "finishing")


def line(run: Run, event: Event) -> str:
    """The progress line of an event without a live view: the stage, its progress, and its subject."""
    labels = state.labels(run)
    of = len(labels)
    match event:
        case Asked():
            return f"{title(run)}."
        case Described(portrait=portrait):
            why = f" ({portrait.empty})" if portrait.empty else ""
            return f"Described {len(state.portraits(run))} of {of}: {labels[portrait.doc_id]} {portrait.title}{why}"
        case Merged(questions=questions) if questions and questions[0].kind is QuestionKind.comparative:
            return f"{count_of(len(questions), 'comparative question')}."
        case PassagesChosen(document=document) if not document and len(state.chosen_passages(run)) % EVERY == 0:
            return f"Searched for {len(state.chosen_passages(run))} of {len(state.questions(run))}"
        case InsightsDrawn(doc_id=doc, insights=insights) if doc:
            read = len({each.doc_id for each in state.readings(run)})
            return f"Read {read} of {of}: {labels.get(doc, '')} ({count_of(len(insights), 'point')})"
        case Covered(rows=rows, thin=thin):
            seen = f"{sum(each.evidence > 0 for each in rows)} of {of} documents have evidence"
            return f"{seen}; {', '.join(labels[doc] for doc in thin)} read again." if thin else f"{seen}."
        case Paired(how=how):
            return how
        case Related(relations=relations) if relations:
            return "\n".join(f"  {related(each, labels)}" for each in relations)
        case SpineWritten(theme=theme):
            return f"Theme: {theme}" if theme else ""
        case Drafted():
            return f"Written: {count_of(len(run.claims_by_place), 'claim')}."
        case Checked(claim=claim) if claim.verdict is not Verdict.supported:
            return f"  {claim.verdict}: {claim.words}"
        case Revised(claim=claim) if claim is None:
            return f"  dropped: {event.why}"
        case Translated(translation=done):
            return f"Told for {done.audience}: grade {done.before.grade:.0f} before, {done.after.grade:.0f} after."
        case _:
            return ""
