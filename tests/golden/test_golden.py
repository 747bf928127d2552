"""Workspaces that the first version made open, verify and replay byte for byte, and what was unfinished is finished as it would
have been then. `README.md` tells what is in them, `make.py` how they were made."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from doubles import synthesis_model
from golden_runs import (
    HERE,
    SECOND_PLACE,
    WORKSPACE,
    Kept,
    finish,
    listed,
    observed,
    opened,
    typed,
    unpacked,
    verified,
    what_is_said,
)

from assay.cli.runs import CHAINED
from assay.core.events.upgrade import current_kind

NAMES = tuple(sorted(place.stem for place in (HERE / "expected").glob("*.json")))
# What a bundle says however often it is made; the rest says when, or is signed with a key that is not kept here.
EXACTLY = {"records.jsonl", "quotations.jsonl"}


AS_RECORDED = "An earlier version of Assay decided this run: its conclusions were taken as recorded."


ABOUT_IT = {"notes", "diagnostics"}
# Prompts that no longer exist, and are no longer exported.
GONE = {f"prompts/{name}.md" for name in ("critique", "describe", "questions", "comparative", "insights", "spine")}


@cache
def expected(name: str) -> dict[str, Any]:
    return json.loads((HERE / "expected" / f"{name}.json").read_text("utf-8"))


def as_seen_today(told: dict[str, Any]) -> dict[str, Any]:
    """What is expected of a run today. The first version made its own runs again; now their conclusions are taken as recorded,
    with the same answer."""
    if (
        "trace_in_words" in told
    ):  # what is withheld is named by its kind; what is not held against a seal is not called whole
        out = re.sub(r"\w+(?= is not shown)", lambda kind: current_kind(kind[0]), told["trace_in_words"]["out"])
        out = out.replace("The record is whole.", CHAINED)
        told = told | {"trace_in_words": told["trace_in_words"] | {"out": out}}
    if "account" in told:  # of a synthesis everything is as recorded, except for what is said about how it was made
        told = told | {"account": {part: words for part, words in told["account"].items() if part not in ABOUT_IT}}
    if "replayed" not in told:
        return told
    kept = {name: told["replayed"][name] for name in ("same", "answer")}
    return told | {"replayed": kept | {"differences": [], "as_recorded": True}}


# Whoever asked sees of an answer that waits for review, or was rejected, only how far it is: the trace tells less now.
WITHHELD_NOW = {
    ("reviewed", "waits, by rule"),
    ("reviewed", "rejected"),
    ("reviewed", "waits"),
    ("reviewed", "edited and waits again"),
}
WITHHELD_KINDS = {"Planned", "Decided", "ToolRan", "Gathered", "Judged", "Drafted", "Checked", "Revised", "Critiqued"}
RUNS = [(name, label) for name in NAMES for label in expected(name)["runs"]]
UNFINISHED = [(name, label) for name in NAMES for label in expected(name)["finish"] if name != "syntheses"]
UNFINISHED_SYNTHESES = list(expected("syntheses")["finish"])
BUNDLED = [name for name in NAMES if expected(name)["bundle"]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each workspace once, for those that only look."""
    return cache(lambda name: unpacked(name, tmp_path_factory.mktemp("golden")))


