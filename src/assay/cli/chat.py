"""`assay chat`: questions that build on each other, single or as a dialogue, in threads that can be reopened."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.follow import OutputFormat, Show, Watched, end, follow, warn_about_prices
from assay.cli.options import (
    Bases,
    CheckpointOption,
    EagernessOption,
    Json,
    Meta,
    ModeOption,
    Quiet,
    Since,
    Sources,
    StakesChoice,
    StakesOption,
    Types,
    Undated,
    Until,
    Workspace,
    again,
    console,
    line,
    plain,
    print_json,
    say,
    say_if_any,
    where_of,
    whole,
)
from assay.cli.run_view import place
from assay.core.events import Decided
from assay.core.events.describe import NO_PAGES, count_of, understood_turn

if TYPE_CHECKING:
    from assay.answer.render import Cited
    from assay.core.events import Event
    from assay.core.run import Run
    from assay.core.types import Evidence, Quote
    from assay.workspace.facade import Workspace as Opened
    from assay.workspace.stored import Entry, Thread
    from assay.workspace.types import AskOptions

PROMPT = "> "
ENDS = frozenset({1, 5, 130})  # exit codes that end piped input: the next line may depend on the missing answer


@dataclass
class Conversation:
    """A conversation in progress: its options, its thread (None before the first question) and the last answer."""

    opened: Opened
    show: Show
    how: AskOptions
    thread: str = ""
    answered: Run | None = None

    def out(self, lines: Iterable[str]) -> None:
        """Print the output of a command; with --json, standard output is reserved for events."""
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
    mode: Annotated[
        ModeOption, typer.Option(help="How far to go: up to 3, 5 or 10 rounds of searching.")
    ] = ModeOption.balanced,
    eagerness: Annotated[
        EagernessOption | None, typer.Option(help="How readily it searches. Default: the setting.")
    ] = None,
    checkpoint: Annotated[
        list[CheckpointOption] | None,
        typer.Option(help="Where to wait for you. May be repeated. Default: the setting."),
    ] = None,
    stakes: StakesChoice = StakesOption.normal,
    bases: Bases = None,
    sources: Sources = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    undated: Undated = False,
    meta: Meta = None,
    no_model: Annotated[bool, typer.Option("--no-model", help="Go by rule, whatever model is set.")] = False,
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask questions that build on each other. Each turn is answered and cited like `assay ask`.

    Without QUESTION a dialogue: /help says what can be typed. With QUESTION one turn, with the exit codes of `assay ask`.
    """
    from assay.cli import config
    from assay.cli.acting import open_workspace
    from assay.core import events
    from assay.core.errors import UserError
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
            where=where_of(bases, sources, types, since, until, meta, undated=undated),
            eagerness=events.Eagerness(eagerness) if eagerness else None,
            checkpoints=tuple(events.Checkpoint(each) for each in dict.fromkeys(checkpoint)) if checkpoint else None,
            model=not no_model,
            stakes=events.Stakes(stakes),
        )
        opened.scope(how.where.bases)  # raises at once for an unknown base
        conversation = Conversation(
            opened, Show(OutputFormat.text, json, quiet, again(workspace, None, None, None)), how
        )
        if thread:
            so_far = _reopen(conversation, thread)
            if question is None and sys.stdin.isatty():
                conversation.remark("\n".join(so_far))
        config.settle(opened, model=how.model)
        if how.model and opened.settings.budget_run_money and not quiet:
            warn_about_prices(opened.settings)
        if not quiet:
            say_if_any(opened.documents.outdated(how.where.bases))
        if question is not None:
            code = _turn(conversation, question)
            conversation.remark_on_thread()
        else:
            code = _dialogue(conversation) if sys.stdin.isatty() else _piped(conversation)
        raise typer.Exit(code)


# --- turns ----------------------------------------------------------------------------------------------------------


def _turn(conversation: Conversation, question: str) -> int:
    """Ask, follow, print; returns the exit code. The thread is known as soon as the question is asked."""
    steps = conversation.opened.chat(whole(question), conversation.thread, conversation.how)
    try:
        run = follow(conversation.opened, _in_thread(conversation, steps), conversation.show)
        if run.answer is not None:
            conversation.answered = run
        return end(conversation.opened, run, conversation.show).exit_code
    except typer.Exit as stopped:
        return stopped.exit_code


