"""`assay feedback`: what you said of answers, as a list or as cases for evaluation."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.options import Json, Workspace, console, plain, print_json


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
