"""Tells in a sentence which documents an earlier version read, or other settings split: what `assay reindex` would change."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from assay.core.access import Base
from assay.core.errors import AssayError
from assay.ingest.pipeline import current_parsers, recipe_of
from assay.models.factory import is_folder
from assay.store import document_list
from assay.workspace.context import WorkspaceContext


def describe_outdated(context: WorkspaceContext, bases: Sequence[Base]) -> str:
    """The sentence about these bases; empty if there is nothing to say."""
    counted = document_list.outdated(context.store, bases, current_parsers(), _recipe(context))
    old, total = sum(old for old, _ in counted.values()), sum(total for _, total in counted.values())
    names = sorted(base.name for base in bases if counted.get(base.id, (0, 0))[0])
    if not old:
        return ""
    command = f"`assay reindex --base {names[0]}`" if len(names) == 1 else "`assay reindex --base NAME`"
    each = "" if len(names) == 1 else f" for each of {', '.join(names)}"
    counted_words = f"{old:,} of {total:,} {'document' if total == 1 else 'documents'} {'was' if old == 1 else 'were'}"
    return (
        f"{counted_words} read by an earlier version or with other settings: run {command}{each} to read and index "
        f"{'it' if old == 1 else 'them'} as it is done now."
    )


def _recipe(context: WorkspaceContext) -> str | None:
    """How passages are made with the current settings; None if the embedder cannot be used now, or would have to be loaded."""
    if context.parts.embedder is None and is_folder(context.settings.embedder):
        return None
    with suppress(AssayError, OSError):
        embedder = context.embedder
        return recipe_of(*context.passage_size(embedder), embedder.name)
    return None
