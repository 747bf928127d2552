"""`assay serve`: the web page and the API, on this machine or for a team."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.acting import open_workspace
from assay.cli.options import FourEyes, Workspace, again
from assay.cli.terminal import say
from assay.cli.workspace import server_lock
from assay.core.errors import Missing, StoreError, UserError
from assay.ingest.sandbox.process import describe_missing, unguarded
from assay.ingest.sandbox.runner import missing_guards
from assay.models.factory import has_model, model_hosts, unconnected
from assay.serve.guard import load_token
from assay.serve.housekeeping import work_until
from assay.serve.oidc import provider_of
from assay.serve.process import ServerProcess, WorkerProcesses, collect_garbage_less_often, listen, log_to_terminal
from assay.serve.state import ServeOptions, Server
from assay.workspace.facade import Workspace as Opened

ONE_SERVER = (
    "The state of this workspace is a file, which one server holds. Use `assay serve --workers N` there, or move the state to "
    "PostgreSQL with `assay migrate`."
)


def serve(
    host: Annotated[str, typer.Option(help="Where to listen. Anything but this machine needs people to sign in.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Which port; 0 for any that is free.")] = 8321,
    auth: Annotated[bool, typer.Option("--auth", help="People sign in, or bring an API key.")] = False,
    trust_header: Annotated[
        str, typer.Option(metavar="NAME", help="A proxy in front has signed people in and names them in this header.")
    ] = "",
    trust_groups_header: Annotated[
        str, typer.Option(metavar="NAME", help="The header in which it names their groups, parted by commas.")
    ] = "",
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="The address or network of a proxy in front; what others say of people is not believed. May be repeated.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name this server goes by. May be repeated.")
    ] = None,
    https_cookies: Annotated[
        bool, typer.Option("--https-cookies", help="Sessions over HTTPS alone, where a proxy in front speaks it.")
    ] = False,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Without --auth: ask for no token. Every user of this machine can then read everything."
        ),
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            min=0, max=64, help="Processes that work on runs and uploads; this one then only serves requests."
        ),
    ] = 0,
    no_work: Annotated[
        bool, typer.Option("--no-work", help="Leave runs and uploads to `assay worker`, here or on other machines.")
    ] = False,
    four_eyes: FourEyes = False,
    open: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    access_log: Annotated[bool, typer.Option("--access-log", help="A line for each request.")] = False,
    workspace: Workspace = None,
) -> None:
    """Serve the page and the API, until Ctrl-C. Runs go on where they were when it starts again."""
    from assay.serve.app import make_app

    serving = ServeOptions(
        auth=auth_of(auth, trust_header),
        user_header=trust_header,
        groups_header=trust_groups_header,
        proxies=tuple(trust_proxy or ()),
        hosts=tuple(allow_host or ()),
        secure=https_cookies,
    )
    _fits(serving, host, auth=auth)
    with open_workspace(workspace, create=True, review_four_eyes=four_eyes or None) as opened, _lock(opened):
        if no_work and not opened.settings.state:
            raise UserError(ONE_SERVER)
        if serving.auth == "keys":
            provider_of(opened.settings)  # says what is missing
        if serving.auth == "off" and not no_token:
            serving = replace(serving, token=load_token(opened.path))
        given = [*worker_flags(serving), *(["--four-eyes"] if four_eyes else [])]
        works = not (workers or no_work)
        log_to_terminal(access=access_log)
        collect_garbage_less_often()
        guards = check_guards(opened)
        listening = listen(host, port)
        named = f"[{host}]" if ":" in host else host
        address = f"http://{named}:{listening.getsockname()[1]}/" + (f"?token={serving.token}" if serving.token else "")

        def ready() -> None:
            for line in [*describe_server(opened, serving, address, again(workspace)), *guards]:
                say(line)
            if open:
                import webbrowser

                webbrowser.open(address)

        server = Server(opened, serving, works=works, shared=not works)
        with WorkerProcesses(workers, opened.path, given):
            ServerProcess(make_app(server), server, access_log=access_log, ready=ready).run([listening])
        say("Closed. Unfinished runs continue when the server starts again.")
        if server.background.stuck:  # the interpreter would wait for that thread; its work is resumed later
            os._exit(0)


def auth_of(auth: bool, trust_header: str) -> str:
    """How people are known."""
    return "header" if trust_header else "keys" if auth else "off"


def worker_flags(serving: ServeOptions) -> list[str]:
    """The flags that tell a worker how people are known."""
    named = {"--trust-header": serving.user_header, "--trust-groups-header": serving.groups_header}
    given = [word for flag, name in named.items() if name for word in (flag, name)]
    return [*given, *(["--auth"] if serving.auth == "keys" else [])]


def _fits(serving: ServeOptions, host: str, *, auth: bool) -> None:
    if auth and serving.user_header:
        raise UserError("Either --auth or --trust-header: people are known one way.")
    if serving.groups_header and not serving.user_header:
        raise UserError("--trust-groups-header needs --trust-header, which names the person.")
    if serving.user_header and not serving.proxies:
        raise UserError("--trust-header needs --trust-proxy with the proxy's address, so that nobody else can set it.")
    if serving.auth == "off" and not on_this_machine(host):
        raise UserError(
            f"At {host} others could read your documents. Use --auth, or a proxy that signs people in and --trust-header."
        )


def on_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _lock(opened: Opened) -> AbstractContextManager[object]:
    """With the state in a file there is one server for a workspace; on a database several share it by leases."""
    taken = UserError(f"Another `assay serve` has the workspace {opened.path} already. Use that one, or stop it first.")
    return nullcontext() if opened.settings.state else server_lock(opened.path, taken)


def check_guards(opened: Opened) -> list[str]:
    """A sentence if guards of the parsers' sandbox are missing; raises if the settings require them."""
    missing = missing_guards()
    if missing and opened.settings.sandbox == "require":
        raise UserError(unguarded(missing))
    return describe_missing(missing)


