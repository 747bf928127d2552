"""The page draws some events specially. Every kind it names must be one that a run can have."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from serving import Served

from assay.core.events import KINDS
from assay.core.events.describe import Family
from assay.serve.routes.system import WEB

Serve = Callable[..., AbstractContextManager[Served]]

HANDLER = re.compile(r"^  ([A-Z][a-z]+(?:[A-Z][a-z]+)*)(?=\(|: )", re.MULTILINE)  # a key of an object of handlers
COMPARED = re.compile(r"kind(?:\))? [!=]== \"([A-Z][A-Za-z]+)\"")  # kind === "Decided"
LISTED = re.compile(r"(?:new Set\(|^  if \(|return )\[((?:\"[A-Z][A-Za-z]+\"(?:, )?)+)\]", re.MULTILINE)
ONLY_DESCRIBED = {
    "AccountChanged",
    "DocumentEdited",
    "DocumentMarked",
    "FeedbackGiven",
    "Compacted",
    "Erased",
    "Granted",
    "Narrowed",
    "SettingChanged",
    "Withheld",
}  # shown by their title and line alone
FILES = ("timeline", "event", "stages", "story")  # those that know single kinds


def named_kinds(text: str) -> set[str]:
    """The kinds of events that a script names: as handlers, in comparisons, in lists."""
    listed = {name for found in LISTED.findall(text) for name in re.findall(r"[A-Za-z]+", found)}
    inline = set(re.findall(r"\b([A-Z][A-Za-z]+): \"", text))  # STAGES: { Asked: "…" }
    return {*HANDLER.findall(text), *COMPARED.findall(text), *listed, *inline}


@pytest.mark.parametrize("name", FILES)
def test_every_event_that_the_page_names_exists(name: str) -> None:
    named = named_kinds((WEB / "runs" / f"{name}.js").read_text())
    assert named, "the expressions find nothing in this file any more"
    assert named <= set(KINDS), f"unknown events: {sorted(named - set(KINDS))}"


def test_a_new_event_needs_a_decision_on_how_the_page_draws_it() -> None:
    drawn = {kind for name in FILES for kind in named_kinds((WEB / "runs" / f"{name}.js").read_text())}
    assert drawn | ONLY_DESCRIBED == set(KINDS)


@pytest.mark.parametrize("script", sorted(WEB.rglob("*.js")), ids=lambda each: each.stem)
def test_no_other_script_names_an_event(script) -> None:
    if script.stem in FILES:
        return
    text = script.read_text()
    compared = set(COMPARED.findall(text))
    quoted = set(re.findall(r"\"([A-Z][A-Za-z]+)\"", text)) & {each for each in KINDS if re.search("[a-z][A-Z]", each)}
    assert not compared | quoted, "events are handled in timeline, event, stages and story alone"


def test_the_page_knows_every_family() -> None:
    words = re.search(r"FAMILY_WORDS = \{(.*)\}", (WEB / "runs" / "timeline.js").read_text())
    assert words is not None
    assert set(re.findall(r"(\w+): \"", words[1])) == set(Family)


def test_every_kind_reaches_the_page_and_every_event_comes_described(serve: Serve) -> None:
    with serve() as at, at.client() as client:
        assert set(client.get("/api/me").json()["event_kinds"]) == set(KINDS)
        run = client.post("/api/ask", json={"question": "How many litres does the kettle hold?"}).json()["id"]
        for event in client.get(f"/api/runs/{run}/events", params={"format": "json"}).json()["events"]:
            assert event["kind"] in KINDS and event["title"] and event["family"] in set(Family)
