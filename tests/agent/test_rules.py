"""Deciding without a model: hops by name, over small invented documents and a bag-of-words stand-in for an embedder."""

import math
from dataclasses import replace

import numpy as np
import pytest

from assay.core.types import Hit, Passage
from assay.index import hop_ranking
from assay.index.hop_ranking import HopSettings, Lead, PastSearch
from assay.language.terms import content_terms

SHELF = {
    "Bell Sonata": "The Bell Sonata is a piece for harp. It was written by Ida Torvald in 1911.",
    "Ida Torvald": "Ida Torvald was a composer. She was born in Lindhavn and taught there all her life.",
    "Lindhavn": "Lindhavn is a fishing port. Its population was 6,960 at the last census.",
    "Glass Sonata": "The Glass Sonata is a piece for harp and flute. It was first heard in Orvik.",
    "Population of cities": "The population of a city is counted in a census. Cities grow.",
    "Kelp": "Kelp is a large seaweed. It grows in cold water.",
}
QUESTION = "What was the population of the town where the composer of the Bell Sonata was born?"


def vector(words: str) -> np.ndarray:
    bag = np.zeros(64)
    for term in content_terms(words):
        bag[sum(ord(c) * 31**n for n, c in enumerate(term)) % 64] += 1
    return bag / (np.linalg.norm(bag) or 1.0)


def search(lead: Lead, search_context: dict[str, str]) -> PastSearch:
    asked = set(content_terms(lead.query))
    scores = {title: len(asked & set(content_terms(f"{title} {body}"))) for title, body in search_context.items()}
    best = max(scores.values()) or 1
    found = sorted((title for title in search_context if scores[title]), key=lambda title: -scores[title])[: lead.k]
    hits = (
        Hit(
            Passage(title, title, search_context[title], 0, len(search_context[title])),
            vector(f"{title} {search_context[title]}"),
            {"fused": scores[title] / best},
            rank,
            title,
        )
        for rank, title in enumerate(found)
    )
    return PastSearch(lead, vector(lead.query), tuple(hits))


def play(question: str, how: HopSettings, search_context: dict[str, str] = SHELF) -> tuple[list[PastSearch], str]:
    ran: list[PastSearch] = []
    while (following := hop_ranking.next_searches(question, ran, how)).leads:
        ran += [search(lead, search_context) for lead in following.leads]
    return ran, following.why


def titles(question: str, how: HopSettings, search_context: dict[str, str] = SHELF) -> list[str]:
    return [
        ranked.hit.title for ranked in hop_ranking.rank_passages(question, play(question, how, search_context)[0], how)
    ]


def test_the_first_search_is_the_question_itself():
    assert hop_ranking.next_searches(QUESTION, []).leads == tuple(hop_ranking.first_search(QUESTION))
    assert hop_ranking.first_search(QUESTION)[0].query == QUESTION


def test_a_name_leads_from_what_was_found_to_what_was_not_asked_for():
    assert set(titles(QUESTION, HopSettings())[:3]) == {"Bell Sonata", "Ida Torvald", "Lindhavn"}


def test_without_hops_the_chain_is_not_found():
    assert not {"Ida Torvald", "Lindhavn"} <= set(titles(QUESTION, HopSettings(rounds=()))[:3])


def torvald(search_context: dict[str, str]) -> hop_ranking.NameLink:
    """The link under her name, after a search for the question in a shelf that cannot find her by its words."""
    first = search(hop_ranking.first_search(QUESTION)[0], {"Bell Sonata": SHELF["Bell Sonata"]})
    lead = next(each for each in hop_ranking.next_searches(QUESTION, [first]).leads if each.name == "Ida Torvald")
    return hop_ranking.score_passages(QUESTION, [first, search(lead, search_context)], HopSettings()).links[
        "Ida Torvald"
    ]


def test_a_link_says_which_name_led_from_which_passage():
    link = torvald(SHELF)
    assert (link.name, link.source) == ("Ida Torvald", "Bell Sonata")
    assert 0 < link.sure < 1


