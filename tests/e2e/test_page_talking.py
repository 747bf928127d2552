"""Conversations at the page: follow-ups, threads, questions that a run has, and answers that are more than a plain yes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import conversation
import pytest
from browser_session import Desk, Model, Reader, desk, desk_fixtures
from doubles import enough, keeps, missing, no_calls, one_step, research, writes
from lighthouse import (
    ALSO_LIT,
    LIT,
    NOTES,
    TALL,
    TENDS,
    disagreement,
    finder,
    researcher,
)
from playwright.sync_api import Page, expect

FIRST = "How tall is the tower at Carrow Point?"
STEAM = "The fog horn at Carrow Point is blown by steam."
Reads = Callable[..., Reader]


model, served = desk_fixtures(NOTES)


def tall(**other: Any) -> Any:
    return finder(TALL, f"{TALL[:-1]} [{{31 metres}}].", **other)


def threads(page: Page) -> Any:
    return page.get_by_role("region", name="Threads")


def wants(page: Page, words: str) -> None:
    """Have the run ask at this point; it is remembered in the browser, as any option is."""
    page.get_by_role("button", name=re.compile("^Options")).click()
    page.get_by_label(words).check()


# --- threads --------------------------------------------------------------------------------------------------------


def test_a_follow_up_is_understood_in_its_thread_which_can_be_renamed_reopened_and_deleted(
    reads: Reads, served: Desk, model: Model
):
    reader = reads(served)
    page = reader.goes()
    model.plays(tall())
    first = reader.asks(FIRST)
    expect(first.locator(".answer")).to_contain_text(TALL)
    leans = "It leans a little."
    model.plays(finder(leans, "The tower leans a little [{leans}].", standalone={"question": "Does the tower lean?"}))
    second = reader.asks("Does it lean?")
    expect(second).to_contain_text("Understood as: Does the tower lean?")
    expect(second.locator(".answer")).to_contain_text("The tower leans a little.")
    expect(first.locator(".answer")).to_contain_text(TALL)  # what was said before stays
    reader.picture("thread")
    address = page.url
    threads(page).get_by_role("link", name=FIRST).hover()
    threads(page).get_by_role("button", name=f"Rename “{FIRST}”").click()
    page.get_by_role("dialog").get_by_label("Title").fill("About the tower")
    page.keyboard.press("Enter")
    expect(threads(page).get_by_role("link", name="About the tower")).to_be_visible()
    other = reads(served)
    page = other.page
    page.goto(address)
    expect(other.turns).to_have_count(2)
    expect(other.turns.nth(1)).to_contain_text("The tower leans a little.")
    expect(page).to_have_title(re.compile("^About the tower"))
    expect(threads(page).get_by_role("link", name="About the tower")).to_have_attribute("aria-current", "page")
    threads(page).get_by_label("Find a thread").fill("tower abo")
    expect(threads(page).get_by_role("link")).to_have_text(["About the tower"])
    threads(page).get_by_label("Find a thread").fill("no such words")
    expect(threads(page)).to_contain_text("No thread has these words.")
    threads(page).get_by_label("Find a thread").fill("")
    link = threads(page).get_by_role("link", name="About the tower")
    link.hover()
    threads(page).get_by_role("button", name="Delete “About the tower”").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete this thread?“About the tower”")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(link).to_be_hidden()
    expect(page.get_by_role("heading", name="What would you like to know?")).to_be_visible()
    other.foresees("404")
    page.goto(address)
    expect(page.get_by_role("alert")).to_contain_text(re.compile("no thread", re.I))


# --- questions that a run has ---------------------------------------------------------------------------------------


def test_a_checkpoint_is_a_plain_question_that_a_click_answers(served: Desk, model: Model, reads: Reads):
    model.plays(tall())
    reader = reads(served)
    page = reader.goes()
    wants(page, "Before answering: see the sources first")
    turn = reader.asks(FIRST)
    asked = turn.get_by_role("group", name="The run waits for you")
    expect(asked).to_contain_text("?")
    expect(asked.get_by_role("button", name="Tower")).to_be_visible()
    reader.picture("checkpoint")
    asked.get_by_role("button", name="Answer now").click()
    expect(turn.locator(".answer")).to_contain_text(TALL)
    expect(asked).to_be_hidden()


def test_a_checkpoint_is_answered_by_keyboard_and_other_words_are_searched_for(
    reads: Reads, served: Desk, model: Model
):
    heard: list[str] = []

    def weigh(text: str, schema: Any) -> Any:
        return keeps(TENDS)(text, schema) if heard else {"passages": []}

    question = "Who is the warden of the lantern?"
    model.plays(
        researcher(
            plan=one_step(question, "lantern warden"),
            weigh=weigh,
            judge=lambda text, schema: (enough() if heard else missing("who"))(text, schema),
            decide=no_calls(),
            write=writes("The keeper tends the beacon [{tends the beacon}]."),
        )
    )
    reader = reads(served)
    page = reader.goes()
    wants(page, "When nothing relevant was found: other words?")
    turn = reader.asks(question)
    box = turn.get_by_label("Search with other words")
    expect(box).to_be_visible()
    heard.append("beacon log")
    page.get_by_label("Your question").focus()
    for _ in range(12):
        page.keyboard.press("Shift+Tab")
        if box.evaluate("node => node === document.activeElement"):
            break
    expect(box).to_be_focused()
    page.keyboard.type("beacon log")
    page.keyboard.press("Enter")
    expect(turn.locator(".answer")).to_contain_text("The keeper tends the beacon.")
    turn.get_by_text(re.compile("^What was searched")).click()
    expect(turn.get_by_role("cell", name="beacon log")).to_be_visible()


def test_what_a_question_means_is_asked_with_the_readings_as_choices(served: Desk, model: Model, reads: Reads):
    readings = ("How tall is the light at Carrow Point?", "How tall is the tower at Carrow Point?")
    model.plays(tall(route=research(readings=readings), plan=one_step(readings[1])))
    reader = reads(served)
    page = reader.goes()
    wants(page, "When the question can mean several things: which one?")
    turn = reader.asks("How tall?")
    asked = turn.get_by_role("group", name="The run waits for you")
    for reading in readings:
        expect(asked.get_by_role("button", name=reading)).to_be_visible()
    page.reload()  # it waits as long as it takes
    asked.get_by_role("button", name=readings[1]).click()
    expect(turn.locator(".answer")).to_contain_text(TALL)
    expect(turn).not_to_contain_text(readings[0])


# --- answers that are more than a plain yes -------------------------------------------------------------------------


def test_sources_that_disagree_stand_side_by_side(served: Desk, model: Model, reads: Reads):
    model.plays(disagreement())
    reader = reads(served)
    reader.goes()
    turn = reader.asks("When was the light of Carrow Point first lit?")
    expect(turn.get_by_role("heading", name="The sources disagree")).to_be_visible()
    left, right = (turn.get_by_role("figure").filter(has_text=words) for words in (LIT, ALSO_LIT))
    expect(left).to_contain_text("Almanac")
    expect(right).to_contain_text("Pilot guide")
    one, other = left.bounding_box(), right.bounding_box()
    assert one and other and abs(one["y"] - other["y"]) < 2 and one["x"] + one["width"] <= other["x"]
    reader.picture("conflict")
    right.get_by_role("button", name="Pilot guide").click()
    expect(reader.page.get_by_role("complementary", name="Pilot guide").locator("mark")).to_contain_text(ALSO_LIT)


def test_an_extract_marks_the_words_that_answer_and_opens_its_document_at_them(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes()
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Without a model: quotations only").check()
    turn = reader.asks("How tall is the tower at Carrow Point?")
    expect(turn).to_contain_text("Found in your documents:")
    extract = turn.get_by_role("figure").first
    expect(extract.locator("mark")).to_contain_text("31 metres")
    extract.locator("figcaption").get_by_role("button").click()
    expect(page.get_by_role("complementary").locator("mark")).to_have_text(extract.locator("mark").inner_text())


def test_a_no_says_what_was_searched_and_what_came_nearest(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes()
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Without a model: quotations only").check()
    turn = reader.asks("Who sells bread at Carrow Point?")
    expect(turn).to_contain_text("Not found in your documents. The nearest:")
    expect(turn.get_by_role("figure").first).to_contain_text("Carrow Point")
    run = served.run(reader.run_of(turn))
    table = turn.get_by_role("region", name="What was searched").get_by_role("row")
    expect(table.first).to_be_hidden()
    turn.get_by_text(re.compile("^What was searched")).click()
    expect(table).to_have_count(1 + len(run["answer"]["searched"]))
    expect(table.nth(1)).to_have_text(re.compile(r"Who sells bread at Carrow Point\?\s*38"))
    expect(turn).to_contain_text("The search ended because nothing new was found.")
    reader.picture("no")


def test_a_passage_that_reads_like_an_order_is_shown_with_a_warning(served: Desk, model: Model, reads: Reads):
    model.plays(finder(STEAM, f"{STEAM[:-1]} [{{by steam}}]."))
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks("What blows the fog horn at Carrow Point?")
    cite = turn.locator(".answer").get_by_role("button", name=re.compile("Reads like an instruction"))
    expect(cite).to_be_visible()
    cite.hover()
    warning = "This passage reads like an instruction to a model. It was treated as a quotation and nothing else."
    expect(page.get_by_role("group", name="Quotation")).to_contain_text(warning)
    page.mouse.move(0, 0)
    turn.get_by_role("button", name="Evidence (1)").click()
    expect(page.get_by_role("complementary", name="Evidence")).to_contain_text(warning)


# --- working on the last answer -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def conversing(tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
    model = Model()
    model.plays(conversation.script())
    with desk(tmp_path_factory.mktemp("conversing") / "workspace", conversation.NOTES, model) as opened:
        yield opened


def holds(reader: Reader, turns: Sequence[tuple[str, str, str]]) -> None:
    for said, meant, shown in turns:
        turn = reader.asks(said)
        for part in shown.split(" | "):  # the cells of a table
            expect(turn.locator(".answer")).to_contain_text(part)
        if meant:
            expect(turn.locator(".understood")).to_contain_text(f"Understood as: {meant}")


def test_ten_turns_with_follow_ups_a_translation_a_doubt_thanks_and_a_change_of_subject(conversing: Desk, reads: Reads):
    reader = reads(conversing)
    reader.goes()
    holds(reader, conversation.TURNS)
    reader.picture("conversation")


def test_ten_turns_without_a_model(conversing: Desk, reads: Reads):
    reader = reads(conversing)
    page = reader.goes()
    page.get_by_role("button", name=re.compile("^Options")).click()
    page.get_by_label("Without a model: quotations only").check()
    holds(reader, conversation.RULED)
