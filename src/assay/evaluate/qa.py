"""Evaluation of answers without a model: right, wrong or abstained, on questions with accepted answers.

An answer is judged by what it says first. A question is right if the first claim contains an accepted answer (for
`all_of`: if the claims together contain every one), or if it is unanswerable and nothing was answered.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.types import Answer, Outcome
from assay.evaluate.metrics import intervals, means
from assay.evaluate.plain_text import PlainTextReader
from assay.ingest.sources import SourceFile, find_sources
from assay.language.terms import fold_case
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.types import AskOptions

RIGHT, WRONG, ABSTAINED = "right", "wrong", "abstained"
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
    must_not: tuple[str, ...] = ()
    unanswerable: bool = False
    documents: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QaFile:
    name: str
    cases: tuple[QaCase, ...]
    documents: tuple[Path, ...] = ()  # files and folders to ingest


@dataclass(frozen=True, slots=True)
class GradedAnswer:
    case: QaCase
    verdict: str
    outcome: Outcome
    first: str = ""
    claims: tuple[str, ...] = field(default=())


# --- reading --------------------------------------------------------------------------------------------------------


def load(file: Path, folders: Sequence[Path] = ()) -> QaFile:
    """Read one question per line: plain ones, and those of PubMedQA and MTRAG-UN in their own layout. A line without a
    question names the documents to ingest; `folders` are where they lie, or what to ingest if no line names any."""
    if not file.is_file():
        raise UserError(f"There is no file {str(file)!r}.")
    cases: list[QaCase] = []
    named: list[str] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if "question" not in row and set(row) == {"documents"}:
                named += row["documents"]
            elif case := _parse(row):
                cases.append(case)
        except (ValueError, KeyError, TypeError, IndexError):
            raise UserError(f"{file.name}, line {number} is not a question with an answer.") from None
    if not cases:
        raise UserError(f"{file.name} has no questions.")
    return QaFile(file.name, tuple(cases), tuple(_documents(file, cases, named, folders)))


def _parse(row: Mapping[str, Any]) -> QaCase | None:
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


# --- judging --------------------------------------------------------------------------------------------------------


def judge(case: QaCase, answer: Answer) -> GradedAnswer:
    """The verdict on an answer, by what it says first."""
    claims = tuple(" ".join(claim.words.split()) for claim in answer.claims)
    first = answer.said or (claims[0] if claims else "")
    if answer.outcome is Outcome.abstained:
        verdict = RIGHT if case.unanswerable else ABSTAINED
    elif case.unanswerable:
        verdict = WRONG
    elif not case.answers and not case.all_of:  # only whether it answers is known
        verdict = RIGHT
    else:
        whole = "\n".join(claims) or first
        good = not case.answers or any(holds(first, each) for each in case.answers)
        good = good and all(any(holds(whole, one) for one in each.split("|")) for each in case.all_of)
        verdict = RIGHT if good and not any(holds(first, each) for each in case.must_not) else WRONG
    return GradedAnswer(case, verdict, answer.outcome, first, claims)


NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ ,’']\d{3})++(?!\d)")


def holds(text: str, wanted: str) -> bool:
    """Whether a text contains an accepted answer as whole words; numbers are compared as numbers, and yes and no must
    come first."""
    answer, key = _normal(text), _normal(wanted)
    if key in {"yes", "no"}:
        return re.match(rf"\W*{key}\b", answer) is not None
    return re.search(rf"(?<![\w.]){re.escape(key)}(?!\w|\.\d)", answer) is not None


def _normal(text: str) -> str:
    """Lower case, single spaces, numbers without separators or trailing zeros."""
    plain = NUMBER.sub(lambda found: re.sub(r"\D", "", found[0]), fold_case(text))
    plain = re.sub(r"(\d\.\d*?)0+\b", r"\1", plain)
    return " ".join(re.sub(r"(\d)\.(?!\d)", r"\1", plain).split()).strip(" .")


# --- running --------------------------------------------------------------------------------------------------------


async def measure(
    data: QaFile, workspace: Path | None = None, limit: int = 0, report: Report = lambda _: None, **flags: Any
) -> dict[str, Any]:
    """Ask every question without a model, and count. The workspace is temporary unless one is named."""
    judged: list[GradedAnswer] = []
    began = time.perf_counter()
    with ExitStack() as stack:
        place = workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-qa-")))
        opened = stack.enter_context(open_workspace(place, create=True, state="", **flags))
        if data.documents:
            await opened.add_sources(find_sources(list(data.documents)), BASE)
        cases = _spread(data.cases, limit)
        if files := _texts(cases):
            await opened.add_sources(files, BASE, reader=PlainTextReader())
        for number, case in enumerate(cases, 1):
            result = judge(case, await _ask(opened, case.question))
            judged.append(result)
            report(f"{number}. {result.verdict} ({result.outcome}): {case.question}\n   {result.first[:300]}")
    return {"seconds": round(time.perf_counter() - began, 1), **figures(judged)}


def _spread(cases: Sequence[QaCase], limit: int) -> Sequence[QaCase]:
    """So many of the questions, evenly spread over the file."""
    return [cases[place * len(cases) // limit] for place in range(limit)] if 0 < limit < len(cases) else cases


def _texts(cases: Iterable[QaCase]) -> list[SourceFile]:
    texts = dict.fromkeys(text for case in cases for text in case.texts)
    return [
        SourceFile(f"text:{place}", f"text {place}", data=json.dumps({"title": "", "text": text}).encode())
        for place, text in enumerate(texts, 1)
    ]


async def _ask(opened: Workspace, question: str) -> Answer:
    last = None
    async for run, _ in opened.ask(question, AskOptions(model=False, where=SearchFilters(bases=(BASE,)))):
        last = run
    if last is None or last.answer is None:
        raise UserError(f"The question {question!r} was not answered to its end.")
    return last.answer


def figures(judged: Sequence[GradedAnswer]) -> dict[str, Any]:
    """Shares of all questions, and the counts they come from. `abstained` are the questions that have an answer and got
    none; `wrong_exit_0` the wrong answers that were delivered as complete."""
    kinds = {
        kind: dict(sorted(Counter(each.verdict for each in judged if each.case.kind == kind).items()))
        for kind in sorted({each.case.kind for each in judged})
    }
    rows = [_shares(each) for each in judged]
    counted = (RIGHT, WRONG, ABSTAINED, "wrong_exit_0")
    return {
        "kinds": kinds,
        "counts": {name: int(sum(row[name] for row in rows)) for name in counted},
        **dict.fromkeys((*counted, "abstain_precision", "abstain_recall"), 0.0),
        **{name: round(value, 4) for name, value in means(rows).items()},
        "intervals": intervals(rows, means),
        "n": len(judged),
    }


def _shares(judged: GradedAnswer) -> dict[str, float]:
    """What one question adds to each share that it counts for."""
    complete = judged.verdict == WRONG and judged.outcome is not Outcome.partial
    verdicts = {each: float(judged.verdict == each) for each in (RIGHT, WRONG, ABSTAINED)}
    silent, open_ = judged.outcome is Outcome.abstained, judged.case.unanswerable
    return {
        **verdicts,
        "wrong_exit_0": float(complete),
        **({"abstain_precision": float(open_)} if silent else {}),
        **({"abstain_recall": float(silent)} if open_ else {}),
    }
