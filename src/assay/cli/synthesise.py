"""`assay synthesise`: one account of many documents, with a forecast before it starts and files at the end."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assay.cli import account, config
from assay.cli.acting import open_workspace
from assay.cli.add import run_with_progress
from assay.cli.follow import OutputFormat, Show, follow, warn_about_prices
from assay.cli.options import Json, Limits, NoModel, Out, Quiet, StakesOption, Workspace, again
from assay.cli.terminal import at_terminal, cells, confirm, console, print_json, print_lines, say, wait_for, whole
from assay.core.errors import UserError
from assay.core.events import Stakes
from assay.core.settings import Settings
from assay.core.synthesis import EXPERT, Approach, Pipeline
from assay.ingest.sources import find_sources
from assay.models.factory import has_model
from assay.workspace.facade import DEFAULT_BASE
from assay.workspace.facade import Workspace as Opened
from assay.workspace.forecast import lasting
from assay.workspace.stored import Entry
from assay.workspace.synthesis_forecast import SynthesisForecast, in_words, is_large
from assay.workspace.types import SynthesisRequest

OTHERS = ("none", "late", "set")  # can be compared; `llm` would call a model for every passage again


class Rerank(StrEnum):
    none = "none"
    late = "late"
    set = "set"
    llm = "llm"


Cost = Annotated[
    float | None,
    typer.Option("--max-cost", min=0, help="USD that it may cost; 0 for no ceiling. Default: the setting."),
]
Tokens = Annotated[
    int | None,
    typer.Option("--max-tokens", min=0, help="Tokens that it may take; 0 for no ceiling. Default: the setting."),
]
Seconds = Annotated[
    float | None, typer.Option("--max-seconds", min=0.1, help="Active seconds that it may take. Default: the setting.")
]


def synthesise(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders: they are added first, and only they are read.", metavar="PATH…"),
    ] = None,
    base: Annotated[
        str, typer.Option("--base", "-b", help="All documents of this knowledge base; with PATH: where to add them.")
    ] = "",
    pipeline: Annotated[
        Pipeline, typer.Option(help="summary: a quick factual digest; synthesis: a deep comparison.")
    ] = Pipeline.synthesis,
    focus: Annotated[str, typer.Option(help="What you want to know, in a sentence. Default: all of it.")] = "",
    questions: Annotated[int, typer.Option("--questions", min=1, max=20, help="Questions per document.")] = 3,
    audience: Annotated[
        list[str] | None,
        typer.Option(help="Also write it for: plain, executive, or readers as you describe them. May be repeated."),
    ] = None,
    approach: Annotated[
        Approach, typer.Option(help="For each question one search, or a short run of the agent.")
    ] = Approach.search,
    top: Annotated[int, typer.Option(min=1, max=20, help="Passages that each question adds of long documents.")] = 3,
    rerank: Annotated[
        Rerank,
        typer.Option(help="What chooses them: nothing, late interaction, the reranker that is set, or the model."),
    ] = Rerank.late,
    compare_rerankers: Annotated[
        bool, typer.Option("--compare-rerankers", help="Show what the other rerankers would have chosen.")
    ] = False,
    out: Out = None,
    forecast: Annotated[bool, typer.Option("--forecast", help="Only say what it would take.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, however much it will take.")] = False,
    stakes: StakesOption = Stakes.normal,
    no_model: NoModel = False,
    max_cost: Cost = None,
    max_tokens: Tokens = None,
    max_seconds: Seconds = None,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one account of many documents: what each says, how they relate, where they disagree; every statement cited.

    Use --pipeline summary for a quick factual digest, synthesis for a deep comparison.
    Of 10 documents of 20,000 characters they take, with a model at a provider:
    summary about 15 requests and 140,000 tokens, synthesis about 17 requests and 160,000 tokens.
    With --no-model they take none.

    Exit code 0: all documents are told; 3: some are not, or a limit was reached; 4: nothing can be told.
    """
    if out is not None and not forecast:
        account.check_folder(out)
    limits = Limits(max_cost, max_tokens, max_seconds)
    with open_workspace(workspace, create=bool(paths), **limits.settings("synthesis")) as opened:
        model = not no_model
        _check_reranker(opened.settings, rerank, has_model=model and has_model(opened.settings))
        options = SynthesisRequest(
            pipeline=pipeline,
            focus=whole(focus),
            questions=questions,
            audiences=tuple(dict.fromkeys((EXPERT, *map(whole, audience or ())))),
            approach=approach,
            top=top,
            reranker=rerank,
            compare=_others(opened.settings, rerank) if compare_rerankers else (),
            model=model,
            stakes=stakes,
        )
        config.settle(opened, model=options.model)
        if paths:
            documents, unread = add_files(opened, paths, whole(base) or DEFAULT_BASE, quiet=quiet or json)
        else:
            documents, unread = select_base(opened, whole(base))
        if unread and not quiet and not json:
            more = [f"  and {len(unread) - SHOWN} more"] if len(unread) > SHOWN else []
            say("\n".join(["Not read, and not included:", *(f"  {each}" for each in unread[:SHOWN]), *more]))
        expected = wait_for(opened.syntheses.plan(documents, options))
        if forecast:
            print_json(expected) if json else _show(expected, opened.settings)
            return
        _settle(expected, opened.settings, yes=yes, json=json, quiet=quiet)
        show = Show(OutputFormat.text, json, quiet, again(workspace, limits, out))
        run = follow(opened, opened.syntheses.begin(documents, options), show)
        raise account.end(opened, run, show, out, expected)


