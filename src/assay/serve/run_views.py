"""Response views of runs: summary, full run, answer and evidence. Evidence keys become numbers in `render`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from functools import cache

from assay.answer import citations, claim_details, render
from assay.answer.extracts import Stretch
from assay.core.events import Failed, Mode, Paused
from assay.core.events.describe import understood_turn
from assay.core.figures import referred_to
from assay.core.printable import one_line
from assay.core.run import Run
from assay.core.types import (
    Answer,
    Basis,
    Claim,
    Document,
    Evidence,
    Examined,
    Figure,
    LeftOut,
    Outcome,
    Searched,
    Shape,
    Usage,
    Verdict,
    file_name,
)
from assay.governance.recheck import AnswerStanding, Finding
from assay.governance.reviewing import progress_line
from assay.serve.schemas import ResponseModel
from assay.tables.parts import TablePart, quoted_part
from assay.workspace.facade import Workspace
from assay.workspace.stored import WITHHELD_ANSWER, RunProgress

CANCELLED = "cancelled"  # the error of a run stopped by its asker

Library = Callable[[str], Document | None]


class RunState(StrEnum):
    running = "running"  # active now
    waiting = "waiting"  # for the user's choice
    failed = "failed"
    cancelled = "cancelled"
    held = "held"  # the answer waits for review
    rejected = "rejected"  # by a reviewer: there will be no answer
    parked = "parked"  # interrupted with the server or a terminal; can be resumed
    delivered = "delivered"


class RecheckView(ResponseModel):
    """How a delivered answer stands against the documents of a day, as far as you may read them."""

    run: str
    question: str
    synthesis: bool
    standing: AnswerStanding
    on: str
    line: str  # the same in one line
    findings: tuple[Finding, ...]
    withheld: str


class RunSummary(ResponseModel):
    id: str
    kind: str  # question, synthesis
    question: str
    started: str
    state: RunState
    outcome: Outcome | None
    mode: Mode
    thread: str


class PendingReviewView(ResponseModel):
    """Why the answer waits for a reviewer, since when, and what was done for it; whoever asked sees it when it is
    approved."""

    progress: str  # in numbers alone
    reasons: tuple[str, ...]
    since: str


class ReviewNote(ResponseModel):
    """Which reviewer let the answer through, or rejected it, and what they said of it."""

    by: str
    note: str


class CitationView(ResponseModel):
    """Where a claim's words stand: the quotation is `text[start:end]` of the document."""

    number: int
    key: str
    document: str
    title: str
    authors: tuple[str, ...]
    date: str | None
    name: str
    page: int | None
    start: int
    end: int
    quote: str
    flagged: bool  # the passage looks like an instruction to a model
    table: TablePart | None = None


class OperandView(ResponseModel):
    """A figure or item of a working, and the line that it stands in; empty if the document cannot be read."""

    words: str
    line: str
    citation: int | None  # number of a citation


class WorkingView(ResponseModel):
    """What code computed: `(480 − 340) / 340 × 100 = 41.18`, and where each operand stands."""

    expression: str
    operands: tuple[OperandView, ...]


class CheckedClaim(ResponseModel):
    """What is told of every claim: what it rests on, and who gave the verdict."""

    basis: Basis
    by: str  # who gave the verdict: code, or the name of a model; empty: not checked
    dispute: str  # what another judgement says, where two differ
    working: WorkingView | None
    text: str
    verdict: Verdict | None
    why: str
    citations: tuple[int, ...]  # numbers of citations
    edited: str | None  # the reviewer who rewrote it
    rests_on_flagged: bool  # all its evidence looks like an instruction to a model


class ClaimView(CheckedClaim):
    quotation: bool  # the claim is only a quotation
    row: tuple[str, ...]  # its cells; a sentence is one
    facts: tuple[str, ...]  # what the cells are that its figures are from


class BlockView(ResponseModel):
    """Claims that are read together. A table has `columns` if their names are known."""

    form: render.Form
    heading: str
    columns: tuple[str, ...]
    opinion: bool
    claims: tuple[ClaimView, ...]


