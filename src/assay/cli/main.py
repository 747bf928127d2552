"""The command line: parse, open, follow, exit. No logic here; commands of one kind are in one file."""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from assay import __version__
from assay.cli import (
    access,
    add,
    ask,
    audit,
    base,
    chat,
    config,
    doctor,
    erase,
    evaluate,
    init,
    key,
    migrate,
    replay,
    report,
    review,
    runs,
    search,
    serve,
    sources,
    synthesise,
    user,
    workspace,
)
from assay.cli.acting import act_as
from assay.cli.options import plain
from assay.core.errors import AssayError, UserError
from assay.core.private_files import OTHERS

app = typer.Typer(
    name="assay",
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


app.command("init")(init.init)
app.command("add")(add.add)
app.command("sync")(add.sync)
app.command("reindex")(add.reindex)
app.command("sources")(sources.sources)
app.command("off")(sources.off)
app.command("on")(sources.on)
app.command("tag")(sources.tag)
app.command("remove")(sources.remove)
app.command("erase")(erase.erase)
app.command("show")(sources.show)
app.command("search")(search.search)
app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("synthesise")(synthesise.synthesise)
app.command("synthesize", hidden=True)(synthesise.synthesise)  # American spelling
app.command("serve")(serve.serve)
app.command("worker")(serve.worker)
app.command("mcp")(serve.mcp)
app.command("review")(review.review)
app.command("runs")(runs.runs)
app.command("feedback")(runs.feedback)
app.command("trace")(runs.trace)
app.command("replay")(replay.replay)
app.command("diff")(replay.diff)
app.command("resume")(ask.resume)
app.command("verify")(audit.verify)
app.command("export")(report.export)
app.command("report")(report.report)
app.command("monitor")(report.monitor)
app.command("doctor")(doctor.doctor)
app.command("backup")(migrate.backup)
app.command("restore")(migrate.restore)
app.command("migrate")(migrate.migrate)
base.app.command("share")(access.share)
app.add_typer(base.app, name="base")
app.add_typer(access.app, name="access")
app.add_typer(user.app, name="user")
app.add_typer(key.app, name="key")
app.add_typer(audit.app, name="audit")
app.add_typer(config.app, name="config")
app.add_typer(workspace.app, name="workspace")
app.add_typer(evaluate.app, name="evaluate")


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
    typer.echo(plain(f"assay: {line}"), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
