"""Runs what README, the tutorial and the how-tos tell people to type, and compares what is printed with what they say.

A ```console block has commands after `$ ` and below each what it prints; a command with nothing below it is run all the same.
`…` stands for anything, alone on a line for any lines. Ids, times, digests and seconds may differ; an id that was printed is
known to the commands below. The blocks of a page share a folder and a workspace with the sample corpus. Comments above a block:

    <!-- setup: COMMAND -->         run before it, not shown
    <!-- empty workspace -->        the page begins without documents
    <!-- not compared: REASON -->   run, but what it prints depends on the day or the machine
    <!-- not run: REASON -->        needs what a test does not have

`python tests/test_doc_commands.py PAGE…` writes into these pages what their commands print, where they tell something else.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import forked
import pytest

from assay.workspace.facade import open_workspace

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/tutorial.md",
    *(f"docs/how-to/{path.name}" for path in sorted((ROOT / "docs/how-to").glob("*.md"))),
]
OUTCOMES = {0, 3, 4, 5}  # a question has exit codes of its own; 1 and 2 are errors
ID = r"\b[a-z][0-9a-f]{16}\b"
TIMES = (  # times, digests, keys and seconds
    r"(?:\d{4}-\d\d-\d\dT[\d:.]+Z?|\b(?:[0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{12})\b|\bassay_[\w-]{40,}|\b\d+(?:\.\d+)? s\b)"
)
VARYING = re.compile(rf"({ID})|(…)|{TIMES}")
REASONS = ("not run", "not compared")
WIDTH, LINES = 140, 14  # of what a page shows, at most


@dataclass(frozen=True, slots=True)
class Block:
    """A block of commands: what stands in the comments above it, and each command with the lines below it."""

    marks: Mapping[str, str]
    setup: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]


def blocks(page: str) -> Iterator[Block]:
    for match in re.finditer(r"((?:^<!-- [^\n]+ -->\n)*)^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        marks: dict[str, str] = {}
        setup: list[str] = []
        for comment in re.findall(r"<!-- (.+) -->", match[1]):
            name, _, value = comment.partition(": ")
            if name == "setup":
                setup.append(value)
            else:
                marks[name] = value
        yield Block(marks, tuple(setup), tuple(typed(match[2])))


def typed(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        while re.search(r"\\\n", part.partition("\n")[0] + "\n"):
            part = part.replace("\\\n", " ", 1)
        command, _, printed = part.partition("\n")
        yield command, printed


@dataclass(slots=True)
class Shell:
    """Runs command lines one after the other in one folder, as a person would who types them."""

    folder: Path
    environment: dict[str, str]
    code: int = 0
    ids: dict[str, str] = field(default_factory=dict)

    def run(self, line: str) -> str:
        line = re.sub(ID, lambda match: self.ids.get(match[0], match[0]), line).replace(".venv/bin/assay", "assay")
        words = shlex.split(line, comments=True)
        if words[:1] == ["export"]:
            self.environment.update(word.split("=", 1) for word in words[1:])
            return ""
        given = dict(self.environment)
        while words and re.match(r"[A-Z_]+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            given[name] = value
        if words[0] != "assay" or {"|", "<", "&&"} & set(words):
            return self._shell(line)
        into = words.index(">") if ">" in words else len(words)
        said = self._assay(words[1:into], given, apart=into < len(words))
        if into < len(words):
            (self.folder / words[into + 1]).write_text(said, encoding="utf-8")
            return ""
        return said

    def _assay(self, words: list[str], environment: Mapping[str, str], apart: bool) -> str:
        process = forked.Process(
            [sys.executable, "-m", "assay.cli.main", *words],
            cwd=self.folder,
            env=environment,
            stdin=forked.DEVNULL,
            stdout=forked.PIPE,
            stderr=forked.DEVNULL if apart else forked.STDOUT,
        )
        said, _ = process.communicate()
        self.code = process.wait(110)
        return said.decode()

    def _shell(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {line}"],
            cwd=self.folder,
            env={**self.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=110,
        )
        self.code = done.returncode
        return done.stdout.decode()

    def learn(self, told: str, said: str) -> bool:
        """Whether what was said is what the page tells. Ids of the page then stand for those that were said."""
        names: list[str] = []
        pattern = "".join(_line(line, names) for line in told.rstrip().splitlines())
        match = re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in said.rstrip().splitlines()))
        if match:
            self.ids.update(zip(names, match.groups(), strict=True))
        return match is not None


def _line(line: str, names: list[str]) -> str:
    if line.strip() == "…":
        return r"(?:.*\n)*?"
    pattern, place = "", 0
    for match in VARYING.finditer(line.rstrip()):
        pattern += re.escape(line[place : match.start()])
        place = match.end()
        if match[1]:
            names.append(match[1])
        pattern += f"({ID})" if match[1] else ".*" if match[2] else TIMES
    return pattern + re.escape(line.rstrip()[place:]) + r"\n"


def shell(folder: Path, filled: Path, page: str) -> Shell:
    """A folder with the samples and, unless the page begins without documents, a workspace that has read them."""
    (folder / "samples").symlink_to(ROOT / "samples")
    empty = "<!-- empty workspace -->" in page
    names = ("workspace", "demo-workspace") if "demo-workspace" in page else ("workspace",)
    for name in names:
        if not empty:
            shutil.copytree(filled, folder / name)
        else:
            open_workspace(folder / name, create=True).close()
            shutil.copy(filled / "cache.db", folder / name)  # vectors: nothing is embedded again
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASSAY_")}
    environment |= {"ASSAY_CACHE_DIR": os.environ["ASSAY_CACHE_DIR"]} if "ASSAY_CACHE_DIR" in os.environ else {}
    environment |= {"ASSAY_WORKSPACE": str(folder / "workspace"), "COLUMNS": "100", "NO_COLOR": "1"}
    return Shell(folder, environment)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in PAGES if "```console" in (ROOT / name).read_text(encoding="utf-8")])
def test_what_a_page_tells_people_to_type_prints_what_it_says(name: str, tmp_path: Path, _filled: Path):
    page = (ROOT / name).read_text(encoding="utf-8")
    types = shell(tmp_path, _filled, page)
    for block in blocks(page):
        for line in block.setup:
            said = types.run(line)
            assert types.code in OUTCOMES, f"{line}\n{said}"
        for line, told in () if "not run" in block.marks else block.commands:
            said = types.run(line)
            assert types.code in OUTCOMES, f"{line}\n{said}"
            if told.strip() and "not compared" not in block.marks:
                assert types.learn(told, said), f"{name}: {line}\n--- printed\n{said}\n--- told\n{told}"


@pytest.mark.parametrize("name", PAGES)
def test_a_block_that_is_not_run_or_not_compared_says_why(name: str):
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        assert all(block.marks[mark] for mark in REASONS if mark in block.marks)
        assert set(block.marks) <= {*REASONS, "empty workspace"}, block.marks
        assert block.commands


@pytest.mark.parametrize("name", PAGES)
def test_no_command_hides_in_a_block_that_nothing_runs(name: str):
    page = re.sub(r"^```console\n.*?^```$", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not re.findall(r"^(?: {4}|\$ )(?:\w+=\S+ )*(?:\.venv/bin/)?assay .*", page, re.MULTILINE)


def test_what_varies_is_recognised_and_nothing_else(tmp_path: Path):
    types = Shell(tmp_path, {})
    told = "r0123456789abcdef  2025-01-01T00:00:00\n…\n3 found in 1.5 s\n"
    assert types.learn(told, "rfedcba9876543210  2026-11-18T05:46:14\na\nb\n3 found in 12 s\n")
    assert types.ids == {"r0123456789abcdef": "rfedcba9876543210"}
    assert not types.learn("3 found in 1.5 s\n", "4 found in 1.5 s\n")
    assert not types.learn("one\n", "one\ntwo\n")


def filled_in(page: str, types: Shell) -> str:
    """The page with what its commands print where it tells nothing, or something else."""
    for block in blocks(page):
        for line in block.setup:
            types.run(line)
        for line, told in () if {"not run", "not compared"} & set(block.marks) else block.commands:
            said = types.run(line)
            if not told.strip() or not types.learn(told, said):
                page = page.replace(f"$ {line}\n{told}", f"$ {line}\n{shortened(said, types.folder)}", 1)
    return page


def shortened(said: str, folder: Path) -> str:
    """What was printed, as a page shows it: without folders and the day, with long lines and the middle cut."""
    for here in (str(folder), str(ROOT), date.today().isoformat()):
        said = said.replace(here, "…")
    lines = [line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in map(str.rstrip, said.rstrip().splitlines())]
    lines = lines if len(lines) <= LINES else [*lines[: LINES - 2], "…", lines[-1]]
    return "".join(f"{line}\n" for line in lines)


def _write(names: list[str]) -> None:
    filled = Path(tempfile.gettempdir()) / f"assay-doc-commands-{os.getuid()}"
    if not filled.exists():
        with open_workspace(filled, create=True) as opened:
            asyncio.run(opened.add([ROOT / "samples" / "corpus"]))
    for name in names or PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / name).write_text(filled_in(page, shell(Path(folder), filled, page)), encoding="utf-8")


if __name__ == "__main__":
    _write(sys.argv[1:])
