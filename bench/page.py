"""Whether the page stays smooth where there is much of something: tasks that hold Chromium up while one scrolls and types.

    .venv/bin/python bench/page.py [--documents 10000] [--turns 200] [--papers 60] [--times 3] [--cache FOLDER] [--out FILE]

`cpu` is what the longest task takes of the processor, in milliseconds, which a busy machine disturbs least; `longest` the time
until it has ended, as the browser reports it (`longtask`; 0: none took 50), and `tasks` how many there were. Medians. The
thread is made without a model and repeated, the synthesis by a scripted one, the documents are copies of one; with `--cache`
they are kept, and used again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ElementHandle, Page, sync_playwright
from result_file import add_out, show, write_result
from scripted import synthesis_model
from sqlalchemy import func, insert, select
from synthesis import document
from thread import TEXT, make_thread

from assay.store.schema import mentions, payloads, records, runs, turns

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / name) for name in ("", "e2e")]
import test_page_large as large  # noqa: E402  # pyright: ignore[reportMissingImports]
from browser_session import Model, desk  # noqa: E402  # pyright: ignore[reportMissingImports]

WATCH = """
window.held = [];
new PerformanceObserver((found) => window.held.push(...found.getEntries().map((each) => each.duration)))
  .observe({type: "longtask"});
