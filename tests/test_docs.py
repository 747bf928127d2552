"""Docs cannot drift: what the program has is documented, and what the documents say is there."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import forked
import pytest
import typer
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route

import assay
from assay.agent.loop import Step
from assay.answer import render
from assay.answer.extracts import FOUND, PERHAPS
from assay.cli.follow import EXIT
from assay.cli.main import app
from assay.core.events import KINDS
from assay.core.settings import PREFIX, Settings
from assay.ingest.parsed import Status
from assay.workspace.facade import Workspace

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import reference  # noqa: E402
import troubleshooting  # noqa: E402

DOCS = ROOT / "docs"
SOURCE = Path(assay.__file__).parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = ROOT / "examples"


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level; empty where there is none."""
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return match[1] if match else ""


# --- what the program has is documented -----------------------------------------------------------------------------


def commands() -> dict[str, object]:
    """Every command by its full name, from the program itself."""
    found: dict[str, object] = {}

    def walk(name: str, command) -> None:
        below = getattr(command, "commands", None)
        if below is None and not command.hidden:  # another spelling of a command that is there
            found[name] = command
        for word, inner in (below or {}).items():
            walk(f"{name} {word}", inner)

    walk("assay", typer.main.get_command(app))
    return found


COMMANDS = commands()
PROGRAM = typer.main.get_command(app)
ALWAYS = {"--help", "-h"}


def flags(command) -> set[str]:
    return {flag for each in command.params for flag in (*each.opts, *each.secondary_opts) if flag.startswith("-")}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_with_exactly_its_flags(name: str):
    told = section(page("docs/reference/commands.md"), f"`{name}`")
    assert told, f"docs/reference/commands.md has no section on `{name}`"
    table = "\n".join(line.split("|")[1] for line in told.splitlines() if line.startswith("| `-"))
    assert set(re.findall(r"`(--?[a-z-]+)`", table)) - ALWAYS == flags(COMMANDS[name]) - ALWAYS


def test_another_spelling_of_a_command_is_documented():
    every = typer.main.get_command(app).commands.items()  # pyright: ignore[reportAttributeAccessIssue]
    hidden = [name for name, command in every if command.hidden]
    assert hidden == ["synthesize"]
    assert "`assay synthesize`" in section(page("docs/reference/commands.md"), "`assay synthesise`")


