"""How long it takes until something happens: `assay --help`, and a cold `assay search` to its first hit.

    .venv/bin/python bench/start.py [--rounds 5] [--out FILE]

Beside each: the limit, which is Python starting and doing nothing, and the heavy imports alone. Medians, in one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from result_file import add_out, write_result

CORPUS = Path(__file__).parent.parent / "samples" / "corpus"
ASSAY = (sys.executable, "-m", "assay.cli.main")


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
    with tempfile.TemporaryDirectory() as place:
        environment = {**os.environ, "ASSAY_WORKSPACE": f"{place}/workspace"}
        subprocess.run([*ASSAY, "add", str(CORPUS), "-q"], check=True, capture_output=True, env=environment)
        commands = {
            "python, doing nothing": (sys.executable, "-c", "pass"),
            "assay --help": (*ASSAY, "--help"),
            "the heavy imports alone": (sys.executable, "-c", "import lancedb, openvino, sqlalchemy, tokenizers"),
            "assay search, cold": (*ASSAY, "search", "alarm at Pellam", "-k", "1"),
            "assay ask, cold": (*ASSAY, "ask", "How much water can Brackwell treat in a day?", "-q"),
        }
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(given.rounds):  # interleaved, so that a busy moment hits all alike
            for name, command in commands.items():
                try:
                    runs[name].append(timed(command, environment))
                except subprocess.CalledProcessError as error:
                    if error.returncode != 3:
                        raise
    figures = {
        name: {"wall s": statistics.median(w for w, _ in each), "cpu s": statistics.median(c for _, c in each)}
        for name, each in runs.items()
        if each
    }
    print(f"{'':<28}{'wall s':>10}{'cpu s':>10}")
    for name, each in figures.items():
        print(f"{name:<28}{each['wall s']:>10.2f}{each['cpu s']:>10.2f}")
    write_result(given.out, figures)


if __name__ == "__main__":
    main()
