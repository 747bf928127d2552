"""Prompts at the terminal. They go to standard error, so that standard output contains only results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from assay.cli.options import plain

T = TypeVar("T")


def at_terminal() -> bool:
    """Whether the user can be prompted: standard input and standard error are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(words: str = "") -> None:
    typer.echo(plain(words), err=True)


def say_if_any(words: str) -> None:
    if words:
        say(words)


def line(prompt: str) -> str | None:
    """Read a line; None at the end of input."""
    typer.echo(plain(prompt), err=True, nl=False)
    typed = sys.stdin.readline()
    return plain(typed).strip() if typed else None


def ask_until_valid(question: str, present: str, read: Callable[[str], T], *, shown_default: str = "") -> T:
    """Prompt until the answer is valid; an empty one keeps the current value. `read` raises ValueError with the
    problem. The end of input counts as an abort."""
    while True:
        typed = line(f"{question} [{shown_default or present or 'none'}]: ")
        if typed is None:
            raise KeyboardInterrupt
        try:
            return read(typed or present)
        except ValueError as wrong:
            say(f"  {wrong}")


def confirm(question: str, *, present: bool = False) -> bool:
    """Ask for yes or no; anything else is asked again."""
    words = {"y": True, "yes": True, "n": False, "no": False}

    def read(typed: str) -> bool:
        if typed.casefold() not in words:
            raise ValueError("Answer y or n.")
        return words[typed.casefold()]

    return ask_until_valid(question, "y" if present else "n", read, shown_default="Y/n" if present else "y/N")


def one_of(options: Sequence[str]) -> Callable[[str], str]:
    """A parser that accepts an option by its number or text."""

    def read(typed: str) -> str:
        if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options):
            return options[int(typed) - 1]
        fitting = [option for option in options if option.casefold() == typed.casefold()]
        if not fitting:
            raise ValueError(f"Choose one of: {', '.join(options)}.")
        return fitting[0]

    return read
