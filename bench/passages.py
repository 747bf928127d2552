"""How long passages should be: size and overlap against what a search finds and what embedding takes.

    python bench/passages.py --data SET [SET …] [--sizes 200/40 400/0] [--timed 200] [--cache FOLDER] [--out FILE]

A SET is a folder in BEIR's layout, or one that holds several. Every size is split, embedded, indexed and searched as the
product does it, with the ranking of the product and with vectors alone. Then the first so many documents of the first set are
embedded in each size, and as pieces of 200 words, which is what other libraries are given in `bench/ingest.py`: the embedder is
the same, so the ratio is what splitting costs.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

from quality import cut
from ranking import by, embedded_text, measured, searched, sets, split
from result_file import add_out, write_result

from assay.evaluate.runner import load
from assay.index.fusion import Ranking
from assay.models.local.bundled import LEXICAL, BundledEmbedder

SIZES = ("200/40", "300/0", "300/40", "400/0", "400/60", "460/0")
OURS, DENSE = Ranking(lexical=LEXICAL), Ranking(lexical=0.0, feedback=0.0)


def size_and_overlap(words: str) -> tuple[int, int]:
    size, _, overlap = words.partition("/")
    return int(size), int(overlap or 0)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--sizes", nargs="+", default=SIZES, metavar="TOKENS/OVERLAP")
    parser.add_argument("--timed", type=int, default=200, help="documents that are embedded for the time")
    parser.add_argument("--cache", type=Path, help="where vectors are kept between runs")
    add_out(parser)
    options = parser.parse_args()
    embedder = BundledEmbedder()
    figures: dict[str, dict[str, dict[str, float]]] = {}
    folders = list(sets(options.data))
    for folder in folders:
        figures[folder.name] = {}
        print(f"\n{folder.name:18} {'passages':>8} {'nDCG@10':>8} {'R@5':>7} {'vectors alone':>16}")
        for words in options.sizes:
            size, overlap = size_and_overlap(words)
            cases, _ = await searched(folder, embedder, 0, options.cache, size, overlap)
            ours, dense = measured(cases, by(OURS)), measured(cases, by(DENSE))
            count = len(split(load(folder).documents, embedder, size, overlap))
            figures[folder.name][words] = {
                "passages": count, "ndcg10": ours.ndcg10, "recall5": ours.recall5,
                "ndcg10 of vectors": dense.ndcg10, "recall5 of vectors": dense.recall5,
            }  # fmt: skip
            print(
                f"{words:18} {count:8} {ours.ndcg10:8.4f} {ours.recall5:7.4f} {dense.ndcg10:8.4f} {dense.recall5:7.4f}",
                flush=True,
            )
    if options.timed:
        figures["time"] = timed(folders[0], options.timed, options.sizes, embedder)
    write_result(options.out, figures)


def timed(folder: Path, count: int, sizes: list[str], embedder: BundledEmbedder) -> dict[str, dict[str, float]]:
    """Pieces and seconds for each size, and times the pieces of 200 words."""
    documents = load(folder).documents[:count]
    ways = {"200 words": cut({each.id: f"{each.title}\n{each.text}" for each in documents}).texts}
    for words in sizes:
        ways[words] = [embedded_text(*each) for each in split(documents, embedder, *size_and_overlap(words))]
    embedder.embed(["warm up"] * 8)
    found: dict[str, dict[str, float]] = {}
    print(f"\n{count} documents of {folder.name}")
    for name, texts in ways.items():
        began = time.perf_counter()
        embedder.embed(texts)
        spent = time.perf_counter() - began
        found[name] = {
            "pieces": len(texts),
            "seconds": spent,
            "times": spent / next(iter(found.values()), {"seconds": spent})["seconds"],
        }
        print(f"{name:18} {len(texts):8} {spent:8.1f} s {found[name]['times']:6.2f}", flush=True)
    return found


if __name__ == "__main__":
    asyncio.run(main())
