"""Asking with a model, on the command line: what is printed, how it ends, and how a person takes part. Over real HTTP."""

from __future__ import annotations

import json
import os
import re
import signal

import pytest
from doubles import (
    HttpReply,
    beside_the_point,
    calls,
    direct,
    keeps,
    missing,
    no_calls,
    research,
    says,
    supported,
    writes,
)
from terminal import ANSWER, CLAIM, GROUND, PAINT, QUESTION, Typed, looked_up, researched

from assay.cli import config
from assay.cli.follow import REMARK, never_needed_the_loop
from assay.cli.runs import CHAINED
from assay.core.events import Asked, Mode, RoleModel, Route, Routed
from assay.store import facts
from assay.store.runs import records
from assay.store.runs.history import history, routes
from assay.workspace.facade import Workspace

BELOW = " " * 7  # before what stands below the line of an event


def run_in(words: str) -> str:
    found = re.search(r"assay (?:resume|trace) (r\w+)", words)
    assert found, words
    return found[1]


# --- what is printed ------------------------------------------------------------------------------------------------


def test_an_answer_has_numbered_citations_with_title_and_quotation(typed: Typed, noted: Workspace, model):
    server = model(researched())
    done = typed("ask", QUESTION)
    assert done.code == 0 and f"{ANSWER} [1][2]" in done.out, done
    assert (
        re.search(rf"\[1\] The lamp room — lamp.md\n    “[^”]*{re.escape(PAINT)}", done.out)
        and "[2] The works — works.md" in done.out
    )
    for line in ("Route: research", "s2 Where is {s1} ground?", "Searching: lamp room painted", "s1 found: orpiment"):
        assert line in done.err
    assert re.search(r"\d+ requests · [\d,]+ tokens; `assay trace r\w+` shows every step", done.err)
    assert not server.problems


def test_quiet_prints_the_answer_alone(typed: Typed, noted: Workspace, model):
    model(looked_up())
    done = typed("ask", QUESTION, "--quiet")
    assert done.err == "" and done.out.startswith(ANSWER)


