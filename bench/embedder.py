"""How fast is the bundled embedder, beside others with the same model, on the same texts, in the same run?

    python bench/embedder.py                                   what is not installed is said to be missing
    python bench/embedder.py --reference FOLDER --rounds 7     with sentence-transformers, from an environment that has it

FOLDER holds gte-small as sentence-transformers saves it; `bench/reference_model.py FOLDER` writes it there. To make such an
environment without touching this one:

    python -m venv peers && peers/bin/pip install -e . torch sentence-transformers

Rounds are interleaved and ratios are taken within a round, so that a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from result_file import add_out, write_result

from assay.models.local import bert_graph, bundled
from assay.models.local.bundled import MOST_TOKENS, BundledEmbedder, gte_small_weights
from assay.models.local.openvino_runner import cores, load_openvino, pad, plan_batches

Embed = Callable[[list[str]], np.ndarray]
OURS, PEER = "assay", "sentence-transformers"
LONGEST = 256  # tokens of a text here


@dataclass
class System:
    """One way to embed, and what was measured: passages a second by round, processor seconds a passage."""

    name: str
    embed: Embed
    rates: dict[str, list[float]] = field(default_factory=dict)
    work: dict[str, list[float]] = field(default_factory=dict)
    vectors: dict[str, np.ndarray] = field(default_factory=dict)


def prose() -> list[str]:
    """English sentences that every Python brings along: its own language reference."""
    from pydoc_data.topics import topics

    text = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
    return [f"{sentence.strip()}." for sentence in text.split(". ") if len(sentence) > 20]


def passages_of(size: Callable[[random.Random], int], count: int, seed: int) -> list[str]:
    """Runs of real sentences, each cut to exactly the tokens asked for (the two marks included)."""
    dice = random.Random(seed)
    sentences = prose()
    tokenizer = bundled.tokenizer()
    made = []
    for _ in range(count):
        wanted = max(1, size(dice) - 2)
        start = dice.randrange(len(sentences) - 60)
        text = " ".join(sentences[start : start + 60])
        encoding = tokenizer.encode(text, add_special_tokens=False)
        made.append(text[: encoding.offsets[min(wanted, len(encoding)) - 1][1]])
    return made


def ours(precision: str | None) -> Embed:
    embedder = BundledEmbedder(precision)
    return lambda texts: embedder.embed(texts)


def by_batches(texts: list[str], size: int, run: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """Sorted by length, `size` texts at a time: what a careful user of another run time would write."""
    rows = bundled.token_rows(texts, LONGEST - 2)
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]), reverse=True)
    vectors = np.zeros((len(rows), bert_graph.DIM), np.float32)
    for start in range(0, len(order), size):
        places = order[start : start + size]
        vectors[places] = run(*pad([rows[place] for place in places], step=1))
    return vectors


def openvino_graph(size: int) -> Embed:
    """Our float graph, one batch at a time with openvino's own settings."""
    graph = bert_graph.build_graph(gte_small_weights(), "mean", MOST_TOKENS)
    compiled = load_openvino().Core().compile_model(graph, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
    return lambda texts: by_batches(texts, size, lambda ids, mask: compiled([ids, mask])[0])


def sentence_transformers(folder: Path, size: int, half: bool) -> Embed:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    model = SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = LONGEST
    centre = gte_small_weights()["centre"]
    if half:
        model = model.bfloat16()

    def embed(texts: list[str]) -> np.ndarray:
        found = model.encode(texts, batch_size=size, convert_to_tensor=True, normalize_embeddings=True).float().numpy()
        found = found - centre
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    return embed


def systems(arguments: argparse.Namespace) -> tuple[list[System], dict[str, str]]:
    """Those that can run here, and why the others cannot."""
    size, folder = arguments.batch, arguments.reference
    wanted: dict[str, Callable[[], Embed]] = {
        OURS: lambda: ours(None),
        f"{OURS}, f32": lambda: ours("f32"),
        "openvino, our graph, one stream": lambda: openvino_graph(size),
    }
    missing: dict[str, str] = {}
    if folder is None:
        missing[PEER] = "no --reference folder"
    else:
        wanted[PEER] = lambda: sentence_transformers(folder, size, half=False)
        wanted[f"{PEER}, bf16"] = lambda: sentence_transformers(folder, size, half=True)
    ready: list[System] = []
    for name, make in wanted.items():
        if arguments.only and not any(part in name for part in arguments.only):
            continue
        try:
            ready.append(System(name, make()))
        except ImportError as error:
            missing[name] = f"{error.name} is not installed"
    return ready, missing


def measure(ready: Sequence[System], sets: dict[str, list[str]], rounds: int) -> None:
    for texts in sets.values():
        for system in ready:
            system.embed(texts[:16])  # shapes and kernels are prepared before the clock runs
    for turn in range(rounds):
        for kind, texts in sets.items():
            for system in ready[turn % len(ready) :] + ready[: turn % len(ready)]:  # type: ignore[operator]
                began, worked = time.perf_counter(), time.process_time()
                vectors = system.embed(texts)
                system.rates.setdefault(kind, []).append(len(texts) / (time.perf_counter() - began))
                system.work.setdefault(kind, []).append((time.process_time() - worked) / len(texts))
                system.vectors[kind] = vectors


def report(ready: Sequence[System], kinds: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """A table a kind of text, a row a system. The reference for cosine and ratio is sentence-transformers where it ran."""
    base = next((system for system in ready if system.name == PEER), ready[-1])
    tables: dict[str, dict[str, dict[str, float]]] = {}
    for kind in kinds:
        print(f"\n{kind}; ratio and cosine against {base.name}")
        print(f"{'':36}{'best/s':>8}{'median/s':>10}{'ratio':>8}{'cpu ms':>8}{'cosine':>10}{'lowest':>10}")
        for system in ready:
            ratios = [mine / theirs for mine, theirs in zip(system.rates[kind], base.rates[kind], strict=True)]
            cosines = (system.vectors[kind] * base.vectors[kind]).sum(axis=1)
            row = {
                "best": round(max(system.rates[kind]), 1),
                "median": round(statistics.median(system.rates[kind]), 1),
                "ratio": round(statistics.median(ratios), 2),
                "cpu_ms": round(1000 * min(system.work[kind]), 1),
                "cosine": round(float(cosines.mean()), 5),
                "lowest_cosine": round(float(cosines.min()), 5),
            }
            tables.setdefault(kind, {})[system.name] = row
            print(
                f"{system.name:36}{row['best']:>8}{row['median']:>10}{row['ratio']:>8}"
                f"{row['cpu_ms']:>8}{row['cosine']:>10}{row['lowest_cosine']:>10}"
            )
    return tables


def profile(texts: list[str]) -> dict[str, float]:
    """Where the bundled embedder's seconds go, and how much of what the network reads is padding."""
    began = time.perf_counter()
    rows = bundled.token_rows(texts, LONGEST - 2)
    tokenised = time.perf_counter()
    planned = list(plan_batches([len(row) for row in rows], cores()))
    fed = [pad([rows[place] for place in places]) for places in planned]
    laid_out = time.perf_counter()
    runner = BundledEmbedder().runner("mean")
    list(runner.map(fed))
    ended = time.perf_counter()
    whole = ended - began
    return {
        "tokenising": round((tokenised - began) / whole, 4),
        "laying out": round((laid_out - tokenised) / whole, 4),
        "network, pooling in it": round((ended - laid_out) / whole, 4),
        "padding among tokens": round(1 - sum(map(len, rows)) / sum(ids.size for ids, _ in fed), 4),
    }


COLD = """
import time; began, worked = time.perf_counter(), time.process_time()
import numpy; numpy_in, numpy_worked = time.perf_counter(), time.process_time()
from assay.models.local.bundled import BundledEmbedder
BundledEmbedder().embed(["how long does a cold start take"])
print(numpy_in - began, time.perf_counter() - numpy_in, numpy_worked - worked, time.process_time() - numpy_worked)
"""


def cold_start(times: int) -> dict[str, float]:
    """Seconds from a new process to the first query's vector: numpy, then ours, without and with a compiled model.

    The least of each, as the clock on the wall and the processor's own see it; the latter hardly minds a busy machine.
    """
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(times + 1):
            environment = os.environ | {"ASSAY_CACHE_DIR": str(Path(folder) / str(min(turn, 1)))}
            done = subprocess.run(
                [sys.executable, "-c", COLD], env=environment, capture_output=True, text=True, check=True
            )
            numbers = list(map(float, done.stdout.split()))
            kind = "first ever" if turn < 2 else "later"
            for name, number in zip(("numpy", kind, "numpy, cpu", f"{kind}, cpu"), numbers, strict=True):
                found.setdefault(name, []).append(number)
    return {name: round(min(values), 3) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reference", type=Path, help="the model as sentence-transformers saves it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--passages", type=int, default=96)
    parser.add_argument("--batch", type=int, default=32, help="texts a batch for the others; ours plans its own")
    parser.add_argument("--only", nargs="*", help="systems whose name holds one of these")
    add_out(parser)
    arguments = parser.parse_args()
    sets = {
        "250 tokens each": passages_of(lambda dice: 250, arguments.passages, seed=1),
        "mixed, 10 to 256 tokens": passages_of(lambda dice: dice.randint(10, 256), arguments.passages, seed=2),
    }
    ready, missing = systems(arguments)
    measure(ready, sets, arguments.rounds)
    tables = report(ready, list(sets))
    shares = {kind: profile(texts) for kind, texts in sets.items()}
    start = cold_start(5)
    print("\nshare of the time:", *(f"{kind}: {share}" for kind, share in shares.items()), sep="\n  ")
    print("cold start, seconds:", start)
    write_result(
        arguments.out, {**tables, "share of the time": shares, "cold start": {"seconds": start}}, missing=missing
    )


if __name__ == "__main__":
    main()
