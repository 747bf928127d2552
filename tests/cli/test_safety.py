"""What a command prints steers no terminal, what it deletes is Assay's, and nothing ends in a traceback. In this process."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from terminal import Done, Typed

from assay.cli import doctor, main
from assay.cli.options import Filters
from assay.cli.terminal import as_json, plain, whole
from assay.core.errors import UserError
from assay.core.events import Route, Routed
from assay.core.events.describe import live_line
from assay.core.types import file_name
from assay.evaluate import runner
from assay.store import facts
from assay.store.blobs import UPLOADS
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services.setup import KEY_FILE


def one_line(done: Done, code: int = 2) -> str:
    assert done.code == code and done.err.count("\n") == 1 and done.err.startswith("assay: "), done
    return done.err


# --- what is printed ------------------------------------------------------------------------------------------------


def test_words_from_a_file_steer_no_terminal():
    assert plain("a\x1b[31mb\x07\x9b2Jc\r\x7f\x00\n\tcafé") == "a[31mb2Jc\n\tcafé"
    assert plain("half \udce9") == whole("half \udce9") == "half \ufffd"


SPOOFED = "plan\n\u202efdp.\u2028ok\r\x1b[2K.md"  # breaks its line, and turns what follows round
ESCAPED = r"plan\x0a\u202efdp.\u2028ok\x0d\x1b[2K.md"


def test_what_turns_text_round_is_escaped_for_a_terminal():
    assert plain("a\u202eb\u2066c\u2028d\ufeff") == r"a\u202eb\u2066c\u2028d\ufeff"
    assert plain("שלום\u00a0می\u200cخواهم\n\t") == "שלום\u00a0می\u200cخواهم\n\t"
    assert (
        as_json("a\u202e\u2028", indent=None) == r'"a\u202e\u2028"'
        and json.loads(as_json("\U000e0041")) == "\U000e0041"
    )


@pytest.mark.long
def test_no_file_name_breaks_its_line_or_turns_others_round(typed: Typed, empty: Workspace, tmp_path: Path):
    file = tmp_path / SPOOFED
    file.write_text("# A note\n\nThe valve of the pump house is opened by hand.\n")
    outputs = [typed("add", file), typed("sources"), typed("show", file), typed("sources", "--json")]
    outputs += [typed("ask", "How is the valve of the pump house opened?"), typed("remove", file, "-y")]
    assert [done.code for done in outputs] == [0] * len(outputs), outputs
    for done in outputs:
        assert not re.search("[\u202e\u2028\r\x1b]", done.out + done.err)
        assert ESCAPED in done.out or ESCAPED.replace("\\", "\\\\") in done.out
    lines = [line for done in outputs for line in done.out.splitlines() if "fdp." in line]
    assert all("plan" in line for line in lines) and len(lines) >= len(outputs)


def test_a_name_from_before_is_escaped_where_it_is_shown():
    assert file_name(f"/home/ada/{SPOOFED}") == ESCAPED and file_name(f"upload:{SPOOFED}") == ESCAPED
    assert file_name("/home/ada/Bericht März\u202f5.pdf") == "Bericht März\u202f5.pdf"


def test_what_is_exported_can_be_read_by_its_owner_alone(typed: Typed, noted: Workspace, tmp_path: Path):
    asked = json.loads(typed("ask", "Where is orpiment ground?", "--json").out.splitlines()[0])
    assert typed("export", asked["run"], "--out", tmp_path / "run.zip").code == 0
    assert typed("synthesise", "--no-model", "--yes", "--out", tmp_path / "account").code in {0, 3}
    written = [tmp_path / "run.zip", *(tmp_path / "account").iterdir()]
    assert len(written) == 4 and {each.stat().st_mode & 0o777 for each in written} == {0o600}
    assert (tmp_path / "account").stat().st_mode & 0o777 == 0o700


def test_a_workspace_in_a_folder_that_all_can_read_is_made_its_owners_alone(typed: Typed, tmp_path: Path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "assay.toml").write_text("pool = 50\n")
    (folder / "assay.toml").chmod(0o644)
    (tmp_path / "note.md").write_text("# A note\n\nThe valve of the pump house is opened by hand.\n")
    assert typed("add", tmp_path / "note.md").code == 0
    below = [folder, *folder.rglob("*")]
    assert len(below) > 5 and not [each for each in below if each.stat().st_mode & 0o077]


def test_a_folder_of_others_files_is_left_as_it_is(typed: Typed, tmp_path: Path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "thesis.txt").write_text("Mine.")
    (tmp_path / "note.md").write_text("A note.")
    assert "has other files in it" in one_line(typed("add", tmp_path / "note.md"))
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("mode", "ok"), [(0o700, True), (0o750, None), (0o755, False), (0o701, False)])
def test_doctor_says_who_else_can_read_the_workspace(empty: Workspace, mode: int, ok: bool | None):
    empty.path.chmod(mode)
    found, said = doctor._permissions(empty.path)
    assert found is ok and ("only you" if ok else "chmod -R go=") in said


def test_json_keeps_control_characters_escaped():
    text = "a\x1b\x9b\x7f\udce9é"
    assert json.loads(as_json({"text": text})) == {"text": text}
    assert as_json(text, indent=None) == r'"a\u001b\u009b\u007f\udce9é"'


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A workspace with a document whose name and title try to be more than words."""
    folder = tmp_path / "workspace"
    (tmp_path / "[red]pump[bold].md").write_text(
        "# [bold]Välve \x1b]0;owned\x07 :smile: [/nothing]\n\nThe \x1b[2Jvalve of the pump house is opened by hand.\n\n"
        + "Twice a year the filters in the basement are washed with clear water.\n" * 30,
        encoding="utf-8",
    )
    with open_workspace(folder, create=True) as opened:
        asyncio.run(opened.add([tmp_path / "[red]pump[bold].md"]))
    return folder


