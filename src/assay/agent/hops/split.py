"""Splits a question that describes a thing instead of naming it: "Who owns the ferry that sank?" asks
first "Which ferry sank?", and then "Who owns …?" of what was found. By rule, for English. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from assay.language.words import stop_words

FOUND = "{s1}"  # stands in the second question for what the first one finds


@dataclass(frozen=True, slots=True)
class Split:
    """Two questions instead of one; the second has a placeholder for the answer to the first."""

    first: str
    second: str
    noun: str  # what the thing is said to be; empty if nearly everything with a name is called so


PREPOSITION = r"(?:in|at|on|from|for|by|with|to|of|under|through|near|during)"
DESCRIBED = re.compile(
    rf"^(?P<head>.{{0,300}})\b(?:the|a|an|our|that) (?P<noun>(?:[\w’'-]{{1,30}} ){{0,3}}?[\w-]{{1,30}}?),? "
    rf"(?P<link>that|which|who|whose|where|{PREPOSITION} (?:which|whom|whose))\b (?P<clause>.{{1,300}})$",
    re.I,
)
PLACED = re.compile(
    r"^(?P<head>.{0,300})\bthe (?P<noun>[\w-]{1,30}) (?P<clause>(?:at the (?:end|start|top|foot|bottom|mouth|source) of"
    r"|next to|behind|opposite|above|below|responsible for|in charge of) .{1,300})$",
    re.I,
)
# "the fact that …" describes nothing, and "the month that …" is no thing with a name.
NOT_A_THING = frozenset(
    "fact idea claim way reason evidence day time times month year years date hour hours case amount number one".split()
)
GENERAL = frozenset(
    "person man woman one place company firm supplier town city country organisation organization author state thing"
    " document writer owner engineer director member employee colleague customer body party".split()
)
DO = frozenset("do does did can could will would should may might must".split())
BE = frozenset("is are was were".split())
SUBJECT = re.compile(r"(?:the|a|an|our|we|you|they|he|she|it|his|her|their|its|my|your|I)\b|[A-Z]", re.S)
VERB = re.compile(r"(?:ed|en|ing|wn|ught|ilt|old|eld|ept|elt|ade|orn)$")


def split_question(question: str) -> Split | None:
    """The two questions; None if nothing in it is described by a clause."""
    plain = " ".join(question.split()).rstrip("?.! ")
    if match := DESCRIBED.match(plain):
        return _by_clause(match)
    if match := PLACED.match(plain):
        head, noun = match["head"], match["noun"]
        clause, tail = _without_predicate(head, match["clause"])
        return _made(head, tail, f"Which {noun} is {clause}?", noun)
    return None


JOINED = re.compile(
    r"[,;? ] ?and (?=(?:(?:in|at|on|for|from|to|by|with) )?(?:what|which|who|whom|whose|when|where|why|how)\b)",
    re.I,
)
POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|her|this|that|these|those|there|one|ones|so)\b", re.I
)
ASKS = re.compile(r"(?:\w{1,20} )?(?:what|which|who|whom|whose|when|where|why|how)\b", re.I)


def split_compound(question: str) -> tuple[str, ...]:
    """The questions that one sentence joins: "Who tends the light, and how tall is the tower?". Empty if it is one
    question, or if a later part points back to an earlier one."""
    plain = " ".join(question.split()).rstrip("?.! ")
    parts = [part.strip(" ,;?") for part in JOINED.split(plain)]
    whole = len(parts) > 1 and all(ASKS.match(part) and len(part.split()) > 2 for part in parts)
    if not whole or any(POINTS_BACK.search(part) for part in parts[1:]):
        return ()
    return tuple(f"{part[0].upper()}{part[1:]}?" for part in parts)


def _by_clause(match: re.Match[str]) -> Split | None:
    head, noun, link, clause = match["head"], match["noun"], match["link"].lower(), match["clause"]
    between = ""
    if " " in link and " " in noun and _last(head) in DO:  # "does the room have in which …"
        noun, _, between = noun.rpartition(" ")
    tail = ""
    if not between:
        clause, tail = _without_predicate(head, clause)
    if not clause:
        return None
    preposition, _, relative = link.rpartition(" ")
    if relative == "whose":
        first = f"{preposition} which {noun}’s {clause}"
    elif preposition or link == "where":
        first = f"{preposition or 'in'} which {noun} {clause}"
    elif SUBJECT.match(clause):  # "the room that the committee chose"
        first = f"which {noun} is it that {clause}"
    else:
        first = f"which {noun} {clause}"
    first = first.strip()
    return _made(head, " ".join(filter(None, (between, tail))), f"{first[0].upper()}{first[1:]}?", noun)


def _made(head: str, tail: str, first: str, noun: str) -> Split | None:
    """The split, unless the noun is no single thing, or nothing is asked of it."""
    words = noun.lower().split()
    several = re.search(r"[^su]s$", words[-1])
    if several or words[-1] in NOT_A_THING or any(map(_is_function_word, words)) or len(head.split()) < 2:
        return None
    kind = "" if words[-1] in GENERAL else words[-1]
    return Split(first, f"{' '.join(filter(None, (head.strip(), FOUND, tail)))}?", kind)


def _last(words: str) -> str:
    return (words.lower().split() or [""])[-1]


def _without_predicate(head: str, clause: str) -> tuple[str, str]:
    """The clause, and the predicate of the question after it: "the man who made it | live before"."""
    words = clause.split()
    before = _last(head)
    if before in DO:
        for place in range(2, len(words)):
            ends = _is_function_word(" ".join(words[place + 1 : place + 2])) or place == len(words) - 1
            if ends and _is_bare_verb(words[place]) and not _is_function_word(words[place - 1]):
                return " ".join(words[:place]), " ".join(words[place:])
        return "", ""
    if before in BE and len(words) > 2 and VERB.search(words[-1]) and not _is_function_word(words[-2]):
        return " ".join(words[:-1]), words[-1]
    return clause, ""


def _is_function_word(word: str) -> bool:
    return word.lower() in stop_words() or word.lower() in DO | BE


def _is_bare_verb(word: str) -> bool:
    """Whether a word may be a verb in its plain form; a noun may pass too."""
    return (
        word.isalpha()
        and word.islower()
        and not _is_function_word(word)
        and not re.search(r"(?:s|(?<!e)ed|ing|ly)$", word)
    )