class ExtractView(ResponseModel):
    """Words of a document in their place: text with its own lines, or rows of a table. `text[start:end]` of the document are
    the words that answer, or else all."""

    citations: tuple[int, ...]  # numbers of citations
    place: str  # `Title › Heading › Subject, page 3`
    words: tuple[Stretch, ...]
    table: TablePart | None
    start: int
    end: int


class CitedPlace(ResponseModel):
    """What is cited in one place of a source: words, or rows of a table, and the numbers of the citations of each row."""

    citations: tuple[int, ...]
    page: int | None
    quote: str
    table: TablePart | None
    rows: tuple[tuple[int, ...], ...]


class SourceView(ResponseModel):
    """A document that is cited, with everything that is cited of it."""

    title: str
    name: str
    authors: tuple[str, ...]
    date: str | None
    places: tuple[CitedPlace, ...]


class ConflictView(ResponseModel):
    about: str
    left: int  # numbers of citations
    right: int


class FigureView(ResponseModel):
    """A figure: the nth of its document, its caption, which is `text[start:end]`, and where it is on its page. Only one with a
    box can be shown."""

    document: str
    n: int
    name: str
    caption: str
    page: int
    box: tuple[float, float, float, float] | None
    start: int
    end: int
    mentions: tuple[tuple[int, int], ...]  # the sentences that refer to it


class AnswerView(ResponseModel):
    """An answer as a person reads it. `label` says what kind of answer it is, where that has to be said. One that no model
    wrote is its `extracts`, and `judged` is false; so is what came nearest. `remarks` are what no other field says."""

    question: str
    outcome: Outcome
    label: str
    shape: Shape
    said: str
    blocks: tuple[BlockView, ...]
    near: tuple[ClaimView, ...]
    extracts: tuple[ExtractView, ...]
    judged: bool
    citations: tuple[CitationView, ...]
    sources: tuple[SourceView, ...]
    conflicts: tuple[ConflictView, ...]
    gaps: tuple[str, ...]
    searched: tuple[Searched, ...]
    stopped: str  # why the search ended, as text
    unread: tuple[str, ...]
    readings: tuple[str, ...]
    examined: Examined | None
    since: str | None
    until: str | None
    left_out: LeftOut | None
    remarks: tuple[str, ...]
    figures: tuple[FigureView, ...]  # that can be shown, whose captions are cited or that cited words refer to


class EvidenceView(ResponseModel):
    """A piece of the evidence library: what was found to bear on the question, with its score from 0 to 10."""

    key: str
    document: str
    title: str
    date: str | None
    name: str
    page: int | None
    heading: str
    score: float
    note: str
    question: str
    flagged: bool
    start: int
    end: int
    quote: str
    passage: str
    passage_start: int
    context: str = ""  # caption, units and header of the passage's table, as far as they are outside it
    cited: bool
    table: TablePart | None = None


class KeptStatement(ResponseModel):
    """A statement that had passed its check."""

    place: int
    heading: str
    opinion: bool
    text: str
    quotation: bool
    cites: tuple[str, ...]  # keys of evidence


class RunView(RunSummary):
    """A run as it stands. `asked` is the question as it was typed, `question` as it stands alone in its conversation."""

    asked: str
    understood: str  # what a turn of a conversation was understood as; empty: as it was asked
    bases: tuple[str, ...]
    models: tuple[str, ...]
    events: int
    rounds: int
    usage: Usage
    seconds: float  # active time
    waiting: Paused | None
    failure: Failed | None
    held: PendingReviewView | None
    rejected: ReviewNote | None
    reviewed: ReviewNote | None  # set if the answer was delivered after a review
    answer: AnswerView | None
    statements: tuple[
        KeptStatement, ...
    ] = ()  # of a run that was stopped, or failed, while it wrote: what had passed its check
    evidence: tuple[EvidenceView, ...]
    withheld: str = ""  # why a delivered answer is not shown
    recheck: RecheckView | None = None  # of a delivered answer


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
    failed = RunState.cancelled if run.failed and run.failed.error == CANCELLED else RunState.failed
    states = {
        RunState.delivered: run.delivered,
        RunState.running: under_way,
        RunState.waiting: run.waiting,
        RunState.held: run.held,
        RunState.rejected: run.rejected,
        failed: run.failed,
    }
    return next((state for state, holds in states.items() if holds), RunState.parked)


