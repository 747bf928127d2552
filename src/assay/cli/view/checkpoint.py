"""A run that waits: what is asked of the person, and how they answer, here or with another command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.cli.view.dialogue import line, one_of, say
from assay.cli.view.run_view import place
from assay.core.events import OTHER_WORDS, Checkpoint

if TYPE_CHECKING:
    from assay.core.run import Run

SHOWN = 12  # sources that are listed


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose, with their own words where the choice asks for some."""

    option: str
    words: str = ""


def question(run: Run, titles: Mapping[str, str]) -> list[str]:
    """What is asked, with what one needs to know for it, and the options by number."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    lines = sources(run, titles) if waiting.at is Checkpoint.sources else []
    return [*lines, waiting.question, *(f"  {n}. {option}" for n, option in enumerate(waiting.options, 1))]


def sources(run: Run, titles: Mapping[str, str]) -> list[str]:
    """The evidence, best first."""
    shown = [
        f"  {each.score:4.1f}  {place(each, titles)}: “{' '.join(each.quote.text.split())}”"
        for each in run.evidence[:SHOWN]
    ]
    more = [f"  and {len(run.evidence) - SHOWN} more"] if len(run.evidence) > SHOWN else []
    return ["The sources:", *shown, *more]


def choose(run: Run, titles: Mapping[str, str]) -> Choice | None:
    """Ask the person who sits at the terminal; none where they have gone."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    for each in question(run, titles):
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
    """The commands that answer later, one for each option; `resume` is the one that carries the run on. Options go by number:
    a model may have written their words, and these lines are made to be pasted."""
    waiting = run.waiting
    assert waiting is not None, "only a run that waits asks something"
    return [
        f"{resume} --choose {n}{' --words WORDS' if option == OTHER_WORDS else ''}"
        for n, option in enumerate(waiting.options, 1)
    ]
