"""The same files ingested by this process and on Ray: seconds, passages a second, peak memory of the process that writes.

    .venv/bin/python bench/scale.py [--documents 60] [--workers 1 2] [--out FILE]

The sample corpus and invented notes are added with the bundled embedder, each case in a process of its own. Models are compiled
before, and loaded while files are added. Ray's workers are all on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from result_file import add_out, show, versions_of, write_result

from assay.ingest.ray_workers import ON_LOOPBACK
from assay.ingest.sources import find_sources
from assay.models.local.bundled import BundledEmbedder
from assay.workspace.facade import open_workspace

SAMPLES = Path(__file__).parent.parent / "samples" / "corpus"
WORDS = 600  # of an invented note
ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def write_documents(folder: Path, count: int) -> None:
    samples = sorted(SAMPLES.iterdir())[:count]
    for file in samples:
        shutil.copy(file, folder)
    chance = random.Random(11)
    syllables = [a + b for a in "bcdfglmnprst" for b in ("a", "e", "i", "o", "u", "ar", "en", "is")]
    vocabulary = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(3000)]
    for number in range(count - len(samples)):
        sentences = [" ".join(chance.choices(vocabulary, k=12)).capitalize() + "." for _ in range(WORDS // 12)]
        (folder / f"note-{number:03}.txt").write_text(" ".join(sentences))


@contextmanager
def started(workers: int) -> Iterator[None]:
    import ray

    ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


async def measure(folder: Path, workers: int) -> dict[str, float]:
    """One case: `workers` of Ray, or this process if there are none."""
    engine, began = "ray" if workers else "local", time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as place,
        started(workers) if workers else nullcontext(),
        open_workspace(Path(place) / "workspace", create=True, ingest_engine=engine) as opened,
    ):
        start = time.perf_counter() - began
        report = await opened.documents.add_sources(find_sources([folder]))
    return {
        "documents": report.readable,
        "passages": report.passages,
        "start seconds": start,
        "add seconds": report.seconds,
        "passages a second": report.passages / report.seconds,
        "peak megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_a_process(folder: Path, workers: int, environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, "--case", str(workers), "--folder", str(folder)]
    ran = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ran.stdout.splitlines()[-1])


def compile_models() -> None:
    """With all threads and with one, so that no case does."""
    command = [sys.executable, __file__, "--compile"]
    for environment in ({}, ONE_THREAD):
        subprocess.run(command, env={**os.environ, **environment}, check=True)


def cases(workers: list[int]) -> dict[str, tuple[int, dict[str, str]]]:
    alone = {"this process, one thread": (0, ONE_THREAD), "this process, all threads": (0, {})}
    return alone | {f"Ray, {count} worker{'s' * (count > 1)}": (count, {}) for count in workers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compile", action="store_true", help=argparse.SUPPRESS)
    add_out(parser)
    given = parser.parse_args()
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", ON_LOOPBACK: "0"}
    if given.compile:
        BundledEmbedder().runner("mean")
        return
    if given.case is not None:
        print(json.dumps(asyncio.run(measure(given.folder, given.case))))
        return
    before = os.getloadavg()[0]
    compile_models()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        write_documents(Path(place), given.documents)
        for name, (workers, environment) in cases(given.workers).items():
            figures[name] = in_a_process(Path(place), workers, environment)
    show(figures)
    note = f"Load of the machine before the first case: {before:.1f}."
    write_result(given.out, figures, versions_of(("ray",)), note=note)


if __name__ == "__main__":
    main()
