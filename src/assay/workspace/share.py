"""Giving and taking access to a base or to one document. The store decides; the index follows."""

from __future__ import annotations

import logging

from assay.core.access import Base
from assay.core.errors import AssayError, Missing
from assay.store import document_list
from assay.store.access import document_access as lists
from assay.store.access import grants
from assay.store.documents import Entry
from assay.workspace.context import WorkspaceContext
from assay.workspace.types import Access

log = logging.getLogger(__name__)


def base_access(context: WorkspaceContext, name: str) -> Access:
    base = _owned_base(context, name)
    readers = tuple(grants.shared_with(context.store, base))
    return Access("base", base.id, base.name, base.owner, True, readers, context.principal.owns(base))


def document_access(context: WorkspaceContext, document: str) -> Access:
    base, entry = owned_document(context, document)
    readers = tuple(lists.readers(context.store, base, entry))
    own = lists.has_own_list(entry)
    return Access("document", entry.id, entry.name, base.owner, own, readers, context.principal.owns(base))


def share_base(context: WorkspaceContext, name: str, who: str, may: bool, by: str = "") -> Access:
    """Give a user or group access to a base, or revoke it."""
    change = grants.share if may else grants.stop_sharing
    change(context.store, _owned_base(context, name), who, by or context.principal.id)
    return base_access(context, name)


async def share_document(context: WorkspaceContext, document: str, who: str, may: bool, by: str = "") -> Access:
    """Give a user or group access to a document, or revoke it. The document has its own list of readers from then
    on."""
    base, entry = owned_document(context, document)
    lists.set_access(context.store, base, entry, who, may, by or context.principal.id)
    await update_index(context, base)
    return document_access(context, document)


async def reset_document_access(context: WorkspaceContext, document: str, by: str = "") -> Access:
    """Remove a document's own list of readers: the list of its base applies again."""
    base, entry = owned_document(context, document)
    lists.reset(context.store, base, entry, by or context.principal.id)
    await update_index(context, base)
    return document_access(context, document)


def _owned_base(context: WorkspaceContext, name: str) -> Base:
    """A base that this person owns. Any other is reported as missing."""
    found = context.scope().find(name)
    if found is None or not context.principal.owns(found):
        raise Missing(f"There is no knowledge base called {name!r} whose readers you could change.")
    return found


def owned_document(context: WorkspaceContext, document: str) -> tuple[Base, Entry]:
    """A document that this person owns, with its base. Any other is reported as missing."""
    scope = context.scope()
    entry = document_list.entry(context.store, document, scope)
    base = next((base for base in scope.bases if entry and base.id == entry.base), None)
    if entry is None or base is None or not context.principal.owns(base):
        raise Missing(f"There is no document with the id {document!r} that you could change.")
    return base, entry


async def update_index(context: WorkspaceContext, base: Base) -> bool:
    """Write the current access labels of documents to their rows in the index; False if that failed. Then the next change
    or the next add does it, and until then a search can only miss such a document."""
    due = lists.outdated_labels(context.store, base)
    if not due:
        return True
    try:
        index = await context.existing_index(base)
        for document, label in due.items() if index is not None else ():
            assert index is not None
            await index.relabel(document, label)
    except AssayError as error:
        log.warning("the index of %s does not know yet who may read what: %s", base.id, error)
        return False
    lists.mark_labels_written(context.store, due.items())
    return True
