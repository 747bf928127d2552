"""What commands print and how they prompt: text that is safe for a terminal, JSON, progress and remarks apart."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from assay.core.codec import to_json
from assay.core.printable import UNSAFE, printable_text

T = TypeVar("T")
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all control characters except tab and newline
# Escaped in JSON too: controls, and what reorders or hides text on a terminal.
JSON_UNSAFE = re.compile(f"[{UNSAFE}\ud800-\udfff]")
HALVES = re.compile("[\ud800-\udfff]")  # surrogates, which Python uses for bytes that are not UTF-8


def plain(text: str) -> str:
    """Text made safe for a terminal: without control characters; those that reorder or hide text are escaped."""
    return printable_text(CONTROL.sub("", whole(text)))


def whole(text: str) -> str:
    """Text as typed, with a replacement character for bytes that are not UTF-8."""
    return HALVES.sub("\ufffd", text)


def cells(*texts: str) -> list[Text]:
    """A table row; brackets are literal and not markup."""
    return [Text(plain(text)) for text in texts]


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end; on Ctrl-C, print what that means."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        typer.echo(
            "Stopped. Nothing that was done is lost; run the same command, or `assay resume` for a run.", err=True
        )
        raise typer.Exit(130) from None


def print_json(value: Any, *, indent: int | None = 2) -> None:
    sys.stdout.write(as_json(value, indent=indent) + "\n")
    sys.stdout.flush()


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """JSON that is lossless and safe for a terminal: all control characters are escaped."""
    text = json.dumps(to_json(value), ensure_ascii=False, indent=indent)
    return JSON_UNSAFE.sub(lambda sign: json.dumps(sign[0])[1:-1], text)


def print_lines(*lines: str) -> None:
    out = console()
    for each in lines:
        out.print(plain(each), markup=False)


def print_result(json: bool, data: Any, lines: Iterable[str]) -> None:
    """Print data as JSON, or lines that say the same in words."""
    print_json(data) if json else print_lines(*lines)


def picked(value: Any, names: str) -> dict[str, Any]:
    """The attributes of these names, for JSON."""
    return {name: getattr(value, name) for name in names.split()}


def console() -> Console:
    """The console for results (standard output)."""
    return Console(highlight=False, emoji=False, soft_wrap=not sys.stdout.isatty())


def aside() -> Console:
    """The console for progress and remarks (standard error), so that results can be piped."""
    return Console(stderr=True, highlight=False, emoji=False)


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
