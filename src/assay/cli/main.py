"""The command line: parse, open, follow, exit. No logic here; commands of one kind are in one file."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
from collections import UserDict
from collections.abc import Callable
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from types import CodeType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from assay import __version__
from assay.cli.acting import act_as
from assay.core.errors import AssayError, UserError
from assay.core.private_files import OTHERS

# Each command and the module that has a function of that name, in the order of the help.
COMMANDS = {
    "init": "init", "add": "add", "sync": "add", "reindex": "add", "sources": "sources", "off": "sources", "on": "sources",
    "tag": "sources", "remove": "sources", "erase": "sources", "show": "sources", "search": "ask", "ask": "ask",
    "chat": "chat", "synthesise": "synthesise", "synthesize": "synthesise", "serve": "serve", "worker": "serve",
    "mcp": "serve", "review": "review", "runs": "runs", "feedback": "runs", "trace": "runs", "replay": "runs",
    "diff": "runs", "recheck": "runs", "resume": "ask", "verify": "audit", "export": "audit", "report": "audit",
    "monitor": "audit", "doctor": "doctor", "backup": "workspace", "restore": "workspace", "migrate": "migrate",
}  # fmt: skip
HIDDEN = frozenset({"synthesize"})  # American spelling
# Commands of commands: each is the `app` of the module of its name.
GROUPS = {
    "base": "Knowledge bases.",
    "access": "Who may read a knowledge base or a document.",
    "user": "People who may sign in to a server.",
    "key": "API keys for a server.",
    "audit": "The record of all runs: sealed, kept, erased when it is old.",
    "config": "Settings.",
    "workspace": "The workspace: where documents, index and runs are kept.",
    "evaluate": "Measure on labelled questions.",
}


class LoadedCommands(UserDict[str, Any]):
    """The commands by name. The module of one is loaded when it is asked for, so that it loads nothing for others."""

    def __init__(self) -> None:
        self.data = dict.fromkeys([*COMMANDS, *GROUPS])

    def __getitem__(self, name: str) -> Any:
        if self.data[name] is None:
            loader = typer.Typer()
            if name in GROUPS:
                loader.add_typer(import_module(f"assay.cli.{name}").app, name=name, help=GROUPS[name])
            else:
                module = import_module(f"assay.cli.{COMMANDS[name]}")
                loader.command(name, hidden=name in HIDDEN)(getattr(module, name))
            self.data[name] = typer.main.get_group(loader).commands[name]
        return self.data[name]


class LazyGroup(TyperGroup):
    """The program. Its help and its completion are quick: they show what docstrings say, and load no command."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = LoadedCommands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super(LazyGroup, self._listed()).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        ctx.command = self._listed()
        return super().shell_complete(ctx, incomplete)

    def _listed(self) -> LazyGroup:
        """The same, of every command the name and the docstring alone."""
        functions = {module: _functions(f"assay.cli.{module}") for module in {*COMMANDS.values()}}
        words = {
            name: cleandoc(functions[module][name].co_consts[0] or "")  # None under `python -OO`
            for name, module in COMMANDS.items()
            if name in functions[module]
        }
        shown = copy(self)
        shown.commands = {name: TyperCommand(name, help=each) for name, each in (words | GROUPS).items()}
        return shown


def _functions(module: str) -> dict[str, CodeType]:
    """Those of a module that is not loaded, by name. It is compiled already, so nothing is parsed either."""
    spec: Any = find_spec(module)
    return {each.co_name: each for each in spec.loader.get_code(module).co_consts if isinstance(each, CodeType)}


app = typer.Typer(
    name="assay",
    cls=LazyGroup,
    help="Answers questions from your own documents and shows its evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done or answered · 1 failure · 2 something you can put right · 3 partly answered · "
    "4 cannot be answered from the documents · 5 waits for you or for a reviewer.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    as_: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="user:NAME",
            envvar="ASSAY_AS",
            help="Whom the command acts as, seeing and recording what they would. Goes before the command.",
        ),
    ] = "",
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Answers questions from your own documents and shows its evidence."""
    act_as(as_, context.invoked_subcommand)


@functools.cache
def command() -> Callable[[], None]:
    """The commands above with their options, built once in a process."""
    return typer.main.get_command(app)


def main() -> None:
    """Run a command; an error the user can fix is one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an unprintable character is no reason to stop
    before = os.umask(OTHERS)  # whatever is written can be read by its owner alone
    try:
        command()()
    except KeyboardInterrupt:
        _fail("Stopped.", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except BaseExceptionGroup as group:
        _fail_for(_first(group))
    except Exception as error:
        _fail_for(error)
    finally:
        os.umask(before)


def _first(group: BaseExceptionGroup) -> BaseException:
    """The first of several concurrent errors, which is sufficient."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _fail_for(error: BaseException) -> None:
    if isinstance(error, UserError):
        _fail(str(error), 2)
    if isinstance(error, AssayError):
        _fail(str(error), 1)
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        _fail("The disk is full. Free some space and run the same command again.", 2)
    if isinstance(error, OSError) and error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        _fail(f"No permission for {error.filename or 'a file'}: {error.strerror}.", 2)
    if isinstance(error, OSError) and error.errno in {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}:
        _fail(f"{str(error.filename)!r} cannot be opened: {error.strerror}.", 2)
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # the message of `Path.expanduser`
        _fail("A path begins with the home folder of somebody who is not known here. Write it out.", 2)
    if os.environ.get("ASSAY_DEBUG") or not isinstance(error, Exception):
        raise error
    what = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ").rstrip(".")
    line = f"unexpected error: {what}. Set ASSAY_DEBUG=1 to see where."
    _fail(line, 1)


def _fail(line: str, code: int) -> None:
    from assay.cli.terminal import plain

    typer.echo(plain(f"assay: {line}"), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
