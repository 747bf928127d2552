"""Sentences as readers part them, in nine languages: each line of `sentences/` has ‖ where a sentence ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.language.sentences import split_sentences

LINES = {file.stem: file.read_text(encoding="utf-8").splitlines() for file in Path(__file__).parent.glob("sentences/*")}
UNSPACED = {"zh", "ja"}
MISSED = 0.1  # of the lines: a boundary there takes understanding ("zatrzymano Marka W. Mężczyzna …")


@pytest.mark.parametrize("language", sorted(LINES))
def test_sentences_end_where_readers_end_them(language: str):
    joint = "" if language in UNSPACED else " "
    wrong = [line for line in LINES[language] if split(joint.join(line.split("‖"))) != line.split("‖")]
    assert len(wrong) <= MISSED * len(LINES[language]), "\n".join(wrong)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]
