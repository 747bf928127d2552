"""Documents → searchable: passages per second, the share of time outside the embedder, peak memory.

    .venv/bin/python bench/ingest.py [--documents 200] [--data FOLDER…] [--out FILE]

Files are written to a temporary folder and added as a person would add them. The limit is the embedder alone on the very same
passages, in the same run; where sentence-transformers is importable, it embeds them too (`--reference` is its model's folder).

Then 400 files of one to four sentences, where everything but the embedder weighs most.

Last, beside other libraries, each in a process of its own, with vectors that cost nothing: what is compared is everything but
the embedder. The others get the texts, cut into pieces of 200 words, and their vectors. Assay gets the files: it also reads
them in a sandbox, cuts them, keeps the documents, and flushes all of it to disk. Embedding is added to each of the others as
what the same embedder takes alone for their pieces; for Assay it is the add of the same files, as it was measured. Memory is
that of the process itself; a process that reads a file for Assay takes 30 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from peer import PYTHON, SEARCHERS, PeerFailed, run_peer
from quality import cut
from result_file import add_out, show, write_result

from assay.ingest.sources import find_sources
from assay.models.local.bundled import BundledEmbedder
from assay.workspace.facade import open_workspace

TINY = 400  # files of one to four sentences


class Timed:
    """An embedder that remembers what it was given and how long it took."""

    def __init__(self, inner: BundledEmbedder) -> None:
        self.inner, self.seconds, self.texts = inner, 0.0, []
        self.name, self.dim, self.window, self.tokens = inner.name, inner.dim, inner.window, inner.tokens

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        began = time.perf_counter()
        vectors = await self.inner.passages(texts)
        self.seconds += time.perf_counter() - began
        self.texts.extend(texts)
        return vectors

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return await self.inner.queries(texts)


class Instant:
    """An embedder whose vectors cost nothing."""

    def __init__(self) -> None:
        inner = BundledEmbedder()
        self.name, self.dim, self.window, self.tokens = "instant", inner.dim, inner.window, inner.tokens

    async def passages(self, texts: Sequence[str]) -> np.ndarray:
        return random_vectors(len(texts), self.dim)

    async def queries(self, texts: Sequence[str]) -> np.ndarray:
        return random_vectors(len(texts), self.dim)


def random_vectors(count: int, dim: int) -> np.ndarray:
    vectors = np.random.default_rng(count).standard_normal((count, dim), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write_documents(folder: Path, count: int, data: Sequence[Path], most: int = 200) -> int:
    """Text files: real ones from collections in BEIR's layout, or invented ones of up to so many sentences."""
    texts = [
        f"{row.get('title', '')}\n\n{row['text']}"
        for each in data
        for row in map(json.loads, (each / "corpus.jsonl").read_text().splitlines())
    ][:count]
    chance = random.Random(7)
    syllables = [a + b for a in "bcdfglmnprst" for b in ("a", "e", "i", "o", "u", "ar", "en", "is")]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 3))) for _ in range(5000)]
    while len(texts) < count:
        sentences = [
            " ".join(chance.choices(words, k=chance.randint(6, 24))).capitalize() + "."
            for _ in range(chance.randint(max(1, most // 10), most))
        ]
        texts.append("\n\n".join(" ".join(sentences[at : at + 6]) for at in range(0, len(sentences), 6)))
    for number, text in enumerate(texts):
        (folder / f"document-{number:05}.txt").write_text(text)
    return sum(map(len, texts))


async def measure(count: int, data: Sequence[Path], reference: str, most: int = 200) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "documents"
        folder.mkdir()
        characters = write_documents(folder, count, data, most)
        timed = Timed(BundledEmbedder())
        await timed.inner.passages(["warm up"])
        with open_workspace(Path(place) / "workspace", create=True) as opened:
            opened.embedder = timed
            began = time.perf_counter()
            report = await opened.documents.add_sources(find_sources([folder]))
            total = time.perf_counter() - began
            began = time.perf_counter()
            await opened.documents.add_sources(find_sources([folder]))
            again = time.perf_counter() - began
        alone = seconds_alone(timed.texts)
    figures = {
        "documents": report.readable,
        "characters": characters,
        "passages": report.passages,
        "tokens": sum(timed.inner.count(timed.texts)),
        "seconds": total,
        "passages_per_second": report.passages / total,
        "embedder_alone_passages_per_second": len(timed.texts) / alone,
        "share_outside_the_embedder": 1 - timed.seconds / total,
        "slower_than_the_embedder_alone": total / alone,
        "second_add_seconds": again,
        "peak_memory_megabytes": peak_megabytes(),
    }
    return figures | against_torch(timed.texts, figures["passages_per_second"], reference)


def seconds_alone(texts: Sequence[str]) -> float:
    """What the embedder alone takes for these texts."""
    embedder = BundledEmbedder()
    began = time.perf_counter()
    for at in range(0, len(texts), 512):
        embedder.embed_many(texts[at : at + 512])
    return time.perf_counter() - began


def add_alone(folder: Path, place: Path) -> dict[str, float]:
    """Assay in this process, which has done nothing else, with vectors that cost nothing."""

    async def added() -> dict[str, float]:
        with open_workspace(place, create=True) as opened:
            opened.embedder = Instant()
            opened.embedder.tokens("warm up")
            before = peak_megabytes()
            began = time.perf_counter()
            report = await opened.documents.add_sources(find_sources([folder]))
            await opened.search("anything at all", 10)
            seconds = time.perf_counter() - began
            peak = peak_megabytes() - before
        return {"pieces": report.passages, "seconds": seconds, "peak MB": peak, "disk MB": disk_megabytes(place)}

    return asyncio.run(added())


def peak_megabytes() -> float:
    """Of this process alone: what getrusage says includes the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def disk_megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def beside_others(
    count: int, data: Sequence[Path], python: Path, ours: dict[str, float]
) -> tuple[dict[str, dict[str, float]], dict[str, str], dict[str, str]]:
    """A row for each library; then versions, and those that could not be run. `ours`: the figures of `measure`."""
    rows: dict[str, dict[str, float]] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        folder = place / "documents"
        folder.mkdir()
        write_documents(folder, count, data)
        pieces = cut({path.name: path.read_text() for path in sorted(folder.iterdir())})
        np.save(place / "vectors.npy", random_vectors(len(pieces.texts), BundledEmbedder().dim))
        np.save(place / "query.npy", random_vectors(1, BundledEmbedder().dim))
        task = {"texts": list(pieces.texts), "vectors": str(place / "vectors.npy"), "queries": ["anything at all"]}
        task |= {"query_vectors": str(place / "query.npy"), "depth": 10, "keep": True}
        for name in SEARCHERS:
            try:
                reply = run_peer("peer_search.py", name, task, python)
            except PeerFailed as failed:
                missing[name] = failed.reason
                continue
            versions |= reply["versions"]
            rows[name] = {"pieces": len(pieces.texts), "seconds": reply["seconds"]}
            rows[name] |= {"peak MB": reply["peak_mb"], "disk MB": reply["disk_mb"]}
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows["Assay"] = pool.apply(add_alone, (folder, place / "workspace"))
        tokens, embedding = sum(BundledEmbedder().count(pieces.texts)), seconds_alone(pieces.texts)
    for row in rows.values():
        row |= {"tokens": tokens, "with embedding, seconds": row["seconds"] + embedding}
    rows["Assay"] |= {"tokens": ours["tokens"], "with embedding, seconds": ours["seconds"]}
    return rows, versions, missing


def against_torch(texts: Sequence[str], ours: float, reference: str) -> dict[str, float]:
    try:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from sentence_transformers import SentenceTransformer  # pyright: ignore[reportMissingImports]
    except ImportError:
        return {}
    if not reference:
        return {}
    model = SentenceTransformer(reference, device="cpu")
    sample = list(texts)[:256]
    began = time.perf_counter()
    model.encode(sample, batch_size=32, normalize_embeddings=True)
    theirs = len(sample) / (time.perf_counter() - began)
    return {"sentence_transformers_passages_per_second": theirs, "times_as_fast": ours / theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--reference", default="", help="the float model's folder, for sentence-transformers")
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    given = parser.parse_args()
    figures = asyncio.run(measure(given.documents, given.data, given.reference))
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<44}{value:>12,.3f}" if isinstance(value, float) else f"{name:<44}{value:>12,}")
    if "times_as_fast" not in figures:
        print("sentence-transformers is not installed here, or no --reference was given: not compared", file=sys.stderr)
    tiny = asyncio.run(measure(TINY, (), "", most=4))
    print(f"\n{TINY} tiny files")
    show(tiny)
    rows, versions, missing = beside_others(given.documents, given.data, given.peers, figures)
    show(rows)
    ours = {f"{given.documents:,} documents": figures, f"{TINY} tiny files": tiny}
    names = dict.fromkeys(name for each in ours.values() for name in each)
    table = {name.replace("_", " "): {title: each.get(name) for title, each in ours.items()} for name in names}
    write_result(given.out, {"Assay and the limit": table, "beside others": rows}, versions, missing)


if __name__ == "__main__":
    main()
