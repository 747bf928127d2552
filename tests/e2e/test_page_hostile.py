"""Documents and a model that mean no good: whatever they say is words, on every screen, in every export, in the terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
from browser_session import PHONE, Desk, Model, Reader, desk, until
from doubles import Script, enough, keeps, keys_in, missing, no_calls, research, steps, supported
from handbook import handbook
from playwright.sync_api import expect

from assay.workspace.facade import open_workspace

Reads = Callable[..., Reader]
OWN = "window.__owned = 1"
LONG = "Llanfair" * 400
TAGS = (
    f"<script>{OWN}</script><img src=x onerror='{OWN}'><svg onload='{OWN}'></svg><style>body{{display:none}}</style>"
    f'<a href="javascript:{OWN}">a</a><iframe srcdoc="<script>parent.{OWN}</script>"></iframe>'
)
LINKS = f"[press](javascript:{OWN}) ![seen](https://evil.invalid/seen.png) <https://evil.invalid/> https://evil.invalid/plain"
STEERS = "\x1b]0;owned\x07\x1b[2J\x1b[31m"
TURNED = "‮detrevni‬"
OPENED = f"The valve of the pump house <script>{OWN}</script><img src=x onerror='{OWN}'> is opened by hand."
SHUT = f"The valve of the pump house {LINKS} is shut at night."
QUESTION = "How is the valve of the pump house opened?"
HTML = f"""<!doctype html><title>{TAGS.replace("<", "&lt;")}</title>
<script>{OWN}</script><link rel=stylesheet href="https://evil.invalid/style.css"><meta http-equiv=refresh content="0;url=https://evil.invalid/">
<body onload="{OWN}"><img src="https://evil.invalid/x.png" onerror="{OWN}"><form action="https://evil.invalid/"><button>Go</button></form>
<p>The gate of the weir &lt;img src=x onerror='{OWN}'&gt; is lifted by a winch in the morning.</p></body>"""


def files(folder: Path) -> list[Path]:
    """Each with words that try, in its text, its title, or its name."""
    made = {
        "weir.html": HTML,
        f"<img src=x onerror={OWN.replace(' ', '')}>.md": f"# {TAGS}\n\n{LINKS}\n\n{OPENED}\n\n{TURNED} It is oiled in spring.",
        "table.csv": f"{TAGS.replace(',', ';')},Opened\n{OPENED.replace(',', ';')},1\n{LONG},2\n",
        "long.txt": f"{STEERS}The pump house has a sign that says {LONG}, and nobody can read it.\n\n{OPENED} {SHUT}{STEERS}",
    }
    for name, words in made.items():
        (folder / name).write_text(words, encoding="utf-8")
    return [*(folder / name for name in made), handbook(folder / "sluice.pdf", title=f"{TAGS}{STEERS}")]


def model_that_tries() -> Script:
    """Whatever it may write holds markup, links, terminal escapes and words without an end."""
    evil = f"{TAGS} {LINKS} {STEERS} {LONG}"

    def judge(text: str, schema: Any) -> Any:
        return (enough() if keys_in(text) else missing(evil[:150]))(text, schema)

    def write(text: str, schema: Any) -> Any:
        keys = keys_in(text)[:1]
        stated = [{"text": words, "cites": keys} for words in (OPENED, SHUT, f"The valve is opened by hand. {STEERS}")]
        blocks = [{"heading": f"{TAGS}{STEERS}", "claims": stated, "opinion": False}]
        return {"shape": "list", "blocks": blocks, "conflicts": [], "missing": []}

    return Script(
        route=research(why=evil[:150]),
        plan=steps(
            (f"How is the valve opened? {TAGS[:120]}", "valve pump house"), (f"{LINKS[:120]}?", f"hand {TAGS[:60]}")
        ),
        decide=no_calls(evil[:200]),
        weigh=keeps(f"{OPENED} {SHUT}", note=evil[:400]),
        judge=judge,
        write=write,
        check=supported(evil[:200]),
        revise={"action": "drop", "text": "", "cites": []},
    )


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def served(model: Model, tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("hostile")
    with open_workspace(folder / "workspace", create=True):
        pass
    model.plays(model_that_tries())
    with desk(folder / "workspace", model=model, meaning=True) as opened:
        opened.api("/api/bases", json={"name": "default", "description": f"{TAGS} {LINKS} {LONG[:800]}"})
        opened.sends(*files(folder))
        yield opened


@pytest.fixture(scope="module")
def made(served: Desk) -> dict[str, str]:
    """A question answered by that model, its thread under a hostile title, and a synthesis without a model."""
    run = served.api("/api/ask", json={"question": f"{QUESTION} {TAGS}", "talk": True})
    assert run["state"] == "delivered", (run["failure"], served.model and served.model.server.problems)
    assert any("<script>" in claim["text"] for block in run["answer"]["blocks"] for claim in block["claims"])
    served.api(f"/api/threads/{run['thread']}", method="PATCH", json={"title": f"{TAGS}"[:150]})
    told = served.api("/api/synthesis", json={"bases": ["default"], "questions": 1, "model": False})["run"]
    until(lambda: served.run(told)["state"] != "running", 60)
    return {"run": run["id"], "thread": run["thread"], "synthesis": told}


def harmless(reader: Reader) -> None:
    """Nothing of it ran, anywhere on the page; and the page has kept its form."""
    for frame in reader.page.frames:
        assert frame.evaluate("window.__owned") is None, frame.url
    assert (
        reader.page.evaluate(
            "document.querySelectorAll('body script, [onerror], [onload], a[href^=javascript]').length"
        )
        == 0
    )
    reader.fits()


@pytest.mark.parametrize("width", ["laptop", "phone"])
def test_on_every_screen_it_is_words_and_nothing_runs_or_is_fetched(
    reads: Reads, served: Desk, made: dict[str, str], width: str
):
    phone = {"viewport": PHONE, "has_touch": True, "is_mobile": True} if width == "phone" else {}
    reader = reads(served, **phone)
    page = reader.goes(f"#/thread/{made['thread']}")
    turn = reader.turns.first
    expect(turn.locator(".answer")).to_contain_text("<script>window.__owned = 1</script>")
    expect(turn.locator(".answer")).to_contain_text("![seen](https://evil.invalid/seen.png)")
    turn.get_by_text("How this was found").click()
    harmless(reader)
    reader.picture(f"hostile-answer-{width}")
    turn.get_by_role("button", name=re.compile("^Evidence")).click()
    expect(page.get_by_role("complementary", name="Evidence")).to_contain_text("is opened by hand.")
    harmless(reader)
    reader.goes("#/documents")
    expect(page.get_by_role("list", name="Documents").get_by_role("listitem")).to_have_count(5)
    expect(page.get_by_role("list", name="Documents")).to_contain_text("<img src=x onerror=window.__owned=1>.md")
    harmless(reader)
    reader.picture(f"hostile-documents-{width}")
    for document in served.api("/api/documents")["documents"]:
        reader.goes(f"#/document/{document['id']}?start=0&end=40")
        expect(page.get_by_role("region", name=re.compile("of the document$"))).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"\S"))
        harmless(reader)
    reader.goes(f"#/run/{made['run']}")
    for opened in page.locator("details.event > summary").all():
        opened.click()
    expect(page.get_by_role("main")).to_contain_text("![seen](https://evil.invalid/seen.png)")
    harmless(reader)
    reader.goes("#/runs")
    expect(page.get_by_role("list", name="Runs")).to_contain_text("<script>")
    harmless(reader)
    reader.goes(f"#/synthesis/{made['synthesis']}")
    expect(page.get_by_role("main")).to_contain_text("valve")
    expect(page.get_by_role("region", name="The account")).to_be_visible()
    harmless(reader)
    reader.picture(f"hostile-account-{width}")


def test_the_answer_as_a_page_of_its_own_runs_and_fetches_nothing(served: Desk, made: dict[str, str], reads: Reads):
    reader = reads(served)
    page = reader.page
    page.goto(f"{served.url}/api/runs/{made['run']}/answer?format=html")
    expect(page.locator("body")).to_contain_text("<script>window.__owned = 1</script>")
    assert page.evaluate("window.__owned") is None
    page.goto(f"{served.url}/api/synthesis/{made['synthesis']}/page")
    expect(page.locator("body")).to_contain_text("valve")
    assert page.evaluate("window.__owned") is None
    for format in ("text", "markdown"):
        assert "\x1b" not in served.api(f"/api/runs/{made['run']}/answer?format={format}")


def test_an_uploaded_page_is_handed_out_as_a_file_and_does_not_run_where_we_are(served: Desk, reads: Reads):
    weir = next(each["id"] for each in served.api("/api/documents")["documents"] if each["name"] == "weir.html")
    reader = reads(served)
    page = reader.goes()
    expect(page.get_by_label("Your question")).to_be_visible()
    with page.expect_download() as taking:
        page.evaluate("place => { location.href = place; }", f"/api/documents/{weir}/original")
    assert Path(taking.value.path()).read_text() == HTML
    assert page.evaluate("window.__owned") is None
    headers = httpx.get(f"{served.url}/api/documents/{weir}/original").headers
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff" and "default-src 'none'" in headers["content-security-policy"]
    assert (
        page.evaluate(
            """async place => {
          const frame = Object.assign(document.createElement("iframe"), {src: place});
          document.body.append(frame);
          await new Promise(done => { frame.onload = done; setTimeout(done, 500); });
          try { return frame.contentWindow.__owned ?? null; } catch { return null; }
        }""",
            f"/api/documents/{weir}/text?start=0&end=500",
        )
        is None
    )
    reader.foresees("frame-ancestors|Framing|refused to connect|ERR_BLOCKED_BY_RESPONSE")


@pytest.mark.long
def test_nothing_steers_the_terminal_of_whoever_asks_there(served: Desk, model: Model):
    asked = forked.run(
        [sys.executable, "-m", "assay.cli.main", "ask", QUESTION, "--workspace", str(served.folder)],
        env={
            **os.environ,
            "ASSAY_LLM_BASE_URL": model.server.url,
            "ASSAY_LLM_MODEL": "scripted",
            "ASSAY_LLM_API_KEY": "k",
        },
    )
    said = asked.stdout + asked.stderr
    assert b"is opened by hand." in asked.stdout, said[-2000:]
    assert b"\x1b" not in said and b"\x07" not in said and "\x9b" not in said.decode()
