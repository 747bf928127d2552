"""The other screens: documents and how ready they are, the trace of a run, and a synthesis from its forecast to its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from browser_session import PHONE, Desk, Model, Reader, desk_fixtures
from doubles import synthesis_model
from lighthouse import DENIED, PAPERS, REBUILT, finder
from playwright.sync_api import expect

from assay.evaluate.grading import Graded
from assay.evaluate.user_cases import keep_evaluation

RAM = "The ram takes 12 minutes to lift the gate, because its pump is small."
Reads = Callable[..., Reader]


model, served = desk_fixtures(PAPERS)


def test_documents_are_found_a_file_that_cannot_be_read_says_why_and_what_is_removed_is_gone(
    reads: Reads, served: Desk, tmp_path: Path
):
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is no document at all")
    (tmp_path / "weir.txt").write_text("The weir was mended with oak in March, and again with larch in June.")
    reader = reads(served)
    page = reader.goes("#/documents")
    listed = page.get_by_role("list", name="Documents").get_by_role("listitem")
    expect(listed).to_have_count(3)
    with page.expect_file_chooser() as choosing:
        page.get_by_role("button", name="Add files").first.click()
    choosing.value.set_files([tmp_path / "broken.pdf", tmp_path / "weir.txt"])
    panel = page.get_by_role("region", name="Files being added")
    expect(panel).to_contain_text("1 of 2 ready · 1 could not be read")
    expect(listed).to_have_count(5)
    why = next(each["why"] for each in served.api("/api/documents")["documents"] if each["name"] == "broken.pdf")
    assert why
    expect(panel.get_by_role("listitem").filter(has_text="broken.pdf")).to_contain_text(why)
    expect(listed.filter(has_text="broken.pdf")).to_contain_text(why)
    page.get_by_role("list", name="Knowledge bases").get_by_role("link", name="default").click()
    report = page.get_by_role("region", name="Readiness")
    expect(report).to_contain_text(re.compile(r"documents ready\s*4"))
    report.get_by_text("1 file could not be read: what to do").click()
    expect(report).to_contain_text(f"broken.pdf{why}")
    reader.picture("readiness")
    page.get_by_label("Which documents").select_option("Could not be read")
    expect(listed).to_have_count(1)
    page.get_by_label("Which documents").select_option("All")
    expect(listed).to_have_count(5)
    page.get_by_label("Search documents").fill("sluice north")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("The north sluice")
    page.get_by_label("Search documents").fill("nowhere at all")
    expect(page.get_by_text("No document fits.")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    weir = listed.filter(has_text=re.compile("weir", re.I))
    weir.get_by_role("button", name=re.compile("^Remove")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This cannot be undone")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(weir).to_be_visible()  # nothing happens without a yes
    weir.get_by_role("button", name=re.compile("^Remove")).click()
    dialog.get_by_role("button", name="Remove").click()
    expect(weir).to_be_hidden()
    expect(report).to_contain_text(re.compile(r"documents ready\s*3"))
    assert "weir.txt" not in {each["name"] for each in served.api("/api/documents")["documents"]}


def test_a_document_is_switched_off_and_on_tagged_and_found_by_its_tag(served: Desk, reads: Reads):
    reader = reads(served)
    page = reader.goes("#/documents")
    listed = page.get_by_role("list", name="Documents").get_by_role("listitem")
    sluice = listed.filter(has_text="The north sluice")
    sluice.get_by_role("checkbox").check()
    page.get_by_role("button", name="Switch off").click()
    expect(sluice).to_contain_text("off")
    page.get_by_label("Which documents").select_option("Switched off")
    expect(listed).to_have_count(1)
    sluice.get_by_role("link").click()
    page.get_by_role("button", name="Tags").click()
    page.get_by_role("dialog").get_by_role("textbox").fill("gates, North")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(page.get_by_text("gates, North")).to_be_visible()
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_role("button", name="Switch off")).to_be_visible()
    page = reader.goes("#/documents")
    page.get_by_label("Search documents").fill("gates")
    expect(listed).to_have_count(1)
    expect(sluice).to_contain_text("ready")
    marked = [(each["state"], each["tags"]) for each in served.api("/api/documents")["documents"] if each["tags"]]
    assert marked == [("ready", ["gates", "North"])]


def test_a_trace_shows_what_was_done_opens_replays_and_can_be_taken_away(served: Desk, model: Model, reads: Reads):
    model.plays(finder(RAM, "The ram takes 12 minutes to lift the gate [{12 minutes}]."))
    reader = reads(served)
    page = reader.goes()
    turn = reader.asks("How long does the ram take to lift the gate?")
    run = reader.run_of(turn)
    turn.get_by_role("link", name="Trace").click()
    expect(page.get_by_role("heading", name="How long does the ram take to lift the gate?")).to_be_visible()
    trace = served.api(f"/api/runs/{run}/trace")
    expect(page.get_by_text(f"The records form one chain: {len(trace['chain'])} entries")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Timeline over"))).to_be_visible()
    rows = page.locator("[data-seq]:not(rect)")
    expect(rows).to_have_count(len(trace["events"]))
    for heading in ("Understanding the question", "Round 1", "Writing and checking"):
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    searched = page.get_by_role("listitem").filter(has_text=re.compile(r"Result.*: \d+ passages")).first
    searched.locator("summary").click()
    expect(searched).to_contain_text("Arguments")
    expect(searched).to_contain_text("How long does the ram take to lift the gate?")
    searched.get_by_text(re.compile("^The north sluice")).first.click()
    expect(searched).to_contain_text(RAM)
    reader.picture("trace")
    page.get_by_label("Find in the record").fill("draft")
    expect(rows.filter(visible=True)).to_have_count(sum(each["kind"] == "Drafted" for each in trace["events"]))
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("it comes to the same answer")).to_be_visible()
    with page.expect_download() as taking:
        page.get_by_role("button", name="Download").click()
    taken = json.loads(Path(taking.value.path()).read_text())
    assert taken["events"] == trace["events"] and taken["chain"] == trace["chain"]
    page.get_by_role("link", name="All runs").click()
    row = page.get_by_role("list", name="Runs").get_by_role("listitem").first
    expect(row).to_contain_text("How long does the ram take to lift the gate?")
    expect(row).to_contain_text("answered")
    reader.pictures("runs")


def test_a_synthesis_is_forecast_started_watched_and_read(served: Desk, model: Model, reads: Reads):
    model.plays(synthesis_model(), hold="relate")
    reader = reads(served)
    page = reader.goes("#/synthesis")
    forecast = page.get_by_role("complementary", name="Forecast")
    page.get_by_text("How thoroughly").click()
    page.get_by_label("Questions for each document").fill("1")
    page.get_by_label(re.compile("^Use the model")).uncheck()  # what only a model does is not offered then
    expect(page.get_by_label("Questions for each document")).to_be_hidden()
    expect(page.get_by_label("In plain words")).to_be_hidden()
    page.get_by_label(re.compile("^Use the model")).check()
    start = forecast.get_by_role("button", name=re.compile("^Start"))
    expect(start).to_be_enabled()
    told = served.api("/api/synthesis/forecast", json={"bases": ["default"], "questions": 1})
    expect(forecast).to_contain_text(re.compile(rf"documents\s*{told['documents']}"))
    expect(forecast).to_contain_text(told["lines"][0])
    reader.pictures("synthesis-form")
    start.click()
    stages = page.get_by_role("list", name="Stages")
    expect(stages.get_by_role("listitem").filter(has_text="Relate documents")).to_have_attribute("aria-current", "step")
    seen = page.get_by_role("region", name="Documents")
    for title in PAPERS:
        expect(seen).to_contain_text(title)
    reader.picture("synthesis-watching")
    page.reload()
    expect(stages.get_by_role("listitem").filter(has_text="Relate documents")).to_have_attribute("aria-current", "step")
    model.let()
    expect(page.get_by_role("region", name="The account")).to_be_visible()
    disputed = page.get_by_role("region", name="Where the documents disagree")  # before the text
    expect(disputed).to_contain_text(REBUILT)
    expect(disputed).to_contain_text(DENIED)
    run = page.url.rpartition("/")[2]
    made = served.api(f"/api/synthesis/{run}")
    expect(page.get_by_role("region", name="Coverage", exact=True)).to_contain_text("All 3 documents are heard.")
    drawn = page.get_by_role("img", name=re.compile(rf"^Map of {len(made['relations'])} relation"))
    expect(drawn).to_be_visible()
    page.get_by_role("region", name="The account").get_by_role("button", name=re.compile("^Source 1:")).first.click()
    expect(page.locator(".panel mark").first).to_be_visible()  # the document, at the words
    page.locator(".panel").get_by_role("button", name="Close").click()
    page.get_by_role("group", name=re.compile("^Legend")).get_by_text("contradiction 1").click()
    expect(page.get_by_role("group", name=re.compile("^Legend"))).to_contain_text(DENIED)
    reader.pictures("synthesis")
    with page.expect_download() as taking:
        page.get_by_role("link", name="Download as JSON").click()
    assert json.loads(Path(taking.value.path()).read_text()) == made
    with page.expect_download() as taking:
        page.get_by_role("link", name="Download as Markdown").click()
    assert REBUILT in Path(taking.value.path()).read_text()
    page.get_by_role("link", name="Synthesis", exact=True).first.click()
    expect(page.get_by_role("heading", name="Made before")).to_be_visible()
    expect(page.locator(".earlier").get_by_role("listitem")).to_contain_text("done")


def test_an_administrator_changes_settings_and_is_told_what_cannot_be(served: Desk, reads: Reads):
    reader = reads(served)
    reader.foresees("400 \\(Bad Request\\)")  # a reviewer without user: or group:
    page = reader.goes("#/settings")
    review = page.get_by_role("region", name="Review")
    save = page.get_by_role("button", name=re.compile("^Save"))
    expect(save).to_be_disabled()
    reader.pictures("settings")
    review.get_by_label("Review answers whose sources disagree").check()
    review.get_by_label("Reviewers", exact=True).fill("anna")
    expect(save).to_have_text("Save 2 changes")
    save.click()
    expect(page.get_by_role("alert")).to_contain_text("user:NAME or group:NAME")
    review.get_by_label("Reviewers", exact=True).fill("user:anna")
    save.click()
    expect(page.get_by_text("2 settings changed.")).to_be_visible()
    expect(save).to_be_disabled()
    page.get_by_label("Days that records are kept").fill("30")
    save.click()
    expect(page.get_by_role("dialog")).to_contain_text("erased for good")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Days that records are kept")).to_have_value("200")
    expect(page.get_by_label("Requests of one person in a minute")).to_be_disabled()  # set when the server was started
    page.set_viewport_size(PHONE)
    reader.fits()
    reader.accessible("settings")


def test_an_evaluation_shows_figures_with_intervals_the_verdict_and_runs_of_its_worst_cases(served: Desk, reads: Reads):
    run = served.api("/api/ask", json={"question": "What lifts the gate?", "model": False})["id"]
    sides = [
        (name, "balanced mode", [
            Graded(str(n), f"Question {n}?", ("hop",), run, "answered", "", "oak", {"right": float(n < right), "tokens": 9.0})
            for n in range(6)
        ])
        for name, right in (("one search", 2), ("assay", 5))
    ]  # fmt: skip
    reader = reads(served)
    page = reader.goes("#/evaluations")
    expect(page.get_by_role("heading", name="No evaluation yet")).to_be_visible()
    keep_evaluation(served.folder, "cases.csv", sides)
    page.reload()
    page.get_by_role("list", name="Evaluations").get_by_role("link", name="cases.csv").click()
    expect(page.get_by_role("main")).to_contain_text("For 33 % of your questions one search is enough.")
    figures = page.get_by_role("region", name="Figures: cases.csv")
    expect(figures.get_by_role("row").filter(has_text="right")).to_contain_text("83 % (")
    expect(page.get_by_role("region", name="By tag")).to_contain_text("hop")
    reader.accessible("evaluation")
    reader.pictures("evaluation")
    page.get_by_role("list", name="Worst cases").get_by_role("link", name="Question 5?").click()
    expect(page).to_have_url(re.compile(f"#/run/{run}$"))
    expect(page.get_by_role("main")).to_contain_text("What lifts the gate?")
