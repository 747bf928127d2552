"""Response views of bases, documents, passages and jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.core.access import Base, Principal
from assay.core.types import UPLOAD, Document, Hit, LeftOut
from assay.serve.document_schemas import (
    BaseView,
    BlocksResponse,
    DocumentSummary,
    FileReportView,
    HitView,
    JobState,
    JobView,
    ReadingBlock,
)
from assay.serve.run_schemas import LeftOutView, SuggestedQuestion, TableRowView, TableView
from assay.store.document_list import Counted
from assay.store.documents import Entry
from assay.store.jobs import Job, JobFile
from assay.tables.parts import Block, PartRow, TablePart
from assay.workspace.types import Suggestion

FEW = 3  # finished files needed for an estimate of the remaining time


def base_view(base: Base, counted: Counted | None, principal: Principal) -> BaseView:
    held = counted or Counted()
    return BaseView(
        id=base.id,
        name=base.name,
        description=base.description,
        owner=base.owner,
        yours=principal.owns(base),
        documents=held.ready,
        unreadable=held.unreadable,
        pending=held.pending,
        off=held.off,
        passages=held.passages,
    )


def document_summary(entry: Entry, bases: Mapping[str, str]) -> DocumentSummary:
    """`bases` maps ids to names."""
    return DocumentSummary(
        id=entry.id,
        base=bases.get(entry.base, ""),
        name=entry.name,
        uri=entry.uri if entry.uri.startswith(UPLOAD) else entry.name,  # the location on this machine is not exposed
        title=entry.title or entry.name,
        **entry.identity,
        authors=entry.authors,
        date=entry.date,
        kind=entry.kind,
        language=entry.language,
        state=entry.standing,
        why=entry.why,
        warnings=entry.warnings,
        bytes=entry.bytes,
        pages=entry.pages,
        characters=entry.characters,
        passages=entry.passages,
        added=entry.added,
        tags=entry.tags,
    )


def hit_view(hit: Hit, bases: Mapping[str, str]) -> HitView:
    """`bases` maps ids to names."""
    passage = hit.passage
    return HitView(
        rank=hit.rank,
        document=passage.doc_id,
        title=hit.title,
        base=bases.get(str(hit.fields.get("base", "")), ""),
        page=passage.page,
        heading=passage.heading,
        start=passage.start,
        end=passage.end,
        text=passage.text,
        context=passage.context,
    )


def left_out_view(left_out: LeftOut | None) -> LeftOutView | None:
    return left_out and LeftOutView(documents=left_out.documents, undated=left_out.undated)


def job_view(job: Job, files: Sequence[JobFile]) -> JobView:
    return JobView(
        id=job.id,
        kind="ingest",
        base=job.base,
        state=JobState(job.state),
        files=job.files,
        done=job.done,
        passages=job.passages,
        seconds=job.seconds,
        left=_left(job),
        error=job.error,
        created=job.created,
        reports=tuple(file_report(each) for each in files),
    )


def _left(job: Job) -> float | None:
    """The estimated remaining seconds, from the average time per finished file; None after too few files."""
    if not job.going:
        return 0.0
    return round(job.seconds / job.done * (job.files - job.done), 1) if job.done >= FEW and job.seconds else None


def file_report(file: JobFile) -> FileReportView:
    report = file.report
    return FileReportView(
        name=file.name,
        bytes=file.bytes,
        outcome=file.outcome,
        status=str(report.get("status", "")),
        why=str(report.get("why", "")),
        title=str(report.get("title", "")),
        pages=int(report.get("pages", 0)),
        passages=int(report.get("passages", 0)),
    )


def suggested(each: Suggestion) -> SuggestedQuestion:
    return SuggestedQuestion(question=each.question, document=each.document, title=each.title)


def table_view(part: TablePart | None) -> TableView | None:
    if part is None:
        return None
    return TableView(
        caption=part.caption,
        units=part.units,
        period=part.period,
        columns=part.columns,
        numeric=part.numeric,
        cited=part.cited,
        rows=tuple(map(_row, part.rows)),
        first=part.first,
        total=part.total,
        column=part.column,
        width=part.width,
    )


def _row(row: PartRow) -> TableRowView:
    return TableRowView(start=row.start, end=row.end, level=row.level, cells=row.cells, cited=row.cited)


def blocks_view(document: Document, blocks: Sequence[Block], at: int) -> BlocksResponse:
    """`at` is where the blocks would be if there are none."""
    return BlocksResponse(
        document=document.id,
        start=blocks[0].start if blocks else at,
        end=blocks[-1].end if blocks else at,
        characters=len(document.text),
        blocks=tuple(
            ReadingBlock(
                start=each.start, end=each.end, text=each.text, number=each.number, table=table_view(each.table)
            )
            for each in blocks
        ),
    )
