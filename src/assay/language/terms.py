"""Content terms of a text: folded, stemmed, without stop words. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache, lru_cache

import snowballstemmer

from assay.language.words import stop_words, word_list

_STEMMER = snowballstemmer.stemmer("english")


@lru_cache(maxsize=100_000)
def stem_word(word: str) -> str:
    """The stem of one lower-case word."""
    return _STEMMER.stemWord(word)


def fold_case(text: str) -> str:
    """The text in lower case and without accents: "Tekezé" and "Tekeze" become equal."""
    if text.isascii():  # the usual case, with no accents to remove
        return text.casefold()
    plain = unicodedata.normalize("NFKD", text.casefold())
    marks = [ord(sign) for sign in set(plain) if unicodedata.combining(sign)]  # a long text has few different signs
    return plain.translate(dict.fromkeys(marks)) if marks else plain


def content_terms(text: str) -> list[str]:
    """Stems of the content words, in order and with repetitions."""
    ignored = stop_words()
    return [stem_word(word) for word in re.findall(r"[^\W_]+", fold_case(text)) if word not in ignored]


@cache
def asking_stems() -> frozenset[str]:
    """Stems of words that only shape a question."""
    return frozenset(map(stem_word, word_list("asking_words")))


def uncovered_words(text: str, covered: Collection[str]) -> str:
    """`text` without the words whose stems are in `covered`."""
    stems = set(covered)
    words = re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)
    return " ".join(word for word in words if (own := set(content_terms(word))) and not own & stems)