async def _in_thread(
    conversation: Conversation, steps: AsyncIterator[tuple[Run, Event]]
) -> AsyncIterator[tuple[Run, Event]]:
    async for run, event in steps:
        conversation.thread = run.asked.thread
        yield run, event


def _dialogue(conversation: Conversation) -> int:
    """An interactive dialogue until the user leaves. Errors of a question do not end it."""
    from assay.core.errors import AssayError

    _remember(())
    conversation.remark("Ask about your documents. /help shows what else can be typed; Ctrl-D leaves.")
    while (typed := _read_line()) is not None:
        try:
            if _handle_line(conversation, typed) is None:
                break
        except AssayError as error:
            say(f"assay: {error}")
        except KeyboardInterrupt:  # during output; a stopped question prints its own message
            say("Stopped.")
        conversation.remark("")
    conversation.remark_on_thread()
    return 0


def _piped(conversation: Conversation) -> int:
    """Each input line is a turn. Returns the exit code of the last one, or of the first that could not be answered
    at all."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    code, first = 0, True
    while code not in ENDS and (typed := sys.stdin.readline()):
        if typed.strip() and not first and not conversation.show.json:
            conversation.out([""])  # separates the outputs of two lines
        first = first and not typed.strip()
        taken = _handle_line(conversation, typed, code)
        if taken is None:
            break
        code = taken
    conversation.remark_on_thread()
    return code


def _handle_line(conversation: Conversation, typed: str, code: int = 0) -> int | None:
    """Handle one line: the exit code of its turn, the previous code if it is no turn, or None if the user leaves."""

    words = whole(typed).strip()
    if not words:
        return code
    command = parse_command(words)
    if command is None:
        return _turn(conversation, words)
    if command.name == "quit":
        return None
    _run_command(conversation, command)
    return code


def _read_line() -> str | None:
    """Read the next line, with line editing and history where the terminal supports it; None when the user leaves."""
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
    """Add questions to the line-editing history; questions typed from then on are added too."""
    if sys.stdin.isatty():
        with suppress(ImportError):  # not available on every system
            import readline

            for each in questions:
                readline.add_history(" ".join(plain(each).split()))


# --- commands -------------------------------------------------------------------------------------------------------


def _run_command(conversation: Conversation, command: Command) -> None:
    from assay.workspace.stored import threads

    match command.name:
        case "help":
            conversation.out(help_lines())
        case "sources":
            conversation.out(_sources(conversation))
        case "why":
            conversation.out(_why(conversation))
        case "mode":
            _mode(conversation, command.words)
        case "stakes":
            _stakes(conversation, command.words)
        case "base":
            _base(conversation, command.words)
        case "threads":
            conversation.out(thread_lines(conversation.opened.threads.listing(), conversation.thread))
        case "open" if command.words:
            conversation.out(_reopen(conversation, command.words))
        case "new":
            conversation.thread, conversation.answered = "", None
            conversation.out(["The next question begins a thread."])
        case "title" if command.words and conversation.thread:
            opened = conversation.opened
            threads.rename(opened.store, conversation.thread, opened.principal.id, command.words)
            conversation.out([f"This thread is now called: {command.words}"])
        case "open":
            conversation.out(["Which one? /threads lists them, /open ID opens one."])
        case "title":
            conversation.out(
                [
                    "Which title? /title WORDS."
                    if conversation.thread
                    else "There is no thread yet: ask something first."
                ]
            )
        case _:
            conversation.out([unknown(command.name)])


def _sources(conversation: Conversation) -> list[str]:
    opened, bases = conversation.opened, conversation.how.where.bases
    ready = [entry for entry in opened.documents.listing(bases) if entry.standing == "ready"]
    return sources(ready, {base.id: base.name for base in opened.scope(bases).bases})


def _why(conversation: Conversation) -> list[str]:
    from assay.answer import render

    if conversation.answered is None or conversation.answered.answer is None:
        return ["There is no answer yet."]
    watched = Watched(conversation.opened, conversation.answered)
    watched.look_up()
    cited = render.citations(
        conversation.answered.answer, conversation.answered.evidence, conversation.opened.documents.get
    )
    return why(conversation.answered, cited, watched.titles, watched.pages)


def _mode(conversation: Conversation, words: str) -> None:
    from assay.core.events import Mode

    if words and words.casefold() not in set(Mode):
        conversation.out([f"There is no mode {words!r}. There is: {', '.join(Mode)}."])
        return
    if words:
        conversation.how = replace(conversation.how, mode=Mode(words.casefold()))
    conversation.out([f"The mode is {conversation.how.mode}."])


def _stakes(conversation: Conversation, words: str) -> None:
    from assay.core.events import Stakes

    if words and words.casefold() not in set(Stakes):
        conversation.out([f"There are no stakes {words!r}. There is: {', '.join(Stakes)}."])
        return
    if words:
        conversation.how = replace(conversation.how, stakes=Stakes(words.casefold()))
    conversation.out([f"The stakes are {conversation.how.stakes}."])


def _base(conversation: Conversation, words: str) -> None:
    scope = conversation.opened.scope()
    named = (words,) if words in {base.name for base in scope.bases} else tuple(words.split())
    narrowed = scope.narrowed(named)  # raises, and lists the bases, if one does not exist
    conversation.how = replace(conversation.how, where=replace(conversation.how.where, bases=named))
    names = ", ".join(base.name for base in narrowed.bases)
    conversation.out([f"Searched are: {names or 'no knowledge bases: there are none yet'}."])


def _reopen(conversation: Conversation, thread: str) -> list[str]:
    """Continue a thread: returns a recap, and restores its questions and last answer."""
    found, runs = conversation.opened.threads.get(whole(thread))
    conversation.thread = found.id
    conversation.answered = next((run for run in reversed(runs) if run.answer is not None), None)
    _remember([run.asked.question for run in runs])
    return recap_lines(found, runs)


def _list(opened: Opened, *, json: bool) -> None:
    from assay.core.codec import to_json

    found = opened.threads.listing()
    if json:
        print_json([{"thread": each.id, **{k: v for k, v in to_json(each).items() if k != "id"}} for each in found])
        return
    for row in thread_lines(found):
        console().print(plain(row.strip()), markup=False)


def _forget(opened: Opened, thread: str, *, json: bool) -> None:
    from assay.workspace.stored import threads

    found = threads.named(opened.store, whole(thread), opened.principal.id)
    threads.forget(opened.store, found.id, opened.principal.id)
    if json:
        print_json({"forgotten": found.id})
        return
    console().print(plain(f"Forgotten: {found.title}. Its runs and their records stay."), markup=False)


COMMANDS: Mapping[str, tuple[str, str]] = {
    "help": ("", "what can be typed here"),
    "sources": ("", "the documents that are searched"),
    "why": ("", "the evidence of the last answer, and what was searched"),
    "mode": ("[quick|balanced|thorough]", "how far to go"),
    "stakes": ("[normal|high]", "high: a reviewer looks at each answer first"),
    "base": ("[NAME…]", "search only these knowledge bases; without a name: all"),
    "threads": ("", "the conversations there are"),
    "open": ("ID", "go on with one of them"),
    "new": ("", "begin another"),
    "title": ("WORDS", "give this one a title"),
    "quit": ("", "leave; so does Ctrl-D"),
}
SOURCES = 20  # documents listed
FURTHER = 8  # uncited quotations shown
TURNS = 12  # turns in the recap of a reopened conversation
LONGEST = 160  # characters of a recap line


@dataclass(frozen=True, slots=True)
class Command:
    """The name after the slash, and its arguments."""

    name: str
    words: str = ""


def parse_command(line: str) -> Command | None:
    """The command on a line; None if it is a question."""
    if not line.startswith("/"):
        return None
    name, _, words = line[1:].partition(" ")
    return Command(name.casefold(), words.strip())


def help_lines() -> list[str]:
    usages = {f"/{name} {takes}".strip(): does for name, (takes, does) in COMMANDS.items()}
    wide = max(map(len, usages))
    return [
        "Whatever does not begin with / is a question.",
        *(f"  {it:<{wide}}  {does}" for it, does in usages.items()),
    ]


def unknown(name: str) -> str:
    return f"There is no command /{name}. There is: {', '.join(f'/{each}' for each in COMMANDS)}."


def sources(entries: Sequence[Entry], bases: Mapping[str, str]) -> list[str]:
    """The first searchable documents, with their base if there are several."""
    if not entries:
        return ["There are no documents here. `assay add PATH` adds some."]
    several = len({entry.base for entry in entries}) > 1
    within = {base: f" ({name})" for base, name in bases.items()} if several else {}
    rows = [f"  {entry.title or entry.name} — {entry.name}{within.get(entry.base, '')}" for entry in entries[:SOURCES]]
    more = [f"  and {len(entries) - SOURCES:,} more: `assay sources` lists them all"] if len(entries) > SOURCES else []
    return [f"{count_of(len(entries), 'document')}:", *rows, *more]


def why(run: Run, cited: Cited, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The basis of a run's answer: each quotation by its number with its score, other findings, and the searches."""
    evidence = {each.key: each for each in run.evidence}
    shown = [
        f"  [{each.number}] {quote_line(evidence[key], each.quote, titles, pages)}"
        for (key, _), each in cited.items()
        if key in evidence
    ]
    head = "Nearest:" if run.answer is not None and not run.answer.claims else "Cited:"
    used = {key for key, _ in cited}
    others = [each for each in run.evidence if each.key not in used]
    return [
        *([f"Understood as: {words}"] if (words := understood_turn(run.asked.question, run.rephrased)) else []),
        *([head, *shown] if shown else ["Nothing is cited."]),
        *(
            ["Found as well:", *(f"  {quote_line(each, each.quote, titles, pages)}" for each in others[:FURTHER])]
            if others
            else []
        ),
        *([f"  and {len(others) - FURTHER} more"] if len(others) > FURTHER else []),
        *search_lines(run),
        f"`assay trace {run.id}` shows every step.",
    ]


