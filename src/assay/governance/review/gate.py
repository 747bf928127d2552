"""Who may review an answer: named as a reviewer, able to read everything that it cites, and, with four eyes, not the one who
asked. Looked at when it is listed, when it is shown, and again in the transaction in which it is decided."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing, UserError
from assay.core.run import Run
from assay.core.types import Answer
from assay.store.access import grants, members
from assay.store.database import Store
from assay.store.runs import reviews

OWN = "Whoever asked cannot review the answer: somebody else has to look at it."


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Somebody who would review, as they are now. `names` are the reviewers that the settings name; none: administrators."""

    principal: Principal
    admin: bool
    names: frozenset[str] = frozenset()

    @property
    def may_review(self) -> bool:
        return bool(self.names & self.principal.names) if self.names else self.admin


def reviewers_in(words: str) -> frozenset[str]:
    """Reviewers as the setting names them."""
    named = [each.strip() for each in words.split(",") if each.strip()]
    for each in named:
        if not any(each.startswith(kind) and len(each) > len(kind) for kind in (grants.USER, grants.GROUP)):
            raise UserError(f"`reviewers` names user:NAME or group:NAME, not {each!r}.")
    return frozenset(named)


def at_terminal(store: Store) -> bool:
    """Whether whoever works at the command line counts as an administrator: where nobody signs in, there is nobody else."""
    return not members.listing(store)


def as_now(store: Store, who: str) -> Principal:
    """Somebody by their name, in the groups that they are in now."""
    member = members.named(store, who)
    return member.principal if member else Principal(who)


def missing(run: str) -> Missing:
    """The same words whether there is no such run, nothing of it waits, or it is not theirs to see."""
    return Missing(f"There is no run called {run!r} for you to review. `assay review` lists them.")


def cited(run: Run, answer: Answer) -> frozenset[str]:
    """The documents that an answer rests on."""
    keys = answer.cited_keys
    quoted = {claim.quote.doc_id for claim in (*answer.claims, *answer.near) if claim.quote}
    return frozenset(quoted | {each.passage.doc_id for each in run.evidence if each.key in keys})


def own(who: str, reviewer: Principal, *, four_eyes: bool) -> bool:
    """Whether this is one's own question, which somebody else has to look at."""
    return four_eyes and who == reviewer.id


def still(connection: Connection, reviewer: Reviewer, run: str, documents: Collection[str]) -> None:
    """In the transaction in which they decide: they are still a reviewer, and may still read every one of these."""
    who = reviewer.principal
    admin = reviewer.admin and (who.id == LOCAL.id or reviews.is_admin(connection, who.id))
    now = Reviewer(who, admin, reviewer.names)
    if not now.may_review or not reviews.readable(connection, who.names, documents):
        raise missing(run)