@pytest.fixture(scope="module")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Each workspace once more, for those that carry runs on."""
    return cache(lambda name: unpacked(name, tmp_path_factory.mktemp("carried")))


@pytest.mark.parametrize("name", NAMES)
def test_every_record_is_whole_and_the_seals_hold(name: str, seen: Any):
    now, told = verified(seen(name)), expected(name)["verify"]
    for counted in ("records", "since"):  # rights that were given are recorded when a workspace is opened
        assert now["told"].pop(counted) >= told["told"][counted]
    now["told"].pop("unsealed_since", "")
    assert now["told"] == {part: value for part, value in told["told"].items() if part not in ("records", "since")}
    assert now["code"] == told["code"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_runs_reviews_conversations_and_documents_are_listed(name: str, seen: Any):
    assert listed(seen(name)) == expected(name)["listed"]


@pytest.mark.long
@pytest.mark.parametrize(("name", "label"), RUNS)
def test_a_run_is_read_traced_and_replayed_as_it_was(name: str, label: str, seen: Any):
    told = dict(as_seen_today(expected(name)["runs"][label]))
    now = observed(seen(name), told["run"], told["who"])
    if "trace_in_words" in now:  # what a request was for is told today
        out = re.sub(r"(?<=Consulted)( +[\w/]+): [^·\n]+(?= · )", r"\1", now["trace_in_words"]["out"])
        now["trace_in_words"] = now["trace_in_words"] | {"out": out}
    if "account" in now:
        now["account"] = {part: words for part, words in now["account"].items() if part not in ABOUT_IT}
    if "replay" in told and told["replay"]["out"]:
        before, after = told.pop("replay"), now.pop("replay")
        assert after["code"] == before["code"] and AS_RECORDED in after["err"]
        shown = " ".join(after["out"].split())  # the layout is today's, the words are those of then
        assert all(" ".join(words.split()) in shown for words in statements(told["answer"]))
    if (name, label) in WITHHELD_NOW:
        assert_same_records_tell_less(told.pop("trace_in_words")["out"], now.pop("trace_in_words")["out"])
        before, after = told.pop("trace"), now.pop("trace")
        assert len(after.pop("records")) == len(before.pop("records")) and after == before
    if label == "the whole workspace":  # rights that were given are recorded when it is opened
        now["records"] = now["records"][: len(told["records"])]
    if label == "killed while checking, with a model":  # words that are not checked yet are not shown any more
        before, after = (each.pop("trace_in_words")["out"].splitlines() for each in (told, now))
        assert len(before) == len(after) and told.pop("trace")["code"] == now.pop("trace")["code"]
    for part in told:  # one after the other: the first that differs says more than all of them together
        assert now[part] == told[part], part
    assert now.keys() == told.keys()


def statements(answer: str) -> list[str]:
    """What an answer says, and what it quotes as nearest."""
    told = json.loads(answer)
    claims = [claim for block in told["blocks"] for claim in block["claims"]] + told["near"]
    return [claim["text"] or claim["quote"]["text"] for claim in claims]


def assert_same_records_tell_less(before: str, after: str) -> None:
    """The same records, line by line: number, time, hash and kind. What could amount to the draft is not shown."""
    rows = [(line.split(maxsplit=4), line) for line in after.splitlines()]
    assert [row[:4] for row, _ in rows] == [line.split(maxsplit=4)[:4] for line in before.splitlines()]
    shown = {row[3] for row, line in rows if len(row) > 4 and "is not shown" not in line}
    assert not shown & WITHHELD_KINDS


@pytest.mark.long
@pytest.mark.parametrize(("name", "label"), UNFINISHED)
def test_an_unfinished_run_is_finished_with_the_same_answer(name: str, label: str, carried: Any):
    folder, told = carried(name), expected(name)["finish"][label]
    run = expected(name)["runs"][label]["run"]
    model = Kept(told["replies"]) if told["replies"] is not None else None
    done = finish(folder, run, told["how"], model.answer if model else None)
    before, after = ([current_kind(kind) for kind in each["kinds"]] for each in (told, done))
    if model is None:  # extracts in place of sentences that rules chose
        assert bool(done["answer"]) == bool(told["answer"]) and after[-1] == before[-1]
    else:  # passages are weighed and claims are judged in other requests now, and fewer names are followed
        said, before_said = (what_is_said(each["answer"]) for each in (done, told))
        queries, before_queries = ({each["query"] for each in one.pop("searched")} for one in (said, before_said))
        assert queries <= before_queries
        assert said == before_said
    assert done["delivered"] == told["delivered"]
    assert typed(folder, "verify", run, "--copy", str(folder / SECOND_PLACE))["code"] == 0
    assert typed(folder, "replay", run, "--quiet")["code"] in ((0, 3) if model is None else (0,))  # 3: perhaps found


@pytest.mark.long
@pytest.mark.parametrize("label", UNFINISHED_SYNTHESES)
def test_an_unfinished_synthesis_is_finished_by_the_stages_of_today(label: str, carried: Any):
    folder, told = carried("syntheses"), expected("syntheses")["finish"][label]
    run = expected("syntheses")["runs"][label]["run"]
    done = finish(folder, run, told["how"], synthesis_model() if told["replies"] is not None else None)
    assert done["delivered"] and done["answer"]
    assert typed(folder, "verify", run, "--copy", str(folder / SECOND_PLACE))["code"] == 0
    assert typed(folder, "replay", run, "--quiet")["code"] in (0, 3)  # 3: some of it was made by rule


def test_a_run_is_finished_with_an_index_that_is_built_again(tmp_path: Path):
    label = "killed while searching, by rule"
    folder = unpacked("unfinished", tmp_path)
    shutil.rmtree(folder / WORKSPACE / "index")
    with opened(folder) as workspace:
        asyncio.run(workspace.documents.reindex())
    done = finish(folder, expected("unfinished")["runs"][label]["run"], {}, None)
    before, after = (json.loads(each["answer"]) for each in (expected("unfinished")["finish"][label], done))
    first, now = (each["blocks"][0]["claims"][0]["quote"]["text"] for each in (before, after))
    assert first in now


def test_a_workspace_is_sealed_again_after_more_was_recorded(tmp_path: Path):
    folder = unpacked("unfinished", tmp_path)
    finish(folder, expected("unfinished")["runs"]["paused by rule"]["run"], {"choice": "answer now"}, None)
    assert typed(folder, "audit", "seal")["code"] == 0
    told = json.loads(typed(folder, "verify", "--json")["out"])
    assert told["whole"] and told["since"] == 0
    assert typed(folder, "verify", "--copy", str(folder / SECOND_PLACE))["code"] == 0


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundle_is_good_and_the_same_is_exported_today(name: str, tmp_path: Path):
    old, new = HERE / "bundles" / f"{name}.zip", tmp_path / "again.zip"
    run = expected(name)["runs"][expected(name)["bundle"]]["run"]
    assert typed(unpacked(name, tmp_path), "export", run, "--out", str(new))["code"] == 0
    before, after = _files(old), _files(new)
    (tmp_path / "check.py").write_bytes(before["check.py"])
    for each in (old, new):  # by the program that was in it then
        done = subprocess.run([sys.executable, "-I", tmp_path / "check.py", each], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert before.keys() - GONE == after.keys()
    same = {name for name in before if name.startswith("payloads/") or name in EXACTLY}
    assert [name for name in sorted(same) if before[name] != after[name]] == []
    was, now = (
        " ".join(files["answer.md"].decode().split()) for files in (before, after)
    )  # sources are listed otherwise
    said = statements(expected(name)["runs"][expected(name)["bundle"]]["answer"])
    assert [words for words in said if (" ".join(words.split()) in was) and " ".join(words.split()) not in now] == []


def _files(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
