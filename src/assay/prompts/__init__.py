"""Prompts: one .md file each, in this folder. `render` fills one in, and fails on missing and on superfluous values.

The part above a line `---` is the task (system message), the part below it the matter. Nothing here calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

PLACE = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_PARTED = re.compile(r"^---[ \t]*\n", re.MULTILINE)


def render(name: str, **values: str) -> str:
    """The prompt `name` with every `{{place}}` filled in."""
    return fill(template(name), values)


def halves(name: str, values: Mapping[str, str]) -> tuple[str, str]:
    """The prompt `name` filled in, split into task and matter. A `---` inside a value never splits it."""
    fill(template(name), values)
    task, matter = parted(template(name))
    return _filled(task, values), _filled(matter, values)


@cache
def template(name: str) -> str:
    """The unfilled template of the prompt `name`."""
    file = resources.files(__name__) / f"{name}.md"
    if not re.fullmatch(r"[a-z_]+", name) or not file.is_file():
        raise LookupError(f"there is no prompt called {name!r}")
    return file.read_text(encoding="utf-8")


def parted(text: str) -> tuple[str, str]:
    """A template's task and matter; without a separator line, all of it is matter."""
    line = _PARTED.search(text)
    return (text[: line.start()], text[line.end() :]) if line else ("", text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replaces each placeholder once; placeholders inside a value are not replaced."""
    wanted = set(PLACE.findall(text))
    if missing := sorted(wanted - values.keys()):
        raise ValueError(f"no value for {', '.join(missing)}")
    if unused := sorted(values.keys() - wanted):
        raise ValueError(f"nothing takes {', '.join(unused)}")
    return _filled(text, values)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)
