"""`assay chat`: questions that build on each other, one at a time or in a dialogue, in threads that can be opened again."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import (
    Bases,
    Checkpoint,
    Eagerness,
    Json,
    Mode,
    Quiet,
    Workspace,
    again,
    console,
    plain,
    print_json,
    where_of,
    whole,
)
from assay.cli.view.answer_format import Format
from assay.cli.view.dialogue import line, say
from assay.cli.view.follow import Show, Watched, end, follow
from assay.cli.view.forecast import warn_about_prices

if TYPE_CHECKING:
    from assay.cli.questions.chat_commands import Command
    from assay.core.events import Event
    from assay.core.run import Run
    from assay.workspace.facade import Workspace as Opened
    from assay.workspace.types import AskOptions

PROMPT = "> "
ENDS = frozenset({1, 5, 130})  # what was piped in stops here: the next line may build on what is not there


@dataclass
class Talk:
    """A conversation as it goes on: how questions are dealt with, the thread (none before the first question), and the last
    answer."""

    opened: Opened
    show: Show
    how: AskOptions
    thread: str = ""
    answered: Run | None = None

    def out(self, lines: Iterable[str]) -> None:
        """What a command shows; where events are printed, standard output is theirs alone."""
        words = plain("\n".join(lines))
        if self.show.json:
            say(words)
        else:
            sys.stdout.write(f"{words}\n")
            sys.stdout.flush()

    def remark(self, words: str) -> None:
        if not self.show.json and not self.show.quiet:
            say(words)

    def remark_on_thread(self) -> None:
        if self.thread:
            self.remark(f"`assay chat --thread {self.thread}{self.show.again}` goes on with this thread.")


def chat(
    question: Annotated[str | None, typer.Argument(help="One question; without it, a dialogue.")] = None,
    thread: Annotated[str, typer.Option("--thread", help="Go on with this thread. Default: a new one.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the threads, newest first, and end.")] = False,
    forget: Annotated[
        str, typer.Option("--forget", metavar="THREAD", help="Forget a thread, and end. Its runs stay.")
    ] = "",
    mode: Annotated[Mode, typer.Option(help="How far to go: up to 3, 5 or 10 rounds of searching.")] = Mode.balanced,
    eagerness: Annotated[Eagerness | None, typer.Option(help="How readily it searches. Default: the setting.")] = None,
    checkpoint: Annotated[
        list[Checkpoint] | None,
        typer.Option(help="Where to wait for you. May be repeated. Default: the setting."),
    ] = None,
    bases: Bases = None,
    no_model: Annotated[bool, typer.Option("--no-model", help="Go by rule, whatever model is set.")] = False,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask questions that build on each other. Each turn is answered and cited like `assay ask`.

    Without QUESTION a dialogue: /help says what can be typed. With QUESTION one turn, with the exit codes of `assay ask`.
    """
    from assay.cli.setup import consent
    from assay.core import events
    from assay.core.errors import UserError
    from assay.workspace.facade import open_workspace
    from assay.workspace.types import AskOptions

    if (list_ or forget) and (question is not None or thread or (list_ and forget)):
        raise UserError("--list and --forget stand alone: give no question and no --thread with them.")
    with open_workspace(workspace) as opened:
        if list_:
            return _list(opened, json=json)
        if forget:
            return _forget(opened, forget, json=json)
        how = AskOptions(
            mode=events.Mode(mode),
            where=where_of(bases, None, None, None, None, None),
            eagerness=events.Eagerness(eagerness) if eagerness else None,
            checkpoints=tuple(events.Checkpoint(each) for each in dict.fromkeys(checkpoint)) if checkpoint else None,
            model=not no_model,
        )
        opened.scope(how.where.bases)  # an unknown base is said at once
        talk = Talk(opened, Show(Format.text, json, quiet, again(workspace, None, None, None)), how)
        if thread:
            so_far = _reopen(talk, thread)
            if question is None and sys.stdin.isatty():
                talk.remark("\n".join(so_far))
        consent.settle(opened, model=how.model)
        if how.model and opened.settings.budget_run_money and not quiet:
            warn_about_prices(opened.settings)
        if question is not None:
            code = _turn(talk, question)
            talk.remark_on_thread()
        else:
            code = _dialogue(talk) if sys.stdin.isatty() else _piped(talk)
        raise typer.Exit(code)


# --- turns ----------------------------------------------------------------------------------------------------------


def _turn(talk: Talk, question: str) -> int:
    """Ask, follow, print; the exit code says how it went. Which thread it is in is known as soon as it is asked."""
    steps = talk.opened.chat(whole(question), talk.thread, talk.how)
    try:
        run = follow(talk.opened, _in_thread(talk, steps), talk.show)
        if run.answer is not None:
            talk.answered = run
        return end(talk.opened, run, talk.show).exit_code
    except typer.Exit as stopped:
        return stopped.exit_code


async def _in_thread(talk: Talk, steps: AsyncIterator[tuple[Run, Event]]) -> AsyncIterator[tuple[Run, Event]]:
    async for run, event in steps:
        talk.thread = run.asked.thread
        yield run, event


def _dialogue(talk: Talk) -> int:
    """With somebody at the terminal, until they leave. Nothing that goes wrong with a question ends it."""
    from assay.core.errors import AssayError

    _remember(())
    talk.remark("Ask about your documents. /help shows what else can be typed; Ctrl-D leaves.")
    while (typed := _typed()) is not None:
        try:
            if _taken(talk, typed) is None:
                break
        except AssayError as error:
            say(f"assay: {error}")
        except KeyboardInterrupt:  # while something is shown; a question that is stopped says so itself
            say("Stopped.")
        talk.remark("")
    talk.remark_on_thread()
    return 0


