from __future__ import annotations

import json
from dataclasses import replace

import pytest

from assay.answer import citations, render
from assay.answer.extracts import Stretch
from assay.core.tables import RowSpan, pack_rows
from assay.core.types import (
    Answer,
    Block,
    CellFacts,
    Claim,
    ClaimedCell,
    Conflict,
    Document,
    Evidence,
    Examined,
    Operand,
    Outcome,
    Passage,
    Quote,
    Searched,
    Section,
    Shape,
    Table,
    Usage,
    Verdict,
    Working,
)

TEXT = "Raw data is kept for 90 days. <script>alert(1)</script> is not run. Costs are 5 % of {all} & more_or_less."
DOCUMENT = Document(
    "d1", "b", "/papers/policy_1.pdf", "0", "Policy & <rules>", TEXT, ("A. Team", "B {x}"), "2025-06-02", kind="pdf"
)
PASSAGE = Passage("p1", "d1", TEXT, 0, len(TEXT))


def quote(start: int, end: int) -> Quote:
    return Quote("d1", start, end, TEXT[start:end])


FIRST, SECOND = quote(0, 29), quote(30, 67)
EVIDENCE = (Evidence("k1", PASSAGE, FIRST, 9.0, "q"),)
CLAIMS = tuple(Claim("", ("k1",), Verdict.supported, quote=each) for each in (FIRST, SECOND))


def made(**changes) -> tuple[Answer, citations.Cited]:
    answer = Answer("How long?", (Block(CLAIMS),), Outcome.answered, **changes)
    return answer, citations.of_answer(answer, EVIDENCE, lambda _: DOCUMENT)


def test_two_quotations_of_one_passage_have_their_own_numbers_and_words():
    answer, cited = made()
    assert [each.number for each in cited.values()] == [1, 2]
    assert [each.quote for each in cited.values()] == [FIRST, SECOND]
    text = render.as_text(answer, cited)
    assert "[1] Policy & <rules>, page 1\n    Raw data" in text and "[2] Policy & <rules>, page 1\n    <script>" in text


def test_html_runs_nothing_that_a_document_says():
    page = render.as_html(*made())
    assert "<script>" not in page and "&lt;script&gt;" in page and "Policy &amp; &lt;rules&gt;" in page


def test_markdown_shows_what_stands_there_and_formats_nothing():
    text = render.as_markdown(*made())
    assert "\\<script\\>" in text and "- [1][2] Policy & \\<rules\\> (2025-06-02), page 1 — policy\\_1.pdf" in text


def test_json_has_the_place_of_every_quotation():
    data = json.loads(json.dumps(render.as_json(*made())))
    for each in data["citations"]:
        assert TEXT[each["start"] : each["end"]] == each["quote"]


def test_bibtex_has_one_entry_per_document():
    _, cited = made()
    entry = render.as_bibtex(cited)
    assert entry.count("@misc") == 1 and "title = {Policy \\& <rules>}" in entry and "year = {2025}" in entry


@pytest.mark.parametrize(
    ("authors", "written"),
    [
        (("Ada Lovelace", "Charles Babbage"), "Ada Lovelace and Charles Babbage"),
        (("Agency for Health and Safety",), "{Agency for Health and Safety}"),
        (("Ada Lovelace", "Ministry of Food and Water"), "Ada Lovelace and {Ministry of Food and Water}"),
        (("Sarrow Valley Water Board",), "{Sarrow Valley Water Board}"),
        (("Process Laboratory and Control Room",), "{Process Laboratory and Control Room}"),
        (("R&D And {Sons}",), "{R\\&D And Sons}"),
    ],
)
def test_bibtex_keeps_an_organisation_whole(authors: tuple[str, ...], written: str):
    _, cited = made()
    named = {key: replace(each, authors=authors) for key, each in cited.items()}
    assert f"  author = {{{written}}}," in render.as_bibtex(named)


