"""Word lists: plain text files in `data/`, read when first used. Lines that start with `#` are comments."""

from __future__ import annotations

from functools import cache
from importlib import resources


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
