"""MCP over streamable HTTP at /mcp, and over stdio for a local agent. The tools are in `mcp_tools.py`."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import FastAPI
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route

from assay.serve.attached_run import AttachedRun, RunReply, begin, line_of, reply_of
from assay.serve.mcp_tools import DocumentTools
from assay.serve.state import Server
from assay.workspace.facade import Workspace
from assay.workspace.types import AskOptions

T = TypeVar("T")

PATH = "/mcp"


def mount(app: FastAPI, server: Server) -> None:
    """Serve MCP at /mcp. Stateless: each request is one exchange, and nothing is kept between requests."""

    def seen(ctx: Context[Any, Any]) -> Workspace:
        request = ctx.request_context.request
        assert request is not None, "over HTTP there is a request to every call"
        return server.workspace.for_principal(request.state.person.principal)  # set by the guard for this request

    @asynccontextmanager
    async def ask(ctx: Context[Any, Any], question: str, how: AskOptions) -> AsyncIterator[AttachedRun]:
        asked = await begin(server, seen(ctx), question, how)
        try:
            yield asked
        finally:
            await asked.leave()

    made = _made(DocumentTools(seen, server.background.run, ask))
    # The guard has already checked Host and Origin, and knows this server's names.
    trusting = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    made.streamable_http_app(streamable_http_path=PATH, stateless_http=True, transport_security=trusting)
    app.state.mcp = made.session_manager
    # POST only: there are no server-initiated messages, and an open stream would delay the shutdown.
    app.router.routes.append(Route(PATH, StreamableHTTPASGIApp(made.session_manager), methods=["POST"]))


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """Run the MCP session manager during the application's lifetime; once per application."""
    async with app.state.mcp.run():
        yield


async def over_stdio(workspace: Workspace) -> None:
    """Serve one agent over standard input and output, as the person that the workspace was opened for, until it closes them."""

    @asynccontextmanager
    async def ask(_: Context[Any, Any], question: str, how: AskOptions) -> AsyncIterator[LocalQuestion]:
        yield LocalQuestion(workspace, question, how)

    await _made(DocumentTools(lambda _: workspace, _here, ask)).run_stdio_async()


async def _here(work: Coroutine[Any, Any, T]) -> T:
    return await work


@dataclass
class LocalQuestion:
    """A question without a server: it runs while the agent is connected, and can be resumed."""

    workspace: Workspace
    question: str
    how: AskOptions
    run: str = ""

    async def lines(self) -> AsyncGenerator[str]:
        async for run, event in self.workspace.ask(self.question, self.how):
            self.run = run.id
            if line := line_of(event):
                yield line

    async def reply(self) -> RunReply:
        return reply_of(self.workspace, self.run)


def _made(tools: DocumentTools) -> MCPServer[Any]:
    """Build the server; the process's logging configuration is kept, although the library would replace it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    made = tools.server()
    root.handlers[:] = handlers
    root.setLevel(level)
    return made
