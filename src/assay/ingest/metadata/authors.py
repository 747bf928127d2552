"""Parses author names by their spelling: tells people from organisations, and several names from one."""

from __future__ import annotations

import re

AFFILIATION = re.compile(
    r"universit|institut|department|dept\b|laborator|\blabs?\b|school|college|faculty|cent(?:er|re)\b|academy|hospital"
    r"|\binc\b|\bltd\b|gmbh|corporation|\bcorp\b|company|research\b|\bai\b|ministry|foundation|society|division|group\b"
    r"|google|microsoft|facebook|amazon|street|avenue|\broad\b|p\.?o\.? box|\busa\b|\buk\b|germany|france|china|japan"
    r"|@|https?:|www\.|email|e-mail|\d{4,}|correspond|equal contribution|abstract|keywords",
    re.IGNORECASE,
)
PARTICLES = frozenset(
    ("de da di do du dos del della der den des van von zu zur la le el al bin ibn ben ter ten af av y e").split()
)
NAME_PART = re.compile(r"(?:[A-ZÀ-ÞŁŠŽĆČĐŐ](?:[\w’'´`˘˚ˇ-]*\w)?\.?|[A-Z]\.(?:-?[A-Z]\.)*)")
NO_NAME = frozenset(
    (
        "the a an of for and in on with by from new review article paper letter report original open access "
        "journal volume vol issue page pages table figure chapter section part draft version preprint "
        "proceedings conference workshop international annual technical user guide manual policy plan summary "
        "overview introduction january february march april may june july august september october november "
        "december confidential internal"
    ).split()
)
MARKS = re.compile(
    r"(?<=\s)[˘˚ˇ´`¨ˆ˜¸](?=\s|$)|[∗*†‡§¶‖#✉⋆◦]+|(?<=[^\W\d_])\d+(?:,\d+)*|\(\s*[\w ]?\s*\)"
    r"|\b\d+\b|\[[\d, ]+\]|[\u2070-\u209f²³¹]+"
)
DEGREES = re.compile(r"(?:,|(?<!\s))\s*+\b(?:Ph\.?D|M\.?D|M\.?Sc|B\.?Sc|MBA|FRCP|Jr|Sr|Prof|Dr)\b\.?", re.IGNORECASE)
# Words with which an organisation or a unit of one names itself.
BODY = (
    r"(?:offices?|sections?|teams?|departments?|divisions?|units?|committees?|councils?|commissions?|boards?|ministry"
    r"|agency|authority|services?|laboratory|laboratories|institutes?|university|trust|foundation|society|association"
    r"|bureau|cent(?:er|re)|groups?|directorate|secretariat|branch|panel|administration|organi[sz]ation|company"
    r"|federation|union|academy|school|college|hospital|library|museum|ltd|inc|gmbh|corporation|abteilung|referat)"
)
NAMED_LAST = re.compile(rf"\b{BODY}\.?$", re.IGNORECASE)
NAMED_FIRST = re.compile(rf"\b{BODY}\s+(?:of|for|on|für|de|des|du)\s", re.IGNORECASE)
SMALL = frozenset(("of and for on the & in at to de des du der die und für et la le les").split())
AND = re.compile(r"(?<!\s)\s++(?:and|und|et|&)\s+")


def is_name(words: str) -> bool:
    """Whether the text has two to five parts that are spelled like those of a person's name."""
    parts = words.replace("\xa0", " ").strip(" .:–-").split()
    if not 2 <= len(parts) <= 5 or len(words) > 60 or AFFILIATION.search(words):
        return False
    if any(part.lower().strip(".") in NO_NAME for part in parts):
        return False
    proper = [part for part in parts if NAME_PART.fullmatch(part)]
    longer = [part for part in proper if len(part.strip(".")) > 1]
    return len(longer) >= 1 and all(part in proper or part.lower() in PARTICLES for part in parts) and len(proper) >= 2


def is_organisation(words: str) -> bool:
    """Whether the text is capitalised words of which the last, or one before "of", denotes an organisation."""
    parts = words.split()
    if not 2 <= len(parts) <= 9 or len(words) > 90 or any(map(str.isdigit, words)) or not parts[0][:1].isupper():
        return False
    spelled = all(part[:1].isupper() or part.lower() in SMALL for part in parts)
    return spelled and bool(NAMED_LAST.search(words) or NAMED_FIRST.search(words))


def split_and(words: str) -> list[str]:
    """`A and B` as two names, unless the "and" is part of one organisation's name: then unchanged."""
    pieces = AND.split(words)
    if len(pieces) != 2 or "," in pieces[0]:
        return pieces  # a list that ends in "and": the last comma and the "and" are equivalent
    first, second = (piece.split(",")[0].strip() for piece in pieces)
    whole = NAMED_FIRST.search(second + " ") or second.lower().startswith("the ")  # the second is a complete name
    shared = NAMED_LAST.search(second) and not NAMED_LAST.search(first) and not whole
    within = NAMED_FIRST.search(first + " ") and not NAMED_LAST.search(second) and not whole
    firm = "&" in words and " " not in first and " " not in second  # a firm named after two surnames
    return [words] if shared or within or firm else pieces


def find_people(words: str) -> list[str]:
    """The people named in a line, without the marks and degrees after their names."""
    words = re.sub(r"(?<!\S)\S+@\S+|\{[^}]{0,300}\}\S*", ",", words)
    words = DEGREES.sub("", MARKS.sub(",", words))
    pieces = re.split(r"[,;·•|/\t\n]|(?<!\w)(?:and|und|et|&)(?!\w)|\s{3,}", words)
    names = (re.sub(r"^(?:by|von|par|authors?:?)\s+", "", piece.strip(), flags=re.IGNORECASE) for piece in pieces)
    return [re.sub(r"\s+", " ", name).strip(" .:–-") for name in names if is_name(name)]


def parse_people(words: str) -> list[str]:
    """The people of a line that contains nothing else; empty if it contains anything else."""
    bare = re.sub(r"^by\s+", "", DEGREES.sub("", MARKS.sub("", words.strip())), flags=re.IGNORECASE)
    pieces = [piece.strip() for piece in re.split(r",|;|(?<!\w)(?:and|und|et|&)(?!\w)", bare)]
    return [re.sub(r"\s+", " ", piece) for piece in pieces if piece] if all(map(is_name, filter(None, pieces))) else []


def parse_organisations(words: str) -> list[str]:
    """`Unit, Organisation` as two names; empty if the line does not open with a unit."""
    first, *others = [piece.strip() for piece in re.split(r",\s+|(?<!\s)\s++[|·]\s+", words.strip(" .,"))]
    units = [piece.strip() for piece in split_and(first)]
    if not is_organisation(units[0]):
        return []
    spelled = [other for other in others if other[:1].isupper() and is_spelled_as_name(other)]
    return [*units, *spelled] if len(spelled) == len(others) else []


def is_spelled_as_name(words: str) -> bool:
    """Whether the text is capitalised like a name; `3M` is."""
    parts = words.split()
    return len(parts) <= 8 and all(not part[:1].islower() or part.lower() in SMALL for part in parts)
