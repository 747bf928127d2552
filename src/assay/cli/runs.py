"""`assay runs`, `assay trace`: what was asked, and everything that was done about it."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.ask import EXIT, Format, told, written
from assay.cli.options import Json, Workspace, console, plain, print_json


def runs(
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 20,
    json: Json = False,
) -> None:
    """List what was asked, newest first."""
    from assay.store import records
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        entries = records.listing(opened.store, opened.principal.id, limit)
    if json:
        print_json(
            [
                {"run": entry.id, "started": entry.started, "delivered": entry.delivered, "question": question}
                for entry, question in entries
            ]
        )
        return
    for entry, question in entries:
        state = "" if entry.delivered else " (not finished)"
        console().print(plain(f"{entry.id}  {entry.started[:19]}  {question}{state}"), markup=False)


def trace(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show every step of a run, and whether its record is whole."""
    from assay.codec import to_json
    from assay.store import records
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        chain = records.chain(opened.store, run, opened.principal.id)
        events = opened.run(run).events
        faults = list(records.faults(opened.store, run))
    if json:
        print_json(
            {
                "run": run,
                "whole": not faults,
                "faults": faults,
                "records": [
                    {**to_json(record), "payload": to_json(event)} for record, event in zip(chain, events, strict=True)
                ],
            }
        )
        raise typer.Exit(1 if faults else 0)
    for record, event in zip(chain, events, strict=True):
        console().print(f"{record.seq:>3}  {record.at}  {record.kind}  {record.hash[:12]}", markup=False)
        if line := told(event):
            console().print(plain("     " + line.replace("\n", "\n     ")), style="dim", markup=False)
    console().print(
        "The record is whole." if not faults else plain("The record is damaged: " + "; ".join(faults)), markup=False
    )
    raise typer.Exit(1 if faults else 0)


def replay(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="How the answer is written.")] = Format.text,
    workspace: Workspace = None,
) -> None:
    """Print a run's answer again, from its record alone: nothing is searched, nothing is asked."""
    from assay.errors import UserError
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        recorded = opened.run(run)
        if recorded.answer is None:
            raise UserError(f"Run {run} was not finished. `assay resume {run}` carries it on.")
        typer.echo(written(recorded, opened, format))
    raise typer.Exit(EXIT[recorded.answer.outcome])
