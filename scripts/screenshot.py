"""Draw docs/images/page.png: the page with an answer over the sample documents. Needs chromium; run `make demo` first.

python scripts/screenshot.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "images" / "page.png"
QUESTION = "How long is raw telemetry kept?"


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium on this machine.")
    command = [sys.executable, "-m", "assay", "serve", "--workspace", str(ROOT / "demo-workspace"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
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
