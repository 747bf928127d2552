"""Which answers need a review, and who may do it: a reviewer who may read everything the answer cites and who, with
four eyes, did not ask the question. Checked when reviews are listed and shown, and in the transaction that decides."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing, UserError
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.types import Answer
from assay.governance.reviewing import BEGUN
from assay.governance.reviewing import parse_policy
from assay.governance.reviewing import review_reasons
from assay.store.access import grants, members
from assay.store.database import Store
from assay.store.runs import reviews

OWN = "Whoever asked cannot review the answer: somebody else has to look at it."


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A person who wants to review. `names` are the reviewers in the settings; if there are none, administrators
    review."""

    principal: Principal
    admin: bool
    names: frozenset[str] = frozenset()

    @property
    def may_review(self) -> bool:
        return bool(self.names & self.principal.names) if self.names else self.admin


def parse_reviewers(setting: str) -> frozenset[str]:
    """The reviewers listed in the setting."""
    named = [each.strip() for each in setting.split(",") if each.strip()]
    for each in named:
        if not any(each.startswith(kind) and len(each) > len(kind) for kind in (grants.USER, grants.GROUP)):
            raise UserError(f"`reviewers` names user:NAME or group:NAME, not {each!r}.")
    return frozenset(named)


def has_no_members(store: Store) -> bool:
    """Without members there is no sign-in, so the user of the command line is the administrator."""
    return not members.listing(store)


def current_principal(store: Store, who: str) -> Principal:
    """The principal with this name, in its current groups."""
    member = members.named(store, who)
    return member.principal if member else Principal(who)


def missing(run: str) -> Missing:
    """The same error whether there is no such run, nothing of it waits, or the person may not see it."""
    return Missing(f"There is no run called {run!r} for you to review. `assay review` lists them.")


def cited_documents(run: Run, answer: Answer) -> frozenset[str]:
    keys = answer.cited_keys
    quoted = {claim.quote.doc_id for claim in (*answer.claims, *answer.near) if claim.quote}
    return frozenset(quoted | {each.passage.doc_id for each in run.evidence if each.key in keys})


def check_still_allowed(connection: Connection, reviewer: Reviewer, run: str, documents: Collection[str]) -> None:
    """In the transaction of a decision: raise unless the person is still a reviewer and may still read all these
    documents."""
    who = reviewer.principal
    admin = reviewer.admin and (who.id == LOCAL.id or reviews.is_admin(connection, who.id))
    now = Reviewer(who, admin, reviewer.names)
    if not now.may_review or not reviews.readable(connection, who.names, documents):
        raise missing(run)


def review_requirement(store: Store, settings: Settings) -> Callable[[Run, Answer], tuple[str, ...]]:
    """A function that returns the reasons why an answer must be reviewed, by the current settings and marked bases.
    A run that was once gated stays gated."""
    policy = parse_policy(settings)

    def reasons(run: Run, answer: Answer) -> tuple[str, ...]:
        found = review_reasons(run, answer, policy, lambda ids: reviews.reviewed_bases_of(store, ids))
        return found or ((BEGUN,) if reviews.is_gated(store, run.id) else ())

    return reasons


def may_need_review(store: Store, settings: Settings, run: str) -> bool:
    """Whether the answer of a run waits for a reviewer, or may still have to. If so, the person who asked does not
    see the draft."""
    return reviews.may_need_review(store, run, by_rule=not parse_policy(settings).idle)


def any_review(store: Store, settings: Settings) -> bool:
    """Whether any rule may have an answer reviewed, besides what the person who asks says."""
    return not parse_policy(settings).idle or bool(reviews.bases_with_review(store))
