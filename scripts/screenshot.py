"""An answer over the sample documents, with a scripted model: draws docs/images/page.png and prints what the terminal shows.

python scripts/screenshot.py        needs chromium
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "tests"))
from doubles import ChatServer, Script, drops, enough, keeps, missing, no_calls, research, steps, verdicts, writes  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "page.png"
QUESTION = (
    "Which model is the sensor that raised the first alarm at Pellam, "
    "and how long do we keep the records of such a case?"
)
ALARM = "The first alarm was raised at 03:12 by the turbidity sensor TS-114."
MODEL = "TS-114 at the Pellam intake is an Orrin Clarus 3 with a range of 400 NTU."
KEPT = (
    "Records that belong to a case of the Regional Water Inspectorate are kept for two years "
    "after the inspectorate has closed the case."
)


FOUND = {"s1": "TS-114", "s2": "Orrin Clarus 3", "s3": "two years"}


def judged(text: str, schema: object) -> object:
    """Every step that the evidence shown answers, and whether these are all."""
    said = {}
    for step, value in FOUND.items():
        with suppress(AssertionError):
            said |= {step: value} if enough(**{step: value})(text, None) else {}
    return (enough(**said) if len(said) == len(FOUND) else missing("the rest", **said))(text, None)


def ruled(text: str, schema: object) -> object:
    """What a careful judge says: the words that carry each statement, and that nothing speaks of cleaning."""
    found = verdicts("supported", "supported", "unsupported", "supported")(text, None)
    for each in found["rulings"]:
        each["words"] = [words for words in (ALARM, MODEL, KEPT) if any(words in shown for shown in each["words"])]
    return found


def model() -> Script:
    return Script(
        route=research(),
        plan=steps(
            ("Which sensor raised the first alarm at Pellam?", "first alarm Pellam sensor"),
            ("Which model is {s1}?", "{s1} model"),
            ("How long are records of such an incident kept?", "records of a case of the inspectorate kept"),
        ),
        decide=no_calls(),
        weigh=keeps(ALARM, MODEL, KEPT, note="states it directly"),
        judge=judged,
        write=writes(
            f"The first alarm came from the turbidity sensor TS-114 at 03:12 [{{{ALARM}}}].",
            f"It is an Orrin Clarus 3 with a range of 400 NTU [{{{MODEL}}}].",
            "It was cleaned on the day before [{first alarm}].",
            f"The records are kept for two years after the inspectorate has closed the case [{{{KEPT}}}].",
        ),
        check=ruled,
        revise=drops(),
    )


def assay(*words: str) -> list[str]:
    return [sys.executable, "-m", "assay", *words]


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on this machine.")
    with tempfile.TemporaryDirectory() as folder, ChatServer(model().answer) as llm:
        settings = {"ASSAY_WORKSPACE": f"{folder}/assay", "ASSAY_LLM_BASE_URL": llm.url, "ASSAY_LLM_MODEL": "scripted"}
        environment = {**os.environ, **settings, "ASSAY_LLM_API_KEY": "none"}
        subprocess.run(assay("add", str(ROOT / "samples" / "corpus"), "--quiet"), env=environment, check=True)
        subprocess.run(assay("ask", QUESTION), env=environment, check=True)
        draw(chromium, environment)


def draw(chromium: str, environment: Mapping[str, str]) -> None:
    command = assay("serve", "--port", "0")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\S+", line)))
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1280, "height": 800})
                page.goto(address)
                page.get_by_role("textbox").first.fill(QUESTION)
                page.keyboard.press("Enter")
                expect(page.get_by_role("button", name="Copy")).to_be_visible(timeout=60_000)
                page.get_by_role("button", name="Evidence").first.click()
                page.wait_for_timeout(1_000)  # the panel slides in
                PICTURE.parent.mkdir(exist_ok=True)
                page.screenshot(path=PICTURE)
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
