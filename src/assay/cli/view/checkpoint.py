"""A paused run: the question to the user, and how to answer it, here or with another command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.cli.view.dialogue import line, one_of, say
from assay.cli.view.run_view import place
from assay.core.events import OTHER_WORDS, Checkpoint
from assay.core.events.describe import NO_PAGES

if TYPE_CHECKING:
    from assay.core.run import Run

SHOWN = 12  # sources listed


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choice, with their text if the choice needs some."""

    option: str
    words: str = ""


def question(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The question with its context, and the numbered options."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    lines = sources(run, titles, pages) if waiting.at is Checkpoint.sources else []
    return [*lines, waiting.question, *(f"  {n}. {option}" for n, option in enumerate(waiting.options, 1))]


def sources(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The evidence, best first."""
    shown = [
        f"  {each.score:4.1f}  {place(each, titles, pages)}: “{' '.join(each.quote.text.split())}”"
        for each in run.evidence[:SHOWN]
    ]
    more = [f"  and {len(run.evidence) - SHOWN} more"] if len(run.evidence) > SHOWN else []
    return ["The sources:", *shown, *more]


def choose(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> Choice | None:
    """Prompt the user at the terminal; None if they have gone."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    for each in question(run, titles, pages):
        say(each)
    read = one_of(waiting.options)
    while (typed := line("Your choice: ")) is not None:
        try:
            option = read(typed)
        except ValueError as wrong:
            say(f"  {wrong}")
            continue
        if option != OTHER_WORDS:
            return Choice(option)
        while (words := line("Which words? ")) is not None:
            if words:
                return Choice(option, words)
    return None


def commands(run: Run, resume: str) -> list[str]:
    """The commands that answer later, one for each option; `resume` is the command that resumes the run. Options are
    given by number: a model may have written their text, and these lines are meant to be pasted."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    return [
        f"{resume} --choose {n}{' --words WORDS' if option == OTHER_WORDS else ''}"
        for n, option in enumerate(waiting.options, 1)
    ]
