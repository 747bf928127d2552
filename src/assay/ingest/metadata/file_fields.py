"""The metadata fields of a file (title, authors, date), kept only if they are plausible.

Programs fill these fields with their own names and their templates' dates; such values are worse than none.
"""

from __future__ import annotations

import re
from datetime import date as Date

from assay.core.printable import tidy_whitespace
from assay.ingest.metadata.authors import split_and

_NO_TITLE = re.compile(
    r"(?:untitled.*|no title|document\s*\d*|dokument\s*\d*|new document|title|titel|home|index|page \d+"
    r"|(?:microsoft )?(?:powerpoint|office|word|excel|keynote)?[- ]?pr[eé]sentation\s*\d*"
    r"|(?:test|sample|example|draft|placeholder|scan|image)\s*\d*|lorem ipsum.*|click to (?:add|edit|insert).*|tbd|todo|x{3,}"
    r"|(?:your|insert|enter|add|type) (?:a |the |your )?(?:sub)?title.*|title (?:slide|page|here|goes here|of .*)"
    r"|(?:document|report|paper|book|page|presentation) title|heading \d+|slide \d+"
    r"|(?:book|workbook|mappe|sheet)\s*\d*|template|normal|unknown|none|null"
    r"|.*\.(?:docx?|pptx?|xlsx?|dotx?|potx?|indd|qxd|tmp|html?|pdf|epub|txt|md))",
    re.IGNORECASE,
)
_PRODUCER = re.compile(r"^(?:microsoft (?:word|powerpoint|excel)|word|powerpoint)\s+-\s+", re.IGNORECASE)
_NO_AUTHOR = re.compile(
    r"(?:(?:windows|microsoft|office|microsoft office|ms office)?\s*(?:user|admin|administrator)|author|unknown|un-?named"
    r"|none|null|python-docx|openpyxl|xlsxwriter|steve canny|apache poi|docx4j|aspose.*|pandoc|libreoffice.*|calibre.*"
    r"|contributors to .*|microsoft|root|owner|n/?a|staff|editor|by|https?://.*|www\..*|@\w+)",
    re.IGNORECASE,
)
# Creation dates of the templates of widely used libraries, not of documents.
_TEMPLATE_DATES = frozenset(
    {"2013-12-23", "2013-01-27", "2015-06-05", "2006-09-16", "2006-08-16", "1980-01-01", "1970-01-01"}
)

_MONTH = re.compile("(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*")
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_ISO = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?=$|[T\s])")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?=$|[T\s])")
_DAY_FIRST = re.compile(r"(?:\w+,?\s+)?(\d{1,2})(?:st|nd|rd|th)?\.?\s+([a-z]+)\.?,?\s+(\d{4})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(r"(?:\w+day,?\s+)?([a-z]+)\.?\s+(?:(\d{1,2})(?:st|nd|rd|th)?,?\s+)?(\d{4})\b", re.IGNORECASE)


def plausible_title(declared: str) -> str:
    """The declared title; empty if it is a program's default for an untitled file."""
    words = _PRODUCER.sub("", tidy_whitespace(declared).replace("\n", " "))
    return "" if _NO_TITLE.fullmatch(words) or len(words) > 400 or not any(map(str.isalnum, words)) else words


def parse_authors(*declared: str) -> tuple[str, ...]:
    """Names from one or several fields; `A; B`, `A, B and C` and `A & B` are several people, `Doe, Jane` is one."""
    found: dict[str, None] = {}
    for names in declared:
        for name in _names(tidy_whitespace(names).replace("\n", ";")):
            name = re.sub(r"^(?:by|von|par)\s+", "", name, flags=re.IGNORECASE).strip(" ,;|·")
            if 1 < len(name) <= 100 and any(map(str.isalpha, name)) and not _NO_AUTHOR.fullmatch(name):
                found.setdefault(name)
    return tuple(found)


def _names(names: str) -> list[str]:
    if ";" in names:
        return names.split(";")
    parts = split_and(names)
    return [name for part in parts for name in (part.split(",") if _is_list(part) else [part])]


def _is_list(names: str) -> bool:
    """Whether commas separate names: only if there is a full one on both sides, and nothing like "a division of …"."""
    sides = [side.strip() for side in names.split(",") if side.strip()]
    return all(" " in side and not re.match(r"[a-z]+ [a-z]+ ", side) for side in sides)


def parse_date(declared: str) -> str | None:
    """A date in ISO form, as precise as declared; None if it is ambiguous or unreadable."""
    words = tidy_whitespace(declared).replace("\n", " ")
    if match := _COMPACT.match(words) or _ISO.match(words):
        return _iso(*match.groups())
    if match := _DAY_FIRST.match(words):
        return _iso(match[3], _month(match[2]), match[1])
    if match := _MONTH_FIRST.match(words):
        return _iso(match[3], _month(match[1]), match[2])
    return None


def _month(name: str) -> str:
    return str(_MONTHS.index(name[:3].lower()) // 4 + 1) if _MONTH.fullmatch(name.lower()) else ""


def _iso(year: str, month: str | None, day: str | None) -> str | None:
    if month == "":
        return None
    try:
        whole = Date(int(year), int(month or 1), int(day or 1))
    except ValueError:
        return None
    if not 1000 <= whole.year <= 2100 or whole.isoformat() in _TEMPLATE_DATES:
        return None
    return whole.isoformat()[: 10 if day else 7 if month else 4]