@pytest.mark.long
def test_brackets_and_escapes_in_documents_are_only_words(typed: Typed, hostile: Path, tmp_path: Path):
    listed = typed("sources")
    assert listed.code == 0 and "[red]pump[bold].md" in listed.out and "[/nothing]" in listed.out
    added = typed("add", tmp_path / "[red]pump[bold].md")
    assert added.code == 0 and "[red]pump[bold].md" in added.out
    found = typed("search", "valve of the pump house")
    assert found.code == 0 and "[bold]Välve" in found.out and ":smile:" in found.out
    shown = typed("show", tmp_path / "[red]pump[bold].md")
    asked = typed("ask", "How is the valve of the pump house opened?", "-q")
    assert "opened by hand" in shown.out and "is opened *by hand*" in asked.out
    for done in (listed, added, found, shown, asked):
        assert "\x1b" not in done.out + done.err and "\x07" not in done.out + done.err


def test_settings_are_shown_as_they_are_written(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASSAY_EMBEDDER_QUERY_PREFIX", "[/red] query:")
    done = typed("config", "show")
    assert done.code == 0 and "[/red] query:" in done.out


@pytest.mark.long
def test_a_question_that_is_not_utf_8_is_asked_with_a_sign_in_its_place(typed: Typed, hostile: Path):
    assert typed("search", "valve \udce9", "--source", "\udce9").code == 0
    assert typed("ask", "How is the valve \udce9 opened?", "-q").code in {0, 3, 4}
    assert "valve \ufffd opened" in typed("runs").out


def test_the_line_on_dates_says_that_undated_documents_pass():
    assert live_line(Routed(Route.research, "", since="2024-01-01")) == "No documents dated outside 2024-01-01 to …."


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["remove", "show"])
@pytest.mark.parametrize("name", ["", "  "])
def test_a_blank_name_removes_and_shows_nothing(typed: Typed, empty: Workspace, command: str, name: str):
    assert "name cannot be empty" in one_line(typed(command, name))


def test_since_after_until_is_refused():
    with pytest.raises(UserError, match="--since 2025-01-01 is later than --until 2024-12-31"):
        Filters(since="2025", until="2024").where()
    assert Filters(since="2024", until="2024").where().since == "2024-01-01"


def test_a_path_that_cannot_be_is_one_line(typed: Typed, empty: Workspace, tmp_path: Path):
    assert "not known here" in one_line(typed("add", "~nobody-of-this-name/x"))
    assert "not known here" in one_line(typed("config", "show", "-w", "~nobody-of-this-name/x"))
    assert "File name too long" in one_line(typed("add", "x" * 300))
    assert "File name too long" in one_line(typed("sources", "-w", "x" * 300))
    (tmp_path / "file").write_text("x")
    assert "is a file" in one_line(typed("restore", "all.tar.gz", "-w", tmp_path / "file"))


