"""First paint of a long thread in Chromium.

    .venv/bin/python bench/thread.py [--turns 200] [--times 3] [--out FILE]

The thread is made without a model, over one document, by a server in this process. `painted` is the time from the start of the
navigation until the newest answers of the thread are drawn, `whole` the time of a request for 200 turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from playwright.sync_api import sync_playwright
from result_file import add_out, write_result

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / name) for name in ("", "e2e")]
from browser_session import desk  # noqa: E402  # pyright: ignore[reportMissingImports]

TEXT = "".join(f"Gate {n} of the canal was mended in {1900 + n}. " for n in range(90))
DRAWN = """() => document.querySelectorAll(".turn .turn-body > *").length && performance.now()"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--turns", type=int, default=200)
    options.add_argument("--times", type=int, default=3)
    add_out(options)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder) / "workspace", {"canal.txt": TEXT}) as at:
        thread = ""
        for n in range(given.turns):
            asked = {"question": f"When was gate {n % 90} mended?", "mode": "quick"}
            begun = at.api("/api/runs", json=asked | ({"thread": thread} if thread else {"talk": True}))
            thread = begun["thread"]
            while at.run(begun["run"])["state"] == "running":
                time.sleep(0.02)
        started = time.perf_counter()
        httpx.get(f"{at.url}/api/threads/{thread}", timeout=120).raise_for_status()
        whole = time.perf_counter() - started
        painted: list[float] = []
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            for _ in range(given.times):
                page = browser.new_context().new_page()
                page.goto(f"{at.url}/#/thread/{thread}", wait_until="commit")
                painted.append(page.wait_for_function(DRAWN, timeout=120_000).json_value() / 1000)
                page.close()
            browser.close()
    figures = {"turns": given.turns, "painted": round(statistics.median(painted), 2), "whole": round(whole, 2)}
    print(json.dumps(figures))
    write_result(given.out, figures)


if __name__ == "__main__":
    main()