def test_a_conflict_is_said_with_both_sides():
    other = Claim("", ("k2",), Verdict.supported, quote=SECOND)
    answer = Answer(
        "q", (Block((CLAIMS[0], other)),), Outcome.answered, conflicts=(Conflict("k1", "k2", "90 days / 30 days"),)
    )
    evidence = (*EVIDENCE, Evidence("k2", PASSAGE, SECOND, 8.0, "q"))
    text = render.as_text(answer, citations.of_answer(answer, evidence, lambda _: DOCUMENT))
    assert "These differ: [1] and [2] (90 days / 30 days)." in text
    judged = replace(answer, blocks=(Block((replace(WRITTEN, cites=("k1", "k2")),)),))
    text = render.as_text(judged, citations.of_answer(judged, evidence, lambda _: DOCUMENT))
    assert "The sources disagree: [1] and [2] (90 days / 30 days)." in text


@pytest.mark.parametrize("write", [render.as_text, render.as_markdown, render.as_html])
def test_no_answer_says_what_came_near_and_what_could_not_be_read(write):
    answer = Answer(
        "What is it?", (), Outcome.abstained, searched=(Searched("What is it?", 12, 3),),
        stopped="nothing_new", near=CLAIMS[:1], unread=("/papers/scan.pdf",),
    )  # fmt: skip
    text = write(answer, citations.of_answer(answer, EVIDENCE, lambda _: DOCUMENT))
    for said in ("Not found in your documents. The nearest:", "90 days", "scan.pdf"):
        assert said in text
    assert write is render.as_html or "12 passages" not in text


def test_what_was_searched_is_told_on_demand():
    answer, cited = made(searched=(Searched("What is it?", 12, 3),), stopped="nothing_new")
    lines = "Searched for:\n  “What is it?”: 12 passages\n  The search ended because nothing new was found."
    assert lines in render.as_text(answer, cited, verbose=True) and "12 passages" not in render.as_text(answer, cited)
    page = render.as_html(answer, cited)
    assert page.index("<details>") < page.index("12 passages") < page.index("</details>")


# --- extracts -------------------------------------------------------------------------------------------------------

PAGE = """Keeping

Raw data
    Kept for 90 days.
      * in <the> archive
      * and *nowhere* else
"""
KEPT = Document("d1", "b", "/m.txt", "0", "Manual", PAGE, sections=(Section("Keeping", 1, 0, 7),))


def extract(words: str, *marked: str, outcome: Outcome = Outcome.answered) -> tuple[Answer, citations.Cited]:
    """An answer that shows these words of a manual page."""

    def found(words: str) -> Quote:
        return Quote("d1", PAGE.index(words), PAGE.index(words) + len(words), words)

    claim = Claim("", ("k1",), Verdict.supported, quote=found(words), marks=tuple(map(found, marked)))
    evidence = (Evidence("k1", Passage("p1", "d1", PAGE, 0, len(PAGE)), found(words), 9.0, "q"),)
    near = outcome is Outcome.abstained
    answer = Answer("q", () if near else (Block((claim,)),), outcome, near=(claim,) if near else ())
    return answer, citations.of_answer(answer, evidence, lambda _: KEPT)


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (Outcome.answered, "Found in your documents:"),
        (Outcome.partial, "Perhaps in your documents:"),
        (Outcome.abstained, "Not found in your documents. The nearest:"),
    ],
)
@pytest.mark.parametrize("write", [render.as_text, render.as_markdown, render.as_html])
def test_one_line_says_whether_the_answer_was_found(write, outcome: Outcome, line: str):
    assert line in write(*extract("Kept for 90 days.", outcome=outcome))


def test_an_answer_that_a_model_wrote_has_no_such_line():
    assert "Found" not in render.as_text(*written(Block((WRITTEN,))))


def test_an_extract_stands_below_its_headings_and_its_subject():
    (cited,) = extract("Kept for 90 days.")[1].values()
    assert cited.place == "Manual › Keeping › Raw data"


