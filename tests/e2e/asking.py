"""A process that starts others, which kill themselves: each asks a question, or has a synthesis written, in a process of its
own. Starting costs little, since everything is loaded before. Arguments: workspace, address of the model, `ask` or
`synthesise`. For each line of input, a point, a number and a key: one process that shows the model this key and kills itself
with SIGKILL at the n-th passing of the point. The points: `event` (one was recorded), `reply` (a reply to a request begins to
arrive, and is not recorded). Printed is whether it was killed, and its run."""

import asyncio
import os
import signal
import sys
import warnings
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from sqlalchemy import event

from assay.core.events import Event, Mode
from assay.core.run import Run
from assay.evaluate.plain_text import WordEmbedder
from assay.index.lance.tables import load_lancedb
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import SynthesisRequest

QUESTION = "Where is the paint of the lamp room ground, and who tends the beacon?"


def hasty(workspace: Workspace) -> Workspace:
    """The workspace without waiting for the disk at each record: who is killed loses nothing by that, only a power cut does."""
    workspace.embedder = WordEmbedder()
    workspace.store.engine.dispose()
    event.listen(workspace.store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    return workspace


def begun(what: str, workspace: Workspace) -> AsyncIterator[tuple[Run, Event]]:
    if what == "ask":
        return workspace.ask(QUESTION, mode=Mode.thorough)
    documents = [entry.id for entry in sorted(workspace.documents.listing(), key=lambda entry: entry.title)]
    return workspace.syntheses.begin(documents, SynthesisRequest(questions=1, audiences=("plain",), reranker="none"))


def die_at_reply(number: int) -> None:
    """From here on, the process kills itself when the n-th reply begins to arrive."""
    handle = httpx.AsyncHTTPTransport.handle_async_request
    passed = 0

    async def handle_or_die(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        nonlocal passed
        response = await handle(self, request)
        passed += 1
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return response

    httpx.AsyncHTTPTransport.handle_async_request = handle_or_die


async def carry(what: str, workspace: Path, address: str, key: str, says: int, die_after_events: int) -> None:
    model = {"llm_base_url": address, "llm_model": "scripted", "llm_api_key": key, "llm_concurrency": 4}
    with hasty(open_workspace(workspace, **model)) as opened:
        events = 0
        async for run, _ in begun(what, opened):
            os.write(says, f"{run.id}\n".encode())
            events += 1
            if events == die_after_events:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    load_lancedb()
    warnings.simplefilter("ignore")  # lancedb warns of forks; here nothing of it has been used before one
    place, url, what = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    print("ready", flush=True)
    for line in sys.stdin:
        point, number, key = line.split()
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            if point == "reply":
                die_at_reply(int(number))
            asyncio.run(carry(what, place, url, key, writes, int(number) if point == "event" else 0))
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as said:
            seen = said.read().split()
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "finished", seen[0], flush=True)
