"""How tools name documents: by file name, with sanitised titles. Everything a document says about itself is untrusted
data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from assay.agent.tool_context import ToolContext
from assay.core.errors import ToolError
from assay.language.clean import clean_text
from assay.language.terms import fold_case
from assay.store.documents import Entry

NAMED = 5  # candidates listed in an error


def shown(words: str, most: int = 120) -> str:
    """Sanitise document-controlled text for one line: no invisible characters, no line breaks, limited length."""
    line = " ".join(clean_text(words).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def names(entries: Sequence[Entry]) -> dict[str, str]:
    """Display names by document id: the file name, or the full path where two documents share a file name."""
    count = Counter(entry.name for entry in entries)
    return {entry.id: shown(entry.name if count[entry.name] == 1 else entry.uri, 300) for entry in entries}


def line(entry: Entry, name: str) -> str:
    """One line describing a document."""
    about = ", ".join(part for part in (entry.kind, entry.date or "no date") if part)
    title = shown(entry.title)
    plain = (re.sub(r"[-_\s]+", " ", fold_case(each)) for each in (title, PurePath(entry.name).stem))
    same = len(set(plain)) == 1  # the title only repeats the file name
    return f"{name} ({about})" if not title or same else f"{name}: {title} ({about})"


def document_named(context: ToolContext, source: str, entries: Sequence[Entry] | None = None) -> Entry:
    """The document with this name. Raises the same error whether it does not exist or this person may not read it."""
    entries = context.sources() if entries is None else entries
    called = names(entries)
    wanted = fold_case(shown(source, 500)).strip()
    for fits in (
        lambda entry: wanted in {fold_case(entry.id), fold_case(entry.uri), fold_case(called[entry.id])},
        lambda entry: (
            wanted in {fold_case(entry.name), fold_case(shown(entry.title, 500)), fold_case(PurePath(entry.name).stem)}
        ),
        lambda entry: bool(wanted) and (wanted in fold_case(entry.name) or wanted in fold_case(entry.title)),
    ):
        found = [entry for entry in entries if fits(entry)]
        if len(found) == 1:
            return found[0]
        if found:
            some = ", ".join(called[entry.id] for entry in found[:NAMED])
            more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
            raise ToolError(f"{shown(source)!r} fits {len(found)} documents: {some}{more}. Use one of these names.")
    raise ToolError(f"There is no document called {shown(source)!r}. list_sources shows what there is.")
