"""Single facts about a workspace: consent given by its user, and detected capabilities of its endpoints."""

from __future__ import annotations

from sqlalchemy import select

from assay.store.database import Store
from assay.store.dialect import insert_new, insert_or_replace
from assay.store.schema import facts

AGREED = "agreed:"


def agreed(store: Store, host: str) -> bool:
    """Whether the user has agreed to send text to this host."""
    return remembered(store, f"{AGREED}{host}") is not None


def remembered(store: Store, name: str) -> str | None:
    """A fact by its name."""
    return store.scalar(select(facts.c.value).where(facts.c.name == name))


def remember(store: Store, name: str, value: str) -> None:
    store.execute(insert_or_replace(facts).values(name=name, value=value))


def agree(store: Store, host: str) -> None:
    store.execute(insert_new(facts).values(name=f"{AGREED}{host}", value=store.now()))
