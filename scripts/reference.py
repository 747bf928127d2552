"""Write docs/reference/commands.md, settings.md and http.md anew from the code: `python scripts/reference.py`.

Commands come from the help of the command line, settings from their descriptions, routes from the OpenAPI document. Kept is
what stands above the first section, around the tables of settings, and after `<!-- by hand -->` in a section.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import Mount, Route

from assay.cli.main import app as program
from assay.core.settings import PREFIX, Settings

PAGES = Path(__file__).parent.parent / "docs" / "reference"
BY_HAND = "<!-- by hand -->"
LAST = "Others"  # the section of what stands in none


def parts(page: str) -> tuple[str, dict[str, str]]:
    """What stands above the first section that is made from the code, and each section by its heading."""
    head, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    kept = {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}
    return head, kept


def by_hand(section: str) -> str:
    return f"\n\n{BY_HAND}\n\n{section.partition(BY_HAND)[2].strip()}" if BY_HAND in section else ""


def cell(words: str) -> str:
    return " ".join(words.split()).replace("|", "\\|").rstrip(".")


# --- commands -------------------------------------------------------------------------------------------------------


def commands(page: str) -> str:
    head = re.split(r"^## `assay ", page, maxsplit=1, flags=re.MULTILINE)[0].rstrip()
    kept = parts(page)[1]
    made = [command_section(name, each) + by_hand(kept.get(f"`{name}`", "")) for name, each in _commands()]
    return "\n\n".join([head, *made]) + "\n"


def _commands() -> Iterator[tuple[str, Any]]:
    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if below is None and not command.hidden:
            yield name, command
        for word, inner in (below or {}).items():
            yield from walk(f"{name} {word}", inner)

    return walk("assay", typer.main.get_command(program))


def command_section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join(
        [name, *map(_argument, arguments), *(["[OPTIONS]"] if len(arguments) < len(command.params) else [])]
    )
    rows = [f"| {_names(each)} | {_meaning(each)} |" for each in command.params if "--help" not in each.opts]
    table = "\n".join(["| argument, flag | meaning |", "|---|---|", *rows])
    words = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(command.help or "").replace("\b", "").replace("\f", ""))
    return "\n\n".join([f"## `{name}`", f"    {usage}", words, *([table] if rows else [])])


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("…" if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{_argument(option).strip('[]')}`"
    return ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))


def _meaning(option: Any) -> str:
    choices = ", ".join(f"`{each}`" for each in _choices(option.type_descriptor.annotation))
    words = cell(getattr(option, "help", "") or "")
    default = getattr(option.default, "value", option.default)
    shown = default not in (None, False, (), [], "", ...) and not callable(default) and "efault:" not in words
    said = [words, choices, f"Default: `{default}`" if shown else ""]
    return ". ".join(each for each in said if each)


def _choices(kind: Any) -> Iterator[str]:
    for each in (kind, *typing.get_args(kind)):
        if isinstance(each, type) and issubclass(each, Enum):
            yield from (str(one.value) for one in each)


# --- settings -------------------------------------------------------------------------------------------------------


def settings(page: str) -> str:
    head, kept = parts(page)
    placed = {name: section for section, text in kept.items() for name in re.findall(r"^\| `(\w+)` \|", text, re.M)}
    unplaced = [name for name in Settings.model_fields if name not in placed]
    made = []
    for section, text in kept.items():
        rows = [row for name in re.findall(r"^\| `(\w+)` \|", text, re.M) if (row := _setting(name))]
        intro = text.partition("| setting |")[0].strip() if rows else text.strip()
        made.append(
            "\n\n".join(each for each in (f"## {section}", intro, _settings_table(rows)) if each) + _after(text)
        )
    if unplaced:
        made.append(f"## {LAST}\n\n{_settings_table([_setting(name) for name in unplaced])}")
    return "\n\n".join([head.rstrip(), *made]) + "\n"


def _after(section: str) -> str:
    """What somebody wrote below the table of a section."""
    below = re.split(r"(?:^\|.*\n)+", section, maxsplit=1, flags=re.MULTILINE)
    return f"\n\n{below[1].strip()}" if len(below) > 1 and below[1].strip() else ""


def _settings_table(rows: list[str]) -> str:
    return "\n".join(["| setting | environment | default | meaning |", "|---|---|---|---|", *rows]) if rows else ""


def _setting(name: str) -> str:
    if (field := Settings.model_fields.get(name)) is None:
        return ""
    default = field.default.get_secret_value() if hasattr(field.default, "get_secret_value") else field.default
    shown = f"`{default}`" if default != "" else "empty"
    return f"| `{name}` | `{PREFIX}{name.upper()}` | {shown} | {cell(field.description or '')} |"


# --- routes ---------------------------------------------------------------------------------------------------------


def http(page: str) -> str:
    head, kept = parts(page)
    told = dict(re.findall(r"^\| `((?:[A-Z]+ )?/\S*)` \| (.*) \|$", page, re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        app = _server(Path(folder))
    sections: dict[str, list[str]] = {}
    for path, each in app.openapi()["paths"].items():
        for method, route in each.items():
            words = cell(route.get("description") or route["summary"])
            sections.setdefault(route["tags"][0].capitalize(), []).append(_row(f"{method.upper()} {path}", words))
    sections[LAST] = [_row(route, told.get(route, "")) for route in _unlisted(app)]
    table = "| route | description |\n|---|---|\n"
    made = [f"## {name}\n\n{table}" + "\n".join(rows) + by_hand(kept.get(name, "")) for name, rows in sections.items()]
    return "\n\n".join([head.rstrip(), *made]) + "\n"


def _server(folder: Path) -> FastAPI:
    from assay.serve.app import make_app
    from assay.serve.state import Server
    from assay.workspace.facade import open_workspace

    with open_workspace(folder / "workspace", create=True) as opened:
        return make_app(Server(opened))


def _unlisted(app: FastAPI) -> Iterator[str]:
    """Routes that the OpenAPI document leaves out; what takes any method, as its path alone."""
    for each in app.routes:
        if isinstance(each, Mount):
            yield each.path
        elif isinstance(each, Route) and not (isinstance(each, APIRoute) and each.include_in_schema):
            yield from (f"{method} {each.path}" for method in sorted(each.methods or ()) if method != "HEAD")


def _row(route: str, words: str) -> str:
    return f"| `{route}` | {words} |"


WRITERS: dict[str, Callable[[str], str]] = {"commands.md": commands, "settings.md": settings, "http.md": http}

if __name__ == "__main__":
    for name, write in WRITERS.items():
        (PAGES / name).write_text(write((PAGES / name).read_text(encoding="utf-8")), encoding="utf-8")