synthesize = synthesise


def _check_reranker(settings: Settings, rerank: Rerank, *, has_model: bool) -> None:
    """Raise early if the reranker is not possible under these settings."""
    if rerank is Rerank.llm and not has_model:
        raise UserError("`--rerank llm` needs a language model: set one, or choose `--rerank late`.")
    if rerank is Rerank.set and settings.reranker == "none":
        raise UserError(
            "`--rerank set` takes the setting `reranker`, and that is `none`. Set it, or choose `--rerank late`."
        )


def _others(settings: Settings, rerank: Rerank) -> tuple[str, ...]:
    """The rerankers to compare with."""
    same = {"set"} if settings.reranker in ("none", "late") else set()
    return tuple(name for name in OTHERS if name not in {rerank, *same})


def _settle(expected: SynthesisForecast, settings: Settings, *, yes: bool, json: bool, quiet: bool) -> None:
    """Print the forecast; ask for confirmation if it is large, or refuse if not interactive."""
    asks = is_large(expected) and not yes
    if asks and (json or not at_terminal()):
        raise UserError(f"This is a large synthesis: {in_words(expected)} Pass --yes to start it.")
    if not json and (asks or not quiet):
        say(f"Forecast: {in_words(expected)}")
        for line in _ceilings(expected, settings):
            say(line)
        if expected.calls and settings.synthesis_money:
            warn_about_prices(settings)
    if not asks:
        return
    try:
        agreed = confirm("That is much. Start it?")
    except KeyboardInterrupt:
        agreed = False
    if not agreed:
        say("Not started. Nothing was sent. Fewer --questions, --pipeline summary or --no-model take less.")
        raise typer.Exit(130)


def _ceilings(expected: SynthesisForecast, settings: Settings) -> list[str]:
    """Ceilings that will probably be reached: better known now than in an hour."""
    limits = [
        (expected.calls, settings.synthesis_calls, "{:,} requests".format),
        (expected.tokens_in + expected.tokens_out, settings.synthesis_tokens, "{:,} tokens".format),
        (expected.money or 0, settings.synthesis_money, "${:g}".format),
        (expected.seconds, settings.synthesis_seconds, lasting),
    ]
    return [
        f"Note: the limit of {words(most)} will probably be reached; from there on it goes by rule."
        for takes, most, words in limits
        if most and takes > most
    ]


def _show(expected: SynthesisForecast, settings: Settings) -> None:
    """Print only the forecast, stage by stage."""
    print_lines(in_words(expected))
    if expected.parts:
        table = Table("Stage", "Requests", "Tokens in", "Tokens out", box=None, pad_edge=False)
        for column in table.columns[1:]:
            column.justify = "right"
        for part in expected.parts:
            table.add_row(*cells(part.stage, f"{part.calls:,}", f"{part.tokens_in:,}", f"{part.tokens_out:,}"))
        console().print(table)
    for line in (*expected.notes, *_ceilings(expected, settings)):
        say(line)


SHOWN = 10  # unreadable files listed


Selection = tuple[list[str], list[str]]  # document ids in the order given, and what could not be read with the reason


def add_files(opened: Opened, paths: Sequence[str], base: str, *, quiet: bool) -> Selection:
    """Exactly the named files; those not in the base yet are added first."""
    files = find_sources([Path(path) for path in paths])
    report = run_with_progress(lambda say: opened.documents.add_sources(files, base, say=say), quiet=quiet)
    read = {file.path for file in report.files if file.status == "read"}
    entries = opened.documents.listing([base])
    ready = [entry for entry in entries if entry.standing == "ready"]
    places, contents = {entry.uri: entry.id for entry in ready}, {entry.digest: entry.id for entry in ready}
    found = [places.get(file.uri) or contents.get(file.digest()) for file in files if file.uri in read]
    unread = [f"{Path(file.path).name}: {file.why}" for file in report.files if file.path not in read]
    named = {file.uri for file in files}
    unread += [f"{entry.name}: {_why(entry)}" for entry in entries if entry.off and entry.uri in named]
    return list(dict.fromkeys(doc for doc in found if doc)), unread


def select_base(opened: Opened, base: str) -> Selection:
    """All documents of a base; without a name, of the only existing base."""
    names = [each.name for each in opened.scope().bases]
    if not base and len(names) > 1:
        raise UserError(f"Which knowledge base? Name it with --base. There is: {', '.join(sorted(names))}.")
    entries = opened.documents.listing([base] if base else names)
    unread = [f"{entry.name}: {_why(entry)}" for entry in entries if entry.standing != "ready"]
    return [entry.id for entry in entries if entry.standing == "ready"], unread


def _why(entry: Entry) -> str:
    if entry.off:
        return "it is switched off; `assay on` switches it on"
    return entry.why or "it was not read to the end; `assay add` finishes it"