def test_a_heading_at_the_beginning_of_an_extract_is_named_once():
    text = render.as_text(*extract(PAGE.strip()))
    assert text.count("Keeping") == 1 and "[1] Manual › Keeping\n    Raw data\n" in text


def test_an_extract_keeps_its_lines_and_their_indent():
    text = render.as_text(*extract(PAGE[PAGE.index("Kept") :].rstrip(), "90 days"))
    assert "\n    Kept for *90 days*.\n      * in <the> archive\n      * and *nowhere* else\n" in text


def test_marked_words_are_marked_in_every_file_and_all_else_is_escaped():
    shown = extract(PAGE[PAGE.index("Kept") :].rstrip(), "90 days.\n      * in <the> archive")
    assert "Kept for <mark>90 days.\n  * in &lt;the&gt; archive</mark>\n  * and *nowhere* else" in render.as_html(
        *shown
    )
    text = render.as_markdown(*shown)
    assert "> Kept for **90 days.**  \n>" in text and "**\\* in \\<the\\> archive**" in text
    assert "\\* and \\*nowhere\\* else" in text
    (citation,) = render.as_json(*shown)["citations"]
    assert citation["marks"][0]["text"].startswith("90 days") and citation["under"] == ["Keeping", "Raw data"]


@pytest.mark.parametrize("line", ["---", "===", "+ one", "- one", "12. May"])
def test_a_line_of_an_extract_does_not_become_a_heading_or_a_list(line: str):
    (words,) = render._quoted_markdown([Stretch(f"Above\n{line}")]).splitlines()[1:]
    assert words.startswith("> \\") or words == "> 12\\. May"


def test_the_words_of_extracts_are_not_repeated_among_the_sources():
    for write in WRITERS:
        assert write(*extract("Kept for 90 days.")).count("90 days") == 1


def test_a_wide_table_has_a_line_for_each_cell():
    answer, cited = quoted_row()
    answer = replace(answer, blocks=(Block((Claim("", ("k1",), quote=next(iter(cited.values())).quote),)),))
    assert "North | East      12" in render.as_text(answer, cited)
    assert "    Sales — in *tons*\n    North | East\n      Q1 <b>: 12" in render.as_text(answer, cited, width=23)


def test_a_document_that_may_no_longer_be_read_is_not_cited():
    answer, _ = made()
    cited = citations.of_answer(answer, EVIDENCE, lambda _: None)
    assert not cited and "policy" not in render.as_text(answer, cited).lower()


# --- written answers ------------------------------------------------------------------------------------------------

WRITTEN = Claim("Raw data is kept for 90 days.", ("k1",), Verdict.supported)
WRITERS = [render.as_text, render.as_markdown, render.as_html]


def written(*blocks: Block, evidence: tuple[Evidence, ...] = EVIDENCE, **more) -> tuple[Answer, citations.Cited]:
    answer = Answer("How long?", blocks, more.pop("outcome", Outcome.answered), **more)
    return answer, citations.of_answer(answer, evidence, lambda _: DOCUMENT)


def test_a_written_claim_has_a_number_under_which_its_quotation_stands():
    text = render.as_text(*written(Block((WRITTEN,))))
    assert "Raw data is kept for 90 days. [1]" in text
    assert "[1] Policy & <rules> (2025-06-02), page 1 — policy_1.pdf\n    “Raw data is kept for 90 days.”" in text


def test_prose_is_a_paragraph_and_headings_stand_above_it():
    other = replace(WRITTEN, text="Nothing else is kept.")
    text = render.as_text(*written(Block((WRITTEN, other), "Raw data"), shape=Shape.prose))
    assert "Raw data\nRaw data is kept for 90 days. [1] Nothing else is kept. [1]" in text


