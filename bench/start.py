"""How long it takes until something happens: `assay --help`, a cold `assay search` to its first hit, `assay ask`, and
`assay serve` until its page answers.

    .venv/bin/python bench/start.py [--rounds 5] [--out FILE]

Beside each: the limit, which is Python starting and doing nothing, and the heavy imports alone; other tools where they have a
comparable command, and the imports that their search begins with (`make bench`). Medians, in one run.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from result_file import add_out, write_result

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "samples" / "corpus"
ASSAY = (sys.executable, "-m", "assay.cli.main")
PEERS: dict[str, tuple[str, ...]] = {
    "llm --help": (".llm", "llm", "--help"),
    "paper-qa: pqa --help": (".paper-qa", "pqa", "--help"),
    "haiku.rag: haiku-rag --help": (".haiku-rag", "haiku-rag", "--help"),
    "paper-qa: import": (".paper-qa", "python", "-c", "import paperqa"),
    "llama-index: import": (".peers", "python", "-c", "from llama_index.core import VectorStoreIndex"),
    "haystack: import": (".peers", "python", "-c", "from haystack.components.retrievers import InMemoryBM25Retriever"),
    "haiku.rag: import": (".haiku-rag", "python", "-c", "from haiku.rag.client import HaikuRAG"),
}


def peers(missing: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """The commands of other tools that are installed."""
    found = {name: (str(ROOT / place / "bin" / program), *rest) for name, (place, program, *rest) in PEERS.items()}
    missing |= {
        name: "not installed: run `make bench` first" for name, each in found.items() if not Path(each[0]).exists()
    }
    return {name: each for name, each in found.items() if name not in missing}


def served(environment: dict[str, str]) -> tuple[float, float]:
    """Seconds until a server has sent its page, and those of the processor."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [*ASSAY, "serve", "--no-token", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        try:
            address = next(
                found[0] for line in server.stdout or () if (found := re.search(r"http://127\.0\.0\.1:\S+", line))
            )
            with urllib.request.urlopen(address) as page:
                page.read()
            wall = time.perf_counter() - began
        finally:
            server.terminate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor seconds of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    add_out(parser)
    given = parser.parse_args()
    missing: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "ASSAY_WORKSPACE": f"{place}/workspace"}
        subprocess.run([*ASSAY, "add", str(CORPUS), "-q"], check=True, capture_output=True, env=environment)
        commands = {
            "python, doing nothing": (sys.executable, "-c", "pass"),
            "assay --help": (*ASSAY, "--help"),
            "the heavy imports alone": (sys.executable, "-c", "import lancedb, openvino, sqlalchemy, tokenizers"),
            "assay search, cold": (*ASSAY, "search", "alarm at Pellam", "-k", "1"),
            "assay ask, cold": (*ASSAY, "ask", "How long is raw telemetry kept?", "-q"),
            **peers(missing),
        }
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in [*commands, "assay serve, to its page"]}
        for _ in range(given.rounds):  # interleaved, so that a busy moment hits all alike
            for name, command in commands.items():
                try:
                    runs[name].append(timed(command, environment))
                except subprocess.CalledProcessError as error:
                    if name in PEERS:
                        missing[name] = (error.stderr.decode().strip().splitlines() or [f"exit {error.returncode}"])[
                            -1
                        ][:200]
                    else:
                        raise
            runs["assay serve, to its page"].append(served(environment))
    figures = {
        name: {"wall s": statistics.median(w for w, _ in each), "cpu s": statistics.median(c for _, c in each)}
        for name, each in runs.items()
        if each
    }
    print(f"{'':<28}{'wall s':>10}{'cpu s':>10}")
    for name, each in figures.items():
        print(f"{name:<28}{each['wall s']:>10.2f}{each['cpu s']:>10.2f}")
    write_result(given.out, figures, missing=missing)


if __name__ == "__main__":
    main()
