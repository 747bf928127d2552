"""Response views of runs: summary, full run, answer and evidence. Evidence keys become numbers in `render`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from assay.answer import claim_details, render
from assay.core.events import Mode
from assay.core.events.describe import understood_turn
from assay.core.run import Run
from assay.core.types import Answer, Claim, Document, Evidence, file_name
from assay.governance.reviewing import progress_line
from assay.serve.run_schemas import (
    AnswerView,
    BlockView,
    CitationView,
    ClaimView,
    ConflictView,
    EvidenceView,
    ExtractView,
    OperandView,
    PendingReviewView,
    RunState,
    RunSummary,
    RunView,
    WorkingView,
)
from assay.tables.parts import quoted_part
from assay.workspace.facade import Workspace
from assay.workspace.stored import WITHHELD_ANSWER, RunProgress, budgets, records

CANCELLED = "cancelled"  # the error of a run stopped by its asker

Library = Callable[[str], Document | None]


def run_summary(progress: RunProgress, under_way: bool) -> RunSummary:
    """A summary of a run."""
    asked = progress.asked
    return RunSummary.made_from(
        progress,
        kind="synthesis" if asked and asked.brief else "question",
        question=asked.question if asked else "",
        state=_state(progress, under_way),
        outcome=progress.outcome or None,
        mode=asked.mode if asked else Mode.balanced,
        thread=asked.thread if asked else "",
    )


def _state(progress: RunProgress, under_way: bool) -> RunState:
    """The state of a run, from its last record alone."""
    match progress.last:
        case "Answered":
            return RunState.delivered
        case _ if under_way:
            return RunState.running
        case "Paused":
            return RunState.waiting
        case "AwaitingReview":
            return RunState.held
        case "Reviewed" if progress.rejected:
            return RunState.rejected
        case "Failed":
            return RunState.cancelled if progress.error == CANCELLED else RunState.failed
        case _:
            return RunState.parked


def run_state(run: Run, under_way: bool) -> RunState:
    if run.delivered:
        return RunState.delivered
    if under_way:
        return RunState.running
    if run.waiting:
        return RunState.waiting
    if run.held:
        return RunState.held
    if run.rejected:
        return RunState.rejected
    if run.failed:
        return RunState.cancelled if run.failed.error == CANCELLED else RunState.failed
    return RunState.parked


def run_view(workspace: Workspace, run: Run, under_way: bool) -> RunView:
    """The current state of a run, with its answer and evidence in the text of documents that may be read now."""
    library: Library = cache(workspace.documents.get)
    done, rounds = progress_line(run), run.rounds
    run = workspace.questions.run_for_asker(run.id, run)
    asked, answer = run.asked, run.answer
    return RunView.made_from(
        run,
        kind="synthesis" if asked.brief else "question",
        started=records.started(workspace.store, run.id),
        state=run_state(run, under_way),
        outcome=answer.outcome if answer else None,
        mode=asked.mode,
        thread=asked.thread,
        asked=asked.question,
        understood=understood_turn(asked.question, run.rephrased),
        bases=tuple(sorted({base.name for base in workspace.scope().bases} & asked.about.keys())),
        models=tuple(dict.fromkeys(role_model.model for role_model in asked.seats)),
        events=len(run.events),
        rounds=rounds,
        usage=budgets.spent_by_run(workspace.store, run.id),
        seconds=records.active_seconds(workspace.store, run.id),
        failure=run.failed,
        held=_held(workspace, run, done),
        reviewed=run.reviews[-1] if answer and run.reviews else None,
        answer=answer and answer_view(answer, run.evidence, library, claim_details.recorded_judges(run.events)),
        withheld=WITHHELD_ANSWER if run.withheld else "",
        evidence=()
        if asked.brief  # that of a synthesis is in its account
        else evidence_view(run.evidence, answer.cited_keys if answer else frozenset(), library),
    )


def shared_answer(workspace: Workspace, run: Run) -> AnswerView | None:
    """The answer of somebody else's run, in the text of documents that the reader may read now."""
    if run.answer is None:
        return None
    library: Library = cache(workspace.documents.get)
    return answer_view(run.answer, run.evidence, library, claim_details.recorded_judges(run.events))


