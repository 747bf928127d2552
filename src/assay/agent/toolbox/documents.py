"""`list_sources` and `get_document`; documents by name, and how tools name them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Annotated

from assay.agent.tool import Count, Result, ToolContext, Within, as_found, built_in, tool
from assay.core.errors import ToolError
from assay.core.printable import clean_text
from assay.core.types import Document, Hit
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


def some(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


@tool
async def list_sources(
    context: ToolContext, contains: str = "", k: Count = 20, page: Annotated[int, Within(1, 10_000)] = 1
) -> Result:
    """List documents.

    contains: part of name, title, type or date
    """
    entries = context.sources()
    called = names(entries)
    wanted = fold_case(contains).strip()
    found = [
        entry
        for entry in entries
        if wanted in fold_case(f"{called[entry.id]} {entry.title} {entry.kind} {entry.date or ''}")
    ]
    listed = found[(page - 1) * k : page * k]
    after = max(0, len(found) - page * k)
    like = f" with {shown(contains)!r}" if wanted else ""
    if not listed:
        hint = (
            "use fewer letters" if wanted and not found else "there is no such page" if found else "nothing was added"
        )
        return Result((), f"{some(len(found), 'document')}{like}; {hint}")
    more = f"; {after} more on page {page + 1}" if after else ""
    lines = (f"- {line(entry, called[entry.id])}" for entry in listed)
    head = f"{some(len(found), 'document')}{like}; {len(listed)} listed{more}"
    return Result((), "\n".join((f"{head}:", *lines)), tuple(entry.id for entry in listed))


PART = 8  # passages per part
OUTLINE = 30  # headings shown


@built_in(reads_one=True)
async def get_document(context: ToolContext, source: str, part: Annotated[int, Within(1, 10_000)] = 1) -> Result:
    """Read a document, or a part of a long one."""
    entry = document_named(context, source)
    document = context.document(entry.id)
    hits = await context.passages(entry.id)
    parts = max(1, -(-len(hits) // PART))
    if document is None or not hits:  # deleted between the two reads
        raise ToolError(f"There is no document called {shown(source)!r}. list_sources shows what there is.")
    if part > parts:
        raise ToolError(f"{shown(entry.name)} has {parts} parts; there is no part {part}.")
    note = f"{line(entry, shown(entry.name))}, part {part} of {parts}."
    if part < parts:
        note += f" Part {part + 1} comes next."
    if outline := _outline(document, hits):
        note += f"\n{outline}"
    return Result(as_found(hits[(part - 1) * PART : part * PART]), note, (entry.id,))


def _outline(document: Document, hits: list[Hit]) -> str:
    """The headings, each with the part it is in; only the upper levels if there are many."""
    sections = list(document.sections)
    while len(sections) > OUTLINE and len({section.level for section in sections}) > 1:
        deepest = max(section.level for section in sections)
        sections = [section for section in sections if section.level < deepest]
    lines: list[str] = []
    for section in sections[:OUTLINE]:
        before = sum(hit.passage.start <= section.start for hit in hits)
        if section.title.strip():
            lines.append(f"- part {max(0, before - 1) // PART + 1}: {shown(section.title, 80)}")
    if len(sections) > OUTLINE:
        lines.append(f"- and {len(sections) - OUTLINE} more headings")
    return "\n".join(lines)
