"""Asks a user's cases of their own workspace. Results are kept in a file, so that an evaluation can be carried on."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from assay.core.codec import dumps, from_json, to_json
from assay.core.errors import AssayError, UserError
from assay.core.events.describe import record_line
from assay.core.private_files import write_private
from assay.core.run import Run
from assay.core.types import file_name
from assay.evaluate.cases import Case
from assay.evaluate.grading import Graded, answer_text, grade
from assay.evaluate.model_grade import Ask, grade_by_model
from assay.workspace.facade import Workspace
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
    how: AskOptions,
    known: Sequence[Graded] = (),
    *,
    ask: Ask | None = None,
    at_once: int = 1,
    report: Report = lambda _: None,
) -> list[Graded]:
    """Ask every case that is not among the known results, and grade it. Each result is written to `out` as soon as it is
    there. `ask` is the model that grades, beside the words."""
    done = {each.case: each for each in known}
    limit = asyncio.Semaphore(at_once)
    every = [each.id for case in cases for each in case.with_follow_ups()]

    async def ask_case(case: Case) -> None:
        if all(each.id in done for each in case.with_follow_ups()):
            return
        async with limit:
            for graded in await _conversation(opened, case, how, ask):
                done[graded.case] = graded
                kept = [done[each] for each in every if each in done]
                write_private(out, "".join(f"{dumps(to_json(one))}\n" for one in kept).encode())
                right = graded.metrics.get("right")
                sign = "?" if right is None else "right" if right else "wrong"
                report(f"{len(kept)} of {len(every)}: {sign} ({graded.outcome}) {graded.question}")

    await asyncio.gather(*map(ask_case, cases))
    return [done[each] for each in every]


async def _conversation(opened: Workspace, case: Case, how: AskOptions, ask: Ask | None) -> list[Graded]:
    """A case and its follow-ups, asked one after the other in one conversation."""
    thread = ""
    found: list[Graded] = []
    for each in case.with_follow_ups():
        began = time.perf_counter()
        steps = opened.chat(each.question, thread, how) if case.follow_ups else opened.ask(each.question, how)
        run = [run async for run, _ in steps][-1]
        if run.answer is None:
            raise UserError(
                f"The question {each.question!r} was not answered to its end: `assay trace {run.id}` says why."
            )
        thread = run.asked.thread
        seconds = time.perf_counter() - began
        texts = (answer_text(run.answer), each.given if each.grade is not None else "")
        grades = [await grade_by_model(ask, each, text) if ask else None for text in texts]
        found.append(grade(each, run, _names(opened, run), seconds, *grades))
    return found


def trace_lines(opened: Workspace, run: str) -> list[str]:
    """Each step of a run in one line; nothing if the run is gone."""
    try:
        return [record_line(event) for event in opened.run_for_asker(run).events]
    except UserError:
        return []


def _names(opened: Workspace, run: Run) -> Mapping[str, str]:
    """The file names of the documents that a run has evidence from."""
    documents = (opened.document(each) for each in {each.passage.doc_id for each in run.evidence})
    return {each.id: file_name(each.uri) for each in documents if each is not None}
