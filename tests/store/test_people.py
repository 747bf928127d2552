from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from assay.core.access import LOCAL, Principal
from assay.core.errors import Missing, UserError
from assay.core.events import Asked
from assay.store import embedding_cache, threads
from assay.store.access import grants, members
from assay.store.database import Store, open_cache, open_store
from assay.store.runs import history, records

READER, EDITOR = Principal("reader", frozenset({"desk"})), Principal("editor", frozenset({"desk", "press"}))
STRANGER = Principal("stranger")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "state.db", create=True)
    yield opened
    opened.close()


def seen(store: Store, who: Principal) -> list[str]:
    return [base.name for base in grants.scope_of(store, who).bases]


# --- whose a base is ------------------------------------------------------------------------------------------------


def test_two_people_may_have_a_base_of_one_name_and_neither_learns_of_the_others(store: Store):
    mine, theirs = (grants.get_or_create_base(store, "default", who) for who in (READER, EDITOR))
    assert mine.id != theirs.id
    assert grants.get_or_create_base(store, "default", READER).id == mine.id
    assert grants.scope_of(store, READER).bases == (mine,)
    assert grants.scope_of(store, EDITOR).bases == (theirs,)


def test_a_groups_base_is_read_and_filled_by_its_members_and_by_nobody_else(store: Store):
    base = grants.create_base(store, "handbook", READER, group="desk")
    assert base.owner == "group:desk"
    assert grants.get_or_create_base(store, "handbook", EDITOR).id == base.id
    assert EDITOR.owns(base) and not STRANGER.owns(base)
    assert seen(store, STRANGER) == []
    assert grants.get_or_create_base(store, "handbook", STRANGER).id != base.id


def test_nobody_makes_a_base_for_a_group_they_are_not_in(store: Store):
    with pytest.raises(UserError, match="not in a group called 'press'"):
        grants.create_base(store, "releases", READER, group="press")
    assert seen(store, EDITOR) == []


def test_a_person_cannot_pass_for_a_group_by_their_name(store: Store):
    grants.create_base(store, "handbook", READER, group="desk")
    assert seen(store, Principal("group:desk")) == []
    assert not Principal("desk").owns(grants.scope_of(store, READER).bases[0])


def test_who_leaves_a_group_sees_what_it_owns_no_longer(store: Store):
    grants.create_base(store, "handbook", READER, group="desk")
    assert seen(store, EDITOR) == ["handbook"]
    assert seen(store, Principal("editor", frozenset({"press"}))) == []


def test_nobody_makes_a_second_base_of_a_name_they_know(store: Store):
    grants.create_base(store, "handbook", EDITOR, group="desk")
    with pytest.raises(grants.NameTaken, match="already"):
        grants.create_base(store, "handbook", EDITOR, group="press")


def test_a_name_that_others_use_out_of_sight_is_free(store: Store):
    grants.create_base(store, "secrets", EDITOR)
    assert grants.create_base(store, "secrets", READER).owner == "reader"


def test_a_group_has_one_base_of_a_name_also_where_a_member_calls_it_otherwise(store: Store):
    grants.create_base(store, "notes", EDITOR, group="desk")
    outside = Principal("reader")
    grants.get_or_create_base(store, "notes", outside)
    with pytest.raises(grants.NameTaken, match="already"):
        grants.create_base(store, "notes", READER, group="desk")


# --- sharing --------------------------------------------------------------------------------------------------------


def test_a_shared_base_is_read_and_not_filled(store: Store):
    base = grants.get_or_create_base(store, "notes", EDITOR)
    grants.share(store, base, "user:reader")
    assert seen(store, READER) == ["notes"]
    with pytest.raises(UserError, match="not yours to change"):
        grants.get_or_create_base(store, "notes", READER, "mine now")
    assert grants.scope_of(store, EDITOR).bases[0].description == ""


def test_a_base_shared_with_a_group_is_seen_by_who_is_in_it_now(store: Store):
    base = grants.get_or_create_base(store, "notes", STRANGER)
    grants.share(store, base, "group:press")
    assert (seen(store, EDITOR), seen(store, READER)) == (["notes"], [])


