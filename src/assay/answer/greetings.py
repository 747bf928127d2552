"""Greetings and thanks: nothing is searched for them. Pure."""

from __future__ import annotations

import re

from assay.language.terms import fold_case

GREETING = frozenset("hi hello hey greetings morning afternoon evening hallo".split())
THANKS = frozenset("thanks thank thx cheers bye goodbye".split())
BESIDE = frozenset(
    "good there you very much so many a lot for your help that all everyone again day and to the".split()
)
MOST = 8  # words


def is_greeting(question: str) -> bool:
    """Whether a question only greets or thanks."""
    words = re.findall(r"[^\W_]+", fold_case(question))
    return (
        0 < len(words) <= MOST and bool(set(words) & (GREETING | THANKS)) and set(words) <= GREETING | THANKS | BESIDE
    )


def reply(question: str) -> str:
    words = set(re.findall(r"[^\W_]+", fold_case(question)))
    return "You are welcome." if words & THANKS else "Hello. Ask a question about your documents."
