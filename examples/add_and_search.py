"""Add a folder, then search it.

    python examples/add_and_search.py [FOLDER]

The workspace is $ASSAY_WORKSPACE, or your own data folder when that is not set.
"""

import asyncio
import sys
from pathlib import Path

from assay.workspace.facade import open_workspace

SAMPLES = Path(__file__).parent.parent / "samples" / "corpus"


async def main(folder: Path) -> None:
    with open_workspace(create=True) as workspace:
        report = await workspace.add([folder])
        print(f"{report.readable} documents, {report.passages} passages, {report.unreadable} files could not be read")
        for file in report.files:
            if file.status != "read":
                print(f"  {Path(file.path).name}: {file.status}. {file.why}")

        for hit in await workspace.search("who must be called when turbidity rises", k=3):
            words = " ".join(hit.passage.text.split())
            print(f"{hit.rank}. {hit.title}, characters {hit.passage.start} to {hit.passage.end}")
            print(f"   {words[:100]} …")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES))
