"""Nothing leaves the machine: with outgoing connections refused everything works, and no library even tries. With a model,
its endpoint is contacted and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from doubles import ChatServer, synthesis_model
from doubles.fill_policies import cooperative_reply

# Every way out to another address, native code included, passes these functions of libc. What goes to the one address in
# EGRESS_ALLOWED is noted and let through; everything else is noted and refused.
GUARD = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
static void note(const char *how, const char *where) {
    FILE *log = fopen(getenv("EGRESS_LOG"), "a");
    if (log) { fprintf(log, "%s %s\n", how, where); fclose(log); }
}
static int refuse(const struct sockaddr *to, const char *how) {
    if (!to || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return 0;
    char host[INET6_ADDRSTRLEN] = "?", where[80];
    if (to->sa_family == AF_INET) inet_ntop(AF_INET, &((const struct sockaddr_in *) to)->sin_addr, host, sizeof host);
    else inet_ntop(AF_INET6, &((const struct sockaddr_in6 *) to)->sin6_addr, host, sizeof host);
    snprintf(where, sizeof where, "%s:%d", host, ntohs(((const struct sockaddr_in *) to)->sin_port));
    const char *allowed = getenv("EGRESS_ALLOWED");
    note(how, where);
    if (allowed && !strcmp(allowed, where)) return 0;
    errno = ECONNREFUSED;
    return 1;
}
#define NEXT(name) ((__typeof__(name) *) dlsym(RTLD_NEXT, #name))
int connect(int fd, const struct sockaddr *to, socklen_t size) {
    return refuse(to, "connect") ? -1 : NEXT(connect)(fd, to, size);
}
ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    return refuse(to, "sendto") ? -1 : NEXT(sendto)(fd, data, length, flags, to, size);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return message && refuse(message->msg_name, "sendmsg") ? -1 : NEXT(sendmsg)(fd, message, flags);
}
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    unsigned char numeric[16];
    if (name && strcmp(name, "localhost") && inet_pton(AF_INET, name, numeric) != 1
        && inet_pton(AF_INET6, name, numeric) != 1) {
        note("getaddrinfo", name);
        return EAI_FAIL;
    }
    return NEXT(getaddrinfo)(name, service, hints, found);
}
"""
ASSAY = (sys.executable, "-m", "assay.cli.main")
NOTES = {
    "tower.md": "# The tower\n\nThe tower of the lighthouse at Carrow Point is 31 metres tall. It leans a little.",
    "lamp.md": "# The lamp\n\nThe lamp room at Carrow Point is painted with orpiment. The tower has 152 steps.",
    "keeper.md": "# The keeper\n\nThe keeper at Carrow Point tends the lamp, day and night, and writes the log.",
}
QUESTION = "How tall is the tower of the lighthouse at Carrow Point?"


@dataclass(frozen=True)
class Guarded:
    """Commands under the guard, over one workspace."""

    place: Path

    @property
    def workspace(self) -> Path:
        return self.place / "workspace"

    def environment(self, **more: str) -> dict[str, str]:
        self.log.write_text("")
        return {
            **os.environ, "LD_PRELOAD": str(self.place / "guard.so"), "EGRESS_LOG": str(self.log),
            "ASSAY_WORKSPACE": str(self.workspace), "ASSAY_CACHE_DIR": str(self.place / "cache"), **more,
        }  # fmt: skip

    @property
    def log(self) -> Path:
        return self.place / "log"

    def contacted(self) -> list[str]:
        """Every attempt, refused or not."""
        return self.log.read_text().splitlines()

    def run(self, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, env=self.environment(**more), timeout=200
        )


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("refusing sockets under every library needs Linux and a C compiler")
    place = tmp_path_factory.mktemp("guard")
    (place / "guard.c").write_text(GUARD)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place / "guard.so", place / "guard.c", "-ldl"], check=True)
    return Guarded(place)


@pytest.fixture(scope="module")
def stocked(guarded: Guarded) -> Guarded:
    """The guard, and notes that were added under it."""
    notes = guarded.place / "notes"
    notes.mkdir()
    for name, words in NOTES.items():
        (notes / name).write_text(words)
    done = guarded.run(*ASSAY, "add", notes, "-q")
    assert done.returncode == 0 and guarded.contacted() == [], done.stderr
    return guarded


@pytest.mark.parametrize(
    ("attempt", "seen"),
    [
        ("socket.create_connection(('192.0.2.1', 9), timeout=2)", "connect 192.0.2.1:9"),
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))", "sendto 192.0.2.1:53"),
        ("socket.socket(2, 2).sendmsg([b'x'], [], 0, ('192.0.2.1', 53))", "sendmsg 192.0.2.1:53"),
        ("socket.getaddrinfo('models.example', 443)", "getaddrinfo models.example"),
        ("socket.create_connection(('127.0.0.1', 9), timeout=2)", "connect 127.0.0.1:9"),
    ],
)
def test_the_guard_sees_an_attempt_and_refuses_it(guarded: Guarded, attempt: str, seen: str):
    done = guarded.run(sys.executable, "-c", f"import socket; {attempt}")
    assert done.returncode != 0 and guarded.contacted() == [seen]


