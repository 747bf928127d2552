"""Prompts are files: one .md each, here. `render` fills one in, and fails on what is missing and on what is left over.

Nothing here speaks to a model; there is no prompt yet, since nothing needs one without a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

PLACE = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")


def render(name: str, **values: str) -> str:
    """The prompt called `name` with every `{{place}}` filled in."""
    file = resources.files(__name__) / f"{name}.md"
    if not re.fullmatch(r"[a-z_]+", name) or not file.is_file():
        raise LookupError(f"there is no prompt called {name!r}")
    return fill(file.read_text(encoding="utf-8"), values)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Each place gets its value once; what a value says is never taken for a place."""
    wanted = set(PLACE.findall(text))
    if missing := sorted(wanted - values.keys()):
        raise ValueError(f"no value for {', '.join(missing)}")
    if unused := sorted(values.keys() - wanted):
        raise ValueError(f"nothing takes {', '.join(unused)}")
    return PLACE.sub(lambda place: values[place[1]], text)
