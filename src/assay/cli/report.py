"""`assay report`, `assay monitor`: statistics over all runs from their records, and configuration files for
monitoring."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace, days_between
from assay.cli.terminal import aside, cells, console, plain, print_json, whole
from assay.core.errors import UserError
from assay.core.private_files import write_private
from assay.governance.audit.export import export_bundle
from assay.governance.reports import ReportKind
from assay.governance.reports.definitions import build_report, build_run_account
from assay.governance.reports.report import Cell, Report, to_csv
from assay.governance.reports.thresholds import monitoring_file


class MonitoringFile(StrEnum):
    alerts = "alerts"
    dashboard = "dashboard"


def report(
    kind: Annotated[ReportKind, typer.Argument(help="What to report on.")],
    run: Annotated[str, typer.Argument(help="Of `runs`: the account of this one.")] = "",
    since: Annotated[
        str, typer.Option(help="Only runs begun from this day on: 2026, 2026-05-17, 'last 3 months'.")
    ] = "",
    until: Annotated[str, typer.Option(help="Only runs begun up to this day.")] = "",
    who: Annotated[str, typer.Option(help="Only this person's. Default: everybody's.")] = "",
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Report on runs by week, tools, reviewers' overrides, rounds of searching, forecasts, or the health of it all.

    Everything is computed from the records and from what was spent. Exit code 1: `health` raises an alarm.
    """
    if run and kind is not ReportKind.runs:
        raise UserError(f"The report on {kind.value} is about all runs. `assay report runs {run}` is about this one.")
    first, last = days_between(since, until)
    if first and last and first > last:
        raise UserError(f"--since {first} is later than --until {last}: no run was begun so.")
    with open_workspace(workspace) as opened:
        if run:
            made = build_run_account(opened.store, opened.questions.run_for_asker(run))
        else:
            made = build_report(opened.store, kind, first or "", last or "", whole(who) or None)
    _print_table(made, csv=csv, json=json)
    raise typer.Exit(1 if kind is ReportKind.health and any("alarm" in row for row in made.rows) else 0)


def _print_table(made: Report, *, csv: bool, json: bool) -> None:
    if json:
        print_json(made)
        return
    if csv:
        typer.echo(plain(to_csv(made)), nl=False)
        return
    console().print(plain(made.title), markup=False, style="bold")
    aside().print(plain(made.about), markup=False, style="dim")
    if not made.rows:
        return
    kept = [at for at in range(len(made.columns)) if any(row[at] not in (None, 0, "") for row in made.rows)]
    table = Table(*(made.columns[at].name for at in kept), box=None, pad_edge=False)
    for row in made.rows:
        table.add_row(*cells(*(format_cell(row[at], made.columns[at].name) for at in kept)))
    console().print(table)


def format_cell(cell: Cell, column: str = "") -> str:
    """A report value as text. Rates are shown in per cent."""
    if cell is None:
        return "–"
    if column.endswith("rate") and isinstance(cell, int | float):
        return f"{100 * cell:.3g} %"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:,.4g}" if isinstance(cell, float) else cell


def monitor(file: Annotated[MonitoringFile, typer.Argument(help="Which file to print.")]) -> None:
    """Print the alert rules for Prometheus, or the dashboard for Grafana, over what a server shows under /metrics."""
    typer.echo(monitoring_file("alerts.yml" if file is MonitoringFile.alerts else "dashboard.json"), nl=False)


def export(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write. Default: ./RUN.zip.")] = None,
    workspace: Workspace = None,
) -> None:
    """Write a run with its evidence and its proof to one file; `python3 check.py FILE` checks it without Assay."""

    file = (out or Path(f"{run}.zip")).expanduser()
    if file.exists():
        raise UserError(f"{str(file)!r} exists already. Choose another name with --out.")
    if not file.absolute().parent.is_dir():
        raise UserError(f"There is no folder {str(file.parent)!r} to write the bundle to.")
    with open_workspace(workspace) as opened:
        seen = opened.questions.run_for_asker(run)
        made = export_bundle(opened.store, opened.path, opened.settings, seen, opened.scope())
    write_private(file, made)
    typer.echo(plain(f"Wrote {file} ({len(made) / 1e6:.1f} MB). Check it with: python3 check.py {file}"))
    typer.echo("check.py is inside it; `unzip -p FILE check.py > check.py` takes it out.")
