"""An answer of sentences, a table and an opinion at the page, and its sources: each once, with the rows cited of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_session import PHONE, Desk, Model, Reader, desk
from doubles import Script, enough, keeps, lookup, supported, writes
from handbook import SENTENCE, handbook
from playwright.sync_api import expect

Reads = Callable[..., Reader]

RIVERS = """# Rivers

Table 1: Rivers of the valley (in km)

| River | 2022 | 2023 | Remark |
|---|---:|---:|---|
| Ash | 1,233 | 1,240 | floods in spring |
| Bourne | 85 | 84 | |
| Carrow | 12 | 12 | dry in summer |

The Ash is the longest river of the valley.
"""
WEIR = "A weir was built across the Bourne in 2023."
ROWS = ("| Ash | 1,233 | 1,240 | floods in spring |", "| Bourne | 85 | 84 | |", "| Carrow | 12 | 12 | dry in summer |")
LEAD = "The Ash is the longest river of the valley."
DRY = "The Carrow is dry in summer."
JUDGED = "The valley is well watered."


def write(text: str, schema: Any) -> Any:
    """Two sentences, two rows, an opinion."""
    made = (LEAD, DRY, "Ash | 1,233 | 1,240", "Bourne | 85 | 84", "A weir was built in 2023.", JUDGED)
    cites = ("longest", "floods", "floods", "floods", "weir", "longest")
    stated: Any = writes(*(f"{claim} [{{{key}}}]" for claim, key in zip(made, cites, strict=True)))(text, schema)
    own = stated["blocks"][0]["claims"]
    for place, row, values in ((2, "r1", ("1,233", "1,240")), (3, "r2", ("85", "84"))):
        own[place]["cells"] = [
            {"cite": own[place]["cites"][0], "cell": f"{row}c{column}", "value": value}
            | {"measure": "", "period": str(2021 + column), "organisation": "", "direction": ""}
            for column, value in enumerate(values, 1)
        ]
    blocks = [
        {"heading": "", "claims": own[:2], "opinion": False},
        {"heading": "River | 2022 | 2023", "claims": own[2:4], "opinion": False},
        {"heading": "", "claims": own[4:5], "opinion": False},
        {"heading": "", "claims": own[5:], "opinion": True},
    ]
    return stated | {"shape": "sentence", "blocks": blocks}


PUMPS = "Chapter two speaks of pumps, which are oiled in spring."


def check(text: str, schema: Any) -> Any:
    """Every claim that is shown is supported by the words that carry it, in the first request and in the second."""
    carried = {SENTENCE: SENTENCE, "The pumps": PUMPS}
    carried |= {LEAD: LEAD, DRY: ROWS[2], "Ash": ROWS[0], "Bourne": ROWS[1], "A weir": WEIR, JUDGED: LEAD}
    reply: Any = supported()(text, schema)
    stated = dict(re.findall(r"^Claim (\d+) \([^)]*\): (.*)$", text, re.MULTILINE))
    for ruling in reply["rulings"]:
        said = stated[str(ruling["claim"])]
        ruling["words"] = [next(words for start, words in carried.items() if said.startswith(start))]
    return reply


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "rivers.md").write_text(RIVERS)
    model = Model()
    weighs = keeps("1,233", LEAD, WEIR)
    model.plays(Script(route=lookup(), weigh=weighs, judge=enough(), write=write, check=check))
    with desk(folder / "workspace", {"Weir": WEIR}, model, llm_size="large") as opened:
        opened.sends(folder / "rivers.md")
        yield opened


@pytest.mark.parametrize("wide", [True, False])
def test_sentences_a_table_and_an_opinion_are_read_in_turn_and_each_source_stands_once(
    reads: Reads, served: Desk, wide: bool
):
    reader = reads(served, **({} if wide else {"viewport": PHONE}))
    reader.goes()
    turn = reader.asks("Which river of the valley is the longest, and how long are the rivers?")
    blocks = turn.locator(".answer .block")
    expect(blocks).to_have_count(4)
    expect(blocks.nth(0).locator("p.claims")).to_contain_text(DRY)  # a sentence or two, no list
    expect(turn.locator(".answer ul.claims")).to_have_count(0)
    expect(blocks.nth(1).get_by_role("columnheader")).to_have_text(["River", "2022", "2023", "Sources"])
    expect(blocks.nth(1).get_by_role("row", name="Bourne").get_by_role("cell").first).to_have_text("85")
    expect(blocks.nth(1).locator(".facts li").first).to_contain_text("2022: 1,233; 2023: 1,240")
    expect(blocks.nth(3)).to_contain_text("Opinion")
    sources = turn.locator("details.sources")
    expect(sources.locator("summary")).to_have_text("2 sources")
    sources.locator("summary").click()
    rivers = sources.locator("li", has_text="rivers.md")
    expect(rivers.locator("tbody tr")).to_have_count(3)
    numbered = rivers.get_by_role("row", name="Bourne").get_by_role("button", name=re.compile("^Source"))
    expect(numbered.first).to_be_visible()
    reader.fits()
    reader.accessible("an answer with a table and its sources")
    sources.scroll_into_view_if_needed()
    reader.picture(f"mixed-answer-{'wide' if wide else 'narrow'}")


def test_a_page_that_is_cited_by_several_quotations_stands_once(tmp_path: Path, reads: Reads):
    model = Model()
    write = writes(f"{SENTENCE} [{{sluice}}]", "The pumps are oiled in spring. [{sluice}]")
    model.plays(Script(route=lookup(), weigh=keeps(SENTENCE), judge=enough(), write=write, check=check))
    with desk(tmp_path / "workspace", {"Weir": WEIR}, model, llm_size="large") as opened:
        opened.sends(handbook(tmp_path / "handbook.pdf"))
        reader = reads(opened)
        reader.goes()
        sources = reader.asks("When is the sluice opened, and when are the pumps oiled?").locator("details.sources")
        sources.locator("summary").click()
        expect(sources.locator("q")).to_have_count(2)
        expect(sources.get_by_text("Page 2", exact=True)).to_have_count(1)
        reader.picture("one-page")
        reader.page.close()
