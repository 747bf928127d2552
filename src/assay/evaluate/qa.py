"""Evaluation of answers without a model: whether the gold words stand in the extracts that are shown, and what is stated."""

from __future__ import annotations

import json
import re
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.answer.extracts import quoted_in_place
from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.types import Answer, Document, Outcome, Quote
from assay.evaluate.metrics import intervals, means, spread
from assay.evaluate.plain_text import PlainTextReader, json_lines
from assay.ingest.sources import SourceFile, find_sources
from assay.language.sentences import is_unspaced_script
from assay.language.terms import fold_case
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import AskOptions

SHARES = ("shown@1", "shown@3", "stated", "stated_wrong", "refused", "unanswerable_shown_as_found")
BASE = "documents"  # the knowledge base
CORPUS = "corpus"  # the folder beside the file, where it names no other

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class QaCase:
    """A question with what counts as its answer. `texts` are documents that come with the question; all questions of a
    file are asked of all of them."""

    question: str
    kind: str = ""
    answers: tuple[str, ...] = ()  # any of them
    all_of: tuple[str, ...] = ()  # each of them; alternatives are separated by bars
    must_not: tuple[str, ...] = ()  # in a statement
    unanswerable: bool = False
    origin: str = ""  # of the documents: "manual pages"
    documents: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QaFile:
    name: str
    cases: tuple[QaCase, ...]
    documents: tuple[Path, ...] = ()  # files and folders to ingest


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    """What was shown for a question: the line above the extracts, the extracts, and what Assay stated in its own words."""

    case: QaCase
    outcome: Outcome
    shown: tuple[str, ...]
    stated: str = ""

    def shown_at(self, most: int) -> bool:
        """Whether the gold words stand in the first extracts, or in a statement above them."""
        words = "\n".join((self.stated, *self.shown[:most]))
        case = self.case
        good = not case.answers or any(holds(words, each) for each in case.answers)
        return good and all(any(holds(words, one) for one in each.split("|")) for each in case.all_of)

    @property
    def stated_wrong(self) -> bool:
        """Whether a statement does not give the answer. For several things, the rows below it count too."""
        if not self.stated or self.case.unanswerable:
            return bool(self.stated)
        said = replace(self, shown=()) if self.case.answers else self
        return not said.shown_at(len(self.shown)) or any(holds(self.stated, each) for each in self.case.must_not)


def load(file: Path, folders: Sequence[Path] = ()) -> QaFile:
    """Read one question per line: plain ones, and those of PubMedQA and MTRAG-UN in their own layout. A line without a
    question names the documents to ingest; `folders` are where they lie, or what to ingest if no line names any."""
    parsed = json_lines(file, _parse, "a question with an answer")
    cases = [each for each in parsed if isinstance(each, QaCase)]
    named = [name for each in parsed if isinstance(each, list) for name in each]
    if not cases:
        raise UserError(f"{file.name} has no questions.")
    return QaFile(file.name, tuple(cases), tuple(_documents(file, cases, named, folders)))


def _parse(row: Mapping[str, Any], _: int) -> QaCase | list[str] | None:
    """A question, the names of documents, or neither."""
    if set(row) == {"documents"}:
        return list(row["documents"])
    if "QUESTION" in row:  # PubMedQA: an abstract without its conclusion
        return QaCase(
            row["QUESTION"], row["final_decision"], (row["final_decision"],), texts=("\n\n".join(row["CONTEXTS"]),)
        )
    if "answerability" in row:  # MTRAG-UN: only whether it answers
        label = row["answerability"][0].lower()
        if label not in {"answerable", "unanswerable"}:
            return None
        texts = tuple(each["text"].strip() for each in row["contexts"])
        return QaCase(row["input"][-1]["text"], label, unanswerable=label == "unanswerable", texts=texts)
    described = "answer" in row and not {"answers", "all_of"} & set(row)  # otherwise it is a note for people
    answers = row.get("answers", [row["answer"]] if described else [])
    unanswerable = bool(row.get("unanswerable", row.get("kind") == "unanswerable"))
    case = QaCase(
        row["question"],
        row.get("kind", ""),
        () if unanswerable else tuple(map(str, answers)),
        tuple(map(str, row.get("all_of", ()))),
        tuple(map(str, row.get("must_not", ()))),
        unanswerable,
        row.get("origin", ""),
        tuple(row.get("documents", ())),
    )
    if not (case.answers or case.all_of or case.unanswerable):
        raise ValueError("it has no answer")
    return case


def _documents(file: Path, cases: Iterable[QaCase], named: Sequence[str], folders: Sequence[Path]) -> Iterable[Path]:
    if any(case.texts for case in cases):
        return []
    roots = [*folders] or [file.parent, file.parent / CORPUS]
    if not named and folders:
        return folders
    if not named and (file.parent / CORPUS).is_dir():
        return [file.parent / CORPUS]
    wanted = named or [name for case in cases for name in case.documents]
    found: list[Path] = []
    for name in dict.fromkeys(wanted):
        there = next((root / name for root in roots if (root / name).exists()), None)
        if there is None:
            raise UserError(f"{file.name} names {name!r}, which is not below {', '.join(map(str, roots))}.")
        found.append(there)
    return found


def grade(case: QaCase, answer: Answer, document: Callable[[str], Document | None]) -> GradedAnswer:
    """What an answer shows: each extract with what it stands under. Those below the line that nothing was found count, too."""
    quotes = [(claim.quote, claim.marks) for claim in (*answer.claims, *answer.near) if claim.quote]
    shown = tuple(_as_shown(quote, marks, document(quote.doc_id)) for quote, marks in quotes)
    stated = " ".join(claim.words for claim in answer.claims if not claim.quote) or answer.said
    return GradedAnswer(case, answer.outcome, shown, stated)


