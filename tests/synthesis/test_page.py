from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from accounts_by_hand import account
from selectolax.lexbor import LexborHTMLParser

from assay.core.synthesis import Pipeline, RelationType, Synthesis, Theme
from assay.core.types import Answer, Block, Claim, Outcome, Quote
from assay.synthesis.circle import overlap
from assay.synthesis.render import html

SHOTS = os.environ.get(
    "ASSAY_SCREENSHOTS"
)  # where pictures of the page are kept; read before a test clears the environment
HOSTILE = """</script></style></title><script>alert(1)</script><img src=x onerror=alert(2)>" onfocus='alert(3)' &amp;
<!-- ]]> {{7*7}} {title} %s \x00\x1b[31m\u202etxt\u202c\u200b\ud800"""
KEYS = frozenset({"id", "key", "doc_id", "insight", "question", "documents", "cites", "run"})


def parsed(made: Synthesis) -> LexborHTMLParser:
    return LexborHTMLParser(html(made))


def text(page: LexborHTMLParser, where: str) -> str:
    return " ".join(page.css_first(where).text(separator=" ").split())


def with_words(value: Any, words: str, name: str = "") -> Any:
    """The same value with these words added wherever a document or a model may have written something."""
    if isinstance(value, Enum) or name in KEYS:
        return value
    if isinstance(value, str):
        return value + words if value else value
    if isinstance(value, tuple):
        return tuple(with_words(each, words, name) for each in value)
    if isinstance(value, dict) or not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(
        value, **{each.name: with_words(getattr(value, each.name), words, each.name) for each in fields(value)}
    )


def shape(page: LexborHTMLParser) -> list[tuple[str, tuple[str, ...]]]:
    """What the page is made of, but for the lines that names on the map are broken into."""
    return [(each.tag, tuple(sorted(each.attributes))) for each in page.css("*") if each.tag != "tspan"]


# --- what stands on it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("documents", [1, 3, 10, 60])
def test_every_link_leads_to_something_on_the_page_and_nothing_is_there_twice(documents: int):
    page = parsed(account(documents))
    ids = Counter(each.attributes["id"] for each in page.css("[id]"))
    assert not [name for name, count in ids.items() if count > 1]
    links = {each.attributes["href"] for each in page.css("[href]")}
    assert links and all(link.startswith("#") and link[1:] in ids for link in links)


def test_the_page_has_all_its_parts():
    page = parsed(account(10))
    parts = "account spine coverage map comparison contradictions relations questions documents quotations diagnostics method"
    assert [each.attributes["id"] for each in page.css("main > section")] == parts.split()
    assert page.css_first("html").attributes["lang"] == "en"


def test_a_summary_has_no_relations_and_shows_what_each_document_says_all_the_same():
    made = account(10, pipeline=Pipeline.summary)
    page = parsed(made)
    assert not page.css("#map, #contradictions, #relations, #spine")
    assert "summary of 10 documents" in text(page, "header")
    assert made.evidence[0].quote.text in text(page, "#comparison")


def test_an_account_without_a_model_says_so():
    assert "no model: extractive, quotations only" in text(parsed(account(10, model="")), "header")
    assert "no model" not in text(parsed(account(10)), "header")


def test_an_account_without_a_model_has_contradictions_and_no_map_of_them():
    made = account(10, model="")
    disputed = tuple(each for each in made.relations if each.type is RelationType.contradiction)
    page = parsed(replace(made, relations=disputed))
    assert page.css("#contradictions") and not page.css("#map, #relations")
    assert parsed(made).css("#map"), "as an earlier version has recorded it"


def test_every_claim_is_told_with_citations_that_hold_its_quotation():
    made = account(10)
    page = parsed(made)
    words = {each.key: each.quote.text for each in made.evidence}
    told = text(page, "#account .panel")
    for claim in made.narrative.claims:
        assert claim.words in told
    quoted = [each.text() for each in page.css("#account .panel details.cite q")]
    assert {words[key] for claim in made.narrative.claims for key in claim.cites} <= set(quoted)


