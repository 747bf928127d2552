"""`assay ask`, `assay resume`: an answer with verifiable citations, and its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.follow import OutputFormat, Show, end, follow, show_forecast, warn_about_prices
from assay.cli.options import (
    Bases,
    CheckpointOption,
    EagernessOption,
    FourEyes,
    Json,
    MaxCost,
    MaxSeconds,
    MaxTokens,
    Meta,
    ModeOption,
    Out,
    Quiet,
    RouteChoice,
    Since,
    Sources,
    StakesChoice,
    StakesOption,
    Types,
    Undated,
    Until,
    Verbose,
    Workspace,
    again,
    say_if_any,
    synthesis_limits,
    where_of,
    whole,
)

if TYPE_CHECKING:
    pass

Formatted = Annotated[OutputFormat, typer.Option("--format", "-f", help="How the answer is written.")]


def ask(
    question: Annotated[str, typer.Argument(help="A question about your documents.")],
    mode: Annotated[
        ModeOption, typer.Option(help="How far to go: up to 3, 5 or 10 rounds of searching.")
    ] = ModeOption.balanced,
    eagerness: Annotated[
        EagernessOption | None, typer.Option(help="How readily it searches. Default: the setting.")
    ] = None,
    route: Annotated[
        RouteChoice | None, typer.Option(help="One look-up, or the whole research, without a model choosing which.")
    ] = None,
    checkpoint: Annotated[
        list[CheckpointOption] | None,
        typer.Option(help="Where to wait for you. May be repeated. Default: the setting."),
    ] = None,
    stakes: StakesChoice = StakesOption.normal,
    four_eyes: FourEyes = False,
    no_model: Annotated[bool, typer.Option("--no-model", help="Go by rule, whatever model is set.")] = False,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Only say what it would take; nothing is asked.")
    ] = False,
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_seconds: MaxSeconds = None,
    format: Formatted = OutputFormat.text,
    bases: Bases = None,
    sources: Sources = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    undated: Undated = False,
    meta: Meta = None,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Answer QUESTION from the documents, with citations you can check.

    Exit code 0: found, or answered; 3: perhaps, or partly; 4: not found; 5: it waits for you or for a reviewer. --json
    prints one event per line.
    """
    from assay.cli import config
    from assay.cli.acting import open_workspace
    from assay.core import events
    from assay.core import events as trust
    from assay.workspace.types import AskOptions

    how = AskOptions(
        mode=events.Mode(mode),
        where=where_of(bases, sources, types, since, until, meta, undated=undated),
        eagerness=events.Eagerness(eagerness) if eagerness else None,
        checkpoints=tuple(events.Checkpoint(each) for each in dict.fromkeys(checkpoint)) if checkpoint else None,
        route=events.Route(route) if route else None,
        model=not no_model,
        stakes=trust.Stakes(stakes),
    )
    limits = _limits(max_cost, max_tokens, max_seconds)
    with open_workspace(workspace, **limits, review_four_eyes=four_eyes or None) as opened:
        if forecast:
            show_forecast(opened.questions.forecast(how), json=json)
            return
        config.settle(opened, model=how.model)
        if how.model and opened.settings.budget_run_money and not quiet:
            warn_about_prices(opened.settings)
        if not quiet:
            say_if_any(opened.documents.outdated(how.where.bases))
        show = Show(format, json, quiet, again(workspace, max_cost, max_tokens, max_seconds), verbose)
        raise end(opened, follow(opened, opened.ask(whole(question), how), show), show)


def resume(
    run: Annotated[str, typer.Argument(help="A run that was not finished, as `assay runs` gives it.")],
    choose: Annotated[
        str, typer.Option(help="Where the run waits for you: the option that you choose, by its words or its number.")
    ] = "",
    words: Annotated[str, typer.Option(help="Your own words, where the option asks for some.")] = "",
    max_cost: MaxCost = None,
    max_tokens: MaxTokens = None,
    max_seconds: MaxSeconds = None,
    format: Formatted = OutputFormat.text,
    out: Out = None,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Carry on a run that was stopped, has failed or waits for you; what is recorded is not done again.

    Of a synthesis it writes the files again, into --out.
    """
    from assay.cli import account, config
    from assay.cli.acting import open_workspace

    limits = _limits(max_cost, max_tokens, max_seconds) | synthesis_limits(max_cost, max_tokens, max_seconds)
    with open_workspace(workspace, **limits) as opened:
        known = opened.questions.run(run)
        if known.asked.brief is not None:
            account.check_folder(account.folder_of(known, out), run)
        if not known.delivered:
            config.settle(opened, model=known.asked.has_model)
        show = Show(format, json, quiet, again(workspace, max_cost, max_tokens, max_seconds, out), verbose)
        undecided = (known.waiting is not None and not choose) or bool(known.held or known.rejected)
        steps = None if undecided else opened.resume(run, whole(choose), whole(words))
        ended = follow(opened, steps, show, opened.questions.run_for_asker(run, known))
        raise end(opened, ended, show) if known.asked.brief is None else account.end(opened, ended, show, out)


def _limits(max_cost: float | None, max_tokens: int | None, max_seconds: float | None) -> dict[str, Any]:
    """The settings for these flags."""
    return {"budget_run_money": max_cost, "budget_run_tokens": max_tokens, "budget_run_seconds": max_seconds}
