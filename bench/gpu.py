"""How fast is the bundled embedder on a GPU, where does the time go, and are its vectors those of the CPU?

    python bench/gpu.py [--passages 40000] [--vectors FILE.npz] [--out FILE]

In an environment with torch, on a machine with an NVIDIA GPU; of other packages only numpy and tokenizers are needed.
`--vectors`: texts and their vectors by the CPU, written where there is no GPU, compared where there is one.
`both`: passages a second from text to vectors, in lists of 512 as `assay add` gives them, and in one list; also with two
cores of the processor beside the GPU. Its parts alone: `words` is the tokenizer, `network` is the GPU.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from embedder import passages_of
from result_file import add_out, show, write_result

from assay.models.local import bert_torch, bundled

ROUNDS, LIST = 5, 512
COMPARED = 300


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--passages", type=int, default=40_000)
    options.add_argument("--vectors", type=Path)
    add_out(options)
    given = options.parse_args()
    embedder = bundled.BundledEmbedder()
    torch = bert_torch.torch_on_gpu()
    if torch is None:
        if given.vectors:
            some = passages_of(lambda random: random.randint(5, 500), COMPARED, 1)
            vectors = bundled.BundledEmbedder("f32").embed(some)
            np.savez(given.vectors, texts=np.array(some), vectors=vectors)
        print("torch finds no GPU.")
        return
    texts = texts_of(given.passages)
    rows = bundled.token_rows(texts, embedder.window)
    figures: dict[str, Any] = {"a second": {"passages": {}}, "beside the CPU": {}}
    second = figures["a second"]["passages"]
    second["both, one list"] = rate(lambda: embedder.embed_many(texts), len(texts))
    second |= by_lists(texts)
    with multiprocessing.get_context("spawn").Pool(1) as alone:
        on_two_cores = alone.apply(by_lists_on_two_cores, (given.passages,))
    second |= {f"{name}, two cores": each for name, each in on_two_cores.items()}
    network: dict[str, bert_torch.TorchBert] = {}
    for precision in ("float16", "bfloat16", "float32"):
        network[precision] = bert_torch.TorchBert(torch, bundled.gte_small_weights(), "cuda", precision)
        second[f"network, {precision}"] = rate(lambda precision=precision: network[precision].embed(rows), len(texts))
    if given.vectors and given.vectors.exists():
        stored = np.load(given.vectors)
        known, few = stored["vectors"], bundled.token_rows([str(each) for each in stored["texts"]], embedder.window)
        for precision, model in network.items():
            apart = model.embed(few)
            figures["beside the CPU"][precision] = {
                "largest difference": float(np.abs(apart - known).max()),
                "least cosine": float((apart * known).sum(1).min()),
            }
    figures["tokens"] = {"a passage": {"mean": statistics.mean(map(len, rows))}}
    show(figures)
    write_result(given.out, figures, {"torch": torch.__version__, "GPU": torch.cuda.get_device_name()})


def texts_of(passages: int) -> list[str]:
    texts = passages_of(length, 2000, 2)
    texts *= passages // len(texts)
    random.Random(3).shuffle(texts)
    return texts


def by_lists(texts: list[str]) -> dict[str, float]:
    embedder = bundled.BundledEmbedder()
    lists = [texts[at : at + LIST] for at in range(0, len(texts), LIST)]
    return {
        f"both, lists of {LIST}": rate(lambda: [embedder.embed_many(each) for each in lists], len(texts)),
        "words": rate(lambda: bundled.token_rows(texts, embedder.window), len(texts)),
    }


def by_lists_on_two_cores(passages: int) -> dict[str, float]:
    """In a process of its own, whose libraries begin with so many threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    return by_lists(texts_of(passages))


def length(random: random.Random) -> int:
    """Tokens of a passage: most are nearly full, some are the rest of a section."""
    return random.choice((random.randint(20, 200), random.randint(160, 220)))


def rate(work: Callable[[], object], passages: int) -> float:
    work()
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return passages / statistics.median(taken)


if __name__ == "__main__":
    main()
