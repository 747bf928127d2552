"""Find documents by user-given names: a path, a folder, a file name, a title or an id. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from assay.core.errors import UserError
from assay.store.documents import Entry


def named(name: str, entries: Sequence[Entry]) -> list[Entry]:
    """The documents that match this name; a name may match several, and a folder name matches everything below it."""
    if not name.strip():
        raise UserError("A document's name cannot be empty. `assay sources` lists them.")
    wanted = os.path.realpath(name if not name.startswith("~/") else Path.home() / name[2:])
    for fits in (
        lambda entry: entry.id == name or entry.uri in {name, wanted},
        lambda entry: Path(entry.uri).is_relative_to(wanted),
        lambda entry: entry.name == name,
        lambda entry: entry.title.casefold() == name.casefold(),
    ):
        found = [entry for entry in entries if fits(entry)]
        if found:
            return found
    raise UserError(f"There is no document called {name!r}. `assay sources` lists them.")
