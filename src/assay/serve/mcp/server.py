"""MCP over streamable HTTP at /mcp, and over stdio for an agent on this machine. The tools are in `mcp_tools.py`."""

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
from assay.serve.mcp import tools
from assay.serve.mcp.tools import ToolAccess
from assay.serve.state import Person, Server
from assay.workspace.facade import Workspace
from assay.workspace.types import AskOptions

T = TypeVar("T")

PATH = "/mcp"


def mount(app: FastAPI, server: Server) -> None:
    """Serve MCP at /mcp: a request is one exchange, whoever it is from, and nothing is kept between two of them."""

    def person(ctx: Context[Any, Any]) -> Person:
        request = ctx.request_context.request
        assert request is not None, "over HTTP there is a request to every call"
        return request.state.person  # as the guard has found out for this very request

    def seen(ctx: Context[Any, Any]) -> Workspace:
        return server.for_principal(person(ctx).principal)

    @asynccontextmanager
    async def ask(ctx: Context[Any, Any], question: str, how: AskOptions) -> AsyncIterator[AttachedRun]:
        asked = await begin(server, person(ctx), seen(ctx), question, how)
        try:
            yield asked
        finally:
            await asked.leave()

    made = _made(ToolAccess(seen, server.engine.run, ask))
    # The guard has looked at Host and Origin, and knows the names that this server goes by.
    trusting = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    made.streamable_http_app(streamable_http_path=PATH, stateless_http=True, transport_security=trusting)
    app.state.mcp = made.session_manager
    # Only POST: there is nothing to say to who has not asked, and a stream that is held open would hold up the closing.
    app.router.routes.append(Route(PATH, StreamableHTTPASGIApp(made.session_manager), methods=["POST"]))


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """While the application runs; once for each."""
    async with app.state.mcp.run():
        yield


async def over_stdio(workspace: Workspace) -> None:
    """Serve one agent through standard input and output, as the person at this machine, until it closes them."""

    @asynccontextmanager
    async def ask(_: Context[Any, Any], question: str, how: AskOptions) -> AsyncIterator[LocalQuestion]:
        yield LocalQuestion(workspace, question, how)

    await _made(ToolAccess(lambda _: workspace, _here, ask)).run_stdio_async()


async def _here(work: Coroutine[Any, Any, T]) -> T:
    return await work


@dataclass
class LocalQuestion:
    """A question where there is no server: it is carried on as long as the agent is there, and can be resumed."""

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


def _made(reach: ToolAccess) -> MCPServer[Any]:
    """The server; where the process logs to is left as it is, though the library would have its own way."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    made = tools.build_server(reach)
    root.handlers[:] = handlers
    root.setLevel(level)
    return made
