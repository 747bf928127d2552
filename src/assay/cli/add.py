"""`assay add`, `assay sync`, `assay reindex`: fill a knowledge base, with progress and a report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import progress as rich
from rich.table import Table

from assay.cli.access import warn_if_unknown
from assay.cli.acting import open_workspace
from assay.cli.follow import show_forecast
from assay.cli.options import BaseName, Json, Quiet, Workspace
from assay.cli.terminal import aside, cells, console, plain, print_json, print_lines, print_result, wait_for, whole
from assay.core.codec import to_json
from assay.core.errors import AssayError
from assay.core.events.describe import count_of
from assay.core.printable import printable_name
from assay.ingest.pipeline import Progress
from assay.ingest.places import open_place
from assay.ingest.readiness import FileReport, Readiness
from assay.ingest.sources import find_sources, source_from_stdin
from assay.workspace.types import Synced

T = TypeVar("T")
Ocr = Annotated[
    bool | None, typer.Option("--ocr/--no-ocr", help="Read pages that are pictures with OCR (the extra `ocr`).")
]
Engine = Annotated[
    str | None,
    typer.Option(help="Where files are parsed, split and embedded: local, or ray for a Ray cluster.", metavar="ENGINE"),
]
SHOWN_IN_FULL = 60


def add(
    paths: Annotated[list[str], typer.Argument(help="Files and folders; `-` reads standard input.", metavar="PATH…")],
    base: BaseName = "default",
    workspace: Workspace = None,
    description: Annotated[str, typer.Option(help="What the knowledge base is about, in a sentence.")] = "",
    name: Annotated[str, typer.Option(help="The name of what comes through standard input.")] = "stdin.txt",
    only_for: Annotated[
        list[str] | None,
        typer.Option(
            "--only-for",
            metavar="WHO",
            help="Let only user:NAME or group:NAME read these files, and the owner. May be repeated.",
        ),
    ] = None,
    ocr: Ocr = None,
    engine: Engine = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Only say what it would take; nothing is added.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make files and folders searchable.

    What is there already and unchanged costs nothing; an add that was stopped is carried on by the next one.
    """
    files = find_sources([Path(path) for path in paths if path != "-"])
    if "-" in paths:
        files.append(source_from_stdin(name, sys.stdin.buffer.read()))
    with open_workspace(workspace, create=True, ocr=ocr, ingest_engine=engine) as opened:
        outlook = opened.documents.forecast(files, base)
        if forecast:
            show_forecast(outlook, json=json)
            return
        readers = list(map(whole, only_for or ()))
        for who in readers:
            warn_if_unknown(opened, who)
        report = run_with_progress(
            lambda say: opened.documents.add_sources(
                files, base, description=whole(description), only_for=readers, say=say
            ),
            quiet=quiet or json,
        )
        opened.documents.record_added(outlook, report)
    print_json(report) if json else show(report, quiet=quiet)


def sync(
    place: Annotated[
        str,
        typer.Argument(
            help="The folder that the knowledge base should agree with, or an address: s3://BUCKET/PREFIX, davs://HOST/PATH, …",
            metavar="FOLDER|URL",
        ),
    ],
    base: BaseName = "default",
    workspace: Workspace = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and follow changes within seconds, until Ctrl-C.")
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            help="With --watch: seconds between two looks at what nobody tells of changes, such as a URL.",
            metavar="SECONDS",
        ),
    ] = None,
    grace: Annotated[
        float | None,
        typer.Option(
            help="With --watch: seconds that a file is gone before its document is removed.", metavar="SECONDS"
        ),
    ] = None,
    ocr: Ocr = None,
    engine: Engine = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a knowledge base agree with a folder, a bucket or a server: add what is new or changed, remove what is gone.

    An address must be in the setting `sources_allowed`. Only what has changed there is fetched; a sync that was stopped is
    carried on by the next one.
    """
    flags = {"watch_every": every, "watch_grace": grace}
    with open_workspace(workspace, create=True, ocr=ocr, ingest_engine=engine, **flags) as opened:
        if watch:
            open_place(place, opened.settings).listed()  # an error that a person can mend is told at once
            wait_for(opened.documents.watch(place, base, tell=_told(json=json, quiet=quiet)))
            return
        report, gone = run_with_progress(lambda say: opened.documents.sync(place, base, say=say), quiet=quiet or json)
    if not json:
        show(report, quiet=quiet)
    data = {**to_json(report), "removed": [entry.uri for entry in gone]}
    print_result(json, data, (f"Removed {printable_name(entry.uri)}" for entry in gone))


def _told(*, json: bool, quiet: bool) -> Callable[[Synced | AssayError], None]:
    """Says what each look of a watch came to: with JSON a line for each; a failure only when it begins."""
    failing, first = "", True

    def tell(what: Synced | AssayError) -> None:
        nonlocal failing, first
        if isinstance(what, AssayError):
            if str(what) != failing:
                aside().print(plain(f"{what} Trying again."), markup=False)
            failing = str(what)
            return
        failing = ""
        if what.report is not None and not json:
            show(what.report, quiet=quiet)
        if what.report is not None or what.removed:
            data = {**(to_json(what.report) if what.report else {}), "removed": [entry.uri for entry in what.removed]}
            if json:
                print_json(data, indent=None)
            else:
                print_lines(*(f"Removed {printable_name(entry.uri)}" for entry in what.removed))
        if first and not json and not quiet:
            aside().print(f"Watching {count_of(what.files, 'file')}. Ctrl-C ends it.", markup=False)
        first = False

    return tell


def reindex(
    base: BaseName = "default",
    workspace: Workspace = None,
    ocr: Ocr = None,
    engine: Engine = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Split and embed a knowledge base again: after a change of settings, or of the version.

    Documents that an earlier version read are read again from the stored originals; the files themselves are not needed. A
    reindex that was stopped is carried on by the next one, or by the next add.
    """
    with open_workspace(workspace, ocr=ocr, ingest_engine=engine) as opened:
        report = run_with_progress(lambda say: opened.documents.reindex(base, say=say), quiet=quiet or json)
    print_json(report) if json else show(report, quiet=quiet)


