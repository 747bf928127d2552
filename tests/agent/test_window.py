"""What a model is shown of a run: never more than fits, older results in short, and the keys as they are."""

from __future__ import annotations

from typing import Any

import pytest
from doubles import keys_in, passages_in
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.agent import prompt_window
from assay.agent.steps.decide import same_call
from assay.answer.weigh import evidence_key, quote
from assay.core.events import (
    Asked,
    Call,
    Compacted,
    Decided,
    Found,
    Gathered,
    Judged,
    Planned,
    Resumed,
    StepAnswered,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Evidence, Passage, Plan, PlanStep
from assay.models.cost import estimate_tokens
from assay.prompts import fence, fence_mark

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=400)
PLAIN = st.lists(
    st.sampled_from("the tower of light is 31 metres Tall, and Carrow Point ⟦end⟧ key: abcd1234".split()), max_size=60
)


def passage(id: str, words: str) -> Passage:
    return Passage(id, f"d{id}", words, 0, len(words))


def evidence(id: str, words: str, score: float = 5.0, note: str = "") -> Evidence:
    own = passage(id, words)
    return Evidence(evidence_key(own), own, quote(own, 0, len(words)), score, "q", note)


def asked() -> Run:
    return Run("r1", (Asked("What is it?", "local", "2026-01-01"),))


def round_of(run: Run, *queries: str, found: tuple[Passage, ...] = (), note: str = "", **how: Any) -> Run:
    """The run with one more round of searches, each of which found these."""
    first = len(run.calls) + 1
    made = tuple(Call(f"c{n}", "search", {"query": query, "k": 8}) for n, query in enumerate(queries, first))
    run = run.then(Decided(made, "", **how))
    for call in made:
        run = run.then(ToolRan(call.id, tuple(Found(each, n, 1.0) for n, each in enumerate(found)), note))
    return run


@st.composite
def runs(draw: st.DrawFn) -> Run:
    run = asked()
    for _ in range(draw(st.integers(0, 6))):
        queries = draw(st.lists(WORDS, min_size=1, max_size=4))
        run = round_of(run, *queries, note=draw(WORDS), hops=draw(st.booleans()))
        if draw(st.booleans()) and (told := prompt_window.compaction_due(run, draw(st.integers(64, 4000)))):
            run = run.then(told)
    texts = draw(st.lists(st.one_of(WORDS, PLAIN.map(" ".join)).filter(str.strip), max_size=12, unique=True))
    pieces = [evidence(str(n), words, n % 11, draw(WORDS)) for n, words in enumerate(texts)]
    return run.then(Gathered(tuple(pieces))).then(Judged(False, ("more",)))


@given(runs(), st.integers(1, 3000))
@settings(max_examples=150)
def test_what_is_shown_never_takes_more_than_the_room_it_has(run: Run, room: int):
    assert (
        estimate_tokens(prompt_window.render_searches(run, room)) <= room
        or prompt_window.render_searches(run, room) == "Nothing was searched yet."
    )
    if run.evidence:
        assert estimate_tokens(prompt_window.render_evidence(run, {}, room)) <= room


@given(runs(), st.integers(100, 3000))
@settings(max_examples=80)
def test_every_key_that_is_shown_is_evidence_of_the_run_and_what_is_left_out_is_counted(run: Run, room: int):
    shown = prompt_window.render_evidence(run, {each.passage.doc_id: "a ⟦title⟧" for each in run.evidence}, room)
    keys = list(passages_in(shown))
    assert keys == [each.key for each in run.evidence[: len(keys)]]  # the best ones, in order, each as it is
    left = len(run.evidence) - len(keys)
    assert (f"(and {left} more" in shown) == bool(left)
    if not run.evidence:
        assert shown == "nothing yet"


def test_results_are_told_in_short_after_every_third_round_and_following_names_is_none():
    run = asked()
    for number in range(1, 10):
        run = round_of(run, f"tower {number}")
        run = round_of(run, f"lamp {number}", hops=True)
        told = prompt_window.compaction_due(run, 8192)
        assert (told is not None) == (number >= 3 and number % 2 == 1), number
        if told:
            run = run.then(told)
            assert prompt_window.compaction_due(run, 8192) is None
    shown = prompt_window.render_searches(run, 10_000)
    assert "Searched earlier, with nothing useful: tower 1; lamp 1; tower 2; lamp 2" in shown
    assert shown.count("tower 9") == 1 and "search(query='tower 9')" in shown and "search(query='tower 1')" not in shown


