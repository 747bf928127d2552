"""Identifies the language of a text by its script and its function words. Without a model; none if unsure."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from assay.language.terms import data_lines

SAMPLE = 4_000  # characters, from the beginning, the middle and the end
MIN_LETTERS = 12  # below this, any result would be a guess
MOST_DISTINCT = 6  # function words that a long text must have; a short one has fewer
MIN_OTHERS = 0.15  # of all words: in small letters and no function words

SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),  # before Chinese: Japanese uses its characters too
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ar", re.compile("[\u0600-\u06ff\u0750-\u077f]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
DISTINCT_LETTERS = (  # within a script, letters that only one of its languages uses
    ("ru", re.compile("[іїєґ]"), "uk"),
    ("ru", re.compile("[ђћљњџ]"), "sr"),
    ("ar", re.compile("[پچژگ]"), "fa"),
)
WORD = re.compile(r"(?<![\w@./-])[^\W\d_]+(?![\w@/:]|\.\w)")  # no part of an address, and no label
FIRST = re.compile(r"(?:^|[.!?] )[^\W\d_]", re.MULTILINE)  # the capital of a sentence


@cache
def _profiles() -> dict[str, frozenset[str]]:
    lines = (line.partition(":") for line in data_lines("function_words"))
    return {code: frozenset(words.split()) for code, _, words in lines}


def identify_language(text: str) -> str | None:
    """An ISO 639-1 code, or none if the text is too short or no language stands out."""
    middle = max(0, len(text) // 2 - SAMPLE // 2)
    sample = text if len(text) <= 3 * SAMPLE else text[:SAMPLE] + text[middle : middle + SAMPLE] + text[-SAMPLE:]
    letters = sum(map(str.isalpha, sample))
    if letters < MIN_LETTERS:
        return None
    for code, script in SCRIPTS:
        share = len(script.findall(sample)) / letters
        if share > (0.1 if code == "ja" else 0.3):
            return next(
                (better for base, sign, better in DISTINCT_LETTERS if base == code and sign.search(sample.lower())),
                code,
            )
    return _by_function_words(sample.lower() if sample.isupper() else sample)


def _by_function_words(sample: str) -> str | None:
    """The language whose function words lead, if this is running text: names have some of them, too, but few others in
    small letters."""
    words = WORD.findall(FIRST.sub(lambda first: first[0].lower(), sample))
    counts = Counter(words)
    total = max(len(words), 1)
    scores = {code: sum(counts[word] for word in known) / total for code, known in _profiles().items()}
    best, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    distinct = sum(word in counts for word in _profiles()[best] if len(word) > 1)
    others = sum(word.islower() and word not in _profiles()[best] for word in WORD.findall(sample)) / total
    if distinct < min(2 + total // 40, MOST_DISTINCT) or others < MIN_OTHERS:
        return None
    # A quarter or more of running text is function words; lists and tables have fewer, but one language still leads.
    return best if scores[best] > 0.06 and scores[best] > 1.05 * scores[second] else None