def test_sharing_that_has_stopped_has_stopped_at_the_next_look(store: Store):
    base = grants.get_or_create_base(store, "notes", EDITOR)
    for _ in range(2):  # sharing twice is sharing once
        grants.share(store, base, "user:reader")
    assert grants.shared_with(store, base) == ["user:editor", "user:reader"]
    grants.stop_sharing(store, base, "user:reader")
    assert seen(store, READER) == []
    with pytest.raises(Missing, match="not shared with 'user:reader'"):
        grants.stop_sharing(store, base, "user:reader")


def test_an_owner_cannot_be_shut_out_of_their_own_base(store: Store):
    for base, owner in (
        (grants.get_or_create_base(store, "own", READER), "user:reader"),
        (grants.create_base(store, "ours", READER, group="desk"), "group:desk"),
    ):
        with pytest.raises(UserError, match="belongs to"):
            grants.stop_sharing(store, base, owner)
    assert seen(store, READER) == ["ours", "own"]


@pytest.mark.parametrize("who", ["reader", "user:", "group:", "everybody", ""])
def test_a_base_is_shared_with_somebody_or_some_group_and_nothing_vaguer(store: Store, who: str):
    base = grants.get_or_create_base(store, "notes", EDITOR)
    with pytest.raises(UserError, match="user:NAME or group:NAME"):
        grants.share(store, base, who)


def test_a_base_that_is_called_like_anothers_with_its_owner_is_told_apart_from_it(store: Store):
    own = grants.create_base(store, "notes (editor)", READER)
    grants.create_base(store, "notes", READER)
    shared = grants.create_base(store, "notes", Principal("editor"))
    grants.share(store, shared, "user:reader")
    scope = grants.scope_of(store, READER)
    assert scope.named("notes (editor)").id == own.id
    assert scope.named(f"notes (editor) {shared.id}").id == shared.id


def test_two_readable_bases_of_one_name_are_told_apart_by_their_owners(store: Store):
    own = grants.get_or_create_base(store, "notes", READER)
    shared = grants.get_or_create_base(store, "notes", EDITOR)
    grants.share(store, shared, "user:reader")
    scope = grants.scope_of(store, READER)
    assert scope.named("notes").id == own.id
    assert scope.named("notes (editor)").id == shared.id
    assert grants.get_or_create_base(store, "notes", READER).id == own.id
    with pytest.raises(UserError, match="not yours"):
        grants.get_or_create_base(store, "notes (editor)", READER)


# --- changing hands -------------------------------------------------------------------------------------------------


def test_everything_of_one_person_becomes_anothers(store: Store, tmp_path: Path):
    cache = open_cache(tmp_path / "cache.db")
    base = grants.get_or_create_base(store, "default", LOCAL)
    run = records.begin(store, "local")
    records.append(store, run, 0, Asked("Why?", "local", "2026-01-01"))
    thread = threads.begin(store, "local", "Why?")
    embedding_cache.remember(cache, "local", "words", {"d": np.ones(3, dtype=np.float32)})
    assert members.transfer_ownership(store, cache, "local", "editor") == 1
    assert seen(store, LOCAL) == [] and seen(store, EDITOR) == ["default"]
    (now,) = grants.scope_of(store, EDITOR).bases
    assert (now.id, now.owner) == (base.id, "editor")
    assert grants.shared_with(store, now) == ["user:editor"]
    assert [each.id for each in history.history(store, "editor", grants.scope_of(store, EDITOR))] == [run]
    assert not history.history(store, "local", grants.scope_of(store, LOCAL))
    assert [each.id for each in threads.listing(store, "editor")] == [thread.id]
    assert list(embedding_cache.recall(cache, "editor", "words", ["d"])) == ["d"]
    assert not embedding_cache.recall(cache, "local", "words", ["d"])


def test_a_base_that_changes_hands_takes_no_name_that_is_taken(store: Store, tmp_path: Path):
    for who in (LOCAL, EDITOR):
        grants.get_or_create_base(store, "default", who)
    members.transfer_ownership(store, open_cache(tmp_path / "cache.db"), "local", "editor")
    assert seen(store, EDITOR) == ["default", "default (local)"]
