"""Single facts about a workspace: consent given by its user, detected capabilities of its endpoints, and its mark on places."""

from __future__ import annotations

import secrets

from sqlalchemy import delete, select

from assay.store.database import Store
from assay.store.dialect import insert_new, insert_or_replace
from assay.store.schema import facts

AGREED, PICTURES = "agreed:", "agreed to pictures:"
OWNER = "owner of places"


def agreed(store: Store, host: str) -> bool:
    """Whether the user has agreed to send text to this host."""
    return remembered(store, f"{AGREED}{host}") is not None


def agreed_to_pictures(store: Store, host: str) -> bool:
    """Whether that was agreed to since figures are among what is sent."""
    return remembered(store, f"{PICTURES}{host}") is not None


def remembered(store: Store, name: str) -> str | None:
    """A fact by its name."""
    return store.scalar(select(facts.c.value).where(facts.c.name == name))


def remember(store: Store, name: str, value: str) -> None:
    store.execute(insert_or_replace(facts).values(name=name, value=value))


def agree(store: Store, host: str) -> None:
    for what in (AGREED, PICTURES):
        store.execute(insert_new(facts).values(name=f"{what}{host}", value=store.now()))


def owner_mark(store: Store) -> str:
    """What marks a place outside the store as this workspace's."""
    if remembered(store, OWNER) is None:
        store.execute(insert_new(facts).values(name=OWNER, value=secrets.token_hex(16)))
    return remembered(store, OWNER) or ""


def forget_owner_mark(store: Store) -> None:
    """A copy of a workspace is another one: it has no places yet."""
    store.execute(delete(facts).where(facts.c.name == OWNER))
