"""`assay ask`: an answer with citations that can be checked, and how it came about."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import (
    Bases,
    Json,
    Meta,
    Quiet,
    Since,
    Sources,
    Types,
    Until,
    Workspace,
    as_json,
    aside,
    plain,
    print_json,
    wait_for,
    where_of,
    whole,
)

if TYPE_CHECKING:
    from assay.events import Event
    from assay.run import Run
    from assay.workspace import Workspace as Opened

    Steps = AsyncIterator[tuple[Run, Event]]

EXIT = {"answered": 0, "direct": 0, "partial": 3, "abstained": 4}


class Mode(StrEnum):
    quick = "quick"
    balanced = "balanced"
    thorough = "thorough"


class Format(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


def ask(
    question: Annotated[str, typer.Argument(help="A question about your documents.")],
    mode: Annotated[Mode, typer.Option(help="How far to go: up to 6, 12 or 24 searches.")] = Mode.balanced,
    format: Annotated[Format, typer.Option("--format", "-f", help="How the answer is written.")] = Format.text,
    bases: Bases = None,
    sources: Sources = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    meta: Meta = None,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer QUESTION from the documents, with citations you can check.

    Exit code 0: answered; 3: partly; 4: the documents do not answer it. --json prints one event per line.
    """
    from assay.events import Mode as RunMode
    from assay.workspace import open_workspace

    where = where_of(bases, sources, types, since, until, meta)
    with open_workspace(workspace) as opened:
        _answer(opened, opened.ask(whole(question), mode=RunMode(mode), where=where), format, json=json, quiet=quiet)


def resume(
    run: Annotated[str, typer.Argument(help="A run that was not finished, as `assay runs` gives it.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="How the answer is written.")] = Format.text,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Carry on a run that was stopped; what is recorded is not done again."""
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        _answer(opened, opened.resume(run), format, json=json, quiet=quiet, known=opened.run(run))


def _answer(opened: Opened, steps: Steps, format: Format, *, json: bool, quiet: bool, known: Run | None = None) -> None:
    """Follow a run to its answer, print that, and end with the exit code that says how it went."""
    run = wait_for(_followed(steps, json=json, quiet=quiet)) or known
    assert run is not None and run.answer is not None
    if not json:
        sys.stdout.write(written(run, opened, format) + "\n")
    raise typer.Exit(EXIT[run.answer.outcome])


async def _followed(steps: Steps, *, json: bool, quiet: bool) -> Run | None:
    run = None
    async for run, event in steps:
        if json:
            from assay.codec import to_json

            print_json(
                {"run": run.id, "seq": len(run.events) - 1, "event": type(event).__name__, **to_json(event)},
                indent=None,
            )
        elif not quiet and (line := told(event)):
            aside().print(plain(line), style="dim", markup=False)
    return run


def told(event: Event) -> str:
    """One event in a line, for somebody who watches; most need none."""
    from assay.events import Decided, Gathered, Routed, Stopped, ToolRan

    match event:
        case Routed(since=since, until=until) if since or until:
            return f"No documents dated outside {since or '…'} to {until or '…'}."
        case Decided(calls=calls):
            return "\n".join(f"Searching: {call.arguments['query']}" for call in calls)
        case ToolRan(error=error) if error:
            return f"  refused: {error}"
        case Gathered(evidence=evidence):
            return f"  {len(evidence)} passages weighed as evidence"
        case Stopped(reason=reason, why=why):
            return f"Stopped: {reason}{f' ({why})' if why else ''}."
        case _:
            return ""


def written(run: Run, opened: Opened, format: Format) -> str:
    """The run's answer in the format asked for."""
    from assay.answer import render
    from assay.codec import to_json

    answer = run.answer
    assert answer is not None
    cited = render.citations(answer, run.evidence, opened.document)
    match format:
        case Format.markdown:
            return plain(render.as_markdown(answer, cited))
        case Format.html:
            return plain(render.as_html(answer, cited))
        case Format.bibtex:
            return plain(render.as_bibtex(cited))
        case Format.json:
            data = render.as_json(answer, cited)
            for each in data["citations"]:
                each["boxes"] = to_json(wait_for(opened.boxes(each["document"], each["start"], each["end"])))
            return as_json({"run": run.id, **data})
        case _:
            return plain(render.as_text(answer, cited))
