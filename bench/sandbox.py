"""What the parsers' sandbox costs: adding a folder with two versions of the package, in turn.

    .venv/bin/python bench/sandbox.py BEFORE/src AFTER/src [--folder samples/corpus] [--rounds 5] [--copies 3]

Each round adds the folder to a new workspace with either version, in a process of its own. `copies` of each file are made, text
files with a line that makes them differ. Printed: medians of each and their ratio, for adding and for reading alone. Processor
time is less disturbed by what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from result_file import add_out, write_result

TEXT = {".txt", ".md", ".html", ".csv", ".eml"}
ADDS = """
import asyncio, json, resource, sys, tempfile, time
from pathlib import Path
from assay.ingest.sandbox.runner import Sandbox
from assay.ingest.sources import find_sources
from assay.workspace.facade import open_workspace

folder = Path(sys.argv[1])

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used)

def since(began):
    return [now - then for now, then in zip(spent(), began, strict=True)]

async def both():
    began = spent()
    with Sandbox() as sandbox:
        for file in sorted(folder.iterdir()):
            await sandbox.read(file)
    reading = since(began)
    with tempfile.TemporaryDirectory() as place, open_workspace(Path(place) / "w", create=True) as opened:
        began = spent()
        report = await opened.documents.add_sources(find_sources([folder]), "default")
        adding = since(began)
    return {"reading": reading, "adding": adding, "files": len(report.files), "passages": report.passages}

print(json.dumps(asyncio.run(both())))
"""


def copied(source: Path, folder: Path, copies: int) -> None:
    for file in sorted(source.iterdir()):
        for number in range(copies if file.suffix in TEXT else 1):
            place = folder / f"{number}-{file.name}"
            shutil.copyfile(file, place)
            if number:
                with place.open("a") as more:
                    more.write(f"\n\nCopy {number}.\n")


def measured(source: str, folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", ADDS, str(folder)],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--folder", type=Path, default=Path("samples/corpus"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--copies", type=int, default=3)
    add_out(parser)
    wanted = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory() as place:
        copied(wanted.folder, Path(place), wanted.copies)
        versions = [("before", wanted.before), ("after", wanted.after)]
        for _ in range(wanted.rounds):
            versions.reverse()  # whoever comes second in a round may find a busier machine
            for name, source in versions:
                found[name].append(measured(str(Path(source).resolve()), Path(place)))
    print(f"{found['after'][0]['files']} files, {found['after'][0]['passages']} passages, {wanted.rounds} rounds")
    figures: dict[str, dict[str, float]] = {}
    for what in ("reading", "adding"):
        for place, time in enumerate(("wall-clock time", "processor time")):
            before, after = (median(each[what][place] for each in found[name]) for name in ("before", "after"))
            print(f"{what}, {time}: {before:.2f} s before, {after:.2f} s after, ratio {after / before:.2f}")
            figures[f"{what}, {time}"] = {"before s": before, "after s": after, "ratio": after / before}
    write_result(wanted.out, figures)


if __name__ == "__main__":
    main()
