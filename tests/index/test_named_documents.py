"""Documents that a question names: which, how strongly, and what that does to a search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assay.core.identity import ORGANISATION, PERIOD
from assay.core.types import Hit, Passage
from assay.index.fusion import Ranking, capped, fuse, spread
from assay.index.named_documents import (
    NamedDocument,
    NameTable,
    name_table,
    named_document,
    weigh_named,
    words_of_names,
)
from assay.index.retrieve import _shelf, query_sentences, with_first
from assay.ingest.sources import find_sources
from assay.workspace.facade import open_workspace

FIRMS = {"ADVMICRO": "Advanced Micro Devices, Inc.", "KRAFTHEINZ": "The Kraft Heinz Company", "NIKE": "NIKE, Inc.",
         "JPMORGAN": "JPMorgan Chase & Co.", "PROCTER": "Procter & Gamble Company", "BOEING": "THE BOEING COMPANY"}  # fmt: skip


def report(stem: str, firm: str, year: int) -> NamedDocument:
    meta = {ORGANISATION: firm, PERIOD: f"FY{year} (year ended {year}-12-31)"}
    return named_document(f"{stem}{year}", f"/s/{stem}_{year}_10K.pdf", meta)


def shelf() -> NameTable:
    return name_table(report(stem, firm, year) for stem, firm in FIRMS.items() for year in (2020, 2021, 2022))


def first(question: str, table: NameTable | None = None) -> str:
    weights = weigh_named(question, table or shelf()).weights
    best = max(weights.values(), default=0.0)
    found = sorted(id for id, weight in weights.items() if weight == best)
    return " ".join(found)


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("What was Nike's revenue in FY2021?", "NIKE2021"),
        ("what was nike's revenue in 2021?", "NIKE2021"),
        ("How did Kraft Heinz's inventory change from FY2020 to FY2021?", "KRAFTHEINZ2021"),
        ("AMD's gross margin for FY22", "ADVMICRO2022"),
        ("What did JPM pay in dividends in fiscal 2020?", "JPMORGAN2020"),
        ("P&G net sales 2022", "PROCTER2022"),
        ("Boeing backlog, 2021", "BOEING2021"),
    ],
)
def test_a_company_and_a_year_name_one_document(question: str, document: str):
    assert first(question) == document
    assert document in weigh_named(question, shelf()).named


WATER = [report("WATER", "Sarrow Valley Water", year) for year in (2020, 2021)]


def test_one_word_of_a_name_that_other_documents_have_names_nobody():
    table = name_table([*shelf().documents, *WATER])
    question = "Which households were told to boil water in 2021?"
    assert words_of_names(question, table) == {"water": {"WATER2020", "WATER2021"}}
    assert "WATER2021" in weigh_named(question, table).named
    assert not weigh_named(question, table, {"water"}).named
    assert "BOEING2021" in weigh_named("What did Boeing say about water in 2021?", table, {"water"}).named


@pytest.mark.parametrize(
    "question", ["What does Sarrow Valley Water supply?", "sarrow valley water supply", "SVW supply"]
)
def test_a_name_in_full_or_its_initials_count_whatever_its_words_are(question: str):
    table = name_table([*shelf().documents, *WATER])
    assert not words_of_names(question, table)
    assert "WATER2021" in weigh_named(question, table, {"water", "valley", "sarrow"}).named


def test_a_company_without_a_year_names_all_its_documents_alike():
    assert first("Is Boeing's business cyclical?") == "BOEING2020 BOEING2021 BOEING2022"


def test_the_report_of_the_next_year_is_second_choice():
    weights = weigh_named("Nike revenue in FY2019", shelf()).weights
    assert weights["NIKE2020"] > weights["NIKE2021"] == weights["NIKE2022"]


def test_a_month_selects_among_the_minutes_of_a_body():
    meta = [{PERIOD: f"2024-{month:02}"} for month in (3, 6, 9)]
    minutes = [named_document(each[PERIOD], f"minutes-harbour-{each[PERIOD]}.pdf", each) for each in meta]
    others = [named_document(f"o{n}", f"orchard-{n}.pdf", {}) for n in range(9)]
    assert first("What did the Harbour committee decide in June 2024?", name_table([*minutes, *others])) == "2024-06"


def test_an_organisation_is_named_even_if_half_the_documents_are_its_own():
    table = name_table([report("NIKE", "NIKE, Inc.", year) for year in (2019, 2020, 2021, 2022)] +
                       [report(stem, FIRMS[stem], 2020) for stem in ("BOEING", "PROCTER", "JPMORGAN")])  # fmt: skip
    assert first("Nike revenue in 2021", table) == "NIKE2021"
    assert "NIKE2021" in weigh_named("Nike revenue in 2021", table).named
    assert not weigh_named("What is in the 10K?", table).named


def test_words_that_most_documents_share_name_none():
    assert not weigh_named("What does the 10K say about dividends?", shelf()).named
    assert not weigh_named("What is the tallest mountain?", shelf()).weights


def test_a_common_word_in_one_file_name_is_a_weak_hint():
    files = ["agenda.pdf", "Nike_2020.pdf", "minutes.pdf", "budget.pdf", "plan.pdf"]
    table = name_table(named_document(name, name, {}) for name in files)
    assert not weigh_named("What was the key agenda of Nike?", table).named or first(
        "What was the key agenda of Nike?", table
    ).startswith("Nike")


def files(*names: str) -> NameTable:
    return name_table(named_document(name, name, {}) for name in (*names, "agenda.pdf", "budget.pdf", "plan.pdf"))


def test_a_file_name_weighs_less_than_an_organisation():
    by_organisation = weigh_named("What does Nike report?", shelf()).weights["NIKE2021"]
    table = name_table([*shelf().documents, named_document("note", "harbour-note.txt", {})])
    by_file = weigh_named("What was done at Harbour?", table).weights["note"]
    assert 0 < by_file < by_organisation


def test_one_ordinary_word_names_no_file_and_two_do():
    table = files("tower.txt", "gateway-release-notes.txt")
    assert not weigh_named("How tall is the tower at Carrow Point?", table).weights
    assert not weigh_named("tower height metres", table).weights
    question = "Which gateway release sends alarms to Pellam first?"
    assert first(question, table) == "gateway-release-notes.txt"


def test_a_kind_of_file_is_no_name():
    table = files("email-1.eml", "pdf-and-email-messages.txt")
    for question in ("Who sent the first email?", "Email messages of Ann Lee", "Which PDF files came by E-mail?"):
        assert not weigh_named(question, table).weights


def test_a_year_alone_weighs_less_than_with_a_name():
    alone = max(weigh_named("What was decided in 2021?", shelf()).weights.values())
    assert 0 < alone < max(weigh_named("What did Boeing decide in 2021?", shelf()).weights.values())
    assert not weigh_named("What was decided in 2021?", shelf()).named


def hit(id: str, document: str, cosine: float, page: int = 1) -> Hit:
    vector = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
    return Hit(Passage(id, document, "", 0, 0, page=page), vector, {"dense": cosine})


def test_a_prior_moves_a_document_up_and_hides_no_other():
    hits = [hit("a", "other", 0.6), hit("b", "named", 0.5)]
    query = np.array([1, 0], np.float32)
    assert [each.passage.id for each in fuse({"dense": hits}, query, Ranking(feedback=0))] == ["a", "b"]
    weighted = fuse({"dense": hits}, query, Ranking(feedback=0), {"named": 3})
    assert [each.passage.id for each in weighted] == ["b", "a"]


def test_what_comes_first_leaves_the_plain_hits_within_the_first_ten():
    named, plain = [hit(f"n{at}", "named", 0.5) for at in range(20)], [hit(f"p{at}", "other", 0.9) for at in range(5)]
    first, mixed = [hit("table", "named", 0.1)], [*named[:2], plain[0], *named[2:], *plain[1:]]
    found = [each.passage.id for each in with_first(first, mixed, plain)]
    assert found[:10] == ["table", "n0", "n1", "p0", "n2", "n3", "p1", "p2", "p3", "p4"]
    assert len(found) == len(set(found)) == 26


def test_hits_that_are_among_the_first_anyway_keep_their_places():
    hits = [hit(str(at), "x", 0.9 - at / 100) for at in range(12)]
    assert [each.passage.id for each in with_first([], hits, hits[3:8])] == [str(at) for at in range(12)]


def test_the_nearest_sentence_of_a_query_counts():
    hits = [hit("a", "x", 0.8), hit("b", "y", 0.7)]
    query, sentence = np.array([1, 0], np.float32), np.array([0, 1], np.float32)
    assert fuse({"dense": hits}, query, Ranking(feedback=0), {}, [sentence])[0].passage.id == "b"


def test_the_cap_yields_for_a_named_document_and_its_pages_take_turns():
    hits = [hit(str(n), "named", 0.9 - n / 10, page=1 + (n > 2)) for n in range(4)]
    assert len(capped(hits, 3)) == 3
    assert len(capped(hits, 3, {"named"})) == 4
    assert [each.passage.id for each in spread(hits, {"named"})] == ["0", "3", "1", "2"]
    assert spread(hits, ()) == hits


def test_only_a_query_of_several_sentences_is_searched_by_sentence():
    assert query_sentences("How much did the crane lift?") == []
    parts = query_sentences("You are a careful analyst. Answer this question: how much did the crane lift? Use tonnes.")
    assert "how much did the crane lift?" in parts


@pytest.mark.long
async def test_names_are_looked_up_again_when_documents_change(tmp_path: Path):
    with open_workspace(tmp_path / "w", create=True) as opened:
        for number, name in enumerate(("harbour", "orchard", "quarry", "harbour_2")):
            (tmp_path / f"{name}.txt").write_text(f"Text number {number} about fees.", encoding="utf-8")
        files = find_sources([tmp_path / f"{name}.txt" for name in ("harbour", "orchard", "quarry")])
        await opened.documents.add_sources(files, "b")
        scope = opened.scope(["b"])
        assert len(_shelf(await opened.context.search_context(scope), scope).names.documents) == 3
        await opened.documents.add_sources(find_sources([tmp_path / "harbour_2.txt"]), "b")
        assert len(_shelf(await opened.context.search_context(scope), scope).names.documents) == 4
        first = await opened.search("What does Harbour say about fees?")
        assert Path(str(first[0].fields["source"])).stem.startswith("harbour")


@pytest.mark.long
async def test_a_word_of_the_owners_name_does_not_hide_the_passage_that_answers(tmp_path: Path, corpus: Path):
    """The samples are of Sarrow Valley Water, and speak of water on every page."""
    with open_workspace(tmp_path / "w", create=True, embedder="gte-small") as opened:
        names = (
            "monthly-report-2025-04.md",
            "incident-report-pellam.pdf",
            "alarm-handling-procedure.docx",
            "reservoirs.html",
        )
        others = ("board-minutes-2025-06-17.txt", "brown-water-lock-lane.eml", "capital-programme-2025-2028.pptx")
        await opened.documents.add_sources(find_sources([corpus / name for name in (*names, *others)]))
        found = await opened.search("households received notice to boil April 2025")
        assert any("boil" in hit.passage.text and "households" in hit.passage.text for hit in found[:3])
