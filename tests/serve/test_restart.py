"""A real `assay serve` that is killed, or told to end, under runs: every one that was acknowledged is delivered."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forked
import httpx
import pytest
from doubles import ChatServer, keeps, writes
from serving import followed, recorded, sent, slow, until
from typer.testing import CliRunner

from assay.cli.main import app
from assay.cli.serve import on_this_machine
from assay.core.errors import UserError
from assay.serve.process import RedactingFormatter
from assay.store.runs import underway
from assay.workspace.facade import Workspace, open_workspace

pytestmark = pytest.mark.timeout(300)  # each process that is started has its heavy parts to load

KEPT = "Raw telemetry is kept for 30 days"
LINES: dict[str, Any] = {"weigh": keeps(KEPT), "write": writes(f"{KEPT} [{{0}}].")}
QUESTION = "How long is raw telemetry kept?"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def process(folder: Path, model: ChatServer | None, port: int, *flags: str) -> Iterator[forked.Process]:
    """`assay serve` as a person starts it."""
    given = {"ASSAY_LLM_BASE_URL": model.url, "ASSAY_LLM_MODEL": "scripted", "ASSAY_LLM_API_KEY": "k"} if model else {}
    started = forked.Process(
        [
            sys.executable,
            "-m",
            "assay.cli.main",
            "serve",
            "--no-token",
            "--port",
            str(port),
            "--workspace",
            str(folder),
            *flags,
        ],
        env={**os.environ, **given, "ASSAY_SERVE_RUNS_PER_PERSON": "0", "ASSAY_SERVE_REQUESTS_PER_MINUTE": "0"},
        stdout=forked.PIPE,
        stderr=forked.PIPE,
    )
    try:
        until(lambda: started.poll() is not None or _answers(port), 60)
        yield started
    finally:
        started.kill()
        started.communicate()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port)):  # costs less than a request for which nobody is there
            pass
        return httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
    except (httpx.TransportError, OSError):
        return False


def ended(started: forked.Process, *, by: signal.Signals) -> tuple[int, str]:
    """The exit code and what it printed."""
    started.send_signal(by)
    _, said = started.communicate(timeout=120)
    return started.wait(), said.decode()


def client_of(port: int) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60.0)


def asked(client: httpx.Client, **wish: Any) -> str:
    reply = client.post("/api/runs", json={"question": QUESTION, **wish})
    assert reply.status_code == 201, reply.text
    return reply.json()["run"]


@pytest.mark.kill
def test_a_server_that_is_killed_loses_no_run_and_no_event(filled: Workspace):
    folder, port = filled.path, free_port()
    with ChatServer(slow(0.4, **LINES)) as model:
        with process(folder, model, port) as first, client_of(port) as client:
            runs = [asked(client, talk=n % 2 == 0) for n in range(5)]
            with client.stream("GET", f"/api/runs/{runs[0]}/events") as reply:
                events = sent(reply.iter_lines())
                seen = [next(events), next(events)]
                first.send_signal(signal.SIGKILL)
                first.wait()
        assert {each.run for each in underway.listing(filled.store)} == set(runs)
        with process(folder, model, port), client_of(port) as client:
            rest = followed(client, runs[0], last=seen[-1].id)
            whole = followed(client, runs[0])
            assert recorded(seen + rest) == recorded(whole)
            assert any("claim" in each.data.get("event", {}) for each in whole if each.event == "Checked")  # delivered
            for run in runs:
                assert followed(client, run)[-1].data == {"state": "delivered"}
                told = client.get(f"/api/runs/{run}/trace").json()
                assert told["faults"] == []
                assert [each["seq"] for each in told["events"]] == list(range(len(told["events"])))
            assert {run["state"] for run in client.get("/api/runs").json()["runs"]} == {"delivered"}
            until(lambda: not underway.listing(filled.store))


@pytest.mark.long
def test_ctrl_c_parks_the_runs_and_ends_a_server_in_seconds_though_streams_are_open(filled: Workspace):
    port = free_port()
    model = ChatServer(slow(3600, **LINES))
    with model, process(filled.path, model, port, "--access-log") as started, client_of(port) as client:
        run = asked(client)
        until(lambda: model.requests)
        client.get("/api/threads", params={"q": "telemetry"})
        with client.stream("GET", f"/api/runs/{run}/events") as reply:
            events = sent(reply.iter_lines())
            next(events)
            code, said = ended(started, by=signal.SIGINT)
            assert [each.event for each in events][-1] == "parked"
        assert code == 0
        assert "Unfinished runs continue when the server starts again." in said
        assert "/api/threads" in said and "telemetry" not in said.lower().replace(str(filled.path).lower(), "")
    with open_workspace(filled.path) as opened:
        assert opened.questions.run(run).failed is None
        assert [each.run for each in underway.listing(opened.store)] == [run]


@pytest.mark.long
def test_a_new_user_may_start_with_the_page_and_one_server_has_a_workspace_and_a_port(tmp_path: Path):
    port = free_port()
    with process(tmp_path / "new", None, port) as started, client_of(port) as client:
        assert client.post("/api/ask", json={"question": QUESTION}).json()["outcome"] == "abstained"
        with process(tmp_path / "new", None, free_port()) as second:
            assert second.wait(60) == 2
            assert b"Another `assay serve` has the workspace" in second.stderr.read()
        with process(tmp_path / "other", None, port) as third:
            assert third.wait(60) == 2
            assert f"Port {port} is taken".encode() in third.stderr.read()
        code, said = ended(started, by=signal.SIGTERM)
        assert code == 0
        assert f"http://127.0.0.1:{port}/" in said and "No model is set" in said


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--host", "0.0.0.0"], "At 0.0.0.0 others could read your documents"),
        (["--host", "example.org"], "At example.org others could read your documents"),
        (["--auth", "--trust-header", "X-User", "--trust-proxy", "10.0.0.1"], "people are known one way"),
        (["--trust-header", "X-User"], "--trust-header needs --trust-proxy"),
        (["--auth", "--trust-groups-header", "X-Groups"], "--trust-groups-header needs --trust-header"),
    ],
)
def test_flags_that_would_open_the_door_to_anybody_are_refused(tmp_path: Path, flags: list[str], says: str):
    done = CliRunner().invoke(app, ["serve", "--workspace", str(tmp_path / "new"), *flags])
    assert isinstance(done.exception, UserError) and says in str(done.exception)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_this_machine_is_this_machine_by_any_name(host: str):
    assert on_this_machine(host)


def test_a_log_line_says_where_something_broke_and_not_what_was_asked():
    try:
        raise ValueError("How long is raw telemetry kept?")
    except ValueError:
        record = logging.LogRecord("assay.serve", logging.ERROR, "", 0, "run %s broke down", ("r1",), sys.exc_info())
    line = RedactingFormatter("%(message)s").format(record)
    assert "run r1 broke down" in line and "test_restart.py" in line and "ValueError" in line
    assert "telemetry kept?" not in line.replace('raise ValueError("How long is raw telemetry kept?")', "")


@pytest.mark.parametrize("sign", ["\n", "\r", "\u2028", "\x85", "\x1b[2K", "\u202e"])
def test_no_name_begins_a_line_of_the_log(sign: str):
    path = f"/api/x{sign}2026-01-01 00:00:00 WARNING assay.serve: run r1 was approved"
    record = logging.LogRecord("assay.serve", logging.ERROR, "", 0, "%s broke down", (path,), None)
    line = RedactingFormatter("%(levelname)s: %(message)s").format(record)
    assert sign not in line and len(line.splitlines()) == 1 and "was approved broke down" in line
