"""Whoever can write the state cannot give themselves rights, or change stored words, past `verify`; and nothing that Assay
itself does to rights is taken for that."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from notes import Plain
from older_schema import before_rights_were_recorded
from sqlalchemy import delete
from worlds import DESK, EDITOR, READER, World, asked, world

from assay.core.access import Principal
from assay.core.errors import AssayError
from assay.governance.audit.verify import Verification, verify
from assay.governance.audit.witness import audit_context, seal
from assay.ingest.sources import SourceFile
from assay.store import documents, schema
from assay.store.access import document_access, grants, members, rights
from assay.store.runs.chains import FaultKind
from assay.workspace.facade import open_workspace


@pytest.fixture
async def made(tmp_path: Path):
    async with world(tmp_path / "workspace") as one:
        shared = next(base for base in one.as_(EDITOR).scope().bases if base.name == "shared")
        grants.share(one.workspace.store, shared, "user:reader")
        yield one


def found(made: World) -> Verification:
    return verify(made.workspace.store, None)


def wrong(made: World) -> list[str]:
    return [each.detail for each in found(made).faults if each.what is FaultKind.right]


def write(made: World, statement: str, *values: Any) -> None:
    with made.workspace.store.write() as connection:
        assert connection.exec_driver_sql(statement, values).rowcount


FORGED = {
    "a reader of a base": (
        "INSERT INTO grants (label, name) SELECT id, 'user:mallory' FROM bases WHERE name = 'shared'",
        "user:mallory may read",
    ),
    "a reader taken out": (
        "DELETE FROM grants WHERE name = 'user:reader' AND label LIKE 'b%'",
        "user:reader may not read",
    ),
    "an administrator": ("UPDATE members SET admin = 1 WHERE name = 'reader'", "user:reader is an administrator"),
    "a group": (
        """UPDATE members SET groups = '["desk"]' WHERE name = 'reader'""",
        "user:reader is in the groups desk",
    ),
    "a member": (
        "INSERT INTO members (name, groups, admin, password, created) VALUES ('mallory', '[]', 0, '', '2026')",
        "user:mallory is a member",
    ),
    "a member taken out": ("DELETE FROM members WHERE name = 'writer'", "user:writer is no member"),
    "an owner": ("UPDATE grants SET name = 'user:mallory' WHERE name = 'user:editor'", "user:mallory may read"),
    "no fact": ("DELETE FROM facts WHERE name = 'rights recorded'", "does not say since when"),
}


@pytest.mark.parametrize("statement, words", FORGED.values(), ids=FORGED)
async def test_a_right_that_was_written_past_assay_is_a_fault(made: World, statement: str, words: str):
    assert wrong(made) == []
    write(made, statement)
    assert not found(made).whole and any(words in each for each in wrong(made))


async def test_a_right_that_was_forged_with_the_fact_taken_away_is_not_recorded_as_found_when_the_workspace_is_opened(
    made: World,
):
    write(made, FORGED["no fact"][0])
    write(made, FORGED["a reader of a base"][0])
    made.workspace.store.engine.dispose()
    with open_workspace(made.workspace.path) as again:
        faults = verify(again.store, None).faults
    assert any("user:mallory may read" in each.detail for each in faults)
    assert any("does not say since when" in each.detail for each in faults)


@pytest.mark.parametrize("change", ["DELETE FROM lists", "UPDATE lists SET place = place || 'x'"])
async def test_a_restricted_pattern_that_was_changed_past_assay_is_a_fault(made: World, change: str):
    base = next(base for base in made.as_(EDITOR).scope().bases if base.name == "shared")
    document_access.restrict_pattern(made.workspace.store, base, "hr/**", ["user:reader"], "editor")
    assert wrong(made) == []
    write(made, f"{change} WHERE place LIKE ?", f"{base.id}/hr/%")
    assert f"{base.id}/hr/** is not restricted" in wrong(made)


async def test_a_person_who_is_put_on_the_list_of_a_document_is_a_fault(made: World):
    entry = next(each for each in made.as_(EDITOR).documents.listing(["shared"]) if each.name.startswith("survey"))
    base = next(each for each in grants.every_base(made.workspace.store) if each.id == entry.base)
    document_access.set_access(made.workspace.store, base, entry, "user:reader", False, "editor")
    assert wrong(made) == []
    for name in ("user:reader", "user:mallory"):
        write(made, "INSERT INTO grants SELECT label, ? FROM documents WHERE id = ? AND label != base", name, entry.id)
        assert any(each.startswith(f"{name} may read l") for each in wrong(made))


async def test_stored_words_that_were_changed_are_a_fault_with_the_record_that_refers_to_them(made: World):
    run = await asked(made.as_(READER))
    assert found(made).whole
    write(made, "UPDATE texts SET text = replace(text, '31 metres', '13 metres') WHERE text LIKE '%31 metres%'")
    (fault, *_) = found(made).faults
    assert fault.run == run and fault.what is FaultKind.text_changed


async def test_records_that_were_cut_or_rewritten_after_the_last_seal_are_not_called_whole(made: World):
    store = made.workspace.store
    assert "unsealed since" in found(made).conclusion and "whole" not in found(made).conclusion
    seal(audit_context(store, made.workspace.path, made.workspace.settings))
    run = await asked(made.as_(READER))
    assert found(made).since
    with store.write() as connection:  # the newest run, with all that is known of it
        for table in (schema.payloads, schema.records, schema.mentions):
            connection.execute(delete(table).where(table.c.run == run))
        connection.execute(delete(schema.runs).where(schema.runs.c.id == run))
    after = found(made)
    assert after.whole and not after.since
    assert after.conclusion.startswith("The record is whole up to its last seal. It is unsealed since 2026-")


class Deeds:
    """What people do to rights, in any order."""

    def __init__(self, made: World, seed: int) -> None:
        self.made, self.random, self.number = made, random.Random(seed), 0
        self.store = made.workspace.store

    def _base(self) -> Any:
        return self.random.choice(grants.every_base(self.store))

    def _name(self) -> str:
        return self.random.choice(["user:reader", "user:writer", "group:desk", "user:guest", "user:editor"])

    def _pattern(self) -> str:
        return self.random.choice(["notes/**", "*.txt", "notes/moved-*"])

    def _entry(self, base: Any) -> Any:
        return self.random.choice(documents.all_of(self.store, base))

    async def share(self) -> None:
        grants.share(self.store, self._base(), self._name(), "editor")

    async def stop(self) -> None:
        grants.stop_sharing(self.store, self._base(), self._name(), "editor")

    async def allow(self) -> None:
        base = self._base()
        may = self.random.random() < 0.5
        document_access.set_access(self.store, base, self._entry(base), self._name(), may, "editor")

    async def restrict(self) -> None:
        base = self._base()
        document_access.restrict(self.store, base, [self._entry(base).uri], [self._name()], "editor")

    async def restrict_pattern(self) -> None:
        names = [self._name()] if self.random.random() < 0.7 else []
        document_access.restrict_pattern(self.store, self._base(), self._pattern(), names, "editor")

    async def lift_pattern(self) -> None:
        document_access.lift_pattern(self.store, self._base(), self._pattern(), "editor")

    async def vanish(self) -> None:
        base = self._base()
        document_access.note_vanished(self.store, base, [self._entry(base)])

    async def keep(self) -> None:
        base = self._base()
        document_access.keep(self.store, base, self._entry(base), "editor")

    async def reset(self) -> None:
        base = self._base()
        document_access.reset(self.store, base, self._entry(base), "editor")

    async def move(self) -> None:
        base, self.number = self._base(), self.number + 1
        documents.move(self.store, self._entry(base), f"notes/moved-{self.number}.txt")

    async def create(self) -> None:
        self.number += 1
        grants.create_base(self.store, f"base {self.number}", DESK, group=self.random.choice(["desk", ""]))

    async def fill(self) -> None:
        self.number += 1
        theirs = self.made.as_(DESK)
        source = SourceFile(uri=f"notes/{self.number}", name="n", data=f"Note {self.number}.".encode())
        await theirs.documents.add_sources([source], "desk notes", reader=Plain())

    async def erase(self) -> None:
        base = self._base()
        seen = self.made.as_(Principal(base.owner))
        await seen.records.erase([self._entry(base)], seen.scope())

    async def add(self) -> None:
        members.add(self.store, "guest", ["desk"], by="editor")

    async def remove(self) -> None:
        heir = self.random.choice(["", "reader"])
        members.remove_member(self.store, self.made.workspace.context.cache, "guest", heir, by="editor")

    async def forget_person(self) -> None:
        await self.made.workspace.records.erase_person("guest", with_documents=True)

    async def promote(self) -> None:
        members.set_admin(self.store, "writer", self.random.random() < 0.5, by="guest")

    async def regroup(self) -> None:
        members.set_groups(self.store, "writer", self.random.choice([[], ["desk"], ["desk", "pier"]]), by="guest")

    async def hand_over(self) -> None:
        members.transfer_ownership(self.store, self.made.workspace.context.cache, "writer", "reader", by="guest")


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
async def test_nothing_that_assay_does_to_rights_is_taken_for_tampering(made: World, seed: int):
    deeds = Deeds(made, seed)
    named = [name for name in vars(Deeds) if not name.startswith("_")]
    for step in range(60):
        name = deeds.random.choice(named)
        try:
            await getattr(deeds, name)()
        except (AssayError, IndexError):  # there is no such person or document now
            continue
        assert wrong(made) == [], (step, name)


async def test_rights_from_before_they_were_recorded_are_recorded_when_a_workspace_is_opened(made: World):
    store = made.workspace.store
    with store.write() as connection:
        before_rights_were_recorded(connection)
        connection.exec_driver_sql("INSERT INTO grants (label, name) SELECT id, 'user:guest' FROM bases")
    store.engine.dispose()
    with open_workspace(made.workspace.path) as again:
        assert verify(again.store, None).whole
        with again.store.read() as connection:
            assert rights.recorded(connection).members.keys() == {"editor", "reader", "writer"}
        assert "found when rights were first recorded" in str(again.records.log())
