"""Response views of runs: summary, full run, answer and evidence. Evidence keys become numbers in `render`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache

from assay.answer import claim_details, render
from assay.core.events import Mode
from assay.core.events.describe import understood_turn
from assay.core.run import Run
from assay.core.types import Answer, Claim, Document, Evidence, Outcome, Usage, file_name
from assay.governance.reviewing import progress_line
from assay.serve.document_views import left_out_view, table_view
from assay.serve.live import CANCELLED, run_state
from assay.serve.run_schemas import (
    AnswerView,
    ApprovalView,
    BlockView,
    CheckpointView,
    CitationView,
    ClaimView,
    ConflictView,
    EvidenceView,
    ExaminedView,
    ExtractView,
    FailureView,
    OperandView,
    PendingReviewView,
    RejectionView,
    RunState,
    RunSummary,
    RunView,
    SearchView,
    StretchView,
    UsageView,
    WorkingView,
)
from assay.store.runs import budgets, records, visibility
from assay.store.runs.history import RunProgress
from assay.tables.parts import quoted_part
from assay.workspace.facade import Workspace

Library = Callable[[str], Document | None]


def run_summary(progress: RunProgress, under_way: bool) -> RunSummary:
    """A summary of a run."""
    asked = progress.asked
    return RunSummary(
        id=progress.id,
        kind="synthesis" if asked and asked.brief else "question",
        question=asked.question if asked else "",
        started=progress.started,
        state=_state(progress, under_way),
        outcome=Outcome(progress.outcome) if progress.outcome else None,
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


def run_view(workspace: Workspace, run: Run, under_way: bool) -> RunView:
    """The current state of a run, with its answer and evidence in the text of documents that may be read now."""
    library: Library = cache(workspace.documents.get)
    done, rounds = progress_line(run), run.rounds
    run = workspace.questions.run_for_asker(run.id, run)
    asked, waiting, failed = run.asked, run.waiting, run.failed
    scope = workspace.scope()
    return RunView(
        id=run.id,
        kind="synthesis" if asked.brief else "question",
        question=run.question,
        started=records.started(workspace.store, run.id),
        state=run_state(run, under_way),
        outcome=run.answer.outcome if run.answer else None,
        mode=asked.mode,
        thread=asked.thread,
        asked=asked.question,
        understood=understood_turn(asked.question, run.rephrased),
        bases=tuple(sorted({base.name for base in scope.bases} & asked.about.keys())),
        models=tuple(dict.fromkeys(role_model.model for role_model in asked.seats)),
        events=len(run.events),
        rounds=rounds,
        usage=usage_view(budgets.spent_by_run(workspace.store, run.id)),
        seconds=records.active_seconds(workspace.store, run.id),
        waiting=CheckpointView(at=waiting.at, question=waiting.question, options=waiting.options) if waiting else None,
        failure=FailureView(error=failed.error, detail=failed.detail) if failed else None,
        held=_held(workspace, run, done),
        rejected=RejectionView(by=run.rejected.by, note=run.rejected.note) if run.rejected else None,
        reviewed=_approval(run),
        answer=answer_view(run.answer, run.evidence, library, claim_details.recorded_judges(run.events))
        if run.answer
        else None,
        withheld=visibility.WITHHELD_ANSWER if run.withheld else "",
        evidence=()
        if asked.brief  # that of a synthesis is in its account
        else evidence_view(run.evidence, run.answer.cited_keys if run.answer else frozenset(), library),
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


def _approval(run: Run) -> ApprovalView | None:
    if run.answer is None or not run.reviews:
        return None
    return ApprovalView(by=run.reviews[-1].by, note=run.reviews[-1].note)


def usage_view(spent: Usage) -> UsageView:
    return UsageView(
        calls=spent.calls,
        tokens_in=spent.tokens_in,
        tokens_out=spent.tokens_out,
        money=spent.money,
        seconds=spent.seconds,
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
    examined = given.examined
    return AnswerView(
        question=given.question,
        outcome=given.outcome,
        label=render.label(given),
        shape=given.shape,
        said=given.said,
        blocks=tuple(
            BlockView(
                heading=block.heading,
                opinion=block.opinion,
                claims=tuple(claim_view(claim, opinion=block.opinion) for claim in block.claims),
            )
            for block in given.blocks
        ),
        near=tuple(map(claim_view, given.near)),
        extracts=tuple(map(_extract, render.extracts(given, cited))),
        judged=not render.shows_extracts(given),
        citations=tuple(_citation(each) for each in cited.values()),
        conflicts=tuple(
            ConflictView(about=each.about, left=numbers[each.left], right=numbers[each.right])
            for each in given.conflicts
            if each.left in numbers and each.right in numbers  # otherwise a document was removed since
        ),
        gaps=given.gaps,
        searched=tuple(SearchView(query=each.query, found=each.found, kept=each.kept) for each in given.searched),
        stopped=render.STOP_TEXT.get(given.stopped, given.stopped),
        unread=tuple(file_name(uri) for uri in given.unread),
        readings=given.readings,
        examined=ExaminedView(
            documents=examined.documents,
            passages=examined.passages,
            left=examined.left,
            whole=examined.whole,
            partly=examined.partly,
        )
        if examined
        else None,
        since=given.since,
        until=given.until,
        left_out=left_out_view(given.left_out),
        remarks=tuple(render.notes(given)),
    )


def _extract(shown: render.Extract) -> ExtractView:
    first = shown.first
    words = first.marks[0] if first.marks else first.quote
    return ExtractView(
        citations=tuple(each.number for each in shown.citations),
        place=first.place,
        words=tuple(StretchView(text=each.text, marked=each.marked) for each in first.words),
        table=table_view(shown.table),
        start=words.start,
        end=words.end,
    )


def _claim(claim: Claim, cited: render.Cited, working: WorkingView | None, by: str, *, opinion: bool) -> ClaimView:
    return ClaimView(
        basis=claim_details.basis(claim, opinion=opinion),
        by=by,
        dispute=claim_details.dispute(claim),
        working=working,
        text=render.claim_text(claim),
        quotation=claim.quote is not None,
        verdict=claim.verdict,
        why=claim.why,
        citations=tuple(each.number for each in render.cited_by(claim, cited)),
        edited=claim.edited,
        rests_on_flagged=render.rests_on_flagged(claim, cited),
    )


def working_view(shown: claim_details.ShownWorking | None, claim: Claim, cited: render.Cited) -> WorkingView | None:
    """A working with the numbers of the citations that its operands are from."""
    if shown is None:
        return None
    own = render.cited_by(claim, cited)
    operands = (
        OperandView(words=each.words, line=each.line, citation=_number(each.words, each.cite, own))
        for each in shown.operands
    )
    return WorkingView(expression=shown.expression, operands=tuple(operands))


def _number(words: str, key: str, cited: Iterable[render.Citation]) -> int | None:
    """The citation of this evidence whose quotation has these words, or else its first."""
    found = [each for each in cited if each.key == key]
    best = (each.number for each in found if words in each.quote.text)
    return next(best, found[0].number if found else None)


def _citation(cited: render.Citation) -> CitationView:
    return CitationView(
        number=cited.number,
        key=cited.key,
        document=cited.document,
        title=cited.title,
        authors=cited.authors,
        date=cited.date,
        name=file_name(cited.path),
        page=cited.page,
        start=cited.quote.start,
        end=cited.quote.end,
        quote=cited.quote.text,
        flagged=cited.flagged,
        table=table_view(cited.table),
    )


def evidence_view(found: Sequence[Evidence], cited: Collection[str], library: Library) -> tuple[EvidenceView, ...]:
    """The evidence library, best first, without documents that may no longer be read."""
    return tuple(
        EvidenceView(
            key=each.key,
            document=source.id,
            title=source.title,
            date=source.date,
            name=file_name(source.uri),
            page=source.page_at(each.quote.start),
            heading=each.passage.heading,
            score=round(each.score),  # finer steps would reveal index statistics over other users' documents
            note=each.note,
            question=each.question,
            flagged=each.flagged,
            start=each.quote.start,
            end=each.quote.end,
            quote=each.quote.text,
            passage=each.passage.text,
            passage_start=each.passage.start,
            context=each.passage.context,
            cited=each.key in cited,
            table=table_view(quoted_part(source, each.quote.start, each.quote.end)),
        )
        for each in found
        if (source := library(each.passage.doc_id)) is not None
    )
