"""Asking at the page: what is seen while a run works, what the answer says, and what happens when something comes between."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from browser_session import CUT_OFF, Desk, Model, Reader, desk, desk_fixtures
from doubles import HttpReply, drops, role_of, verdicts, writes
from lighthouse import CLAIMS, GROUND, NOTES, PAINT, QUESTION, SAID, TALL, TENDS, researcher
from playwright.sync_api import Locator, expect

Reads = Callable[..., Reader]


model, served = desk_fixtures(NOTES)


def claims(turn: Locator) -> list[str]:
    """The statements of an answer, as they are read: without the buttons at their ends."""
    return turn.locator(".answer .claim").evaluate_all(
        """all => all.map(each => {
          const words = each.cloneNode(true);
          words.querySelectorAll("button").forEach(mark => mark.remove());
          return words.textContent.trim();
        })"""
    )


def test_the_plan_the_searches_and_the_evidence_are_seen_before_the_answer(served: Desk, model: Model, reads: Reads):
    invented = writes(*CLAIMS, "Nobody knows who looks after the signal fire [{tends the beacon}].")
    doubts = verdicts("supported", "supported", "supported", "unsupported")
    model.plays(researcher(write=invented, check=doubts, revise=drops()), hold="route write revise")
    reader = reads(served)
    reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.get_by_role("heading", name="Plan")).to_be_hidden()
    model.let("route")  # one request chooses the route and plans
    expect(turn.get_by_text("Research: searches until there is enough")).to_be_visible()
    plan = turn.locator("section", has=turn.page.get_by_role("heading", name="Plan", exact=True))
    expect(plan).to_contain_text("What is the lamp room painted with?")
    expect(plan).to_contain_text("Where is orpiment ground?")  # what the first step found stands in the second
    expect(plan).to_contain_text("Dunmere")
    searches = turn.locator("section", has=turn.page.get_by_role("heading", name="Searches"))
    expect(searches).to_contain_text("beacon log watch")
    expect(searches).to_contain_text(re.compile(r"\d+ found, 1 kept"))
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces from 4 documents")).to_be_visible()
    expect(turn).to_contain_text(TENDS)
    expect(turn.locator(".answer")).to_have_count(0)
    reader.picture("asking")
    model.let("write")
    expect(turn.get_by_role("heading", name="Statements: 3 of 4 checked")).to_be_visible()
    stated = turn.locator(".working-claims li")
    expect(stated).to_contain_text([*SAID, "Checking what comes here against its sources"])  # what passed, in order
    expect(turn).not_to_contain_text("signal fire")  # what did not pass is not shown
    model.let()
    expect(turn.locator(".answer")).to_be_visible()
    run = served.run(reader.run_of(turn))
    assert claims(turn) == [claim["text"] for block in run["answer"]["blocks"] for claim in block["claims"]]
    assert claims(turn) == list(SAID)  # what did not hold is not said
    spent = turn.locator(".answer-tools .spent")
    used = run["usage"]
    expect(spent).to_contain_text(f"{used['calls']} calls")
    expect(spent).to_contain_text(f"{used['tokens_in'] + used['tokens_out']:,} tokens")
    expect(spent).to_contain_text("scripted")
    by = [claim["verdict"] for block in run["answer"]["blocks"] for claim in block["claims"]]
    expect(turn.get_by_role("button", name="Verdict: Supported. Why?")).to_have_count(by.count("supported"))
    expect(turn.get_by_text(f"{by.count('supported')} supported", exact=True)).to_be_visible()
    reader.pictures("question")
    turn.locator(".answer-tools summary").filter(has_text="Save").click()
    expect(turn.get_by_role("button", name="BibTeX")).to_be_in_viewport()
    reader.pictures("export")


def test_a_citation_shows_its_quotation_under_the_pointer_and_under_the_focus(served: Desk, model: Model, reads: Reads):
    model.plays(researcher())
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    cite = turn.locator(".answer").get_by_role("button", name=re.compile("Source .*Tower"))
    cite.hover()
    card = page.get_by_role("group", name="Quotation")
    expect(card).to_contain_text(TALL)
    page.mouse.move(0, 0)
    expect(card).to_be_hidden()
    page.get_by_label("Your question").focus()
    for _ in range(60):
        page.keyboard.press("Shift+Tab")
        if cite.evaluate("node => node === document.activeElement"):
            break
    expect(cite).to_be_focused()
    expect(card).to_contain_text(TALL)
    expect(cite).to_have_accessible_description(re.compile("31 metres tall"))
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    expect(cite).to_be_focused()


def test_the_evidence_is_listed_with_scores_and_can_be_narrowed_down(served: Desk, model: Model, reads: Reads):
    model.plays(researcher())
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    turn.get_by_role("button", name="Evidence (4)").click()
    panel = page.get_by_role("complementary", name="Evidence")
    pieces = panel.locator(".piece")
    expect(pieces).to_have_count(4)
    scores = [float(each) for each in panel.locator(".score").evaluate_all("all => all.map(e => e.lastChild.data)")]
    run = served.run(reader.run_of(turn))
    assert scores == sorted((piece["score"] for piece in run["evidence"]), reverse=True)
    panel.get_by_label("Only evidence with these words").fill("dunmere orpiment")
    expect(pieces).to_have_count(1)
    expect(pieces).to_contain_text(GROUND)
    panel.get_by_label("Only evidence with these words").fill("")
    panel.get_by_label("Only from this document").select_option("Lamp room")
    expect(pieces).to_have_count(1)
    expect(pieces).to_contain_text(PAINT)
    pieces.get_by_role("button", name="Lamp room").click()
    expect(page.get_by_role("complementary", name="Lamp room").locator("mark")).to_have_text(PAINT)
    page.get_by_role("button", name="Back to the evidence").click()
    expect(page.get_by_role("complementary", name="Evidence")).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(turn.get_by_role("button", name="Evidence (4)")).to_be_focused()


def test_a_page_that_is_loaded_anew_in_the_middle_shows_the_same_and_goes_on(served: Desk, model: Model, reads: Reads):
    model.plays(researcher(), hold="write")
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    expect(turn.locator(".phase")).to_have_text("Writing")
    before = turn.locator(".working-parts").inner_text()
    page.reload()
    turn = reader.turns.first
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    expect(turn.locator(".phase")).to_have_text("Writing")
    assert turn.locator(".working-parts").inner_text() == before
    model.let()
    expect(turn.locator(".answer")).to_contain_text(SAID[1])
    assert claims(turn) == list(SAID)


def test_stop_stops_at_once_and_carry_on_carries_on(served: Desk, model: Model, reads: Reads):
    model.plays(researcher(), hold="write")
    reader = reads(served)
    reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.locator(".phase")).to_have_text("Writing")
    turn.get_by_role("button", name="Stop").click()
    expect(turn).to_contain_text("You stopped this run. What it did is kept.")
    assert served.run(reader.run_of(turn))["state"] == "cancelled"
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    reader.picture("stopped")
    searches = served.run(reader.run_of(turn))["rounds"]
    model.let()
    turn.get_by_role("button", name=re.compile("^(Carry on|Resume)$")).click()
    expect(turn.locator(".answer")).to_contain_text(SAID[0])
    assert claims(turn) == list(SAID)
    assert served.run(reader.run_of(turn))["rounds"] == searches  # nothing was searched for twice


def test_stop_keeps_the_statements_that_had_passed_their_check(served: Desk, model: Model, reads: Reads):
    invented = writes(*CLAIMS, "Nobody knows who looks after the signal fire [{tends the beacon}].")
    doubts = verdicts("supported", "supported", "supported", "unsupported")
    model.plays(researcher(write=invented, check=doubts, revise=drops()), hold="revise")
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.get_by_role("heading", name="Statements: 3 of 4 checked")).to_be_visible()
    turn.get_by_role("button", name="Stop").click()
    stated = turn.locator(".working-claims li")
    for _ in range(2):
        expect(turn).to_contain_text("The statements below had passed their check; others are missing.")
        expect(stated).to_contain_text(list(SAID))
        expect(turn).not_to_contain_text("signal fire")
        reader.pictures("stopped-writing")
        reader.accessible("a run that was stopped")
        page.reload()
    model.let()
    turn.get_by_role("button", name="Carry on").click()
    expect(turn.locator(".answer")).to_be_visible()
    assert claims(turn) == list(SAID)


def test_a_model_that_does_not_answer_is_told_while_it_is_asked_again(served: Desk, model: Model, reads: Reads):
    failing, script = [True], researcher()

    def says(request: Any) -> Any:
        return HttpReply(503, "busy") if failing[0] and role_of(request)[0] == "write" else script.answer(request)

    model.plays(says)
    reader = reads(served)
    reader.goes()
    turn = reader.asks(QUESTION)
    told = turn.get_by_role("status").filter(has_text="The model does not answer")
    expect(told).to_have_text(re.compile(r"The model does not answer \(status 503\), try [2-9] of \d+\."))
    reader.pictures("retrying")
    reader.accessible("a model that does not answer")
    failing[0] = False
    expect(turn.locator(".answer")).to_be_visible()
    assert claims(turn) == list(SAID)


def test_a_lost_connection_is_said_and_nothing_is_missing_or_doubled_when_it_is_back(
    reads: Reads, served: Desk, model: Model
):
    model.plays(researcher(), hold="decide")
    reader = reads(served)
    reader.foresees(CUT_OFF)
    page = reader.goes()
    turn = reader.asks(QUESTION)
    expect(turn.get_by_role("heading", name="Evidence: 3 pieces")).to_be_visible()
    served.close()
    expect(turn.get_by_role("status")).to_contain_text(re.compile("connection was lost|server is closing"))
    reader.picture("cut-off")
    model.hold("write")
    model.let("decide")
    served.open()
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    expect(turn.get_by_text("connection was lost")).to_be_hidden()
    expect(turn.get_by_text("server is closing")).to_be_hidden()
    expect(turn.locator(".phase")).to_have_text("Writing")
    after = turn.locator(".working-parts").inner_text()
    page.reload()  # whoever comes now, and has heard everything once, sees the same
    expect(turn.get_by_role("heading", name="Evidence: 4 pieces")).to_be_visible()
    expect(turn.locator(".phase")).to_have_text("Writing")
    assert turn.locator(".working-parts").inner_text() == after
    model.let()
    expect(turn.locator(".answer")).to_be_visible()
    assert claims(turn) == list(SAID)
    expect(reader.turns).to_have_count(1)


def test_a_question_is_edited_or_asked_again_in_another_mode_and_both_answers_stay(
    reads: Reads, served: Desk, model: Model
):
    model.plays(researcher())
    reader = reads(served)
    page = reader.goes()
    first = reader.asks(QUESTION)
    expect(first.locator(".answer")).to_be_visible()
    first.get_by_text("Ask again", exact=True).click()
    expect(first.get_by_role("button", name="Balanced, as before")).to_be_visible()
    reader.pictures("ask-again")
    first.get_by_role("button", name="Thorough", exact=True).click()
    second = reader.turns.nth(1)
    expect(second.locator(".answer")).to_be_visible()
    expect(first.locator(".answer")).to_be_visible()
    begun = served.api(f"/api/runs/{reader.run_of(second)}/events", params={"format": "json"})["events"][0]["event"]
    assert begun["mode"] == "thorough"
    assert not begun.get("history")  # the first answer is not known to the second
    page.reload()
    second = reader.turns.nth(1)
    expect(reader.turns.nth(0).get_by_text("Asked again.")).to_have_count(0)
    second.get_by_role("link", name="Compare with the answer before").click()
    expect(page.get_by_role("heading", name="Compare runs")).to_be_visible()
    page.go_back()
    second.get_by_role("button", name="Edit the question and ask again").click()
    words = second.get_by_label("The question, to change")
    expect(words).to_have_value(QUESTION)
    reader.accessible("editing a question")
    reader.pictures("edit-question")
    words.fill("And who tends it?")
    page.keyboard.press("Escape")
    expect(second.get_by_role("heading", level=2)).to_have_text(QUESTION)
    second.get_by_role("button", name="Edit the question and ask again").click()
    words.fill(f"{QUESTION} Say when.")
    page.keyboard.press("Enter")
    third = reader.turns.nth(2)
    expect(third.locator(".answer")).to_be_visible()
    expect(third.get_by_role("heading", level=2)).to_have_text(f"{QUESTION} Say when.")
    expect(second.get_by_role("heading", level=2)).to_have_text(QUESTION)
    assert served.run(reader.run_of(third))["mode"] == "thorough"


def test_thumbs_are_in_sight_and_the_answer_is_copied_with_its_sources(served: Desk, model: Model, reads: Reads):
    model.plays(researcher())
    reader = reads(served, permissions=["clipboard-read", "clipboard-write"])
    page = reader.goes()
    turn = reader.asks(QUESTION)
    helps = turn.get_by_role("button", name="It is right and helps")
    helps.click()
    expect(helps).to_have_attribute("aria-pressed", "true")
    given = served.api("/api/feedback")["feedback"][0]
    assert (given["run"], given["kind"]) == (reader.run_of(turn), "helpful")
    reader.accessible("thumbs")
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == served.api(f"/api/runs/{reader.run_of(turn)}/answer", params={"format": "markdown"})
    assert "**Sources**" in copied


def test_a_question_is_asked_with_one_of_the_connected_models(tmp_path: Path, reads: Reads):
    model = Model()
    model.plays(researcher())
    with desk(tmp_path / "workspace", NOTES, model, llm_fallback_model="other", llm_size="large") as opened:
        reader = reads(opened)
        page = reader.goes()
        page.get_by_label("Model", exact=True).select_option("other")
        first = reader.asks(QUESTION)
        expect(first.locator(".answer")).to_be_visible()
        assert opened.run(reader.run_of(first))["models"] == ["other"]
        assert {request["model"] for request in model.server.requests} == {"other"}
        reader.pictures("two-models")
        reader.accessible("a menu of models")
        first.get_by_text("Ask again", exact=True).click()
        first.get_by_role("button", name="With scripted", exact=True).click()
        second = reader.turns.nth(1)
        expect(second.locator(".answer")).to_be_visible()
        assert opened.run(reader.run_of(second))["models"] == ["scripted"]
        refused = httpx.post(f"{opened.url}/api/runs", json={"question": QUESTION, "named": "third"})
        assert refused.status_code == 400
        assert refused.json()["detail"] == "No model 'third' is connected. There is: scripted, other."
        page.close()
