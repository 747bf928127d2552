"""Splits a passage into statements: its sentences, and the rows of its tables one by one. Pure."""

from __future__ import annotations

import re

from assay.language.sentences import Span, is_table_row, is_unspaced_script, split_sentences


def split_statements(body: str) -> list[Span]:
    """Sentences; where several table rows read as one sentence, the single rows."""
    found: list[Span] = []
    for start, end in split_sentences(body):
        lines = [(start + match.start(), start + match.end()) for match in re.finditer(r"\S[^\n]*\S", body[start:end])]
        rows = len(lines) > 1 and all(is_table_row(body[slice(*line)]) for line in lines[-2:])
        found += lines if rows else [(start, end)]
    return found


def is_statement(sentence: str) -> bool:
    """False for a heading, a lone number or a fragment of a table."""
    words = sentence.split()
    return (
        len(words) >= 5
        or (len(words) >= 3 and any(sign.isdigit() for sign in sentence))
        or is_unspaced_script(sentence)
    )
