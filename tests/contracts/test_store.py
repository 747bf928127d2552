"""What every database under the store has to do. Another one is added to `STORES`, with the same tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_server import new_database

from assay.core.access import Principal, Scope
from assay.core.codec import START
from assay.core.errors import Missing, StoreError, UserError
from assay.core.events import Answered, Asked, AwaitingReview, Decision, Reviewed, Stopped, StopReason
from assay.core.types import Answer, Document, Outcome, Usage
from assay.store import document_list, documents
from assay.store.access import grants
from assay.store.database import Store, open_store
from assay.store.runs import budgets, records, reviews
from assay.store.runs.budgets import CeilingReached, Ceilings, SpendingReservation

STORES: dict[str, Callable[[Path], Store]] = {
    "file": lambda folder: open_store(folder / "state.db", create=True),
    "postgres": lambda _: open_store(new_database(), create=True),
}
ASKED = Asked("Why?", "ann", "2026-01-01")
ANSWER = Answer("Why?", (), Outcome.abstained)
NOWHERE = Scope("ann", (), frozenset())


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.long)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


def begin(store: Store, *, gated: bool = False) -> str:
    run = records.begin(store, "ann", gated=gated)
    records.append(store, run, 0, ASKED)
    return run


def test_each_record_covers_the_one_before_it(store: Store):
    run = begin(store)
    records.append(store, run, 1, Stopped(StopReason.sufficient))
    first, second = records.chain(store, run, "ann")
    assert (first.prev, second.prev) == (START, first.hash) and second.n == first.n + 1
    assert list(records.faults(store, run)) == []
    assert records.events_of(store, run, "ann", lambda *_: ("", ""), NOWHERE)[0] == ASKED


def test_a_place_that_is_taken_is_refused_and_so_is_what_follows_an_answer(store: Store):
    run = begin(store)
    with pytest.raises(StoreError):
        records.append(store, run, 0, ASKED)
    records.append(store, run, 1, Answered(ANSWER))
    with pytest.raises(StoreError):
        records.append(store, run, 2, Stopped(StopReason.sufficient))


def test_a_run_is_there_only_for_whoever_asked(store: Store):
    with pytest.raises(Missing):
        records.chain(store, begin(store), "ben")


def test_documents_are_listed_by_words_of_their_title_location_and_authors(store: Store):
    ann = Principal("ann")
    base = grants.get_or_create_base(store, "default", ann)
    about = {"tower.txt": ("The tower", "Märta Öberg"), "lamp.txt": ("A lamp", "Ada Finch")}
    for uri, (title, author) in about.items():
        document = Document(f"d{uri}", base.id, uri, uri, title, "Words.", authors=(author,))
        documents.put_pending(store, document, parser="1", size=6, warnings=())
    scope = grants.scope_of(store, ann)
    for words in ("Tower", "tower.txt", "märta öberg", "Öberg the"):
        assert [each.uri for each in document_list.page(store, scope, words=words).entries] == ["tower.txt"], words
    assert not document_list.page(store, scope, words="tower finch").entries


def test_what_is_reserved_counts_until_it_is_settled_or_released(store: Store):
    def reserve() -> SpendingReservation | CeilingReached:
        return budgets.reserve(store, "ann", "r1", "weigh", "m", 100, 0.0, Ceilings(run_tokens=200), "2026-01-01", 0.0)

    first, second = reserve(), reserve()
    assert (
        isinstance(first, SpendingReservation)
        and isinstance(second, SpendingReservation)
        and isinstance(reserve(), CeilingReached)
    )
    budgets.settle(store, first.id, Usage(1, 10, 5))
    budgets.release(store, second.id)
    assert budgets.spent_by_run(store, "r1").tokens_in == 10
    assert (
        isinstance(reserve(), SpendingReservation) and budgets.spent_by_run(store, "r1").tokens_in == 110
    )  # what is reserved counts


def test_an_answer_that_waits_is_delivered_only_with_an_approval_of_exactly_that(store: Store):
    run = begin(store, gated=True)
    with pytest.raises(StoreError):
        records.append(store, run, 1, Answered(ANSWER))
    records.append(store, run, 1, AwaitingReview(ANSWER, "s1", ("it matters",)))
    with pytest.raises(UserError):
        records.append(store, run, 2, Reviewed(Decision.approve, "another", "ben"))
    records.append(store, run, 2, Reviewed(Decision.approve, "s1", "ben"))
    assert reviews.is_approved(store, run, "s1")
    records.append(store, run, 3, Answered(ANSWER, "s1"))
    assert not reviews.may_need_review(store, run, by_rule=True)


def test_a_transaction_that_fails_leaves_nothing_behind(store: Store):
    run = begin(store)

    def refuse(_: object) -> None:
        raise UserError("no")

    with pytest.raises(UserError):
        records.append(store, run, 1, Stopped(StopReason.sufficient), check=refuse)
    assert len(records.chain(store, run, "ann")) == 1
