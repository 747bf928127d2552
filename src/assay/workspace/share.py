"""Giving and taking access, for a knowledge base or for one document: the store first, which is the truth, then the index."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.core.access import Base
from assay.core.errors import AssayError, Missing
from assay.store import document_list
from assay.store.access import document_access, grants
from assay.store.documents import Entry

if TYPE_CHECKING:
    from assay.index.protocol import Index
    from assay.workspace.facade import Workspace

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may read something. `own`: it has a list of its own; else its base's counts. Who owns it is always on it."""

    what: str  # base, document
    id: str
    name: str
    owner: str
    own: bool
    readers: tuple[str, ...]  # user:… and group:…, the owner first
    mine: bool


def of_base(workspace: Workspace, name: str) -> Access:
    return _of_base(workspace, owned_base(workspace, name))


def of_document(workspace: Workspace, document: str) -> Access:
    return _of_document(workspace, *owned_document(workspace, document))


async def change_base(workspace: Workspace, name: str, who: str, may: bool, by: str = "") -> Access:
    """Let somebody read a base from now on, or not any more."""
    base = owned_base(workspace, name)
    if may:
        grants.share(workspace.store, base, who, by or workspace.principal.id)
    else:
        grants.stop_sharing(workspace.store, base, who, by or workspace.principal.id)
    return _of_base(workspace, base)


async def change_document(workspace: Workspace, document: str, who: str, may: bool, by: str = "") -> Access:
    """The same for one document, which has a list of its own from then on."""
    base, entry = owned_document(workspace, document)
    document_access.change(workspace.store, base, entry, who, may, by or workspace.principal.id)
    await settle(workspace, base)
    return of_document(workspace, document)


async def reset_document(workspace: Workspace, document: str, by: str = "") -> Access:
    """Whoever may read its base may read the document, and nobody else."""
    base, entry = owned_document(workspace, document)
    document_access.reset(workspace.store, base, entry, by or workspace.principal.id)
    await settle(workspace, base)
    return of_document(workspace, document)


def owned_base(workspace: Workspace, name: str) -> Base:
    """A base whose readers this person may see and change: one that they own. All others are not there."""
    found = next((base for base in workspace.scope().bases if base.name == name), None)
    if found is None or not workspace.principal.owns(found):
        raise Missing(f"There is no knowledge base called {name!r} whose readers you could change.")
    return found


def owned_document(workspace: Workspace, document: str) -> tuple[Base, Entry]:
    scope = workspace.scope()
    entry = document_list.entry(workspace.store, document, scope)
    base = next((base for base in scope.bases if entry and base.id == entry.base), None)
    if entry is None or base is None or not workspace.principal.owns(base):
        raise Missing(f"There is no document with the id {document!r} whose readers you could change.")
    return base, entry


def _of_base(workspace: Workspace, base: Base) -> Access:
    readers = tuple(grants.shared_with(workspace.store, base))
    return Access("base", base.id, base.name, base.owner, True, readers, workspace.principal.owns(base))


def _of_document(workspace: Workspace, base: Base, entry: Entry) -> Access:
    readers = tuple(document_access.readers(workspace.store, base, entry))
    own = document_access.has_own_list(entry)
    return Access("document", entry.id, entry.name, base.owner, own, readers, workspace.principal.owns(base))


async def settle(workspace: Workspace, base: Base) -> bool:
    """Put the labels that documents have now on their rows in the index. What cannot be done now is done with the next
    change, or when something is added: until then a search can only miss such a document."""
    due = document_access.owed(workspace.store, base)
    if not due:
        return True
    try:
        index = await index_of(workspace, base)
        for document, label in due.items() if index is not None else ():
            assert index is not None
            await index.relabel(document, label)
    except AssayError as error:
        log.warning("the index of %s does not know yet who may read what: %s", base.id, error)
        return False
    document_access.settled(workspace.store, due.items())
    return True


async def index_of(workspace: Workspace, base: Base) -> Index | None:
    """The base's index whoever made its vectors; none where there is none."""
    made_by, dim = grants.embedder_of(workspace.store, base)
    if not made_by or not workspace.index_engine.exists(base.id):
        return None
    return await workspace.index_engine.open(base.id, dim)