def test_a_hop_asks_for_the_name_and_what_is_still_open():
    first = search(hop_ranking.first_search(QUESTION)[0], {"Bell Sonata": SHELF["Bell Sonata"]})
    lead = next(each for each in hop_ranking.next_searches(QUESTION, [first]).leads if each.name == "Ida Torvald")
    assert "population" in lead.query
    assert "Sonata" not in lead.query
    assert lead.reason == "Bell Sonata names Ida Torvald"


def test_no_search_is_made_twice_and_the_limit_holds():
    ran, _ = play(QUESTION, HopSettings(limit=4, enough=2))
    names = [hop_ranking.name_key(each.lead.name) for each in ran[1:]]
    assert len(ran) <= 4
    assert len(names) == len(set(names))


def test_a_run_out_of_room_says_limit():
    assert play(QUESTION, HopSettings(limit=1, enough=2))[1] == "limit"


def test_a_run_with_no_name_left_to_follow_says_nothing_new():
    assert play("How does it grow in cold water on rock?", HopSettings(), {"": SHELF["Kelp"]})[1] == "nothing new"


def test_a_question_one_passage_speaks_of_in_full_stops_as_covered():
    ran, stop = play("Was the Bell Sonata for harp written by Ida Torvald?", HopSettings())
    assert (len(ran), stop) == (1, "covered")


def test_a_search_that_found_nothing_ends_quietly():
    ran, stop = play("zzz", HopSettings())
    assert stop == "nothing new"
    assert hop_ranking.rank_passages("zzz", ran) == []
    assert hop_ranking.rank_passages("zzz", []) == []


def test_a_name_of_the_question_that_nothing_holds_is_asked_for_alone():
    hidden = search(hop_ranking.first_search("How old is Zorn Abbey?")[0], {"Kelp": SHELF["Kelp"] + " It is old."})
    lead = hop_ranking.next_searches("How old is Zorn Abbey?", [hidden]).leads[0]
    assert (lead.query, lead.source) == ("Zorn Abbey", "")


def test_a_passage_about_a_name_in_the_question_comes_before_one_that_only_mentions_it():
    search_context = {
        "Notes on ports": "Lindhavn and its port and its fishing.",
        "Lindhavn": "Lindhavn is a port for fishing.",
    }
    assert titles("Is the fishing port Lindhavn old?", HopSettings(rounds=()), search_context)[0] == "Lindhavn"


def test_titles_that_are_no_names_do_not_stop_a_chain():
    files = {f"scan_{number:04}.pdf": f"{title}. {body}" for number, (title, body) in enumerate(SHELF.items())}
    assert set(titles(QUESTION, HopSettings(), files)[:3]) == {"scan_0000.pdf", "scan_0001.pdf", "scan_0002.pdf"}


@pytest.mark.parametrize(
    ("title", "followed"),
    [
        ("yard-6", True),
        ("The Curse of the Black Pearl", True),
        ("Minutes of the meeting on the new bridge", False),
        ("Operations report, April 2025", False),
    ],
)
def test_a_title_is_followed_if_it_is_a_name(title: str, followed: bool):
    body = "The bridge is closed."
    hit = Hit(Passage("p", "d", body, 0, len(body)), vector(body), {"fused": 1.0}, 1, title)
    assert (hop_ranking.name_key(title) in hop_ranking.names_in(hit)) == followed


@pytest.mark.parametrize(
    "body",
    [
        "Supplier: Orrin Fluidics; Town: Skelby; Remarks: Orrin Fluidics keeps spares for the Clarus series; Ardley: no",
        "| Supplier | Town | Remarks | Ardley |\n| --- | --- | :-- | ---: |\n| Orrin Fluidics | Skelby | the Clarus | no |",
    ],
)
def test_the_labels_of_columns_are_not_followed_as_names(body: str):
    hit = Hit(Passage("p", "d", body, 0, len(body)), vector(body), {"fused": 1.0}, 1, "Orders from Ardley this year")
    assert set(hop_ranking.names_in(hit)) == {"orrin fluidics", "skelby", "clarus", "ardley"}


