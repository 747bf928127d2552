"""The content shared by the page and the Markdown file of an account: sentences, rows and figures, without markup.
Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from assay.answer.render import Citation, claim_text, remarks
from assay.core.synthesis import (
    EXPERT,
    Approach,
    Coverage,
    Pipeline,
    Portrait,
    Question,
    QuestionKind,
    Readability,
    Relation,
    RelationType,
    Synthesis,
    Translation,
)
from assay.core.types import Block, Claim, Shape
from assay.synthesis.output.footnotes import Footnotes, printable

MANY = 12  # above this many documents, the comparison is too wide for paper
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
    "KEPT MADE NO_RELATIONS NO_OTHERS NO_CONTRADICTIONS QUESTION_KINDS plural readability readability_in_short is_prose "
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
    def is_wide(self) -> bool:
        return len(self.documents) > MANY

    @property
    def lead(self) -> str:
        more = f" {plural(self.left, 'question')} that one document alone answers: see under Questions."
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
            f"{plural(silent, 'document')} of {len(self.rows)} {'has' if silent == 1 else 'have'} no claim in the account; "
            "the reason stands in the last column."
        )


def title(account: Synthesis) -> str:
    return printable(account.brief.focus) or printable(account.question) or "Synthesis"


def made_by(account: Synthesis) -> str:
    return f"written with {', '.join(map(printable, account.models))}" if account.models else NO_MODEL


def subtitle(account: Synthesis) -> str:
    """`A synthesis of 10 documents, made on 2026-01-01; written with a-model.`"""
    what = "A summary" if account.brief.pipeline is Pipeline.summary else "A synthesis"
    on = f", made on {printable(account.made_on)}" if account.made_on else ""
    return f"{what} of {plural(len(account.brief.documents), 'document')}{on}; {made_by(account)}."


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def texts(account: Synthesis) -> tuple[tuple[str, Translation | None], ...]:
    """The audiences in requested order. The expert text has no translation and is always included."""
    made = {each.audience: each for each in account.translations}
    wanted = [each for each in account.brief.audiences if each == EXPERT or each in made]
    rest = [each for each in (EXPERT, *made) if each not in wanted]
    return tuple((each, made.get(each)) for each in dict.fromkeys([*wanted, *rest]))


def narrative_remarks(notes: Footnotes) -> list[str]:
    """Remarks beside the claims. Contradictions are left out if they have a section of their own."""
    account = notes.account
    deep = account.brief.pipeline is Pipeline.synthesis
    return remarks(replace(account.narrative, conflicts=()) if deep else account.narrative, notes.cited)


def contradictions(account: Synthesis) -> list[tuple[int, Relation]]:
    """Contradictions with their positions among all relations, so that a relation has the same number everywhere."""
    return [(n, each) for n, each in enumerate(account.relations, 1) if each.type is RelationType.contradiction]


def other_relations(account: Synthesis) -> dict[RelationType, list[tuple[int, Relation]]]:
    """All other relations by type, in legend order."""
    numbered = list(enumerate(account.relations, 1))
    kinds = {tie: [(n, each) for n, each in numbered if each.type is tie] for tie in TIES}
    return {tie: own for tie, own in kinds.items() if own and tie is not RelationType.contradiction}


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


def type_counts(account: Synthesis) -> dict[str, int]:
    """The number of relations of each type: from the diagnostics, otherwise counted."""
    counted = account.diagnostics.types or Counter(str(each.type) for each in account.relations)
    return {str(tie): counted.get(str(tie), 0) for tie in TIES}


def method(account: Synthesis) -> list[tuple[str, str]]:
    """How the account was made and what it cost, as terms and descriptions."""
    brief, usage = account.brief, account.usage
    by = Counter(printable(each.by) or "rules" for each in account.relations)
    rerankers = (
        f"{APPROACHES[brief.approach]}, in documents too long to be read whole; of at most {plural(brief.pool, 'passage')} "
        f"that differ as much as they can, {brief.top} chosen by the reranker “{printable(brief.reranker)}”"
    )
    money = f"${usage.money:.4f}" if usage.money else "no price known"
    spent = (
        f"{plural(usage.calls, 'call')} of a model, {usage.tokens_in:,} tokens in and {usage.tokens_out:,} out, {money}"
        if usage.calls
        else "no call of a model"
    )
    lines = [
        ("Pipeline", str(brief.pipeline)),
        ("Made by", made_by(account)),
        (
            "Questions",
            f"{len(account.questions)}, {brief.questions} for each document at most" if account.models else "",
        ),
        ("Search", rerankers if account.models else ""),
        ("Quotations", "each stands word for word in its document; each claim was checked against what it cites"),
        ("Compared", printable(account.pairing)),
        ("Relations told by", "; ".join(f"{who}: {count}" for who, count in sorted(by.items()))),
        ("Cost", f"{spent}; {usage.seconds:,.0f} seconds"),
        ("Run", printable(account.run)),
    ]
    return [(term, text) for term, text in lines if text]


def readability(found: Readability) -> str:
    return (
        f"{plural(found.words, 'word')}, {found.sentence:.1f} to a sentence, Flesch reading ease {found.ease:.0f} "
        f"(100 is easy, 0 hard), Flesch-Kincaid grade {found.grade:.1f}"
    )


def readability_in_short(found: Readability) -> str:
    return (
        f"{plural(found.words, 'word')}, {found.sentence:.1f} to a sentence, "
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
