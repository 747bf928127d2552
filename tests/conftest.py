"""Shared by all tests: a workspace in a temporary folder, filled once where filling is not what is tested."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import certifi
import forked
import pytest
import read_once
from doubles import WordAnswers
from fake_clock import FakeClockLoop
from filelock import FileLock
from hypothesis import HealthCheck, settings

from assay.workspace.facade import Workspace, open_workspace

END = "-----END CERTIFICATE-----\n"
# How fast a machine is decides no test.
settings.register_profile("assay", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("assay")

CORPUS = Path(__file__).parent.parent / "samples" / "corpus"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what uses the browser, so that `-m "not browser"` leaves it out."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of an async test: one with a fake clock where the test is marked so."""
    return {"loop": FakeClockLoop if item.get_closest_marker("fake_clock") else asyncio.new_event_loop}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: to look through it for garbage, again and again, is a part of what tests cost."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_configure() -> None:
    """Ctrl-C interrupts, also in a job that a shell started in the background with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _own_environment(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the settings of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("ASSAY_") and name != "ASSAY_CACHE_DIR"]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Whoever is spoken to here needs no certificate, and to read all that there are takes longer than most tests do."""
    kept = tmp_path_factory.mktemp("certificates") / "one.pem"
    kept.write_text(Path(certifi.where()).read_text(encoding="utf-8").partition(END)[0] + END, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(kept))
        yield


@pytest.fixture(scope="module", autouse=True)
def _few_models_in_memory() -> Iterator[None]:
    """A compiled model takes 200 MB. Of several that a file of tests compiled, none stays."""
    yield
    runner = sys.modules.get("assay.models.local.openvino_runner")
    if runner is not None and len(runner._runners) > 2:
        runner._runners.clear()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, one for each file of tests."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Debian's chromium (apt-get install chromium)")
    driver = pytest.importorskip("playwright.sync_api").sync_playwright()
    with driver as started:
        drawing = ["--disable-gpu", "--disable-software-rasterizer"]  # no graphics card is played in software
        launched = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", *drawing])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def _known_readings(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = getattr(pytestconfig, "cache", None)
    folder = kept.mkdir("read-once") if kept else tmp_path_factory.mktemp("read-once")
    file = folder / f"{read_once.models()}.sqlite"
    os.environ[read_once.VARIABLE] = str(file)
    return file


@pytest.fixture(scope="module", autouse=True)
def _texts_are_read_once(request: pytest.FixtureRequest, _known_readings: Path) -> Iterator[None]:
    if request.node.nodeid.startswith(read_once.PLAIN):
        yield
        return
    read_once.install(_known_readings)
    yield
    read_once.remove()


@pytest.fixture(scope="session")
def corpus() -> Path:
    return CORPUS


@pytest.fixture(scope="session")
def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filled by whoever comes first, for all that run beside it."""
    place = tmp_path_factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    folder = place / "filled" / "workspace"
    with FileLock(place / "filled.lock"):
        if not folder.exists():
            with open_workspace(place / "filling", create=True) as opened:
                asyncio.run(opened.add([CORPUS]))
            folder.parent.mkdir()
            (place / "filling").rename(folder)
    return folder


@pytest.fixture
def filled(_filled: Path, tmp_path: Path) -> Iterator[Workspace]:
    """The sample corpus, ingested; a copy, so that a test may do to it what it likes. Sentences are chosen by words."""
    folder = tmp_path / "workspace"
    shutil.copytree(_filled, folder)
    with open_workspace(folder) as opened:
        opened.context.parts.answer_model = WordAnswers()
        yield opened


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        yield opened


@pytest.fixture
def assay(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line as a person has it: a process of its own."""

    def run(*arguments: str | Path, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        done = forked.run(
            [sys.executable, "-m", "assay.cli.main", *map(str, arguments)],
            input=stdin,
            cwd=tmp_path,
            env={**os.environ, "ASSAY_WORKSPACE": str(tmp_path / "workspace"), "COLUMNS": "200", **environment},
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
