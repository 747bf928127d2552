"""A document is read like its base, or by a list of its own; and what of a run is hidden from whoever is not on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select

from assay.core.access import Base, Principal
from assay.core.errors import Missing, UserError
from assay.core.types import Document
from assay.store import documents
from assay.store.access import document_access, members, offers
from assay.store.access import grants as people
from assay.store.database import Store, open_cache, open_store
from assay.store.documents import Entry
from assay.store.runs import visibility
from assay.store.schema import grants, payloads

OWNER, READER, GUEST = Principal("owner"), Principal("reader"), Principal("guest", frozenset({"press"}))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "state.db", create=True)


@pytest.fixture
def base(store: Store) -> Base:
    made = people.create_base(store, "reports", OWNER)
    people.share(store, made, "user:reader", "owner")
    offers.answer(store, READER, made.id, True)
    return made


@pytest.fixture
def put(store: Store, base: Base) -> Callable[..., Entry]:
    def one(id: str, uri: str = "notes/a.txt", ready: bool = True) -> Entry:
        words = Document(id, base.id, uri, id, "A", f"words of {id}", kind="text")
        documents.put_pending(store, words, parser="1", size=1, warnings=())
        if ready:
            documents.mark_ready(store, base, {id: 1}, "recipe")
        return entry(store, base, id)

    return one


def entry(store: Store, base: Base, id: str) -> Entry:
    (found,) = [each for each in documents.all_of(store, base) if each.id == id]
    return found


def may(store: Store, who: Principal, id: str) -> bool:
    return documents.get(store, id, people.scope_of(store, who)) is not None


def noted(store: Store) -> list[tuple[str, bool, str]]:
    with store.read() as connection:
        bodies = connection.scalars(select(payloads.c.body).where(payloads.c.run == "workspace").order_by("seq"))
        return [(told["name"], told["may"], told["by"]) for told in map(json.loads, bodies)]


def test_one_person_is_kept_from_one_document_and_reads_the_others(store: Store, base: Base, put: Callable[..., Entry]):
    first, second = put("d1"), put("d2", "notes/b.txt")
    assert may(store, READER, "d1") and may(store, READER, "d2")
    document_access.set_access(store, base, first, "user:reader", False, "owner")
    assert not may(store, READER, "d1") and may(store, READER, "d2") and may(store, OWNER, "d1")
    assert document_access.readers(store, base, entry(store, base, "d1")) == ["user:owner"]
    assert document_access.has_own_list(entry(store, base, "d1")) and not document_access.has_own_list(second)
    assert noted(store)[-1] == ("user:reader", False, "owner")


def test_one_document_is_shown_to_somebody_who_reads_nothing_else_there(
    store: Store, base: Base, put: Callable[..., Entry]
):
    first, _ = put("d1"), put("d2", "notes/b.txt")
    document_access.set_access(store, base, first, "group:press", True, "owner")
    offers.answer(store, GUEST, base.id, True)
    assert may(store, GUEST, "d1") and not may(store, GUEST, "d2") and may(store, READER, "d1")
    assert [each.name for each in people.scope_of(store, GUEST).bases] == ["reports"]


def test_a_new_version_and_a_file_that_breaks_keep_the_list_of_the_old_one(
    store: Store, base: Base, put: Callable[..., Entry]
):
    document_access.set_access(store, base, put("d1"), "user:reader", False, "owner")
    put("d2")
    assert not may(store, READER, "d2") and not may(store, READER, "d1") and may(store, OWNER, "d2")
    documents.put_unreadable(store, base, "notes/a.txt", digest="x", size=1, status="unreadable", why="broken")
    assert {each.label for each in documents.all_of(store, base)} == {entry(store, base, "d1").label}
    document_access.reset(store, base, entry(store, base, "d2"), "owner")
    assert may(store, READER, "d1") and may(store, READER, "d2")


def test_a_pending_document_that_is_read_again_keeps_its_list(store: Store, base: Base, put: Callable[..., Entry]):
    document_access.set_access(store, base, put("d1", ready=False), "user:reader", False, "owner")
    put("d2")
    assert not may(store, READER, "d2")


def test_going_back_to_the_bases_list_leaves_nothing_of_the_other(store: Store, base: Base, put: Callable[..., Entry]):
    first = put("d1")
    document_access.set_access(store, base, first, "user:guest", True, "owner")
    offers.answer(store, GUEST, base.id, True)
    document_access.set_access(store, base, first, "user:reader", False, "owner")
    document_access.reset(store, base, first, "owner")
    assert may(store, READER, "d1") and not may(store, Principal("guest"), "d1")
    assert noted(store)[-2:] == [("user:guest", False, "owner"), ("user:reader", True, "owner")]
    with store.read() as connection:
        assert set(connection.scalars(select(grants.c.label))) == {base.id}


def test_who_owns_a_document_is_never_kept_from_it(store: Store, base: Base, put: Callable[..., Entry]):
    with pytest.raises(UserError, match="go on seeing it"):
        document_access.set_access(store, base, put("d1"), "user:owner", False, "owner")
    with pytest.raises(Missing, match="not shared with"):
        document_access.set_access(store, base, entry(store, base, "d1"), "user:nobody", False, "owner")
    with pytest.raises(UserError, match="Access is given to"):
        document_access.set_access(store, base, entry(store, base, "d1"), "reader", True, "owner")


def test_lists_go_along_when_a_person_leaves_or_hands_over(
    store: Store, base: Base, put: Callable[..., Entry], tmp_path: Path
):
    first = put("d1")
    members.add(store, "owner")
    document_access.set_access(store, base, first, "user:reader", False, "owner")
    _, former = members.remove_member(store, open_cache(tmp_path / "cache.db"), "owner")
    assert may(store, Principal(former), "d1"), "what one owns stays"
    members.transfer_ownership(store, open_cache(tmp_path / "cache.db"), former, "heir")
    assert may(store, Principal("heir"), "d1") and not may(store, OWNER, "d1") and not may(store, READER, "d1")


def test_the_index_is_told_until_it_has_the_label_that_the_store_has(
    store: Store, base: Base, put: Callable[..., Entry]
):
    first = put("d1")
    document_access.set_access(store, base, first, "user:reader", False, "owner")
    (due,) = document_access.outdated_labels(store, base).items()
    assert due == ("d1", entry(store, base, "d1").label)
    document_access.reset(store, base, first, "owner")
    document_access.mark_labels_written(store, [due])  # what was put into the index meanwhile is old already
    assert document_access.outdated_labels(store, base) == {"d1": base.id}
    document_access.mark_labels_written(store, [("d1", base.id)])
    assert document_access.outdated_labels(store, base) == {}


@pytest.mark.parametrize(
    ("closed", "narrowed", "spans"),
    [
        ([], [], []),
        ([3], [], [(3, None)]),
        ([3, 5], [], [(3, None)]),
        ([3], [(7, 3)], [(3, 7)]),
        ([3, 8], [(7, 3)], [(3, 7), (8, None)]),
        ([2], [(7, 3)], [(2, None)]),  # it was narrowed for something else: what follows still knew of this
        ([3, 5], [(7, 5), (9, 3)], [(3, 9)]),
        ([0], [(4, 0)], [(0, 4)]),
    ],
)
def test_what_is_hidden_begins_with_a_mention_and_ends_where_the_run_went_on_without_it(
    closed: list[int], narrowed: list[tuple[int, int]], spans: list[tuple[int, int | None]]
):
    assert visibility.spans_from(closed, narrowed) == spans