def test_json_is_one_event_per_line_with_what_each_reply_took(typed: Typed, noted: Workspace, model):
    model(looked_up())
    done = typed("ask", QUESTION, "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events))) and done.err == ""
    assert [events[0]["event"], events[-1]["event"]] == ["Asked", "Answered"]
    asked = [event for event in events if event["event"] == "ModelReplied"]
    assert {"route", "weigh", "write"} <= {event["role"] for event in asked}
    assert all(event["usage"]["tokens_in"] > 0 and event["model"] == "scripted" for event in asked)


def test_at_a_terminal_the_run_is_drawn_and_the_answer_stands_alone_on_standard_output(
    typed: Typed, noted: Workspace, model
):
    model(researched())
    done = typed("ask", QUESTION, keys="")
    assert done.code == 0 and done.out.startswith(ANSWER)
    assert "✓ Where is orpiment ground? → Dunmere" in done.err and f"✓ {ANSWER}" in done.err
    assert "\x1b" not in done.out


def test_what_a_model_writes_steers_no_terminal(typed: Typed, noted: Workspace, model):
    script = researched(
        route=research("\x1b]0;owned\x07 because"), write=writes(CLAIM.replace("orpiment,", "\x1b[2Jorpiment,"))
    )
    model(script)
    for keys in (None, ""):
        done = typed("ask", QUESTION, keys=keys)
        assert "owned because" in done.err and done.code in (0, 3, 4)
        assert "\x1b]0" not in done.err + done.out and "\x1b[2J" not in done.err + done.out and "\x07" not in done.err


def test_an_answer_that_is_not_from_the_documents_says_so(typed: Typed, noted: Workspace, model):
    model(looked_up(route=direct(), direct=says("I answer from documents.")))
    done = typed("ask", "what can you do?", "-q")
    assert done.code == 0 and done.out == "Not from your documents.\nI answer from documents.\n"


# --- how it ends ----------------------------------------------------------------------------------------------------


def test_part_of_an_answer_is_exit_code_3(typed: Typed, noted: Workspace, model):
    model(researched(check=supported(missing=["how tall the tower is"])))
    done = typed("ask", f"{QUESTION[:-1]}, and how tall is the tower?", "--mode", "quick")
    assert done.code == 3 and "This is part of an answer." in done.out
    assert "Missing: how tall the tower is." in done.out


def test_what_the_documents_do_not_say_is_exit_code_4(typed: Typed, noted: Workspace, model):
    model(researched(weigh=keeps("nothing of the kind"), judge=missing("it"), decide=no_calls()))
    done = typed("ask", "Who was the first keeper of the light?", "--mode", "quick")
    assert done.code == 4 and "do not answer this" in done.out, done


def test_true_statements_beside_the_point_are_exit_code_4_and_shown_as_what_came_nearest(
    typed: Typed, noted: Workspace, model
):
    model(researched(check=beside_the_point()))
    done = typed("ask", "Who is the mayor of Carrow Point?", "--mode", "quick")
    assert done.code == 4 and "do not answer this" in done.out, done
    assert ANSWER in done.out.partition("nearest")[2] and "“The lamp room" in done.out


@pytest.mark.parametrize(
    "question", ["Weigh where the paint is ground.", "Answer for FY2023: where is the paint ground?"]
)
def test_an_answer_that_is_complete_is_exit_code_0_whatever_words_the_question_has(
    typed: Typed, noted: Workspace, model, question: str
):
    model(researched())
    done = typed("ask", question, "--mode", "quick")
    assert done.code == 0 and ANSWER in done.out and "part of an answer" not in done.out, done


def test_an_endpoint_that_fails_ends_the_run_with_1_and_it_can_be_carried_on(typed: Typed, noted: Workspace, model):
    broken = model(looked_up(write=[]))
    done = typed("ask", QUESTION, "--max-tokens", "90000")
    assert done.code == 1 and done.out == ""
    assert "assay: The chat endpoint" in done.err and "Traceback" not in done.err
    assert re.search(r"`assay resume r\w+ --max-tokens 90000` carries it on", done.err)
    asked_before = broken.counts["weigh"]
    mended = model(looked_up())
    again = typed("resume", run_in(done.err))
    assert again.code == 0 and again.out.startswith(ANSWER)
    assert asked_before and not mended.counts["weigh"] and not mended.counts["route"]


def test_an_endpoint_that_fails_is_told_while_it_is_asked_again(typed: Typed, noted: Workspace, model):
    model(looked_up(write=[HttpReply(503, "busy"), HttpReply(503, "busy"), writes(CLAIM)]))
    done = typed("ask", QUESTION)
    assert done.code == 0
    told = re.findall(r"The model does not answer \(status 503\), try (\d) of \d+", done.err)
    assert told == ["2", "3"]


def test_a_model_that_is_named_is_asked_also_when_the_run_is_carried_on_and_another_is_refused(
    typed: Typed, noted: Workspace, model, monkeypatch
):
    monkeypatch.setenv("ASSAY_LLM_FALLBACK_MODEL", "other")
    broken = model(looked_up(write=[]))
    done = typed("ask", QUESTION, "--model", "other")
    assert done.code == 1 and {request["model"] for request in broken.requests} == {"other"}
    mended = model(looked_up())
    again = typed("resume", run_in(done.err))
    assert again.code == 0 and {request["model"] for request in mended.requests} == {"other"}
    refused = typed("ask", QUESTION, "--model", "third")
    assert refused.code == 2 and "No model 'third' is connected. There is: scripted, other." in refused.err


def test_ctrl_c_names_the_run_and_how_to_carry_it_on(typed: Typed, noted: Workspace, model):
    def pressed(text: str, schema: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return writes(CLAIM)(text, None)

    model(looked_up(write=pressed))
    done = typed("ask", QUESTION)
    assert done.code == 130 and "Nothing that was done is lost: `assay resume r" in done.err, done
    assert "Traceback" not in done.err
    model(looked_up())
    assert typed("resume", run_in(done.err), "-q").out.startswith(ANSWER)


# --- how far it goes ------------------------------------------------------------------------------------------------


def test_no_model_asks_none(typed: Typed, noted: Workspace, model):
    server = model(looked_up())
    assert typed("ask", "Where is orpiment ground?", "--no-model", "-q").code in (0, 3)
    assert not server.requests


def test_a_route_that_the_person_names_is_not_asked_for(typed: Typed, noted: Workspace, model):
    server = model(looked_up())
    assert typed("ask", QUESTION, "--route", "lookup", "-q").code == 0
    assert not server.counts["route"] and not server.counts["plan"] and server.counts["write"]


def test_a_ceiling_on_tokens_holds(typed: Typed, noted: Workspace, model):
    server = model(looked_up())
    done = typed("ask", QUESTION, "--max-tokens", "10", "-q")
    assert done.code in (0, 3, 4) and not [each for each in server.counts if each]


def test_a_ceiling_on_cost_that_cannot_hold_is_said(typed: Typed, noted: Workspace, model, monkeypatch):
    model(looked_up())
    assert "no price is known for scripted" in typed("ask", QUESTION, "--max-cost", "0.5").err
    monkeypatch.setenv("ASSAY_LLM_PRICES", "scripted=1/2")
    done = typed("ask", QUESTION, "--max-cost", "0.5")
    assert "no price" not in done.err and re.search(r"tokens · \$0\.\d+", done.err)


def test_eagerness_and_checkpoints_reach_the_run(typed: Typed, noted: Workspace, model):
    model(looked_up())
    flags = ("--eagerness", "sparing", "--checkpoint", "searches", "--checkpoint", "nothing", "--mode", "quick")
    first = json.loads(typed("ask", QUESTION, "--json", *flags).out.splitlines()[0])
    assert (first["eagerness"], first["checkpoints"], first["mode"]) == ("sparing", ["searches", "nothing"], "quick")


# --- a person takes part --------------------------------------------------------------------------------------------


def test_a_checkpoint_where_nobody_sits_says_what_is_asked_and_how_to_answer(typed: Typed, noted: Workspace, model):
    model(looked_up())
    done = typed("ask", QUESTION, "--checkpoint", "sources", "-w", "workspace")
    assert done.code == 5 and done.out == ""
    assert f"9.0  The lamp room: “{PAINT}”" in done.err and "1. answer now" in done.err
    run = run_in(done.err)
    assert f"assay resume {run} --workspace workspace --choose 1\n" in done.err
    waits = typed("resume", run)
    assert waits.code == 5 and "1. answer now" in waits.err
    wrong = typed("resume", run, "--choose", "perhaps")
    assert wrong.code == 2 and "'perhaps' is none of the choices" in wrong.err
    assert typed("resume", run, "--choose", "answer now", "-q").out.startswith(ANSWER)


def test_a_checkpoint_at_a_terminal_is_answered_right_there(typed: Typed, noted: Workspace, model):
    model(looked_up())
    done = typed("ask", QUESTION, "--checkpoint", "sources", keys="perhaps\n1\n")
    assert done.code == 0 and done.out.startswith(ANSWER)
    assert "Choose one of: answer now, more sources." in done.err and f"“{GROUND}”" in done.err


def test_other_words_are_asked_for_and_searched_with(typed: Typed, noted: Workspace, model):
    def decide(text: str, schema: object) -> object:
        return calls("search", query="watering of roses") if "watering of roses" in text else no_calls()

    model(researched(weigh=keeps("nothing of the kind"), judge=missing("it"), decide=decide))
    flags = ("--checkpoint", "nothing", "--mode", "quick", "--verbose")
    done = typed("ask", "Who kept it?", *flags, keys="other words\n\nwatering of roses\n")
    assert done.code == 4 and "“watering of roses”: 3 passages" in done.out, done


def test_somebody_who_walks_away_leaves_the_run_waiting(typed: Typed, noted: Workspace, model):
    model(looked_up())
    done = typed("ask", QUESTION, "--checkpoint", "sources", keys="")
    assert done.code == 5 and "--choose 1" in done.err


# --- before text leaves the machine ---------------------------------------------------------------------------------


def test_an_endpoint_elsewhere_is_asked_about_once(noted: Workspace, typed: Typed, monkeypatch):
    monkeypatch.setenv("ASSAY_LLM_BASE_URL", "https://models.example/v1")
    monkeypatch.setenv("ASSAY_LLM_MODEL", "big")
    refused = typed("ask", QUESTION)
    assert refused.code == 2 and "assay config agree models.example" in refused.err
    declined = typed("ask", QUESTION, keys="n\n")
    assert (
        declined.code == 2
        and "your questions, and the passages found for them, figures included, to be read by big" in declined.err
    )
    assert not facts.agreed(noted.store, "models.example")
    assert typed("ask", "Where is orpiment ground?", "--no-model", "-q", keys="").code in (0, 3)


def test_agreeing_is_remembered(noted: Workspace, monkeypatch):
    monkeypatch.setattr(config, "at_terminal", lambda: True)
    monkeypatch.setattr(config, "confirm", lambda question: "models.example" in question)
    noted = noted.with_settings(llm_base_url="https://models.example/v1", llm_model="big")
    config.settle(noted)
    assert facts.agreed(noted.store, "models.example")
    monkeypatch.setattr(config, "confirm", lambda question: pytest.fail("asked twice"))
    config.settle(noted)


# --- whoever never needs the loop -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "said"),
    [(0, False), (9, False), (10, True), (11, False), (19, False), (20, True)],
)
def test_ten_questions_in_a_row_without_research_are_remarked_on_once(row: int, said: bool):
    routes = [Route.lookup, Route.direct] * 10
    assert never_needed_the_loop([*routes[:row], Route.research, *routes]) is said


def test_only_questions_that_a_model_routed_count(noted: Workspace):
    def put(route: Route, /, **asked) -> None:
        run = records.begin(noted.store, noted.principal.id)
        records.append(noted.store, run, 0, Asked("?", noted.principal.id, "2025-06-01", Mode.quick, **asked))
        records.append(noted.store, run, 1, Routed(route, ""))

    role_models = (RoleModel("route", "scripted"),)
    put(Route.lookup, seats=role_models)
    put(Route.research)
    put(Route.research, seats=role_models, route=Route.research)
    assert list(routes(noted.store, noted.principal.id)) == [Route.lookup]


def test_the_remark_comes_after_the_tenth_look_up(typed: Typed, noted: Workspace, model):
    model(looked_up())
    for _ in range(9):
        run = records.begin(noted.store, noted.principal.id)
        asked = Asked("?", noted.principal.id, "2025-06-01", seats=(RoleModel("route", "scripted"),))
        records.append(noted.store, run, 0, asked)
        records.append(noted.store, run, 1, Routed(Route.lookup, ""))
    assert REMARK in typed("ask", QUESTION).err
    assert REMARK not in typed("ask", QUESTION).err


# --- what is kept ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_runs_say_how_each_stands_and_what_it_took(typed: Typed, noted: Workspace, model):
    model(looked_up())
    typed("ask", QUESTION, "-q")
    typed("ask", QUESTION, "-q", "--checkpoint", "sources")
    typed("ask", QUESTION, "-q", "--no-model")
    model(looked_up(write=[]))
    typed("ask", QUESTION, "-q")
    past = {each.state: each for each in history(noted.store, noted.principal.id, noted.scope())}
    assert past.keys() >= {"answered", "waiting", "failed"} and past["answered"].question == QUESTION
    assert past["waiting"].usage.calls > 0
    lines = typed("runs").out.splitlines()
    assert len(lines) == 4 and "  failed " in lines[0] and " tok  " in lines[0] and "  waiting " in lines[2]
    assert typed("runs", "--review").out.splitlines() == lines[:1]
    listed = json.loads(typed("runs", "--json").out)
    assert listed[0]["state"] == "failed" and not listed[0]["delivered"] and listed[0]["usage"]["calls"]


def test_a_trace_has_a_line_for_every_event(typed: Typed, noted: Workspace, model):
    model(researched())
    run = run_in(typed("ask", QUESTION).err)
    done = typed("trace", run)
    lines = [line for line in done.out.splitlines() if not line.startswith(BELOW)]
    events = noted.questions.run(run).events
    assert len(lines) == len(events) + 1 and lines[-1] == CHAINED
    for line, event in zip(lines, events, strict=False):
        assert f"  {type(event).__name__} " in line and len(line.split(type(event).__name__, 1)[1].strip()) > 3
    assert re.search(r"ModelReplied  +route: [a-z ]+ · scripted · \d+ \+ \d+ tokens · \d+\.\d s", done.out)


def test_a_trace_has_what_the_judge_said_and_what_carries_a_claim(typed: Typed, noted: Workspace, model):
    model(researched(check=supported("both sentences together", missing=["the name of the paint"])))
    run = run_in(typed("ask", QUESTION).err)
    lines = typed("trace", run).out.splitlines()
    asked = next(place for place, line in enumerate(lines) if "  check: " in line and " · scripted · " in line)
    assert lines[asked + 1 : asked + 3] == [
        f"{BELOW}1. supported: both sentences together",
        f"{BELOW}as an answer: missing: the name of the paint",
    ]
    checked = next(place for place, line in enumerate(lines) if "  Checked " in line)
    assert lines[checked + 1] == f"{BELOW}statement, judged by scripted"
    assert lines[checked + 2].startswith(f"{BELOW}words: “") and PAINT in lines[checked + 2]
    assert any("  Critiqued " in line and "missing: the name of the paint" in line for line in lines)


def test_the_working_of_each_statement_is_shown_on_demand(typed: Typed, noted: Workspace, model):
    model(researched(check=supported("both sentences together")))
    done = typed("ask", QUESTION, "--working")
    below = done.out.partition("\nWorking\n")[2]
    assert below.startswith(ANSWER) and "\n    supported: both sentences together\n" in below
    assert "\n    statement, judged by scripted\n    words: “" in below
    again = typed("replay", run_in(done.err), "--working").out
    assert again == done.out and "\nWorking\n" not in typed("replay", run_in(done.err)).out


def test_a_replay_says_whether_every_step_came_out_the_same(typed: Typed, noted: Workspace, model):
    server = model(researched())
    run = run_in(typed("ask", QUESTION).err)
    before = len(server.requests)
    done = typed("replay", run)
    assert done.code == 0 and done.out.startswith(ANSWER) and "Every step came out as it was recorded." in done.err
    assert len(server.requests) == before
