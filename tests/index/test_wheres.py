from __future__ import annotations

from typing import Any

import pytest

from assay.core.events import SearchFilters
from assay.core.types import LeftOut
from assay.index.filters import matches
from assay.index.search_filter import choices, count_left_out, filter_fields, filter_for
from assay.store.documents import Traits


def a_document(**changes: Any) -> Traits:
    fields = {
        "id": "d1", "base": "b1", "uri": "/papers/a.pdf", "title": "On pumps", "authors": ("Ann Lee", "Zoë Müller"),
        "date": "2024-05-17", "kind": "pdf", "meta": {}, "tags": (),
    }  # fmt: skip
    return Traits(**fields | changes)


def keeps(where: SearchFilters, document: Traits) -> bool:
    return matches(filter_for(where, lambda: [document]), filter_fields(document))


@pytest.mark.parametrize(
    ("where", "changes", "kept"),
    [
        (SearchFilters(), {}, True),
        (SearchFilters(sources=("PAPERS",)), {}, True),
        (SearchFilters(sources=("pumps",)), {}, True),
        (SearchFilters(sources=("b.pdf", "a.pdf")), {}, True),
        (SearchFilters(sources=("b.pdf",)), {}, False),
        (SearchFilters(types=("html",)), {}, False),
        (SearchFilters(picked=("d1", "d7")), {}, True),
        (SearchFilters(picked=("d7",)), {}, False),
        (SearchFilters(meta={"folder": "papers"}), {}, True),
        (SearchFilters(meta={"folder": "paper"}), {}, False),
        (SearchFilters(meta={"folder": "hr/Policies"}), {"uri": "upload:HR/policies/2024/a.pdf"}, True),
        (SearchFilters(meta={"folder": "a.pdf"}), {"uri": "upload:hr/a.pdf"}, False),
        (SearchFilters(meta={"folder": "blue"}), {"meta": {"folder": "Blue"}}, True),
        (SearchFilters(since="2024-05-17"), {}, True),
        (SearchFilters(since="2024-05-18"), {}, False),
        (SearchFilters(since="2024-05-18"), {"date": "2024-05"}, True),
        (SearchFilters(since="2024-05-18"), {"date": "2024"}, True),
        (SearchFilters(since="2024-05-18"), {"date": "2023"}, False),
        (SearchFilters(since="2024-05-18"), {"date": None}, False),
        (SearchFilters(until="2024-05-17"), {}, True),
        (SearchFilters(until="2024-05-16"), {}, False),
        (SearchFilters(until="2024-05-16"), {"date": "2024-05"}, True),
        (SearchFilters(until="2024-05-16"), {"date": None}, False),
        (SearchFilters(until="2024-05-16", undated=True), {"date": None}, True),
        (SearchFilters(since="2025-01-01", undated=True), {}, False),
    ],
)
def test_every_limit_keeps_what_it_should(where: SearchFilters, changes: dict[str, Any], kept: bool):
    assert keeps(where, a_document(**changes)) is kept


@pytest.mark.parametrize(
    ("period", "since", "until", "kept"),
    [
        ("FY2018", "2018-06-01", "2018-06-30", True),
        ("FY2018", "2019-01-01", None, False),
        ("Q2 2023", None, "2023-03-31", False),
        ("Q2 2023", "2023-06-30", None, True),
        ("FY2023 (year ended 2023-06-30)", None, "2022-07-01", True),
        ("some time ago", "2018-01-01", None, False),
    ],
)
def test_a_period_counts_as_the_date_of_a_document_without_one(
    period: str, since: str | None, until: str | None, kept: bool
):
    where = SearchFilters(since=since, until=until)
    assert keeps(where, a_document(date=None, meta={"period": period})) is kept


def test_the_date_of_a_document_counts_and_not_its_period():
    assert not keeps(SearchFilters(until="2023-12-31"), a_document(meta={"period": "FY2023"}))


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("author", "lee", True),
        ("AUTHORS", "muller", True),
        ("author", "Ann Lee", True),
        ("author", "Ann Leeds", False),
        ("organisation", "harrow", True),
        ("organization", "Harrow  Tides plc", True),
        ("organisation", "Tides of Harrow", False),
        ("kind", "annual report", True),
        ("kind_of_document", "REPORT", True),
        ("kind", "minutes", False),
        ("period", "FY2023", True),
        ("period", "2023", True),
        ("period", "q2 2023", False),
        ("tag", "rot", True),
        ("tags", "ROT", True),
        ("tag", "ro", False),
        ("team", "red", True),
        ("Team", "RED", True),
        ("team", "re", False),
        ("colour", "red", False),
    ],
)
def test_metadata_is_matched_ignoring_case_and_names_by_a_part(name: str, value: str, kept: bool):
    meta = {
        "organisation": "Harrow Tides plc", "kind_of_document": "annual report", "team": "Red",
        "period": "FY2023 (year ended 2023-06-30)",
    }  # fmt: skip
    assert keeps(SearchFilters(meta={name: value}), a_document(meta=meta, tags=("Rot", "draft"))) is kept


def test_every_pair_of_metadata_has_to_fit():
    both = SearchFilters(meta={"author": "lee", "tag": "draft"})
    assert keeps(both, a_document(tags=("draft",))) and not keeps(both, a_document())


def test_without_dates_or_metadata_no_document_is_looked_up():
    assert filter_for(SearchFilters(types=("pdf",)), lambda: pytest.fail("looked up"))


def test_what_limits_leave_out_is_counted():
    shelf = [
        a_document(),
        a_document(id="d2", date="2020"),
        a_document(id="d3", date=None),
        a_document(id="d4", date=None, meta={"period": "FY2024"}),
        a_document(id="d5", date=None, kind="html"),
    ]
    since = SearchFilters(since="2024-01-01", types=("pdf",))
    assert count_left_out(since, lambda: shelf) == LeftOut(3, 1)
    assert count_left_out(SearchFilters(since="2024-01-01", undated=True), lambda: shelf) == LeftOut(1, 0)
    assert count_left_out(SearchFilters(bases=("papers",)), lambda: shelf) is None


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        (LeftOut(1, 0), "The filters left out 1 document."),
        (LeftOut(1200, 12), "The filters left out 1,200 documents, 12 of them undated."),
        (LeftOut(12, 12), "The filters left out 12 undated documents."),
    ],
)
def test_what_was_left_out_is_said(left_out: LeftOut, sentence: str):
    assert left_out.sentence == sentence


def test_documents_are_chosen_by_what_they_have_and_no_folder_of_the_machine_is_told():
    found = choices(
        [
            a_document(uri="/home/kim/papers/hr/2024/a.pdf", tags=("red", "blue")),
            a_document(uri="/home/kim/papers/hr/b.pdf", tags=("red",), date=None, meta={"organisation": "Harbour"}),
            a_document(uri="upload:log/c.pdf", date="2022", authors=()),
        ]
    )
    told = {name: {each.value: each.documents for each in values} for name, values in found.items()}
    assert told["folder"] == {"2024": 1, "log": 1}
    assert told["tag"] == {"blue": 1, "red": 2}
    assert list(told["year"].items()) == [("2024", 1), ("2022", 1)]
    assert told["organisation"] == {"Harbour": 1}
    assert told["author"]["Ann Lee"] == 2
