"""Selects the documents of a synthesis: the named files, added first, or all documents of a knowledge base."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.documents.add import run_with_progress
from assay.core.errors import UserError

if TYPE_CHECKING:
    from assay.ingest.readiness import Readiness
    from assay.store.documents import Entry
    from assay.workspace.facade import Workspace

SHOWN = 10  # unreadable files listed


@dataclass(frozen=True, slots=True)
class DocumentSelection:
    """Document ids in the order given, and messages about unreadable files."""

    documents: tuple[str, ...]
    unread: tuple[str, ...] = ()
    base: str = ""

    @property
    def remarks(self) -> list[str]:
        """Messages about unreadable files; only the first few if there are many."""
        if not self.unread:
            return []
        more = [f"  and {len(self.unread) - SHOWN} more"] if len(self.unread) > SHOWN else []
        return ["Not read, and not included:", *(f"  {each}" for each in self.unread[:SHOWN]), *more]


def add_files(opened: Workspace, paths: Sequence[str], base: str, *, quiet: bool) -> DocumentSelection:
    """Exactly the named files; those not in the base yet are added first."""
    from assay.ingest.sources import find_sources

    files = find_sources([Path(path) for path in paths])
    report = run_with_progress(lambda say: opened.documents.add_sources(files, base, say=say), quiet=quiet)
    entries = opened.documents.listing([base])
    ready = _ready(entries)
    places, contents = {entry.uri: entry.id for entry in ready}, {entry.digest: entry.id for entry in ready}
    found = [places.get(file.uri) or contents.get(file.digest()) for file in files if file.uri in _read(report)]
    unread = [f"{Path(file.path).name}: {file.why}" for file in report.files if file.path not in _read(report)]
    named = {file.uri for file in files}
    unread += [f"{entry.name}: {_why(entry)}" for entry in entries if entry.off and entry.uri in named]
    return DocumentSelection(tuple(dict.fromkeys(doc for doc in found if doc)), tuple(unread), base)


def _read(report: Readiness) -> set[str]:
    return {file.path for file in report.files if file.status == "read"}


def select_base(opened: Workspace, base: str) -> DocumentSelection:
    """All documents of a base; without a name, of the only existing base."""
    names = [each.name for each in opened.scope().bases]
    if not base and len(names) > 1:
        raise UserError(f"Which knowledge base? Name it with --base. There is: {', '.join(sorted(names))}.")
    named = base or (names[0] if names else "")
    entries = opened.documents.listing([named] if named else [])
    ready = {entry.id for entry in _ready(entries)}
    unread = tuple(f"{entry.name}: {_why(entry)}" for entry in entries if entry.id not in ready)
    return DocumentSelection(tuple(entry.id for entry in entries if entry.id in ready), unread, named)


def _why(entry: Entry) -> str:
    if entry.off:
        return "it is switched off; `assay on` switches it on"
    return entry.why or "it was not read to the end; `assay add` finishes it"


def _ready(entries: Sequence[Entry]) -> list[Entry]:
    from assay.store import documents

    return [entry for entry in entries if entry.standing == documents.READY]