@pytest.mark.parametrize("write", WRITERS)
def test_an_opinion_is_labelled(write):
    assert "Opinion" in write(*written(Block((WRITTEN,)), Block((WRITTEN,), opinion=True)))


def test_a_table_has_rows_columns_and_numbers():
    rows = Block((replace(WRITTEN, text="Raw <b> | 90 days"), replace(WRITTEN, text="Costs | 5 %")), "What | Kept")
    answer, cited = written(rows, shape=Shape.table)
    assert "What     Kept\nRaw <b>  90 days  [1]\nCosts    5 %      [1]" in render.as_text(answer, cited)
    assert "| What | Kept | |\n|---|---|---|\n| Raw \\<b\\> | 90 days | [1] |" in render.as_markdown(answer, cited)
    page = render.as_html(answer, cited)
    assert "<th>What</th><th>Kept</th>" in page and "<td>Raw &lt;b&gt;</td><td>90 days</td>" in page


ROWS = Block((replace(WRITTEN, text="Raw | 90"), replace(WRITTEN, text="Costs | 5")), "What | Days")


@pytest.mark.parametrize("shape", [Shape.prose, Shape.sentence, Shape.table])
def test_rows_are_a_table_beside_prose_and_an_opinion(shape: Shape):
    judged = Block((replace(WRITTEN, text="That is long."),), opinion=True)
    answer, cited = written(Block((WRITTEN, WRITTEN)), ROWS, judged, shape=shape)
    prose = "Raw data is kept for 90 days. [1] Raw data is kept for 90 days. [1]"
    table = "What   Days\nRaw      90  [1]\nCosts     5  [1]"
    assert render.as_text(answer, cited).startswith(f"{prose}\n\n{table}\n\nOpinion: That is long. [1]\n\nSources")
    text = render.as_markdown(answer, cited)
    assert (
        f"{prose}\n\n| What | Days | |\n|---|---|---|\n| Raw | 90 | [1] |\n| Costs | 5 | [1] |\n\n*Opinion:* That"
        in text
    )
    page = render.as_html(answer, cited)
    assert page.index("<p>Raw data") < page.index("<th>What</th>") < page.index("<em>Opinion:</em>")
    forms = [(block["form"], block["columns"]) for block in render.as_json(answer, cited)["blocks"]]
    assert forms == [("prose", ()), ("table", ("What", "Days")), ("prose", ())]


def test_a_sentence_with_a_bar_is_no_table():
    bar = replace(WRITTEN, text="Type ls | wc to count them.")
    assert "Type ls | wc to count them. [1]" in render.as_text(*written(Block((bar,))))
    assert "Type ls | wc to count them. [1]" in render.as_text(*written(Block((WRITTEN, bar, WRITTEN))))


def test_a_sentence_among_rows_stands_below_them():
    block = replace(ROWS, claims=(*ROWS.claims, replace(WRITTEN, text="Nothing else is kept.")))
    assert "Costs     5  [1]\nNothing else is kept. [1]\n" in render.as_text(*written(block))
    assert '<td colspan="2">Nothing else is kept.</td>' in render.as_html(*written(block))


def test_a_table_that_is_too_wide_has_a_line_for_each_cell():
    text = render.as_text(*written(replace(ROWS, heading="What is kept | Days")), width=20)
    assert text.startswith("What is kept: Raw\n  Days: 90\n  [1]\nWhat is kept: Costs\n")


@pytest.mark.parametrize("write", WRITERS)
def test_two_statements_of_a_sentence_are_no_list(write):
    text = write(*written(Block((WRITTEN, WRITTEN)), shape=Shape.sentence))
    assert not any(sign in text for sign in ("•", "<li>Raw", "- Raw"))
    assert any(
        sign in write(*written(Block((WRITTEN, WRITTEN)), shape=Shape.list)) for sign in ("•", "<li>Raw", "- Raw")
    )


