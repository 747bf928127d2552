"""Slash commands of a conversation and their output as lines. Pure; the output is not sanitised here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from assay.cli.view.run_view import place
from assay.core.events import Decided
from assay.core.events.describe import NO_PAGES, count_of, understood_turn

if TYPE_CHECKING:
    from assay.answer.render import Cited
    from assay.core.run import Run
    from assay.core.types import Evidence, Quote
    from assay.workspace.stored import Entry, Thread

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