def quote_line(evidence: Evidence, quote: Quote, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> str:
    """A quotation in one line: score, document, page, text."""
    warned = " (it reads like an instruction)" if evidence.flagged else ""
    return f"{evidence.score:4.1f}  {place(evidence, titles, pages)}: “{' '.join(quote.text.split())}”{warned}"


def search_lines(run: Run) -> list[str]:
    """Each search with its results; reusing evidence of earlier turns is no search."""
    recalls = {call.id for event in run.events if isinstance(event, Decided) and event.recalls for call in event.calls}
    done = [call for call in run.calls if call.id in run.results]
    rows = [
        f"  {'what earlier turns found' if call.id in recalls else f'“{each.query}”'}: {each.found} found, {each.kept} kept"
        for call, each in zip(done, run.searched, strict=True)
    ]
    return ["Searched:", *rows] if rows else ["Nothing was searched for."]


def thread_lines(threads: Sequence[Thread], current: str = "") -> list[str]:
    """One line per thread; the open one is marked."""
    return [
        f"{'*' if each.id == current else ' '} {each.id}  {each.updated[:19]}  {count_of(each.turns, 'turn'):>9}  {each.title}"
        for each in threads
    ] or ["There are no threads yet."]


def recap_lines(thread: Thread, runs: Sequence[Run]) -> list[str]:
    """A recap: the latest turns, with one line for the question and one for the answer."""
    before = len(runs) - TURNS
    rows = [
        line for run in runs[-TURNS:] for line in (f"> {_short(run.asked.question)}", f"  {_short(_answer_line(run))}")
    ]
    return [f"{thread.title} ({count_of(len(runs), 'turn')})", *([f"  {before} before"] if before > 0 else []), *rows]


def _answer_line(run: Run) -> str:
    answer = run.answer
    if run.withheld:
        return "withheld"
    if answer is None:
        if run.held or run.rejected:
            return "it waits for a reviewer" if run.held else "rejected in review"
        return "failed" if run.failed else "it waits for you" if run.waiting else "not finished"
    from assay.answer.render import label

    said = answer.said or " ".join(claim.words for claim in answer.claims)
    return said or label(replace(answer, near=())) or answer.outcome


def _short(words: str) -> str:
    flat = " ".join(words.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
