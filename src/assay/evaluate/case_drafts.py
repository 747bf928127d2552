"""Cases drafted from what a workspace holds: reviewers' decisions, feedback, and questions that its documents answer.

A person corrects them before they are asked. A draft that says nothing about the right answer is not yet complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from assay.answer.render import claim_text
from assay.answer.suggest import AnsweredQuestion, questions_of
from assay.core.errors import UserError
from assay.core.events import Decision, FeedbackKind
from assay.core.printable import one_line
from assay.core.types import Answer, Document, Evidence, Outcome, file_name
from assay.evaluate.cases import Case
from assay.workspace.facade import Workspace

MOST = 10_000  # decisions and feedback that are read
OBJECTIONS = (FeedbackKind.wrong, FeedbackKind.incomplete)
SHOWN = 400  # characters of a passage in a note


def from_reviews(opened: Workspace) -> list[Case]:
    """What reviewers decided. An approved answer says what is right; one that was edited or rejected is graded wrong."""
    found: dict[str, Case] = {}
    for sheet, reviewed in reversed(opened.reviews.decided(MOST)):  # the oldest first
        run, text = sheet.line.review.run, answer_text(sheet.answer)
        if not sheet.open:
            continue
        earlier = found.get(run)
        if reviewed.decision is Decision.approve:
            refused = earlier.given if earlier else ""
            case = _expected(opened, sheet.line.question, sheet.answer, sheet.evidence)
            found[run] = _graded(case, refused or text, not refused, "reviewed", reviewed.note)
        elif earlier is None:
            tag = f"reviewed: {reviewed.decision}"
            found[run] = _graded(Case(sheet.line.question), text, False, tag, reviewed.note)
    return list(found.values())


def from_feedback(opened: Workspace) -> list[Case]:
    """What the person at the command line said of answers. A helpful answer says what is right."""
    found: dict[str, Case] = {}
    for item in reversed(opened.questions.feedback(limit=MOST)):
        given = item.entry.given
        if item.entry.withheld or not item.question:
            continue
        run = opened.questions.run(given.run)
        if run.answer is None:
            continue
        if (earlier := found.get(given.run)) and earlier.grade is False:
            continue  # one objection outweighs praise
        kind, tag = given.kind, f"feedback: {given.kind}"
        note = "; ".join(filter(None, (item.statement and f"{kind}: {item.statement}", given.words)))
        if kind is FeedbackKind.helpful and given.claim is None:
            case, grade = _expected(opened, run.question, run.answer, run.evidence), True
        else:
            case = Case(run.question, points=(item.statement,) if kind is FeedbackKind.helpful else ())
            grade = False if kind in OBJECTIONS else None
        found[given.run] = _graded(case, answer_text(run.answer), grade, tag, note)
    return list(found.values())


def suggested(opened: Workspace, count: int) -> list[Case]:
    """So many questions that the documents answer, by rule, spread over the documents; each with its place in the note."""
    entries = sorted(
        (each for each in opened.documents.listing() if not each.off), key=lambda entry: (entry.name, entry.id)
    )
    streams = [_drafts(opened, entry.id) for entry in entries]
    found: dict[str, Case] = {}
    for row in zip_longest(*streams):
        for case in filter(None, row):
            found.setdefault(case.question, case)
            if len(found) == count:
                return list(found.values())
    if not found:
        raise UserError("The documents suggest no questions. `assay sources` lists them.")
    return list(found.values())


def _drafts(opened: Workspace, document: str) -> Iterator[Case]:
    if (found := opened.documents.get(document)) is not None:
        yield from (_draft(found, each) for each in questions_of(found))


def _draft(document: Document, asked: AnsweredQuestion) -> Case:
    """A question with the passage that answers it."""
    name, page = file_name(document.uri), document.page_at(asked.start)
    passage = one_line(document.text[asked.start : asked.end])
    return Case(
        asked.question,
        asked.answer,
        documents=(name,),
        pages=(f"{name}:{page}",) if page else (),
        tags=("suggested",),
        note=passage if len(passage) <= SHOWN else f"{passage[:SHOWN]} …",
    )


def answer_text(answer: Answer) -> str:
    """What an answer says, on one line."""
    return one_line(answer.said) or " ".join(map(claim_text, answer.claims))


def _expected(opened: Workspace, question: str, answer: Answer, evidence: Sequence[Evidence]) -> Case:
    """What an answer that a person calls right leads one to expect."""
    if answer.outcome is Outcome.abstained:
        return Case(question, abstain=True)
    cited = {each.passage.doc_id for each in evidence if each.key in answer.cited_keys}
    documents = sorted(file_name(each.uri) for each in map(opened.documents.get, cited) if each)
    return Case(question, points=tuple(map(claim_text, answer.claims)), documents=tuple(documents))


def _graded(case: Case, given: str, grade: bool | None, tag: str, note: str) -> Case:
    """A case with an answer that a person has graded."""
    if grade is None or not given:
        given, grade = "", None
    return replace(case, given=given, grade=grade, tags=(tag,), note=note)