def test_a_number_means_the_same_words_everywhere():
    page = parsed(account(10))
    listed = {each.attributes["id"][1:]: each.css_first("q").text() for each in page.css("#quotations li")}
    opened = [(each.css_first("summary").text().strip("[]"), each.css_first("q").text()) for each in page.css(".cite")]
    assert opened and all(listed[number] == quoted for number, quoted in opened)


def test_two_quotations_of_one_passage_have_their_own_numbers_and_words():
    made = account(3)
    own = made.evidence[0]
    words = own.passage.text
    opening, closing = (
        Quote("doc1", own.passage.start + words.index(part), own.passage.start + words.index(part) + len(part), part)
        for part in ("As the survey notes", "The reasons are given below.")
    )
    claims = tuple(Claim("", (own.key,), quote=each) for each in (opening, closing))
    page = parsed(replace(made, narrative=Answer("q", (Block(claims),), Outcome.answered), translations=()))
    opened = [(each.css_first("summary").text(), each.css_first("q").text()) for each in page.css("#account .cite")]
    assert opened == [("[1]", opening.text), ("[2]", closing.text)]


def test_the_same_words_at_the_same_place_have_one_number_whichever_evidence_holds_them():
    made = account(3)
    first, second = made.evidence[:2]
    again = replace(second, passage=replace(first.passage, id="other"), quote=first.quote)
    page = parsed(replace(made, evidence=(first, again, *made.evidence[2:]), relations=()))
    listed = [each.css_first("q").text() for each in page.css("#quotations li")]
    assert len(listed) == len(set(listed)) == len(made.evidence) - 1


def test_a_heading_that_is_the_title_is_not_said_twice():
    made = account(3)
    headed = tuple(
        replace(each, passage=replace(each.passage, heading=f"{made.documents[0].title} › Pumps"))
        for each in made.evidence
    )
    footer = text(parsed(replace(made, evidence=headed)), "#c1 footer")
    assert footer.count(made.documents[0].title) == 1 and footer.endswith("· Pumps")


def test_a_document_that_says_nothing_is_listed_with_the_reason_and_one_that_cannot_be_read_too():
    page = parsed(account(10))
    rows = [" ".join(each.text(separator=" ").split()) for each in page.css("#coverage tbody tr")]
    assert len(rows) == 10 and "nothing in it was found to bear on the questions" in rows[8]
    assert "a scan without text" in text(page, "#D10")


def test_a_contradiction_stands_with_both_quotations_and_the_reason():
    made = account(10)
    page = parsed(made)
    for number, relation in enumerate(made.relations, 1):
        told = text(page, f"#r{number}")
        for words in (relation.reason, relation.left.quote.text, relation.right.quote.text, relation.type):
            assert words in told
        inside = page.css_first(f"#contradictions #r{number}")
        assert (inside is not None) == (relation.type == "contradiction")


def test_retold_words_that_were_kept_and_analogies_are_marked():
    page = parsed(account(10))
    plain = page.css("#account .panel")[1]
    assert "Analogy" in plain.css_first("aside").text()
    assert len(plain.css("b.kept[title]")) == len(account(10).narrative.claims) // 5


def test_an_abstract_made_of_sentences_is_marked():
    made = account(10)
    page = parsed(made)
    marked = ["own sentences" in text(page, f"#D{place}") for place in range(1, 11)]
    assert marked == [each.made and not each.empty for each in made.documents] and any(marked)


def test_comparative_questions_come_first_and_cells_hold_insights_with_their_citation():
    made = account(10)
    page = parsed(made)
    assert "comparative" in page.css_first("#comparison tbody th").text()
    cells = [each.text() for each in page.css("#comparison td")]
    assert all(any(each.claim.words in cell and "[" in cell for cell in cells) for each in made.insights)


