"""Asking a person at the terminal. Questions go to standard error, so that standard output stays the result's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

import typer

from assay.cli.options import plain

T = TypeVar("T")


def at_terminal() -> bool:
    """Whether there is somebody to ask: their keyboard and their screen are here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(words: str = "") -> None:
    typer.echo(plain(words), err=True)


def line(prompt: str) -> str | None:
    """A line that a person types; none where there is nobody any more."""
    typer.echo(plain(prompt), err=True, nl=False)
    typed = sys.stdin.readline()
    return plain(typed).strip() if typed else None


def ask_until_valid(question: str, present: str, read: Callable[[str], T], *, said: str = "") -> T:
    """Ask until the answer can be read; an empty one keeps what is there. `read` raises ValueError with what is wrong. A
    person who has gone has stopped it."""
    while True:
        typed = line(f"{question} [{said or present or 'none'}]: ")
        if typed is None:
            raise KeyboardInterrupt
        try:
            return read(typed or present)
        except ValueError as wrong:
            say(f"  {wrong}")


def confirm(question: str, *, present: bool = False) -> bool:
    """Yes or no; whatever is neither is asked again."""
    words = {"y": True, "yes": True, "n": False, "no": False}

    def read(typed: str) -> bool:
        if typed.casefold() not in words:
            raise ValueError("Answer y or n.")
        return words[typed.casefold()]

    return ask_until_valid(question, "y" if present else "n", read, said="Y/n" if present else "y/N")


def one_of(options: Sequence[str]) -> Callable[[str], str]:
    """Reads an option by its number or its words."""

    def read(typed: str) -> str:
        if typed.isascii() and typed.isdigit() and 0 < int(typed) <= len(options):
            return options[int(typed) - 1]
        fitting = [option for option in options if option.casefold() == typed.casefold()]
        if not fitting:
            raise ValueError(f"Choose one of: {', '.join(options)}.")
        return fitting[0]

    return read
