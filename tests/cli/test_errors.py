"""Bad input gets one clear line and exit code 2; nothing ends in a traceback."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest


def one_line(done) -> str:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("assay: "), done.stderr
    return lines[0]


def test_a_path_that_is_not_there(assay):
    assert "no file or folder 'nowhere'" in one_line(assay("add", "nowhere"))


def test_an_empty_folder(assay, tmp_path: Path):
    (tmp_path / "void").mkdir()
    assert "nothing to read" in one_line(assay("add", tmp_path / "void"))


def test_no_workspace_yet(assay):
    assert "assay add" in one_line(assay("ask", "Is there anybody?"))


def test_a_damaged_workspace(assay, tmp_path: Path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "state.db").write_bytes(b"not a database " * 300)
    assert "damaged" in one_line(assay("sources"))


def test_a_workspace_of_a_newer_version(assay, tmp_path: Path):
    from assay.store.database import open_store

    (tmp_path / "workspace").mkdir()
    open_store(tmp_path / "workspace" / "state.db", create=True).close()
    with sqlite3.connect(tmp_path / "workspace" / "state.db") as connection:
        connection.execute("UPDATE facts SET value = '999' WHERE name = 'version'")
    assert "newer Assay" in one_line(assay("sources"))


def test_a_folder_that_holds_something_else(assay, tmp_path: Path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "diary.txt").write_text("Dear diary")
    (tmp_path / "note.txt").write_text("A note about pumps and valves.")
    assert "not a workspace" in one_line(assay("add", tmp_path / "note.txt"))


def test_an_unknown_knowledge_base(assay, filled):
    assert "no knowledge base called 'attic'" in one_line(
        assay("ask", "Why?", "--base", "attic", "--workspace", filled.path)
    )


def test_an_unknown_document(assay, filled):
    assert "no document called 'ghost.pdf'" in one_line(assay("remove", "ghost.pdf", "--workspace", filled.path))


def test_a_date_that_is_none(assay, filled):
    assert "not a date" in one_line(assay("search", "alarm", "--since", "soonish", "--workspace", filled.path))


def test_an_empty_question(assay, filled):
    assert "question is empty" in one_line(assay("ask", "  ", "--workspace", filled.path))


def test_nothing_on_standard_input(assay):
    assert "Standard input was empty" in one_line(assay("add", "-", stdin=b""))


def test_a_setting_that_does_not_exist(assay, tmp_path: Path):
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "assay.toml").write_text("colour = 'red'\n")
    assert "no setting called 'colour'" in one_line(assay("config", "show"))


def test_a_workspace_that_is_a_file(assay, tmp_path: Path):
    (tmp_path / "workspace").write_text("x")
    assert "is a file" in one_line(assay("sources"))


@pytest.mark.parametrize(
    "arguments", [("frobnicate",), ("add",), ("search", "x", "-k", "0"), ("ask", "x", "--mode", "eternal")]
)
def test_a_command_line_that_makes_no_sense(assay, arguments: tuple[str, ...]):
    done = assay(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device, as Linux has")
def test_a_full_disk(assay, tmp_path: Path):
    """A file system of less than a megabyte, filled by adding; the workspace survives and the next add goes on."""
    import subprocess

    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        for n in range(40):
            text = " ".join(f"Valve {n}-{k} is checked by the night shift of station {k}." for k in range(16))
            (tmp_path / f"big-{n}.txt").write_text(text)
        done = assay("add", *sorted(tmp_path.glob("big-*.txt")), "--workspace", place / "workspace", "-q")
        assert "disk is full" in one_line(done)
        subprocess.run(["mount", "-o", "remount,size=200m", str(place)], check=True)
        done = assay("add", *sorted(tmp_path.glob("big-*.txt")), "--workspace", place / "workspace", "-q")
        assert done.returncode == 0 and "40 of 40 files ready" in done.stdout, done.stderr
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)
