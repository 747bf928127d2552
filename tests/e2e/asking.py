"""A process that starts others and kills them: each asks a question in a process of its own. Starting costs little, since
everything is loaded before. Arguments: workspace, address of the model. For each line of input, seconds: one process, killed
after so long; said is whether it was, and its run."""

import asyncio
import os
import select
import signal
import sys
import warnings
from pathlib import Path

import httpx  # noqa: F401  what takes long to load is loaded before the clock starts
import lancedb  # noqa: F401

import assay.agent.loop
import assay.asking
import assay.index.lance
import assay.models.endpoint  # noqa: F401
from assay.events import Mode
from assay.testing.words import WordEmbedder
from assay.workspace import open_workspace

QUESTION = "Where is the paint of the lamp room ground, and who tends the beacon?"


async def ask(workspace: Path, address: str, said: int) -> None:
    with open_workspace(workspace, llm_base_url=address, llm_model="scripted", llm_api_key="asked") as opened:
        opened.embedder = WordEmbedder()
        async for run, event in opened.ask(QUESTION, mode=Mode.thorough):
            if len(run.events) == 1:
                os.write(said, f"{run.id}\n".encode())


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # lancedb warns of forks; here nothing of it has been used before one
    place, url = Path(sys.argv[1]), sys.argv[2]
    print("ready", flush=True)
    for line in sys.stdin:
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            asyncio.run(ask(place, url, writes))
            os._exit(0)
        os.close(writes)
        with os.fdopen(reads) as pipe:
            began = pipe.readline().strip()  # the run has a record: from here on there is something to carry on
            ended = os.pidfd_open(child)
            select.select([ended], [], [], float(line))
            os.kill(child, signal.SIGKILL)
            os.close(ended)
        _, status = os.waitpid(child, 0)
        print("killed" if os.WIFSIGNALED(status) else "finished", began, flush=True)
