"""`assay worker`: works on runs and uploads without serving requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FourEyes, Workspace, plain
from assay.cli.view.dialogue import say

if TYPE_CHECKING:
    from assay.serve.state import Server

RUNS = 100  # that one process works on at once; most of the time a run waits for a model


def worker(
    auth: Annotated[bool, typer.Option("--auth", help="The servers have --auth.")] = False,
    trust_header: Annotated[str, typer.Option(metavar="NAME", help="The servers have --trust-header NAME.")] = "",
    trust_groups_header: Annotated[
        str, typer.Option(metavar="NAME", help="The servers have --trust-groups-header NAME.")
    ] = "",
    runs: Annotated[int, typer.Option(min=1, max=1000, help="How many runs to work on at once.")] = RUNS,
    four_eyes: FourEyes = False,
    with_server: Annotated[
        bool, typer.Option("--with-server", help="End with standard input: how `assay serve --workers` starts it.")
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Work on the runs, syntheses and uploads that servers leave to it, until Ctrl-C. Any number may share a workspace."""
    import asyncio
    import os

    from assay.cli.setup.serve import ONE_SERVER, auth_of, check_guards
    from assay.core.access import LOCAL
    from assay.core.errors import UserError
    from assay.serve.process import collect_garbage_less_often, log_to_terminal
    from assay.serve.state import ServeOptions, Server
    from assay.workspace.facade import open_workspace

    own = {"review_four_eyes": True} if four_eyes else {}
    serving = ServeOptions(
        auth=auth_of(auth, trust_header), user_header=trust_header, groups_header=trust_groups_header
    )
    log_to_terminal(access=False)
    collect_garbage_less_often()
    with open_workspace(workspace, principal=LOCAL, **own) as opened:
        if not (opened.settings.state or with_server):
            raise UserError(ONE_SERVER)
        if not with_server:
            say(plain(f"Working on what servers leave to it (Ctrl-C ends it). Workspace: {opened.path}"))
            for line in check_guards(opened):
                say(plain(line))
        server = Server(opened, serving, most_runs=runs, shared=True)
        asyncio.run(_work(server, with_server=with_server))
        if not with_server:
            say("Ended. Unfinished runs are taken up by another worker, or by the next one.")
        if server.background.stuck:  # the interpreter would wait for that thread; its work is resumed later
            os._exit(0)


async def _work(server: Server, *, with_server: bool) -> None:
    import asyncio
    import signal
    import sys
    import threading

    from assay.serve.housekeeping import work_until

    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)

    def until_input_ends() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stopped.set)

    if with_server:
        loop.add_signal_handler(signal.SIGINT, lambda: None)  # Ctrl-C reaches the server too, which ends its workers
        threading.Thread(target=until_input_ends, daemon=True).start()
    await work_until(server, stopped)
