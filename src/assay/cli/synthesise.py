"""`assay synthesise`: one account of many documents, with a forecast before it starts and files at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from json import loads
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assay.cli import config
from assay.cli.acting import open_workspace
from assay.cli.add import run_with_progress
from assay.cli.follow import EXIT, OutputFormat, Show, end, follow, warn_about_prices
from assay.cli.options import Json, Limits, NoModel, Out, Quiet, StakesOption, Workspace, again, with_option_groups
from assay.cli.run_view import spent
from assay.cli.synthesis_view import related
from assay.cli.terminal import (
    as_json,
    at_terminal,
    cells,
    confirm,
    console,
    plain,
    print_json,
    print_lines,
    say,
    wait_for,
    whole,
)
from assay.core.errors import UserError
from assay.core.events import Stakes
from assay.core.events.describe import count_of
from assay.core.private_files import write_private
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.synthesis import EXPERT, Approach, Pipeline, RelationType, Synthesis
from assay.core.types import Document
from assay.ingest.sources import find_sources
from assay.models.factory import has_model
from assay.synthesis.render import html, markdown
from assay.workspace.facade import DEFAULT_BASE
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import Entry
from assay.workspace.synthesis_forecast import SynthesisForecast, cost_in_words, in_words, is_large, lasting
from assay.workspace.types import SynthesisRequest

OTHERS = ("none", "late", "set")  # can be compared; `llm` would call a model for every passage again


class Rerank(StrEnum):
    none = "none"
    late = "late"
    set = "set"
    llm = "llm"


@with_option_groups
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
    limits: Limits = Limits(),
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write one account of many documents: what each says, how they relate, where they disagree; every statement cited.

    Use --pipeline summary for a quick factual digest, synthesis for a deep comparison.
    Of 10 documents of 20,000 characters they take, with a model at a provider:
    summary about 17 requests and 150,000 tokens, synthesis about 23 requests and 180,000 tokens.
    With --no-model they take none.

    Exit code 0: all documents are told; 3: some are not, or a limit was reached; 4: nothing can be told.
    """
    if out is not None and not forecast:
        check_folder(out)
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
        raise end_synthesis(opened, run, show, out, expected)


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


DATA, TEXT, PAGE = "account.json", "account.md", "account.html"
CONTRADICTIONS = 5  # printed; the files contain all


def account_folder(run: Run, out: Path | None) -> Path:
    return out.expanduser() if out else Path(f"assay-account-{run.id}")


def check_folder(folder: Path, run: str = "") -> None:
    """Raise early if the folder contains other files or another account."""
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{str(folder)!r} is a file; --out takes a folder.")
    if folder.exists() and any(folder.iterdir()) and not (run and _run_in(folder) == run):
        raise UserError(f"{str(folder)!r} has other files in it. Name a new folder with --out.")


def _run_in(folder: Path) -> str:
    """The run whose account is in a folder; empty if there is none or it is unreadable."""
    try:
        return str(loads((folder / DATA).read_text(encoding="utf-8")).get("run", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def save_account(account: Synthesis, folder: Path, document: Callable[[str], Document | None]) -> None:
    """Write page, text and data. Each is written atomically, the data first, since it identifies the folder's run."""
    check_folder(folder, account.run)
    files = {
        DATA: as_json(account) + "\n",
        TEXT: plain(markdown(account, document)),
        PAGE: plain(html(account, document)),
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, words in files.items():
            write_private(folder / name, words.encode("utf-8"))
    except OSError as error:
        raise UserError(
            f"The account cannot be written to {str(folder)!r}: {error.strerror}. "
            f"Nothing is lost: `assay resume {account.run} --out DIR` writes it elsewhere."
        ) from error


def end_synthesis(
    opened: Opened, run: Run, show: Show, out: Path | None, expected: SynthesisForecast | None = None
) -> typer.Exit:
    """Write the account if the synthesis was delivered, print a message, and return the exit code."""
    if run.answer is None:
        return end(opened, run, show)
    account = opened.syntheses.account(run.id)
    folder = account_folder(run, out)
    save_account(account, folder, opened.documents.get)
    if not show.json:
        lines = (
            [str(folder)]
            if show.quiet
            else [*summary_lines(account), *usage_lines(opened, run, expected), *file_lines(folder, run)]
        )
        if not show.quiet and sys.stderr.isatty():
            typer.echo(err=True)  # separates the view and the result
        typer.echo(plain("\n".join(lines)))
    return typer.Exit(EXIT[run.answer.outcome])


def summary_lines(account: Synthesis) -> list[str]:
    """A short summary of the result."""
    labels = account.labels
    titles = {each.doc_id: each.title for each in account.documents}
    covered = [row for row in account.ledger if row.claims]
    counts = (
        count_of(len(account.questions), "question"),
        count_of(len(account.evidence), "quotation"),
        count_of(len(account.narrative.claims), "claim"),
    )
    lines = [f"{len(covered)} of {count_of(len(account.ledger), 'document')} covered: {', '.join(counts)}."]
    lines += [
        f"  {labels[row.doc_id]} {titles.get(row.doc_id, '')} is left out: {row.reason or 'no claim rests on it'}"
        for row in account.ledger
        if not row.claims
    ]
    return [*lines, *_relations(account), *(f"Note: {note}" for note in account.notes)]


def _relations(account: Synthesis) -> list[str]:
    """The number of relations of each kind, and each contradiction."""
    if account.brief.pipeline is not Pipeline.synthesis:
        return []
    types = Counter(str(each.type) for each in account.relations)
    if not types:
        return ["No relations found that words on both sides bear out."]
    kinds = ", ".join(f"{count} {name}" for name, count in types.most_common())
    return [f"Relations: {kinds}.", *_contradictions(account)]


def _contradictions(account: Synthesis) -> list[str]:
    found = [each for each in account.relations if each.type is RelationType.contradiction]
    if not found:
        return ["No contradictions found."]
    more = [f"  and {len(found) - CONTRADICTIONS} more, in the files"] if len(found) > CONTRADICTIONS else []
    shown = [f"  {related(each, account.labels).removeprefix('contradiction ')}" for each in found[:CONTRADICTIONS]]
    return [f"{count_of(len(found), 'contradiction')}:", *shown, *more]


def usage_lines(opened: Opened, run: Run, expected: SynthesisForecast | None) -> list[str]:
    """The actual usage beside the forecast."""
    parts = [*([spent(run)] if run.asked.has_model else []), lasting(opened.questions.active_seconds(run.id))]
    text = f"It took {' · '.join(parts)}"
    return [f"{text}; the forecast was {cost_in_words(expected)}." if expected else f"{text}."]


def file_lines(folder: Path, run: Run) -> list[str]:
    return [
        f"Written to {folder.resolve()}:",
        f"  {PAGE}  to read, in a browser",
        f"  {TEXT}    to read, as text",
        f"  {DATA}  for programs",
        f"`assay trace {run.id}` shows every step.",
    ]