@pytest.mark.long
def test_adding_searching_and_asking_reach_for_nothing(guarded: Guarded, corpus: Path, tmp_path: Path):
    """With a file of every kind, since each is read by another library."""
    own = {"ASSAY_WORKSPACE": str(tmp_path / "workspace")}
    kinds = {file.suffix: file for file in sorted(corpus.iterdir()) if file.stat().st_size}
    done = guarded.run(*ASSAY, "add", *kinds.values(), corpus / "incident-report-pellam.pdf", "-q", **own)
    assert done.returncode == 0 and guarded.contacted() == [], done.stderr
    done = guarded.run(*ASSAY, "search", "turbidity alarm at Pellam", **own)
    assert done.returncode == 0 and "Pellam" in done.stdout and guarded.contacted() == [], done.stderr
    done = guarded.run(*ASSAY, "ask", "How much water can Brackwell treat in a day?", **own)
    assert done.returncode in {0, 3} and "38,000" in done.stdout and guarded.contacted() == [], done.stderr


@pytest.mark.long
def test_a_synthesis_reaches_for_nothing(stocked: Guarded, tmp_path: Path):
    done = stocked.run(*ASSAY, "synthesise", "--no-model", "--yes", "--out", tmp_path / "account")
    assert done.returncode in {0, 3} and (tmp_path / "account" / "account.html").is_file(), done.stderr
    assert stocked.contacted() == []


@contextmanager
def serving(guarded: Guarded, **more: str) -> Iterator[httpx.Client]:
    """A server under the guard, and a client that is not."""
    command = [*ASSAY, "serve", "--port", "0"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=guarded.environment(**more))
    try:
        assert started.stderr is not None
        line = started.stderr.readline()
        found = re.search(r"(http://[\d.:]+)/\?token=(\S+)", line)
        assert found is not None, line
        with httpx.Client(base_url=found[1], headers={"Authorization": f"Bearer {found[2]}"}, timeout=120) as client:
            yield client
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)


def uses(client: httpx.Client) -> None:
    """Whatever a server is for: a question, an upload, a search, an agent, the page and a report."""
    reply = client.post("/api/ask", json={"question": QUESTION})
    assert reply.status_code == 200, reply.text
    sent = client.post("/api/bases/default/documents", files={"files": ("note.txt", b"The weir is made of oak.")})
    assert sent.status_code in {200, 201, 202}, sent.text
    assert client.post("/api/search", json={"query": "orpiment"}).status_code == 200
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "search", "arguments": {"query": "orpiment"}}
    told = client.post("/mcp", json=call, headers={"Accept": "application/json, text/event-stream"})
    assert told.status_code == 200 and "orpiment" in told.text, told.text
    assert client.get("/").status_code == 200 and client.get("/api/reports/health").status_code == 200


@pytest.mark.long
def test_a_server_reaches_for_nothing(stocked: Guarded):
    with serving(stocked) as client:
        uses(client)
    assert stocked.contacted() == []


@pytest.mark.long
def test_an_agent_over_stdio_reaches_for_nothing(stocked: Guarded):
    def message(id: int | None, method: str, **params: Any) -> str:
        own = {"id": id} if id is not None else {}
        return json.dumps({"jsonrpc": "2.0", **own, "method": method, "params": params}) + "\n"

    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    started = subprocess.Popen(
        [*ASSAY, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=stocked.environment()
    )
    assert started.stdin is not None and started.stdout is not None
    try:
        started.stdin.write(message(1, "initialize", **client) + message(None, "notifications/initialized"))
        started.stdin.write(message(2, "tools/call", name="ask", arguments={"question": QUESTION}))
        started.stdin.flush()
        replies = (json.loads(line) for line in started.stdout)
        answer = next(reply for reply in replies if reply.get("id") == 2)
    finally:
        started.stdin.close()
        started.terminate()
        started.wait(60)
    assert "31 metres" in json.dumps(answer) and stocked.contacted() == []


@pytest.mark.long
def test_with_a_model_its_endpoint_is_contacted_and_nothing_else(stocked: Guarded, tmp_path: Path):
    with ChatServer(cooperative_reply) as model, ChatServer(synthesis_model()) as writer:
        for server, command in (
            (model, ("ask", QUESTION)),
            (writer, ("synthesise", "--yes", "--questions", "2", "--out", tmp_path / "account")),
        ):
            at = urlsplit(server.url).netloc
            done = stocked.run(*ASSAY, *command, EGRESS_ALLOWED=at, **endpoint(server))
            assert done.returncode in {0, 3, 4}, done.stderr
            assert set(stocked.contacted()) == {f"connect {at}"}
        at = urlsplit(model.url).netloc
        with serving(stocked, EGRESS_ALLOWED=at, **endpoint(model)) as client:
            uses(client)
        assert set(stocked.contacted()) == {f"connect {at}"}


def endpoint(server: ChatServer) -> dict[str, str]:
    return {"ASSAY_LLM_BASE_URL": server.url, "ASSAY_LLM_MODEL": "scripted", "ASSAY_LLM_API_KEY": "k"}
