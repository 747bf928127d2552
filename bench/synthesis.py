"""What a synthesis takes as documents grow: model calls, tokens, the largest prompt, memory, time; and what was forecast.

    .venv/bin/python bench/synthesis.py [--documents 10 20 40 80] [--pipeline synthesis] [--window 8192] [--out FILE]

A model that writes in the documents' own words answers over HTTP, in another process than the synthesis, so
that memory is the synthesis's own. Each size runs in a process of its own. `naive` is one prompt that holds all documents,
and one for each pair of them: what the same comparison takes without blocks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from result_file import add_out, write_result
from scripted import ChatServer, synthesis_model, text_of

from assay.core.synthesis import Pipeline
from assay.models.cost import estimate_tokens
from assay.workspace.facade import open_workspace
from assay.workspace.types import SynthesisRequest

PLACES = "Arden Birch Calder Dover Eskdale Fulmar Garrow Helm Inver Jarrow Kelder Lomond Marsh Norton Orwell".split()
METHODS = "settling filtering dosing stirring heating cooling pumping sifting drying mixing".split()
AIMS = "clarity yield safety speed cost".split()


def document(number: int) -> str:
    """A report of a page or two, like its neighbours and different from each of them."""
    place, method, aim = PLACES[number % 15], METHODS[number % 10], AIMS[number % 5]
    other = METHODS[(number + 3) % 10]
    abstract = (
        f"This report describes {method} at the works of {place}, which aims at {aim}. In {number + 11} trials it used "
        f"{number * 7 + 30} litres an hour. Compared with {other}, {method} needs {number % 9 + 2} steps fewer."
    )
    lines = [f"# Report {number}: {method} at {place}", "## Abstract", abstract]
    for part, name in enumerate(("Design", "Steps", "Results", "Limits"), 1):
        lines.append(f"## {name}")
        lines += [
            f"The {name.lower()} of {method} at {place} rest on valve {number}-{part}{step}, which opens after "
            f"{number + part * step + 3} minutes because the {aim} of the water depends on it. Operators log it every "
            f"{part + step} hours, and {other} is kept ready in case the valve sticks."
            for step in range(1, 5)
        ]
    return "\n\n".join(lines)


async def measured(folder: Path, url: str, pipeline: Pipeline) -> dict[str, Any]:
    """One synthesis of all that is in a folder; the figures of this process."""
    with open_workspace(
        folder / "workspace", create=True, llm_base_url=url, llm_model="scripted", llm_api_key="k", llm_concurrency=4
    ) as opened:
        await opened.add([folder / "documents"])
        documents = [entry.id for entry in opened.documents.listing()]
        wish = SynthesisRequest(pipeline)
        forecast = await opened.syntheses.plan(documents, wish)
        before, begun = _memory(), time.monotonic()
        run = None
        async for each, _ in opened.syntheses.begin(documents, wish):
            run = each
        assert run is not None
        taken = time.monotonic() - begun
        if run.answer is None:
            raise SystemExit(f"the synthesis did not end: {run.events[-1]}")
        account = opened.syntheses.account(run.id)
    return {
        "documents": len(documents),
        "questions": len(account.questions),
        "insights": len(account.insights),
        "relations": len(account.relations),
        "covered": sum(row.claims > 0 for row in account.ledger),
        "calls": run.usage.calls,
        "tokens": run.usage.tokens_in + run.usage.tokens_out,
        "forecast": forecast.calls,
        "before_mb": before,
        "peak_mb": _memory(),
        "seconds": round(taken, 1),
    }


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def sized(count: int, pipeline: Pipeline, window: int) -> dict[str, Any]:
    """The figures of one size, with those that only the endpoint sees."""
    with tempfile.TemporaryDirectory() as name, ChatServer(synthesis_model(), window=window) as server:
        folder = Path(name)
        (folder / "documents").mkdir()
        for number in range(count):
            (folder / "documents" / f"report-{number:03}.md").write_text(document(number), encoding="utf-8")
        child = [sys.executable, __file__, "--child", str(folder), "--url", server.url, "--pipeline", pipeline]
        done = subprocess.run(child, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout)
        figures = json.loads(done.stdout.splitlines()[-1])
        largest = max(estimate_tokens(text_of(request)) for request in server.requests)
        whole = sum(estimate_tokens(document(number)) for number in range(count))
        return figures | {
            "largest_prompt": largest,
            "window": window,
            "naive_prompt": whole,
            "naive_pairs": count * (count - 1) // 2,
        }


COLUMNS = {
    "documents": "docs",
    "questions": "questions",
    "insights": "insights",
    "relations": "relations",
    "covered": "covered",
    "calls": "calls",
    "calls_each": "calls/doc",
    "forecast": "forecast",
    "tokens": "tokens",
    "largest_prompt": "largest prompt",
    "peak_mb": "peak MB",
    "grown_mb": "grown MB",
    "seconds": "s",
    "naive_prompt": "naive prompt",
    "naive_pairs": "naive pairs",
}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        row | {"calls_each": f"{row['calls'] / row['documents']:.1f}", "grown_mb": row["peak_mb"] - row["before_mb"]}
        for row in rows
    ]
    lines = ["  ".join(f"{title:>{max(9, len(title))}}" for title in COLUMNS.values())]
    lines += ["  ".join(f"{row[name]:>{max(9, len(title))}}" for name, title in COLUMNS.items()) for row in shown]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10, 20, 40, 80])
    parser.add_argument("--pipeline", type=Pipeline, default=Pipeline.synthesis)
    parser.add_argument("--window", type=int, default=8192)
    add_out(parser)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(asyncio.run(measured(given.child, given.url, given.pipeline))))
        return
    rows = [sized(count, given.pipeline, given.window) for count in given.documents]
    print(table(rows))
    write_result(given.out, {f"{row['documents']} documents": row for row in rows})


if __name__ == "__main__":
    main()
