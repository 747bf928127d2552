"""Finds the date of a document in its own text: as precise as it is written, and None rather than a guess."""

from __future__ import annotations

import re
from datetime import date as Date

from assay.language.dates import MONTHS

NAME = rf"(?P<month{{0}}>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
YEAR = r"(?P<year{0}>(?:1[5-9]|20)\d\d)"
DAY = r"(?P<day{0}>\d{{1,2}})"
FORMS = (
    rf"{YEAR}-(?P<month{{0}}>\d{{{{2}}}})-{DAY}",
    rf"{YEAR}/(?P<month{{0}}>\d{{{{2}}}})/{DAY}",
    rf"{YEAR}\s?[年년]\s?(?P<month{{0}}>\d{{{{1,2}}}})\s?[月월](?:\s?{DAY}\s?[日일])?",
    rf"(?:{DAY}(?:st|nd|rd|th|er|º)?\.?(?:(?:-|\s?–\s?)\d{{{{1,2}}}})?\s+(?:of\s+|de\s+)?)?{NAME}\.?,?\s+(?:de\s+)?{YEAR}",
    rf"{NAME}\.?\s+{DAY}(?:st|nd|rd|th)?(?:\s?[-–]\s?\d{{{{1,2}}}})?,?\s+{YEAR}",
    rf"{DAY}\.(?P<month{{0}}>\d{{{{1,2}}}})\.{YEAR}",
    rf"(?P<first>\d{{{{1,2}}}})/(?P<second>\d{{{{1,2}}}})/{YEAR}",
)
ANY_FORM = "|".join(rf"(?:{form.format(number)})" for number, form in enumerate(FORMS))
ANY = re.compile(rf"(?<![\w/-])(?<!\d\.)(?:{ANY_FORM})(?![\w/-])", re.IGNORECASE)
WEEKDAY = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tue|wed|thu|fri|sat|sun)\b\.?|montag|dienstag|mittwoch"
    r"|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|(?:segunda|terça|quarta"
    r"|quinta|sexta)-feira|sábado|domingo|lunes|martes|miércoles|jueves|viernes)"
)
# Priority of labels if there are several dates: the lower number wins.
LABELS = (
    (0, r"(?:first )?published(?: online)?|publication date|date of publication|erschienen|veröffentlicht|publié le"),
    (0, r"publicado (?:em|el)|pubblicato il|발행일|기사입력"),
    (
        1,
        r"(?:(?:report|issue|release|document|meeting|receipt|invoice) )?date|dated|issued|released?|datum|fecha|stand",
    ),
    (3, r"revised|(?:last )?updated|last modified|effective(?: date| from)?|as of|in (?:use|force) (?:since|from)"),
    (4, r"received|submitted|posted|presented|print(?:ed)? date|printed"),
)
# A label opens a line or a statement. "A letter published in May 2018" refers to another document.
OPENS = r"(?:^|(?<=[\n\t|;(\[•·])|(?<=[.!?:;|(] )|(?<=\d[,;] )|(?<=\d ))[ \t*_#>-]{0,12}"
LEADS = rf"[*_]*\s*[:：]?[*_]*\s*\[?\s*(?:(?:on|in|le|am|the)\s+)?(?:{WEEKDAY},?\s+)?"
LABELLED = tuple(
    (rank, re.compile(rf"{OPENS}(?:{words})(?!\w){LEADS}", re.IGNORECASE | re.MULTILINE)) for rank, words in LABELS
)
CLOCK = re.compile(
    r"(?:\b(?:at|um|à|às)\s+)?\b\d{1,2}[:h.]\d\d(?::\d\d)?\s*(?:[ap]\.?m\b\.?\s*)?(?:[A-Z]{2,4}\b)?",
    re.IGNORECASE,
)
ARXIV = re.compile(r"arXiv:\s*(?:\d{4}\.\d{4,5}|[\w.-]+/\d{7})(?:v\d+)?\s*\[[\w.-]+\]\s*(?=\d)")


def find_date(words: str) -> str | None:
    """The first date in a text, in ISO form."""
    match = ANY.search(words)
    return to_iso(match) if match else None


def find_document_date(text: str, head: str = "", title: str = "") -> str | None:
    """The date that a document gives for itself: labelled or stamped, or alone on a line of its `head`.

    The head is the text above the running text. A label there takes precedence over one further down, where documents
    mention other documents. A date in the title may be that of an event, so it counts only with a label.
    """
    top = f"{title}\n{head}"
    if found := [item for item in _labelled(top) if item[0] <= 1]:
        return min(found)[2]
    if (stamp := ARXIV.search(text)) and (dated := ANY.match(text, stamp.end())) and (iso := to_iso(dated)):
        return iso
    if alone := next(filter(None, map(_alone, head.split("\n"))), None):
        return alone
    if found := _labelled(text):
        return min(found)[2]
    return None  # a copyright year is that of some edition, often the first


