"""A user's own questions with what is expected of the answers: JSON lines, or a spreadsheet with the same columns. Drafts of
some come from what a workspace holds: reviewers' decisions, feedback, and questions that its documents answer. A person
corrects them before they are asked: one that says nothing about the right answer is not yet complete."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from assay.answer.render import claim_text
from assay.core.codec import digest, dumps, to_json
from assay.core.errors import UserError
from assay.core.events import Decision, FeedbackKind
from assay.core.printable import one_line
from assay.core.private_files import write_private
from assay.core.types import Answer, Document, Evidence, Outcome, file_name, omitted_when_empty
from assay.governance.reports.report import escape_formula
from assay.ingest.formats.xlsx import first_sheet
from assay.ingest.parsed import FileLimits, Refused
from assay.workspace.facade import Workspace
from assay.workspace.suggest import AnsweredQuestion, questions_of

COLUMNS = tuple("question answer points documents pages abstain tags follow_ups given grade note".split())
LISTS = ("points", "documents", "pages", "tags")
YES = frozenset({"1", "true", "yes", "x", "right"})
NO = frozenset({"0", "false", "no", "wrong"})
SPREADSHEETS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Case:
    """A question and what its answer must say.

    answer: accepted if the answer contains it, or its numbers within their rounding
    points: statements that the answer must cover
    documents, pages: where the evidence is; a page is written NAME:12
    abstain: whether the documents have no answer
    follow_ups: further cases of the same conversation
    given, grade: an answer that somebody got, and whether a person calls it right; whoever grades is measured by them
    note: for whoever edits the case; it decides nothing
    """

    question: str
    answer: str = ""
    points: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    abstain: bool = False
    tags: tuple[str, ...] = ()
    follow_ups: tuple[Case, ...] = field(default=())
    given: str = omitted_when_empty("")
    grade: bool | None = omitted_when_empty(None)
    note: str = omitted_when_empty("")

    @property
    def id(self) -> str:
        """Of the question and what is expected: what changes the answer or its grade."""
        return digest(dumps(to_json(replace(self, tags=(), given="", grade=None, note=""))))[:16]

    @property
    def is_complete(self) -> bool:
        """Whether it says anything about the answer."""
        return bool(self.answer or self.points or self.documents or self.pages or self.abstain)

    @property
    def expects_text(self) -> bool:
        """Whether it says what the answer says."""
        return bool(self.answer or self.points)

    def with_follow_ups(self) -> list[Case]:
        return [self, *(each for one in self.follow_ups for each in one.with_follow_ups())]


def load_cases(file: Path) -> list[Case]:
    """The cases of a file. A spreadsheet's cells that hold a list separate its items by semicolons."""
    if not file.is_file():
        raise UserError(f"There is no file {str(file)!r}.")
    cases: list[Case] = []
    for number, row in _rows(file):
        try:
            cases.append(_case(row))
        except (ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{file.name}, line {number} is not a case: {error}.") from None
    if not cases:
        raise UserError(f"{file.name} has no questions.")
    return cases


def _rows(file: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    if file.suffix.lower() == ".xlsx":
        return _sheet_rows(file)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file.name} is not in UTF-8. Save it as `CSV UTF-8`, or as XLSX.") from error
    except OSError as error:
        raise UserError(f"{file.name} cannot be read: {error}.") from error
    if separator := SPREADSHEETS.get(file.suffix.lower()):
        header = text.partition("\n")[0]
        separator = ";" if header.count(";") > header.count(separator) else separator
        rows = enumerate(csv.DictReader(io.StringIO(text), delimiter=separator), 2)
        return [(number, row) for number, row in rows if any(row.values())]
    return [(number, _json(file, number, line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _json(file: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UserError(f"{file.name}, line {number} is not JSON: {error}.") from error


def _sheet_rows(file: Path) -> Iterable[tuple[int, Mapping[str, Any]]]:
    """The rows of the first sheet, by the names in its first row."""
    try:
        rows = first_sheet(file.read_bytes(), FileLimits())
    except Refused as error:
        raise UserError(f"{file.name} cannot be read: {error.why}") from error
    names = rows[0][1] if rows else {}
    return [(number, {names.get(column, ""): value for column, value in row.items()}) for number, row in rows[1:]]


def _case(row: Mapping[str, Any]) -> Case:
    if None in row:
        raise ValueError(
            "it has more cells than there are columns: a text with the separator in it needs quotation marks"
        )
    given = {str(name).strip().lower(): _unescape(value) for name, value in row.items() if value not in (None, "")}
    if not str(given.get("question", "")).strip():
        raise ValueError("it has no question")
    if unknown := sorted(given.keys() - set(COLUMNS)):
        raise ValueError(f"it has the unknown column {unknown[0]!r}; known are {', '.join(COLUMNS)}")
    lists = {name: _items(given.get(name, ())) for name in LISTS}
    case = Case(
        str(given["question"]).strip(),
        str(given.get("answer", "")).strip(),
        abstain=_is_yes(given.get("abstain", False)),
        follow_ups=tuple(map(_follow_up, _items(given.get("follow_ups", ())))),
        given=str(given.get("given", "")).strip(),
        grade=_grade(given.get("grade")),
        note=str(given.get("note", "")).strip(),
        **{name: tuple(str(each).strip() for each in items) for name, items in lists.items()},
    )
    if not case.is_complete:
        raise ValueError("it says nothing about the answer: give `answer`, `points`, `documents`, `pages` or `abstain`")
    return case


def _is_yes(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).strip().lower() in YES


def _grade(value: Any) -> bool | None:
    if value is None or _is_yes(value):
        return None if value is None else True
    if value is False or str(value).strip().lower() in NO:
        return False
    raise ValueError(f"its grade is {value!r}, and neither right nor wrong")


def _unescape(value: Any) -> Any:
    """A cell without the apostrophe that keeps a spreadsheet from running it."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and escape_formula(value[1:]) == value else value


def _follow_up(value: Any) -> Case:
    return _case(value if isinstance(value, Mapping) else {"question": value, "documents": "?"})


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [each for each in (part.strip() for part in value.split(";")) if each]
    return list(value) if isinstance(value, Sequence) else [value]


def write_cases(file: Path, cases: Sequence[Case]) -> None:
    """Write cases as JSON lines, or as a spreadsheet if the file is named like one. Nobody else on this machine can read it."""
    if separator := SPREADSHEETS.get(file.suffix.lower()):
        out = io.StringIO()
        columns = [name for name in COLUMNS if name != "follow_ups"]
        writer = csv.writer(out, delimiter=separator)
        writer.writerows([columns, *([_cell(getattr(case, name)) for name in columns] for case in cases)])
        write_private(file, out.getvalue().encode("utf-8-sig"))
    else:
        lines = (json.dumps(_filled(case), ensure_ascii=False) for case in cases)
        write_private(file, "".join(f"{line}\n" for line in lines).encode())


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        value = "; ".join(str(each).replace(";", ",") for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escape_formula("" if value is None else value)


def _filled(case: Case) -> dict[str, Any]:
    """What a case says, without empty values."""
    return {
        name: value for name, value in to_json(case).items() if value not in ("", [], None) and value is not False
    } | ({"grade": case.grade} if case.grade is not None else {})


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
