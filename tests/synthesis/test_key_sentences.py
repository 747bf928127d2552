"""The sentences that stand for a document without a model: its own, whole, and understood alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from wharf import carried, context, document, opened

from assay.synthesis import read, state

REPORT = """Report on the wharf

The wharf of Marrow Quay was built in 1902 by the harbour board.
It has two cranes.
• The renewal of the rails is put before the board.
Crane 1; hook of steel; 30 tonnes; serviced in March; in good order
The board decided that the second crane is replaced in 2027, because its beam is cracked.
The cost of the new crane is put at 86,000 euros by the engineers.
Copyright 2020 Harbour Press, all rights reserved.
See https://wharf.example for the plan of the wharf.
The lights of the wharf are lit by hand at dusk every evening.
What will the new crane cost the harbour in the end?
"""


async def picked(words: str, focus: str = "") -> list[str]:
    source = document("d", words)
    run = opened([source], model=False, focus=focus)
    run = await carried(run, context([source], run), read.read)
    return [each.claim.words for each in state.points(run)]


async def test_three_to_five_whole_sentences_in_reading_order():
    found = await picked(REPORT)
    assert 3 <= len(found) <= 5
    assert [REPORT.index(each) for each in found] == sorted(REPORT.index(each) for each in found)


async def test_no_heading_row_bullet_imprint_question_or_pronoun_without_its_noun():
    for words in await picked(REPORT):
        assert words.endswith(".") and not words.startswith(("It ", "•", "Report", "See ", "Crane 1", "Copyright"))


async def test_what_was_decided_is_among_them():
    assert any("decided" in each for each in await picked(REPORT))


async def test_sentences_in_scripts_without_spaces_are_picked_too():
    assert await picked("这座桥建于1902年。它有四个花岗岩拱门。市议会决定修复这座桥。修复费用为两百万欧元。")


async def test_a_document_without_a_sentence_gives_none():
    assert await picked("Rain; 12; 30\nWind; 3; 40") == []


SCRIPT = """
import asyncio, sys
sys.path[:0] = ["tests", "tests/synthesis"]
from test_key_sentences import REPORT, picked
print(asyncio.run(picked(REPORT)))
"""


@pytest.mark.long
def test_the_same_sentences_in_every_process():
    told = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 4)
    }
    assert len(told) == 1