def test_an_account_with_nothing_in_it_is_still_a_page():
    made = account(1)
    empty = replace(
        made,
        documents=(),
        questions=(),
        answers={},
        evidence=(),
        insights=(),
        spine=(),
        theme="",
        narrative=Answer("q", (), Outcome.abstained, stopped="exhausted"),
        translations=(),
        ledger=(),
    )
    page = parsed(empty)
    assert "do not answer this" in text(page, "#account") and page.css_first("#D1") is not None


def test_a_claim_whose_evidence_is_gone_is_told_without_a_number_and_nothing_breaks():
    made = account(3)
    gone = replace(
        made,
        evidence=made.evidence[1:],
        narrative=Answer("q", (Block((Claim("It is so.", ("k0000",)),)),), Outcome.answered),
    )
    page = parsed(gone)
    assert "It is so." in text(page, "#account") and not page.css("#account .panel")[0].css_first(".cite")


# --- what it must not do --------------------------------------------------------------------------------------------


def test_what_documents_and_models_say_is_never_markup():
    made = replace(account(10), themes=(Theme("One", ("doc1",)), Theme("Two", ("doc2",))))
    hostile = with_words(made, HOSTILE)
    page = LexborHTMLParser(html(hostile))
    assert shape(page) == shape(LexborHTMLParser(html(with_words(made, " and more"))))
    assert len(page.css("script")) == 1 and not page.css("img")
    assert not [name for each in page.css("*") for name in each.attributes if name.startswith("on")]


def test_what_cannot_be_seen_is_not_on_the_page():
    made = html(with_words(account(3), HOSTILE))
    made.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\u200b\u202a-\u202e\u2066-\u2069\ud800-\udfff]", made)


def test_the_page_asks_for_nothing_and_runs_one_script_that_is_named_by_its_digest():
    page = parsed(account(3))
    policy = page.css_first("meta[http-equiv]").attributes["content"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("script-src")[1]
    assert not page.css("link, iframe, object, embed, base, [src]") and "@import" not in html(account(3))
    assert not re.search(r"url\(|https?://(?!www\.w3\.org/2000/svg)", html(account(3)))


# --- in a browser ---------------------------------------------------------------------------------------------------


class Opened:
    """A page in a browser, with all that it complained of and asked for."""

    def __init__(self, browser: Any, folder: Path, made: Synthesis, name: str, **context: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{name}.html"
        file.write_text(html(made), encoding="utf-8")
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_context(**context).new_page()
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", lambda route: route.continue_() if self._own(route, file) else route.abort())
        self.page.goto(file.as_uri())

    def _own(self, route: Any, file: Path) -> bool:
        if route.request.url.split("#")[0] == file.as_uri():
            return True
        self.requests.append(route.request.url)
        return False


@pytest.fixture
def shown(browser: Any, tmp_path: Path):
    """Opens an account in a browser; in the end it has complained of nothing and asked for nothing."""
    opened: list[Opened] = []

    def show(made: Synthesis, name: str, *, width: int = 1280, dark: bool = False, script: bool = True) -> Any:
        each = Opened(
            browser,
            tmp_path,
            made,
            name,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        opened.append(each)
        return each.page

    yield show
    for each in opened:
        assert not each.complaints and not each.requests
        each.page.context.close()


def picture(page: Any, folder: Path, name: str, *parts: str) -> None:
    """Pictures of parts of the page, for people to look at."""
    kept = Path(SHOTS) if SHOTS else folder
    kept.mkdir(parents=True, exist_ok=True)
    for part in parts:
        page.locator(f"#{part}").evaluate("each => each.scrollIntoView()")
        page.screenshot(path=kept / f"{name}-{part}.png")


PARTS = ("account", "map", "comparison", "contradictions")
CORNERS = """each => { const box = each.getBBox(), turn = each.getScreenCTM();
  return [[box.x, box.y], [box.x + box.width, box.y], [box.x + box.width, box.y + box.height], [box.x, box.y + box.height]]
    .map(([x, y]) => new DOMPoint(x, y).matrixTransform(turn)).map((point) => [point.x, point.y]); }"""


@pytest.mark.parametrize("documents", [3, 10, 60])
def test_names_on_the_map_do_not_overlap_and_nothing_is_cut_off(shown: Any, tmp_path: Path, documents: int):
    page = shown(account(documents), f"{documents}-documents")
    picture(page, tmp_path, f"{documents}-documents", *PARTS)
    boxes = [each.evaluate(CORNERS) for each in page.locator(".relation-map text.name").all()]
    assert len(boxes) >= documents
    assert not [(a, b) for place, a in enumerate(boxes) for b in boxes[:place] if overlap(a, b)]
    around = page.locator(".relation-map").evaluate(
        "each => { const r = each.getBoundingClientRect(); return [r.x, r.y, r.right, r.bottom] }"
    )
    assert all(around[0] <= x <= around[2] and around[1] <= y <= around[3] for box in boxes for x, y in box)


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, True)])
def test_the_page_fits_a_phone_and_is_dark_where_that_is_wanted(shown: Any, tmp_path: Path, width: int, dark: bool):
    page = shown(account(10), "10-documents", width=width, dark=dark)
    picture(page, tmp_path, "10-documents-dark" if dark else "10-documents-phone", *PARTS)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) is dark


