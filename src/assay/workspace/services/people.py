"""Who there is, and who may read what. The store decides on access to a base or to one document; the index follows."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from assay.core.access import LOCAL, Base
from assay.core.errors import AssayError, Missing, UserError
from assay.store import document_list, place_lists
from assay.store.access import document_access as lists
from assay.store.access import grants, identities, members, offers, tokens
from assay.store.access.offers import Offer
from assay.store.documents import Entry
from assay.workspace.context import OnStore, Service
from assay.workspace.types import Access

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class People(Service):
    """Who may read what, and who there is."""

    add = OnStore(members.add)
    check_password = OnStore(members.check_password)
    check_unused = OnStore(members.check_unused)
    known = OnStore(members.known)
    listing = OnStore(members.listing)
    named = OnStore(members.named)
    set_admin = OnStore(members.set_admin)
    set_groups = OnStore(members.set_groups)
    set_password = OnStore(members.set_password)
    begin_session = OnStore(tokens.begin_session)
    end_session = OnStore(tokens.end_session)
    find_session = OnStore(tokens.find_session)
    list_keys = OnStore(tokens.listing)
    member_with_key = OnStore(tokens.member_with_key)
    new_key = OnStore(tokens.new_key)
    revoke_key = OnStore(tokens.revoke)
    list_identities = OnStore(identities.listing)
    member_with_identity = OnStore(identities.member_with)
    add_with_identity = OnStore(identities.add)
    link = OnStore(identities.link)
    unlink = OnStore(identities.unlink)
    begin_sign_in = OnStore(identities.begin)
    end_sign_in = OnStore(identities.come_back)
    tell_problem = OnStore(identities.tell)
    told_problem = OnStore(identities.told)
    readers_of_base = OnStore(grants.shared_with)

    def remove(self, name: str, heir: str = "", by: str = LOCAL.id) -> tuple[int, str]:
        """Remove a member. Returns the number of bases that they owned, and the name under which these are now."""
        return members.remove_member(self.store, self.context.cache, name, heir, by)

    def hand_over(self, old: str, new: str, by: str = LOCAL.id) -> int:
        """Transfer everything one user owns to another. Returns the number of bases."""
        return members.transfer_ownership(self.store, self.context.cache, old, new, by)

    def offers(self) -> list[Offer]:
        """Knowledge bases that others share with this person, and that they have not accepted."""
        return offers.listing(self.store, self.principal)

    def answer_offer(self, base: str, accepted: bool) -> Base:
        """Accept a shared knowledge base by its id; or decline it, or leave it."""
        return offers.answer(self.store, self.principal, base, accepted)

    def base_access(self, name: str) -> Access:
        """Who may read a base. Only its owner may ask."""
        base = self._owned_base(name)
        readers, found = tuple(grants.shared_with(self.store, base)), tuple(lists.patterns(self.store, base))
        accepted = tuple(each for each in offers.accepted(self.store, base.id) if each in readers[1:])
        return Access("base", base.id, base.name, base.owner, True, readers, self.principal.owns(base), found, accepted)

    def pattern_access(self, name: str, pattern: str) -> Access:
        """Who may read what fits a restricted pattern of locations in a base. Only its owner may ask."""
        base, pattern = self._owned_base(name), place_lists.checked_pattern(pattern)
        readers = lists.patterns(self.store, base).get(pattern)
        own = readers is not None
        return Access(
            "pattern", base.id, pattern, base.owner, own, tuple(readers or grants.shared_with(self.store, base)), True
        )

    def document_access(self, document: str) -> Access:
        """Who may read a document. Only its owner may ask."""
        base, entry = self.owned_document(document)
        readers = tuple(lists.readers(self.store, base, entry))
        pattern = lists.pattern_of(self.store, base, entry)
        own, held = lists.has_own_list(entry) and not pattern, self.held([entry]).get(entry.id, "")
        patterns = (pattern,) if pattern else ()
        return Access("document", entry.id, entry.name, base.owner, own, readers, True, patterns, held=held)

    def share_base(self, name: str, who: str, may: bool, by: str = "") -> Access:
        """Give a user or group access to a base, or revoke it."""
        change = grants.share if may else grants.stop_sharing
        change(self.store, self._owned_base(name), who, by or self.principal.id)
        return self.base_access(name)

    async def share_document(self, document: str, who: str, may: bool, by: str = "") -> Access:
        """Give a user or group access to a document, or revoke it. The document has its own list of readers from then
        on."""
        base, entry = self.owned_document(document)
        lists.set_access(self.store, base, entry, who, may, by or self.principal.id)
        await self.update_index(base)
        return self.document_access(document)

    async def reset_document_access(self, document: str, by: str = "") -> Access:
        """Remove a document's own list of readers: the list of its base applies again."""
        base, entry = self.owned_document(document)
        lists.reset(self.store, base, entry, by or self.principal.id)
        await self.update_index(base)
        return self.document_access(document)

    async def restrict(self, name: str, pattern: str, only_for: Sequence[str], by: str = "") -> Access:
        """Let only these people and groups, and the owner, read what fits a pattern of locations in a base, now and later."""
        base, pattern = self._owned_base(name), place_lists.checked_pattern(pattern)
        lists.restrict_pattern(self.store, base, pattern, only_for, by or self.principal.id)
        await self.update_index(base)
        return self.pattern_access(name, pattern)

    async def lift(self, name: str, pattern: str, by: str = "") -> Access:
        """Restrict what fits a pattern no longer. Documents with lists of their own keep them."""
        base, pattern = self._owned_base(name), place_lists.checked_pattern(pattern)
        lists.lift_pattern(self.store, base, pattern, by or self.principal.id)
        await self.update_index(base)
        return self.pattern_access(name, pattern)

    def held(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Why documents of this person are held until they decide, by id; without those that are not."""
        own = {base.id for base in self.context.scope().bases if self.principal.owns(base)}
        return lists.held(self.store, (each for each in entries if each.base in own))

    async def decide(self, document: str, keep: bool, by: str = "") -> Access:
        """Say that a document that is held stays restricted, or that whoever reads its base may read it."""
        base, entry = self.owned_document(document)
        if entry.id not in self.held([entry]):
            raise UserError(f"{entry.name} is not held: there is nothing to decide.")
        if not keep:
            return await self.reset_document_access(document, by)
        lists.keep(self.store, base, entry, by or self.principal.id)
        return self.document_access(document)

    def _owned_base(self, name: str) -> Base:
        """A base that this person owns. Any other is reported as missing."""
        found = self.context.scope().find(name)
        if found is None or not self.principal.owns(found):
            raise Missing(f"There is no knowledge base called {name!r} whose readers you could change.")
        return found

    def owned_document(self, document: str) -> tuple[Base, Entry]:
        """A document that this person owns, with its base. Any other is reported as missing."""
        scope = self.context.scope()
        entry = document_list.entry(self.store, document, scope)
        base = next((base for base in scope.bases if entry and base.id == entry.base), None)
        if entry is None or base is None or not self.principal.owns(base):
            raise Missing(f"There is no document with the id {document!r} that you could change.")
        return base, entry

    async def update_index(self, base: Base) -> bool:
        """Write the current access labels of documents to their rows in the index; False if that failed. Then the next change
        or the next add does it, and until then a search can only miss such a document."""
        due = lists.outdated_labels(self.store, base)
        if not due:
            return True
        try:
            index = await self.context.existing_index(base)
            if index is not None:
                await index.relabel(due)
        except AssayError as error:
            log.warning("the index of %s does not know yet who may read what: %s", base.id, error)
            return False
        lists.mark_labels_written(self.store, due.items())
        return True