def test_every_setting_is_documented_with_its_variable_and_its_default():
    text = page("docs/reference/settings.md")
    for name, field in Settings.model_fields.items():
        default = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
        row = f"| `{name}` | `{PREFIX}{name.upper()}` | {f'`{default}`' if default != '' else 'empty'} |"
        assert row in text, f"docs/reference/settings.md has no row that begins with {row}"
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {
        "ASSAY_AS",
        "ASSAY_WORKSPACE",
        "ASSAY_CACHE_DIR",
        "ASSAY_DEBUG",
    }
    assert set(re.findall(r"ASSAY_[A-Z_]+[A-Z]", "\n".join(path.read_text() for path in PAGES))) <= known


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_event_is_documented_with_its_fields(kind: str):
    told = section(page("docs/reference/events.md"), f"`{kind}`")
    cells = "\n".join(line.split("|")[1] for line in told.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", cells)) == {field.name for field in dataclasses.fields(KINDS[kind])}


def test_every_file_status_is_documented():
    rows = re.findall(r"^\| `(\w+)` \|", page("docs/reference/statuses.md").split("## How a file")[0], re.MULTILINE)
    assert sorted(rows) == sorted(Status)


def test_every_exit_code_is_documented():
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", page("docs/reference/commands.md"), re.MULTILINE)}
    assert {0, 1, 2, 130, *EXIT.values()} == rows


def test_the_probabilities_from_which_on_extracts_count_are_documented():
    said = section(page("docs/reference/commands.md"), "`assay ask`")
    assert f"probability of {FOUND} (`FOUND`)" in said and f"from {PERHAPS} (`PERHAPS`)" in said
    lines = section(page("docs/how-to/ask-without-a-model.md"), "What the line above says")
    assert f"at least {FOUND}" in lines and f"at least {PERHAPS}" in lines
    for line in render.EXTRACTS_TEXT.values():
        assert line.rstrip(":") in lines


def test_every_step_of_a_question_is_in_the_table_of_steps_and_no_other():
    rows = re.findall(r"^\| ([a-z, ]+) \|", section(page("docs/architecture.md"), "The loop"), re.MULTILINE)
    assert sorted(name for row in rows[1:] for name in row.split(", ")) == sorted(step.name.lower() for step in Step)


def test_every_package_is_in_the_table_of_packages():
    parts = {path.stem for path in SOURCE.iterdir() if path.name[0] not in "._" and path.name != "data"}
    told = set(re.findall(r"`(\w+)`", section(page("docs/architecture.md"), "Packages")))
    assert parts <= told, f"docs/architecture.md does not speak of {sorted(parts - told)}"


def routes(folder: Path) -> set[str]:
    """Every route that the server has, as `GET /health`; what takes any method, as its path alone."""
    from assay.serve.app import make_app
    from assay.serve.state import Server
    from assay.workspace.facade import open_workspace

    with open_workspace(folder, create=True) as opened:
        made = make_app(Server(opened))
    told = {f"{method.upper()} {path}" for path, each in made.openapi()["paths"].items() for method in each}
    elsewhere = [each for each in made.routes if isinstance(each, Route) and not isinstance(each, APIRoute)]
    elsewhere += [each for each in made.routes if isinstance(each, APIRoute) and not each.include_in_schema]
    told |= {f"{method} {each.path}" for each in elsewhere for method in each.methods or ()}
    told |= {each.path for each in made.routes if isinstance(each, Mount)}
    return {each for each in told if not each.startswith("HEAD ")}


@pytest.mark.parametrize("name", ["commands.md", "settings.md", pytest.param("http.md", marks=pytest.mark.long)])
def test_a_page_of_the_reference_is_made_from_the_code(name: str):
    text = page(f"docs/reference/{name}")
    assert reference.WRITERS[name](text) == text, "run: make docs"


@pytest.mark.long
def test_every_route_is_documented_and_no_other(tmp_path: Path):
    rows = set(re.findall(r"^\| `((?:[A-Z]+ )?/\S*)` \|", page("docs/reference/http.md"), re.MULTILINE))
    assert rows == routes(tmp_path / "workspace")


def test_every_decision_is_in_the_index_of_decisions():
    index = page("docs/decisions/README.md")
    assert not [path.name for path in (DOCS / "decisions").glob("0*.md") if path.name not in index]


# --- what the documents say is there --------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """The anchor that a heading gets where Markdown is shown."""
    words = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return words.strip().replace(" ", "-")


def anchors(path: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)}


def links() -> Iterator[tuple[Path, str]]:
    for path in PAGES:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+:", target):
                yield path, target


def test_every_link_between_documents_leads_somewhere():
    wrong = []
    for path, target in links():
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        if not place.exists() or (anchor and anchor not in anchors(place)):
            wrong.append(f"{path.relative_to(ROOT)}: {target}")
    assert not wrong, "\n".join(wrong)