def _labelled(text: str) -> list[tuple[int, int, str]]:
    return [
        (rank, match.start(), iso)
        for rank, label in LABELLED
        for match in label.finditer(text)
        if (dated := ANY.match(text, match.end()))
        and not (AS_OF.search(match[0]) and GOES_ON.match(text, dated.end()))
        and (iso := to_iso(dated))
    ]


# "As of June 30, 2022, the market value was …" is about the value.
AS_OF = re.compile(r"\bas of\b", re.IGNORECASE)
GOES_ON = re.compile(r",? +\w|,\s")


def _alone(line: str) -> str | None:
    """The date on a line without other words, or at the end of a byline (`Jane Doe, 3 May 2022`)."""
    dates = list(ANY.finditer(line))
    if len(dates) != 1 or len(line) > 140:
        return None  # two dates are a period
    before, after = line[: dates[0].start()], CLOCK.sub("", line[dates[0].end() :])
    before = re.sub(rf"{WEEKDAY},?\s*$", "", before, flags=re.IGNORECASE)
    if any(label.search(before) for rank, label in LABELLED if rank > 1):
        return None  # "Received" is weaker than a date without a label; labels are handled elsewhere
    if re.search(r"[:\t|]\s{0,40}$", before):
        return None  # it belongs to its own label, or to a table row
    if _has_month_name(dates[0]) and re.search(r"\d\s?[-–]\s?\d", dates[0][0]):
        return None  # several days are those of an event
    bare = not any(map(str.isalpha, before + after)) and len((before + after).strip()) <= 12
    ends = (
        re.search(r"(?:[.,;·–—-]\s{1,40}|\()(?:as of|dated|issued|on)?\s{0,40}$", before)
        and not after.strip(" .)*_")
        and _byline(before)
    )
    opens = not before.strip(" *_#>(-") and re.match(r"\s*[-–—|·]\s", after) and _byline(after)
    return to_iso(dates[0]) if bare or ends or opens else None


def _byline(words: str) -> bool:
    """Whether the words are few and mostly names: a sentence that ends in a date describes an event."""
    parts = re.findall(r"[^\W\d_]+", words)
    return len(parts) <= 12 and sum(part[0].islower() for part in parts) <= max(2, len(parts) // 3)


IN_NAME = re.compile(
    r"(?<![\d.])(?P<year>(?:19|20)\d\d)"
    r"(?:(?P<mark>[-_ ])(?P<month>0[1-9]|1[0-2])(?:(?P=mark)(?P<day>0[1-9]|[12]\d|3[01]))?"
    r"|(?P<close>0[1-9]|1[0-2])(?P<last>0[1-9]|[12]\d|3[01]))(?![-_. ]?\d|-?[A-Za-z](?![A-Za-z])|[A-Za-z])"
)


def find_date_in_file_name(name: str) -> str | None:
    """The day or month in a file's name, if there is exactly one. A year alone is as often the subject as the date."""
    stem = re.sub(r"\.\w{1,5}$", "", re.split(r"[/\\]", name)[-1])
    found = {iso for match in IN_NAME.finditer(stem) if (iso := _from_name(match))}
    spaced = re.sub(r"[-_]+", " ", stem)
    found |= {iso for match in ANY.finditer(spaced) if _has_month_name(match) and (iso := to_iso(match))}
    return found.pop() if len(found) == 1 else None


def _from_name(match: re.Match[str]) -> str | None:
    year, month, day = match["year"], match["month"] or match["close"], match["day"] or match["last"]
    if not day and int(month) == (int(year) + 1) % 100:
        return None  # 2010-11 may be a year that begins in autumn
    return iso_date(int(year), int(month), int(day) if day else None)


def _has_month_name(match: re.Match[str]) -> bool:
    return any(value and value.lower() in MONTHS for key, value in match.groupdict().items() if key.startswith("month"))


def to_iso(match: re.Match[str]) -> str | None:
    """A match as an ISO date, if the day exists. In `05/12/2021` day and month are ambiguous: only the year is kept."""
    parts = {name.rstrip("0123456789"): value for name, value in match.groupdict().items() if value}
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
    return iso_date(year, month, day or None)


def iso_date(year: int, month: int | None = None, day: int | None = None) -> str | None:
    """A date in ISO form, as precise as it is given; None if there is no such day."""
    try:
        whole = Date(year, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return None
    return whole.isoformat()[: 10 if day else 7 if month else 4]
