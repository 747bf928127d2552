"""No branch, prompt or rule of Assay knows a document or a question of the samples: their names stand nowhere in it."""

from __future__ import annotations

import json
import re
from calendar import day_name, month_name
from pathlib import Path

import pytest

import assay

SAMPLES = Path(__file__).parents[2] / "samples"
TEXTS = {".md", ".txt", ".html", ".csv", ".eml"}
CALENDAR = [*month_name[1:], *day_name, *(f"{day}s" for day in day_name)]
ORDINARY = {
    "alert",
    "laboratories",
    "monitoring",
    "ocr",
    "papers",
    "planning",
    "round",
    "section",
    "trust",
    *(word.lower() for word in CALENDAR),
}


def words_of_samples() -> str:
    readable = [*SAMPLES.glob("source/*"), *(each for each in SAMPLES.glob("corpus/*") if each.suffix in TEXTS)]
    return "\n".join(each.read_text("utf-8", "ignore") for each in [*readable, SAMPLES / "questions.jsonl"])


def source_files() -> dict[str, str]:
    folder = Path(assay.__file__).parent
    found = [each for each in folder.rglob("*") if each.suffix in (".py", ".md")]
    return {str(each.relative_to(folder)): each.read_text("utf-8") for each in found}


def test_no_branch_prompt_or_rule_knows_a_name_of_the_samples():
    samples = words_of_samples()
    small = set(re.findall(r"\b[a-z][\w-]+", samples))
    named = set(re.findall(r"(?<=[a-z,] )[A-Z][\w-]*\w", samples))  # capitals inside a sentence
    names = {name for name in named if len(name) > 2 and name.lower() not in small | ORDINARY}
    assert {"Brackwell", "Pellam", "Heron", "TS-114", "Tavorn"} <= names
    wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)
    found = [f"{name}: {match[0]}" for name, words in source_files().items() if (match := wanted.search(words))]
    assert not found


@pytest.mark.long
def test_no_branch_prompt_or_rule_knows_a_question_of_the_samples():
    source = " ".join(re.findall(r"\w+", " ".join(source_files().values()).lower()))
    lines = (SAMPLES / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    for words in (each for one in asked for each in (one["question"], one["answer"], *one["evidence"])):
        own = re.findall(r"\w+", words.lower())
        runs = [" ".join(own[at : at + 6]) for at in range(len(own) - 5)]
        assert not [run for run in runs if f" {run} " in source], words
