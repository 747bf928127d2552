"""`assay --as user:NAME`: a command that acts as somebody does what they could do, and no more."""

from __future__ import annotations

import json

import pytest
from terminal import PAINT, QUESTION, Typed

from assay.core.access import LOCAL, Principal
from assay.store.access import grants, members
from assay.store.runs import records
from assay.workspace.facade import Workspace


@pytest.fixture
def people(noted: Workspace) -> Workspace:
    """The notes are the command line's own; `reader` may read nothing of them, `editor` all."""
    for name in ("reader", "editor"):
        members.add(noted.store, name)
    grants.share(noted.store, noted.scope().named("default"), "user:editor")
    return noted


def test_a_command_sees_what_that_person_sees(typed: Typed, people: Workspace):
    assert PAINT.rstrip(".") in typed("search", "paint of the lamp room").out
    assert PAINT.rstrip(".") in typed("--as", "user:editor", "search", "paint of the lamp room").out
    assert PAINT.rstrip(".") not in typed("--as", "user:reader", "search", "paint of the lamp room").out
    assert json.loads(typed("--as", "user:reader", "sources", "--json").out) == []


def test_a_run_carries_the_name(typed: Typed, people: Workspace):
    done = typed("--as", "user:editor", "ask", QUESTION, "--json")
    run = json.loads(done.out.splitlines()[-1])["run"]
    assert records.owner(people.store, run) == "editor"
    assert people.for_principal(Principal("editor")).questions.run(run).asked.who == "editor"
    assert run in typed("--as", "user:editor", "runs").out
    assert run not in typed("runs").out
    assert typed("trace", run).code == 2, "nobody else's run"


def test_what_somebody_adds_is_theirs(typed: Typed, people: Workspace, tmp_path):
    (tmp_path / "own.md").write_text("The pier at Carrow Point is 12 metres long.", encoding="utf-8")
    assert typed("--as", "user:reader", "add", tmp_path / "own.md", "--base", "piers").code == 0
    assert (
        people.for_principal(members.known(people.store, "reader").principal).scope().named("piers").owner == "reader"
    )
    assert people.scope().find("piers") is None


def test_nobody_changes_through_it_what_is_not_theirs(typed: Typed, people: Workspace):
    refused = typed("--as", "user:editor", "access", "give", "--base", "default", "user:reader")
    assert refused.code == 2
    for words in (("base", "share", "default"), ("access", "give", "--base", "default", "user:reader")):
        done = typed("--as", "user:reader", *words, "--owner", LOCAL.id)
        assert done.code == 2 and "--owner and --as do not go together" in done.err
    assert grants.shared_with(people.store, people.scope().named("default")) == ["user:local", "user:editor"]


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ("user:nobody", "There is no user called 'nobody'"),
        ("group:desk", "--as takes user:NAME"),
        ("editor", "--as takes user:NAME"),
        ("user:", "--as takes user:NAME"),
    ],
)
def test_a_name_that_is_nobodys_is_refused(typed: Typed, people: Workspace, who: str, words: str):
    done = typed("--as", who, "sources")
    assert done.code == 2 and words in done.err


@pytest.mark.parametrize("command", [("user", "list"), ("key", "add", "editor"), ("backup", "all.tar"), ("serve",)])
def test_commands_about_the_whole_workspace_act_for_nobody(typed: Typed, people: Workspace, command: tuple[str, ...]):
    done = typed("--as", "user:editor", *command)
    assert done.code == 2 and f"`assay {command[0]}` is about the whole workspace" in done.err


def test_the_name_can_come_from_the_environment(typed: Typed, people: Workspace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_AS", "user:reader")
    assert json.loads(typed("sources", "--json").out) == []
