"""Follows a run on the terminal: live, as plain lines or as JSON; prompts the user where it pauses; and reports its
end."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import takewhile
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from assay.answer import citations, render
from assay.answer.claim_details import NO_DETAILS, recorded_judges, shown_details
from assay.answer.compose import Statement
from assay.cli import synthesis_view
from assay.cli.run_view import choose, commands, question, rows_for, spent, view
from assay.cli.terminal import (
    as_json,
    aside,
    at_terminal,
    console,
    plain,
    print_json,
    print_result,
    say,
    say_if_any,
    wait_for,
)
from assay.core.codec import to_json
from assay.core.errors import AssayError, UserError
from assay.core.events import AwaitingReview, Event, Gathered, Rephrased, Route
from assay.core.events.describe import live_line, understood_turn
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.types import Usage
from assay.governance.reviewing import progress_line
from assay.models import cost, http
from assay.models.factory import models_by_role
from assay.models.http import Retries
from assay.workspace.facade import Workspace
from assay.workspace.forecast import WorkForecast, forecast_lines
from assay.workspace.stored import WITHHELD_ANSWER
from assay.workspace.types import AskOptions

Steps = AsyncIterator[tuple[Run, Event]]
See = Callable[[Run, Event], None]
EXIT = {"answered": 0, "direct": 0, "partial": 3, "abstained": 4, "waiting": 5, "held": 5, "rejected": 1, "failed": 1}


TELLING = 5.0  # timeout of the webhook in seconds


@dataclass(frozen=True, slots=True)
class Show:
    """How a run is displayed, and the command that resumes it."""

    format: OutputFormat
    json: bool
    quiet: bool
    again: str  # the flags after `assay resume RUN`: the workspace, the limits
    verbose: bool = False  # with what was searched
    working: bool = False  # with what each statement rests on

    def resume(self, run: Run) -> str:
        return f"assay resume {run.id}{self.again}"

    @property
    def asks(self) -> bool:
        """Whether the user can be prompted here."""
        return not self.json and not self.quiet and at_terminal()


@dataclass
class Watched:
    """A run being followed: its latest state, the titles of its documents, the time."""

    opened: Workspace
    run: Run | None = None
    before: float = 0.0  # seconds it was active in other processes
    begun: float = field(default_factory=time.monotonic)
    statements: Sequence[Statement] = ()  # of an answer that is being written
    titles: dict[str, str] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)  # of the quotations, by the keys of the evidence
    retries: Retries = field(default_factory=Retries)

    @property
    def seconds(self) -> float:
        return self.before + time.monotonic() - self.begun

    def look_up(self) -> None:
        """Load titles and pages that are not known yet."""
        if self.run is not None:
            unplaced = [each for each in self.run.evidence if each.key not in self.pages]
            self.pages |= self.opened.documents.quoted_pages(unplaced, self.opened.scope())
        new = {each.passage.doc_id for each in self.run.evidence} - self.titles.keys() if self.run else set()
        if new:
            self.titles |= dict.fromkeys(new, "") | self.opened.documents.titles(new, self.opened.scope())


def follow(opened: Workspace, steps: Steps | None, show: Show, known: Run | None = None) -> Run:
    """Follow a run until it is delivered, has failed, or pauses and nobody can be prompted. Without steps it is
    already paused."""
    watched = Watched(opened, known, opened.questions.active_seconds(known.id) if known else 0.0)
    if steps is not None:
        _follow_until_stop(steps, watched, show)
    while watched.run is not None and watched.run.waiting is not None and show.asks:
        watched.look_up()
        try:
            choice = choose(watched.run, watched.titles, watched.pages)
        except KeyboardInterrupt:
            raise _interrupted(watched.run, show) from None
        if choice is None:
            break
        watched.before, watched.begun = opened.questions.active_seconds(watched.run.id), time.monotonic()
        _follow_until_stop(opened.resume(watched.run.id, *choice), watched, show)
    assert watched.run is not None, "a run that was asked has an event"
    return watched.run


def _follow_until_stop(steps: Steps, watched: Watched, show: Show) -> None:
    """Follow a run up to its next stop; on Ctrl-C, print how to resume it."""

    async def each(see: See) -> None:
        http.watched.set(watched.retries)
        async for run, _ in steps:
            # An answer that needs a review is not shown to the asker here either.
            watched.run = watched.opened.questions.run_for_asker(run.id, run)
            watched.statements = watched.opened.questions.statements(run)
            see(watched.run, watched.run.events[-1])

    try:
        with _show_events(watched, show) as see:
            asyncio.run(each(see))
    except KeyboardInterrupt:
        if watched.run is None or not watched.run.delivered:  # if it was too late to stop it, the answer is printed
            raise _interrupted(watched.run, show) from None


def _interrupted(run: Run | None, show: Show) -> typer.Exit:
    if run is None:
        say("Stopped. Nothing was asked yet.")
    else:
        say(f"Stopped. Nothing that was done is lost: `{show.resume(run)}` carries it on.")
    return typer.Exit(130)


@contextmanager
def _show_events(watched: Watched, show: Show) -> Iterator[See]:
    if show.json:
        yield _as_json
    elif show.quiet:
        yield lambda run, event: None
    elif not sys.stderr.isatty():
        watched.retries = Retries(lambda: _aside(watched.retries.line))
        yield partial(_in_lines, watched)
    else:
        with _live(watched) as see:
            yield see


def _as_json(run: Run, event: Event) -> None:
    data = to_json(event)
    if isinstance(event, AwaitingReview):
        data.pop("answer")
    print_json({"run": run.id, "seq": len(run.events) - 1, "event": type(event).__name__, **data}, indent=None)


def _in_lines(watched: Watched, run: Run, event: Event) -> None:
    if isinstance(event, Rephrased) and not understood_turn(run.asked.question, event):
        return  # already a standalone question: nothing new for the reader
    if isinstance(event, Gathered):
        watched.look_up()
    if line := synthesis_view.line(run, event) if run.asked.brief else live_line(event, watched.pages):
        _aside(line)


def _aside(line: str) -> None:
    if line:
        aside().print(plain(line), style="dim", markup=False, soft_wrap=not sys.stderr.isatty())


@contextmanager
def _live(watched: Watched) -> Iterator[See]:
    """A live view that is redrawn, and stays when the run has ended; it is removed while the user is prompted."""

    def now() -> RenderableType:
        if watched.run is None:
            return Text("Looking at what the model can do …", style="dim")
        rows = rows_for(screen.height)
        if watched.run.asked.brief is not None:
            return synthesis_view.view(watched.run, watched.seconds, rows)
        shown = view(watched.run, watched.titles, watched.seconds, rows, watched.pages, watched.statements)
        return Group(shown, Text(line, style="yellow")) if (line := watched.retries.line) else shown

    screen = aside()

    def see(run: Run, event: Event) -> None:
        if isinstance(event, Gathered) and run.asked.brief is None:
            watched.look_up()  # here, not during drawing, which happens in another thread

    with Live(get_renderable=now, console=screen, refresh_per_second=4) as live:
        try:
            yield see
        finally:
            live.transient = watched.run is None or watched.run.waiting is not None


def end(opened: Workspace, run: Run, show: Show) -> typer.Exit:
    """Print the result and return the exit code."""
    if run.answer is not None:
        if not show.json:
            if not show.quiet and sys.stderr.isatty():
                say()  # separates the view and the answer
            sys.stdout.write(render_answer(run, opened, show.format, verbose=show.verbose, working=show.working) + "\n")
            sys.stdout.flush()
        if not show.json and not show.quiet:
            _remarks(opened, run)
        return typer.Exit(EXIT[run.answer.outcome])
    if run.withheld:
        raise UserError(WITHHELD_ANSWER)
    if run.held is not None:
        return _print_awaiting_review(opened, run, show)
    if run.rejected is not None:
        say(f"The answer was rejected in review: {run.rejected.note}")
        return typer.Exit(EXIT["rejected"])
    if run.failed is not None:
        say(f"assay: {run.failed.detail}")
        say(f"What was done is kept: `{show.resume(run)}` carries it on.")
        return typer.Exit(EXIT["failed"])
    _print_choice(opened, run, show)
    return typer.Exit(EXIT["waiting"])


def _print_awaiting_review(opened: Workspace, run: Run, show: Show) -> typer.Exit:
    """Print why an answer needs a review and how it continues. Notifies the webhook if one is set."""
    assert run.held is not None
    sofar = progress_line(opened.questions.run(run.id))
    say(f"{sofar} The answer waits for a reviewer: {'; '.join(run.held.reasons)}.")
    say(f"`assay review {run.id}` shows it to whoever may decide; `{show.resume(run)}` gives it to you after that.")
    try:
        asyncio.run(opened.reviews.notify(TELLING))
    except AssayError as error:
        say(f"No reviewer was notified: {error}")
    return typer.Exit(EXIT["held"])


def _print_choice(opened: Workspace, run: Run, show: Show) -> None:
    """Print what a run waits for, and the commands that answer it."""
    watched = Watched(opened, run)
    watched.look_up()
    for line in [*question(run, watched.titles, watched.pages), "The run waits for you:"]:
        say(line)
    for command in commands(run, show.resume(run)):
        say(f"  {command}")


def _remarks(opened: Workspace, run: Run) -> None:
    """Print the usage unless it is already visible; and a hint if the research loop is never needed."""
    if not run.asked.has_model:
        return
    if not sys.stderr.isatty():
        words = f"{spent(run)}; `assay trace {run.id}` shows every step."
        aside().print(plain(words), style="dim", markup=False, soft_wrap=True)
    researched = run.asked.route is not None or run.route is Route.research
    if not researched and never_needed_the_loop(opened.questions.routes(opened.principal.id)):
        say(REMARK)


EVERY = 10  # consecutive questions before the hint, and before each repetition


def never_needed_the_loop(routes: Iterable[Route]) -> bool:
    """Whether to show the hint: the number of latest consecutive questions without research is ten, twenty, …"""
    row = sum(1 for _ in takewhile(lambda route: route is not Route.research, routes))
    return row > 0 and row % EVERY == 0


REMARK = (
    f"Your last {EVERY} questions needed one search each, or none. With `--route lookup` a question is looked up straight "
    "away, without a model being asked first which way to go."
)


class OutputFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    html = "html"
    json = "json"
    bibtex = "bibtex"


FormatOption = Annotated[OutputFormat, typer.Option("--format", "-f", help="How the answer is written.")]

SIGNS = ("\ue000", "\ue001")  # stand for the codes of a terminal until the text is free of those of documents
BOLD = ("\x1b[1m*", "*\x1b[22m")


def render_answer(
    run: Run, opened: Workspace, format: OutputFormat, *, verbose: bool = False, working: bool = False
) -> str:
    """The run's answer in the requested format; on a terminal, marked words are bold."""
    answer = run.answer
    assert answer is not None
    cited = citations.of_answer(answer, run.evidence, opened.documents.get)
    judges = recorded_judges(run.events)
    details = shown_details(answer, run.evidence, opened.documents.get, judges, every=working)
    match format:
        case OutputFormat.markdown:
            return plain(render.as_markdown(answer, cited, details))
        case OutputFormat.html:
            return plain(render.as_html(answer, cited, details))
        case OutputFormat.bibtex:
            return plain(render.as_bibtex(cited))
        case OutputFormat.json:
            data = render.as_json(answer, cited)
            for each in data["citations"]:
                each["boxes"] = to_json(wait_for(opened.documents.boxes(each["document"], each["start"], each["end"])))
            return as_json({"run": run.id, **data})
        case _:
            screen, details = console(), details if working else NO_DETAILS
            if not screen.is_terminal or screen.is_dumb_terminal:
                return plain(render.as_text(answer, cited, details, verbose=verbose))
            text = plain(render.as_text(answer, cited, details, signs=SIGNS, width=screen.width, verbose=verbose))
            return text.replace(SIGNS[0], BOLD[0]).replace(SIGNS[1], BOLD[1])


