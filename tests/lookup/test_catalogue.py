"""Questions about the collection: which are recognised, which are left to the search, and the documents they select."""

from __future__ import annotations

import pytest

from assay.agent.toolbox.collection import CatalogueQuestion, Limit, Wanted, mentions, parse, select
from assay.store.documents import Traits

SHELF = [
    Traits("1", "b", "tides.pdf", "Tides of the northern sound", ("Ada Moss",), "2021-03-02", "pdf", {}, ()),
    Traits("2", "b", "budget.xlsx", "Budget", ("Finance Department",), "2022-11-30", "xlsx", {}, ()),
    Traits("3", "b", "ferry-times.eml", "New ferry times", ("Bo Lund",), "2022-05-04", "email", {}, ()),
    Traits("4", "b", "tide-study-2.pdf", "Tides of the southern sound", ("Ada Moss", "Cy Hale"), None, "pdf", {}, ()),
]


def chosen(question: str, mentioning: tuple[str, ...] = ()) -> list[str]:
    asked = parse(question)
    assert asked is not None, question
    return [each.id for each in select(asked, SHELF, mentioning)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many documents are there?", ["1", "2", "3", "4"]),
        ("How many PDF files do you have?", ["1", "4"]),
        ("How many e-mails are in the collection?", ["3"]),
        ("How many Excel files are there?", ["2"]),
        ("List all xlsx documents", ["2"]),
        ("How many Word files are there?", []),
        ("Who wrote the PDF file on the tides of the southern sound?", ["4"]),
        ("Which documents were written by Ada Moss?", ["1", "4"]),
        ("Which documents date from 2022?", ["2", "3"]),
        ("List all e-mails", ["3"]),
        ("What is the newest document?", ["2"]),
        ("Which is the oldest document?", ["1"]),
        ("Who wrote the paper on the tides of the northern sound?", ["1"]),
        ("When was the e-mail about ferry times sent?", ["3"]),
        ("What is the date of the budget?", ["2"]),
        ("What is the title of the tide study?", ["4"]),
    ],
)
def test_documents_are_selected_from_the_catalogue(question: str, expected: list[str]):
    assert chosen(question) == expected


def test_what_a_document_mentions_is_decided_by_its_text():
    assert parse("Which documents mention Skerrow Light?") == CatalogueQuestion(
        Wanted.documents, Limit.mention, "Skerrow Light"
    )
    assert chosen("Which documents mention Skerrow Light?", ("2", "4")) == ["2", "4"]
    assert mentions("The keeper of Skerrow Light retired.", "Skerrow light")
    assert not mentions("The light at Skerrow", "Skerrow Light")


@pytest.mark.parametrize(
    "question",
    [
        "When was Skerrow Light built?",
        "How many documents did the inspectorate request?",
        "Which reports are due every month?",
        "Which sources of water does the town use?",
        "Who sent the first email to the harbour?",
        "What is the most recent reading at Marl Quay?",
        "How long are documents kept?",
        "Who wrote it?",
        "Which papers mention tides and deny the theory?",
    ],
)
def test_a_question_about_content_is_not_answered_from_the_catalogue(question: str):
    asked = parse(question)
    assert asked is None or not select(asked, SHELF)


def test_two_documents_that_fit_as_well_name_none():
    assert chosen("Who wrote the paper on the tides of the sound?") == []
