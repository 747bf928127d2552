"""Asks a user's cases of their own workspace. Results are kept in a file, so that an evaluation can be carried on."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from assay.core.codec import digest, dumps, from_json, to_json
from assay.core.errors import AssayError, ModelError, UserError
from assay.core.events.describe import record_line
from assay.core.private_files import write_private
from assay.core.run import Run
from assay.core.types import Outcome, file_name
from assay.evaluate.cases import Case
from assay.evaluate.grading import MODEL, Ask, Graded, grade, grade_by_model, with_model_grade, with_person_grade
from assay.workspace.facade import Workspace
from assay.workspace.text_places import EVALUATIONS
from assay.workspace.types import AskOptions

Report = Callable[[str], None]


def load_results(file: Path) -> list[Graded]:
    """The results in a file. Raises a `UserError` if it is none."""
    try:
        return [from_json(Graded, json.loads(line)) for line in file.read_text("utf-8").split("\n") if line.strip()]
    except FileNotFoundError:
        raise UserError(f"There is no file {str(file)!r}.") from None
    except (ValueError, KeyError, TypeError, AssayError) as error:
        raise UserError(f"{file.name} is not a file of results: {error}.") from error


async def evaluate_cases(
    opened: Workspace,
    cases: Sequence[Case],
    out: Path,
    options: AskOptions,
    known: Sequence[Graded] = (),
    *,
    how: str = "",
    ask: Ask | None = None,
    at_once: int = 1,
    report: Report = lambda _: None,
) -> list[Graded]:
    """Ask every case that is not among the known results, and grade it. Each result is written to `out` as soon as it is
    there, and graded after that: what was answered is not asked again, whatever happens. `ask` is the model that grades,
    `how` describes the options."""
    done = {each.case: each for each in known}
    limit = asyncio.Semaphore(at_once)
    every = [each.id for case in cases for each in case.with_follow_ups()]
    others = {each.how for name, each in done.items() if name in set(every)} - {"", how}
    if how and others:
        raise UserError(
            f"{out.name} has answers of another kind ({others.pop()}; now: {how}). Name another file with --out."
        )

    def keep(graded: Graded) -> None:
        if done.get(graded.case) != graded:
            done[graded.case] = graded
            kept = [done[each] for each in every if each in done]
            write_private(out, "".join(f"{dumps(to_json(one))}\n" for one in kept).encode())

    async def ask_case(case: Case) -> None:
        parts = case.with_follow_ups()
        async with limit:
            new = any(each.id not in done for each in parts)
            if new:
                for graded in await _conversation(opened, case, options, how):
                    keep(graded)
            for each in parts:
                keep(replace(done[each.id], tags=each.tags))
                keep(await _with_model_grade(ask, each, done[each.id], report))
                keep(await _with_person_grade(ask, each, done[each.id]))
                if new:
                    report(f"{sum(one in done for one in every)} of {len(every)}: {_line(done[each.id])}")

    if before := sum(each in done for each in every):
        report(f"{before} of {len(every)} were answered before: {out.name}. Another --out asks them anew.")
    if before < len(every):
        await opened.search(cases[0].question, 1)  # loads the local models, which no question is charged with
    try:
        async with asyncio.TaskGroup() as group:
            for case in cases:
                group.create_task(ask_case(case))
    except* AssayError as failed:
        first = _first(failed)
        kept = sum(each in done for each in every)
        raise type(first)(
            f"{first} {kept} of {len(every)} questions are answered, in {out}: the same command goes on from there."
        ) from first
    return [done[each] for each in every]


def _first(group: BaseExceptionGroup[AssayError]) -> AssayError:
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner


def _line(graded: Graded) -> str:
    right = graded.metrics.get("right")
    return f"{'?' if right is None else 'right' if right else 'wrong'} ({graded.outcome}) {graded.question}"


async def _conversation(opened: Workspace, case: Case, options: AskOptions, how: str) -> list[Graded]:
    """A case and its follow-ups, asked one after the other in one conversation, and graded by words."""
    thread = ""
    found: list[Graded] = []
    for each in case.with_follow_ups():
        began = time.perf_counter()
        steps = opened.chat(each.question, thread, options) if case.follow_ups else opened.ask(each.question, options)
        run = [run async for run, _ in steps][-1]
        if run.answer is None:
            raise _unanswered(each, run)
        thread = run.asked.thread
        found.append(grade(each, run, _names(opened, run), time.perf_counter() - began, how))
    return found


def _unanswered(case: Case, run: Run) -> AssayError:
    if run.failed:
        return ModelError(f"No answer to {case.question!r}: {run.failed.detail}")
    return UserError(f"The question {case.question!r} waits for a person: `assay trace {run.id}` says for what.")


async def _with_model_grade(ask: Ask | None, case: Case, graded: Graded, report: Report) -> Graded:
    if ask is None or graded.by == MODEL or graded.outcome == Outcome.abstained:
        return graded
    found = await grade_by_model(ask, case, graded.answer)
    if found is None and graded.has_expected_text:
        report(f"The model's grade cannot be used, the words decide: {graded.question}")
    return graded if found is None else with_model_grade(case, graded, found)


async def _with_person_grade(ask: Ask | None, case: Case, graded: Graded) -> Graded:
    """Grades the answer that the case gives, unless that was done."""
    same = graded.person == case.grade and graded.given_digest in ("", digest(case.given))
    if same and (case.grade is None or ask is None or MODEL in graded.given):
        return graded
    found = await grade_by_model(ask, case, case.given) if ask and case.grade is not None else None
    return with_person_grade(case, graded, found)


def trace_lines(opened: Workspace, run: str) -> list[str]:
    """Each step of a run in one line; nothing if the run is gone."""
    try:
        return [record_line(event) for event in opened.questions.run_for_asker(run).events]
    except UserError:
        return []


def _names(opened: Workspace, run: Run) -> Mapping[str, str]:
    """The file names of the documents that a run has evidence from."""
    documents = (opened.documents.get(each) for each in {each.passage.doc_id for each in run.evidence})
    return {each.id: file_name(each.uri) for each in documents if each is not None}


FOLDER = EVALUATIONS


@dataclass(frozen=True, slots=True)
class EvaluationSide:
    """One way of answering the cases, and its results."""

    name: str
    description: str
    results: tuple[Graded, ...]


@dataclass(frozen=True, slots=True)
class KeptEvaluation:
    """`sides` are one or two; of two, the first is the baseline."""

    title: str
    day: str
    sides: tuple[EvaluationSide, ...]


def keep_evaluation(workspace: Path, title: str, sides: Sequence[tuple[str, str, Sequence[Graded]]]) -> None:
    """Keep an evaluation under its title, for the page; an earlier one with the same title is replaced. What was answered is
    left out: it is in the runs, where access and erasure reach it."""
    folder = workspace / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "-", title)[:100]
    kept = KeptEvaluation(
        title,
        datetime.now(UTC).date().isoformat(),
        tuple(
            EvaluationSide(name, about, tuple(replace(each, answer="") for each in graded))
            for name, about, graded in sides
        ),
    )
    write_private(folder / f"{name}.json", dumps(to_json(kept)).encode())


def kept_evaluations(workspace: Path) -> dict[str, KeptEvaluation]:
    """The evaluations of a workspace by name, newest first. A file that is none is left out."""
    found: dict[str, KeptEvaluation] = {}
    for file in sorted((workspace / FOLDER).glob("*.json")):
        try:
            found[file.stem] = from_json(KeptEvaluation, json.loads(file.read_text("utf-8")))
        except (ValueError, KeyError, TypeError, AssayError):
            continue
    return dict(sorted(found.items(), key=lambda item: item[1].day, reverse=True))
