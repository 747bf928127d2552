"""The content shared by the page and the Markdown file of an account: sentences, rows and figures, their citations, and the
environments that print them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from assay.answer.citations import Citation, quotes_of
from assay.answer.render import MARKDOWN, claim_text, remarks
from assay.core.events.describe import count_of
from assay.core.printable import clean_text, one_line
from assay.core.synthesis import (
    EXPERT,
    Approach,
    Coverage,
    Insight,
    Pipeline,
    Portrait,
    Question,
    QuestionKind,
    Readability,
    Relation,
    RelationSide,
    RelationType,
    Synthesis,
    TranslatedSentence,
    Translation,
)
from assay.core.tables import tables_within
from assay.core.types import BETWEEN, Block, Claim, Document, Evidence, Quote, Shape

TITLES = 3  # of documents, where nothing else says what an account is about
QUESTION_KINDS = {
    QuestionKind.theme: "broad theme",
    QuestionKind.workings: "inner workings",
    QuestionKind.comparative: "comparative",
    QuestionKind.follow_up: "follow-up for a thinly covered document",
}
TIES = (
    RelationType.contradiction,
    RelationType.extension,
    RelationType.improvement,
    RelationType.complement,
    RelationType.parallel,
)  # in legend order
SHOWN = (RelationType.contradiction, RelationType.extension)  # on the map, before others are asked for
APPROACHES = {
    Approach.search: "one diverse search for each question",
    Approach.agent: "a short run of the agent for each question",
}
NO_MODEL = "no model: extractive, quotations only"
KEPT = "the claim's own words stand here, since what was written instead did not hold"
MADE = "made of the document's own sentences, since it has no abstract"
NO_RELATIONS = "No relation between documents was found that quotations on both sides bear out."
NO_OTHERS = "No other relation between documents was found that quotations on both sides bear out."
NO_CONTRADICTIONS = "No contradiction was found that quotations on both sides bear out."
PRINTED = (  # names of this module that templates use
    "KEPT MADE NO_RELATIONS NO_OTHERS NO_CONTRADICTIONS QUESTION_KINDS count_of readability is_prose "
    "has_kept omitted_claims byline"
).split()


@dataclass(frozen=True, slots=True)
class Cell:
    """What a document says about a question: an insight, or its best quotation if there is no insight."""

    words: str
    quoted: bool
    citations: tuple[Citation, ...]


@dataclass(frozen=True, slots=True)
class ComparisonTable:
    """Questions × documents, comparative questions first. `left` counts the omitted questions that only one document
    answers."""

    rows: tuple[tuple[Question, Mapping[str, Cell]], ...]
    documents: list[str]  # with a cell in some row
    left: int = 0

    @property
    def lead(self) -> str:
        more = f" {count_of(self.left, 'question')} that one document alone answers: see under Questions."
        return "What each document says to each question; an empty cell means that nothing was found." + (
            more if self.left else ""
        )


@dataclass(frozen=True, slots=True)
class CoverageTable:
    """Coverage by document, with column heads and figures. A summary has no insights and no relations."""

    heads: list[str]
    rows: list[tuple[Coverage, list[int]]]

    @property
    def lead(self) -> str:
        silent = sum(not row.claims for row, _ in self.rows)
        if not silent:
            return "Every document has at least one claim in the account."
        return (
            f"{count_of(silent, 'document')} of {len(self.rows)} {'has' if silent == 1 else 'have'} no claim in the account; "
            "the reason stands in the last column."
        )


def title(account: Synthesis) -> str:
    """What the account is about: its focus, the theme of its plan, or the titles of the first documents."""
    first = [printable(each.title) for each in account.documents[:TITLES] if each.title]
    more = len(account.brief.documents) - len(first)
    titles = "; ".join(first) + (f" and {count_of(more, 'more document')}" if more else "")
    return printable(account.brief.focus) or printable(account.theme) or (titles if first else "Synthesis")


def is_digest(account: Synthesis) -> bool:
    """Whether it is in the documents' words alone. Accounts of earlier versions have relations without a model."""
    return not account.models and all(each.type is RelationType.contradiction for each in account.relations)


def made_by(account: Synthesis) -> str:
    return f"written with {', '.join(map(printable, account.models))}" if account.models else NO_MODEL


def subtitle(account: Synthesis) -> str:
    """`A synthesis of 10 documents, made on 2026-01-01; written with a-model.`"""
    what = "A summary" if account.brief.pipeline is Pipeline.summary else "A synthesis"
    what = "A digest" if is_digest(account) else what
    on = f", made on {printable(account.made_on)}" if account.made_on else ""
    return f"{what} of {count_of(len(account.brief.documents), 'document')}{on}; {made_by(account)}."


