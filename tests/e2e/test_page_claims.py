"""What stands behind a claim, at the page: opened and closed with the keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser_session import PHONE, Desk, Model, Reader, desk
from doubles import Script, beside_the_point, enough, keeps, lookup, no_calls, writes
from playwright.sync_api import Locator, expect

Reads = Callable[..., Reader]

BEFORE = "The shop at Carrow Point sold 340 lamps in 2022."
AFTER = "The shop at Carrow Point sold 480 lamps in 2023."
PLAN = "The shop will sell ropes if the quay is rebuilt, the keeper says."
NOTES = {"Ledger": f"{BEFORE} {AFTER} Most were brass.", "Plans": f"{PLAN} Nobody knows when that will be."}
QUESTION = "By how much did the sales of lamps at Carrow Point rise in 2023, and what will the shop sell?"
RISE = "The shop at Carrow Point sold 41.2 % more lamps in 2023."
ROPES = "The shop will sell ropes."
WORKING = "(480 − 340) / 340 × 100 = 41.18"


def write(text: str, schema: Any) -> Any:
    """Two claims; the first is computed."""
    draft: Any = writes(f"{RISE} [{{480 lamps}}]", f"{ROPES} [{{sell ropes}}]")(text, schema)
    key = draft["blocks"][0]["claims"][0]["cites"][0]
    draft["blocks"][0]["claims"][0]["calculation"] = {
        "expression": "(480 - 340) / 340 * 100",
        "operands": [{"words": "480", "cite": key}, {"words": "340", "cite": key}],
        "result": "41.2",
        "unit": "%",
    }
    return draft


def check(text: str, schema: Any) -> Any:
    """Both claims hold; whoever judges a second time, without the question, doubts the one on ropes."""
    asks = re.search(r"^Question: ", text, re.MULTILINE)
    rulings = []
    for number in (1, 2):
        ropes = ROPES in text.partition(f"Claim {number} ")[2].partition("\n")[0]
        words = [PLAN] if ropes else [BEFORE, AFTER]
        doubted = ropes and not asks
        why = "It is said only on a condition." if doubted else "The cited words say so."
        rulings.append(
            {"claim": number, "words": words, "why": why, "verdict": "unsupported" if doubted else "supported"}
        )
    return {"rulings": rulings} | ({"answers": True, "missing": ["the sales of ropes"], "search": ""} if asks else {})


def shopkeeper(**other: Any) -> Script:
    lines: dict[str, Any] = {
        "route": lookup(),
        "weigh": keeps(AFTER, PLAN),
        "judge": enough(),
        "decide": no_calls(),
        "write": write,
        "check": check,
    }
    return Script(**lines | other)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def served(model: Model, tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("claims") / "workspace"
    with desk(folder, NOTES, model, judges_differ="mark") as opened:
        yield opened


def answered(reader: Reader) -> Locator:
    reader.goes()
    reader.page.get_by_role("radio", name="Thorough").check()
    turn = reader.asks(QUESTION)
    expect(turn.locator(".answer")).to_be_visible()
    return turn


def opened(turn: Locator, words: str) -> Locator:
    """The details of the claim with these words, opened with the keyboard."""
    mark = turn.locator(".claim", has_text=words).get_by_role("button", name="Verdict: Supported. Why?")
    mark.focus()
    turn.page.keyboard.press("Enter")
    expect(mark).to_have_attribute("aria-expanded", "true")
    return turn.locator(".claim", has_text=words).get_by_role("group", name="What this statement rests on")


def test_a_claim_is_opened_by_keyboard_and_shows_what_it_rests_on(served: Desk, model: Model, reads: Reads):
    model.plays(shopkeeper())
    reader = reads(served)
    turn = answered(reader)
    page = reader.page
    expect(turn).to_contain_text("Missing: the sales of ropes.")
    expect(turn.get_by_text("✓ means “follows from the words shown”")).to_be_visible()
    expect(turn.locator("details.searched")).not_to_have_attribute("open", "")
    details = opened(turn, RISE)
    for said in (
        "Calculation",
        "follows from the words shown",
        "Given by the model scripted",
        "The cited words say so.",
    ):
        expect(details).to_contain_text(said)
    expect(details).to_contain_text(WORKING)
    expect(details.locator(".operands li")).to_contain_text([f"480 in “{AFTER}", f"340 in “{BEFORE}"])
    expect(details.locator(".carried")).to_contain_text([BEFORE, AFTER])
    page.keyboard.press("Tab")  # into the details, at the first operand's source
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Ledger").locator("mark")).to_have_text(AFTER)
    page.keyboard.press("Escape")
    expect(page.get_by_role("complementary", name="Ledger")).to_have_count(0)
    expect(details).to_be_visible()
    page.keyboard.press("Escape")  # the card of the source that has the focus again
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)
    expect(turn.locator(".claim", has_text=RISE).get_by_role("button", name=re.compile("^Verdict"))).to_be_focused()


def test_a_dispute_is_seen_without_opening_and_its_reason_inside(served: Desk, model: Model, reads: Reads):
    model.plays(shopkeeper())
    reader = reads(served)
    turn = answered(reader)
    expect(turn.locator(".claim", has_text=ROPES)).to_contain_text("two judgements differ")
    expect(turn.locator(".claim", has_text=RISE)).not_to_contain_text("two judgements differ")
    details = opened(turn, ROPES)
    expect(details).to_contain_text("Two judgements differ: It is said only on a condition.")
    expect(details.locator(".carried")).to_contain_text(PLAN)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("wide", [True, False])
def test_opened_claims_fit_and_have_no_serious_fault(
    reads: Reads, served: Desk, model: Model, colours: str, wide: bool
):
    model.plays(shopkeeper())
    reader = reads(served, color_scheme=colours, **({} if wide else {"viewport": PHONE}))
    turn = answered(reader)
    opened(turn, RISE)
    opened(turn, ROPES)
    reader.fits()
    reader.accessible("a claim that is opened")
    turn.locator(".answer").scroll_into_view_if_needed()
    reader.picture(f"claim-{colours}-{'wide' if wide else 'narrow'}")


def test_statements_beside_the_point_are_shown_without_quotation_marks(served: Desk, model: Model, reads: Reads):
    model.plays(shopkeeper(check=beside_the_point()))
    reader = reads(served)
    turn = answered(reader)
    expect(turn).to_contain_text("The documents do not answer this.")
    nearest = turn.locator("section", has=reader.page.get_by_role("heading", name="The nearest that was found"))
    expect(nearest).to_contain_text(RISE)
    expect(nearest).not_to_contain_text("“")
    expect(turn.locator("details.searched")).not_to_have_attribute("open", "")
    reader.picture("claim-beside")


def test_a_reviewer_opens_a_claim_of_the_draft(served: Desk, model: Model, reads: Reads):
    model.plays(shopkeeper())
    run = served.api("/api/ask", json={"question": QUESTION, "stakes": "high"})["id"]
    reader = reads(served)
    page = reader.goes(f"#/review/{run}")
    statement = page.locator(".statement", has_text=RISE)
    mark = statement.get_by_role("button", name="Verdict: Supported. Why?")
    mark.focus()
    page.keyboard.press("Enter")
    details = statement.get_by_role("group", name="What this statement rests on")
    for said in ("Calculation", "Given by the model scripted", WORKING):
        expect(details).to_contain_text(said)
    expect(details.locator(".carried")).to_contain_text([BEFORE, AFTER])
    expect(page.locator(".statement", has_text=ROPES)).to_contain_text("two judgements differ")
    reader.fits()
    reader.accessible("a draft with a claim that is opened")
    reader.picture("claim-review")