def describe_server(opened: Opened, serving: ServeOptions, address: str, flag: str = "") -> list[str]:
    """The startup message; `flag` names the workspace in commands."""
    lines = [f"Assay is at {address} (Ctrl-C ends it). Workspace: {opened.path}"]
    if not has_model(opened.settings):
        lines.append(f"No model is set, so answers are quotations; `assay init{flag}` sets one.")
    else:
        lines.append(unconnected(opened.settings) or opened.setup.written_by())
        lines += [
            f"Questions would be sent to {host}, and nobody has agreed to that yet: `assay config agree {host}{flag}`."
            for host in model_hosts(opened.settings)
            if not opened.setup.agreed(host)
        ]
    if serving.auth == "off" and not serving.token:
        lines.append("There is no token: every user of this machine can read and change everything here.")
    if serving.auth == "keys" and not opened.people.listing():
        lines.append(f"Nobody can sign in yet: `assay user add NAME --admin{flag}` adds the first administrator.")
    if outdated := opened.documents.outdated_of_all():
        lines.append(outdated)
    return lines


WAIT = 2.0  # seconds between two looks for a workspace that is not there yet
BEAT = 10.0  # seconds between two touches of the heartbeat
RUNS = 100  # that one process works on at once; most of the time a run waits for a model


def worker(
    auth: Annotated[bool, typer.Option("--auth", help="The servers have --auth.")] = False,
    trust_header: Annotated[str, typer.Option(metavar="NAME", help="The servers have --trust-header NAME.")] = "",
    trust_groups_header: Annotated[
        str, typer.Option(metavar="NAME", help="The servers have --trust-groups-header NAME.")
    ] = "",
    runs: Annotated[int, typer.Option(min=1, max=1000, help="How many runs to work on at once.")] = RUNS,
    heartbeat: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Touch this file every ten seconds while it works, for a probe to look at."),
    ] = None,
    four_eyes: FourEyes = False,
    with_server: Annotated[
        bool, typer.Option("--with-server", help="End with standard input: how `assay serve --workers` starts it.")
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Work on the runs, syntheses and uploads that servers leave to it, until Ctrl-C. Any number may share a workspace."""
    serving = ServeOptions(
        auth=auth_of(auth, trust_header), user_header=trust_header, groups_header=trust_groups_header
    )
    log_to_terminal(access=False)
    collect_garbage_less_often()
    with when_made(lambda: open_workspace(workspace, review_four_eyes=four_eyes or None)) as opened:
        if not (opened.settings.state or with_server):
            raise UserError(ONE_SERVER)
        if not with_server:
            say(f"Working on what servers leave to it (Ctrl-C ends it). Workspace: {opened.path}")
            for line in check_guards(opened):
                say(line)
        server = Server(opened, serving, most_runs=runs, shared=True)
        asyncio.run(_work(server, heartbeat, with_server=with_server))
        if not with_server:
            say("Ended. Unfinished runs are taken up by another worker, or by the next one.")
        if server.background.stuck:  # the interpreter would wait for that thread; its work is resumed later
            os._exit(0)


def when_made(open: Callable[[], Opened], pause: Callable[[float], None] = time.sleep) -> Opened:
    """The workspace, as soon as there is one: a worker may start before the server that makes it, or before its database."""
    told = False
    while True:
        try:
            return open()
        except (Missing, StoreError) as error:
            if not told:
                say(f"Waiting: {error}")
                told = True
            pause(WAIT)


def _on_signal(loop: asyncio.AbstractEventLoop, number: signal.Signals, do: Callable[[], object]) -> None:
    try:
        loop.add_signal_handler(number, do)
    except NotImplementedError:  # the loop of Windows
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(do))


async def _work(server: Server, heartbeat: Path | None, *, with_server: bool) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        _on_signal(loop, each, stopped.set)

    def until_input_ends() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stopped.set)

    if with_server:
        _on_signal(loop, signal.SIGINT, lambda: None)  # Ctrl-C reaches the server too, which ends its workers
        threading.Thread(target=until_input_ends, daemon=True).start()
    beating = asyncio.create_task(_beat(heartbeat)) if heartbeat else None
    await work_until(server, stopped)
    if beating:
        beating.cancel()


async def _beat(heartbeat: Path) -> None:
    while True:
        await asyncio.to_thread(heartbeat.touch)
        await asyncio.sleep(BEAT)


def mcp(workspace: Workspace = None) -> None:
    """Let an agent search, ask and read your documents: MCP over standard input and output.

    An agent starts it; it ends when the agent does. Nothing but the protocol goes to standard output.
    """
    from assay.serve.mcp_tools import over_stdio

    log_to_terminal(access=False)
    # Exit at once: a thread blocks on the next line and cannot be cancelled. Records are on disk, and runs can be
    # resumed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_workspace(workspace) as opened:
        asyncio.run(over_stdio(opened))
