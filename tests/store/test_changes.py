from __future__ import annotations

import queue
from pathlib import Path

import pytest
from postgres_server import new_database

from assay.core.access import LOCAL
from assay.store.database import ChangeListener, open_store
from assay.store.runs import records


@pytest.mark.parametrize("database", ["file", pytest.param("server", marks=pytest.mark.long)])
def test_a_process_is_told_what_others_write(tmp_path: Path, database: str):
    address = tmp_path / "state.db" if database == "file" else new_database()
    own, other = open_store(address, create=True), open_store(address, create=True)
    told: queue.Queue[None] = queue.Queue()
    listener = ChangeListener(own, lambda: told.put(None))
    listener.start()
    try:
        told.get(timeout=10)  # what was written before it listened
        records.begin(other, LOCAL.id)
        told.get(timeout=10)
        assert listener.hears
        if database == "server":
            for _ in range(3):
                records.begin(own, LOCAL.id)
            records.begin(other, LOCAL.id)
            told.get(timeout=10)
            assert told.empty(), "a process knows what it has written itself"
    finally:
        listener.stop()
        own.close()
        other.close()
    assert not listener.hears