def typed() -> Iterator[tuple[str, str]]:
    """Every `assay …` line of the documents, as typed: after `$ ` in a console, or in an indented block."""
    for path in PAGES:
        for block in re.findall(r"^```(?:console|sh)\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S):
            for line in block.splitlines():
                if line.startswith("$ ") and re.search(r"\bassay\b", line):
                    yield str(path.relative_to(ROOT)), line.removeprefix("$ ")
        for line in re.findall(r"^ {4}(\S.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            if re.match(r"(\w+=\S+ )*(\.venv/bin/)?assay ", line) and not re.search(r"[…\]]|\b[A-Z]{4,}\b", line):
                yield str(path.relative_to(ROOT)), line


def command_lines(line: str) -> Iterator[list[str]]:
    """The words after `assay` of each such command in a line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
    words.whitespace_split = True
    part: list[str] = []
    for word in [*words, ";"]:
        if word[0] in "|;&<>":
            names = [place for place, each in enumerate(part) if Path(each).name == "assay"]
            if names:
                yield part[names[0] + 1 :]
            part = []
        else:
            part.append(word)


TYPED = sorted({(where, line) for where, line in typed()})


def test_there_are_commands_to_check():
    assert {"README.md", "docs/tutorial.md"} <= {where for where, _ in TYPED}


@pytest.mark.parametrize(("where", "line"), TYPED)
def test_a_command_in_the_documents_can_be_typed(where: str, line: str):
    for words in command_lines(line):
        command, name = PROGRAM, "assay"
        words = words[2:] if words[:1] == ["--as"] else words
        while words and words[0] in getattr(command, "commands", {}):
            name, command, words = f"{name} {words[0]}", command.commands[words[0]], words[1:]
        if name == "assay":
            assert words and words[0] in {"--version", "--help", "--install-completion"}, f"{where}: {line}"
        else:
            assert name in COMMANDS, f"{where}: {line}"
            command.make_context(name, list(words))  # raises on an unknown flag, a missing argument or a bad value


@pytest.mark.long
def test_the_page_on_troubleshooting_is_made_from_the_errors_in_the_code():
    text = page("docs/troubleshooting.md")
    assert troubleshooting.render(text) == text, "run: python scripts/troubleshooting.py"


def test_the_readme_fits_on_a_screen_or_two():
    assert len(page("README.md").splitlines()) <= 100


def test_every_import_in_the_documents_works():
    lines = {
        line.strip()
        for path in PAGES
        for line in re.findall(r"^ *from assay[\w.]* import [\w, ]+$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert lines
    for line in sorted(lines):
        exec(line, {})


def test_every_file_that_the_documents_name_is_there():
    pattern = r"`((?:src/assay/|tests/|bench/|scripts/)?[a-z_0-9]+(?:/[a-z_0-9]+)*/(?:[a-z_0-9]+\.(?:py|toml))?)`"
    pages = [path for path in PAGES if path.name != "CHANGELOG.md"]
    named = {(str(path.relative_to(ROOT)), name) for path in pages for name in re.findall(pattern, path.read_text())}
    named = {
        (path, name) for path, name in named if name.count("/") > 1 or name.endswith(".py")
    }  # `originals/` is none of ours
    assert len(named) > 60
    assert not [each for each in named if not (ROOT / each[1]).exists() and not (SOURCE / each[1]).exists()]


def test_the_documents_name_no_place_of_whoever_wrote_them():
    wrong = [str(path) for path in PAGES if re.search(r"/(work|tmp|root)/|pyenv", path.read_text(encoding="utf-8"))]
    assert not wrong


# --- the examples run -----------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("add_and_search.py", "20 documents"),
        ("ask_and_check.py", "Raw telemetry is kept for"),
        ("filter_by_date.py", "Operations report, April 2025"),
        ("mcp_client.py", "Raw telemetry is kept for"),
        ("openai_client.py", "/#/document/"),
        ("own_tool.py", "RAL is short for Raised Alert Level"),
        ("scripted_model.py", "Raw telemetry is kept for 90 days."),
    ],
)
def test_an_example_runs(name: str, says: str, filled: Workspace):
    done = forked.run(
        [sys.executable, EXAMPLES / name], env={**os.environ, "ASSAY_WORKSPACE": str(filled.path)}, text=True
    )
    assert done.returncode == 0 and says in done.stdout, done.stdout + done.stderr


def test_no_example_is_left_out():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "add_and_search.py",
        "ask_and_check.py",
        "filter_by_date.py",
        "mcp_client.py",
        "openai_client.py",
        "own_tool.py",
        "scripted_model.py",
    }
