"""Events as earlier versions stored them, read as those of today."""

from __future__ import annotations

import pytest

from assay.core.events import (
    DECIDES,
    KINDS,
    RULES,
    Asked,
    AwaitingReview,
    Checked,
    Decided,
    Drafted,
    Fallback,
    Gathered,
    InsightsDrawn,
    Judged,
    Revised,
    RevisionCause,
    SpineWritten,
    StopReason,
)
from assay.core.events.upgrade import FORMER_KINDS, current_kind, read_event, stored_kinds


def test_every_former_name_leads_to_a_kind_of_today():
    assert all(new in KINDS and old not in KINDS for old, new in FORMER_KINDS.items())
    assert current_kind("Held") == "AwaitingReview" and current_kind("Asked") == "Asked"
    assert set(stored_kinds(AwaitingReview, "Asked")) == {"AwaitingReview", "Held", "Asked"}


def test_a_run_that_names_no_version_is_of_version_0():
    data = {"question": "Why?", "who": "local", "today": "2026-01-01"}
    old = read_event("Asked", data)
    assert isinstance(old, Asked) and old.version == 0
    assert Asked("Why?", "local", "2026-01-01").version == DECIDES and "version" not in data


@pytest.mark.parametrize(
    ("data", "stop", "why"),
    [
        ({"why": "covered"}, StopReason.sufficient, "covered"),
        ({"why": "limit"}, StopReason.searches, "limit"),
        ({"why": "nothing new"}, StopReason.nothing_new, "nothing new"),
        ({"why": "money: nothing is left"}, StopReason.money, "nothing is left"),
        ({"why": "money: it is about money", "by": "decide@m"}, StopReason.nothing_new, "money: it is about money"),
        ({"why": "repeated: x", "by": "decide@m", "refused": ["x"]}, StopReason.repeated, "repeated: x"),
        ({"why": "covered", "hops": True}, None, "covered"),
    ],
)
def test_why_nothing_was_left_to_try_is_a_field(data: dict, stop: StopReason | None, why: str):
    decided = read_event("Decided", {"calls": [], "by": RULES} | data)
    assert isinstance(decided, Decided) and (decided.stop, decided.why) == (stop, why)
    assert decided.fallback == ((Fallback.money,) if stop is StopReason.money else None)


def test_why_rules_stood_in_is_a_field():
    drew = read_event("Drew", {"question": "q1", "insights": [], "by": "insights@m; rules: money"})
    assert isinstance(drew, InsightsDrawn) and (drew.by, drew.fallback) == ("insights@m", (Fallback.money,))
    gathered = read_event("Gathered", {"evidence": [], "by": "rules: time", "why": "time: none is left"})
    assert isinstance(gathered, Gathered) and (gathered.by, gathered.why) == (RULES, "none is left")
    assert gathered.fallback == (Fallback.time,)
    judged = read_event("Judged", {"enough": False, "why": "calls: none is left", "by": RULES})
    assert isinstance(judged, Judged) and (judged.fallback, judged.why) == ((Fallback.calls,), "none is left")


def test_what_made_a_revision_is_a_field():
    recited = read_event("Revised", {"place": 0, "why": "cited anew, since other evidence says it: no", "by": RULES})
    edited = read_event("Revised", {"place": 0, "why": "edited in review", "by": "review: ann"})
    usual = read_event("Revised", {"place": 0, "why": "it is not said", "by": RULES})
    assert [each.cause for each in (recited, edited, usual) if isinstance(each, Revised)] == [
        RevisionCause.recited,
        RevisionCause.review,
        None,
    ]


def test_whether_a_sentence_of_the_spine_only_lists_words_is_a_field():
    listed = {"text": "“A” and “B”: tides.", "cites": ["k"], "why": "each of these documents uses these words"}
    old = [{"claim": listed, "documents": ["a", "b"]}, {"claim": listed | {"why": "it follows"}, "documents": ["a"]}]
    new = {"claim": listed, "documents": ["a", "b"], "lists": False}  # a model may give the same reason
    spine = read_event("Spun", {"theme": "", "spine": [*old, new], "themes": []})
    assert isinstance(spine, SpineWritten) and [each.lists for each in spine.spine] == [True, False, False]


def test_what_no_version_has_written_is_refused():
    with pytest.raises(KeyError):
        read_event("Unheard", {})
    with pytest.raises(ValueError):
        read_event("Stopped", {"reason": "sufficient", "mood": "good"})


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("SpineWritten", {"theme": "", "spine": [5], "themes": []}),
        ("Described", {"portrait": 5}),
        ("Judged", {"enough": False, "why": 5}),
    ],
)
def test_values_of_another_type_are_refused_too(kind: str, data: dict):
    with pytest.raises(ValueError):
        read_event(kind, data)


def test_what_rules_noticed_is_no_longer_read_and_the_other_of_two_judgements_is_a_field():
    claim = {"text": "It leaks.", "cites": ["k"], "verdict": "supported", "why": "so it says", "disputed": True}
    noticed = ["“It” is not in the passages.", "two judgements differ: it does not"]
    old = read_event("Checked", {"place": 0, "claim": claim | {"hints": noticed}})
    assert isinstance(old, Checked) and old.claim.disputed and old.claim.objection == "it does not"
    block = {"claims": [claim | {"hints": noticed[:1]}], "heading": "", "opinion": False}
    draft = read_event("Drafted", {"blocks": [block], "shape": "prose"})
    assert isinstance(draft, Drafted) and draft.blocks[0].claims[0].objection == ""