def test_a_name_in_a_title_leads_to_other_documents_only():
    def hit(id: str, document: str, title: str, body: str) -> Hit:
        return Hit(Passage(id, document, body, 0, len(body)), vector(f"{title} {body}"), {"fused": 1.0}, 1, title)

    hits = (
        hit("a1", "a", "Oak Hill", "The mill stands on Oak Hill."),
        hit("a2", "a", "Oak Hill", "Oak Hill has a well."),
        hit("b", "b", "Wells", "The well of Oak Hill is deep."),
    )
    question = "How deep is the well near the mill?"
    ran = [
        PastSearch(Lead(question, "", 5), vector(question), hits),
        PastSearch(Lead("Oak Hill deep", "", 5, "Oak Hill", "a1"), vector("Oak Hill deep"), hits),
    ]
    assert hop_ranking.score_passages(question, ran, HopSettings()).links.keys() == {"b"}


def test_a_name_that_many_passages_hold_links_them_less():
    crowd = SHELF | {f"Choir {n}": f"Ida Torvald once heard choir {n} sing." for n in range(15)}
    assert torvald(crowd).sure < torvald(SHELF).sure


def test_the_order_does_not_depend_on_the_order_of_equal_hits():
    ran, _ = play(QUESTION, HopSettings())
    turned = [ran[0], *(replace(each, hits=each.hits[::-1]) for each in ran[1:])]
    first = [each.hit.passage.id for each in hop_ranking.rank_passages(QUESTION, ran)]
    assert [each.hit.passage.id for each in hop_ranking.rank_passages(QUESTION, turned)] == first


@pytest.mark.parametrize("title", ["Brand (play)", "Brand"])
def test_the_bracket_that_tells_namesakes_apart_is_no_part_of_a_name(title: str):
    assert hop_ranking.bare_title(title) == "Brand"


def test_the_weights_of_the_question_add_up_to_one():
    board = hop_ranking.score_passages(QUESTION, play(QUESTION, HopSettings())[0], HopSettings())
    assert math.isclose(sum(board.weights.values()), 1.0)


def test_the_unit_of_a_figure_is_not_followed():
    body = "The sluice at the mill lets water of 50 NTU pass, and 20 NTU in winter. The mill is near Oak Hill."
    passage = Hit(Passage("a", "a", body, 0, len(body)), vector(body), {"fused": 1.0}, 1, "Mills")
    question = "Who keeps the sluice at the mill?"
    found = hop_ranking.next_searches(question, [PastSearch(Lead(question, "", 5), vector(question), (passage,))])
    assert [lead.name for lead in found.leads] == ["Oak Hill"]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("Subject: Fwd: limit\nDate: Wed, 14 May 2025\nThe sample went to Lindhavn.", {"lindhavn"}),
        ("SEE ALSO\nThe works of Ida Torvald; see also the list.", {"ida torvald"}),
        ("Speed\nThe speed is given in Section 2. Every section has one, as Apollo 11 had.", {"apollo 11"}),
        ("Weigh the sample in Orvik, Norway. Weigh it twice on scale TS-114.", {"orvik", "norway", "ts 114"}),
        ('The key is OMwn1ROiv8QiWb1QlVvBs8 and the word "outside" is quoted.', set[str]()),
        ("Heute ging die Probe nach Lindhavn.", {"lindhavn", "probe"}),
    ],
)
def test_only_what_a_text_writes_as_a_name_is_followed(body: str, names: set[str]):
    hit = Hit(
        Passage("p", "d", body, 0, len(body)), vector(body), {"fused": 1.0}, 1, "A long note on what was done there"
    )
    assert set(hop_ranking.names_in(hit, hop_ranking.passage_terms(hit).uncapitalised)) == names
