"""Finds restricted documents inside new ones: an edited copy, a message with the file attached. Compared are short stretches of
letters and digits, so it works in any language; of a restricted document a sample of them is kept, in memory only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from assay.core.types import Document, file_name, names_inside
from assay.store.place_lists import COPY, NAMESAKE

STRETCH = 16  # letters and digits
SAMPLE = 256  # stretches of a restricted document
SHORTEST = 16  # stretches: what is shorter says too little to be recognised
SHARE = 1 / 3  # of the sample, from which a document counts as a copy; unrelated texts have less than a tenth
AT_ONCE = 1_000_000  # characters that are compared at the same time
FACTOR, MIX = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93  # odd, so that numbers of 64 bits are spread well


@dataclass(frozen=True, slots=True, eq=False)
class Restricted:
    """A document with an access list, and a sample of its text."""

    id: str
    label: str
    name: str
    sample: np.ndarray


def restricted(id: str, label: str, uri: str, text: str) -> Restricted:
    found = [np.unique(part) for part in _stretches(text)]
    every = np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64)
    order = np.argsort(every * np.uint64(MIX), kind="stable")  # a choice that does not depend on where a stretch is
    return Restricted(id, label, file_name(uri), every[order[:SAMPLE]] if len(every) >= SHORTEST else every[:0])


def held_inside(document: Document, others: Sequence[Restricted]) -> list[tuple[str, str]]:
    """The labels of the restricted documents that this one holds, each with the reason."""
    names = {name.casefold() for name in names_inside(document.kind, (each.title for each in document.sections))}
    shares = _shares(document.text, [each.sample for each in others]) if others else []
    found = zip(others, shares, strict=True)
    by_text = [(each.label, f"{COPY} {each.id}") for each, share in found if share >= SHARE]
    return by_text + [(each.label, f"{NAMESAKE} {each.id}") for each in others if each.name.casefold() in names]


def _shares(text: str, samples: Sequence[np.ndarray]) -> np.ndarray:
    """How much of each sample is in the text."""
    wanted, places = np.unique(np.concatenate(samples), return_inverse=True)
    there = np.zeros(len(wanted), bool)
    for part in _stretches(text):
        part.sort()
        at = np.searchsorted(part, wanted)
        there |= part[np.minimum(at, len(part) - 1)] == wanted
    of = np.repeat(np.arange(len(samples)), [len(each) for each in samples])
    sizes = np.bincount(of, minlength=len(samples))
    return np.bincount(of, there[places], minlength=len(samples)) / np.maximum(sizes, 1)


def _stretches(text: str) -> Iterator[np.ndarray]:
    """A number for each stretch of the text, a part at a time."""
    for start in range(0, len(text), AT_ONCE):
        part = text[start : start + AT_ONCE + 2 * STRETCH]
        letters = "".join(filter(str.isalnum, part.casefold()))
        numbers = np.frombuffer(letters.encode("utf-32-le", "replace"), np.uint32).astype(np.uint64)
        width, factor = 1, FACTOR
        while width < STRETCH and len(numbers) > width:  # twice as long each time
            numbers = numbers[:-width] * np.uint64(factor) + numbers[width:]
            width, factor = width * 2, factor * factor % 2**64
        if width == STRETCH:
            yield numbers
