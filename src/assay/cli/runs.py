"""`assay runs`, `assay trace`: the questions asked, and every step of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import Json, Workspace, console, plain, print_json

if TYPE_CHECKING:
    from assay.core.types import Usage


def runs(
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 20,
    review: Annotated[
        bool, typer.Option("--review", help="Only those that a limit cut short, and those that failed.")
    ] = False,
    json: Json = False,
) -> None:
    """List what was asked, newest first, with how it ended and what it took."""
    from assay.cli.acting import open_workspace
    from assay.core.codec import to_json
    from assay.workspace.stored import history

    with open_workspace(workspace) as opened:
        entries = history.history(opened.store, opened.principal.id, opened.scope(), limit)
    if review:
        entries = [each for each in entries if each.cut_short or each.state == "failed"]
    if json:
        print_json([{"run": each.id, **{k: v for k, v in to_json(each).items() if k != "id"}} for each in entries])
        return
    for each in entries:
        cost = f"{_cost(each.usage):>10}"
        many = f"[{each.documents} documents] " if each.documents else ""
        line = f"{each.id}  {each.started[:19]}  {each.state:<10}  {cost}  {many}{each.question}"
        console().print(plain(line), markup=False)


def _cost(usage: Usage) -> str:
    """The cost if a price is known, else tokens; empty if no model was used."""
    from assay.core.events.describe import format_money

    if usage.money:
        return format_money(usage.money)
    return f"{usage.tokens_in + usage.tokens_out:,} tok" if usage.calls else ""


def trace(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show every step of a run, what its judges said of each claim, and whether its record is whole."""
    from assay.cli.acting import open_workspace
    from assay.cli.run_view import event_lines
    from assay.core.codec import to_json
    from assay.core.events.describe import record_line
    from assay.workspace.stored import records

    with open_workspace(workspace) as opened:
        chain = records.chain(opened.store, run, opened.principal.id)
        seen = opened.questions.run_for_asker(run)
        events = seen.events
        below = [event_lines(event, seen, opened.documents.get) for event in events]
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
    wide = max([9, *(len(record.kind) for record in chain)])
    for record, event, details in zip(chain, events, below, strict=True):
        head = f"{record.seq:>3}  {record.at[:19]}  {record.hash[:12]}  {record.kind:<{wide}}"
        for line in (f"{head}  {record_line(event)}", *(f"{'':<7}{each}" for each in details)):
            console().print(plain(line), markup=False)
    console().print(
        "The record is whole." if not faults else plain("The record is damaged: " + "; ".join(faults)), markup=False
    )
    raise typer.Exit(1 if faults else 0)


def feedback(
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 50,
    json: Json = False,
) -> None:
    """List what you said of answers on the page, newest first. With --json each is a case for evaluation."""
    from assay.cli.acting import open_workspace

    with open_workspace(workspace) as opened:
        found = opened.questions.feedback(limit=limit)
    if json:
        print_json(
            [
                {
                    "run": each.entry.given.run,
                    "at": each.entry.at,
                    "kind": each.entry.given.kind,
                    "question": each.question,
                    "statement": each.statement,
                    "words": each.entry.given.words,
                    "withheld": each.entry.withheld,
                }
                for each in found
            ]
        )
        return
    for each in found:
        of = each.entry.given
        about = each.statement or each.question or "(withheld)"
        words = f"  [{of.words}]" if of.words else ""
        console().print(plain(f"{of.run}  {each.entry.at[:19]}  {of.kind:<10}  {about}{words}"), markup=False)
