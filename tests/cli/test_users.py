"""`assay user`, `assay key` and `assay base share`, as they are typed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from terminal import Typed

from assay.core.access import LOCAL, Principal
from assay.store.access import grants, identities, members, tokens
from assay.store.database import Store
from assay.workspace.facade import Workspace, open_workspace

PASSWORD = "a lamp on the pier"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "COST", 2**10)  # time is not what is tested


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_workspace(tmp_path / "workspace", create=True) as opened:
        yield opened.store


def piped(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(words))


def test_the_first_administrator_comes_from_the_command_line(
    typed: Typed, store: Store, monkeypatch: pytest.MonkeyPatch
):
    piped(monkeypatch, f"{PASSWORD}\n")
    assert typed("user", "add", "editor", "--admin", "-g", "desk", "--password-stdin").code == 0
    member = members.check_password(store, "editor", PASSWORD)
    assert member is not None and member.admin and member.groups == ("desk",)
    done = typed("user", "list")
    assert done.out == "editor: administrator; in desk.\n"


def test_a_password_is_asked_for_twice_and_never_shown(typed: Typed, store: Store, monkeypatch: pytest.MonkeyPatch):
    typed_in = iter([PASSWORD, "a slip of the hand", PASSWORD, PASSWORD])
    monkeypatch.setattr("getpass.getpass", lambda *_, **__: next(typed_in))
    done = typed("user", "add", "reader", keys="")
    assert done.code == 0 and PASSWORD not in done.out + done.err
    assert members.check_password(store, "reader", PASSWORD) is not None
    assert not list(typed_in)


def test_where_nobody_can_be_asked_no_password_is_made_up(typed: Typed, store: Store, monkeypatch: pytest.MonkeyPatch):
    piped(monkeypatch, "")
    done = typed("user", "add", "reader")
    assert done.code == 2 and "--password-stdin" in done.err
    for nothing in ("", "\n", "short\n"):
        piped(monkeypatch, nothing)
        done = typed("user", "add", "reader", "--password-stdin")
        assert done.code == 2 and "at least 10" in done.err
    assert members.listing(store) == []


def test_a_name_that_is_taken_is_said_before_anybody_types_a_password(typed: Typed, store: Store):
    members.add(store, "reader")
    done = typed("user", "add", "reader", keys="")
    assert done.code == 2 and "already" in done.err


def test_groups_and_rights_change(typed: Typed, store: Store):
    members.add(store, "reader", ["desk"])
    assert typed("user", "change", "reader", "-g", "night", "--leave", "desk", "--admin").code == 0
    (entry,) = json.loads(typed("user", "list", "--json").out)
    assert (entry["groups"], entry["admin"], entry["keys"]) == (["night"], True, 0)
    typed("user", "change", "reader", "--no-admin")
    member = members.named(store, "reader")
    assert member is not None and not member.admin and member.groups == ("night",)


def test_a_new_password_takes_the_place_of_the_old_one(typed: Typed, store: Store, monkeypatch: pytest.MonkeyPatch):
    members.add(store, "reader", password="the first of two")
    piped(monkeypatch, PASSWORD)
    assert typed("user", "change", "reader", "--password-stdin").code == 0
    assert members.check_password(store, "reader", "the first of two") is None
    assert members.check_password(store, "reader", PASSWORD) is not None


def test_a_key_is_printed_once_and_alone(typed: Typed, store: Store):
    members.add(store, "reader")
    done = typed("key", "add", "reader", "-l", "note\x1b[31mbook")
    key = done.out.removesuffix("\n")
    owner = tokens.member_with_key(store, key)
    assert owner is not None and owner.name == "reader"
    listed = typed("key", "list")
    assert "reader, note" in listed.out and "\x1b" not in listed.out and key not in listed.out
    (entry,) = json.loads(typed("key", "list", "--json").out)
    assert set(entry) == {"id", "who", "label", "created", "used"} and entry["used"]
    assert typed("key", "remove", key).code == 2, "a key is named by its id"
    assert typed("key", "remove", entry["id"]).code == 0
    assert tokens.member_with_key(store, key) is None


def test_who_becomes_one_of_several_takes_along_what_they_had(typed: Typed, noted: Workspace):
    done = typed("user", "add", "editor", "--no-password", "--adopt")
    assert done.code == 0 and "1 knowledge base, " in done.err
    assert noted.scope().bases == ()
    (base,) = noted.for_principal(Principal("editor")).scope().bases
    assert base.name == "default" and len(noted.for_principal(Principal("editor")).documents.listing()) == 3
    assert typed("base", "share", "default", "--owner", "editor", "--with", "user:local").code == 0
    assert [each.id for each in noted.scope().bases] == [base.id]


def test_who_is_removed_can_leave_things_to_somebody(typed: Typed, store: Store):
    for name in ("editor", "reader"):
        members.add(store, name)
        grants.get_or_create_base(store, "notes", Principal(name))
    for heir in ("nobody", "reader"):
        assert typed("user", "remove", "reader", "--give-to", heir, "--yes").code == 2
    assert members.named(store, "reader") is not None
    done = typed("user", "remove", "reader", "--give-to", "editor", "--yes")
    assert done.code == 0 and "editor has now: 1 knowledge base" in done.err
    assert [base.name for base in grants.scope_of(store, Principal("editor")).bases] == ["notes", "notes (reader)"]
    done = typed("user", "remove", "editor", "--yes")
    assert "Left behind: 2 knowledge bases, as removed:editor:" in done.err
    (former,) = members.former_names(store, "editor")
    assert typed("user", "remove", former, "--give-to", "local").code == 0
    assert [base.name for base in grants.scope_of(store, LOCAL).bases] == ["notes", "notes (reader)"]


def test_a_sign_in_with_a_provider_is_linked_and_unlinked(typed: Typed, store: Store, monkeypatch: pytest.MonkeyPatch):
    members.add(store, "reader")
    assert "set `oidc_issuer`" in typed("user", "link", "reader", "s-1").err
    monkeypatch.setenv("ASSAY_OIDC_ISSUER", "https://id.example.org")
    assert typed("user", "link", "reader", "s-1").err == "https://id.example.org signs in s-1 as reader.\n"
    known = identities.member_with(store, "https://id.example.org", "s-1")
    assert known is not None and known.name == "reader"
    assert typed("user", "link", "nobody", "s-2").code == 2
    assert typed("user", "unlink", "reader").err == "Unlinked 1 sign-in of reader.\n"
    assert identities.listing(store) == []


def test_a_base_is_shared_and_shared_no_longer(typed: Typed, store: Store):
    grants.get_or_create_base(store, "notes", LOCAL)
    members.add(store, "reader", ["desk"])
    done = typed("base", "share", "notes", "--with", "user:reader", "--with", "group:dsek")
    assert done.out.splitlines() == ["user:local (owner)", "group:dsek", "user:reader"]
    assert "no group called dsek" in done.err, "a slip is remarked on"
    assert typed("base", "share", "notes", "--with", "group:dsek", "--stop").code == 0
    told = json.loads(typed("base", "share", "notes", "--json").out)
    assert told == {"base": "notes", "owner": "local", "read_by": ["user:local", "user:reader"]}


def test_what_cannot_be_shared_is_said_in_a_line(typed: Typed, store: Store):
    grants.get_or_create_base(store, "notes", LOCAL)
    theirs = grants.get_or_create_base(store, "theirs", Principal("editor"))
    grants.share(store, theirs, "user:local")
    for words, said in (
        (("notes", "--with", "reader"), "user:NAME or group:NAME"),
        (("notes", "--stop"), "Say with whom"),
        (("notes", "--with", "user:local", "--stop"), "go on seeing it"),
        (("theirs", "--with", "group:desk"), "not yours"),
        (("none", "--with", "group:desk"), "no knowledge base called"),
    ):
        done = typed("base", "share", *words)
        assert done.code == 2 and said in done.err, words


def test_a_groups_base_is_shared_by_naming_the_group(typed: Typed, store: Store):
    grants.create_base(store, "handbook", Principal("reader", frozenset({"desk"})), group="desk")
    done = typed("base", "share", "handbook", "--owner", "group:desk", "--with", "user:local")
    assert done.out.splitlines() == ["group:desk (owner)", "user:local"]
