"""A server without sign-in asks for the token of its address: other users of the machine can reach its port."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import forked
import httpx
import pytest
from notes import filled
from serving import NOTES, Served

from assay.cli.serve import describe_server
from assay.serve.guard import FILE, load_token
from assay.serve.state import ServeOptions
from assay.store.access import members, tokens
from assay.workspace.facade import Workspace, open_workspace

Serve = Callable[..., AbstractContextManager[Served]]
TOKEN = "t" * 43
LOCAL = ServeOptions(token=TOKEN)


@pytest.mark.parametrize("path", ["/", "/api/me", "/api/runs", "/api/documents", "/v1/models", "/mcp", "/metrics"])
def test_without_the_token_nothing_is_read_or_done(serve: Serve, path: str):
    with serve(serving=LOCAL) as at, at.client() as client:
        for headers in ({}, {"Authorization": f"Bearer {TOKEN[:-1]}"}, {"Cookie": f"assay_token={TOKEN}"}):
            for method in ("GET", "POST"):
                reply = client.request(method, path, headers=headers, json={"name": "x"})
                assert reply.status_code == 401 and "printed, which ends with it" in reply.text, (method, path)
                assert "tower" not in reply.text and TOKEN not in reply.text
        assert client.get("/", params={"token": "wrong"}).status_code == 401
        assert client.get("/api/me", params={"token": TOKEN}).status_code == 401, "in the address of the page alone"


def test_probes_and_the_code_of_the_page_need_no_token(serve: Serve):
    with serve(serving=LOCAL) as at, at.client() as client:
        assert client.get("/health").status_code == 200 and client.get("/static/app.js").status_code == 200


def test_the_first_visit_moves_the_token_into_a_cookie(serve: Serve):
    with serve(serving=LOCAL) as at, at.client() as client:
        first = client.get("/", params={"token": TOKEN})
        port = at.url.rpartition(":")[2]
        kept = first.headers["set-cookie"]
        assert first.status_code == 303 and first.headers["location"] == "/"
        assert kept.startswith(f"assay_token_{port}={TOKEN};") and "HttpOnly" in kept and "SameSite=lax" in kept
        assert client.get("/").status_code == 200 and client.get("/api/me").json()["name"] == "local"
        assert client.post("/api/bases", json={"name": "mine"}).status_code == 201
        foreign = client.post("/api/bases", json={"name": "theirs"}, headers={"Origin": "http://127.0.0.1:9"})
        assert foreign.status_code == 403, "another port is another page, though it is sent the same cookie"


def test_programs_send_it_as_a_bearer_token(serve: Serve):
    with serve(serving=LOCAL) as at, at.client(Authorization=f"Bearer {TOKEN}") as client:
        assert client.get("/api/me").status_code == 200
        assert client.get("/v1/models").json()["data"]


def test_where_people_sign_in_the_token_opens_nothing(serve: Serve, folder: Path):
    with open_workspace(folder) as opened:
        members.add(opened.store, "reader")
        key = tokens.new_key(opened.store, "reader")
    with serve(serving=ServeOptions(auth="keys", token=TOKEN)) as at, at.client() as client:
        assert client.get("/", params={"token": TOKEN}).status_code == 200
        assert client.get("/api/me", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 401
        assert client.get("/api/me", headers={"Authorization": f"Bearer {key}"}).status_code == 200


def test_a_workspace_keeps_its_token_unless_others_could_have_read_it(tmp_path: Path):
    token = load_token(tmp_path)
    assert len(token) >= 43 and load_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    (tmp_path / FILE).chmod(0o644)
    other = load_token(tmp_path)
    assert other != token and stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    (tmp_path / FILE).write_text("short")
    assert len(load_token(tmp_path)) >= 43


def test_no_token_says_what_it_means(empty: Workspace):
    assert "every user of this machine" in "\n".join(describe_server(empty, ServeOptions(), "http://127.0.0.1:1/"))
    assert "every user" not in "\n".join(describe_server(empty, LOCAL, f"http://127.0.0.1:1/?token={TOKEN}"))


@pytest.mark.long
def test_the_address_that_is_printed_opens_the_page_and_no_other_does(tmp_path: Path):
    folder = tmp_path / "workspace"
    asyncio.run(filled(folder, NOTES))
    command = [sys.executable, "-m", "assay.cli.main", "serve", "--port", "0", "--workspace", str(folder)]
    started = forked.Process(command, env={**os.environ}, stdout=forked.PIPE, stderr=forked.PIPE)
    try:
        assert started.stderr is not None
        found = re.search(r"(http://[\d.:]+/)\?token=(\S+)", started.stderr.readline().decode())
        assert found is not None
        with httpx.Client(follow_redirects=True, timeout=60) as browser, httpx.Client(timeout=60) as stranger:
            assert browser.get(found[0]).status_code == 200 and browser.get(f"{found[1]}api/me").status_code == 200
            assert stranger.get(found[1]).status_code == 401 and stranger.get(f"{found[1]}api/me").status_code == 401
        assert (folder / FILE).read_text().strip() == found[2]
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)