def run_view(workspace: Workspace, run: Run, under_way: bool) -> RunView:
    """The current state of a run, with its answer and evidence in the text of documents that may be read now."""
    library: Library = cache(workspace.documents.get)
    done, rounds = progress_line(run), run.rounds
    kept = _kept(workspace, run) if run.failed and not run.asked.brief else ()
    run = workspace.questions.run_for_asker(run.id, run)
    asked, answer, last = run.asked, run.answer, len(run.events) - 1
    return RunView.made_from(
        run,
        asked,
        kind="synthesis" if asked.brief else "question",
        started=workspace.questions.started(run.id),
        state=run_state(run, under_way),
        outcome=answer.outcome if answer else None,
        asked=asked.question,
        understood=understood_turn(asked.question, run.rephrased),
        bases=tuple(sorted({base.name for base in workspace.scope().bases} & asked.about.keys())),
        models=tuple(dict.fromkeys(role_model.model for role_model in asked.seats)),
        events=len(run.events),
        rounds=rounds,
        usage=workspace.questions.spent(run.id),
        seconds=workspace.questions.active_seconds(run.id),
        failure=run.failed,
        held=PendingReviewView.made_from(run.held, progress=done, since=workspace.questions.recorded_at(run.id, last))
        if run.held
        else None,
        reviewed=run.reviews[-1] if answer and run.reviews else None,
        statements=kept,
        answer=answer and answer_view(answer, run.evidence, library, claim_details.recorded_judges(run.events)),
        withheld=WITHHELD_ANSWER if run.withheld else "",
        recheck=recheck_view(workspace, run),
        evidence=()
        if asked.brief  # that of a synthesis is in its account
        else evidence_view(run.evidence, answer.cited_keys if answer else frozenset(), library),
    )


def _kept(workspace: Workspace, run: Run) -> tuple[KeptStatement, ...]:
    return tuple(
        KeptStatement.made_from(
            each, claim, text=claim.words, quotation=claim.quote is not None, cites=tuple(claim.cites)
        )
        for each in workspace.questions.statements(run)
        if (claim := each.claim) is not None
    )


def recheck_view(workspace: Workspace, run: Run) -> RecheckView | None:
    """How the answer of a run stands for whoever looks."""
    found = workspace.rechecks.of_run(run)
    return RecheckView.made_from(found) if found else None


def shared_answer(workspace: Workspace, run: Run) -> AnswerView | None:
    """The answer of somebody else's run, in the text of documents that the reader may read now."""
    if run.answer is None:
        return None
    return answer_view(
        run.answer, run.evidence, cache(workspace.documents.get), claim_details.recorded_judges(run.events)
    )


def answer_view(
    given: Answer, found: tuple[Evidence, ...], library: Library, judges: claim_details.Judges = claim_details.NOBODY
) -> AnswerView:
    """An answer for display; claims refer to citations by number."""
    cited = citations.of_answer(given, found, library)

    def claim_view(claim: Claim, *, opinion: bool = False) -> ClaimView:
        return ClaimView.made_from(
            claim,
            basis=claim_details.basis(claim, opinion=opinion),
            by=claim_details.judged_by(claim, judges),
            dispute=claim_details.dispute(claim),
            working=working_view(claim_details.show_working(claim, found, library), claim, cited),
            text=render.claim_text(claim),
            quotation=claim.quote is not None,
            row=render.row_of(claim),
            facts=claim_details.cell_lines(claim),
            citations=tuple(each.number for each in citations.cited_by(claim, cited)),
            rests_on_flagged=citations.rests_on_flagged(claim, cited),
        )

    numbers = {key: each.number for (key, _), each in reversed(cited.items())}  # the first of a key that has several
    return AnswerView.made_from(
        given,
        label=render.label(given),
        blocks=tuple(
            BlockView(
                form=form,
                heading="" if columns else block.heading,
                columns=columns,
                opinion=block.opinion,
                claims=tuple(claim_view(claim, opinion=block.opinion) for claim in block.claims),
            )
            for block in given.blocks
            for form, columns in [render.form_of(given, block)]
        ),
        near=tuple(map(claim_view, given.near)),
        extracts=tuple(map(_extract, render.extracts(given, cited))),
        judged=not render.shows_extracts(given),
        citations=tuple(
            CitationView.made_from(each, each.quote, name=file_name(each.path), quote=each.quote.text)
            for each in cited.values()
        ),
        sources=tuple(map(_source, citations.sources(cited))),
        conflicts=tuple(
            ConflictView(about=each.about, left=numbers[each.left], right=numbers[each.right])
            for each in given.conflicts
            if each.left in numbers and each.right in numbers  # otherwise a document was removed since
        ),
        stopped=render.why_ended(given),
        unread=tuple(file_name(uri) for uri in given.unread),
        remarks=tuple(render.notes(given)),
        figures=_figures(given, cited, library),
    )


