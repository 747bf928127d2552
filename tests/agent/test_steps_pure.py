"""Steps by themselves: what is weighed and how it is quoted, what may be bound, which plans can be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from doubles import passages_in, schema_of
from doubles.protocol import body_of
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.agent.context import Limits, RunContext
from assay.agent.loop import Step, next_step, play
from assay.agent.steps import gather as gathering
from assay.agent.steps.call import call
from assay.agent.steps.gather import sift_due
from assay.agent.steps.plan import PLANS, Planning, Proposed, build_plan, replan_due
from assay.agent.steps.sufficiency import bindings
from assay.agent.tool import Brief, Result, ToolContext, tool
from assay.answer import weigh
from assay.answer.weigh import BatchLimits, StepAnswer, Sufficiency, Weight, evidence_key
from assay.core.errors import ModelError
from assay.core.events import (
    Asked,
    Call,
    Decided,
    Failed,
    Found,
    Gathered,
    Judged,
    ModelReplied,
    Planned,
    Resumed,
    RoleModel,
    Route,
    Routed,
    StepAnswered,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Passage, Plan, PlanStep
from assay.language.quotation import within
from assay.models.cost import fair_share
from assay.models.llm import Prompt, Reading, Reply, Role
from assay.models.meter import ConnectedModel, Ledger, Meter

TEXT = (
    "The tower of the light-\nhouse is “31 metres” tall, as the log says. It was built by hand,\n"
    "in one summer. Nobody knows why it leans."
)


def passage(words: str, id: str = "p1") -> Passage:
    return Passage(id, f"d{id}", words, 100, 100 + len(words))


# --- quotations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "stands"),
    [
        ("Nobody knows why it leans.", "Nobody knows why it leans."),
        ("It was built by hand, in one summer.", "It was built by hand,\nin one summer."),
        ("The tower of the lighthouse is", "The tower of the light-\nhouse is"),
        ('is "31 metres" tall', "is “31 metres” tall"),
        ("“Nobody knows why it leans.”", "Nobody knows why it leans."),
        ("The tower … as the log says.", "The tower of the light-\nhouse is “31 metres” tall, as the log says."),
        ("It was built [...] in one summer", "It was built by hand,\nin one summer"),
        ("nobody knows WHY it leans", "Nobody knows why it leans"),
    ],
)
def test_a_quotation_is_found_through_white_space_hyphens_quotation_marks_and_ellipses(said: str, stands: str):
    own = passage(TEXT)
    weighed = weigh.read([Weight(id="P1", quote=said, score=8)], {"P1": own}, "how tall?", 3.0)
    (piece,) = weighed.evidence
    assert stands in piece.quote.text and within(piece.quote, own) and weighed.inexact == ()
    assert own.text[piece.quote.start - 100 : piece.quote.end - 100] == piece.quote.text


@pytest.mark.parametrize("said", ["The tower is 32 metres tall.", "", "   ", "…", "It leans because of the wind."])
def test_a_quotation_that_is_not_in_the_passage_is_replaced_by_its_best_sentence_and_that_is_recorded(said: str):
    own = passage(TEXT)
    weighed = weigh.read([Weight(id="P1", quote=said, score=8)], {"P1": own}, "Why does it lean?", 3.0)
    (piece,) = weighed.evidence
    assert piece.quote.text == "Nobody knows why it leans." and within(piece.quote, piece.passage)
    assert weighed.inexact == (piece.key,) == (evidence_key(own),)


def test_weights_under_the_cutoff_or_for_passages_that_were_not_shown_are_none_and_the_first_of_two_holds():
    shown = {
        "P1": passage("The tower is tall.", "a"),
        "P2": passage("The lamp is lit.", "b"),
        "P3": passage("No.", "c"),
    }
    given = [("P1", 9), ("P1", 4), ("P2", 2), ("P9", 10), ("a", 10), ("P3", 0)]
    weighed = weigh.read([Weight(id=id, score=score) for id, score in given], shown, "q", 3.0)
    assert [(each.passage.id, each.score) for each in weighed.evidence] == [("a", 9.0)]
    assert weighed.dropped == ("b", "c")


def test_a_score_of_nothing_is_never_evidence_however_low_the_cutoff():
    weighed = weigh.read([Weight(id="P1", score=0)], {"P1": passage(TEXT)}, "q", 0.0)
    assert weighed.evidence == () and weighed.dropped == ("p1",)


@given(st.lists(st.integers(1, 3000), max_size=40), st.integers(1, 8000), st.integers(1, 12))
@settings(max_examples=100)
def test_batches_hold_every_passage_once_in_order_and_few_enough(lengths: list[int], window: int, together: int):
    found = [Found(passage("word " * length, str(n)), n, 1.0) for n, length in enumerate(lengths)]
    groups = list(weigh.batches(found, window, BatchLimits(together=together)))
    assert [each for group in groups for each in group] == found
    assert all(len(group) <= together for group in groups)
    for group in groups:
        tokens = sum(weigh.estimate_tokens(each.passage.text) for each in group)
        assert len(group) == 1 or tokens <= BatchLimits().tokens


@given(st.lists(st.integers(1, 600), min_size=1, max_size=20), st.sampled_from((4096, 8192, 32768)))
@settings(max_examples=50)
def test_passages_of_a_batch_are_shown_uncut(lengths: list[int], window: int):
    found = [Found(passage("word " * length, str(n)), n, 1.0) for n, length in enumerate(lengths)]
    for group in weigh.batches(found, window, BatchLimits()):
        room = window - 150 - weigh.REPLY * len(group) - 600  # what the reply and the instructions leave
        values = weigh.build_prompt("Why did the alarm wait?", (), group, {}, "mark", room)
        assert "…" not in values["passages"]


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(0, 2000))
def test_a_fair_share_fills_the_room_and_no_more(needs: list[int], room: int):
    share = fair_share(needs, room)
    assert sum(min(need, share) for need in needs) <= room
    if any(need > share for need in needs):
        assert sum(min(need, share + 1) for need in needs) > room


# --- weighing -------------------------------------------------------------------------------------------------------


@dataclass
class Weigher:
    """A model that finds everything useful, and keeps what it was shown."""

    name: str = "weigher"
    shown: list[tuple[str, ...]] = field(default_factory=list)
    fails_at: int = -1

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        passages = passages_in("\n".join(message.text for message in prompt.messages))
        if len(self.shown) == self.fails_at:
            raise ModelError("gone")
        self.shown.append(tuple(passages.values()))
        weights = [{"id": id, "quote": "", "score": 7, "note": ""} for id in passages]
        assert schema_of(body_of(prompt))["properties"]["passages"]["maxItems"] == len(passages)  # type: ignore[index]
        return Reply(json.dumps({"passages": weights}))


def context(model: Any, *, small: bool = False, **more: Any) -> RunContext:
    models = {Role.weigh: (ConnectedModel(model, RoleModel("weigh", "weigher", not small, True, True, small=small)),)}
    nowhere: Any = None
    unread: Any = SimpleNamespace(answer_model=None)
    meter = Meter(models, lambda _: None, lambda _: None, Ledger())
    return RunContext(
        ToolContext(unread, nowhere), Run.then, lambda _: None, meter=meter, titled=lambda ids: {}, **more
    )


def searched(*found: Sequence[Passage]) -> Run:
    """A run whose searches have come back with these."""
    run = Run(
        "r1", (Asked("How tall is it?", "local", "2026-01-01", seats=(RoleModel("weigh", "weigher", True, True),)),)
    )
    run = run.then(Routed(Route.research, "")).then(Planned(Plan((PlanStep("s1", "How tall is it?"),))))
    run = run.then(Decided(tuple(Call(f"c{n}", "search", {"query": f"q{n}"}) for n, _ in enumerate(found)), ""))
    for n, passages in enumerate(found):
        run = run.then(ToolRan(f"c{n}", tuple(Found(each, at, 1.0) for at, each in enumerate(passages))))
    return run.then(Gathered((), skipped=()))  # sifted: nothing is passed over


async def weighed(run: Run, context: RunContext) -> Run:
    async for event in gathering.gather_by_model(run, context):
        run = run.then(event)
    return run


NOTES = [passage(f"The tower of yard {n} is {n} metres tall.", f"n{n:02}") for n in range(10)]


async def test_a_passage_that_several_searches_bring_up_is_weighed_once():
    model = Weigher()
    run = await weighed(searched(NOTES[:6], NOTES[3:9], NOTES[:2]), context(model))
    assert sorted(words for request in model.shown for words in request) == [each.text for each in NOTES[:9]]
    assert run.unweighed == () and len(run.evidence) == 9
    run = run.then(Decided((Call("c9", "search", {"query": "more"}),), "")).then(
        ToolRan("c9", tuple(Found(each, 0, 1.0) for each in NOTES[:10]))
    )
    assert [found.passage.id for found in run.unweighed] == ["n09"]


@pytest.mark.parametrize(
    ("small", "width", "most"),
    [
        (False, BatchLimits(), len(NOTES)),
        (False, BatchLimits(together=8), 8),
        (True, BatchLimits(), 1),
        (True, BatchLimits(together=3, alone=3), 3),
        (False, BatchLimits(together=1, alone=1), 1),
    ],
    ids=["large", "large, and set to eight", "small", "small, and set to three", "large, and set to one"],
)
async def test_short_passages_share_a_request_unless_the_model_is_small_or_the_setting_says_so(
    small: bool, width: BatchLimits, most: int
):
    model = Weigher()
    run = await weighed(searched(NOTES), context(model, small=small, width=width))
    assert max(map(len, model.shown)) == most and len(model.shown) == -(-len(NOTES) // most)
    assert len(run.evidence) == len(NOTES)


LONG = [passage(f"Note {n}. " + "The tower is tall. " * size, f"l{n}") for n, size in enumerate((250, 380, 30, 380))]


@pytest.mark.parametrize("end", [(), (Failed("ModelError", "gone"), Resumed(by="local"))], ids=["killed", "failed"])
async def test_weighing_that_was_broken_off_is_carried_on_in_the_same_requests(end: tuple[Any, ...]):
    """Otherwise a reply that is recorded, to a request whose result is not, would be asked for again."""
    whole, width = Weigher(), BatchLimits(tokens=2400)
    run = searched(LONG)
    await weighed(run, context(whole, width=width))
    assert len(whole.shown) >= 3  # none shares with its neighbour, and some would with what comes after it
    for place, done in enumerate(whole.shown):
        own = [each for each in LONG if each.text in done]
        part = run.then(ModelReplied("weigh", "weigh", "weigher", "x", "")).then(Gathered((), tuple(p.id for p in own)))
        for event in end:
            part = part.then(event)
        model = Weigher()
        assert not sift_due(part)
        await weighed(part, context(model, width=width))
        assert sorted(model.shown) == sorted(whole.shown[:place] + whole.shown[place + 1 :])


async def test_an_assessor_of_ones_own_takes_the_models_place_and_what_it_quotes_is_checked():
    model, seen = Weigher(), []

    async def own(question: str, parts: Sequence[str], passages: Sequence[tuple[Passage, str]]) -> Sequence[Weight]:
        seen.append((question, [each.id for each, _ in passages], [title for _, title in passages]))
        return [
            Weight(id="n01", quote="The tower of yard 1 is 1 metres tall.", score=9),
            Weight(id="n02", quote="This stands nowhere.", score=8),
            Weight(id="n03", quote="The tower", score=1),
            Weight(id="another", quote="", score=10),
        ]

    run = await weighed(
        searched(NOTES[:4]), replace(context(model), assess=own, titled=lambda ids: dict.fromkeys(ids, "Yard"))
    )
    assert model.shown == [] and seen == [("How tall is it?", ["n00", "n01", "n02", "n03"], ["Yard"] * 4)]
    (gathered,) = [event for event in run.events if isinstance(event, Gathered) and event.evidence]
    assert gathered.by == "assessor" and gathered.dropped == ("n00", "n03")
    assert [each.quote.text for each in gathered.evidence] == [NOTES[1].text, NOTES[2].text]
    assert gathered.inexact == (evidence_key(NOTES[2]),) and all(
        within(each.quote, each.passage) for each in gathered.evidence
    )


async def test_an_assessor_that_fails_leaves_a_run_that_can_be_resumed():
    async def broken(*_: Any) -> Sequence[Weight]:
        raise ZeroDivisionError("oh")

    run = await play(searched(NOTES[:2]), replace(context(Weigher()), assess=broken))
    assert run.failed is not None and "The assessor failed (ZeroDivisionError: oh)" in run.failed.detail
    assert next_step(run.then(Resumed(by="local")), Limits()) is Step.GATHER


async def test_an_endpoint_that_fails_half_way_keeps_what_was_weighed():
    run = await play(searched(LONG), context(Weigher(fails_at=1)))
    assert run.failed is not None and 0 < len(run.evidence) < len(LONG)


# --- calls side by side ---------------------------------------------------------------------------------------------


@tool
async def counts(context: ToolContext, of: Brief) -> Result:
    """Count what was found so far.

    of: anything
    """
    return Result((), f"{len(context.found)} passages")


async def test_calls_of_one_decision_see_nothing_of_each_other_also_when_only_some_are_left():
    run = searched(NOTES[:3])
    made = (Call("x1", "counts", {"of": "a"}), Call("x2", "counts", {"of": "b"}))
    run = run.then(Decided(made, ""))
    with_tool = replace(context(Weigher()), tools={"counts": counts})
    both = [event async for event in call(run, with_tool)]
    assert [event.note for event in both] == ["3 passages", "3 passages"]  # type: ignore[union-attr]
    run = run.then(ToolRan("x1", tuple(Found(each, 0, 1.0) for each in NOTES[3:])))
    rest = [event async for event in call(run, with_tool)]
    assert [(event.call, event.note) for event in rest] == [("x2", "3 passages")]  # type: ignore[union-attr]


# --- what is bound --------------------------------------------------------------------------------------------------


def test_a_value_is_bound_only_to_an_open_step_and_only_if_it_stands_in_the_evidence_it_names():
    tall, lit = passage("The tower is 31 metres tall.", "t"), passage("The lamp is lit by Inès.", "l")
    weighed = weigh.read([Weight(id="t", score=9), Weight(id="l", score=9)], {"t": tall, "l": lit}, "q", 3.0)
    plan = Plan((PlanStep("s1", "How tall?"), PlanStep("s2", "Who lights it?"), PlanStep("s3", "When?")))
    run = Run(
        "r1",
        (Asked("q", "local", "2026-01-01"), Planned(plan), Gathered(weighed.evidence), StepAnswered("s3", "1871", ())),
    )
    said = [
        ("s1", "32 metres", evidence_key(tall)),
        ("s1", "31 METRES", evidence_key(lit)),
        ("s1", "31 METRES", evidence_key(tall)),
        ("s1", "tower", evidence_key(tall)),
        ("s2", "Ines", evidence_key(lit)),
        ("s3", "31", evidence_key(tall)),
        ("s9", "31", evidence_key(tall)),
        ("s2", "31", "00000000"),
        ("s2", " ", evidence_key(lit)),
    ]
    judged = Sufficiency(answers=[StepAnswer(step=s, value=v, key=k) for s, v, k in said], enough=False)
    assert bindings(run, judged) == [
        ("s1", "31 METRES and tower", (evidence_key(tall),)),
        ("s2", "Ines", (evidence_key(lit),)),
    ]


# --- plans ----------------------------------------------------------------------------------------------------------


def proposed(*steps: tuple[str, str, str, list[str]]) -> list[Proposed]:
    return [Proposed(id=id, question=asks, query=query, needs=needs) for id, asks, query, needs in steps]


def test_steps_are_put_in_an_order_in_which_each_comes_after_what_it_needs():
    made = build_plan(
        proposed(("s2", "Where was {s1} born?", "{s1} born", ["s1"]), ("s1", "Who built it?", "built", [])),
        "2026-05-04",
    )
    assert [(step.id, step.needs) for step in made.steps] == [("s1", ()), ("s2", ("s1",))]


@pytest.mark.parametrize(("dated", "since"), [(True, "2025-04-29"), (False, "")])
def test_dates_of_a_step_are_days_and_those_of_a_small_model_are_left_out(dated: bool, since: str):
    step = {"id": "s1", "question": "What changed?", "query": "change", "since": "29 April 2025", "until": "soon"}
    made = build_plan(Planning.model_validate({"steps": [step]}).steps, "2026-05-04", dated=dated)
    assert (made.steps[0].since, made.steps[0].until) == (since, "")


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([("s1", "Who?", "who", ["s1"])], ["s1"]),  # needs itself
        ([("s1", "Who built it?", "a", ["s2"]), ("s2", "Who lit it?", "b", ["s1"])], ["s1", "s2"]),  # in a circle
        ([("s1", "Who built it?", "a", ["s7"])], ["s1"]),  # needs what is not there
        ([("s1", "Who built it?", "a", []), ("s2", "who BUILT it", "b", [])], ["s1"]),  # asks the same
        (
            [("s1", "Who built it?", "a", []), ("s2", "Where is {s5}?", "{s5}", [])],
            ["s1"],
        ),  # a place that nothing fills
        ([("s1", "Who built it?", "a", []), ("s2", "Where is {s1}?", "{s1}", [])], ["s1"]),  # a need that is not said
    ],
)
def test_what_cannot_be_is_left_out_of_a_plan(steps: list[Any], kept: list[str]):
    assert [step.id for step in build_plan(proposed(*steps), "2026-05-04").steps] == kept


IDS = st.sampled_from([f"s{n}" for n in range(1, 7)])
QUESTIONS = st.sampled_from(["Who built it?", "Where is {s1}?", "Why {s2}?", "How?"])
STEPS = st.lists(st.tuples(IDS, QUESTIONS, st.just("q"), st.lists(IDS, max_size=4)), min_size=1, max_size=6)


@given(STEPS)
@settings(max_examples=200)
def test_whatever_is_proposed_a_plan_is_a_dag_in_order(steps: list[Any]):
    seen: set[str] = set()
    for step in build_plan(proposed(*steps), "2026-05-04").steps:
        assert set(step.needs) <= seen and step.id not in seen
        assert all(f"{{{need}}}" not in step.question or need in step.needs for need in (f"s{n}" for n in range(1, 7)))
        seen.add(step.id)


def test_a_plan_is_made_anew_when_retrieval_surprises_but_not_for_ever():
    plan = Planned(Plan((PlanStep("s1", "q"),)))
    run = Run("r1", (Asked("q", "local", "2026-01-01"), plan))
    for count in range(1, PLANS):
        run = run.then(Judged(False, ("x",), surprise=True))
        assert replan_due(run), count
        run = run.then(plan)
        assert not replan_due(run)
    assert not replan_due(run.then(Judged(False, ("x",), surprise=True)))
    assert not replan_due(Run("r1", run.events[:2]).then(Judged(True, surprise=True)))


class Reader:
    """An answer model for which a text answers if it says "metres"; the span is that word."""

    name = "answer/test"

    async def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        at = [text.find("metres") for text in texts]
        return [Reading(0.9, (place, place + 6), 0.9) if place >= 0 else Reading(0.01) for place in at]


async def test_instead_of_a_small_model_the_answer_model_weighs_and_the_first_results_are_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    """A small model gives every passage the same score, a request each."""
    told = passage("The keeper has a dog. The tower is 31 metres tall. It leans.", "told")
    others = [passage(f"The keeper of yard {n} has a dog.", f"o{n}") for n in range(9)]

    async def searches(*_: Any) -> list[Any]:
        return []

    monkeypatch.setattr(gathering, "past_searches", searches)
    model = Weigher()
    of = context(model, small=True)
    of = replace(of, tool_context=replace(of.tool_context, search_context=SimpleNamespace(answer_model=Reader())))  # type: ignore[arg-type]
    run = await weighed(searched([*others, told]), of)
    assert not model.shown and run.unweighed == ()
    assert len(run.evidence) == 4
    best = max(run.evidence, key=lambda each: each.score)
    assert best.passage.id == "told" and best.quote.text == "The tower is 31 metres tall."
    weighing = next(event for event in run.events if isinstance(event, Gathered) and event.evidence)
    assert weighing.by == "answer/test" and len(weighing.dropped) == 6
