"""A question from a client that waits for the answer: the run is started, streamed as progress lines, and stopped
when the client disconnects. Used by chat front ends and MCP clients; for the web page and the HTTP API a run
continues on its own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress
from dataclasses import dataclass

import anyio

from assay.answer import citations, render
from assay.core import events
from assay.core.codec import from_json
from assay.core.errors import AssayError
from assay.core.events import EACH, KINDS, Checked, Decided, Drafted, Event
from assay.core.events.describe import count_of, live_line
from assay.core.run import Run
from assay.core.types import Outcome
from assay.governance.reviewing import DRAFT, progress_line
from assay.serve import run_views
from assay.serve.run_registry import EventFrame
from assay.serve.run_views import CitationView
from assay.serve.state import Server
from assay.serve.stream import RETRYING
from assay.workspace.facade import Workspace
from assay.workspace.stored import WITHHELD_ANSWER, WITHHELD_REASON
from assay.workspace.types import AskOptions

SPOKEN = frozenset(  # event kinds that may be sent to a client
    "Rephrased Routed Planned Decided Gathered StepAnswered Judged Stopped Drafted Critiqued".split()
)
FAILED = "The question could not be answered now. Its record, run {run}, says why; `assay resume {run}` carries it on."
UNSAID = frozenset({DRAFT, WITHHELD_REASON})  # why an event is not shown is no progress
HELD = (
    "{progress} The answer waits for a reviewer: {reasons}. It is kept as run {run}, and can be read there once it is "
    "approved."
)
REJECTED = "The answer was rejected in review: {note}"
CLOSING = "The server is closing. The question is carried on as run {run} when it starts again."


@dataclass(frozen=True, slots=True)
class RunReply:
    """The result of a run: the answer as Markdown with numbered citations, or a clarifying question, or
    what a held answer waits for; `error` if there is none of these."""

    run: Run
    text: str = ""
    outcome: Outcome | None = None
    citations: tuple[CitationView, ...] = ()
    error: str = ""
    held: bool = False  # the answer waits for a reviewer; `text` says why


@dataclass
class AttachedRun:
    """A run in progress and the one client that waits for it."""

    server: Server
    workspace: Workspace
    run: str
    ended: bool = False

    async def lines(self) -> AsyncGenerator[str]:
        """Progress lines until the run ends; an empty line is a heartbeat. Closing the generator stops the run."""
        try:
            async for frame in self.server.follower.follow(self.workspace, self.run):
                if frame is None:
                    yield ""
                elif frame.kind == RETRYING:
                    yield json.loads(frame.body)["line"]
                elif frame.kind in SPOKEN and (line := await asyncio.to_thread(progress, frame)):
                    yield line
            self.ended = True
        finally:
            await self.leave()

    async def leave(self) -> None:
        """The client disconnected: stop the run if it has not ended. It can be resumed later."""
        if self.ended:
            return
        self.ended = True
        with anyio.CancelScope(shield=True), suppress(AssayError):
            await self.server.live.cancel(self.workspace, self.run)

    async def reply(self) -> RunReply:
        return await asyncio.to_thread(reply_of, self.workspace, self.run)


async def begin(server: Server, workspace: Workspace, question: str, how: AskOptions) -> AttachedRun:
    """Start a run if the user's limit allows it. A disconnect meanwhile takes effect once there is a run to stop."""
    with server.reserve_run(workspace.principal), anyio.CancelScope(shield=True):
        run = await server.live.begin(workspace, workspace.ask(question, how))
        return AttachedRun(server, workspace, run.id)
    raise AssertionError("a scope that nobody cancels swallows nothing")


def progress(frame: EventFrame) -> str:
    """The progress line of an event; of one that a reviewer sees first, how much was done."""
    body = json.loads(frame.body)
    if not body["event"]:
        return "" if body["line"] in UNSAID else body["line"]
    return line_of(from_json(KINDS[frame.kind], body["event"]))


def line_of(event: Event) -> str:
    """The progress line of an event. The text of a claim is omitted before delivery, since it may still fail its
    check."""
    match event:
        case Checked():
            return ""
        case Decided(seeks=(events.WHOLE,)):
            return "Looking for what is missing"
        case Decided(seeks=seeks) if seeks:
            return f"Looking for more about {count_of(len(seeks), 'claim')}"
        case Drafted(blocks=blocks):
            claims = sum(len(block.claims) for block in blocks)
            return f"Checking {count_of(claims, 'claim')}" if claims else ""
        case _:
            return live_line(event)


def reply_of(workspace: Workspace, run_id: str) -> RunReply:
    """The result of a run, with text from the documents that the user may read now. The reason for a failure stays
    in the record, since it may name endpoints."""
    run = workspace.questions.run(run_id)
    done = progress_line(run)
    run = workspace.questions.run_for_asker(run_id, run)
    if run.answer is not None:
        cited = citations.of_answer(run.answer, run.evidence, workspace.documents.get)
        shown = run_views.answer_view(run.answer, run.evidence, workspace.documents.get)
        return RunReply(
            run, without_question(render.as_markdown(run.answer, cited)), run.answer.outcome, shown.citations
        )
    if run.withheld is not None:
        return RunReply(run, error=WITHHELD_ANSWER)
    if run.waiting is not None:
        options = (f"- {each}" for each in run.waiting.options if each != EACH)  # cannot be chosen in a chat
        return RunReply(run, "\n".join([run.waiting.question, "", *options]))
    if run.held is not None:
        return RunReply(run, HELD.format(progress=done, reasons="; ".join(run.held.reasons), run=run_id), held=True)
    if run.rejected is not None:
        return RunReply(run, error=REJECTED.format(note=run.rejected.note))
    return RunReply(run, error=(FAILED if run.failed else CLOSING).format(run=run_id))


LIST = "\n\n**Sources**\n\n"  # unambiguous, since asterisks in documents are escaped
MARK = re.compile(r"\[(\d+)\]")  # unambiguous, since brackets are escaped too


def without_question(markdown: str) -> str:
    """The output of `render.as_markdown` below its heading."""
    return markdown.partition("\n")[2].strip("\n")


def strip_notes(text: str) -> str:
    """The text without the list of sources."""
    return text.partition(LIST)[0]


def citation_marks(text: str) -> Iterator[re.Match[str]]:
    """The citations in the text, `[3]` with its number as a group, in order, without those of the list of sources."""
    return MARK.finditer(strip_notes(text))