@pytest.mark.parametrize("write", WRITERS)
def test_readings_and_what_was_examined_are_said(write):
    text = write(*written(Block((WRITTEN,)), readings=("on disk", "on tape"), examined=Examined(3, 12, 2)))
    for said in ("on disk; on tape", "12 passages of 3 documents were looked at", "2 more that match were not"):
        assert said in text


@pytest.mark.parametrize("write", WRITERS)
def test_an_answer_that_is_not_from_the_documents_says_so_and_is_escaped(write):
    answer = Answer("Hello", (), Outcome.direct, said="Hello <script>alert(1)</script>")
    text = write(answer, {})
    assert "Not from your documents" in text and (write is not render.as_html or "<script>" not in text)


def test_a_passage_that_reads_like_an_instruction_is_marked_among_the_sources():
    flagged = (replace(EVIDENCE[0], flagged=True),)
    assert "reads like an instruction" in render.as_text(*written(Block((WRITTEN,)), evidence=flagged))


def test_what_it_cost_is_in_the_data_only():
    answer, cited = written(Block((WRITTEN,)), usage=Usage(3, 1000, 200, 0.0123, 4.5))
    assert render.as_json(answer, cited)["usage"]["money"] == 0.0123
    assert all("0.0123" not in write(answer, cited) for write in WRITERS)


# --- quotations from tables -------------------------------------------------------------------------------------------

SHEET = "Sales\n\tQ1 <b>\nNorth | East\t12\nSouth\t7"
NORTH = SHEET.index("North")
SPANS = [
    RowSpan(NORTH, NORTH + 15, ((0, NORTH, NORTH + 12), (1, NORTH + 13, NORTH + 15))),
    RowSpan(NORTH + 16, len(SHEET), ((0, NORTH + 16, NORTH + 21), (1, NORTH + 22, len(SHEET)))),
]
SALES = Table(6, len(SHEET), ("", "Q1 <b>"), "Sales", "in *tons*", pack_rows(SPANS, 6))
REPORT = Document("d1", "b", "/a.pdf", "0", "Report", SHEET, kind="pdf", tables=(SALES,))


def cell_or_row(words: str) -> Quote:
    return Quote("d1", SHEET.index(words), SHEET.index(words) + len(words), words)


def quoted_row(words: str = "North | East\t12") -> tuple[Answer, citations.Cited]:
    """An answer that cites one row of a table, or words in it."""
    evidence = (Evidence("k1", Passage("p1", "d1", SHEET, 0, len(SHEET)), cell_or_row(words), 9.0, "q"),)
    answer = Answer("How much?", (Block((Claim("North sold 12.", ("k1",)),)),), Outcome.answered)
    return answer, citations.of_answer(answer, evidence, lambda _: REPORT)


def test_a_quotation_from_a_table_is_its_row_under_the_header():
    text = render.as_text(*quoted_row())
    assert text.splitlines()[-3:] == [
        "    Sales — in *tons*",
        "                  Q1 <b>",
        "    North | East      12",
    ]
    assert "South" not in text


def test_a_table_is_escaped_in_every_file():
    page, text = render.as_html(*quoted_row()), render.as_markdown(*quoted_row())
    assert (
        '<th scope="col" class="figure">Q1 &lt;b&gt;</th>' in page
        and '<td>North | East</td><td class="figure">12</td>' in page
    )
    assert "Sales — in \\*tons\\*\n\n|  | Q1 \\<b\\> |\n| --- | --- |\n| North \\| East | 12 |" in text


def test_the_page_of_an_answer_marks_the_cell_that_is_cited_and_no_whole_row():
    assert '<td>North | East</td><td class="figure"><mark>12</mark></td>' in render.as_html(*quoted_row("12"))
    assert "<mark>" not in render.as_html(*quoted_row())


def test_json_has_the_table_of_a_quotation():
    (citation,) = render.as_json(*quoted_row())["citations"]
    assert citation["table"]["columns"] == ["", "Q1 <b>"]
    assert [row["cells"] for row in citation["table"]["rows"]] == [["North | East", "12"]]
    assert "table" not in render.as_json(*made())["citations"][0]