def texts(account: Synthesis) -> tuple[tuple[str, Translation | None], ...]:
    """The audiences in requested order. The expert text has no translation and is always included."""
    made = {each.audience: each for each in account.translations}
    order = dict.fromkeys((*account.brief.audiences, EXPERT, *made))
    return tuple((each, made.get(each)) for each in order if each == EXPERT or each in made)


def narrative_remarks(notes: Footnotes) -> list[str]:
    """Remarks beside the claims. Contradictions are left out if they have a section of their own."""
    answer = notes.account.narrative
    deep = notes.account.brief.pipeline is Pipeline.synthesis
    return remarks(replace(answer, conflicts=()) if deep else answer, notes.cited)


def contradictions(account: Synthesis) -> list[tuple[int, Relation]]:
    return _numbered(account, RelationType.contradiction)


def other_relations(account: Synthesis) -> dict[RelationType, list[tuple[int, Relation]]]:
    """All other relations by type, in legend order."""
    kinds = {tie: _numbered(account, tie) for tie in TIES if tie is not RelationType.contradiction}
    return {tie: own for tie, own in kinds.items() if own}


def _numbered(account: Synthesis, tie: RelationType) -> list[tuple[int, Relation]]:
    """The relations of a type with their positions among all, so that a relation has the same number everywhere."""
    return [(n, each) for n, each in enumerate(account.relations, 1) if each.type is tie]


def comparison(notes: Footnotes) -> ComparisonTable:
    account = notes.account
    drawn: dict[str, dict[str, Cell]] = {}
    for insight in account.insights:
        claim = insight.claim
        cell = Cell(printable(claim_text(claim)), claim.quote is not None, tuple(notes.of_claim(claim)))
        drawn.setdefault(insight.question, {})[insight.doc_id] = cell
    for question, keys in account.answers.items():
        for cite in notes.of_keys(keys):
            quoted = Cell(printable(cite.quote.text), True, (cite,))
            drawn.setdefault(question, {}).setdefault(cite.document, quoted)
    asked = sorted(account.questions, key=lambda each: each.kind is not QuestionKind.comparative)
    rows = [(question, drawn[question.id]) for question in asked if drawn.get(question.id)]
    shown_rows = [row for row in rows if len(row[1]) > 1 or row[0].kind is QuestionKind.comparative]
    documents = [doc for doc in account.brief.documents if any(doc in cells for _, cells in shown_rows)]
    return ComparisonTable(tuple(shown_rows), documents, len(rows) - len(shown_rows))


def coverage(account: Synthesis) -> CoverageTable:
    names = ["questions", "evidence", "insights", "claims", "relations"]
    if account.brief.pipeline is Pipeline.summary:
        names = ["questions", "evidence", "claims"]
    rows = [(row, [getattr(row, name) for name in names]) for row in account.ledger]
    return CoverageTable(["Document", *(name.capitalize() for name in names), "Why little or nothing"], rows)


def method(account: Synthesis) -> list[tuple[str, str]]:
    """How the account was made and what it cost, as terms and descriptions."""
    brief, usage = account.brief, account.usage
    by = Counter(printable(each.by) or "rules" for each in account.relations)
    searched = (
        f"{APPROACHES[brief.approach]}, in documents too long to be read whole; of at most {count_of(brief.pool, 'passage')} "
        f"that differ as much as they can, {brief.top} chosen by the reranker “{printable(brief.reranker)}”"
    )
    money = f"${usage.money:.4f}" if usage.money else "no price known"
    spent = (
        f"{count_of(usage.calls, 'call')} of a model, {usage.tokens_in:,} tokens in and {usage.tokens_out:,} out, {money}; "
        f"{usage.seconds:,.0f} seconds"
        if usage.calls
        else "no call of a model"
    )
    asked = f"{len(account.questions)}, {brief.questions} for each document at most"
    lines = [
        ("Pipeline", str(brief.pipeline)),
        ("Made by", made_by(account)),
        ("Questions", asked if account.models else ""),
        ("Search", searched if account.models else ""),
        ("Quotations", "each stands word for word in its document; each claim was checked against what it cites"),
        ("Compared", printable(account.pairing)),
        ("Relations told by", "; ".join(f"{who}: {count}" for who, count in sorted(by.items()))),
        ("Cost", spent),
        ("Run", printable(account.run)),
    ]
    return [(term, text) for term, text in lines if text]


def readability(found: Readability) -> str:
    return (
        f"{count_of(found.words, 'word')}, {found.sentence:.1f} to a sentence, "
        f"reading ease {found.ease:.0f}, grade {found.grade:.1f}"
    )


def is_prose(block: Block, shape: Shape) -> bool:
    """Whether a block is a paragraph. Quotations and other shapes are lists."""
    return shape is Shape.prose and not any(claim.quote for claim in block.claims)


