"""`assay mcp`: the documents as tools for a local agent, over standard input and output."""

from __future__ import annotations

from assay.cli.options import Workspace


def mcp(workspace: Workspace = None) -> None:
    """Let an agent search, ask and read your documents: MCP over standard input and output.

    An agent starts it; it ends when the agent does. Nothing but the protocol goes to standard output.
    """
    import asyncio
    import signal

    from assay.cli.acting import open_workspace
    from assay.serve.mcp_server import over_stdio
    from assay.serve.process import log_to_terminal

    log_to_terminal(access=False)
    # Exit at once: a thread blocks on the next line and cannot be cancelled. Records are on disk, and runs can be
    # resumed.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with open_workspace(workspace) as opened:
        asyncio.run(over_stdio(opened))
