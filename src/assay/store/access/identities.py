"""Who signs in through an OpenID provider: which member each of its subjects is, and the sign-ins that are on their way there.
A member is known by issuer and subject alone, never by a name or an e-mail address."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from sqlalchemy import Connection, delete, insert, select, union_all

from assay.core.access import LOCAL
from assay.core.errors import Missing, UserError
from assay.core.events import AccountChange
from assay.store.access import members
from assay.store.access.members import MEMBERS, Member, member_of
from assay.store.access.tokens import digest_of
from assay.store.database import Store, shifted
from assay.store.schema import OWNED, acceptances, bases, grants, identities, sign_ins
from assay.store.schema import members as people

LONGEST = 255  # characters of a subject, as the standard has it
SECONDS = 600  # in which one has to come back from the provider


@dataclass(frozen=True, slots=True)
class Identity:
    """A subject of a provider, and the member whom it signs in."""

    id: str
    issuer: str
    subject: str
    who: str
    created: str


@dataclass(frozen=True, slots=True)
class SignIn:
    """One way to the provider and back. `who` links it to their account; empty: somebody signs in."""

    state: str
    nonce: str
    verifier: str
    who: str = ""


_IDENTITY = [identities.c[each.name] for each in fields(Identity)]


def listing(store: Store, who: str = "") -> list[Identity]:
    """All identities, or those of one member."""
    query = select(*_IDENTITY).order_by(identities.c.who, identities.c.created)
    return [Identity(*row) for row in store.rows(query.where(identities.c.who == who) if who else query)]


def member_with(store: Store, issuer: str, subject: str) -> Member | None:
    """The member whom this subject signs in, or None."""
    own = MEMBERS.join(identities, identities.c.who == people.c.name)
    row = store.first(own.where(identities.c.issuer == issuer, identities.c.subject == subject))
    return member_of(row) if row else None


def link(store: Store, who: str, issuer: str, subject: str, by: str = LOCAL.id) -> None:
    """Let this subject sign a member in. It can be one member's only."""
    who = members.known(store, who).name
    with store.write() as connection:
        _link(connection, store, who, issuer, subject, by)


def _link(connection: Connection, store: Store, who: str, issuer: str, subject: str, by: str) -> None:
    if not 0 < len(subject) <= LONGEST or not subject.isprintable():
        raise UserError(f"That is no subject of a provider: it has 1 to {LONGEST} printable characters.")
    same = identities.c.issuer == issuer, identities.c.subject == subject
    has_it = connection.scalar(select(identities.c.who).where(*same))
    if has_it not in {None, who}:
        raise UserError("That sign-in belongs to another account. Unlink it there first.")
    if has_it is None:
        row = {"id": store.new_id(), "issuer": issuer, "subject": subject, "who": who, "created": store.now()}
        connection.execute(insert(identities).values(**row))
        members.note(connection, store, who, AccountChange.linked, by, f"{subject} of {issuer}")


def unlink(store: Store, who: str, identity: str, by: str = LOCAL.id) -> None:
    """Take a sign-in from a member, and end their sessions: one of these may have begun with it."""
    with store.write() as connection:
        own = identities.c.who == who, identities.c.id == identity
        row = connection.execute(delete(identities).where(*own).returning(*_IDENTITY)).first()
        if row is None:
            raise Missing(f"{who} has no sign-in {identity!r}.")
        members.end_sessions(connection, who)
        members.note(connection, store, who, AccountChange.unlinked, by, f"{row.subject} of {row.issuer}")


def add(store: Store, name: str, groups: Iterable[str], issuer: str, subject: str) -> Member | None:
    """A new member whom this subject signs in. None if the name is taken: by a member, or as the name of whoever owns or may
    read something, such as somebody whom a proxy named. Nobody gets what is another's by a name."""
    with store.one_transaction(), store.write() as connection:
        if members.named(store, name) is not None or _is_known(connection, name):
            return None
        member = members.add(store, name, groups, by=issuer)
        _link(connection, store, name, issuer, subject, by=issuer)
    return member


def _is_known(connection: Connection, name: str) -> bool:
    user = f"user:{name}"
    own = [select(bases.c.id).where(bases.c.owner == name), select(grants.c.label).where(grants.c.name == user)]
    own += [select(acceptances.c.base).where(acceptances.c.name == user)]
    own += [select(table.c.who).where(table.c.who == name) for table in OWNED]
    return connection.execute(union_all(*own)).first() is not None


def groups_now(groups: Iterable[str], said: Iterable[str], mapped: Mapping[str, str]) -> tuple[str, ...]:
    """The groups of a member after a sign-in: of those that the provider decides on, what it said; the others as they were."""
    given = {mapped[each] for each in said if each in mapped}
    return tuple(sorted((set(groups) - set(mapped.values())) | given))


def begin(store: Store, who: str = "") -> tuple[str, SignIn]:
    """A sign-in that sets out to the provider, and the token by which this browser is known when it is back."""
    browser, now = secrets.token_urlsafe(32), store.now()
    made = SignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), who)
    row = {"nonce": made.nonce, "verifier": made.verifier, "who": who, "problem": ""}
    _keep(store, browser, now, state=digest_of(made.state), **row)
    return browser, made


def come_back(store: Store, browser: str, state: str) -> SignIn | None:
    """The sign-in with this state that this browser began, once; None if there is none, or not any more."""
    own = (
        sign_ins.c.browser == digest_of(browser),
        sign_ins.c.state == digest_of(state),
        sign_ins.c.expires > store.now(),
    )
    with store.write() as connection:
        taken = delete(sign_ins).where(*own).returning(sign_ins.c.nonce, sign_ins.c.verifier, sign_ins.c.who)
        row = connection.execute(taken).first()
    return SignIn(state, *row) if row else None


def tell(store: Store, problem: str) -> str:
    """Keep why a sign-in failed, for the page to say. Returns the token by which this browser is known."""
    browser = secrets.token_urlsafe(32)
    _keep(store, browser, store.now(), state="", nonce="", verifier="", who="", problem=problem)
    return browser


def told(store: Store, browser: str) -> str:
    """Why the last sign-in of this browser failed; once."""
    own = sign_ins.c.browser == digest_of(browser), sign_ins.c.state == ""
    with store.write() as connection:
        return connection.scalar(delete(sign_ins).where(*own).returning(sign_ins.c.problem)) or ""


def _keep(store: Store, browser: str, now: str, **row: str) -> None:
    with store.write() as connection:
        connection.execute(delete(sign_ins).where(sign_ins.c.expires <= now))
        expires = shifted(now, seconds=SECONDS)
        connection.execute(insert(sign_ins).values(browser=digest_of(browser), expires=expires, **row))
