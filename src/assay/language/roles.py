"""Finds roles that two sentences give the other way round: "A acquired B" and "B acquired A". Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from assay.language.terms import fold_case, stem_word
from assay.language.words import stop_words

TOKEN = re.compile(r"[^\W_]+")
PASSIVE = frozenset("is are was were be been being got".split())
REACH = 4  # content words from a verb to a name; other words must stand next to it


def find_swapped_roles(claim: str, source: str) -> str:
    """The word around which the claim has two others the other way round; empty if there is none. A passive with "by"
    on one side turns the order round once more."""
    ours, theirs = TOKEN.findall(claim), TOKEN.findall(source)
    once = _once(ours) & _once(theirs)
    for place, word in enumerate(ours):
        stem = _stem(word)
        if stem not in once or not word.islower():
            continue
        there = next(at for at, other in enumerate(theirs) if _stem(other) == stem)
        before, after = (side & once for side in _around(ours, place))
        earlier, later = (side & once for side in _around(theirs, there))
        if _is_passive(ours, place) == _is_passive(theirs, there):
            turned = before & later and after & earlier
        else:
            turned = before & earlier and after & later
        if turned:
            return word
    return ""


def _stem(word: str) -> str:
    return stem_word(fold_case(word))


def _once(words: Sequence[str]) -> frozenset[str]:
    """The stems of content words that occur once: only their order is clear."""
    counts = Counter(_stem(word) for word in words if word.lower() not in stop_words())
    return frozenset(stem for stem, count in counts.items() if count == 1)


def _around(words: Sequence[str], place: int) -> tuple[frozenset[str], frozenset[str]]:
    sides = words[:place][::-1], words[place + 1 :]
    return _near(sides[0]), _near(sides[1])


def _near(side: Sequence[str]) -> frozenset[str]:
    """The stems beside a verb: the next content word, and names a little further off. A number has no role."""
    content = [word for word in side if word.lower() not in stop_words() and not word[0].isdigit()][:REACH]
    return frozenset(_stem(word) for at, word in enumerate(content) if at == 0 or word[0].isupper())


def _is_passive(words: Sequence[str], place: int) -> bool:
    return bool(PASSIVE.intersection(words[max(0, place - 3) : place])) and "by" in words[place + 1 : place + 5]
