"""Single facts about a workspace: here, what its person has agreed to."""

from __future__ import annotations

from sqlalchemy import insert, select

from assay.store.open import Store
from assay.store.schema import facts

AGREED = "agreed:"


def agreed(store: Store, host: str) -> bool:
    """Whether text may be sent to this machine."""
    with store.read() as connection:
        return connection.scalar(select(facts.c.value).where(facts.c.name == f"{AGREED}{host}")) is not None


def agree(store: Store, host: str) -> None:
    with store.write() as connection:
        connection.execute(insert(facts).prefix_with("OR IGNORE").values(name=f"{AGREED}{host}", value=store.now()))