def run_with_progress(work: Callable[[Callable[[Progress], None]], Coroutine[Any, Any, T]], *, quiet: bool) -> T:
    """Run the work with progress output: a live line on a terminal, otherwise a line every few seconds."""
    if quiet:
        return wait_for(work(lambda _: None))
    if not sys.stderr.isatty():
        return wait_for(work(_print_periodically()))
    columns = (
        rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[rate]}"), rich.TimeElapsedColumn(), rich.TimeRemainingColumn(),
    )  # fmt: skip
    with rich.Progress(*columns, console=aside(), transient=True) as bar:
        task = bar.add_task("Reading", total=None, rate="")

        def say(progress: Progress) -> None:
            bar.update(task, completed=progress.files, total=progress.of, rate=_rate(progress))

        return wait_for(work(say))


def _rate(progress: Progress) -> str:
    per_second = progress.passages / progress.seconds if progress.seconds else 0.0
    return f"{progress.passages} passages, {per_second:.0f}/s"


def _print_periodically(every: float = 5.0) -> Callable[[Progress], None]:
    last = 0.0

    def say(progress: Progress) -> None:
        nonlocal last
        if progress.seconds - last < every:
            return
        last = progress.seconds
        left = progress.seconds / progress.files * (progress.of - progress.files) if progress.files else None
        soon = f", about {left:.0f} s left" if left else ""
        typer.echo(f"{progress.files} of {progress.of} files, {_rate(progress)}{soon}", err=True)

    return say


def show(report: Readiness, *, quiet: bool) -> None:
    shown = [file for file in report.files if len(report.files) <= SHOWN_IN_FULL or _notable(file)]
    if shown and not quiet:
        table = Table("File", "Status", "Pages", "Characters", "Passages", "What to know", box=None, pad_edge=False)
        for column in (2, 3, 4):
            table.columns[column].justify = "right"
        for file in shown:
            style = "" if file.status == "read" else "yellow"
            table.add_row(
                *cells(Path(file.path).name, file.status if file.status != "read" else file.outcome),
                *cells(str(file.pages or ""), f"{file.characters:,}" if file.characters else ""),
                *cells(str(file.passages or ""), file.why), style=style,
            )  # fmt: skip
        console().print(table)
    for warning in report.warnings:
        aside().print(plain(f"Note: {warning}"), markup=False)
    console().print(plain(_summary(report)), markup=False)


def _summary(report: Readiness) -> str:
    """The result in one line."""
    counts = [
        f"{report.readable} of {count_of(len(report.files), 'file')} ready to be asked about in {report.base!r}",
        count_of(report.pages, "page") if report.pages else "",
        count_of(report.passages, "passage"),
        f"{report.unreadable} unreadable" if report.unreadable else "",
        count_of(report.duplicates, "duplicate") if report.duplicates else "",
        f"{report.seconds:.1f} s",
        f"{report.embedded / report.seconds:.0f} new passages/s" if report.embedded > 20 else "",
    ]
    return ", ".join(count for count in counts if count) + f". Workspace: {report.workspace}"


def _notable(file: FileReport) -> bool:
    return file.status != "read" or file.outcome in {"duplicate", "moved"} or bool(file.warnings)