def _as_shown(quote: Quote, marks: Sequence[Quote], document: Document | None) -> str:
    """An extract as a person sees it: title and headings above, caption, header and units of its table, the words."""
    if document is None:
        return quote.text
    part = quoted_in_place(document, quote, marks)
    table = (part.table.caption, part.table.units, part.table.period, *part.table.columns) if part.table else ()
    return "\n".join((document.title, *part.under, *table, quote.text))


NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ ,’']\d{3})++(?!\d)")
HYPHEN = re.compile(r"(?<=\w)[-‐]\n\s*(?=\w)")  # at the end of a line


def holds(text: str, wanted: str) -> bool:
    """Whether a text contains these words as whole words; numbers are compared as numbers."""
    key = _normal(wanted)
    if is_unspaced_script(wanted) or not key.isascii():
        return "".join(key.split()) in "".join(_normal(text).split())
    pattern = re.compile(rf"(?<!\w)(?<!\d\.){re.escape(key)}(?!\w|\.\d)")
    return any(pattern.search(_normal(each)) for each in (text, HYPHEN.sub("", text), HYPHEN.sub("-", text)))


def _normal(text: str) -> str:
    """Lower case, single spaces, numbers without separators or trailing zeros."""
    plain = NUMBER.sub(lambda found: re.sub(r"\D", "", found[0]), fold_case(unicodedata.normalize("NFC", text)))
    plain = re.sub(r"(\d\.\d*?)0+\b", r"\1", plain)
    return " ".join(re.sub(r"(\d)\.(?!\d)", r"\1", plain).split()).strip(" .")


async def measure(
    data: QaFile, workspace: Path | None = None, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> dict[str, Any]:
    """Ask every question without a model, and count."""
    began = time.perf_counter()
    graded = await ask_all(data, workspace, limit, report, **flags)
    return {"seconds": round(time.perf_counter() - began, 1), **figures(graded)}


async def ask_all(
    data: QaFile, workspace: Path | None = None, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> list[GradedAnswer]:
    """Every question asked without a model. The workspace is temporary unless one is named."""
    graded: list[GradedAnswer] = []
    with ExitStack() as stack:
        place = workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-qa-")))
        opened = stack.enter_context(open_workspace(place, create=True, state="", **flags))
        if data.documents:
            await opened.documents.add_sources(find_sources(list(data.documents)), BASE)
        cases = spread(data.cases, limit)
        if files := _texts(cases):
            await opened.documents.add_sources(files, BASE, reader=PlainTextReader())
        for number, case in enumerate(cases, 1):
            result = grade(case, await _ask(opened, case.question), opened.documents.get)
            graded.append(result)
            report(f"{number}. {_described(result)} ({result.outcome}): {case.question}")
    return graded


def _described(result: GradedAnswer) -> str:
    if result.stated:
        return "stated, wrong" if result.stated_wrong else "stated"
    if result.case.unanswerable:
        return "unanswerable"
    first = next((place for place in range(1, len(result.shown) + 1) if result.shown_at(place)), 0)
    return f"in extract {first}" if first else "not shown"


def _texts(cases: Iterable[QaCase]) -> list[SourceFile]:
    texts = dict.fromkeys(text for case in cases for text in case.texts)
    return [
        SourceFile(f"text:{place}", f"text {place}", data=json.dumps({"title": "", "text": text}).encode())
        for place, text in enumerate(texts, 1)
    ]


async def _ask(opened: Workspace, question: str) -> Answer:
    steps = opened.ask(question, AskOptions(model=False, where=SearchFilters(bases=(BASE,))))
    answer = [run async for run, _ in steps][-1].answer
    if answer is None:
        raise UserError(f"The question {question!r} was not answered to its end.")
    return answer


def figures(graded: Sequence[GradedAnswer]) -> dict[str, Any]:
    """Shares of the questions that each counts for, with intervals; and the same for each origin of the documents and kind of
    question. `shown@1` and `shown@3`: the gold words stand in the first extract, in the first three. `stated`: Assay says
    something in its own words; `stated_wrong`: and it is not the answer. `refused`: there is an answer, and the line says that
    nothing was found. `unanswerable_shown_as_found`: there is none, and the line says that it was found."""
    rows = [shares(each) for each in graded]
    return {
        **dict.fromkeys(SHARES, 0.0),
        **_rounded(rows),
        "origins": _groups(graded, lambda case: case.origin),
        "kinds": _groups(graded, lambda case: case.kind),
        "intervals": intervals(rows, means),
        "n": len(graded),
    }


def _rounded(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in means(rows).items()}


def _groups(graded: Sequence[GradedAnswer], group: Callable[[QaCase], str]) -> dict[str, dict[str, float]]:
    names = sorted({group(each.case) for each in graded} - {""})
    found = {name: [shares(each) for each in graded if group(each.case) == name] for name in names}
    return {name: {**_rounded(rows), "n": len(rows)} for name, rows in found.items()}


def shares(graded: GradedAnswer) -> dict[str, float]:
    """What one question adds to each share that it counts for."""
    statements = {"stated": float(bool(graded.stated)), "stated_wrong": float(graded.stated_wrong)}
    if graded.case.unanswerable:
        return {**statements, "unanswerable_shown_as_found": float(graded.outcome is Outcome.answered)}
    refused = {**statements, "refused": float(graded.outcome is Outcome.abstained)}
    if not graded.case.answers and not graded.case.all_of:  # only whether it is answerable is known
        return refused
    return {**refused, "shown@1": float(graded.shown_at(1)), "shown@3": float(graded.shown_at(3))}
