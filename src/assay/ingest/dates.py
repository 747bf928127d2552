"""Finding the date of a document in its own words: as precise as it is written, and none rather than a guess."""

from __future__ import annotations

import re
from datetime import date as Date

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari janv ene gen",
            "february feb februar février febrero febbraio fevereiro februari févr fev",
            "march mar märz mars marzo março maart mrz",
            "april apr avril abril aprile avr abr",
            "may mai mayo maggio maio mei",
            "june jun juni juin junio giugno junho giu",
            "july jul juli juillet julio luglio julho juil lug",
            "august aug août agosto augustus ago",
            "september sept sep septembre septiembre settembre setembro set",
            "october oct oktober octobre octubre ottobre outubro okt ott out",
            "november nov novembre noviembre novembro",
            "december dec dezember décembre diciembre dicembre dezembro dez déc dic",
        ),
        start=1,
    )
    for name in names.split()
}
NAME = rf"(?P<month{{0}}>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
YEAR = r"(?P<year{0}>(?:1[5-9]|20)\d\d)"
DAY = r"(?P<day{0}>\d{{1,2}})"
FORMS = (
    rf"{YEAR}-(?P<month{{0}}>\d{{{{2}}}})-{DAY}",
    rf"{YEAR}/(?P<month{{0}}>\d{{{{2}}}})/{DAY}",
    rf"{YEAR}\s?[年년]\s?(?P<month{{0}}>\d{{{{1,2}}}})\s?[月월](?:\s?{DAY}\s?[日일])?",
    rf"(?:{DAY}(?:st|nd|rd|th|er|º)?\.?(?:\s?[-–]\s?\d{{{{1,2}}}})?\s+(?:of\s+|de\s+)?)?{NAME}\.?,?\s+(?:de\s+)?{YEAR}",
    rf"{NAME}\.?\s+{DAY}(?:st|nd|rd|th)?(?:\s?[-–]\s?\d{{{{1,2}}}})?,?\s+{YEAR}",
    rf"{DAY}\.(?P<month{{0}}>\d{{{{1,2}}}})\.{YEAR}",
    rf"(?P<first>\d{{{{1,2}}}})/(?P<second>\d{{{{1,2}}}})/{YEAR}",
)
ANY = re.compile(
    "|".join(rf"(?:{form.format(number)})" for number, form in enumerate(FORMS)).join(
        (r"(?<![\w/-])(?:", r")(?![\w/-])")
    ),
    re.IGNORECASE,
)
# Which of several dates is the document's own: the lower number wins.
LABELS = (
    (
        0,
        r"(?:first )?published(?: online)?|publication date|date of publication|erschienen|veröffentlicht|publié le|발행일",
    ),
    (1, r"date|dated|issued|released?|issue date|effective(?: date)?|as of|datum|fecha|stand"),
    (2, r"accepted|approved"),
    (3, r"revised|last updated|updated|last modified"),
    (4, r"received|submitted|posted|presented"),
)
LABELLED = tuple(
    (rank, re.compile(rf"(?<!\w)(?:{words})\s*[:：]?\s*(?:(?:on|in|le|am)\s+)?", re.IGNORECASE))
    for rank, words in LABELS
)
ARXIV = re.compile(r"arXiv:\s*(?:\d{4}\.\d{4,5}|[\w.-]+/\d{7})(?:v\d+)?\s*\[[\w.-]+\]\s*(?=\d)")
ARXIV_NUMBER = re.compile(r"arXiv:\s*(\d\d)(\d\d)\.\d{4,5}")
RIGHTS = re.compile(r"(?:©|\(c\)|copyright)\s*(?:©|\(c\))?\s*((?:19|20)\d\d)\b", re.IGNORECASE)


def date_in(words: str) -> str | None:
    """The first date in a stretch of words, in ISO form."""
    match = ANY.search(words)
    return _iso(match) if match else None


def document_date(text: str, lines: tuple[str, ...] = ()) -> str | None:
    """The date a document gives itself: labelled, stamped, or alone on a line near the top."""
    found: list[tuple[int, int, str]] = []
    for rank, label in LABELLED:
        for match in label.finditer(text):
            dated = ANY.match(text, match.end())
            if dated and (iso := _iso(dated)):
                found.append((rank, match.start(), iso))
    if found:
        return min(found, key=lambda item: (item[0], item[1]))[2]
    if (stamp := ARXIV.search(text)) and (dated := ANY.match(text, stamp.end())) and (iso := _iso(dated)):
        return iso
    for line in lines:
        alone = ANY.search(line)
        if alone and len(line) - len(alone[0]) <= 12 and (iso := _iso(alone)):
            return iso
    if number := ARXIV_NUMBER.search(text):
        return f"20{number[1]}-{number[2]}" if 1 <= int(number[2]) <= 12 else None
    rights = RIGHTS.search(text)
    return rights[1] if rights else None


def _iso(match: re.Match[str]) -> str | None:
    """A match as a date, if there is such a day. `05/12/2021` may be either month: then the year is all we know."""
    parts = {re.sub(r"\d+$", "", name): value for name, value in match.groupdict().items() if value}
    year = int(parts["year"])
    if "first" in parts:
        first, second = int(parts["first"]), int(parts["second"])
        if first != second and max(first, second) <= 12:
            return str(year)
        month, day = (first, second) if second > 12 or first == second else (second, first)
    else:
        name = parts["month"].lower()
        month = int(name) if name.isdigit() else MONTHS[name]
        day = int(parts.get("day", 0))
    try:
        whole = Date(year, month, day or 1)
    except ValueError:
        return None
    return whole.isoformat() if day else whole.isoformat()[:7]