@pytest.mark.parametrize(
    ("corpus", "query", "said"),
    [
        ('{"text": "x"}', '{"_id": "1", "text": "y"}', "corpus.jsonl', line 1: it has no '_id'"),
        ('["x"]', '{"_id": "1", "text": "y"}', "corpus.jsonl', line 1: it has no '_id'"),
        ('{"_id": "a"}', '\n{"text": "y"}', "queries.jsonl', line 2: it has no '_id'"),
        ('{"_id": "a"}', '{"_id": "1"}', "queries.jsonl', line 1: it has no 'text'"),
        ('{"_id": "\udce9"}', '{"_id": "1"}', "corpus.jsonl' is not UTF-8"),
    ],
)
def test_a_line_of_a_collection_that_lacks_something_is_named(tmp_path: Path, corpus: str, query: str, said: str):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t²\n")
    (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8", errors="surrogateescape")
    (tmp_path / "queries.jsonl").write_text(query)
    with pytest.raises(UserError) as raised:
        runner.load(tmp_path)
    assert said in str(raised.value)


def test_what_nobody_foresaw_is_one_line_with_a_way_to_see_more(typed: Typed, monkeypatch: pytest.MonkeyPatch):
    def broken(**_: object) -> None:
        raise ValueError("first\nsecond")

    monkeypatch.setattr(main, "command", lambda: broken)
    line = one_line(typed("sources"), 1)
    assert line == "assay: unexpected error: ValueError: first second. Set ASSAY_DEBUG=1 to see where.\n"
    monkeypatch.setenv("ASSAY_DEBUG", "1")
    with pytest.raises(ValueError, match="first"):
        main.main()


@pytest.mark.long
def test_a_terminal_that_lacks_a_sign_gets_another_one(assay, hostile: Path):
    done = assay("sources", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "V?lve" in done.stdout, done.stderr


# --- what is deleted ------------------------------------------------------------------------------------------------


def filled_by_hand(folder: Path) -> None:
    for name in ("index", "originals", UPLOADS):
        (folder / name / "deep").mkdir(parents=True, exist_ok=True)
    for name in (
        "cache.db",
        "assay.toml",
        KEY_FILE,
        ".b0123456789abcdef.lock",
        "state-version-1.bak",
        "index/deep/part",
    ):
        (folder / name).write_bytes(b"")


def test_deleting_a_workspace_leaves_what_is_not_assays(typed: Typed, empty: Workspace):
    filled_by_hand(empty.path)
    (empty.path / "diary.txt").write_text("Dear diary")
    (empty.path / ".backup.lock").mkdir()
    done = typed("workspace", "delete", "--yes")
    assert done.code == 0 and "did not make it: .backup.lock, diary.txt" in done.out
    assert sorted(item.name for item in empty.path.iterdir()) == [".backup.lock", "diary.txt"]


def test_deleting_a_workspace_takes_all_that_is_assays(typed: Typed, empty: Workspace):
    filled_by_hand(empty.path)
    assert typed("workspace", "delete", "--yes").code == 0 and not empty.path.exists()
    assert "nothing was deleted" in one_line(typed("workspace", "delete", "--yes"))


def test_a_workspace_behind_a_link_is_deleted_with_the_link(typed: Typed, empty: Workspace, tmp_path: Path):
    (tmp_path / "link").symlink_to(empty.path)
    done = typed("workspace", "delete", "--yes", "-w", tmp_path / "link")
    assert done.code == 0 and not empty.path.exists() and not (tmp_path / "link").is_symlink()


def test_nothing_behind_a_link_inside_a_workspace_is_deleted(typed: Typed, empty: Workspace, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "diary.txt").write_text("Dear diary")
    (empty.path / "originals").symlink_to(tmp_path / "elsewhere")
    assert "originals" in typed("workspace", "delete", "--yes").out
    assert (tmp_path / "elsewhere" / "diary.txt").is_file()


# --- what is told and sent ------------------------------------------------------------------------------------------


def test_a_backup_says_that_settings_and_a_key_are_inside(typed: Typed, empty: Workspace, tmp_path: Path):
    assert "settings" not in typed("backup", tmp_path / "one.tar.gz").out
    (empty.path / "assay.toml").write_text("embedder_api_key = 'file:/run/key'\n")
    assert "Your settings (assay.toml) are inside.\n" in typed("backup", tmp_path / "two.tar.gz").out
    (empty.path / "assay.toml").write_text("embedder_api_key = 'hunter2'\nproxy = 'http://me:pw@proxy:8080'\n")
    done = typed("backup", tmp_path / "three.tar.gz")
    assert "inside, with a secret in it (embedder_api_key, proxy)." in done.out
    assert "inside the workspace" in one_line(typed("backup", empty.path / "four.tar.gz"))


def test_doctor_sends_nothing_where_nobody_agreed(empty: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried: list[list[str]] = []
    monkeypatch.setattr(
        doctor, "_round", lambda _, agreed: tried.append(list(agreed)) or doctor._line("a whole round", True, "")
    )
    monkeypatch.setenv("ASSAY_EMBEDDER", "https://me:hunter2@models.example/v1")

    def checks(folder: Path) -> dict[str, dict]:
        return {line["check"]: line for line in doctor._checks(folder)}

    for folder in (empty.path, tmp_path / "nowhere"):
        found = checks(folder)
        assert found["a whole round"]["ok"] is None and "models.example" in found["a whole round"]["found"]
        assert "hunter2" not in str(found) and "https://***@models.example/v1" in found["endpoints"]["found"]
        assert not tried and not (tmp_path / "nowhere").exists()
    facts.agree(empty.store, "models.example")
    assert checks(empty.path)["a whole round"]["ok"] is True and tried == [["models.example"]]


def test_doctor_needs_no_agreement_for_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_round", lambda _, agreed: doctor._line("a whole round", True, f"{agreed}"))
    monkeypatch.setenv("ASSAY_EMBEDDER", "http://127.0.0.1:8080/v1")
    assert list(doctor._checks(tmp_path))[-1] == {"check": "a whole round", "ok": True, "found": "[]"}
