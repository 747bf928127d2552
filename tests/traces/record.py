"""Record the runs in this folder: a real model at the endpoint that the environment names, over the sample corpus."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from assay.core.events import Mode
from assay.governance import replay
from assay.workspace.facade import open_workspace

HERE = Path(__file__).parent
CORPUS = HERE.parents[1] / "samples" / "corpus"
QUESTIONS = {
    "single-hop": "How much water can Brackwell treat in a day?",
    "multi-hop": "What model is the sensor that raised the first alarm in the Pellam incident?",
    "unanswerable": "Which company built the Coldharrow dam?",
}


async def record(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, open_workspace(Path(folder) / "w", create=True) as workspace:
        await workspace.add([CORPUS])
        for name in names:
            begun = time.monotonic()
            steps = workspace.ask(QUESTIONS[name], mode=Mode.quick, today="2026-01-01")
            run = [run async for run, _ in steps][-1]
            (HERE / f"{name}.jsonl").write_text(replay.save(run, workspace.documents.get, CORPUS), encoding="utf-8")
            outcome = run.answer.outcome if run.answer else run.kinds[-1]
            usage = run.usage
            print(
                f"{name}: {outcome}, {usage.calls} calls, {usage.tokens_in} + {usage.tokens_out} tokens, "
                f"{time.monotonic() - begun:.0f} s"
            )


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1:] or list(QUESTIONS)))