def test_a_citation_opens_where_it_stands_by_mouse_and_by_key(shown: Any):
    page = shown(account(10), "citation")
    for place, act in enumerate(("click", "press")):
        cite = page.locator("#account details.cite:visible").nth(place)
        assert not cite.locator("blockquote").is_visible()
        cite.locator("summary").click() if act == "click" else cite.locator("summary").press("Enter")
        assert cite.locator("blockquote").is_visible()


def test_a_line_that_is_pointed_at_or_reached_by_key_shows_both_quotations(shown: Any, tmp_path: Path):
    made = account(10)
    page = shown(made, "pointing")
    line = page.locator(".relation-map a.edge").last
    relation = made.relations[int(line.get_attribute("href").removeprefix("#r")) - 1]
    tip = page.locator("#pointed")
    assert tip.is_hidden()
    line.focus()
    assert tip.is_visible()
    for words in (relation.left.quote.text, relation.right.quote.text, relation.reason):
        assert words in tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    line.scroll_into_view_if_needed()
    at = line.locator(".line").evaluate(
        "each => { const p = each.getPointAtLength(each.getTotalLength() * 0.3).matrixTransform(each.getScreenCTM());"
        "return [p.x, p.y] }"
    )
    page.mouse.move(*at)
    assert tip.is_visible()
    assert relation.left.quote.text in tip.inner_text() and relation.right.quote.text in tip.inner_text()
    page.screenshot(path=(Path(SHOTS) if SHOTS else tmp_path) / "10-documents-pointing.png")


def test_a_type_of_line_can_be_hidden_and_a_reader_chosen_without_a_script(shown: Any):
    page = shown(account(10), "no-script", script=False)
    drawn = "each => getComputedStyle(each).display !== 'none'"  # a straight line has no box, and counts as unseen
    assert page.locator("a.edge.contradiction").first.evaluate(drawn)
    assert not page.locator("a.edge.parallel").first.evaluate(drawn), "on demand"
    page.locator("#show-parallel").check()
    assert page.locator("a.edge.parallel").first.evaluate(drawn)
    page.locator("label[for=reader-2]").click()
    assert "Put simply" in page.locator(".panel:visible").inner_text()
    page.locator("#account details.cite:visible summary").first.click()
    assert page.locator("#account details.cite:visible blockquote").first.is_visible()


def test_a_link_opens_what_it_leads_to(shown: Any):
    page = shown(account(60), "60-links")
    target = page.locator("#relations article").first
    assert target.is_hidden()
    page.evaluate(f"location.hash = '#{target.get_attribute('id')}'")
    target.wait_for(state="visible", timeout=5000)


def test_a_hostile_account_runs_nothing(shown: Any):
    page = shown(with_words(account(3), HOSTILE), "hostile")
    assert page.locator("script").count() == 1 and page.locator("img").count() == 0
