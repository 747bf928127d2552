"""Finds names and the abbreviations that a text defines, by rule. Works on offsets, so that results can be quoted. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.language.sentences import split_sentences
from assay.language.words import stop_words, word_list


@dataclass(frozen=True, slots=True)
class Name:
    """A name found in a text: `text == source[start:end]`."""

    text: str
    start: int
    end: int
    quoted: bool = False


_TOKEN = re.compile(r"[^\W_]+(?:[’'.\-–&/][^\W_]+)*")
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|``\s?([^`'\n]{2,80}?)\s?''|«([^»\n]{2,80})»")


def find_names(text: str) -> list[Name]:
    """Names in the order of the text: runs of capitalised words, and quoted titles.

    A word that opens a sentence counts unless it is an ordinary word; days and months are not names.
    """
    found = [
        Name(text[match.start(g) : match.end(g)], match.start(g), match.end(g), quoted=True)
        for match in _QUOTED.finditer(text)
        for g in (match.lastindex or 1,)
    ]
    openings = {start for start, _ in split_sentences(text)}
    tokens = list(_TOKEN.finditer(text))
    particles, openers, calendar = (
        word_list(each) for each in ("name_particles", "sentence_openers", "calendar_words")
    )
    at = 0
    while at < len(tokens):
        if not _is_capitalised(tokens[at][0]) or (tokens[at].start() in openings and _is_ordinary(tokens[at][0])):
            at += 1
            continue
        last = at
        ahead = at + 1
        while ahead < len(tokens) and _is_adjacent(text, tokens[ahead - 1], tokens[ahead]):
            word = tokens[ahead][0]
            if _is_capitalised(word) or (word[0].isdigit() and ahead == last + 1):
                last = ahead
            elif word.lower() not in particles or ahead - last > 2:
                break
            ahead += 1
        first = at
        while first < last and tokens[first][0].lower() in openers and tokens[first].start() in openings:
            first += 1
        start, end = tokens[first].start(), _without_possessive(text, tokens[last].end())
        words = [token[0].lower() for token in tokens[first : last + 1]]
        dated = all(word in calendar or word.isdigit() or word in particles for word in words)
        if not dated and not (first == last and _is_ordinary(tokens[first][0])):
            found.append(Name(text[start:end], start, end))
        at = last + 1
    unique = {(name.start, name.end): name for name in reversed(found)}  # the quoted reading of the same words wins
    return sorted(unique.values(), key=lambda name: (name.start, -name.end))


def _is_capitalised(word: str) -> bool:
    return word[0].isupper() or (len(word) > 1 and word[0].islower() and word[1].isupper())


def _is_ordinary(word: str) -> bool:
    return word.lower() in stop_words() or word.lower() in word_list("sentence_openers")


def _is_adjacent(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    between = text[left.end() : right.start()]
    if between in (" ", " & ", "\u00a0", " - ", "-"):
        return True
    # An initial or a short title keeps its full stop inside the name: "J. R. R. Tolkien", "Dr. Who", "St. Louis".
    return between == ". " and (len(left[0]) == 1 or left[0].lower() in word_list("abbreviations_before"))


def _without_possessive(text: str, end: int) -> int:
    return end - 2 if text[max(0, end - 2) : end] in ("'s", "’s") else end
