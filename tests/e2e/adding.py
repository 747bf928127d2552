"""A process that adds a folder and says what is done; the tests kill it. Arguments: workspace, folder."""

import asyncio
import sys
from pathlib import Path

import lancedb  # noqa: F401  what takes long to load is loaded before the clock starts

from assay.ingest.fetch import sources
from assay.ingest.parsed import Parsed, Unreadable
from assay.intake import Progress
from assay.testing.words import WordEmbedder
from assay.workspace import open_workspace


class Plain:
    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        return Parsed(text=Path(str(data)).read_text(), kind="text", title=name)


def say(progress: Progress) -> None:
    if progress.report and progress.report.status == "read":
        print(f"done {progress.report.path}", flush=True)


if __name__ == "__main__":
    workspace, folder = sys.argv[1:]
    with open_workspace(workspace, create=True) as opened:
        opened.embedder = WordEmbedder()
        print("go", flush=True)
        asyncio.run(opened.add_sources(sources([Path(folder)]), say=say, reader=Plain()))
    print("finished", flush=True)
