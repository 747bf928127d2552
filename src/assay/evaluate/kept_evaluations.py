"""Evaluations that a workspace keeps, so that the page can show them. What was answered is left out: it is in the runs, where
access and erasure reach it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from assay.core.codec import dumps, from_json, to_json
from assay.core.errors import AssayError
from assay.core.private_files import write_private
from assay.evaluate.grading import Graded

FOLDER = "evaluations"


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
    """Keep an evaluation under its title; an earlier one with the same title is replaced."""
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
