"""A team over the notes of `serving`: an editor who owns them, and a reader, each with a password and an API key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
from doubles import ChatServer
from serving import Served, served

from assay.core.access import LOCAL
from assay.serve.state import ServeOptions
from assay.store.access import members, tokens
from assay.workspace.facade import open_workspace

PASSWORD = "a lamp on the pier"


@dataclass(frozen=True, slots=True)
class Team:
    at: Served
    keys: dict[str, str]

    def as_(self, name: str) -> httpx.Client:
        """A client with this person's API key."""
        return self.at.client(Authorization=f"Bearer {self.keys[name]}")

    @contextmanager
    def signed_in(self, name: str, password: str = PASSWORD) -> Iterator[httpx.Client]:
        """A browser that this person has signed in with; its changes carry the token."""
        with self.at.client() as client:
            me = client.post("/api/session", json={"name": name, "password": password})
            assert me.status_code == 200, me.text
            client.headers["X-CSRF-Token"] = me.json()["csrf"]
            yield client


@contextmanager
def team(
    folder: Path, model: ChatServer | None = None, serving: ServeOptions | None = None, **flags: Any
) -> Iterator[Team]:
    with open_workspace(folder) as opened, patch.object(members, "COST", 2**10):  # time is not what is tested
        for name in ("editor", "reader"):
            members.add(opened.store, name, password=PASSWORD)
        members.transfer_ownership(opened.store, opened.context.cache, LOCAL.id, "editor")
        keys = {name: tokens.new_key(opened.store, name) for name in ("editor", "reader")}
    with served(folder, model, serving or ServeOptions(auth="keys"), **flags) as at:
        yield Team(at, keys)
