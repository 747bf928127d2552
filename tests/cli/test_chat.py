"""`assay chat`: turns that build on each other, what may be typed between them, and threads that are opened again."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import conversation as talk
import notes
import pytest
from doubles import lookup, writes
from notes import filled
from terminal import ANSWER, CLAIM, PAINT, QUESTION, Done, Typed, looked_up

from assay.cli import chat
from assay.cli.chat import parse_command
from assay.cli.follow import OutputFormat, Show
from assay.cli.run_view import view
from assay.core.events import Asked, Call, Decided, Found, Gathered, Rephrased, ToolRan
from assay.core.events.describe import live_line, record_line
from assay.core.run import Run
from assay.core.types import Evidence, Passage, Quote
from assay.store.threads import Thread
from assay.workspace import facade
from assay.workspace.facade import Workspace

MARKED = PAINT.replace("orpiment", "*orpiment*")  # in an extract
FIRST = "What is the lamp room at Carrow Point painted with?"
NEXT = "Where is orpiment ground?"
BAD = "\x1b[2J\x1b]0;owned\x07"


@pytest.fixture
def piped(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """A command whose standard input is these lines, and no terminal."""

    def run(lines: str, *words: str) -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
        return typed("chat", *words)

    return run


def thread_in(words: str) -> str:
    found = re.search(r"assay chat --thread (t\w+)", words)
    assert found, words
    return found[1]


def asked_in(opened: Workspace) -> list[Asked]:
    return [run.asked for run in opened.threads.get(opened.threads.listing()[0].id)[1]]


# --- one turn at a time ---------------------------------------------------------------------------------------------


def test_a_question_is_answered_like_ask_and_begins_a_thread_that_the_next_goes_on_with(typed: Typed, noted: Workspace):
    first = typed("chat", FIRST)
    assert first.code == 0 and MARKED in first.out and "Sources\n[1] The lamp room — lamp.md" in first.out, first
    thread = thread_in(first.err)
    second = typed("chat", NEXT, "--thread", thread[:6])
    assert second.code in (0, 3) and "works in *Dunmere*" in second.out and thread_in(second.err) == thread
    assert [each.question for each in asked_in(noted)] == [FIRST, NEXT]
    assert len(noted.threads.listing()) == 1 and noted.threads.listing()[0].turns == 2


def test_what_the_documents_do_not_say_has_the_exit_code_of_ask(typed: Typed, noted: Workspace):
    assert typed("chat", "Which submarine won the Zanzibar regatta?", "-q").code == 4


def test_quiet_prints_the_answer_alone(typed: Typed, noted: Workspace):
    done = typed("chat", FIRST, "--quiet")
    assert done.err == "" and MARKED in done.out


def test_json_is_one_event_per_line_and_names_the_thread(typed: Typed, noted: Workspace):
    done = typed("chat", FIRST, "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["Asked", "Answered"] and done.err == ""
    assert events[0]["thread"] == noted.threads.listing()[0].id


def test_an_empty_question_is_no_dialogue(typed: Typed, noted: Workspace):
    done = typed("chat", "")
    assert done.code == 2 and "The question is empty" in done.err and not noted.threads.listing()


def test_an_unknown_thread_or_base_is_said_before_anything_is_asked(typed: Typed, noted: Workspace):
    for flags in (("--thread", "tnothing"), ("--base", "nothing")):
        done = typed("chat", FIRST, *flags)
        assert done.code == 2 and "There is no" in done.err, done
    assert not noted.threads.listing()


# --- a dialogue -----------------------------------------------------------------------------------------------------


def test_a_dialogue_answers_question_after_question_in_one_thread_and_says_how_to_open_it_again(
    typed: Typed, noted: Workspace
):
    done = typed("chat", "--no-model", keys=f"{FIRST}\n\n{NEXT}\n/quit\nnever asked\n")
    assert done.code == 0 and MARKED in done.out and "Dunmere" in done.out, done
    assert [each.question for each in asked_in(noted)] == [FIRST, NEXT]
    assert thread_in(done.err) == noted.threads.listing()[0].id and "> " in done.err and "> " not in done.out


def test_whoever_is_gone_has_left(typed: Typed, noted: Workspace):
    done = typed("chat", keys="/mode\n")
    assert done.code == 0 and "The mode is balanced." in done.out and "--thread" not in done.err


def test_ctrl_c_stops_the_answer_and_not_the_dialogue(typed: Typed, noted: Workspace, model):
    def pressed(text: str, schema: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return writes(CLAIM)(text, None)

    model(looked_up(write=pressed))
    done = typed("chat", keys=f"{QUESTION}\n/why\n/threads\n")
    assert done.code == 0 and "Nothing that was done is lost: `assay resume r" in done.err, done
    assert "There is no answer yet." in done.out and f"* {noted.threads.listing()[0].id}" in done.out
    resumed = re.search(r"assay resume (r\w+)", done.err)
    assert resumed
    model(looked_up())
    assert typed("resume", resumed[1], "-q").out.startswith(ANSWER)
    assert noted.threads.get(noted.threads.listing()[0].id)[1][0].delivered


def test_what_is_wrong_with_a_line_does_not_end_the_dialogue(typed: Typed, noted: Workspace):
    done = typed("chat", keys=f"/base nothing\n/open tnothing\n/dance\n{FIRST}\n")
    assert done.code == 0 and MARKED in done.out
    assert "assay: There is no knowledge base called 'nothing'." in done.err
    assert "assay: There is no thread called 'tnothing'." in done.err
    assert "There is no command /dance. There is: /help, /sources, /why" in done.out


def test_a_follow_up_with_a_model_is_shown_as_it_was_understood(typed: Typed, noted: Workspace, model):
    short = writes(f"{PAINT[:-1]} [{{painted with orpiment}}].")
    server = model(looked_up(write=short, standalone={"question": FIRST}))
    done = typed("chat", keys=f"{QUESTION}\nWhat is it painted with?\n/why\n")
    assert done.code == 0 and done.out.count(f"{PAINT} [1]") == 2 and not server.problems, done
    assert f"understood as: {FIRST}" in done.err and f"Understood as: {FIRST}" in done.out


def test_a_thread_that_is_opened_again_is_shown_in_short_and_its_last_answer_can_be_asked_about(
    typed: Typed, noted: Workspace
):
    thread = thread_in(typed("chat", FIRST).err)
    done = typed("chat", "--thread", thread, keys="/why\n")
    assert f"> {FIRST}\n  The lamp room {PAINT}" in done.err and f"The lamp room: “The lamp room {PAINT}" in done.out
    other = typed("chat", keys=f"/open {thread}\n{NEXT}\n")
    assert f"{FIRST} (1 turn)" in other.out and noted.threads.listing()[0].turns == 2


# --- what may be typed ----------------------------------------------------------------------------------------------


def test_why_shows_score_document_and_quotation_and_what_was_searched(typed: Typed, noted: Workspace):
    done = typed("chat", keys=f"{FIRST}\n/why\n")
    shown = done.out.partition("Cited:\n")[2]
    assert re.match(rf"  \[1\] +\d+\.\d  The lamp room: “The lamp room {re.escape(PAINT)}", shown), done.out
    assert re.search(rf"Searched:\n  “{re.escape(FIRST)}”: \d+ found, \d+ kept\n", shown)
    assert re.search(r"`assay trace r\w+` shows every step.", shown)


def test_mode_and_base_hold_for_the_questions_after_them(typed: Typed, noted: Workspace):
    lines = (FIRST, "/mode quick", "/base default", NEXT, "/base", "/mode hasty", NEXT)
    done = typed("chat", keys="\n".join(lines))
    asked = asked_in(noted)
    assert [each.mode for each in asked] == ["balanced", "quick", "quick"]
    assert [each.where.bases for each in asked] == [(), ("default",), ()]
    assert "There is no mode 'hasty'. There is: quick, balanced, thorough." in done.out


def test_new_begins_a_thread_and_title_names_it(typed: Typed, noted: Workspace):
    done = typed("chat", keys=f"/title Early\n{FIRST}\n/new\n/why\n{NEXT}\n/title The paint\n/threads\n")
    assert "There is no thread yet" in done.out and "There is no answer yet." in done.out
    assert sorted(each.title for each in noted.threads.listing()) == sorted(["The paint", FIRST])
    assert f"* {noted.threads.listing()[0].id}" in done.out and done.out.rstrip().endswith(FIRST)


def test_sources_lists_what_can_be_searched(typed: Typed, noted: Workspace):
    done = typed("chat", keys="/sources\n")
    assert "3 documents:\n  The garden — garden.md\n" in done.out


def test_a_line_with_a_stroke_is_a_command_and_any_other_a_question():
    assert parse_command("/Base one two ") == ("base", "one two")
    assert parse_command("what is /base for?") is None
    assert all(f"/{name}" in "\n".join(chat.help_lines()) for name in chat.COMMANDS)


# --- from a pipe ----------------------------------------------------------------------------------------------------


def test_from_a_pipe_each_line_is_a_turn_without_a_prompt_and_the_last_says_how_it_went(piped, noted: Workspace):
    done = piped(f"{FIRST}\n\n/mode quick\nWhich submarine won the Zanzibar regatta?\n/quit\n{NEXT}\n", "-q")
    assert done.code == 4 and MARKED in done.out and done.err == "" and "> " not in done.out, done
    assert [each.mode for each in asked_in(noted)] == ["balanced", "quick"]


def test_a_turn_that_fails_ends_what_is_piped_in(piped, noted: Workspace, model):
    model(looked_up(write=[]))
    done = piped(f"{QUESTION}\n{FIRST}\n")
    assert done.code == 1 and "carries it on" in done.err and len(asked_in(noted)) == 1


def test_json_from_a_pipe_is_events_and_nothing_else(piped, noted: Workspace):
    done = piped(f"/sources\n{FIRST}\n{NEXT}\n", "--json")
    assert [json.loads(line)["event"] for line in done.out.splitlines()].count("Answered") == 2
    assert "3 documents:" in done.err


# --- threads --------------------------------------------------------------------------------------------------------


def test_threads_are_listed_and_forgotten_and_their_runs_stay(typed: Typed, noted: Workspace):
    assert typed("chat", "--list").out == "There are no threads yet.\n"
    thread = thread_in(typed("chat", FIRST).err)
    run = noted.threads.get(thread)[1][0].id
    assert re.fullmatch(rf"{thread}  \S+ +1 turn  {re.escape(FIRST)}\n", typed("chat", "--list").out)
    listed = json.loads(typed("chat", "--list", "--json").out)
    assert [(each["thread"], each["turns"]) for each in listed] == [(thread, 1)]
    assert f"Forgotten: {FIRST}" in typed("chat", "--forget", thread[:5]).out
    assert not noted.threads.listing() and noted.questions.run(run).delivered
    assert typed("chat", "--forget", thread).code == 2


@pytest.mark.parametrize("words", [["--list", "x"], ["--forget", "t", "x"], ["--list", "--forget", "t"]])
def test_list_and_forget_stand_alone(typed: Typed, noted: Workspace, words: list[str]):
    done = typed("chat", *words)
    assert done.code == 2 and "--list and --forget stand alone" in done.err


def test_a_title_steers_no_terminal(typed: Typed, noted: Workspace):
    done = typed("chat", keys=f"{FIRST}\n/title x{BAD}\n/threads\n/dance{BAD}\n")
    shown = done.out + done.err + typed("chat", "--list").out
    assert "\x1b]0" not in shown and "\x1b[2J" not in shown and "\x07" not in shown and "/dance" in shown


# --- what is shown, by hand -----------------------------------------------------------------------------------------


def passage(n: int) -> Passage:
    return Passage(f"p{n}", "d1", f"Words {n}.", 0, 8, page=2)


def evidence(n: int, words: str = "") -> Evidence:
    return Evidence(f"k{n}", passage(n), Quote("d1", 0, 8, words or f"Words {n}."), float(n), "?", flagged=n == 3)


FOLLOWED = Run(
    "r1",
    (
        Asked("And then?", "me", "2026-01-01", thread="t1"),
        Rephrased("What came after the flood?", "it carries on"),
        Decided((Call("c1", "recall", {"query": "x", "passages": ("p1",)}),), "first", recalls=True),
        ToolRan("c1", (Found(passage(1), 1, 1.0),)),
        Decided((Call("c2", "search", {"query": "after the flood"}),), "next"),
        ToolRan("c2", (Found(passage(1), 1, 1.0), Found(passage(2), 2, 0.5))),
        Gathered((evidence(1), evidence(3, f"{BAD} Words")), ("p2",)),
    ),
)


def test_what_earlier_turns_found_is_told_apart_from_what_was_searched_for():
    lines = chat.why(FOLLOWED, {}, {"d1": "The log"}, {each.key: 2 for each in FOLLOWED.evidence})
    assert lines[0] == "Understood as: What came after the flood?"
    assert "  what earlier turns found: 1 found, 1 kept" in lines and "  “after the flood”: 2 found, 1 kept" in lines
    assert "   1.0  The log, page 2: “Words 1.”" in lines
    assert any(line.endswith("(it reads like an instruction)") for line in lines)


def test_what_a_document_says_steers_no_terminal_when_it_is_shown(capsys: pytest.CaptureFixture[str]):
    from assay.cli.chat import Conversation
    from assay.workspace.types import AskOptions

    for as_json in (False, True):
        open_talk = Conversation(None, Show(OutputFormat.text, as_json, False, ""), AskOptions())  # pyright: ignore[reportArgumentType]
        open_talk.out(chat.why(FOLLOWED, {}, {"d1": f"The log{BAD}"}))
        out, err = capsys.readouterr()
        assert "\x1b" not in out + err and "\x07" not in out + err and "The log" in (err if as_json else out)


def test_a_follow_up_is_drawn_and_told_as_it_was_asked_and_as_it_was_understood():
    from rich.console import Console

    screen = Console(file=io.StringIO(), width=100)
    screen.print(view(FOLLOWED, {}, 1.0))
    drawn = screen.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert drawn.startswith("And then?\nunderstood as: What came after the flood?\n")
    assert "1 found, 1 kept: what earlier turns found" in drawn
    lines = [live_line(event) for event in FOLLOWED.events]
    assert lines[1:3] == ["Understood as: What came after the flood?", "Looking at what earlier turns found"]
    assert record_line(FOLLOWED.events[1]) == "What came after the flood? · it carries on · rules"
    assert (
        "thread t1" in record_line(FOLLOWED.events[0]) and record_line(FOLLOWED.events[2]) == "recall · first · rules"
    )


def test_a_long_conversation_is_opened_with_its_latest_turns():
    runs = [Run(f"r{n}", (Asked(f"Question {n}? {'long ' * 80}", "me", "2026-01-01"),)) for n in range(40)]
    lines = chat.recap_lines(Thread("t1", "me", "Many", "", "", 40), runs)
    assert lines[:2] == ["Many (40 turns)", "  28 before"] and len(lines) == 2 + 2 * chat.TURNS
    assert max(map(len, lines)) <= chat.LONGEST + 2 and lines[-1] == "  not finished"


# --- working on the last answer -------------------------------------------------------------------------------------


@pytest.fixture
def lighthouse(tmp_path: Path) -> Iterator[Workspace]:
    """The notes of the conversation of ten turns, where `typed` looks for them."""
    asyncio.run(filled(tmp_path / "workspace", talk.NOTES))
    with (
        patch.object(
            facade, "open_workspace", lambda folder=None, **flags: notes.opened(tmp_path / "workspace", **flags)
        ),
        notes.opened(tmp_path / "workspace") as opened,
    ):
        yield opened


def spoken(done: Done, turns: Sequence[tuple[str, str, str]]) -> None:
    """What was answered, and what each turn was understood as, in this order."""
    place, heard = 0, done.err
    for words, meant, shown in turns:
        assert talk.printed(shown) in done.out[place:], (words, done.out[place:])
        place = done.out.index(talk.printed(shown), place)
        if meant:
            assert f"Understood as: {meant}" in heard, (words, heard)
            heard = heard[heard.index(f"Understood as: {meant}") + 1 :]


@pytest.mark.long
def test_ten_turns_in_the_terminal(piped: Callable[..., Done], lighthouse: Workspace, model):
    model(talk.script())
    done = piped("\n".join(said for said, _, _ in talk.TURNS) + "\n")
    assert done.code == 0, done.err
    spoken(done, talk.TURNS)


@pytest.mark.long
def test_ten_turns_in_the_terminal_without_a_model(piped: Callable[..., Done], lighthouse: Workspace):
    done = piped("\n".join(said for said, _, _ in talk.RULED) + "\n", "--no-model")
    assert done.code in (0, 3), done
    spoken(done, talk.RULED)


def test_why_says_what_a_turn_was_understood_as(piped: Callable[..., Done], lighthouse: Workspace):
    done = piped(f"{FIRST}\nWhy?\n/why\n", "--no-model")
    assert f"Understood as: Why? {FIRST}" in done.out
    assert "what earlier turns found" in done.out and f"“Why? {FIRST}”" in done.out.split("Searched:")[-1]


# --- stakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_high_stakes_have_each_answer_reviewed_and_nothing_of_it_is_shown(typed: Typed, noted: Workspace, model):
    secret = "zanthoric"
    model(looked_up(route=lookup(f"a {secret} look-up"), write=writes(f"Orpiment is {secret} [{{painted with}}].")))
    done = typed("chat", FIRST, "--stakes", "high")
    assert done.code == 5 and "The answer waits for a reviewer" in done.err and "passages weighed" in done.err, done
    run = noted.threads.get(noted.threads.listing()[0].id)[1][0]
    seen = [
        done,
        typed("chat", FIRST, "--stakes", "high", "--json"),
        typed("trace", run.id),
        typed("trace", run.id, "--json"),
    ]
    seen += [typed("resume", run.id), typed("runs"), typed("report", "run", run.id), typed("export", run.id)]
    for each in seen:
        assert secret not in each.out + each.err and "painted with" not in each.out.replace(FIRST, ""), each
    assert secret in typed("review", run.id).out
    approved = typed("review", run.id, "--approve")
    assert approved.code == 0 and secret in typed("resume", run.id).out


def test_stakes_can_be_changed_between_turns(piped: Callable[..., Done], noted: Workspace):
    done = piped(f"/stakes\n/stakes high\n/stakes some\n{FIRST}\n", "--no-model")
    assert (
        "The stakes are normal." in done.out
        and "The stakes are high." in done.out
        and "There are no stakes 'some'" in done.out
    )
    assert done.code == 5 and PAINT not in done.out + done.err
