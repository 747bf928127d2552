"""Content terms of a text: folded, stemmed, without stop words. Word lists are plain text files in `data/`; `#` begins
a comment."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from importlib import resources
from threading import Lock

import snowballstemmer

_STEMMER = snowballstemmer.stemmer("english")
_STEMMING = Lock()  # a stemmer keeps the word it works on, and documents are read in threads


@lru_cache(maxsize=100_000)
def stem_word(word: str) -> str:
    """The stem of one lower-case word."""
    with _STEMMING:
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


@cache
def word_list(name: str) -> frozenset[str]:
    """The words of `data/<name>.txt`."""
    return frozenset(word for line in data_lines(name) for word in line.split())


@cache
def data_lines(name: str) -> tuple[str, ...]:
    """The lines of `data/<name>.txt`, without comments and blank lines."""
    lines = (resources.files("assay.language") / "data" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line.strip() and not line.startswith("#"))


def stop_words() -> frozenset[str]:
    """English words that carry no content."""
    return word_list("stop_words")


def missing_terms(terms: frozenset[str], there: frozenset[str]) -> frozenset[str]:
    """The members of `terms` that are missing from `there`."""
    return frozenset(term for term in terms if not _has_term(term, there))


def _has_term(term: str, there: frozenset[str]) -> bool:
    """Also matches other forms: leakage for leaks."""
    if term in there or term.isdigit():
        return term in there
    return len(term) >= 5 and any(
        len(other) >= 4 and (term.startswith(other) or other.startswith(term)) for other in there
    )


def rarity_among(question: str, found: Sequence[Collection[str]]) -> dict[str, float]:
    """As `rarity`, among results whose terms are known."""
    weights = inverse_frequency(content_terms(question), found)
    total = sum(weights.values()) or 1.0
    return {term: weight / total for term, weight in weights.items()}


def inverse_frequency(terms: Iterable[str], found: Sequence[Collection[str]]) -> dict[str, float]:
    return {term: math.log(1 + len(found) / (0.5 + sum(term in each for each in found))) for term in terms}