"""
AT_THE_END = "() => window.scrollY + window.innerHeight >= document.documentElement.scrollHeight - 2"
REAL = 10  # turns of the thread that are asked; the others are copies
WORDS = "how tall is the gate of the canal that was mended in 1950 "


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--turns", type=int, default=200)
    options.add_argument("--papers", type=int, default=60)
    options.add_argument("--times", type=int, default=3)
    options.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="keep the workspaces here, and use those that are here"
    )
    add_out(options)
    given = options.parse_args()
    large.MANY, large.TALKS = given.documents, 1
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as play:
        folder = given.cache or Path(temporary)
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = (folder / "library").exists()
        with desk(folder / "library", None if found else {"canal.txt": TEXT}) as at:
            if not found:
                make_thread(at, REAL)
                repeat(at.workspace.store, given.turns)
                large.crowd(at.workspace.store)
            thread = at.api("/api/threads")["threads"][0]
            figures[f"{given.documents} documents"] = measured(browser, at.url, "#/documents", library, given.times)
            address = f"#/thread/{thread['id']}"
            figures[f"{thread['turns']} messages"] = measured(browser, at.url, address, talk, given.times)
        model = Model()
        model.says = synthesis_model()
        found = (folder / "papers").exists()
        papers = {f"report-{n}.txt": document(n) for n in range(given.papers)}
        with desk(folder / "papers", None if found else papers, model) as at:
            if not found:
                at.api("/api/synthesis", json={"bases": ["default"], "questions": 1})
            run = at.api("/api/runs", params={"kind": "synthesis"})["runs"][0]["id"]
            while at.run(run)["state"] == "running":
                time.sleep(0.5)
            figures[f"{given.papers} in a synthesis"] = measured(
                browser, at.url, f"#/synthesis/{run}", account, given.times
            )
            figures["a new synthesis"] = measured(browser, at.url, "#/synthesis", request, given.times)
        browser.close()
    show(figures)
    write_result(given.out, figures)


def repeat(store: Any, many: int) -> None:
    """Copies of the turns of the one thread there is, until it has this many. Nobody here asks whether their records verify."""
    with store.write() as connection:
        asked = list(connection.execute(select(turns).order_by(turns.c.n)).mappings())
        last = connection.scalar(select(func.max(records.c.n))) or 0
        for n in range(len(asked), many):
            turn = asked[n % len(asked)]
            name = f"{turn['run'][0]}{n:05}{turn['run'][6:]}"  # no other id begins so
            for table in (runs, records, payloads, mentions):
                own = table.c.id if table is runs else table.c.run
                rows = [dict(row) for row in connection.execute(select(table).where(own == turn["run"])).mappings()]
                for row in rows:
                    row["id" if table is runs else "run"] = name
                    if table is records:
                        row["n"] = last = last + 1
                connection.execute(insert(table), rows)
            connection.execute(insert(turns), dict(turn) | {"n": n + 1, "run": name})


def measured(
    browser: Browser, url: str, address: str, use: Callable[[Page], Mapping[str, Callable[[], None]]], times: int
) -> dict[str, dict[str, float]]:
    held: dict[str, list[list[float]]] = {}
    busy: dict[str, list[float]] = {}
    for _ in range(times):
        page = browser.new_page(viewport={"width": 1280, "height": 860})
        page.add_init_script(WATCH)
        page.goto(f"{url}/{address}")
        for name, work in use(page).items():
            page.wait_for_load_state("networkidle")
            page.evaluate("window.held = []")
            browser.start_tracing(page=page, categories=["toplevel"])
            work()
            page.wait_for_timeout(300)
            busy.setdefault(name, []).append(longest_task(browser.stop_tracing()))
            held.setdefault(name, []).append(page.evaluate("window.held"))
        page.close()
    return {
        name: {
            "cpu": statistics.median(busy[name]),
            "longest": statistics.median(max(each, default=0.0) for each in rounds),
            "tasks": statistics.median(len(each) for each in rounds),
        }
        for name, rounds in held.items()
    }


def longest_task(trace: bytes) -> float:
    """Processor milliseconds of the longest task on the thread that draws pages."""
    events = json.loads(trace)["traceEvents"]
    named = (each for each in events if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain")
    drawing = {(each["pid"], each["tid"]) for each in named}
    tasks = (each for each in events if each["name"].endswith("RunTask") and (each["pid"], each["tid"]) in drawing)
    return max((each.get("tdur", 0) / 1000 for each in tasks), default=0.0)


def scrolls(page: Page, most: int = 150) -> None:
    page.mouse.move(760, 400)
    for _ in range(most):
        page.mouse.wheel(0, 600)
        page.wait_for_timeout(16)
        if page.evaluate(AT_THE_END):
            page.wait_for_timeout(200)  # more may come
            if page.evaluate(AT_THE_END):
                return


def library(page: Page) -> Mapping[str, Callable[[], None]]:
    page.get_by_role("list", name="Documents").get_by_role("listitem").first.wait_for()
    search = page.get_by_label("Search documents").element_handle()
    return {"scrolling": lambda: scrolls(page), "typing": lambda: types(page, search, "report 17 on the quay")}


def talk(page: Page) -> Mapping[str, Callable[[], None]]:
    turns = page.get_by_role("article", name="Question and answer")
    turns.first.wait_for()
    earlier = page.get_by_role("button", name="Show earlier questions")
    while earlier.count():
        many = turns.count()
        earlier.click()
        turns.nth(many).wait_for(state="attached")
    page.evaluate("window.scrollTo(0, 0)")
    box = page.get_by_label("Your question").element_handle()
    return {"scrolling": lambda: scrolls(page, 1_000), "typing": lambda: types(page, box, WORDS)}


def account(page: Page) -> Mapping[str, Callable[[], None]]:
    page.get_by_role("region", name="The account").wait_for()
    return {"scrolling": lambda: scrolls(page, 600)}


def request(page: Page) -> Mapping[str, Callable[[], None]]:
    page.get_by_label("Focus").wait_for()
    page.get_by_text("Picked documents").click()
    focus = page.get_by_label("Focus").element_handle()
    return {"scrolling": lambda: scrolls(page), "typing": lambda: types(page, focus, WORDS)}


def types(page: Page, box: ElementHandle | None, words: str) -> None:
    """Into a box that was found before: to look for it takes a second where a page has 200 messages."""
    assert box is not None
    box.focus()
    page.keyboard.type(words, delay=15)


if __name__ == "__main__":
    main()
