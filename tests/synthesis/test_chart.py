from __future__ import annotations

import re
from dataclasses import replace

import pytest
from accounts_by_hand import account
from lxml import etree

from assay.core.synthesis import RelationType
from assay.synthesis.circle import MapLabel, cut, overlap, overlapping, place_on_circle, width, wrap
from assay.synthesis.content import footnotes
from assay.synthesis.render import map_labels, svg

SPACE = "{http://www.w3.org/2000/svg}"


def drawn(made) -> etree._Element:
    return etree.fromstring(svg(made).encode())


def edges(picture: etree._Element) -> list[etree._Element]:
    return [each for each in picture.iter(f"{SPACE}a") if "edge" in each.get("class", "")]


def nodes(picture: etree._Element) -> list[etree._Element]:
    return [each for each in picture.iter(f"{SPACE}a") if "node" in each.get("class", "")]


@pytest.mark.parametrize("documents", [1, 2, 3, 10, 60])
def test_every_document_and_every_relation_is_on_the_map_once(documents: int):
    made = account(documents)
    picture = drawn(made)
    assert sorted(each.get("data-doc") for each in nodes(picture)) == sorted(made.labels.values())
    assert sorted(each.get("href") for each in edges(picture)) == sorted(
        f"#r{n + 1}" for n in range(len(made.relations))
    )


def test_a_line_says_its_type_its_reason_and_both_quotations():
    made = account(10)
    told = {each.get("href"): each.findtext(f"{SPACE}title") or "" for each in edges(drawn(made))}
    for number, relation in enumerate(made.relations, 1):
        for words in (relation.type, relation.reason, relation.left.quote.text, relation.right.quote.text):
            assert words in told[f"#r{number}"]


def test_contradictions_lie_on_top():
    kinds = ["contradiction" in each.get("class") for each in edges(drawn(account(60)))]
    assert any(kinds) and kinds == sorted(kinds)


def test_several_relations_between_two_documents_are_curves_of_their_own():
    made = account(60)
    first = made.relations[0]
    several = replace(made, relations=tuple(replace(first, type=tie) for tie in RelationType))
    paths = {each.find(f"{SPACE}path").get("d") for each in edges(drawn(several))}
    assert len(paths) == len(RelationType)


def test_the_types_differ_in_colour_and_in_dashes():
    rules = dict(re.findall(r"\n\.(\w+) \.line\{([^}]*)\}", svg(account(3))))
    own = [rules[tie] for tie in RelationType]
    assert len({re.search(r"stroke:([^;}]*)", each)[1] for each in own}) == len(RelationType)
    assert len({"".join(re.findall(r"stroke-dasharray:([\d .]*)", each)) for each in own}) == len(RelationType)


def test_a_document_without_relations_is_there_and_is_marked():
    picture = drawn(account(10))
    alone = [each for each in nodes(picture) if "alone" in each.get("class")]
    assert [each.get("data-doc") for each in alone] == ["D9", "D10"]
    assert "no relation found" in (alone[0].findtext(f"{SPACE}title") or "")


@pytest.mark.long
@pytest.mark.parametrize("documents", [*range(1, 16), 20, 40, 60, 100, 200])
def test_no_name_lies_on_another(documents: int):
    made = account(documents)
    assert not overlapping(place_on_circle(map_labels(made, footnotes(made))).spots)


@pytest.mark.long
@pytest.mark.parametrize("name", ["W" * 90, "長い題名" * 20, "i", "", "a b " * 60, "Donaudampfschifffahrt" * 4])
@pytest.mark.parametrize("count", [2, 7, 12, 14, 30])
def test_no_name_lies_on_another_whatever_it_is(name: str, count: int):
    assert not overlapping(place_on_circle([MapLabel(f"d{n}", f"D{n}", name) for n in range(count)]).spots)


def test_boxes_that_touch_nowhere_do_not_meet_and_a_turned_box_is_seen():
    box = ((0, 0), (10, 0), (10, 10), (0, 10))
    diamond = ((16, 11), (11, 16), (6, 11), (11, 6))  # its corner lies beyond the box's, its side cuts it
    assert overlap(box, diamond)
    assert not overlap(box, tuple((x + 5, y + 5) for x, y in diamond))
    assert not overlap(box, tuple((x + 11, y) for x, y in box))


def test_a_name_is_cut_between_words_and_fits_its_room():
    words = "Forecasting floods of the upper river from levels and rain in winter"
    assert width(cut(words, 12, 200), 12) <= 200 and cut(words, 12, 200).endswith("…")
    assert cut(words, 12, 200)[:-1] in words and words[len(cut(words, 12, 200)) - 1] == " "
    assert len(wrap(words, 14, 150, 3)) == 3 and all(width(line, 14) <= 150 for line in wrap(words, 14, 150, 3))


def test_the_map_is_the_same_each_time():
    assert svg(account(60)) == svg(account(60))


def test_what_documents_say_is_no_markup_in_the_picture():
    hostile = '</title><script>alert(1)</script>"\x00\u202e'
    made = account(3)
    made = replace(
        made,
        documents=tuple(replace(each, title=hostile) for each in made.documents),
        relations=tuple(replace(each, reason=hostile) for each in made.relations),
    )
    picture = drawn(made)  # parsed as XML: a stray sign would not parse
    assert not list(picture.iter(f"{SPACE}script"))
    assert "\u202e" not in svg(made) and "\x00" not in svg(made)
