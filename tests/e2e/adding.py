"""A process that adds a folder and prints what is done; the tests check what it leaves. Arguments: workspace, folder, and at
which progress report it kills itself with SIGKILL: 0 never."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from assay.evaluate.plain_text import WordEmbedder
from assay.index.filters import EVERYTHING
from assay.index.lance.tables import load_lancedb
from assay.ingest.parsed import Parsed, Unreadable
from assay.ingest.pipeline import Progress
from assay.ingest.sources import find_sources
from assay.store import documents
from assay.workspace.facade import Workspace, open_workspace


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        return Parsed(text=Path(str(data)).read_text(), kind="text", title=name)


def say(progress: Progress) -> None:
    if progress.report and progress.report.status == "read":
        print(f"done {progress.report.path}", flush=True)


def write_notes(folder: Path, batch: int, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for n in range(count):
        sentences = " ".join(
            f"Pump {batch}-{n} has part number {batch * 1000 + n * 10 + k} in drawer {k}." for k in range(30)
        )
        (folder / f"note-{batch}-{n}.txt").write_text(sentences)


def check(opened: Workspace, acknowledged: set[str]) -> None:
    """Everything that was said to be done is there, once."""
    opened.embedder = WordEmbedder()
    ready = documents.listing(opened.store, opened.scope(["default"]))
    assert acknowledged <= {entry.uri for entry in ready}
    assert len({entry.uri for entry in ready}) == len(ready)

    async def passages() -> dict[str, int]:
        if not ready:
            return {}
        index = await opened.context.index(opened.scope().named("default"))
        hits = await index.dense((await opened.embedder.queries(["pump"]))[0], 100_000, EVERYTHING)
        assert len({hit.passage.id for hit in hits}) == len(hits) == await index.count(EVERYTHING)
        counts: dict[str, int] = {}
        for hit in hits:
            counts[hit.passage.doc_id] = counts.get(hit.passage.doc_id, 0) + 1
        return counts

    found = asyncio.run(passages())
    for entry in ready:
        assert found.get(entry.id) == entry.passages, entry.uri


if __name__ == "__main__":
    load_lancedb()
    workspace, folder, last = *sys.argv[1:3], int(sys.argv[3])
    reports = 0

    def say_or_die(progress: Progress) -> None:
        global reports
        say(progress)
        reports += 1
        if reports == last:
            os.kill(os.getpid(), signal.SIGKILL)

    with open_workspace(workspace, create=True) as opened:
        opened.embedder = WordEmbedder()
        asyncio.run(opened.documents.add_sources(find_sources([Path(folder)]), say=say_or_die, reader=Plain()))
    print(f"finished {reports}", flush=True)