def _piped(talk: Talk) -> int:
    """Each line is a turn. The last one says how it went, unless one before could not be answered at all."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    code, first = 0, True
    while code not in ENDS and (typed := sys.stdin.readline()):
        if typed.strip() and not first and not talk.show.json:
            talk.out([""])  # between what one line has brought and the next
        first = first and not typed.strip()
        taken = _taken(talk, typed, code)
        if taken is None:
            break
        code = taken
    talk.remark_on_thread()
    return code


def _taken(talk: Talk, typed: str, code: int = 0) -> int | None:
    """What one line comes to: the exit code of its turn, or the one before where it is none; nothing where they leave."""
    from assay.cli.questions.chat_commands import command_in

    words = whole(typed).strip()
    if not words:
        return code
    command = command_in(words)
    if command is None:
        return _turn(talk, words)
    if command.name == "quit":
        return None
    _do(talk, command)
    return code


def _typed() -> str | None:
    """The next line that a person types, with the lines before it at hand where the terminal allows it; none when they
    leave."""
    while True:
        try:
            if sys.stdout.isatty():
                return input(PROMPT)
            return line(PROMPT)
        except EOFError:
            say()
            return None
        except KeyboardInterrupt:
            say("\nCtrl-D or /quit leaves.")


def _remember(questions: Sequence[str]) -> None:
    """Questions that the arrow keys bring back; from then on also those that are typed."""
    if sys.stdin.isatty():
        with suppress(ImportError):  # not every system has it
            import readline

            for each in questions:
                readline.add_history(" ".join(plain(each).split()))


# --- commands -------------------------------------------------------------------------------------------------------


def _do(talk: Talk, command: Command) -> None:
    from assay.cli.questions import chat_commands as told
    from assay.store import threads

    match command.name:
        case "help":
            talk.out(told.helped())
        case "sources":
            talk.out(_sources(talk))
        case "why":
            talk.out(_why(talk))
        case "mode":
            _mode(talk, command.words)
        case "base":
            _base(talk, command.words)
        case "threads":
            talk.out(told.listed(talk.opened.threads(), talk.thread))
        case "open" if command.words:
            talk.out(_reopen(talk, command.words))
        case "new":
            talk.thread, talk.answered = "", None
            talk.out(["The next question begins a thread."])
        case "title" if command.words and talk.thread:
            threads.rename(talk.opened.store, talk.thread, talk.opened.principal.id, command.words)
            talk.out([f"This thread is now called: {command.words}"])
        case "open":
            talk.out(["Which one? /threads lists them, /open ID opens one."])
        case "title":
            talk.out(["Which title? /title WORDS." if talk.thread else "There is no thread yet: ask something first."])
        case _:
            talk.out([told.unknown(command.name)])


def _sources(talk: Talk) -> list[str]:
    from assay.cli.questions import chat_commands as told
    from assay.store.documents import READY

    opened, bases = talk.opened, talk.how.where.bases
    ready = [entry for entry in opened.sources(bases) if entry.state == READY]
    return told.sources(ready, {base.id: base.name for base in opened.scope(bases).bases})


def _why(talk: Talk) -> list[str]:
    from assay.answer import render
    from assay.cli.questions import chat_commands as told

    if talk.answered is None or talk.answered.answer is None:
        return ["There is no answer yet."]
    watched = Watched(talk.opened, talk.answered)
    watched.look_up()
    cited = render.citations(talk.answered.answer, talk.answered.evidence, talk.opened.document)
    return told.why(talk.answered, cited, watched.titles)


def _mode(talk: Talk, words: str) -> None:
    from assay.core.events import Mode

    if words and words.casefold() not in set(Mode):
        talk.out([f"There is no mode {words!r}. There is: {', '.join(Mode)}."])
        return
    if words:
        talk.how = replace(talk.how, mode=Mode(words.casefold()))
    talk.out([f"The mode is {talk.how.mode}."])


def _base(talk: Talk, words: str) -> None:
    scope = talk.opened.scope()
    named = (words,) if words in {base.name for base in scope.bases} else tuple(words.split())
    chosen = scope.narrowed(named)  # says which there are, where one of them is not
    talk.how = replace(talk.how, where=replace(talk.how.where, bases=named))
    names = ", ".join(base.name for base in chosen.bases)
    talk.out([f"Searched are: {names or 'no knowledge bases: there are none yet'}."])


def _reopen(talk: Talk, thread: str) -> list[str]:
    """Go on with a thread: what was said in it, in short; its questions and its last answer are at hand again."""
    from assay.cli.questions import chat_commands as told

    found, runs = talk.opened.thread(whole(thread))
    talk.thread = found.id
    talk.answered = next((run for run in reversed(runs) if run.answer is not None), None)
    _remember([run.asked.question for run in runs])
    return told.reopened(found, runs)


def _list(opened: Opened, *, json: bool) -> None:
    from assay.cli.questions.chat_commands import listed
    from assay.core.codec import to_json

    found = opened.threads()
    if json:
        print_json([{"thread": each.id, **{k: v for k, v in to_json(each).items() if k != "id"}} for each in found])
        return
    for row in listed(found):
        console().print(plain(row.strip()), markup=False)


def _forget(opened: Opened, thread: str, *, json: bool) -> None:
    from assay.store import threads

    found = threads.named(opened.store, whole(thread), opened.principal.id)
    threads.forget(opened.store, found.id, opened.principal.id)
    if json:
        print_json({"forgotten": found.id})
        return
    console().print(plain(f"Forgotten: {found.title}. Its runs and their records stay."), markup=False)
