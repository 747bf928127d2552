"""Whoever can write the state, but has not the key, cannot destroy signed records and call it an erasure, nor make a run
somebody else's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from older_schema import BEFORE_LEASES, before_rights_were_recorded
from worlds import EDITOR, READER, World, asked, world

from assay.core.codec import to_json
from assay.core.errors import StoreError
from assay.core.events import Erased
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import AuditContext, audit_context, load_signer, seal
from assay.store.access import members
from assay.store.runs import records, seals
from assay.store.runs.chains import FaultKind
from assay.workspace.facade import open_workspace


@pytest.fixture
async def made(tmp_path: Path):
    async with world(tmp_path / "workspace", audit_key=str(tmp_path / "elsewhere.pem")) as one:
        yield one


@pytest.fixture(params=["workspace alone", "second place"])
def audit(made: World, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AuditContext]:
    (tmp_path / "second").mkdir()
    copy = str(tmp_path / "second") if request.param == "second place" else ""
    settings = made.workspace.with_settings(audit_copy=copy).settings
    yield audit_context(made.workspace.store, made.workspace.path, settings)


def forge(made: World, run: str, note: Erased | None = None) -> None:
    """What the record says is destroyed, and a note in good order says that it was erased."""
    with made.workspace.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ? AND seq > 0", (run,))
        places = tuple(each.seq for each in records.chain(made.workspace.store, run, "reader") if each.seq)
        records.note(
            connection, made.workspace.store, note or Erased("erased with a document", "editor", (), {run: places})
        )


async def test_signed_records_that_are_missing_on_the_word_of_an_unsigned_note_are_a_fault(
    made: World, audit: AuditContext
):
    run = await asked(made.as_(READER))
    seal(audit)
    forge(made, run)
    found = verify(made.workspace.store, audit.witness_file)
    assert not found.whole and {each.what for each in found.faults} == {FaultKind.erasure_unsigned}
    assert found.faults[0].record == f"{run}/1"
    assert verify(made.workspace.store, audit.witness_file, run=run).faults
    with pytest.raises(StoreError, match="nobody signed"):
        seal(audit)
    assert not verify(made.workspace.store, audit.witness_file).whole, "no later head makes it good"
    seal(audit, accept_erasures=True)
    assert verify(made.workspace.store, audit.witness_file).whole, "whoever has the key may say that it was an erasure"


async def test_a_note_that_is_signed_with_another_key_counts_as_unsigned(
    made: World, audit: AuditContext, tmp_path: Path
):
    run = await asked(made.as_(READER))
    seal(audit)
    signer = load_signer(tmp_path / "attacker.pem")
    with made.workspace.store.read() as connection:
        workspace = seals.identity(connection)
    places = tuple(each.seq for each in records.chain(made.workspace.store, run, "reader") if each.seq)
    note = Erased("erased with a document", "editor", (), {run: places})
    signature = signer.sign(seals.erasure_message(workspace, to_json(note, words=False)))
    forge(made, run, replace(note, key=signer.public, signature=signature))
    assert {each.what for each in verify(made.workspace.store, audit.witness_file).faults} == {
        FaultKind.erasure_unsigned
    }
    with pytest.raises(StoreError, match="nobody signed"):
        seal(audit)


async def test_what_is_erased_rightly_after_it_was_signed_verifies_at_once_and_later(made: World, audit: AuditContext):
    run = await asked(made.as_(EDITOR))
    seal(audit)
    base = next(base for base in made.as_(EDITOR).scope().bases if base.name == "shared")
    entries = made.as_(EDITOR).documents.listing(["shared"])
    await made.as_(EDITOR).records.erase(entries[:1], made.as_(EDITOR).scope([base.name]))
    found = verify(made.workspace.store, audit.witness_file)
    assert found.whole and found.erased and found.since
    seal(audit)
    assert verify(made.workspace.store, audit.witness_file).whole and run


async def test_a_run_that_is_listed_as_somebody_elses_is_a_fault_unless_it_was_handed_over(made: World):
    store = made.workspace.store
    run = await asked(made.as_(READER))
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET who = 'editor' WHERE id = ?", (run,))
    found = verify(store, None)
    assert [(each.record, each.what) for each in found.faults] == [(f"{run}/0", FaultKind.changed)]
    assert "somebody else" in found.faults[0].words and list(records.faults(store, run))
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET who = 'reader' WHERE id = ?", (run,))
    assert verify(store, None).whole
    members.transfer_ownership(store, made.workspace.context.cache, "reader", "editor")
    assert verify(store, None).whole and not list(records.faults(store, run))


async def test_runs_that_changed_hands_before_that_was_recorded_verify(made: World):
    store = made.workspace.store
    run = await asked(made.as_(READER))
    with store.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET who = 'editor' WHERE id = ?", (run,))
        connection.exec_driver_sql("DROP TABLE acceptances")
        for statement in BEFORE_LEASES:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("UPDATE facts SET value = '7' WHERE name = 'version'")
        before_rights_were_recorded(connection)
    with open_workspace(made.workspace.path) as again:
        assert verify(again.store, None).whole
