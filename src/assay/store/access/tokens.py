"""API keys and browser sessions of members. Only digests are stored, so a copy of the database cannot be used to sign in."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass, fields

from sqlalchemy import delete, insert, select, update

from assay.core.access import LOCAL
from assay.core.errors import Missing, StoreError
from assay.core.events import AccountChange
from assay.store.access import members
from assay.store.access.members import MEMBERS, Member, member_of
from assay.store.database import Store, shifted
from assay.store.schema import keys, sessions
from assay.store.schema import members as people

PREFIX = "assay_"  # makes a key that was published by mistake searchable
SECONDS_BETWEEN_NOTES = 60  # the time of last use is updated at most this often


@dataclass(frozen=True, slots=True)
class Key:
    """An API key without its secret."""

    id: str
    who: str
    label: str
    created: str
    used: str


_KEY = [keys.c[each.name] for each in fields(Key)]


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """A browser session of a member."""

    member: Member
    csrf: str
    expires: str


def new_key(store: Store, who: str, label: str = "", by: str = LOCAL.id) -> str:
    """Create a key and return its secret, which is shown only this once."""
    secret, key = PREFIX + secrets.token_urlsafe(32), store.new_id()
    who = members.known(store, who).name
    with store.write() as connection:
        connection.execute(
            insert(keys).values(digest=digest_of(secret), id=key, who=who, label=label, created=store.now(), used="")
        )
        members.note(connection, store, who, AccountChange.key_added, by, key)
    return secret


def listing(store: Store, who: str = "") -> list[Key]:
    """All keys, or those of one user."""
    query = select(*_KEY).order_by(keys.c.who, keys.c.created)
    return [Key(*row) for row in store.rows(query.where(keys.c.who == who) if who else query)]


def revoke(store: Store, key: str, by: str = LOCAL.id) -> Key:
    """Revoke the key with this id, effective from the next request."""
    with store.write() as connection:
        row = connection.execute(delete(keys).where(keys.c.id == key).returning(*_KEY)).first()
        if row is None:
            raise Missing(f"There is no API key {key!r}. `assay key list` shows them.")
        members.note(connection, store, row.who, AccountChange.key_removed, by, key)
    return Key(*row)


def member_with_key(store: Store, key: str) -> Member | None:
    """The member who owns this key, or None."""
    digest = digest_of(key)
    own = MEMBERS.add_columns(keys.c.used).join(keys, keys.c.who == people.c.name)
    row = store.first(own.where(keys.c.digest == digest))
    if row is None:
        return None
    now = store.now()
    if not row.used or now >= shifted(row.used, seconds=SECONDS_BETWEEN_NOTES):
        with suppress(StoreError), store.write() as connection:  # informational: a failure rejects no request
            connection.execute(update(keys).where(keys.c.digest == digest).values(used=now))
    return member_of(row)


def begin_session(store: Store, who: str, seconds: float) -> tuple[str, str]:
    """Create a session. Returns the cookie token and the CSRF token that every change must send."""
    token, csrf, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), store.now()
    with store.write() as connection:
        connection.execute(delete(sessions).where(sessions.c.expires <= now))
        connection.execute(
            insert(sessions).values(
                digest=digest_of(token), who=who, csrf=csrf, created=now, expires=shifted(now, seconds=seconds)
            )
        )
    return token, csrf


def find_session(store: Store, token: str) -> BrowserSession | None:
    """The session, or None if it is unknown or has expired."""
    own = MEMBERS.add_columns(sessions.c.csrf, sessions.c.expires).join(sessions, sessions.c.who == people.c.name)
    row = store.first(own.where(sessions.c.digest == digest_of(token)))
    if row is None or row.expires <= store.now():
        return None
    return BrowserSession(member_of(row), row.csrf, row.expires)


def end_session(store: Store, token: str) -> None:
    store.execute(delete(sessions).where(sessions.c.digest == digest_of(token)))


def digest_of(token: str) -> str:
    """A token has 256 random bits, so a plain digest cannot be brute-forced."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
