"""What an agent does with a question: look-ups that cost four requests, plain RAG, whole sets, dates that limit one thing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from doubles import (
    ChatServer,
    Script,
    calls,
    direct,
    enough,
    keeps,
    lookup,
    missing,
    no_calls,
    one_step,
    passages_in,
    research,
    role_of,
    says,
    steps,
    supported,
    text_of,
    verdicts,
    writes,
)
from doubles.replies import drops
from lighthouse_notes import GROUND, PAINT, TALL, TENDS, answered, fill, opened
from notes import folder_of

from assay.agent import tool
from assay.agent.context import Limits
from assay.answer.weigh import Weight
from assay.core.errors import UserError
from assay.core.events import (
    OTHER_WORDS,
    Asked,
    Call,
    Checkpoint,
    Decided,
    Eagerness,
    Judged,
    Mode,
    Route,
    SearchFilters,
    StepAnswered,
    Stopped,
    StopReason,
    ToolRan,
)
from assay.core.run import Run
from assay.core.types import Outcome
from assay.index.hop_ranking import HOP_SETTINGS, is_unit
from assay.language import dates
from assay.workspace.services.ask import run_context_for

TODAY = "2026-05-14"
ALERT = "Recall alert: Carrow Valves, Dunmere Pumps and Ossett Seals delivered parts with brittle rubber."
SUPPLIERS = {"Carrow Valves": "C-1", "Dunmere Pumps": "C-2", "Fennick Glass": "C-3", "Ossett Seals": "C-4"}
LISTED = "Suppliers of the works are: " + ", ".join(f"{name} (contract {key})" for name, key in SUPPLIERS.items()) + "."
DUTIES = {
    "C-1": "Under contract C-1 with Carrow Valves we must return recalled parts within ten days.",
    "C-2": "Under contract C-2 with Dunmere Pumps we must notify the supplier of a recall in writing.",
    "C-4": "Under contract C-4 with Ossett Seals we must stop all use of recalled parts at once.",
}
DOCUMENTS = {
    "alert": f"{ALERT} Published on 12 May 2026.",
    "suppliers": LISTED,
    **{f"contract-{key}": words for key, words in DUTIES.items()},
    "canteen": "The canteen opens at noon. The alert bell rings when the soup is ready.",
}
WHICH = (
    "Which of our suppliers are affected by the alert published this week, and what do our contracts oblige us to do?"
)


folder = folder_of(DOCUMENTS)


def model(**other: Any) -> Script:
    lines: dict[str, Any] = {
        "route": research(),
        "plan": one_step("What did the alert say?", "recall alert"),
        "decide": no_calls(),
        "weigh": keeps(ALERT),
        "judge": enough(),
        "write": writes(f"{ALERT[:-1]} [{{brittle}}]."),
        "check": supported(),
        "revise": drops(),
    }
    return Script(**lines | other)


def events(run: Run, kind: type) -> list[Any]:
    return [event for event in run.events if isinstance(event, kind)]


def tools(run: Run) -> list[str]:
    return [call.tool for call in run.calls]


# --- look-ups and plain RAG -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("route", "requests"),
    [(None, {"route", "weigh", "write", "check"}), (Route.lookup, {"weigh", "write", "check"})],
    ids=["routed", "asked for"],
)
async def test_a_look_up_is_one_search_one_weighing_one_draft_and_one_judgement(
    folder: Path, route: Route | None, requests: set[str]
):
    with ChatServer(model(route=lookup()).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?", route=route)
    assert run.answer is not None and run.answer.outcome is Outcome.answered
    assert {
        role for role in ("route", "plan", "weigh", "judge", "decide", "write", "check") if server.counts[role]
    } == (requests)
    assert all(server.counts[role] == 1 for role in requests)
    assert tools(run) == ["search"]


async def test_a_look_up_whose_claims_fail_takes_six_requests_at_most(folder: Path):
    fails = model(route=lookup(), check=verdicts("unsupported"))
    with ChatServer(fails.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?", route=None)
    assert run.delivered and sum(server.counts.values()) - server.counts["probe"] <= 6 + 2  # and the trial of the judge


async def test_plain_rag_asks_only_the_writer_and_the_judge(folder: Path):
    with ChatServer(model().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?", route=Route.one_shot)
        replayed = await workspace.questions.replay(run)
    assert run.answer is not None and run.answer.outcome is Outcome.answered and tools(run) == ["search"]
    assert server.counts["write"] == server.counts["check"] == 1
    assert not any(server.counts[role] for role in ("route", "plan", "weigh", "judge", "decide"))
    assert all(claim.verdict for claim in run.answer.claims)
    assert replayed.same and not replayed.differences


async def test_a_look_up_searches_for_the_words_of_the_router(folder: Path):
    script = model(route=lookup() | one_step("What is the thing with the rubber?", "recall alert brittle"))
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What is the thing with the rubber?")
    assert [call.arguments["query"] for call in run.calls] == ["recall alert brittle"]


async def test_a_look_up_whose_writer_finds_no_answer_searches_for_it_once_more(folder: Path):
    script = model(
        route=lookup(), weigh=keeps(ALERT, LISTED), write=writes(lacking=["what the alert says of the parts"])
    )
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?")
        replayed = await workspace.questions.replay(run)
    assert run.calls[-1].arguments["query"] == "what the alert says of the parts"
    assert server.counts["write"] == 1 and run.answer is not None and run.answer.outcome is Outcome.abstained
    assert replayed.same and not replayed.differences


# --- direct answers and readings -------------------------------------------------------------------------------------


async def test_a_question_that_the_documents_may_answer_is_searched_for_whatever_the_model_says(folder: Path):
    with ChatServer(model(route=direct()).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?")
    assert run.route is Route.lookup and tools(run) == ["search"] and not server.counts["direct"]
    assert run.answer is not None and run.answer.outcome is Outcome.answered


async def test_a_question_with_nothing_near_is_answered_directly_and_labelled(folder: Path):
    script = model(route=direct(), direct=says("It is a number that only one and itself divide."))
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "Explain prime numerals?")
    assert run.route is Route.direct and not run.calls
    assert run.answer is not None and run.answer.outcome is Outcome.direct


async def test_the_router_sees_the_documents_near_the_question_and_no_other_search_is_made_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[str] = []
    made: list[str] = []
    search = tool.retrieve

    def route(text: str, schema: Any) -> Any:
        seen.append(text)
        return lookup()

    async def counted(context: Any, query: str, *rest: Any) -> Any:
        made.append(query)
        return await search(context, query, *rest)

    monkeypatch.setattr(tool, "retrieve", counted)
    with ChatServer(model(route=route).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?")
    assert "- alert, no date" in seen[0]
    assert tools(run) == ["search"] and made == ["What did the alert say?"]


async def test_readings_that_differ_are_taken_as_the_model_gives_them(folder: Path):
    readings = ["What must we do under C-1?", "What must we do under C-2?", "what must we do under c-1?"]
    with ChatServer(model(route=research(readings=readings)).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What must we do under the contract of Carrow Valves?")
    assert run.readings == tuple(readings[:2])


async def test_the_first_hits_of_a_look_up_are_weighed_though_ranking_puts_others_before_them(tmp_path: Path):
    """Every note holds a name of the question, and the words that the router searches for stand in one without it."""
    notes = {f"note-{n:02}": f"Carrow Valves, note {n}: the valve of yard {n} was oiled." for n in range(20)}
    await fill(tmp_path / "workspace", notes | {"log": "Brittle rubber was found at the quay."})
    weighed: list[str] = []

    def weigh(text: str, schema: Any) -> Any:
        weighed.append(text)
        return keeps("Brittle rubber")(text, schema)

    script = model(route=lookup() | one_step("What is wrong with the parts?", "brittle rubber quay"), weigh=weigh)
    with ChatServer(script.answer) as server, opened(tmp_path / "workspace", server) as workspace:
        await answered(workspace, "What is wrong with the parts of Carrow Valves?")
    assert "Brittle rubber was found" in weighed[0]


# --- searches by rule -----------------------------------------------------------------------------------------------


async def test_names_are_followed_only_to_what_is_new(folder: Path):
    """Every name of the six documents leads to passages that the first search has found already."""
    with ChatServer(model().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert of Carrow Valves say?")
    followed = [event for event in events(run, Decided) if event.hops]
    assert followed and not any(event.calls for event in followed)


@pytest.mark.parametrize(("name", "unit"), [("NTU", True), ("mg/l", True), ("TS-114", False), ("Oster", False)])
def test_the_unit_of_a_figure_is_no_name(name: str, unit: bool):
    text = "The limit of TS-114 at Oster is 50 NTU, and 40mg/l of nitrate. In 2024 Oster raised it."
    assert is_unit(name, text) is unit


async def test_a_model_may_rerank_what_is_weighed(folder: Path):
    """The model likes one passage that the search ranks last; only that one is shown to be weighed first."""
    seen: list[str] = []

    def rerank(text: str, schema: Any) -> Any:
        shown = passages_in(text)
        return {"scores": [{"id": place, "score": 10 if "canteen" in words else 0} for place, words in shown.items()]}

    def weigh(text: str, schema: Any) -> Any:
        seen.append(text)
        return keeps(ALERT)(text, schema)

    script = model(rerank=rerank, weigh=weigh)
    with ChatServer(script.answer) as server, opened(folder, server, reranker="llm") as workspace:
        run = await answered(workspace, "What did the alert say?", mode=Mode.quick)
        replayed = await workspace.questions.replay(run)
    assert server.counts["weigh"] == 2 and run.delivered and replayed.same and not replayed.differences
    assert "canteen" in seen[0]


async def test_the_planner_sees_the_documents_that_may_hold_the_answer_and_the_day(folder: Path):
    seen: list[str] = []

    def plan(text: str, schema: Any) -> Any:
        seen.append(text)
        return one_step("What did the alert say?", "recall alert")

    with ChatServer(model(plan=plan).answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?", today=TODAY)
    assert (
        "- alert, no date" in seen[0]
        and "contract-C-1" in seen[0]
        and f"Today is {dates.with_weekday(TODAY)}" in seen[0]
    )
    assert [call.arguments["query"] for call in run.calls][:2] == ["recall alert", "What did the alert say?"]


# --- progress -------------------------------------------------------------------------------------------------------


def test_a_round_that_thinks_is_progress_and_one_that_finds_nothing_is_not():
    run = Run("r1", (Asked("Who?", "local", TODAY), Decided((Call("c1", "list_sources", {}),), "")))
    listed = run.then(ToolRan("c1", (), "6 documents", documents=("d1",))).then(Judged(False))
    barren = run.then(ToolRan("c1", (), "nothing was found")).then(Judged(False))
    assert listed.fresh == (1,) and barren.fresh == (0,)
    twice = (
        barren.then(Decided((Call("c2", "search", {"query": "x"}),), "")).then(ToolRan("c2", ())).then(Judged(False))
    )
    assert Limits().barren(twice)


async def test_two_rounds_of_thinking_do_not_end_a_run(folder: Path):
    thinks = model(
        weigh=keeps(*DUTIES.values()),
        judge=[missing("more")],
        decide=[
            calls("list_sources"),
            calls("list_sources", contains="contract"),
            calls("search", query="recalled parts contract"),
            no_calls("nothing is left"),
        ],
        write=writes(f"{DUTIES['C-1'][:-1]} [{{ten days}}]."),
    )
    with ChatServer(thinks.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What must we do under contract C-1?")
    assert tools(run).count("list_sources") == 2 and tools(run)[-1] == "search"
    assert events(run, Stopped)[0].why == "nothing is left"


# --- dates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [WHICH, "Which alerts were published this week?", "What changed last year?"])
async def test_without_a_model_a_date_in_the_question_limits_nothing(folder: Path, question: str):
    with opened(folder) as workspace:
        run = await answered(workspace, question, today=TODAY)
    assert run.where == SearchFilters() and run.answer is not None and run.answer.since is None
    assert not any({"since", "until"} & call.arguments.keys() for call in run.calls)


async def test_with_a_model_a_date_in_the_question_limits_nothing_unless_the_model_says_so(folder: Path):
    with ChatServer(model().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert published last year say?", today=TODAY)
    assert run.where == SearchFilters() and run.answer is not None and run.answer.outcome is Outcome.answered
    assert not any({"since", "until"} & call.arguments.keys() for call in run.calls)


async def test_a_model_that_limits_a_search_learns_how_many_undated_documents_it_left_out(folder: Path):
    limits = model(
        judge=[missing("the alert"), missing("the alert"), enough()],
        decide=[calls("search", query="recall alert", since="this week"), no_calls()],
    )
    with ChatServer(limits.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What did the alert say?", today=TODAY)
    limited = next(call for call in run.calls if call.arguments.get("since"))
    result = run.results[limited.id]
    assert result.undated == len(DOCUMENTS) and not result.found
    assert any(f"{result.undated} undated documents left out" in text_of(each) for each in server.requests)


# --- whole sets -----------------------------------------------------------------------------------------------------


def set_model(**other: Any) -> Script:
    plan = steps(
        ("Which suppliers does the alert name?", "recall alert suppliers"),
        ("Which suppliers do we have?", "suppliers of the works"),
        ("What do the contracts oblige us to do?", "contract recalled parts must"),
    )
    plan["steps"][0] |= {"since": "this week", "until": ""}
    claims = [f"{DUTIES[key][:-1]} [{{{key} with}}]." for key in DUTIES]
    named = "Carrow Valves, Dunmere Pumps and Ossett Seals are affected [{brittle}, {Suppliers of the works}]."
    return model(
        route=research(every=True),
        plan=plan,
        weigh=keeps(ALERT, LISTED, *DUTIES.values()),
        judge=enough(),
        write=writes(named, *claims, shape="list"),
        **other,
    )


async def test_a_set_question_finds_all_members_and_says_what_was_read(folder: Path):
    with ChatServer(set_model().answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, WHICH, today=TODAY)
    assert run.every and run.answer is not None and run.answer.outcome is Outcome.answered
    told = " ".join(claim.words for claim in run.answer.claims)
    assert all(name in told for name in ("Carrow Valves", "Dunmere Pumps", "Ossett Seals")) and "Fennick" not in told
    assert all(words[:-1] in told for words in DUTIES.values())
    searched = [call for call in run.calls if call.tool == "search_all"]
    assert [call.arguments.get("since") for call in searched] == ["2026-05-11", None, None]
    examined = run.answer.examined
    assert examined is not None and len(examined.whole) == 5 and not examined.partly
    assert "canteen" not in " ".join(examined.whole)
    assert events(run, Stopped)[0].reason is StopReason.exhausted
    judged = next(text_of(each) for each in server.requests if role_of(each)[0] == "check" and WHICH in text_of(each))
    assert all(f"- {title}" in judged.partition("Read to their end")[2] for title in examined.whole)


async def test_a_step_that_finds_several_things_hands_on_all_of_them(folder: Path):
    plan = steps(
        ("Which suppliers does the alert name?", "recall alert suppliers"), ("What does {s1} owe us?", "{s1} recall")
    )

    def judge(text: str, schema: Any) -> Any:
        made = enough()(text, schema)
        key = next(key for key, words in passages_in(text).items() if "brittle" in words)
        found = [{"step": "s1", "value": name, "key": key} for name in ("Carrow Valves", "Ossett Seals")]
        return made | {"answers": found, "enough": "Carrow Valves and Ossett Seals recall" in text}

    script = model(plan=plan, judge=judge, weigh=keeps(ALERT, *DUTIES.values()))
    with ChatServer(script.answer) as server, opened(folder, server) as workspace:
        run = await answered(workspace, "What do the suppliers of the alert owe us?")
    assert [event.value for event in events(run, StepAnswered)] == ["Carrow Valves and Ossett Seals"]
    assert "Carrow Valves and Ossett Seals recall" in [call.arguments.get("query") for call in run.calls]


@pytest.mark.parametrize("longest", [80, 0], ids=["read", "too long"])
async def test_a_judge_has_a_document_of_a_set_read_to_its_end_and_one_too_long_is_not_called_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, longest: int
):
    monkeypatch.setattr(sys.modules["assay.agent.toolbox.reading"], "LONGEST", longest)
    filler = " ".join(f"Nothing of note happened in week {week}, and the herons came and went." for week in range(60))
    await fill(tmp_path / "workspace", {"alert": f"{ALERT}\n\n{filler}"})

    def judge(text: str, schema: Any) -> Any:
        return enough()(text, schema) | {"read": [] if "earlier rounds:" in text else ["P1"]}

    script = model(
        route=research(every=True), plan=one_step("Which parts?", "recall alert"), judge=judge, weigh=keeps(ALERT)
    )
    monkeypatch.setattr(sys.modules["assay.agent.toolbox.search"], "HOPELESS", 0.99)
    with ChatServer(script.answer) as server, opened(tmp_path / "workspace", server) as workspace:
        run = await answered(workspace, "List every part that was recalled")
    examined = run.answer.examined if run.answer else None
    assert tools(run)[:1] == ["search_all"] and "read_rest" in tools(run) and examined is not None
    assert (len(examined.whole), len(examined.partly)) == ((1, 0) if longest else (0, 1))
    assert (events(run, Stopped)[0].reason is StopReason.exhausted) is bool(longest)


async def test_the_rest_of_a_table_is_read_before_it_is_weighed(tmp_path: Path):
    rows = "\n".join(f"TS-{n},valve {n},yard {n % 7},{n * 3} metres above the quay of the harbour" for n in range(60))
    await fill(tmp_path / "workspace", {"island": f"{PAINT} {GROUND} {TALL} {TENDS}"})
    (tmp_path / "valves.csv").write_text(f"id,thing,place,height\n{rows}\n")
    with opened(tmp_path / "workspace") as workspace:
        await workspace.add([tmp_path / "valves.csv"])
    reads = model(route=lookup(), weigh=keeps("TS-31"), write=writes("TS-31 is in yard 3 [{TS-31}]."))
    with ChatServer(reads.answer) as server, opened(tmp_path / "workspace", server) as workspace:
        run = await answered(workspace, "Where is TS-31?")
    assert "read_table" in tools(run) and server.counts["weigh"] == 1


# --- without a model ------------------------------------------------------------------------------------------------


async def test_without_a_model_a_run_waits_where_nothing_answers_and_other_words_are_searched(folder: Path):
    with opened(folder) as workspace:
        run = await answered(workspace, "Who is the mayor of Halden?", checkpoints=(Checkpoint.nothing,))
        assert run.waiting is not None and run.waiting.at is Checkpoint.nothing
        run = [each async for each, _ in workspace.resume(run.id, OTHER_WORDS, "When does the canteen open?")][-1]
    assert run.answer is not None
    assert "When does the canteen open?" in [call.arguments.get("query") for call in run.calls]


async def test_without_a_model_a_checkpoint_that_needs_one_is_refused(folder: Path):
    with opened(folder) as workspace, pytest.raises(UserError, match="`reading` needs one"):
        await answered(workspace, "When?", checkpoints=(Checkpoint.reading,))


@pytest.mark.parametrize(("eagerness", "mode"), [(Eagerness.sparing, Mode.quick), (Eagerness.eager, Mode.thorough)])
async def test_without_a_model_eagerness_says_how_far_names_are_followed(
    folder: Path, eagerness: Eagerness, mode: Mode
):
    with opened(folder) as workspace:
        run = await answered(workspace, "When does the canteen open?", eagerness=eagerness)
        context = await run_context_for(workspace.context, run)
    assert context.hops == HOP_SETTINGS[mode]


async def test_without_a_model_an_assessor_of_ones_own_weighs(folder: Path):
    async def assess(question: str, parts: Any, passages: Any) -> list[Weight]:
        return [
            Weight(id=each.id, score=9, quote="The canteen opens at noon.")
            for each, _ in passages
            if "noon" in each.text
        ]

    with opened(folder) as workspace:
        run = await answered(workspace, "When does the canteen open?", assess=assess)
    assert {each.quote.text for each in run.evidence} == {"The canteen opens at noon."}


@pytest.mark.parametrize(("setting", "rounds"), [(0, 5), (2, 2), (9, 5)])
async def test_the_setting_of_rounds_only_lowers(folder: Path, setting: int, rounds: int):
    with opened(folder, search_rounds=setting) as workspace:
        run = await answered(workspace, "When does the canteen open?")
        context = await run_context_for(workspace.context, run)
    assert context.limits.rounds == rounds and context.limits.set_rounds == min(setting or 8, 8)


async def test_without_a_model_extracts_answer_both_of_two_joined_questions(folder: Path):
    with opened(folder) as workspace:
        run = await answered(workspace, "When does the canteen open, and what must we do under contract C-4?")
    assert run.answer is not None
    told = " ".join(claim.words for claim in run.answer.claims)
    assert "opens at noon" in told and "stop all use of recalled parts" in told
