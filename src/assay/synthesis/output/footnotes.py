"""Numbers the citations of an account in reading order. The page and the Markdown file share the numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from assay.answer.render import Citation, one_line, quotes_of
from assay.core.printable import clean_text
from assay.core.synthesis import Insight, Portrait, Question, Relation, RelationSide, Synthesis, TranslatedSentence
from assay.core.types import Claim, Document, Evidence, Quote

UNENCODABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")  # invalid in files and in XML
NEXT = 3  # maximum characters between adjacent sentences
UNNAMED = "(no title)"

Cited = Mapping[tuple[str, Quote], Citation]  # by evidence key and words, as in `answer.render`
FindDocument = Callable[[str], Document | None]


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

    def where_of_side(self, side: RelationSide) -> str:
        return " · ".join(filter(None, map(self.where, self.of_side(side))))

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
    portraits = {each.doc_id: each for each in account.documents}
    evidence = {each.key: each for each in account.evidence}
    return Footnotes(
        account,
        account.labels,
        portraits,
        evidence,
        {each.id: each for each in account.questions},
        {each.id: each for each in account.insights},
        _numbered(account, evidence, portraits),
        document,
    )


def abstract(portrait: Portrait) -> str:
    """The abstract of a document as one paragraph, with an ellipsis where its sentences are not adjacent."""
    text = ""
    end = 0
    for quote in portrait.abstract:
        text += (" " if quote.start - end <= NEXT else " … ") * bool(text) + printable(quote.text)
        end = quote.end
    return text


def printable(words: str) -> str:
    """Words on one line, without invisible or unencodable characters, so that the displayed text is the actual text."""
    return UNENCODABLE.sub("\ufffd", one_line(clean_text(words)))


def _numbered(
    account: Synthesis, evidence: Mapping[str, Evidence], portraits: Mapping[str, Portrait]
) -> dict[tuple[str, Quote], Citation]:
    """Number the citations: first the narrative, then the spine, relations and insights, at last unused evidence."""
    found: dict[tuple[str, Quote], Citation] = {}
    spans: dict[Quote, Citation] = {}  # equal spans share one number, whichever evidence contains them
    for key, quote in _in_order(account, evidence):
        if key not in evidence:
            continue
        own = evidence[key]
        portrait = portraits.get(quote.doc_id)
        citation = spans.setdefault(
            quote,
            Citation(
                len(spans) + 1,
                key,
                quote.doc_id,
                (printable(portrait.title) if portrait else "") or UNNAMED,
                portrait.authors if portrait else (),
                portrait.year if portrait else None,
                "",
                own.passage.page,
                quote,
                own.flagged,
            ),
        )
        found.setdefault((key, quote), citation)
    return found


def _in_order(account: Synthesis, evidence: Mapping[str, Evidence]):
    claims = (*account.narrative.claims, *account.narrative.near, *(beat.claim for beat in account.spine))
    for claim in claims:
        yield from quotes_of(claim, evidence)
    for relation in account.relations:
        yield from ((side.key, side.quote) for side in (relation.left, relation.right))
    for insight in account.insights:
        yield from quotes_of(insight.claim, evidence)
    retold = (text for each in account.translations for part in each.paragraphs for text in part.sentences)
    for key in (*(key for text in retold for key in text.cites), *(k for own in account.answers.values() for k in own)):
        if key in evidence:
            yield key, evidence[key].quote