def test_results_are_told_in_short_as_soon_as_they_fill_the_window():
    run = round_of(round_of(asked(), *[f"tower {n} " * 12 for n in range(9)]), "lamp")
    assert prompt_window.compaction_due(run, 100_000) is None
    told = prompt_window.compaction_due(run, 600)
    assert told is not None and told.calls == tuple(f"c{n}" for n in range(1, 10))  # the last round stays as it is
    again = run.then(told)
    assert estimate_tokens(prompt_window.render_searches(again, 10**6)) < estimate_tokens(
        prompt_window.render_searches(run, 10**6)
    )


def test_keys_stay_what_they_are_when_the_results_they_came_with_are_told_in_short():
    tall, lamp = evidence("1", "The tower is 31 metres tall."), evidence("2", "The lamp is lit.", 9.0)
    run = asked()
    for n, piece in enumerate((tall, lamp, tall), 1):
        run = round_of(run, f"search {n}", found=(piece.passage,)).then(Gathered((piece,)))
    before = prompt_window.render_evidence(run, {}, 2000)
    told = prompt_window.compaction_due(run, 8192)
    assert told is not None and "with useful results: search 1; search 2" in told.summary
    run = run.then(told)
    assert prompt_window.render_evidence(run, {}, 2000) == before and keys_in(before) == [lamp.key, tall.key]
    assert {each.key: each.quote.text for each in run.evidence}[tall.key] == "The tower is 31 metres tall."
    assert isinstance(run.events[-1], Compacted) and "search(query='search 3')" in prompt_window.render_searches(
        run, 500
    )


def test_a_steps_place_is_filled_with_what_was_found_and_a_step_waits_for_what_it_needs():
    steps = (
        PlanStep("s1", "Who built it?", binds="builder"),
        PlanStep("s2", "Where was {s1} born?", ("s1",), query="{builder} born"),
        PlanStep("s3", "How tall is it?"),
        PlanStep("s4", "Who taught {s2}?", ("s2",)),
    )
    run = asked().then(Planned(Plan(steps)))
    assert [step.id for step in prompt_window.ready_steps(run)] == ["s1", "s3"]
    assert prompt_window.fill_placeholders("{s1} born", run) == "{s1} born"
    run = run.then(StepAnswered("s1", "Maud Ellery", ("k",)))
    assert [step.id for step in prompt_window.ready_steps(run)] == ["s2", "s3"]
    assert (
        prompt_window.fill_placeholders("{ s1 } · {builder} · {nobody}", run) == "Maud Ellery · Maud Ellery · {nobody}"
    )
    assert (
        "s1: Who built it? — found: Maud Ellery\ns2: Where was Maud Ellery born? — open"
        in prompt_window.render_steps(run)
    )
    assert "s4: Who taught (the s2 that s2 finds)? — open" in prompt_window.render_steps(run)
    assert prompt_window.wanted_parts(run) == ("Who built it?", "Where was Maud Ellery born?", "How tall is it?")


def test_what_is_missing_is_looked_for_when_passages_are_weighed():
    run = asked().then(Planned(Plan((PlanStep("s1", "Who built it, and when?"),)))).then(Judged(False, ("the year",)))
    assert prompt_window.wanted_parts(run) == ("Who built it, and when?", "the year")


def test_what_is_missing_is_what_was_judged_to_be_and_a_persons_words_come_first():
    run = asked().then(Judged(False, ("the height", "the year")))
    assert prompt_window.render_missing(run) == "Still missing:\n" + fence(
        fence_mark(run.id), "missing", "the height\nthe year"
    )
    wished = run.then(Resumed("other words", "beam lantern"))
    assert prompt_window.render_missing(wished) == "Still missing:\n" + fence(
        fence_mark(run.id), "missing", "beam lantern\nthe height\nthe year"
    )
    assert prompt_window.render_missing(asked()) == ""


CALL = Call("c1", "search", {"query": "height of the tower", "k": 8})


@pytest.mark.parametrize(
    ("tool", "given", "same"),
    [
        ("search", {"query": "tower height"}, True),
        ("search", {"query": "The HEIGHT of towers?"}, True),
        ("search", {"query": "height of the tower", "k": 20}, True),
        ("search", {"query": "height of the lamp"}, False),
        ("search", {"query": "tower"}, False),
        ("search", {"query": "height of the tower", "since": "2024"}, False),
        ("search_all", {"query": "height of the tower"}, False),
    ],
)
def test_a_call_is_the_same_but_for_the_order_and_form_of_its_words(tool: str, given: dict[str, Any], same: bool):
    other = Call("c2", tool, given)
    assert same_call(CALL, other) is same_call(other, CALL) is same


def test_calls_of_nothing_but_small_words_are_told_apart_by_the_words():
    of, what = (Call("c", "search", {"query": words}) for words in ("to be or not", "what is it"))
    assert same_call(of, of) and not same_call(of, what)
