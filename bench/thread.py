"""First paint of a long thread in Chromium.

    .venv/bin/python bench/thread.py [--turns 200] [--times 3] [--cache FOLDER] [--out FILE]

The thread is made without a model, over one document, by a server in this process; with `--cache` it is kept, and used again.
`painted` is the time from the start of the navigation until the newest answers of the thread are drawn, `whole` the time of a
request for 200 turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

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
    options.add_argument("--cache", type=Path, metavar="FOLDER", help="keep the thread here, and use one that is here")
    add_out(options)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.cache or Path(temporary)
        found = (folder / "workspace").exists()
        with desk(folder / "workspace", None if found else {"canal.txt": TEXT}) as at:
            if not found:
                make_thread(at, given.turns)
            thread = at.api("/api/threads")["threads"][0]
            figures = {"turns": thread["turns"], **measured(at, thread["id"], given.times)}
    print(json.dumps(figures))
    write_result(given.out, figures)


def make_thread(at: Any, turns: int) -> None:
    thread = ""
    for n in range(turns):
        asked = {"question": f"When was gate {n % 90} mended?", "mode": "quick"}
        begun = at.api("/api/runs", json=asked | ({"thread": thread} if thread else {"talk": True}))
        thread = begun["thread"]
        while at.run(begun["run"])["state"] == "running":
            time.sleep(0.02)


def measured(at: Any, thread: str, times: int) -> dict[str, float]:
    started = time.perf_counter()
    httpx.get(f"{at.url}/api/threads/{thread}", timeout=120).raise_for_status()
    whole = time.perf_counter() - started
    painted: list[float] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for _ in range(times):
            page = browser.new_context().new_page()
            page.goto(f"{at.url}/#/thread/{thread}", wait_until="commit")
            painted.append(page.wait_for_function(DRAWN, timeout=120_000).json_value() / 1000)
            page.close()
        browser.close()
    return {"painted": round(statistics.median(painted), 2), "whole": round(whole, 2)}


if __name__ == "__main__":
    main()