def show_forecast(outlook: WorkForecast, *, json: bool) -> None:
    """Print a forecast and nothing else."""
    print_result(json, outlook, forecast_lines(outlook))


def warn_before_asking(opened: Workspace, how: AskOptions, *, quiet: bool) -> None:
    """Warn about limits that cannot hold, and documents that were read by an earlier version."""
    if quiet:
        return
    if how.model and opened.settings.budget_run_money:
        warn_about_prices(opened.settings)
    say_if_any(opened.documents.outdated(how.where.bases))


def warn_about_prices(settings: Settings) -> None:
    """Warn that a limit on cost cannot hold for models without a known price."""
    names = sorted({name for named in models_by_role(settings).values() for name in named})
    if free := ", ".join(name for name in names if price_of(settings, name) is None):
        say(f"Note: no price is known for {free}, so a limit on cost has no effect for them. Set `llm_prices`.")


def price_of(settings: Settings, name: str) -> tuple[float, float] | None:
    """Dollars per million tokens, in and out."""
    own = cost.parse_prices(settings.llm_prices)
    come_in = cost.price_of(name, Usage(tokens_in=cost.MILLION), own)
    come_out = cost.price_of(name, Usage(tokens_out=cost.MILLION), own)
    return None if come_in is None or come_out is None else (come_in, come_out)
