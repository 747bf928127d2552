"""Commands typed in this process: faster than a process of their own."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles import ChatServer, Script
from terminal import NOTES, Done, Keyboard, Typed

from assay.cli import main
from assay.workspace.facade import Workspace, open_workspace


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """A command line, run here. With `keys` somebody sits at the terminal and types these lines."""
    monkeypatch.setenv("ASSAY_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run(*words: str | Path, keys: str | None = None) -> Done:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "argv", ["assay", *map(str, words)])
            if keys is not None:
                patched.setattr(sys, "stdin", Keyboard(keys))
                patched.setattr(sys.stderr, "isatty", lambda: True)
                patched.setenv("TERM", "xterm")
            with pytest.raises(SystemExit) as ended:
                main.main()
        out, err = capsys.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture(scope="session")
def _noted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noted")
    for name, words in NOTES.items():
        (folder / f"{name}.md").write_text(words, encoding="utf-8")
    with open_workspace(folder / "workspace", create=True) as opened:
        asyncio.run(opened.add(sorted(folder.glob("*.md"))))
    return folder / "workspace"


@pytest.fixture
def noted(_noted: Path, tmp_path: Path) -> Iterator[Workspace]:
    """A few notes to ask about, where `typed` looks for them."""
    shutil.copytree(_noted, tmp_path / "workspace")
    with open_workspace(tmp_path / "workspace") as opened:
        yield opened


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Script], ChatServer]]:
    """Puts a scripted model behind an endpoint, which the settings then name."""
    servers: list[ChatServer] = []

    def serve(script: Script) -> ChatServer:
        server = ChatServer(script.answer, window=16_000)
        server.start()
        servers.append(server)
        monkeypatch.setenv("ASSAY_LLM_BASE_URL", server.url)
        monkeypatch.setenv("ASSAY_LLM_MODEL", "scripted")
        monkeypatch.setenv("ASSAY_LLM_API_KEY", "k")
        return server

    yield serve
    for server in servers:
        server.close()
