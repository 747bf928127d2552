"""Runs once more, in a terminal: made again, begun anew from a step, compared, reported on."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from sqlalchemy import func, update
from terminal import ANSWER, QUESTION, Typed, looked_up, researched

from assay.store.schema import payloads
from assay.workspace.facade import Workspace


def run_in(words: str) -> str:
    found = re.search(r"assay trace (r\w+)", words)
    assert found is not None, words
    return found[1]


def test_an_answer_is_made_again_without_a_model_and_without_an_index(
    typed: Typed, noted: Workspace, model, monkeypatch: pytest.MonkeyPatch
):
    server = model(researched())
    first = typed("ask", QUESTION)
    run = run_in(first.err)
    server.close()
    shutil.rmtree(noted.path / "index")
    for name in ("BASE_URL", "MODEL", "API_KEY"):
        monkeypatch.delenv(f"ASSAY_LLM_{name}")
    done = typed("replay", run)
    assert done.code == first.code and done.out == first.out, "the same bytes"
    assert "byte for byte the same. No model was asked." in done.err and "Taken as recorded" in done.err
    told = json.loads(typed("replay", run, "--json").out)
    with noted.store.write() as connection:  # somebody makes the record say that another answer was delivered
        last = payloads.c.seq == len(noted.questions.run(run).events) - 1
        forged = func.replace(payloads.c.body, "orpiment", "ochre")
        connection.execute(update(payloads).where(payloads.c.run == run, last).values(body=forged))
    lied = typed("replay", run)
    assert lied.out == first.out and lied.code == 1 and "is not the one that was recorded" in lied.err
    assert told["same"] and told["differences"] == [] and told["answer"]["outcome"] == "answered"


def test_a_run_goes_on_from_a_step_with_another_model_and_what_changed_is_shown(typed: Typed, noted: Workspace, model):
    model(looked_up())
    run = run_in(typed("ask", QUESTION).err)
    place = noted.questions.run(run).kinds.index("Claimed")
    done = typed("replay", run, "--from", str(place), "--model", "another")
    assert done.code == 0 and done.out.startswith(ANSWER)
    new = run_in(done.err)
    assert f"Begun from record {place - 1} of {run}; `assay diff {run} {new}` shows what changed." in done.err
    told = typed("diff", run, new)
    assert told.code == 0 and "evidence: the same" in told.out and "      b  another" in told.out
    parts = json.loads(typed("diff", run, new, "--json").out)["parts"]
    assert next(part["name"] for part in parts if not part["same"]) == "question"


@pytest.mark.long
def test_what_cannot_be_is_said_in_a_line_and_reports_are_tables_json_and_csv(typed: Typed, noted: Workspace):
    assert "Nothing was recorded in this time." in typed("report", "runs").err
    typed("ask", QUESTION, "--quiet")
    run = typed("runs").out.split()[0]
    for words, line in (
        (("replay", run, "--from", "0"), "has no record 0 to go on from"),
        (("replay", run, "--from", "99"), "has no record 99 to go on from"),
        (("replay", run, "--model", "another"), "--model goes with --from"),
        (("report", "tools", run), "is about all runs"),
        (("report", "runs", "--since", "2030", "--until", "2029"), "no run was begun so"),
    ):
        done = typed(*words)
        assert done.code == 2 and line in done.err and done.err.count("\n") == 1, words
    assert re.search(r"week +runs", typed("report", "runs").out) and "asked by" in typed("report", "runs", run).out
    made = json.loads(typed("report", "tools", "--json").out)
    rows = list(csv.reader(io.StringIO(typed("report", "tools", "--csv").out)))
    assert rows[0] == [column["name"] for column in made["columns"]] and "search" in {row[1] for row in rows[1:]}
    assert typed("report", "runs", "--until", "2001", "--csv").out.count("\n") == 1
    assert typed("report", "health").code == 0


def test_the_files_for_monitoring_are_printed(typed: Typed):
    assert typed("monitor", "alerts").out.startswith("# Alert rules") and json.loads(typed("monitor", "dashboard").out)


def test_what_models_were_asked_is_made_again_word_for_word_from_the_record(typed: Typed, noted: Workspace, model):
    server = model(looked_up())
    run = run_in(typed("ask", QUESTION).err)
    sent = [[(each["role"], each["content"]) for each in body["messages"]] for body in server.requests]
    server.close()
    done = typed("replay", run, "--prompts", "--json")
    told = json.loads(done.out)
    made = [[(each["role"], each["text"]) for each in one["request"]["messages"]] for one in told]
    assert done.code == 0 and made and all(each in sent for each in made)
    shown = typed("replay", run, "--prompts")
    assert shown.code == 0 and shown.out.count("as recorded") == len(told) and QUESTION in shown.out
    with noted.store.write() as connection:  # somebody makes the record say that something else was asked
        forged = func.replace(payloads.c.body, QUESTION, "What is the lamp room made of?")
        connection.execute(update(payloads).where(payloads.c.run == run, payloads.c.seq == 0).values(body=forged))
    wrong = typed("replay", run, "--prompts")
    assert wrong.code == 1 and "could not be made again" in wrong.out


def test_recheck_lists_what_no_longer_holds_and_runs_mark_it(typed: Typed, tmp_path: Path):
    rules = tmp_path / "rules.md"
    rules.write_text("# Rules\n\nGuests may stay for 30 days.\n", encoding="utf-8")
    assert typed("add", rules, "--quiet").code == 0
    typed("ask", "How long may guests stay?", "--quiet")
    assert typed("recheck").out.startswith("Nothing that your answers rest on has changed.")
    rules.write_text("# Rules\n\nGuests may stay for 45 days.\n", encoding="utf-8")
    typed("add", rules, "--quiet")
    [found] = json.loads(typed("recheck", "--json").out)
    assert found["standing"] == "no longer holds" and found["line"].startswith("No longer holds: “Guests may stay")
    assert [(each["then"], each["now"]) for each in found["findings"]] == [
        ("Guests may stay for 30 days.", "Guests may stay for 45 days.")
    ]
    assert found["line"] in typed("recheck", found["run"]).out
    assert "[no longer holds] How long may guests stay?" in typed("runs").out
    assert found["line"] in typed("replay", found["run"]).err
