"""Trust on the page: an answer that a second person lets through, access that is given and taken, people and their keys,
reports, and a run that is done again from one of its steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from browser_session import PHONE, Desk, Model, Reader, desk, done, until
from lighthouse import NOTES, TALL, finder
from notes import filled
from playwright.sync_api import expect

from assay.core.access import LOCAL
from assay.serve.state import ServeOptions
from assay.store.access import grants, members, tokens
from assay.workspace.facade import open_workspace

PASSWORD = "a lamp on the pier"
ASKED = "How tall is the tower at Carrow Point?"
SAID = "The Carrow Point tower is 31 metres tall."  # what the model makes of it
WROTE = "The tower at Carrow Point is 31 metres tall."  # and the reviewer
Reads = Callable[..., Reader]


@dataclass(frozen=True)
class Team:
    desk: Desk
    keys: dict[str, str]

    def api(self, who: str, path: str, **given: Any) -> Any:
        return self.desk.api(path, headers={"Authorization": f"Bearer {self.keys[who]}"}, **given)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model()


@pytest.fixture(scope="module")
def team(model: Model, tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Team]:
    """An editor, who owns the notes, reviews and looks after the others, and a reader whom the notes are shared with."""
    folder = tmp_path_factory.mktemp("trust") / "workspace"
    few = {title: NOTES[title] for title in ("Lamp room", "Tower", "Path")}
    done(filled(folder, few))
    with open_workspace(folder) as opened, patch.object(members, "COST", 2**10):  # time is not what is tested
        members.add(opened.store, "editor", admin=True, password=PASSWORD)
        members.add(opened.store, "reader", password=PASSWORD)
        members.transfer_ownership(opened.store, opened.context.cache, LOCAL.id, "editor")
        grants.share(opened.store, grants.every_base(opened.store)[0], "user:reader")
        keys = {name: tokens.new_key(opened.store, name) for name in ("editor", "reader")}
    with desk(folder, None, model, ServeOptions(auth="keys"), review_four_eyes=True) as served:
        yield Team(served, keys)


@pytest.fixture
def sits(reads: Reads, team: Team) -> Callable[..., Reader]:
    """`sits("reader")` is that person at the page, signed in."""

    def sit(name: str, **context: Any) -> Reader:
        reader = reads(team.desk, **context)
        signed = reader.context.request.post(f"{team.desk.url}/api/session", data={"name": name, "password": PASSWORD})
        assert signed.ok, signed.text()
        return reader

    return sit


def tall() -> Any:
    return finder(TALL, f"{SAID[:-1]} [{{31 metres}}].")


def test_an_answer_waits_is_edited_checked_again_approved_and_read_by_whoever_asked(
    sits: Callable[..., Reader], team: Team, model: Model
):
    model.plays(tall())
    asker = sits("reader")
    page = asker.goes()
    page.get_by_role("button", name=re.compile("^Options")).click()
    page.get_by_label("High stakes: have it reviewed").check()
    page.get_by_label("Your question").fill(ASKED)
    page.get_by_role("button", name="What would it take?").click()
    expect(page.get_by_role("table", name=re.compile("^Forecast"))).to_contain_text(
        re.compile("model calls.*tokens.*time")
    )
    turn = asker.asks(ASKED)
    held = turn.get_by_role("region", name="Waits for a reviewer")
    expect(held).to_contain_text("whoever asked says that much depends on it")
    expect(page.get_by_role("main")).not_to_contain_text(SAID)  # nothing of the draft is theirs yet
    expect(page.get_by_role("main")).not_to_contain_text(
        "31 metres"
    )  # nor the evidence, which without a model is the draft
    expect(held).to_contain_text(re.compile(r"Searched (once|\d+ times), \d+ passages? weighed\."))
    asker.picture("held")

    reviewer = sits("editor")
    desk_ = reviewer.goes("#/documents")
    link = desk_.get_by_role("navigation", name="Screens", exact=True).get_by_role("link", name="Activity")
    expect(link).to_have_accessible_name("Activity 1 waiting for you")
    link.click()
    desk_.get_by_role("navigation", name="Activity").get_by_role("link", name="Reviews 1 waiting for you").click()
    desk_.get_by_role("list", name="Waiting reviews").get_by_role("link", name=ASKED).click()
    expect(desk_.get_by_role("region", name="Why it was held")).to_contain_text("much depends on it")
    sheet, statement = desk_.get_by_role("main"), desk_.locator(".statement")
    expect(statement).to_contain_text(SAID)
    expect(statement.get_by_role("button", name="Verdict: Supported. Why?")).to_be_visible()
    expect(desk_.get_by_role("complementary", name="Evidence")).to_contain_text(TALL)
    reviewer.accessible("review")
    reviewer.picture("review")
    statement.get_by_role("button", name=re.compile("^Source 1")).click()
    expect(desk_.get_by_role("complementary", name="Tower").locator("mark")).to_contain_text("31 metres")
    desk_.get_by_role("button", name="Trace", exact=True).click()
    expect(desk_.get_by_role("complementary", name="Trace")).to_contain_text("Awaiting review")

    statement.get_by_role("button", name="Edit statement 1").click()
    desk_.get_by_label("Statement 1, in your words").fill(WROTE)
    reviewer.picture("review-editing")
    desk_.get_by_label("Note").fill("Shorter")
    expect(desk_.get_by_role("button", name="Approve exactly this")).to_be_hidden()  # not before the check
    desk_.get_by_role("button", name="Check my edits").click()
    expect(sheet).to_contain_text("Your edits were checked.")
    expect(statement).to_contain_text(WROTE)
    expect(statement).to_contain_text("edited by editor")
    expect(desk_.get_by_text("editor edited it (1 statement)")).to_be_visible()

    run = asker.run_of(turn)
    seal = team.api("editor", f"/api/reviews/{run}")["seal"]
    again = {"decision": "edit", "seal": seal, "edits": [{"place": 0, "text": TALL}]}
    team.api("editor", f"/api/reviews/{run}/decision", json=again)  # meanwhile, somewhere else
    until(lambda: team.api("editor", f"/api/reviews/{run}")["state"] == "waiting")
    reviewer.foresees("status of 400")
    desk_.get_by_role("button", name="Approve exactly this").click()
    expect(sheet).to_contain_text("The draft has changed since you opened it")
    expect(statement).to_contain_text(TALL)
    desk_.get_by_role("button", name="Reject").click()
    expect(desk_.get_by_text("Say why: whoever asked sees this note.")).to_be_visible()  # and nothing was sent
    desk_.get_by_role("button", name="Approve exactly this").click()
    expect(sheet).to_contain_text("Approved. reader can read exactly this.")
    expect(link).to_have_accessible_name("Activity")

    until(lambda: team.api("reader", f"/api/runs/{run}")["state"] == "delivered")
    page.reload()
    expect(turn.locator(".claim")).to_contain_text(TALL)
    expect(turn).to_contain_text("Reviewed by editor")
    expect(turn.locator(".claim")).to_contain_text("edited by editor")
    asker.picture("reviewed")


def test_whoever_asked_cannot_decide_and_reads_why_it_was_rejected(
    sits: Callable[..., Reader], team: Team, model: Model
):
    model.plays(tall())
    own = team.api("editor", "/api/ask", json={"question": ASKED, "stakes": "high"})["id"]
    other = team.api("reader", "/api/ask", json={"question": ASKED, "stakes": "high", "talk": True})
    reviewer = sits("editor", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    page = reviewer.goes(f"#/review/{own}")
    expect(page.get_by_text("You cannot decide this.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve exactly this")).to_have_count(0)
    reviewer.goes(f"#/review/{other['id']}")
    page.get_by_label("Note").fill("The survey of 1990 is out of date.")
    reviewer.fits()
    reviewer.accessible("review on a phone, dark")
    reviewer.picture("dark-review")
    page.get_by_role("button", name="Reject").tap()
    expect(page.get_by_role("main")).to_contain_text("Rejected. reader sees your note, and not the draft.")
    asker = sits("reader")
    told = asker.goes(f"#/thread/{other['thread']}").get_by_role("region", name="Not approved")
    expect(told).to_contain_text("Not approved by editor")
    expect(told).to_contain_text("The survey of 1990 is out of date.")
    expect(asker.page.get_by_role("main")).not_to_contain_text(SAID)


def test_access_that_is_taken_away_blanks_what_was_answered_and_comes_back_when_it_is_given(
    sits: Callable[..., Reader], team: Team, model: Model
):
    model.plays(tall())
    run = team.api("reader", "/api/ask", json={"question": ASKED, "talk": True})
    reader, owner = sits("reader"), sits("editor")
    read = reader.goes(f"#/thread/{run['thread']}")
    expect(read.locator(".answer")).to_contain_text("31 metres")
    page = owner.goes("#/documents/default")
    page.get_by_role("button", name="Who may read it").click()
    allowed = page.get_by_role("dialog").get_by_role("list", name="Who may read it")
    expect(allowed.get_by_role("listitem")).to_have_text([re.compile("^editor"), "reader"])
    owner.accessible("access")
    owner.picture("access")
    page.get_by_role("button", name="Take access from reader").click()
    expect(allowed.get_by_role("listitem")).to_have_count(1)
    read.reload()
    expect(read.get_by_role("region", name="Withheld")).to_contain_text("may not read any more")
    expect(read.get_by_role("main")).not_to_contain_text("31 metres")
    reader.goes(f"#/run/{run['id']}")
    expect(read.get_by_text(re.compile("^Not shown: ")).first).to_be_visible()
    expect(read.get_by_role("main")).not_to_contain_text("31 metres")
    reader.goes("#/documents")
    expect(read.get_by_role("heading", name="Begin with your documents")).to_be_visible()
    page.get_by_label("Name").fill("reader")
    page.get_by_role("button", name="Give access").click()
    expect(allowed.get_by_role("listitem")).to_have_count(2)
    reader.goes(f"#/thread/{run['thread']}")
    expect(read.locator(".answer")).to_contain_text("31 metres")


def test_a_shared_knowledge_base_is_offered_accepted_and_left(sits: Callable[..., Reader], team: Team):
    team.api("editor", "/api/bases", json={"name": "letters", "description": "What the keeper wrote."})
    team.api("editor", "/api/bases/letters/access", json={"name": "user:reader", "may": True})
    reader = sits("reader")
    page = reader.goes("#/documents")
    offers = page.get_by_role("list", name="Offered knowledge bases")
    expect(offers).to_contain_text("editor shares “letters” with you.")
    expect(page.get_by_role("link", name="letters")).to_have_count(0)
    reader.accessible("offers")
    offers.get_by_role("button", name="Accept").click()
    page.get_by_role("link", name="letters").click()
    page.get_by_role("button", name="Leave it: the knowledge base letters").click()
    reader.foresees("404")  # something of its screen may still be on the way
    page.get_by_role("dialog").get_by_role("button", name="Leave it").click()
    expect(page.get_by_role("list", name="Knowledge bases", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="letters")).to_have_count(0)
    expect(offers).to_contain_text("You declined or left it.")


def test_one_document_has_a_list_of_its_own_and_is_erased_with_a_plain_word(sits: Callable[..., Reader], team: Team):
    path = next(each["id"] for each in team.api("editor", "/api/documents")["documents"] if each["title"] == "Path")
    owner = sits("editor")
    page = owner.goes(f"#/document/{path}")
    page.get_by_role("button", name="Who may read it").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It has no list of its own")
    dialog.get_by_role("button", name="Take access from reader").click()
    expect(dialog).to_contain_text("It has a list of its own")
    assert "Path" not in {each["title"] for each in team.api("reader", "/api/documents")["documents"]}
    dialog.get_by_role("button", name="Back to the base's list").click()
    expect(dialog).to_contain_text("It has no list of its own")
    assert "Path" in {each["title"] for each in team.api("reader", "/api/documents")["documents"]}
    dialog.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("its words in every answer and record of a run")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("list", name="Documents").get_by_role("listitem")).to_have_count(2)


def test_people_are_added_and_changed_and_a_key_is_shown_once(sits: Callable[..., Reader], team: Team):
    admin = sits("editor")
    page = admin.goes("#/people")
    expect(page.get_by_role("list", name="People").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="Add a person").click()
    page.get_by_label("Name").fill("auditor")
    page.get_by_label("Groups").fill("keepers, night watch")
    page.get_by_role("dialog").get_by_role("button", name="Add", exact=True).click()
    row = page.get_by_role("listitem").filter(has_text="auditor")
    expect(row).to_contain_text("In keepers, night watch")
    admin.picture("people")
    page.get_by_role("button", name="Remove auditor").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("list", name="People").get_by_role("listitem")).to_have_count(2)
    member = sits("reader")
    page = member.goes("#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("What it is for").fill("a nightly script")
    page.get_by_role("button", name="Make it").click()
    key = page.get_by_label("The key", exact=True).input_value()
    page.get_by_role("button", name="I have it").click()
    expect(page.get_by_role("list", name="API keys")).to_contain_text("a nightly script")
    assert key not in page.content()
    assert team.desk.api("/api/me", headers={"Authorization": f"Bearer {key}"})["name"] == "reader"


def test_reports_are_drawn_told_in_tables_and_taken_away_as_csv(sits: Callable[..., Reader], team: Team, model: Model):
    model.plays(tall())
    team.api("editor", "/api/ask", json={"question": ASKED})
    reader = sits("editor")
    page = reader.goes("#/reports")
    for name in ("Runs", "Tools", "Overrides", "Iterations", "Forecasts"):
        page.get_by_role("navigation", name="Which report").get_by_role("link", name=name).click()
        path = f"/api/reports/{name.lower()}"
        report = team.api("editor", path)
        expect(page.get_by_role("heading", name=report["title"], exact=True).first).to_be_visible()
        if report["rows"]:
            expect(page.locator(".report-table tbody tr")).to_have_count(min(200, len(report["rows"])))
            expect(page.get_by_role("img", name=re.compile("chart: "))).to_have_count(len(report["charts"]))
        if name == "Runs":
            reader.accessible(f"report {name}")
        reader.picture(f"report-{name.lower()}")
    reader.goes("#/reports/runs")
    with page.expect_download() as taking:
        page.get_by_role("link", name="CSV").click()
    asked = team.api("editor", "/api/reports/runs", params={"format": "csv"})
    assert Path(taking.value.path()).read_bytes() == asked.encode()
    page.get_by_label("To").fill("2001-01-01")
    expect(page.get_by_role("heading", name="Nothing in this time")).to_be_visible()
    page.get_by_role("button", name="Verify all records").click()
    expect(page.get_by_role("main")).to_contain_text(re.compile("The record is unsealed since .* [1-9][0-9]* entries"))


def test_an_operator_sees_what_is_watched_and_whether_the_server_is_ready(
    sits: Callable[..., Reader], team: Team, model: Model
):
    model.plays(tall())
    team.api("editor", "/api/ask", json={"question": ASKED})
    reader = sits("editor")
    page = reader.goes()
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Activity").first.click()
    page.get_by_role("link", name="Health", exact=True).click()
    expect(page.get_by_role("region", name="The server")).to_contain_text("The server is ready for questions.")
    report = team.api("editor", "/api/reports/health")
    lines = page.get_by_role("region", name="Watched figures").locator("tbody tr")
    expect(lines).to_have_count(len(report["rows"]))
    places = {column["name"]: at for at, column in enumerate(report["columns"])}
    words = {"ok": "within its limit", "alarm": "alarm", "–": "no data"}
    for at, row in enumerate(report["rows"]):
        expect(lines.nth(at)).to_contain_text(row[places["about"]])
        expect(lines.nth(at)).to_contain_text(words[row[places["state"]]])
    reader.accessible("health")
    failing = {"ready": False, "problems": ["The embedder cannot be loaded."]}
    page.route("**/ready", lambda route: route.fulfill(status=503, json=failing))
    reader.foresees("503")
    page.get_by_role("button", name="Look again").click()
    expect(page.get_by_role("region", name="The server")).to_contain_text("The embedder cannot be loaded.")
    member = sits("reader").goes("#/runs")
    expect(member.get_by_role("link", name=re.compile("^Reports"))).to_be_visible()
    expect(member.get_by_role("link", name="Health")).to_have_count(0)


def test_a_run_is_done_again_from_a_step_and_compared_with_what_it_was(
    sits: Callable[..., Reader], team: Team, model: Model
):
    model.plays(tall())
    first = team.api("editor", "/api/ask", json={"question": ASKED, "talk": True})["id"]
    model.plays(finder(TALL, "The tower of the lighthouse at Carrow Point stands 31 metres tall [{31 metres}]."))
    reader = sits("editor")
    page = reader.goes(f"#/run/{first}")
    draft = page.locator("li[data-seq]").filter(has_text="Draft").first
    draft.locator("summary").click()
    draft.get_by_role("button", name="Re-run from here").click()
    expect(page.get_by_role("dialog")).to_contain_text("As before")
    page.get_by_role("dialog").get_by_role("button", name="Re-run").click()
    expect(page.get_by_text("Begun from another run at event")).to_be_visible()
    second = page.url.rpartition("/")[2]
    assert second != first
    until(lambda: team.api("editor", f"/api/runs/{second}")["state"] == "delivered")
    page.get_by_role("link", name="Compare the two").click()
    statements = page.get_by_role("region", name="Statements")
    expect(statements).to_contain_text("stands 31 metres tall")
    expect(statements).to_contain_text("is 31 metres tall")
    expect(page.get_by_text(re.compile("^The same in both: ")).first).to_contain_text("evidence")
    reader.accessible("diff")
    reader.picture("diff")
    with page.expect_download() as taking:
        reader.goes(f"#/run/{first}").get_by_role("button", name="Audit bundle").click()
    assert Path(taking.value.path()).read_bytes().startswith(b"PK")
