"""`assay audit`, `assay verify`, `assay export`: the record of all runs, signed, checked, erased when it is old, exported.
`assay report`, `assay monitor`: statistics from it, and configuration files for monitoring."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Quiet, Workspace, days_between
from assay.cli.terminal import aside, cells, console, picked, plain, print_json, print_result, whole
from assay.core.codec import to_json
from assay.core.errors import UserError
from assay.core.events.describe import describe
from assay.core.private_files import write_private
from assay.governance.audit import witness
from assay.governance.audit.export import export_bundle
from assay.governance.audit.retention import erase_old
from assay.governance.audit.verify import ReportProgress, Verification
from assay.governance.audit.verify import verify as look
from assay.governance.audit.witness import audit_context, erasure_signer
from assay.governance.audit.witness import seal as sign
from assay.governance.reports import ReportKind
from assay.governance.reports.definitions import build_report, build_run_account
from assay.governance.reports.report import Cell, Report, monitoring_file, to_csv

app = typer.Typer(no_args_is_help=True)


@app.command()
def seal(
    accept_erasures: Annotated[
        bool,
        typer.Option(
            "--accept-erasures", help="Also sign notes of erasures that an earlier version of Assay wrote unsigned."
        ),
    ] = False,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Sign the head of all records, and write it to the second place where one is set.

    A server does so by itself, every `audit_minutes` and when it stops.
    """
    with open_workspace(workspace) as opened:
        context = audit_context(opened.store, opened.path, opened.settings)
        made = sign(context, accept_erasures=accept_erasures)
    if json:
        print_json(made)
    elif made is None:
        typer.echo("There are no records yet; nothing was signed.")
    else:
        copied, alone = f" and in {context.witness_file}", "; set `audit_copy`, for this alone finds accidents only"
        where = copied if context.witness_file else alone
        typer.echo(plain(f"Signed up to record {made.n}, at {made.at}: in the workspace{where}."))


@app.command()
def key(workspace: Workspace = None) -> None:
    """Print the public key that seals and bundles are signed with. It is made when there is none."""
    with open_workspace(workspace) as opened:
        typer.echo(audit_context(opened.store, opened.path, opened.settings).signer.public)


@app.command()
def log(workspace: Workspace = None, json: Json = False) -> None:
    """List who was given or denied access, changes of accounts, groups and keys, and what was erased."""
    with open_workspace(workspace) as opened:
        found = opened.records.log()
    if json:
        print_json([{"at": at, "kind": type(event).__name__, **to_json(event)} for at, event in found])
        return
    if not found:
        typer.echo("No change of access or accounts is on record, and no erasure.")
    for at, event in found:
        line = describe(event)
        typer.echo(plain(f"{at[:16].replace('T', ' ')}  {line.title}: {line.line}"))


@app.command()
def retention(
    days: Annotated[
        int | None, typer.Option("--days", min=0, help="Keep so many days. Default: the setting `retention_days`.")
    ] = None,
    shorter: Annotated[bool, typer.Option("--shorter", help="Less than six months is meant.")] = False,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Erase what runs recorded that are older than that. The chain stays, with a note on what went.

    A server does so by itself, once a day.
    """
    with open_workspace(workspace) as opened:
        kept = opened.settings.retention_days if days is None else days
        sign = erasure_signer(opened.path, opened.settings)
        gone = erase_old(opened.store, kept, opened.principal.id, sign, shorter=shorter)
    day = gone.before[:10]
    if json:
        print_json(gone)
    elif not kept:
        typer.echo("Everything is kept: 0 days is no limit.")
    elif not gone.runs:
        typer.echo(f"Nothing was erased: no run ended before {day}.")
    else:
        typer.echo(f"Erased what runs recorded that ended before {day}: {gone.runs} runs, {gone.payloads} records.")


SHOWN = 20  # faults printed


def verify(
    run: Annotated[str, typer.Argument(help="Only this run, as `assay runs` gives it.")] = "",
    copy: Annotated[
        Path | None, typer.Option("--copy", help="The second place. Default: the setting `audit_copy`.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="PUBLIC_KEY",
            help="The key that must have signed, as `assay audit key` says. After a change of keys: each, the oldest first.",
        ),
    ] = None,
    workspace: Workspace = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check every record: nothing changed, removed, put in, moved or cut off. The first bad one is named.

    Exit code 0 where all is whole, 1 where something is not.
    """
    keys = [each.strip().lower() for each in key or ()]
    with open_workspace(workspace) as opened:
        place = witness.witness_file(str(copy) if copy else opened.settings.audit_copy, opened.path)
        found = look(opened.store, place, run=run, keys=keys, say=_progress(quiet or json))
    print_result(json, as_data(found), describe_verification(found, placed=place is not None))
    raise typer.Exit(0 if found.whole else 1)


def _progress(silent: bool) -> ReportProgress:
    if silent or not sys.stderr.isatty():
        return lambda done, every: None
    return lambda done, every: aside().print(f"{done:,} of {every:,} records", style="dim")


def as_data(found: Verification) -> dict[str, object]:
    return {
        **picked(found, "whole records runs erased seconds"),
        "faults": [picked(each, "record what words run seq") for each in found.faults],
        "sealed": picked(found.sealed, "n at where key") if found.sealed else None,
        "since": found.since,
        "unsealed_since": found.unsealed_since,
        "second_place": found.witnessed,
    }


def describe_verification(found: Verification, *, placed: bool = False) -> list[str]:
    """The result of a verification, as lines."""
    rate = f" ({found.records / found.seconds:,.0f} a second)" if found.seconds > 0.5 else ""
    lines = [f"{found.records:,} records of {found.runs:,} runs were checked in {found.seconds:.1f} s{rate}."]
    if found.erased:
        lines.append(f"What {found.erased:,} of them said was erased; notes on record say so.")
    lines += [f"{each.record + ': ' if each.run else ''}{each.words}." for each in found.faults[:SHOWN]]
    if len(found.faults) > SHOWN:
        lines.append(f"… and {len(found.faults) - SHOWN} more.")
    if found.sealed:
        lines.append(f"Signed up to record {found.sealed.n:,}, at {found.sealed.at}, in {found.sealed.where}.")
        lines.append(f"Signed with {found.sealed.key}.")
    if found.since:
        lines.append(
            f"Records since the last seal: {found.since:,}. Whoever can write the whole workspace could change these unseen. "
            "`assay audit seal` seals them."
        )
    if not found.witnessed and not placed:
        lines.append("There is no second place, so this finds accidents only: set `audit_copy` to a folder elsewhere.")
    elif not found.witnessed:
        lines.append(
            "Nothing was sealed in the second place, so this finds accidents only. `assay audit seal` seals there."
        )
    return [*lines, found.conclusion]


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


def monitor(file: Annotated[Literal["alerts", "dashboard"], typer.Argument(help="Which file to print.")]) -> None:
    """Print the alert rules for Prometheus, or the dashboard for Grafana, over what a server shows under /metrics."""
    typer.echo(monitoring_file("alerts.yml" if file == "alerts" else "dashboard.json"), nl=False)


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
