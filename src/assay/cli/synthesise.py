"""`assay synthesise`: one account of many documents, with a forecast before it starts and files at the end."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.add import run_with_progress
from assay.cli.options import (
    Json,
    Out,
    Quiet,
    StakesChoice,
    StakesOption,
    Workspace,
    again,
    at_terminal,
    cells,
    confirm,
    console,
    plain,
    print_json,
    say,
    synthesis_limits,
    wait_for,
    whole,
)
from assay.core.errors import UserError

if TYPE_CHECKING:
    from assay.core.settings import Settings
    from assay.ingest.readiness import Readiness
    from assay.workspace.facade import Workspace as Opened
    from assay.workspace.stored import Entry
    from assay.workspace.synthesis_forecast import SynthesisForecast
    from assay.workspace.types import SynthesisRequest

OTHERS = ("none", "late", "set")  # can be compared; `llm` would call a model for every passage again


class PipelineOption(StrEnum):
    summary = "summary"
    synthesis = "synthesis"


class ApproachOption(StrEnum):
    search = "search"
    agent = "agent"


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
        PipelineOption, typer.Option(help="summary: a quick factual digest; synthesis: a deep comparison.")
    ] = PipelineOption.synthesis,
    focus: Annotated[str, typer.Option(help="What you want to know, in a sentence. Default: all of it.")] = "",
    questions: Annotated[int, typer.Option("--questions", min=1, max=20, help="Questions per document.")] = 3,
    audience: Annotated[
        list[str] | None,
        typer.Option(help="Also write it for: plain, executive, or readers as you describe them. May be repeated."),
    ] = None,
    approach: Annotated[
        ApproachOption, typer.Option(help="For each question one search, or a short run of the agent.")
    ] = ApproachOption.search,
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
    stakes: StakesChoice = StakesOption.normal,
    no_model: Annotated[bool, typer.Option("--no-model", help="Go by rule, whatever model is set.")] = False,
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
    from assay.cli import account, config
    from assay.cli.acting import open_workspace
    from assay.cli.follow import OutputFormat, Show, follow
    from assay.core.events import Stakes
    from assay.workspace.facade import DEFAULT_BASE

    if out is not None and not forecast:
        account.check_folder(out)
    limits = synthesis_limits(max_cost, max_tokens, max_seconds)
    with open_workspace(workspace, create=bool(paths), **limits) as opened:
        options = _synthesis_options(
            opened.settings, pipeline, whole(focus), questions, [whole(each) for each in audience or []], approach, top,
            rerank, compare_rerankers, not no_model,
        )  # fmt: skip
        options = dataclasses.replace(options, stakes=Stakes(stakes))
        config.settle(opened, model=options.model)
        if paths:
            found = add_files(opened, paths, whole(base) or DEFAULT_BASE, quiet=quiet or json)
        else:
            found = select_base(opened, whole(base))
        if not quiet and not json:
            for line in found.remarks:
                say(line)
        expected = wait_for(opened.syntheses.plan(found.documents, options))
        if forecast:
            print_json(expected) if json else _show(expected, opened.settings)
            return
        _settle(expected, opened.settings, yes=yes, json=json, quiet=quiet)
        show = Show(OutputFormat.text, json, quiet, again(workspace, max_cost, max_tokens, max_seconds, out))
        run = follow(opened, opened.syntheses.begin(found.documents, options), show)
        raise account.end(opened, run, show, out, expected)


synthesize = synthesise


def _synthesis_options(
    settings: Settings,
    pipeline: PipelineOption,
    focus: str,
    questions: int,
    audiences: list[str],
    approach: ApproachOption,
    top: int,
    rerank: Rerank,
    compare: bool,
    model: bool,
) -> SynthesisRequest:
    """The options from the flags. Raises early if they are not possible under these settings."""
    from assay.core import synthesis as accounts
    from assay.core.errors import UserError
    from assay.models.factory import has_model
    from assay.workspace.types import SynthesisRequest

    if rerank is Rerank.llm and not (model and has_model(settings)):
        raise UserError("`--rerank llm` needs a language model: set one, or choose `--rerank late`.")
    if rerank is Rerank.set and settings.reranker == "none":
        raise UserError(
            "`--rerank set` takes the setting `reranker`, and that is `none`. Set it, or choose `--rerank late`."
        )
    others = [
        name for name in OTHERS if name != rerank and not (name == "set" and settings.reranker in ("none", "late"))
    ]
    return SynthesisRequest(
        pipeline=accounts.Pipeline(pipeline),
        focus=focus,
        questions=questions,
        audiences=tuple(dict.fromkeys((accounts.EXPERT, *audiences))),
        approach=accounts.Approach(approach),
        top=top,
        reranker=rerank,
        compare=tuple(others) if compare else (),
        model=model,
    )


def _settle(expected: SynthesisForecast, settings: Settings, *, yes: bool, json: bool, quiet: bool) -> None:
    """Print the forecast; ask for confirmation if it is large, or refuse if not interactive."""
    from assay.cli.follow import warn_about_prices
    from assay.core.errors import UserError
    from assay.workspace.synthesis_forecast import in_words, is_large

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
    from assay.workspace.forecast import lasting

    tokens = expected.tokens_in + expected.tokens_out
    reached = [
        (
            settings.synthesis_calls and expected.calls > settings.synthesis_calls,
            f"{settings.synthesis_calls:,} requests",
        ),
        (settings.synthesis_tokens and tokens > settings.synthesis_tokens, f"{settings.synthesis_tokens:,} tokens"),
        (
            settings.synthesis_money and (expected.money or 0) > settings.synthesis_money,
            f"${settings.synthesis_money:g}",
        ),
        (expected.seconds > settings.synthesis_seconds, lasting(settings.synthesis_seconds)),
    ]
    return [
        f"Note: the limit of {ceiling} will probably be reached; from there on it goes by rule."
        for over, ceiling in reached
        if over
    ]


def _show(expected: SynthesisForecast, settings: Settings) -> None:
    """Print only the forecast, stage by stage."""
    from rich.table import Table

    from assay.workspace.synthesis_forecast import in_words

    console().print(plain(in_words(expected)), markup=False)
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


@dataclass(frozen=True, slots=True)
class DocumentSelection:
    """Document ids in the order given, and messages about unreadable files."""

    documents: tuple[str, ...]
    unread: tuple[str, ...] = ()
    base: str = ""

    @property
    def remarks(self) -> list[str]:
        """Messages about unreadable files; only the first few if there are many."""
        if not self.unread:
            return []
        more = [f"  and {len(self.unread) - SHOWN} more"] if len(self.unread) > SHOWN else []
        return ["Not read, and not included:", *(f"  {each}" for each in self.unread[:SHOWN]), *more]


def add_files(opened: Opened, paths: Sequence[str], base: str, *, quiet: bool) -> DocumentSelection:
    """Exactly the named files; those not in the base yet are added first."""
    from assay.ingest.sources import find_sources

    files = find_sources([Path(path) for path in paths])
    report = run_with_progress(lambda say: opened.documents.add_sources(files, base, say=say), quiet=quiet)
    entries = opened.documents.listing([base])
    ready = _ready(entries)
    places, contents = {entry.uri: entry.id for entry in ready}, {entry.digest: entry.id for entry in ready}
    found = [places.get(file.uri) or contents.get(file.digest()) for file in files if file.uri in _read(report)]
    unread = [f"{Path(file.path).name}: {file.why}" for file in report.files if file.path not in _read(report)]
    named = {file.uri for file in files}
    unread += [f"{entry.name}: {_why(entry)}" for entry in entries if entry.off and entry.uri in named]
    return DocumentSelection(tuple(dict.fromkeys(doc for doc in found if doc)), tuple(unread), base)


def _read(report: Readiness) -> set[str]:
    return {file.path for file in report.files if file.status == "read"}


def select_base(opened: Opened, base: str) -> DocumentSelection:
    """All documents of a base; without a name, of the only existing base."""
    names = [each.name for each in opened.scope().bases]
    if not base and len(names) > 1:
        raise UserError(f"Which knowledge base? Name it with --base. There is: {', '.join(sorted(names))}.")
    named = base or (names[0] if names else "")
    entries = opened.documents.listing([named] if named else [])
    ready = {entry.id for entry in _ready(entries)}
    unread = tuple(f"{entry.name}: {_why(entry)}" for entry in entries if entry.id not in ready)
    return DocumentSelection(tuple(entry.id for entry in entries if entry.id in ready), unread, named)


def _why(entry: Entry) -> str:
    if entry.off:
        return "it is switched off; `assay on` switches it on"
    return entry.why or "it was not read to the end; `assay add` finishes it"


def _ready(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.standing == "ready"]
