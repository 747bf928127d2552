"""What is old enough is erased with a note; the chain stays whole; and nobody shortens the time by mistake."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from ledger import ask

from assay.core.errors import Missing, UserError
from assay.core.settings import Settings
from assay.governance.audit.retention import SHORTEST, erase_old
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import audit_context, erasure_signer, seal
from assay.store.runs import records
from assay.workspace.facade import Workspace

UNSIGNED = lambda _: ("", "")  # noqa: E731 - nothing was sealed before


def later(opened: Workspace, day: str) -> Workspace:
    """The same workspace, on another day."""
    return replace(opened, store=replace(opened.store, now=lambda: f"{day}T00:00:00.000Z"))


def bodies(opened: Workspace) -> int:
    with opened.store.read() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM payloads WHERE run != 'workspace'").scalar() or 0


def test_what_is_old_enough_is_erased_and_the_chain_stays_whole(opened: Workspace, run: str):
    context = audit_context(opened.store, opened.path, opened.settings)
    seal(context)
    count = bodies(opened)
    old = later(opened, "2030-01-01")
    old.embedder = opened.embedder
    kept = asyncio.run(ask(old, "How many cranes has hall 3?"))
    gone = erase_old(old.store, 200, "local", erasure_signer(opened.path, opened.settings))
    assert (gone.runs, gone.payloads) == (2, count) and gone.before.startswith("2029-06-15")
    assert bodies(opened) == len(kept.events)
    found = verify(opened.store, context.witness_file)
    assert found.whole and found.erased == count and found.records == count + len(kept.events) + 1
    with pytest.raises(Missing, match="erased"):
        opened.questions.run(run)
    assert opened.questions.run(kept.id).answer == kept.answer
    assert list(records.faults(opened.store, run)) == []


def test_the_words_are_gone_from_every_file_of_the_state(opened: Workspace):
    spoken = b"Where does pump P-7 stand?"
    state = [opened.path / name for name in ("state.db", "state.db-wal")]
    assert any(spoken in file.read_bytes() for file in state if file.exists())
    erase_old(later(opened, "2030-01-01").store, 200, "local", UNSIGNED)
    assert not [file.name for file in state if file.exists() and spoken in file.read_bytes()]


def test_what_is_erased_is_erased_once(opened: Workspace):
    old = later(opened, "2030-01-01")
    assert erase_old(old.store, 200, "local", UNSIGNED).runs == 2
    assert erase_old(old.store, 200, "local", UNSIGNED).runs == 0


def test_what_is_younger_is_kept_and_nought_keeps_all(opened: Workspace):
    count = bodies(opened)
    assert erase_old(opened.store, 200, "local", UNSIGNED).payloads == 0
    assert erase_old(later(opened, "2060-01-01").store, 0, "local", UNSIGNED).payloads == 0
    assert bodies(opened) == count


def test_less_than_six_months_has_to_be_meant(opened: Workspace):
    old = later(opened, "2030-01-01")
    with pytest.raises(UserError, match="six months"):
        erase_old(old.store, SHORTEST - 1, "local", UNSIGNED)
    assert erase_old(old.store, 30, "local", UNSIGNED, shorter=True).runs == 2


def test_the_usual_time_is_at_least_six_months():
    assert Settings().retention_days >= SHORTEST == 183


def test_a_payload_that_vanishes_without_a_note_is_tampering(opened: Workspace, run: str):
    with opened.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ? AND seq = 2", (run,))
    (fault,) = verify(opened.store, None).faults
    assert (fault.run, fault.seq, fault.what) == (run, 2, "payload removed")