def has_kept(text: Translation) -> bool:
    return any(sentence.kept for paragraph in text.paragraphs for sentence in paragraph.sentences)


def omitted_claims(account: Synthesis, text: Translation) -> list[Claim]:
    claims = account.narrative.claims
    return [claims[place] for place in text.left_out if 0 <= place < len(claims)]


def byline(portrait: Portrait) -> str:
    """`A. Author, B. Author · 2024`, as far as known."""
    return " · ".join(filter(None, (", ".join(map(printable, portrait.authors)), printable(portrait.year))))


# --- citations -------------------------------------------------------------------------------------------------------
# Numbered in reading order. The page and the Markdown file share the numbers.

UNENCODABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")  # invalid in files and in XML
NEXT = 3  # maximum characters between adjacent sentences
UNNAMED = "(no title)"

Cited = Mapping[tuple[str, Quote], Citation]  # by evidence key and words, as in `answer.render`
FindDocument = Callable[[str], Document | None]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Sentences of one section or paragraph, each with whether something is left out before it."""

    under: str
    claims: list[tuple[bool, Claim]]


@dataclass(frozen=True, slots=True)
class Footnotes:
    """An account with its citations resolved: every number refers to words of a document."""

    account: Synthesis
    labels: Mapping[str, str]
    portraits: Mapping[str, Portrait]
    evidence: Mapping[str, Evidence]
    questions: Mapping[str, Question]
    insights: Mapping[str, Insight]
    cited: Cited
    document: FindDocument

    def of_claim(self, claim: Claim) -> list[Citation]:
        """The citations of a claim: its own words if it is a quotation, otherwise the words that carry it."""
        return self._found(quotes_of(claim, self.evidence))

    def excerpts(self, block: Block) -> list[Excerpt]:
        """The sentences of a document under its name, apart where another section or paragraph begins; empty if the block is
        something else."""
        quotes = [claim.quote for claim in block.claims if claim.quote]
        if not block.heading or len(quotes) < len(block.claims) or len({each.doc_id for each in quotes}) != 1:
            return []
        source = self.document(quotes[0].doc_id)
        text = source.text if source else ""
        found: list[Excerpt] = []
        heading = ""
        for last, quote, claim in zip((None, *quotes), quotes, block.claims, strict=False):
            under = source.heading_at(quote.start).rpartition(BETWEEN)[2] if source else ""
            under = "" if printable(under) == self.title(quote.doc_id) else under
            skipped = quote.start - last.end > NEXT if last else False
            parted = last is not None and "\n\n" in text[last.end : quote.start]
            in_table = bool(source and tables_within(source.tables, quote.start, quote.end))
            if last is None or under != heading or in_table or (parted and not under):
                found.append(Excerpt("" if under == heading else under, [(False, claim)]))
                heading = under
            else:
                found[-1].claims.append((skipped, claim))
        return found if len(found) > 1 else [replace(each, under="") for each in found]

    def of_told(self, sentence: TranslatedSentence) -> list[Citation]:
        """The citations of a sentence for an audience: those of the claims that it tells."""
        claims = self.account.narrative.claims
        told = [claims[place] for place in sentence.claims if 0 <= place < len(claims)]
        return in_order(each for claim in told for each in self.of_claim(claim)) or self.of_keys(sentence.cites)

    def of_keys(self, keys: Iterable[str]) -> list[Citation]:
        return self._found((key, self.evidence[key].quote) for key in keys if key in self.evidence)

    def of_question(self, question: str) -> list[Citation]:
        """The citations of what answers a question: the insights drawn for it, or else the evidence found for it."""
        drawn = [each.claim for each in self.account.insights if each.question == question]
        found = in_order(each for claim in drawn for each in self.of_claim(claim))
        return found or self.of_keys(self.account.answers.get(question, ()))

    def of_side(self, side: RelationSide) -> list[Citation]:
        return self._found([(side.key, side.quote)])

    def label(self, doc_id: str) -> str:
        return self.labels.get(doc_id, "D?")

    def title(self, doc_id: str) -> str:
        portrait = self.portraits.get(doc_id)
        return printable(portrait.title) or UNNAMED if portrait else UNNAMED

    def where(self, citation: Citation) -> str:
        """`page 3 · Methods › Sampling`, as far as known: where the quotation begins, or, without its document, its passage."""
        source = self.document(citation.document)
        if source is not None:
            number, heading = source.page_at(citation.quote.start), source.heading_at(citation.quote.start)
            page = f"page {number}" if number else ""
        else:
            page = f"passage from page {citation.page}" if citation.page else ""
            heading = self.evidence[citation.key].passage.heading if citation.key in self.evidence else ""
        below = printable(heading).removeprefix(citation.title).removeprefix(" › ")  # the title is printed beside it
        return " · ".join(part for part in (page, below) if part)

    def questions_of(self, relation: Relation) -> list[str]:
        """The questions that the two insights of a relation answer, without duplicates."""
        both = (self.question_of(side.insight) for side in (relation.left, relation.right))
        return list(dict.fromkeys(filter(None, both)))

    def question_of(self, insight: str) -> str:
        """The question that an insight answers."""
        found = self.insights.get(insight)
        question = self.questions.get(found.question) if found else None
        return printable(question.text) if question else ""

    def _found(self, places: Iterable[tuple[str, Quote]]) -> list[Citation]:
        return in_order(self.cited[place] for place in places if place in self.cited)


def in_order(citations: Iterable[Citation]) -> list[Citation]:
    """The citations by number, without duplicates."""
    return sorted({each.number: each for each in citations}.values(), key=lambda each: each.number)


def footnotes(account: Synthesis, document: FindDocument = lambda _: None) -> Footnotes:
    """The account with its citations numbered: first those of the narrative, then of the spine, relations and insights, at
    last unused evidence. Equal spans share one number, whichever evidence contains them."""
    portraits = {each.doc_id: each for each in account.documents}
    evidence = {each.key: each for each in account.evidence}
    questions = {each.id: each for each in account.questions}
    insights = {each.id: each for each in account.insights}
    cited: dict[tuple[str, Quote], Citation] = {}
    spans: dict[Quote, Citation] = {}
    for key, quote in _in_order(account, evidence):
        if key in evidence:
            new = _citation(len(spans) + 1, evidence[key], quote, portraits.get(quote.doc_id))
            cited.setdefault((key, quote), spans.setdefault(quote, new))
    return Footnotes(account, account.labels, portraits, evidence, questions, insights, cited, document)


def _citation(number: int, own: Evidence, quote: Quote, of: Portrait | None) -> Citation:
    title, authors, year = (printable(of.title), of.authors, of.year) if of else ("", (), None)
    page, flagged = own.passage.page, own.flagged
    return Citation(number, own.key, quote.doc_id, title or UNNAMED, authors, year, "", page, quote, flagged)


def abstract(portrait: Portrait) -> str:
    """The abstract of a document as one paragraph, with an ellipsis where its sentences are not adjacent."""
    text, end = "", 0
    for quote in portrait.abstract:
        text += (" " if quote.start - end <= NEXT else " … ") * bool(text) + printable(quote.text)
        end = quote.end
    return text


def printable(words: str) -> str:
    """Words on one line, without invisible or unencodable characters, so that the displayed text is the actual text."""
    return UNENCODABLE.sub("\ufffd", one_line(clean_text(words)))


def _in_order(account: Synthesis, evidence: Mapping[str, Evidence]):
    for claim in (*account.narrative.claims, *account.narrative.near, *(beat.claim for beat in account.spine)):
        yield from quotes_of(claim, evidence)
    for relation in account.relations:
        yield from ((side.key, side.quote) for side in (relation.left, relation.right))
    for insight in account.insights:
        yield from quotes_of(insight.claim, evidence)
    retold = (text for each in account.translations for part in each.paragraphs for text in part.sentences)
    for key in (*(key for text in retold for key in text.cites), *(k for own in account.answers.values() for k in own)):
        if key in evidence:
            yield key, evidence[key].quote


# --- templates -------------------------------------------------------------------------------------------------------
# Every printed value is stripped of invisible characters and escaped for its format. Only `Markup` (our own files and macros)
# is printed unescaped.

LINE_START = re.compile(r"^(?:[-+=]|\d+[.)](?=\s|$))")  # would start a list or a heading


@cache
def template(name: str) -> Template:
    """A Markdown, HTML or SVG template."""
    printed = (lambda words: Markup(md(words))) if name.endswith(".md") else printable
    environment = Environment(
        loader=PackageLoader("assay.synthesis"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=lambda value: printed(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    environment.filters["fixed"] = lambda value, digits=1: f"{value:.{digits}f}"
    environment.filters["short"] = lambda value: f"{value:g}"
    return environment.get_template(name)


def md(words: str) -> str:
    """Escape words so that they format nothing, anywhere on a line."""
    safe = MARKDOWN.sub(r"\\\1", printable(words))
    start = LINE_START.match(safe)
    return f"{safe[: start.end() - 1]}\\{safe[start.end() - 1 :]}" if start else safe


@cache
def asset(name: str) -> Markup:
    """A style sheet or script of the package."""
    return Markup((resources.files("assay.synthesis") / "templates" / name).read_text(encoding="utf-8"))
