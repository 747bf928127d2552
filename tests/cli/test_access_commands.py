"""`assay access` and `assay erase`, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from terminal import Typed

from assay.cli.runs import CHAINED
from assay.core.access import Principal
from assay.store.access import document_access, members
from assay.store.runs import history
from assay.workspace.facade import Workspace

READER = Principal("reader")


def seen(noted: Workspace) -> set[str]:
    return {entry.name for entry in noted.for_principal(READER).documents.listing()}


@pytest.mark.long
def test_access_is_given_and_taken_for_a_base_a_pattern_and_one_document(
    noted: Workspace, typed: Typed, tmp_path: Path
):
    members.add(noted.store, "reader")
    assert seen(noted) == set()
    done = typed("access", "give", "--base", "default", "user:reader")
    assert done.code == 0 and done.out.splitlines() == ["user:local (owner)", "user:reader"] and not done.err
    assert seen(noted) == {"lamp.md", "works.md", "garden.md"}
    done = typed("access", "take", "lamp.md", "user:reader")
    assert done.code == 0 and done.out.splitlines() == ["It has a list of its own.", "user:local (owner)"]
    assert seen(noted) == {"works.md", "garden.md"}
    told = json.loads(typed("access", "show", "lamp.md", "--json").out)
    assert told["own"] and told["read_by"] == ["user:local"] and told["document"] == "lamp.md"
    assert "Whoever may read its knowledge base" in typed("access", "reset", "lamp.md").out
    assert seen(noted) == {"lamp.md", "works.md", "garden.md"}
    only = typed("access", "only", "*.md", "group:press")
    assert only.out.splitlines() == ["It has a list of its own.", "user:local (owner)", "group:press"]
    assert seen(noted) == set() and "It fits *.md" in typed("access", "show", "lamp.md").out
    assert "user:reader" in typed("access", "give", "*.md", "user:reader").out and len(seen(noted)) == 3
    assert json.loads(typed("access", "show", "--base", "default", "--json").out)["patterns"] == ["*.md"]
    assert "Whoever may read" in typed("access", "reset", "*.md").out
    typed("access", "take", "lamp.md", "user:reader")
    lamp = noted.documents.named("lamp.md", noted.scope())
    document_access.note_vanished(noted.store, noted.scope().named("default"), lamp)
    (tmp_path / "new.txt").write_text("A file that came then.")
    typed("add", str(tmp_path / "new.txt"), "-q")
    assert json.loads(typed("access", "held", "--json").out)[0]["name"] == "new.txt" and "new.txt" not in seen(noted)
    assert "--keep or --open" in typed("access", "held", "--keep", "--open").err
    assert "new.txt is open" in typed("access", "held", "--open").out and "new.txt" in seen(noted)
    typed("access", "take", "--base", "default", "user:reader")
    assert seen(noted) == set()
    given = typed("access", "give", "works.md", "group:press")
    assert given.code == 0 and "no group called press" in given.err


def test_what_is_typed_wrongly_is_said(noted: Workspace, typed: Typed):
    assert typed("access", "show").code == 2
    assert "user:NAME or group:NAME" in typed("access", "give", "lamp.md", "reader").err
    assert "whose readers you could change" in typed("access", "show", "--base", "nothing").err
    assert typed("erase").code == 2 and typed("erase", "lamp.md", "--person", "local").code == 2
    assert "nothing here of a person" in typed("erase", "--person", "nobody", "--yes").err


def test_what_is_erased_is_said_and_gone(noted: Workspace, typed: Typed):
    typed("ask", "What is the lamp room painted with?", "--no-model")
    (run,) = history.history(noted.store, "local", noted.scope())
    done = typed("erase", "lamp.md", "--yes")
    assert done.code == 0 and "Erased 1 document (" in done.out and "records said" in done.out
    replayed = typed("replay", run.id)
    assert replayed.code == 2 and "none that you may read" in replayed.err
    assert "withheld" in typed("runs").out
    trace = typed("trace", run.id)
    assert trace.code == 0 and "orpiment" not in trace.out and CHAINED in trace.out
    assert not [path for path in noted.path.rglob("*") if path.is_file() and b"painted with orp" in path.read_bytes()]


def test_files_are_added_for_some_readers_alone_and_it_is_on_record(typed: Typed, noted: Workspace, tmp_path: Path):
    secret = tmp_path / "secret.txt"
    secret.write_text("The safe is behind the third barrel.")
    assert "on record" in typed("audit", "log").out
    done = typed("add", str(secret), "--only-for", "user:ann", "-q")
    assert done.code == 0 and "Note: there is no user called ann here yet." in done.err
    assert "user:ann" in typed("audit", "log").out


def test_who_is_neither_a_user_nor_a_group_is_refused_before_anything_is_said(typed: Typed, noted: Workspace):
    done = typed("add", __file__, "--only-for", "bob", "-q")
    assert done.code == 2 and done.err == "assay: Access is given to user:NAME or group:NAME, not to 'bob'.\n"