def _held(workspace: Workspace, run: Run, progress: str) -> PendingReviewView | None:
    if run.held is None:
        return None
    return PendingReviewView(
        progress=progress,
        reasons=run.held.reasons,
        since=records.recorded_at(workspace.store, run.id, len(run.events) - 1),
    )


def answer_view(
    given: Answer, found: tuple[Evidence, ...], library: Library, judges: claim_details.Judges = claim_details.NOBODY
) -> AnswerView:
    """An answer for display; claims refer to citations by number."""
    cited = render.citations(given, found, library)

    def claim_view(claim: Claim, *, opinion: bool = False) -> ClaimView:
        working = working_view(claim_details.show_working(claim, found, library), claim, cited)
        return _claim(claim, cited, working, claim_details.judged_by(claim, judges), opinion=opinion)

    numbers = {
        key: each.number for (key, _), each in reversed(cited.items())
    }  # the first number of a key that has several
    return AnswerView.made_from(
        given,
        label=render.label(given),
        blocks=tuple(
            BlockView.made_from(block, claims=tuple(claim_view(claim, opinion=block.opinion) for claim in block.claims))
            for block in given.blocks
        ),
        near=tuple(map(claim_view, given.near)),
        extracts=tuple(map(_extract, render.extracts(given, cited))),
        judged=not render.shows_extracts(given),
        citations=tuple(map(_citation, cited.values())),
        conflicts=tuple(
            ConflictView(about=each.about, left=numbers[each.left], right=numbers[each.right])
            for each in given.conflicts
            if each.left in numbers and each.right in numbers  # otherwise a document was removed since
        ),
        stopped=render.STOP_TEXT.get(given.stopped, given.stopped),
        unread=tuple(file_name(uri) for uri in given.unread),
        remarks=tuple(render.notes(given)),
    )


def _extract(shown: render.Extract) -> ExtractView:
    first = shown.first
    return ExtractView.made_from(
        first.marks[0] if first.marks else first.quote,  # start and end
        citations=tuple(each.number for each in shown.citations),
        place=first.place,
        words=first.words,
        table=shown.table,
    )


def _claim(claim: Claim, cited: render.Cited, working: WorkingView | None, by: str, *, opinion: bool) -> ClaimView:
    return ClaimView.made_from(
        claim,
        basis=claim_details.basis(claim, opinion=opinion),
        by=by,
        dispute=claim_details.dispute(claim),
        working=working,
        text=render.claim_text(claim),
        quotation=claim.quote is not None,
        citations=tuple(each.number for each in render.cited_by(claim, cited)),
        rests_on_flagged=render.rests_on_flagged(claim, cited),
    )


def working_view(shown: claim_details.ShownWorking | None, claim: Claim, cited: render.Cited) -> WorkingView | None:
    """A working with the numbers of the citations that its operands are from."""
    if shown is None:
        return None
    own = render.cited_by(claim, cited)
    operands = tuple(
        OperandView.made_from(each, citation=_number(each.words, each.cite, own)) for each in shown.operands
    )
    return WorkingView(expression=shown.expression, operands=operands)


def _number(words: str, key: str, cited: Iterable[render.Citation]) -> int | None:
    """The citation of this evidence whose quotation has these words, or else its first."""
    found = [each for each in cited if each.key == key]
    best = (each.number for each in found if words in each.quote.text)
    return next(best, found[0].number if found else None)


def _citation(cited: render.Citation) -> CitationView:
    return CitationView.made_from(cited, cited.quote, name=file_name(cited.path), quote=cited.quote.text)


def evidence_view(found: Sequence[Evidence], cited: Collection[str], library: Library) -> tuple[EvidenceView, ...]:
    """The evidence library, best first, without documents that may no longer be read."""
    return tuple(
        EvidenceView.made_from(
            each,
            each.quote,
            source,
            document=source.id,
            name=file_name(source.uri),
            page=source.page_at(each.quote.start),
            heading=each.passage.heading,
            score=round(each.score),  # finer steps would reveal index statistics over other users' documents
            quote=each.quote.text,
            passage=each.passage.text,
            passage_start=each.passage.start,
            context=each.passage.context,
            cited=each.key in cited,
            table=quoted_part(source, each.quote.start, each.quote.end),
        )
        for each in found
        if (source := library(each.passage.doc_id)) is not None
    )
