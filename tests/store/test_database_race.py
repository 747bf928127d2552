"""Several processes that open a new workspace at the same moment."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from assay.store.database import open_cache, open_store


def _open(folder: str, together: Barrier, result: multiprocessing.Queue[str]) -> None:
    together.wait()
    try:
        open_cache(Path(folder) / "cache.db").dispose()
        open_store(Path(folder) / "state.db", create=True).close()
        result.put("")
    except Exception as error:
        result.put(repr(error))


@pytest.mark.long
def test_processes_that_create_the_same_database_at_once_all_open_it(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        together, results = context.Barrier(4), context.Queue()
        processes = [context.Process(target=_open, args=(str(folder), together, results)) for _ in range(4)]
        for process in processes:
            process.start()
        assert [results.get(timeout=60) for _ in processes] == ["", "", "", ""]
        for process in processes:
            process.join()
