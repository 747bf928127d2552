"""Passages: exact offsets, nothing lost, nothing too long, nothing across a section border without need."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.core.types import Document, Section
from assay.ingest.split import passage_id, split_passages


def words(text: str) -> int:
    return len(text.split())


def characters(text: str) -> int:
    return len(text)


def quarters(text: str) -> int:
    return len(text) // 4  # parts of a text count for less than the whole: the worst kind of counter


def document(text: str, sections: tuple[Section, ...] = (), **given: object) -> Document:
    return Document("d1", "base", "file:x", "digest", "Title", text, sections=sections, **given)  # type: ignore[arg-type]


def written(*parts: str | tuple[str, int]) -> Document:
    """Paragraphs, and headings as (title, level)."""
    text = ""
    sections = []
    for part in parts:
        text += "\n\n" if text else ""
        if isinstance(part, tuple):
            sections.append(Section(part[0], part[1], len(text), len(text) + len(part[0])))
            part = part[0]
        text += part
    return document(text, tuple(sections))


PROSE = "The river rose in the night. Nobody in the village had seen it so high. By morning the bridge was gone. "

pieces = st.lists(
    st.one_of(
        st.text(alphabet=st.sampled_from("ab cd.ef! gh,ij\n;|—é漢。？ "), max_size=80),
        st.sampled_from(["\n\n", "A sentence stands here. ", "x" * 70, "One | two | three\n", "  ", "\t"]),
        st.tuples(st.sampled_from(["Intro", "Methods and data", "x"]), st.integers(1, 3)),
    ),
    max_size=25,
)


def assembled(parts: list) -> Document:
    text = ""
    sections: list[Section] = []
    for part in parts:
        if isinstance(part, tuple):
            text += "\n\n"
            sections.append(Section(part[0], part[1], len(text), len(text) + len(part[0])))
            text += part[0] + "\n\n"
        else:
            text += part
    return document(text, tuple(sections))


@settings(max_examples=300)
@given(pieces, st.integers(3, 60), st.integers(0, 30), st.sampled_from([words, characters, quarters]))
@pytest.mark.long
def test_passages_are_exact_complete_ordered_and_within_their_size(parts, size, overlap, tokens):
    doc = assembled(parts)
    found = split_passages(doc, tokens, size, overlap)
    covered = bytearray(len(doc.text))
    before = -1
    for passage in found:
        assert doc.text[passage.start : passage.end] == passage.text
        assert passage.text and passage.text == passage.text.strip()
        assert tokens(passage.text) <= size
        assert passage.end > before, "each passage brings something new"
        before = passage.end
        covered[passage.start : passage.end] = b"\x01" * len(passage.text)
        assert passage.heading == doc.heading_at(passage.start)
    assert all(covered[at] or doc.text[at].isspace() for at in range(len(doc.text)))
    assert [p.start for p in found] == sorted(p.start for p in found)
    assert len({p.id for p in found}) == len(found)
    assert split_passages(doc, tokens, size, overlap) == found


@pytest.mark.parametrize("text", ["", "   ", "\n\n\t"])
def test_a_text_of_nothing_but_white_space_has_no_passages(text):
    assert split_passages(document(text), words) == []


def test_ids_depend_on_the_document_and_the_span_alone():
    assert passage_id("a", 0, 5) == passage_id("a", 0, 5)
    assert len({passage_id("a", 0, 5), passage_id("b", 0, 5), passage_id("a", 0, 6), passage_id("a", 1, 5)}) == 4


def test_passages_overlap_in_whole_sentences():
    doc = document(PROSE * 10)
    found = split_passages(doc, words, 50, 15)
    for one, other in pairwise(found):
        shared = doc.text[other.start : one.end]
        assert shared and words(shared) <= 15
        assert shared[0].isupper() and shared[-1] == "."


def test_without_overlap_no_sentence_is_read_twice():
    found = split_passages(document(PROSE * 10), words, 50, 0)
    assert all(one.end <= other.start for one, other in pairwise(found))


def test_no_passage_crosses_from_one_chapter_into_the_next():
    doc = written(("One", 1), PROSE * 4, ("Two", 1), PROSE * 4)
    border = doc.sections[1].start
    found = split_passages(doc, words, 60, 20)
    assert not any(p.start < border < p.end for p in found)
    assert {p.heading for p in found} == {"One", "Two"}


def test_a_single_title_above_all_others_is_no_border_but_the_chapters_below_it_are():
    doc = written(("The Book", 1), "By somebody.", ("One", 2), PROSE * 4, ("Two", 2), PROSE * 4)
    border = doc.sections[2].start
    found = split_passages(doc, words, 60, 10)
    assert not any(p.start < border < p.end for p in found)
    assert found[0].text.startswith("The Book\n\nBy somebody.\n\nOne\n\nThe river")


def test_tiny_sections_share_a_passage():
    doc = written(*[part for n in range(6) for part in ((f"Item {n}", 1), "A few words only.")])
    assert len(split_passages(doc, words, 200, 40)) == 1


def test_a_heading_is_never_left_behind_at_the_end_of_a_passage():
    doc = written(("One", 1), PROSE * 3, ("Below", 2), PROSE * 3, ("Further", 2), PROSE * 3)
    for passage in split_passages(doc, words, 50, 10):
        assert not passage.text.endswith(("Below", "Further"))


def test_a_heading_takes_a_piece_of_a_long_sentence_with_it():
    doc = written(("A heading of five words", 1), ("word " * 49 + "end.").strip())
    found = split_passages(doc, words, 50, 0)
    assert words(found[0].text) > 5


def test_a_monster_sentence_is_cut_at_clauses():
    doc = document("; ".join(f"clause {n} has five words" for n in range(40)))
    found = split_passages(doc, words, 30, 0)
    assert all(p.text.endswith((";", "words")) for p in found)


def test_a_word_longer_than_a_passage_is_cut_anywhere():
    found = split_passages(document("x" * 1000), characters, 100, 20)
    assert "".join(p.text for p in found) == "x" * 1000


def test_a_text_does_not_end_in_a_crumb():
    doc = document(PROSE * 5 + "The end.")
    assert min(words(p.text) for p in split_passages(doc, words, 100, 20)) > 25


def test_a_passage_knows_its_page():
    text = PROSE * 4
    half = len(PROSE) * 2
    found = split_passages(document(text, pages=(0, half), kind="pdf"), words, 25, 0)
    assert found[0].page == 1 and found[-1].page == 2
    assert split_passages(document(text), words, 25, 0)[0].page is None


def test_tokens_are_counted_about_twice_per_text_not_once_per_candidate():
    counted = 0

    def tokens(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return len(text.split())

    text = PROSE * 500
    split_passages(document(text), tokens, 200, 40)
    assert counted < 2.6 * len(text)


def test_pieces_of_a_halved_passage_stay_in_order_with_what_overlaps_them():
    doc = document(";;;;;;。;;。;\n;。;。;A sentence stands here. ")
    for overlap in range(4):
        found = split_passages(doc, quarters, 3, overlap)
        assert [p.start for p in found] == sorted(p.start for p in found)
        assert [p.end for p in found] == sorted({p.end for p in found})


def test_no_passage_crosses_a_seam() -> None:
    text = "The probe was cleaned every ten\n\nchromatography of surface water was used. It took a day."
    seam = text.index("chromatography")
    document = Document("d", "b", "u", "x", "t", text, kind="pdf", meta={"seams": str(seam)})
    passages = split_passages(document, lambda words: len(words.split()))
    assert [(passage.start, passage.end) for passage in passages] == [(0, seam - 2), (seam, len(text))]
    assert all("uncertain" in passage.context for passage in passages)
    assert len(split_passages(replace(document, meta={}), lambda words: len(words.split()))) == 1


# --- blocks ---------------------------------------------------------------------------------------------------------


def test_an_option_that_fits_is_never_cut():
    options = [f"  --gate-{n}\n      {' '.join([PROSE] * (1 + n % 3)).strip()}" for n in range(30)]
    passages = split_passages(document("\n".join(options)), words, size=70, overlap=10)
    for option in options:
        assert sum(option.strip() in passage.text for passage in passages) == 1


def test_a_passage_does_not_begin_with_the_end_of_another_description():
    options = [f"  --gate-{n}\n      {PROSE * 2}".rstrip() for n in range(12)]
    passages = split_passages(document("\n".join(options)), words, size=60, overlap=20)
    assert all(passage.text.startswith("--gate-") for passage in passages)


def test_a_change_has_its_release_as_context():
    changes = "\n".join(f"  * Gate {n} was painted green, and it took a week." for n in range(30))
    passages = split_passages(document(f"gate (2.1-1) unstable; urgency=medium\n\n{changes}"), words, size=60)
    assert passages[0].context == "" and len(passages) > 4
    assert {passage.context for passage in passages[1:]} == {"gate (2.1-1) unstable; urgency=medium"}


def test_a_continued_description_has_its_option_as_context():
    lines = "\n".join(f"         It was so in year {n}, and nobody knew why it was. Nobody asked." for n in range(20))
    passages = split_passages(document(f"OPTIONS\n    --lift=GATE\n{lines}"), words, size=60, overlap=10)
    assert {passage.context for passage in passages[1:]} == {"OPTIONS\n--lift=GATE"}


def test_an_item_has_the_line_that_introduces_its_list_as_context():
    items = "\n".join(f"- rope number {n}, which is long enough for a gate" for n in range(20))
    told = written(("Stores", 1), "Bring these to the river:", items)
    passages = split_passages(told, words, size=50)
    assert passages[0].context == ""
    assert {(passage.heading, passage.context) for passage in passages[1:]} == {("Stores", "Bring these to the river:")}


def test_a_line_that_only_introduces_goes_with_what_follows():
    paragraph = (PROSE * 3).strip()
    passages = split_passages(document(f"{paragraph}\n\nBring these:\n\n- a rope\n- a boat"), words, size=64, overlap=0)
    assert [passage.text for passage in passages] == [paragraph, "Bring these:\n\n- a rope\n- a boat"]


def test_a_paragraph_ends_a_passage_rather_than_a_sentence():
    long = "Nobody had asked for it at all. " * 20
    passages = split_passages(document(f"{PROSE * 2}\n\n{long}"), words, size=60, overlap=0)
    assert passages[0].text == (PROSE * 2).strip()


@pytest.mark.parametrize("length", [1_000, 4_000])
def test_the_tokens_are_counted_in_proportion_to_the_blocks(length: int):
    counted = 0

    def counting(text: str) -> int:
        nonlocal counted
        counted += len(text)
        return words(text)

    text = "\n".join(f"  --gate-{n}\n      {PROSE}" for n in range(length // 100))
    split_passages(document(text), counting)
    assert counted < 4 * len(text)
