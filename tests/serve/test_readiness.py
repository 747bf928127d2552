"""A server says that it is not ready while what it rests on cannot be reached; runs that were let go are taken up again; and a
worker waits for its workspace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest.mock import patch

import pytest
from serving import QUESTION, Served, until

from assay.cli.serve import when_made
from assay.core.errors import Missing, StoreError
from assay.serve import housekeeping, state
from assay.workspace.context import WorkspaceContext


@pytest.mark.parametrize("part", ["database", "index", "originals"])
def test_a_server_is_not_ready_while_a_part_cannot_be_reached_and_ready_when_it_is_back(
    serve: Callable[..., AbstractContextManager[Served]], part: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(state, "LOOK", 0.0)
    monkeypatch.setattr(state, "LOOK_AGAIN", 0.0)
    lost = StoreError(f"The {part} cannot be reached.")
    with serve() as at, at.client() as client:
        until(lambda: client.get("/ready").status_code == 200)
        broken = {
            "database": patch("assay.workspace.context.facts.remembered", side_effect=lost),
            "index": patch.object(type(at.server.workspace.index_engine), "versions", side_effect=lost),
            "originals": patch.object(type(at.server.workspace.blobs), "has", side_effect=lost),
        }
        with broken[part]:
            reply = client.get("/ready")
            assert (reply.status_code, reply.json()["problems"]) == (503, [str(lost)])
        assert client.get("/ready").status_code == 200


def test_the_parts_are_looked_at_now_and_then_and_not_at_every_question(
    serve: Callable[..., AbstractContextManager[Served]],
):
    with serve() as at, at.client() as client, patch.object(WorkspaceContext, "check_reachable") as looked:
        for _ in range(5):
            client.get("/ready")
    assert looked.call_count <= 1


def test_a_run_that_was_let_go_is_taken_up_again_by_a_server_that_is_alone(
    serve: Callable[..., AbstractContextManager[Served]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(housekeeping, "RENEWAL", 0.05)
    with serve() as at, at.client() as client:
        workspace = at.server.workspace
        until(lambda: client.get("/ready").status_code == 200)
        with patch.object(at.server.live, "works", False):  # recorded, and left to whoever works
            run = client.post("/api/runs", json={"question": QUESTION}).json()["run"]
        until(lambda: client.get(f"/api/runs/{run}").json()["state"] == "delivered")
        until(lambda: not workspace.underway.is_listed(run))


def test_a_worker_that_starts_before_the_workspace_is_there_waits_for_it(capsys: pytest.CaptureFixture[str]):
    outcomes = [StoreError("The database cannot be reached."), Missing("There is no workspace."), "opened"]

    def opened():
        if isinstance(outcome := outcomes.pop(0), Exception):
            raise outcome
        return outcome

    pauses: list[float] = []
    assert when_made(opened, pauses.append) == "opened"
    assert len(pauses) == 2 and capsys.readouterr().err.count("Waiting") == 1
