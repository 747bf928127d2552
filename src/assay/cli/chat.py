"""`assay chat`: questions that build on each other, single or as a dialogue, in threads that can be reopened."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from assay.answer import citations
from assay.answer.citations import Cited
from assay.answer.render import label
from assay.cli import config
from assay.cli.acting import open_workspace
from assay.cli.follow import OutputFormat, Show, Watched, end, follow, warn_before_asking
from assay.cli.options import Asking, Filters, Json, Quiet, WorkingOption, Workspace, again, with_option_groups
from assay.cli.run_view import quote_line, shortened
from assay.cli.terminal import line, plain, print_result, say, whole
from assay.core.codec import to_json
from assay.core.errors import AssayError, UserError
from assay.core.events import Decided, Event, Mode, Stakes
from assay.core.events.describe import NO_PAGES, count_of, understood_turn
from assay.core.run import Run
from assay.core.types import Evidence, Quote
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import Thread
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


@with_option_groups
def chat(
    question: Annotated[str | None, typer.Argument(help="One question; without it, a dialogue.")] = None,
    thread: Annotated[str, typer.Option("--thread", help="Go on with this thread. Default: a new one.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="List the threads, newest first, and end.")] = False,
    forget: Annotated[
        str, typer.Option("--forget", metavar="THREAD", help="Forget a thread, and end. Its runs stay.")
    ] = "",
    asking: Asking = Asking(),
    filters: Filters = Filters(),
    workspace: Workspace = None,
    json: Json = False,
    quiet: Quiet = False,
    working: WorkingOption = False,
) -> None:
    """Ask questions that build on each other. Each turn is answered and cited like `assay ask`.

    Without QUESTION a dialogue: /help says what can be typed. With QUESTION one turn, with the exit codes of `assay ask`.
    """
    if (list_ or forget) and (question is not None or thread or (list_ and forget)):
        raise UserError("--list and --forget stand alone: give no question and no --thread with them.")
    with open_workspace(workspace) as opened:
        if list_:
            return _list(opened, json=json)
        if forget:
            return _forget(opened, forget, json=json)
        how = asking.options(filters.where())
        opened.scope(how.where.bases)  # raises at once for an unknown base
        conversation = Conversation(
            opened, Show(OutputFormat.text, json, quiet, again(workspace), working=working), how
        )
        if thread:
            so_far = _reopen(conversation, thread)
            if question is None and sys.stdin.isatty():
                conversation.remark("\n".join(so_far))
        config.settle(opened, model=how.model)
        warn_before_asking(opened, how, quiet=quiet)
        if question is not None:
            code = _turn(conversation, question)
            conversation.remark_on_thread()
        else:
            code = _dialogue(conversation) if sys.stdin.isatty() else _piped(conversation)
        raise typer.Exit(code)


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
    if command[0] == "quit":
        return None
    _run_command(conversation, *command)
    return code


def _read_line() -> str | None:
    """Read the next line, with line editing and history where the terminal supports it; None when the user leaves."""
    while True:
        try:
            return input(PROMPT) if sys.stdout.isatty() else line(PROMPT)
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


def _run_command(conversation: Conversation, name: str, words: str) -> None:
    match name:
        case "help":
            conversation.out(help_lines())
        case "sources":
            conversation.out(sources(conversation.opened, conversation.how.where.bases))
        case "why":
            conversation.out(_why(conversation))
        case "mode" | "stakes":
            conversation.out([_set_choice(conversation, name, words)])
        case "base":
            conversation.out([_set_bases(conversation, words)])
        case "threads":
            conversation.out(thread_lines(conversation.opened.threads.listing(), conversation.thread))
        case "open" if words:
            conversation.out(_reopen(conversation, words))
        case "new":
            conversation.thread, conversation.answered = "", None
            conversation.out(["The next question begins a thread."])
        case "title" if words and conversation.thread:
            opened = conversation.opened
            opened.threads.rename(conversation.thread, opened.principal.id, words)
            conversation.out([f"This thread is now called: {words}"])
        case "open":
            conversation.out(["Which one? /threads lists them, /open ID opens one."])
        case "title" if conversation.thread:
            conversation.out(["Which title? /title WORDS."])
        case "title":
            conversation.out(["There is no thread yet: ask something first."])
        case _:
            every = ", ".join(f"/{each}" for each in COMMANDS)
            conversation.out([f"There is no command /{name}. There is: {every}."])


def _why(conversation: Conversation) -> list[str]:
    if conversation.answered is None or conversation.answered.answer is None:
        return ["There is no answer yet."]
    watched = Watched(conversation.opened, conversation.answered)
    watched.look_up()
    cited = citations.of_answer(
        conversation.answered.answer, conversation.answered.evidence, conversation.opened.documents.get
    )
    return why(conversation.answered, cited, watched.titles, watched.pages)


CHOICES = {
    "mode": (Mode, "There is no mode", "The mode is"),
    "stakes": (Stakes, "There are no stakes", "The stakes are"),
}


def _set_choice(conversation: Conversation, name: str, words: str) -> str:
    kind, unknown, now = CHOICES[name]
    if words and words.casefold() not in set(kind):
        return f"{unknown} {words!r}. There is: {', '.join(kind)}."
    if words:
        conversation.how = replace(conversation.how, **{name: kind(words.casefold())})
    return f"{now} {getattr(conversation.how, name)}."


def _set_bases(conversation: Conversation, words: str) -> str:
    scope = conversation.opened.scope()
    named = (words,) if words in {base.name for base in scope.bases} else tuple(words.split())
    narrowed = scope.narrowed(named)  # raises, and lists the bases, if one does not exist
    conversation.how = replace(conversation.how, where=replace(conversation.how.where, bases=named))
    names = ", ".join(base.name for base in narrowed.bases)
    return f"Searched are: {names or 'no knowledge bases: there are none yet'}."


def _reopen(conversation: Conversation, thread: str) -> list[str]:
    """Continue a thread: returns a recap, and restores its questions and last answer."""
    found, runs = conversation.opened.threads.get(whole(thread))
    conversation.thread = found.id
    conversation.answered = next((run for run in reversed(runs) if run.answer is not None), None)
    _remember([run.asked.question for run in runs])
    return recap_lines(found, runs)


def _list(opened: Opened, *, json: bool) -> None:
    found = opened.threads.listing()
    data = [{"thread": each.id, **{k: v for k, v in to_json(each).items() if k != "id"}} for each in found]
    print_result(json, data, map(str.strip, thread_lines(found)))


def _forget(opened: Opened, thread: str, *, json: bool) -> None:
    found = opened.threads.named(whole(thread), opened.principal.id)
    opened.threads.forget(found.id, opened.principal.id)
    print_result(json, {"forgotten": found.id}, [f"Forgotten: {found.title}. Its runs and their records stay."])


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


def parse_command(line: str) -> tuple[str, str] | None:
    """The name of the command on a line, and its words; None if it is a question."""
    name, _, words = line.removeprefix("/").partition(" ")
    return (name.casefold(), words.strip()) if line.startswith("/") else None


def help_lines() -> list[str]:
    usages = {f"/{name} {takes}".strip(): does for name, (takes, does) in COMMANDS.items()}
    wide = max(map(len, usages))
    return [
        "Whatever does not begin with / is a question.",
        *(f"  {it:<{wide}}  {does}" for it, does in usages.items()),
    ]


def sources(opened: Opened, bases: Sequence[str]) -> list[str]:
    """The first searchable documents, with their base if there are several."""
    entries = [entry for entry in opened.documents.listing(bases) if entry.standing == "ready"]
    if not entries:
        return ["There are no documents here. `assay add PATH` adds some."]
    several = len({entry.base for entry in entries}) > 1
    within = {base.id: f" ({base.name})" for base in opened.scope(bases).bases} if several else {}
    rows = [f"  {entry.title or entry.name} — {entry.name}{within.get(entry.base, '')}" for entry in entries[:SOURCES]]
    more = [f"  and {len(entries) - SOURCES:,} more: `assay sources` lists them all"] if len(entries) > SOURCES else []
    return [f"{count_of(len(entries), 'document')}:", *rows, *more]


def why(run: Run, cited: Cited, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The basis of a run's answer: each quotation by its number with its score, other findings, and the searches."""

    def shown(evidence: Evidence, quote: Quote) -> str:
        return quote_line(evidence, titles, pages, quote) + " (it reads like an instruction)" * evidence.flagged

    evidence = {each.key: each for each in run.evidence}
    quoted = [
        f"  [{each.number}] {shown(evidence[key], each.quote)}" for (key, _), each in cited.items() if key in evidence
    ]
    head = "Nearest:" if run.answer is not None and not run.answer.claims else "Cited:"
    used = {key for key, _ in cited}
    others = [f"  {shown(each, each.quote)}" for each in run.evidence if each.key not in used]
    more = [f"  and {len(others) - FURTHER} more"] if len(others) > FURTHER else []
    return [
        *([f"Understood as: {words}"] if (words := understood_turn(run.asked.question, run.rephrased)) else []),
        *([head, *quoted] if quoted else ["Nothing is cited."]),
        *(["Found as well:", *others[:FURTHER], *more] if others else []),
        *search_lines(run),
        f"`assay trace {run.id}` shows every step.",
    ]


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
        f"{mark} {shortened(words, LONGEST)}"
        for run in runs[-TURNS:]
        for mark, words in ((">", run.asked.question), (" ", _answer_line(run)))
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

    said = answer.said or " ".join(claim.words for claim in answer.claims)
    return said or label(replace(answer, near=())) or answer.outcome
