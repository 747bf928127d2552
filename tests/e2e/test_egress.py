"""Nothing leaves the machine: with outgoing connections refused everything works, and no library even tries."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Every way out to another address, native code included, passes libc's connect and sendto.
GUARD = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
static int refuse(const struct sockaddr *to, const char *how) {
    if (!to || (to->sa_family != AF_INET && to->sa_family != AF_INET6)) return 0;
    FILE *log = fopen(getenv("EGRESS_LOG"), "a");
    if (log) { fprintf(log, "%s\n", how); fclose(log); }
    errno = ECONNREFUSED;
    return 1;
}
int connect(int fd, const struct sockaddr *to, socklen_t size) {
    if (refuse(to, "connect")) return -1;
    return ((int (*)(int, const struct sockaddr *, socklen_t)) dlsym(RTLD_NEXT, "connect"))(fd, to, size);
}
ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size) {
    if (refuse(to, "sendto")) return -1;
    return ((ssize_t (*)(int, const void *, size_t, int, const struct sockaddr *, socklen_t))
            dlsym(RTLD_NEXT, "sendto"))(fd, data, length, flags, to, size);
}
"""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., tuple[subprocess.CompletedProcess[str], str]]:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("refusing sockets under every library needs Linux and a C compiler")
    place = tmp_path_factory.mktemp("guard")
    (place / "guard.c").write_text(GUARD)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place / "guard.so", place / "guard.c", "-ldl"], check=True)

    def run(*command: str | Path) -> tuple[subprocess.CompletedProcess[str], str]:
        log = place / "log"
        log.write_text("")
        environment = {
            **os.environ, "LD_PRELOAD": str(place / "guard.so"), "EGRESS_LOG": str(log),
            "ASSAY_WORKSPACE": str(place / "workspace"), "ASSAY_CACHE_DIR": str(place / "cache"),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, *map(str, command)], capture_output=True, text=True, env=environment, timeout=110
        )
        return done, log.read_text()

    return run


def test_the_guard_sees_an_attempt_and_refuses_it(guarded):
    attempt = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=2)"
    done, log = guarded("-c", attempt)
    assert done.returncode != 0 and "connect" in log


@pytest.mark.long
def test_adding_searching_and_asking_reach_for_nothing(guarded, corpus: Path):
    command = ("-m", "assay.cli.main")
    done, log = guarded(*command, "add", corpus, "-q")
    assert done.returncode == 0 and log == "", done.stderr + log
    done, log = guarded(*command, "search", "turbidity alarm at Pellam")
    assert done.returncode == 0 and "Pellam" in done.stdout and log == "", done.stderr + log
    done, log = guarded(*command, "ask", "How much water can Brackwell treat in a day?")
    assert done.returncode in {0, 3} and "38,000" in done.stdout and log == "", done.stderr + log
