"""Sealing: the head is signed, the witness in the second place only grows, and nothing that contradicts it is ever signed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from assay.core.errors import StoreError, UserError
from assay.core.events import Granted
from assay.governance.audit import witness
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import AuditContext, audit_context, is_signed_by, seal
from assay.store.runs import records
from assay.workspace.facade import Workspace, open_workspace


@pytest.fixture
def context(opened: Workspace) -> AuditContext:
    return audit_context(opened.store, opened.path, opened.settings)


def more(opened: Workspace, count: int = 1) -> None:
    for each in range(count):
        with opened.store.write() as connection:
            records.note(connection, opened.store, Granted(f"b{each}", "user:somebody", True, "local"))


def lines(context: AuditContext) -> list[object]:
    assert context.witness_file is not None
    return [json.loads(line) for line in context.witness_file.read_text().splitlines()]


def test_a_seal_is_signed_with_the_key_it_names_and_stands_in_both_places(opened: Workspace, context: AuditContext):
    made = seal(context)
    assert made is not None and is_signed_by(made.key, made.signature, made.signed)
    assert made.key == context.signer.public
    *told, head = lines(context)
    assert len(told) == made.n and isinstance(head, dict) and head["link"] == made.link
    found = verify(opened.store, context.witness_file)
    assert found.whole and found.witnessed and found.since == 0 and found.sealed and found.sealed.n == made.n


def test_the_private_key_is_for_its_owner_alone_and_stays_the_same(context: AuditContext):
    first = context.signer.public
    assert context.key.stat().st_mode & 0o777 == 0o600 and context.signer.public == first
    assert "PRIVATE" in context.key.read_text() and "PRIVATE" not in repr(context.signer)


def test_the_witness_only_ever_grows(opened: Workspace, context: AuditContext):
    assert context.witness_file is not None
    seal(context)
    before = context.witness_file.read_bytes()
    assert seal(context) is not None and context.witness_file.read_bytes() == before, "nothing new, nothing written"
    more(opened, 3)
    seal(context)
    after = context.witness_file.read_bytes()
    assert after.startswith(before) and len(after.splitlines()) == len(before.splitlines()) + 4


def test_a_kill_anywhere_in_a_seal_is_mended_by_the_next(opened: Workspace, context: AuditContext, tmp_path: Path):
    assert context.witness_file is not None
    seal(context)
    begun = context.witness_file.read_bytes()
    more(opened, 2)
    whole = witness_after(context)
    places = [len(begun), len(begun) + 1, len(begun) + 40, *(len(whole) - back for back in (200, 30, 2, 1, 0))]
    for cut in places:
        context.witness_file.write_bytes(whole[:cut])
        sealed = seal(context)
        assert context.witness_file.read_bytes().startswith(whole[:cut]), "what is there is never written over"
        found = verify(opened.store, context.witness_file)
        assert found.whole and found.since == 0 and sealed and found.sealed and found.sealed.n == sealed.n, (cut, found)


def witness_after(context: AuditContext) -> bytes:
    assert context.witness_file is not None
    seal(context)
    return context.witness_file.read_bytes()


def test_a_long_witness_is_read_from_its_end(opened: Workspace, context: AuditContext):
    assert context.witness_file is not None
    more(opened, 5)
    made = seal(context)
    with context.witness_file.open("ab") as out:
        out.writelines(b'[%d,"r",0,"%s","m"]\n' % (n, b"0" * 64) for n in range(100_000, 101_500))
    assert context.witness_file.stat().st_size > 1 << 16
    ended = witness.read_end(context.witness_file)
    assert ended.seal == made and ended.line and ended.line.n == 101_499 and not ended.torn


def test_what_contradicts_the_witness_is_never_signed(opened: Workspace, context: AuditContext):
    seal(context)
    with opened.store.write() as connection:
        connection.exec_driver_sql("UPDATE records SET hash = 'forged' WHERE n = (SELECT max(n) FROM records)")
    more(opened)
    with pytest.raises(StoreError, match="other records"):
        seal(context)


def test_a_workspace_from_an_older_backup_is_not_sealed_over_the_newer_witness(
    opened: Workspace, context: AuditContext, second: Path, tmp_path: Path
):
    shutil.copytree(opened.path, tmp_path / "older")
    more(opened, 2)
    seal(context)
    with open_workspace(tmp_path / "older", audit_copy=str(second)) as older:
        with pytest.raises(StoreError, match="restored"):
            seal(audit_context(older.store, older.path, older.settings))
        assert verify(older.store, context.witness_file).faults[0].what == "cut off"


def test_another_key_does_not_go_on_with_a_witness(opened: Workspace, context: AuditContext):
    seal(context)
    context.key.unlink()
    more(opened)
    with pytest.raises(StoreError, match="another key"):
        seal(context)


def test_the_witness_of_another_workspace_is_no_witness(
    opened: Workspace, context: AuditContext, second: Path, tmp_path: Path
):
    seal(context)
    with open_workspace(tmp_path / "other", create=True, audit_copy=str(second)) as other:
        more(other)
        with pytest.raises(StoreError, match="other records"):
            seal(audit_context(other.store, other.path, other.settings))
        assert not verify(other.store, context.witness_file).whole


@pytest.mark.parametrize("copy", ["not-there", "workspace/inside"])
def test_a_second_place_that_is_away_or_no_second_place_is_refused(opened: Workspace, tmp_path: Path, copy: str):
    (opened.path / "inside").mkdir()
    with pytest.raises(UserError, match=r"not mounted|inside the workspace"):
        witness.witness_file(str(tmp_path / copy), opened.path)


def test_a_witness_that_was_lost_is_told(opened: Workspace, context: AuditContext):
    assert context.witness_file is not None
    seal(context)
    context.witness_file.unlink()
    found = verify(opened.store, context.witness_file)
    assert [each.detail for each in found.faults] == ["the second place has lost its witness"]


def test_a_head_that_somebody_else_signed_is_found(opened: Workspace, context: AuditContext):
    made = seal(context)
    assert made is not None
    assert verify(opened.store, context.witness_file, keys=[made.key]).whole
    assert "another key" in verify(opened.store, context.witness_file, keys=["00" * 32]).faults[0].detail


def test_after_a_change_of_keys_both_are_named_and_the_old_one_signs_no_more(
    opened: Workspace, context: AuditContext, tmp_path: Path
):
    alone = replace(context, witness_file=None)  # with a second place, a new key needs a new one
    keys: list[str] = []
    for place in (context.key, tmp_path / "new.key"):
        more(opened)
        made = seal(replace(alone, key=place))
        assert made is not None
        keys.append(made.key)
    old, new = keys
    assert verify(opened.store, None, keys=[old, new]).whole
    for wrong in ([old], [new], [new, old]):
        assert "another key" in verify(opened.store, None, keys=wrong).faults[0].detail
    more(opened)
    seal(alone)  # by somebody who has kept the old key
    assert verify(opened.store, None).whole
    assert "another key" in verify(opened.store, None, keys=[old, new]).faults[0].detail


def test_where_a_key_is_named_and_nothing_is_signed_the_record_is_not_called_whole(
    opened: Workspace, context: AuditContext
):
    for place in (None, context.witness_file):
        assert verify(opened.store, place).whole
        found = verify(opened.store, place, keys=[context.signer.public])
        assert [each.detail for each in found.faults] == ["nothing was signed with the key that was named"]


def test_records_since_the_last_seal_are_counted(opened: Workspace, context: AuditContext):
    seal(context)
    more(opened, 4)
    found = verify(opened.store, context.witness_file)
    assert found.whole and found.since == 4


def test_one_run_is_verified_against_the_witness_too(opened: Workspace, context: AuditContext, run: str):
    seal(context)
    assert verify(opened.store, context.witness_file, run=run).whole
    with opened.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM records WHERE run = ? AND seq > 4", (run,))
        connection.exec_driver_sql("DELETE FROM payloads WHERE run = ? AND seq > 4", (run,))
        connection.exec_driver_sql("UPDATE runs SET delivered = 0 WHERE id = ?", (run,))
    (first, *_) = verify(opened.store, context.witness_file, run=run).faults
    assert (first.run, first.seq, first.what) == (run, 5, "cut off")