def test_a_source_stands_once_with_everything_that_is_cited_of_it():
    claims = tuple(
        Claim(f"Statement {place}.", ("k1",), Verdict.supported, carried_by=(words,))
        for place, words in enumerate((FIRST, SECOND, FIRST))
    )
    answer, cited = written(Block(claims))
    assert render.as_text(answer, cited).endswith(
        "Sources\nPolicy & <rules> (2025-06-02), page 1 — policy_1.pdf\n"
        f"    [1] “{FIRST.text}”\n    [2] “{SECOND.text}”"
    )
    text = render.as_markdown(answer, cited)
    assert text.count("policy") == 1 and f"pdf\n  - [1] “{FIRST.text}”\n  - [2] “\\<script\\>" in text
    page = render.as_html(answer, cited)
    assert page.count("policy") == 1 and f'<span id="s1">[1]</span> {FIRST.text}' in page


def test_rows_of_one_table_stand_under_one_header_with_the_numbers_they_are_cited_by():
    claims = tuple(
        Claim(f"Of {words}.", ("k1",), carried_by=(cell_or_row(words),))
        for words in ("South\t7", "North | East\t12", "12")
    )
    evidence = (Evidence("k1", Passage("p1", "d1", SHEET, 0, len(SHEET)), cell_or_row("12"), 9.0, "q"),)
    answer = Answer("How much?", (Block(claims),), Outcome.answered)
    cited = citations.of_answer(answer, evidence, lambda _: REPORT)
    assert render.as_text(answer, cited).endswith(
        "Sources\nReport, page 1 — a.pdf\n    Sales — in *tons*\n"
        "                         Q1 <b>\n"
        "    [2][3] North | East    *12*\n"
        "    [1] South                 7"
    )
    assert "| [2][3] North \\| East | **12** |\n| [1] South | 7 |" in render.as_markdown(answer, cited)
    assert '<td><span id="s1">[1]</span></td><td>South</td>' in render.as_html(answer, cited)


def test_a_source_with_several_pages_says_which_words_are_on_which():
    pages = replace(DOCUMENT, pages=(0, 30))
    claims = tuple(Claim("So.", ("k1",), Verdict.supported, carried_by=(words,)) for words in (FIRST, SECOND))
    answer = Answer("How long?", (Block(claims),), Outcome.answered)
    text = render.as_text(answer, citations.of_answer(answer, EVIDENCE, lambda _: pages))
    assert "Policy & <rules> (2025-06-02), pages 1, 2 — policy_1.pdf\n    [1] page 1: “Raw" in text
    assert f"\n    [2] page 2: “{SECOND.text}”" in text


# --- what can be opened ---------------------------------------------------------------------------------------------

COUNTED = replace(WRITTEN, working=Working("90 / 5", (Operand("90", "k1"), Operand("5", "k1")), "18"))
DETAILS = {COUNTED: ("supported: it says so", "working: 90 / 5 = 18", "working: 90: “<b> 90 days”")}


def test_markdown_has_the_working_below_the_answer():
    text = render.as_markdown(*written(Block((COUNTED, WRITTEN))), DETAILS)
    assert (
        "**Working**\n\n- Raw data is kept for 90 days.\n  - supported: it says so\n  - working: 90 / 5 = 18\n" in text
    )
    assert "  - working: 90: “\\<b\\> 90 days”\n" in text


def test_html_has_the_working_behind_a_fold():
    page = render.as_html(*written(Block((COUNTED,))), DETAILS)
    assert "<details><summary>Working: Raw data is kept for 90 days.</summary>" in page
    assert "<li>working: 90 / 5 = 18</li>" in page and "<li>working: 90: “&lt;b&gt; 90 days”</li>" in page
    assert "<details" not in render.as_html(*written(Block((WRITTEN,))))