def _figures(given: Answer, cited: citations.Cited, library: Library) -> tuple[FigureView, ...]:
    """The figures that what is cited is about, and those that claims are read from, each once."""
    about = [
        (source, figure)
        for quote in (each.quote for each in cited.values())
        if (source := library(quote.doc_id))
        for figure in referred_to(source, quote.start, quote.end)
    ]
    read = [
        (source, figure)
        for picture in (claim.figure for claim in (*given.claims, *given.near) if claim.figure)
        if (source := library(picture.document))
        for figure in source.figures
        if (figure.page, figure.box) == (picture.page, picture.box)
    ]
    views = (view for source, figure in (*about, *read) for view in figure_views([figure], source) if view.box)
    return tuple({(view.document, view.n): view for view in views}.values())


def figure_views(figures: Iterable[Figure], document: Document) -> tuple[FigureView, ...]:
    return tuple(
        FigureView.made_from(
            each,
            document=document.id,
            n=document.figures.index(each) + 1,
            caption=one_line(document.text[each.start : each.end]),
        )
        for each in figures
    )


def _extract(shown: citations.Extract) -> ExtractView:
    first = shown.first
    span = first.marks[0] if first.marks else first.quote
    numbers = tuple(each.number for each in shown.citations)
    return ExtractView.made_from(span, shown, first, citations=numbers)


def _source(source: citations.Source) -> SourceView:
    places = tuple(
        CitedPlace(
            citations=each.numbers(),
            page=each.first.page,
            quote=each.first.quote.text,
            table=each.table,
            rows=tuple(each.numbers(row) for row in each.table.rows) if each.table else (),
        )
        for each in source.extracts
    )
    return SourceView.made_from(source.first, name=file_name(source.first.path), places=places)


def working_view(shown: claim_details.ShownWorking | None, claim: Claim, cited: citations.Cited) -> WorkingView | None:
    """A working with the numbers of the citations that its operands are from."""
    if shown is None:
        return None
    own = citations.cited_by(claim, cited)
    operands = tuple(
        OperandView.made_from(each, citation=_number(each.words, each.cite, own)) for each in shown.operands
    )
    return WorkingView(expression=shown.expression, operands=operands)


def _number(words: str, key: str, cited: Iterable[citations.Citation]) -> int | None:
    """The citation of this evidence whose quotation has these words, or else its first."""
    found = [each for each in cited if each.key == key]
    best = (each.number for each in found if words in each.quote.text)
    return next(best, found[0].number if found else None)


def evidence_view(found: Sequence[Evidence], cited: Collection[str], library: Library) -> tuple[EvidenceView, ...]:
    """The evidence library, best first, without documents that may no longer be read."""
    return tuple(
        EvidenceView.made_from(
            each,
            each.quote,
            source,
            each.passage,
            document=source.id,
            name=file_name(source.uri),
            page=source.page_at(each.quote.start),
            score=round(each.score),  # finer steps would reveal index statistics over other users' documents
            quote=each.quote.text,
            passage=each.passage.text,
            passage_start=each.passage.start,
            cited=each.key in cited,
            table=quoted_part(source, each.quote.start, each.quote.end),
        )
        for each in found
        if (source := library(each.passage.doc_id)) is not None
    )
