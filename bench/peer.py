"""Peers run in an environment of their own (`make bench`), one process each, and tell what they found as JSON."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".peers" / "bin" / "python"
SECONDS = 1800
OWN = {"haiku.rag": ROOT / ".haiku-rag" / "bin" / "python"}  # it needs Python 3.12
SEARCHERS = (
    "chroma",
    "haiku.rag",
    "haystack",
    "llama-index",
    "llama-index with BM25",
    "paper-qa",
    "txtai",
)  # of peer_search.py


@dataclass(frozen=True, slots=True)
class PeerFailed(Exception):
    """The peer could not be run; the reason is for the reader of the figures."""

    reason: str


def run_peer(
    script: str, name: str, task: dict[str, Any], python: Path = PYTHON, seconds: float = SECONDS
) -> dict[str, Any]:
    """What `bench/SCRIPT` says in the peers' environment: the last line of its output."""
    python = OWN.get(name, python) if python == PYTHON else python
    if not python.exists():
        raise PeerFailed("not installed: run `make bench` first")
    command = [str(python), str(ROOT / "bench" / script), name]
    # Nothing may be fetched or sent: what a peer downloads or reports on its own is not part of the work.
    quiet = {
        "ANONYMIZED_TELEMETRY": "False",
        "HAYSTACK_TELEMETRY_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "LOGFIRE_IGNORE_NO_CONFIG": "1",
    }
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | quiet
    try:
        done = subprocess.run(
            command, input=json.dumps(task), capture_output=True, text=True, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        raise PeerFailed(f"it took longer than {seconds:g} seconds") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise PeerFailed(lines[-1][:300])
    return json.loads(done.stdout.strip().splitlines()[-1])
