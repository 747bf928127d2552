from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, text

from assay.core.access import Principal
from assay.core.errors import Missing, UserError
from assay.store.access import grants, members, tokens
from assay.store.database import Store, open_cache, open_store

PASSWORD = "a lamp on the pier"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "state.db", create=True)
    yield opened
    opened.close()


@pytest.fixture
def reader(store: Store) -> members.Member:
    return members.add(store, "reader", ["desk", "night", "desk"], password=PASSWORD)


def at(store: Store, moment: str) -> Store:
    return replace(store, now=lambda: moment)


# --- people ---------------------------------------------------------------------------------------------------------


def test_a_member_has_the_groups_they_were_given_once_each(store: Store, reader: members.Member):
    assert reader.groups == ("desk", "night")
    assert members.named(store, "reader") == reader
    assert members.listing(store) == [reader]
    assert reader.principal == Principal("reader", frozenset({"desk", "night"}))


def test_no_two_members_have_one_name(store: Store, reader: members.Member):
    with pytest.raises(UserError, match="already"):
        members.add(store, "reader")


@pytest.mark.parametrize(
    "name", ["", " reader", "reader ", "user:reader", "re\nader", "re\x1b[31mader", "r" * 101, "\ud800", "\u202e"]
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(store: Store, name: str):
    with pytest.raises(UserError, match="cannot be the name"):
        members.add(store, name)


@pytest.mark.parametrize("group", ["", "group:desk", "desk, night", " desk"])
def test_a_group_that_could_be_taken_for_several_is_refused(store: Store, reader: members.Member, group: str):
    with pytest.raises(UserError, match="cannot be the name of a group"):
        members.set_groups(store, "reader", [group])
    assert members.named(store, "reader") == reader


def test_whoever_is_not_there_cannot_be_changed(store: Store, tmp_path: Path):
    for change in (
        lambda: members.set_groups(store, "nobody", []),
        lambda: members.set_admin(store, "nobody", True),
        lambda: members.set_password(store, "nobody", PASSWORD),
        lambda: members.remove_member(store, open_cache(tmp_path / "cache.db"), "nobody"),
        lambda: tokens.new_key(store, "nobody"),
    ):
        with pytest.raises(Missing, match="no user called 'nobody'"):
            change()


# --- passwords ------------------------------------------------------------------------------------------------------


def test_a_password_opens_for_who_has_it_alone(store: Store, reader: members.Member):
    assert members.check_password(store, "reader", PASSWORD) == reader
    assert members.check_password(store, "reader", PASSWORD + " ") is None
    assert members.check_password(store, "nobody", PASSWORD) is None


def test_a_member_without_a_password_is_let_in_with_none(store: Store):
    members.add(store, "robot")
    assert members.check_password(store, "robot", "") is None


def test_a_short_password_is_refused_and_an_empty_one_is_not_taken_for_none(store: Store):
    for short in ("", "123456789"):
        with pytest.raises(UserError, match="at least 10"):
            members.add(store, "reader", password=short)
    assert members.listing(store) == []


def test_a_new_password_ends_what_was_begun_with_the_old_one(store: Store, reader: members.Member):
    token, _ = tokens.begin_session(store, "reader", 60)
    members.set_password(store, "reader", "another lamp altogether")
    assert tokens.find_session(store, token) is None
    assert members.check_password(store, "reader", PASSWORD) is None
    assert members.check_password(store, "reader", "another lamp altogether") == reader


def test_what_is_on_disk_tells_neither_password_nor_key_nor_session(store: Store, reader: members.Member):
    members.add(store, "editor", password=PASSWORD)
    key, (token, _) = tokens.new_key(store, "reader"), tokens.begin_session(store, "reader", 60)
    with store.read() as connection:
        held = [
            str(cell)
            for table in ("members", "keys", "sessions")
            for row in connection.execute(text(f"SELECT * FROM {table}"))
            for cell in row
        ]
        hashed = set(connection.scalars(text("SELECT password FROM members")))
    for secret in (PASSWORD, key, key.removeprefix("assay_"), token):
        assert not [cell for cell in held if secret in cell]
    assert len(hashed) == 2, "the same password of two people looks the same"


def test_a_name_that_nobody_has_takes_as_long_as_one_that_somebody_has(store: Store, reader: members.Member):
    def seconds(name: str) -> float:
        began = time.thread_time()
        members.check_password(store, name, "wrong password")
        return time.thread_time() - began

    for name in ("reader", "nobody"):
        seconds(name)
    known, unknown = (min(seconds(name) for _ in range(3)) for name in ("reader", "nobody"))
    assert unknown > known / 3


# --- keys -----------------------------------------------------------------------------------------------------------


def test_a_key_is_its_owners_until_it_is_taken_back(store: Store, reader: members.Member):
    key, other = tokens.new_key(store, "reader", "laptop"), tokens.new_key(store, "reader")
    assert key.startswith("assay_") and len(key) >= 48 and key != other
    assert tokens.member_with_key(store, key) == reader
    (gone,) = [each for each in tokens.listing(store, "reader") if each.label == "laptop"]
    assert tokens.revoke(store, gone.id).who == "reader"
    assert tokens.member_with_key(store, key) is None
    assert tokens.member_with_key(store, other) == reader
    with pytest.raises(Missing, match="no API key"):
        tokens.revoke(store, gone.id)


@pytest.mark.parametrize("key", ["", "assay_", "assay_" + "A" * 43, "\ud800", "%", "' OR 1=1 --"])
def test_what_is_no_key_is_nobodys(store: Store, reader: members.Member, key: str):
    tokens.new_key(store, "reader")
    assert tokens.member_with_key(store, key) is None


def test_a_digest_read_from_the_store_is_no_key(store: Store, reader: members.Member):
    from assay.store.schema import keys

    tokens.new_key(store, "reader")
    with store.read() as connection:
        digest = connection.scalar(select(keys.c.digest))
    assert digest and tokens.member_with_key(store, digest) is None


def test_when_a_key_was_used_is_written_down_once_a_minute_at_most(store: Store, reader: members.Member):
    key = tokens.new_key(store, "reader")
    seen = []
    for moment in ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:59.000Z", "2026-01-01T00:01:00.000Z"):
        tokens.member_with_key(at(store, moment), key)
        seen.append(tokens.listing(store)[0].used)
    assert seen == ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z", "2026-01-01T00:01:00.000Z"]


def test_a_keys_owner_is_told_as_they_are_now(store: Store, reader: members.Member):
    key = tokens.new_key(store, "reader")
    members.set_groups(store, "reader", ["day"])
    found = tokens.member_with_key(store, key)
    assert found is not None and found.groups == ("day",)


# --- sessions -------------------------------------------------------------------------------------------------------


def test_a_session_lasts_until_it_ends_or_runs_out(store: Store, reader: members.Member):
    early = at(store, "2026-01-01T00:00:00.000Z")
    token, csrf = tokens.begin_session(early, "reader", 3600)
    found = tokens.find_session(at(store, "2026-01-01T00:59:59.999Z"), token)
    assert found is not None and (found.member, found.csrf) == (reader, csrf)
    assert tokens.find_session(at(store, "2026-01-01T01:00:00.000Z"), token) is None
    tokens.end_session(store, token)
    assert tokens.find_session(early, token) is None


def test_sessions_that_have_run_out_are_swept_away(store: Store, reader: members.Member):
    tokens.begin_session(at(store, "2026-01-01T00:00:00.000Z"), "reader", 3600)
    tokens.begin_session(at(store, "2026-01-02T00:00:00.000Z"), "reader", 3600)
    with store.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM sessions")) == 1


def test_every_session_of_a_member_ends_with_a_new_password_and_nobody_elses(store: Store, reader: members.Member):
    members.add(store, "editor")
    own, other = tokens.begin_session(store, "reader", 60)[0], tokens.begin_session(store, "editor", 60)[0]
    members.set_password(store, "reader", "another long password")
    assert tokens.find_session(store, own) is None and tokens.find_session(store, other) is not None


# --- leaving --------------------------------------------------------------------------------------------------------


def test_a_member_who_is_removed_has_no_key_no_session_and_no_share_of_others_any_more(
    store: Store, reader: members.Member, tmp_path: Path
):
    key, (token, _) = tokens.new_key(store, "reader"), tokens.begin_session(store, "reader", 60)
    own = grants.get_or_create_base(store, "own", reader.principal)
    shared = grants.get_or_create_base(store, "shared", Principal("editor"))
    grants.share(store, shared, "user:reader")
    assert len(grants.scope_of(store, Principal("reader")).bases) == 2
    _, former = members.remove_member(store, open_cache(tmp_path / "cache.db"), "reader")
    assert tokens.member_with_key(store, key) is None and tokens.find_session(store, token) is None
    assert tokens.listing(store) == []
    assert grants.scope_of(store, Principal("reader")).bases == ()
    assert [base.id for base in grants.scope_of(store, Principal(former)).bases] == [own.id]