def test_the_terminal_has_the_working_above_the_sources():
    text = render.as_text(*written(Block((COUNTED, WRITTEN))), DETAILS)
    assert (
        "\n\nWorking\nRaw data is kept for 90 days. [1]\n    supported: it says so\n    working: 90 / 5 = 18\n" in text
    )
    assert text.index("Working") < text.index("Sources")
    assert "Working" not in render.as_text(*written(Block((COUNTED, WRITTEN))))


def sold(column: str, text: str) -> ClaimedCell:
    return ClaimedCell("k1", "r1c1", found=CellFacts("Net <sales>", column, text, "in tons", organisation="Mill Co"))


FROM_CELLS = replace(
    WRITTEN, text="Sales fell.", cells=(sold("2022", "12"), sold("2021", "15"), ClaimedCell("k1", "r9c9"))
)
FACTS = "Net <sales>, Mill Co: 2022: 12; 2021: 15 (in tons)"


@pytest.mark.parametrize("shape", [Shape.prose, Shape.list])
def test_the_facts_of_cells_stand_beside_the_sentence(shape: Shape):
    answer, cited = written(Block((FROM_CELLS, WRITTEN)), shape=shape)
    below = f"Sales fell. [1]\n    {FACTS}\n•" if shape is Shape.list else f"days. [1]\n    {FACTS}\n"
    assert below in render.as_text(answer, cited)
    assert "\n- Net \\<sales\\>, Mill Co: 2022: 12" in render.as_markdown(answer, cited).replace("  -", "-")
    assert '<ul class="facts">\n<li>Net &lt;sales&gt;, Mill Co: 2022: 12; 2021: 15' in render.as_html(answer, cited)


def test_the_facts_of_cells_stand_below_their_table():
    row = replace(FROM_CELLS, text="Sales | 12 | 15")
    text = render.as_text(*written(Block((row,), "What | 2022 | 2021")))
    assert f"Sales    12    15  [1]\n    {FACTS}\n" in text


def test_json_has_the_basis_of_every_claim():
    blocks = (Block((COUNTED, *CLAIMS[:1])), Block((WRITTEN,), opinion=True))
    data = render.as_json(*written(*blocks))
    assert [claim["basis"] for block in data["blocks"] for claim in block["claims"]] == [
        "calculation",
        "quotation",
        "opinion",
    ]


@pytest.mark.parametrize("write", WRITERS)
def test_a_claim_on_which_two_judgements_differ_says_so(write):
    assert "(two judgements differ)" in write(*written(Block((replace(WRITTEN, disputed=True),))))
    assert "judgements" not in write(*written(Block((WRITTEN,))))


def test_what_came_nearest_is_listed_and_a_quotation_stands_in_its_place():
    text = render.as_text(*written(outcome=Outcome.abstained, near=(WRITTEN, CLAIMS[0])))
    assert "• Raw data is kept for 90 days. [1]" in text and "page 1\n    Raw data is kept" in text


@pytest.mark.parametrize("write", WRITERS)
def test_what_a_model_finds_missing_is_told_in_its_clauses(write):
    told = written(Block((WRITTEN,)), gaps=("the costs of 2024", "who pays"), usage=Usage(calls=3))
    assert "Missing: the costs of 2024; who pays." in write(*told)


def test_words_that_begin_at_the_same_place_are_cited_apart():
    short, whole = quote(0, 13), quote(0, 29)
    claims = tuple(
        Claim(text, ("k1",), Verdict.supported, carried_by=(words,))
        for text, words in (("There is raw data.", short), ("It is kept for 90 days.", whole))
    )
    answer = Answer("How long?", (Block(claims),), Outcome.answered)
    cited = citations.of_answer(answer, EVIDENCE, lambda _: DOCUMENT)
    assert [[each.quote for each in citations.cited_by(claim, cited)] for claim in claims] == [[short], [whole]]
