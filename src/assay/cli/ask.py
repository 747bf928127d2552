"""`assay ask`, `assay resume`, `assay search`: an answer with verifiable citations, and its progress; passages alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal

import typer

from assay.cli import config
from assay.cli.acting import open_workspace
from assay.cli.follow import FormatOption, OutputFormat, Show, end, follow, show_forecast, warn_before_asking
from assay.cli.options import (
    Asking,
    Filters,
    FourEyes,
    Json,
    Limits,
    Out,
    Quiet,
    Verbose,
    WorkingOption,
    Workspace,
    again,
    with_option_groups,
)
from assay.cli.terminal import aside, console, plain, print_json, say, say_if_any, wait_for, whole
from assay.core.errors import UserError
from assay.core.events import Route
from assay.core.types import Document, Hit, Passage
from assay.tables.parts import blocks_within, text_table


@with_option_groups
def ask(
    question: Annotated[str, typer.Argument(help="A question about your documents.")],
    asking: Asking = Asking(),
    route: Annotated[
        Literal["lookup", "research", "one-shot"] | None,
        typer.Option(help="One look-up, or the whole research, without a model choosing which."),
    ] = None,
    four_eyes: FourEyes = False,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Only say what it would take; nothing is asked.")
    ] = False,
    limits: Limits = Limits(),
    format: FormatOption = OutputFormat.text,
    filters: Filters = Filters(),
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    working: WorkingOption = False,
) -> None:
    """Answer QUESTION from the documents, with citations you can check.

    Exit code 0: found, or answered; 3: perhaps, or partly; 4: not found; 5: it waits for you or for a reviewer. --json
    prints one event per line.
    """
    how = asking.options(filters.where(), Route(route) if route else None)
    with open_workspace(workspace, **limits.settings("budget_run"), review_four_eyes=four_eyes or None) as opened:
        if forecast:
            show_forecast(opened.questions.forecast(how), json=json)
            return
        config.settle(opened, model=how.model)
        warn_before_asking(opened, how, quiet=quiet)
        show = Show(format, json, quiet, again(workspace, limits), verbose, working)
        ended = follow(opened, opened.ask(whole(question), how), show)
        if how.model and not quiet and (small := opened.models.too_small()):
            say(
                f"Note: {small} is too small to write answers, so rules chose these quotations. `assay doctor` says why."
            )
        raise end(opened, ended, show)


@with_option_groups
def resume(
    run: Annotated[str, typer.Argument(help="A run that was not finished, as `assay runs` gives it.")],
    choose: Annotated[
        str, typer.Option(help="Where the run waits for you: the option that you choose, by its words or its number.")
    ] = "",
    words: Annotated[str, typer.Option(help="Your own words, where the option asks for some.")] = "",
    limits: Limits = Limits(),
    format: FormatOption = OutputFormat.text,
    out: Out = None,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    working: WorkingOption = False,
) -> None:
    """Carry on a run that was stopped, has failed or waits for you; what is recorded is not done again.

    Of a synthesis it writes the files again, into --out.
    """
    from assay.cli.synthesise import account_folder, check_folder, end_synthesis  # a question needs none of it

    with open_workspace(workspace, **limits.settings("budget_run"), **limits.settings("synthesis")) as opened:
        known = opened.questions.run(run)
        if known.asked.brief is not None:
            check_folder(account_folder(known, out), run)
        if not known.delivered:
            config.settle(opened, model=known.asked.has_model)
        show = Show(format, json, quiet, again(workspace, limits, out), verbose, working)
        undecided = (known.waiting is not None and not choose) or bool(known.held or known.rejected)
        steps = None if undecided else opened.resume(run, whole(choose), whole(words))
        ended = follow(opened, steps, show, opened.questions.run_for_asker(run, known))
        raise end(opened, ended, show) if known.asked.brief is None else end_synthesis(opened, ended, show, out)


INDENT = 4


@with_option_groups
def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="How many passages.")] = 10,
    filters: Filters = Filters(),
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Find passages by words and by meaning."""
    if not query.strip():
        raise UserError("The query is empty. Give a few words to search for.")
    where = filters.where()
    with open_workspace(workspace) as opened:
        hits = wait_for(opened.search(whole(query), k, where))
        say_if_any(opened.documents.outdated(where.bases))
        left_out = opened.documents.left_out(where)
        if left_out and left_out.documents:
            aside().print(left_out.sentence, markup=False)
        if json:
            print_json([_hit_as_json(hit) for hit in hits])
            return
        _show_hits(hits, opened.documents.get)


def _show_hits(hits: Sequence[Hit], document: Callable[[str], Document | None]) -> None:
    out = console()
    if not hits:
        out.print("Nothing was found.")
    for hit in hits:
        page = f", page {hit.passage.page}" if hit.passage.page else ""
        heading = f" › {hit.passage.heading}" if hit.passage.heading else ""
        out.print(plain(f"{hit.rank:>2}  {hit.title}{heading}{page}"), style="bold", markup=False)
        out.print(plain(f"    {PurePath(str(hit.fields.get('source', ''))).name}"), style="dim", markup=False)
        if hit.passage.context:
            out.print(plain("    " + " · ".join(hit.passage.context.splitlines())), style="dim", markup=False)
        for line in passage_lines(hit.passage, document(hit.passage.doc_id), out.width - INDENT):
            out.print(plain(" " * INDENT + line), markup=False)


def passage_lines(passage: Passage, document: Document | None, width: int) -> list[str]:
    """A passage as lines: rows of a table under its header, in columns if they fit; all else on one line."""
    if document is None or not document.tables:
        return [" ".join(passage.text.split())]
    lines: list[str] = []
    for block in blocks_within(document, passage.start, passage.end):
        aligned = text_table(block.table) if block.table else []
        if block.table and max(map(len, aligned)) > width:
            aligned = [" ".join(document.text[row.start : row.end].split()) for row in block.table.rows]
        lines += aligned or filter(None, [" ".join(block.text.split())])
    return lines


def _hit_as_json(hit: Hit) -> dict[str, Any]:
    passage = hit.passage
    return {
        "rank": hit.rank, "document": passage.doc_id, "title": hit.title, "path": hit.fields.get("source", ""),
        "heading": passage.heading, "page": passage.page, "start": passage.start, "end": passage.end, "text": passage.text,
        "context": passage.context,
    }  # fmt: skip
