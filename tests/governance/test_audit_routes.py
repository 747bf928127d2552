"""The audit over HTTP, and what a server does by itself."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from ledger import QUESTION, ask
from starlette.testclient import TestClient

from assay.governance.audit import check
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import FILE
from assay.serve import housekeeping
from assay.serve.app import make_app
from assay.serve.state import ServeOptions, Server
from assay.store.access import members, tokens
from assay.workspace.facade import Workspace


def client(opened: Workspace, serving: ServeOptions | None = None) -> TestClient:
    return TestClient(make_app(Server(opened, serving or ServeOptions(), grace=0.1)), base_url="http://127.0.0.1")


def test_a_bundle_comes_over_http_and_the_record_is_said_to_be_whole(opened: Workspace, run: str, second: Path):
    with client(opened) as at:
        reply = at.get(f"/api/runs/{run}/bundle")
        assert reply.status_code == 200 and reply.headers["content-type"] == "application/zip"
        with zipfile.ZipFile(io.BytesIO(reply.content)) as packed:
            assert list(check.check({name: packed.read(name) for name in packed.namelist()}))
        assert at.get("/api/runs/r0000000000000000/bundle").status_code == 404
        told = at.get("/api/verify").json()
        assert told["whole"] and told["faults"] == [] and told["sealed"]["where"] == str(second / FILE)
        with opened.store.write() as connection:
            connection.exec_driver_sql("UPDATE records SET at = '2020' WHERE run = ? AND seq = 1", (run,))
        told = at.get("/api/verify").json()
        assert not told["whole"] and told["faults"][0] == {"record": f"{run}/1", "what": "record 1 was changed"}


def test_only_administrators_verify_and_nobody_gets_the_runs_of_others(opened: Workspace, run: str):
    for name in ("admin-1", "reader"):
        members.add(opened.store, name, [], admin=name == "admin-1", password=None)
    keys = {name: tokens.new_key(opened.store, name) for name in ("admin-1", "reader")}
    with client(opened, ServeOptions(auth="keys")) as at:
        got = {
            name: [
                at.get(path, headers={"Authorization": f"Bearer {key}"}).status_code
                for path in ("/api/verify", f"/api/runs/{run}/bundle")
            ]
            for name, key in keys.items()
        }
    assert got == {"admin-1": [200, 404], "reader": [404, 404]}


def test_a_server_seals_on_its_schedule_and_when_it_stops(opened: Workspace, second: Path):
    often = opened.with_settings(audit_minutes=0.02 / 60)
    with client(often):
        for _ in range(200):
            if (second / FILE).exists():
                break
            asyncio.run(asyncio.sleep(0.02))
        assert (second / FILE).exists(), "sealed while it serves"
    with client(opened):
        asyncio.run(ask(opened, QUESTION))
    found = verify(opened.store, second / FILE)
    assert found.whole and found.since == 0, "sealed when it stopped"


def test_a_second_place_that_is_away_does_not_stop_the_server(
    opened: Workspace, second: Path, caplog: pytest.LogCaptureFixture
):
    second.rmdir()
    with client(opened) as at:
        assert at.get("/health").status_code == 200
    assert "not mounted" in caplog.text


def test_a_server_erases_what_is_too_old_and_only_for_a_time_that_may_be(
    opened: Workspace, run: str, caplog: pytest.LogCaptureFixture
):
    old = replace(opened.store, now=lambda: "2030-01-01T00:00:00.000Z")
    for days, erased in ((30, False), (200, True)):
        settings = opened.settings.model_copy(update={"retention_days": days})
        server = Server(replace(opened, settings=settings, store=old))
        housekeeping._tried(lambda server=server: housekeeping.erase_now(server))
        with opened.store.read() as connection:
            left = connection.exec_driver_sql("SELECT count(*) FROM payloads WHERE run = ?", (run,)).scalar()
            note = connection.exec_driver_sql("SELECT body FROM payloads WHERE run = 'workspace'").scalar()
        assert (left == 0) is erased
        if erased:
            assert json.loads(note)["by"] == "the server"
    assert "six months" in caplog.text
