"""The metadata fields of a file (title, authors, date), kept only if they are plausible.

Programs fill these fields with their own names and their templates' dates; such values are worse than none.
"""

from __future__ import annotations

import re
from itertools import takewhile

from assay.core.printable import tidy_whitespace
from assay.ingest.metadata.dates import ANY, WEEKDAY, iso_date, to_iso

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

_ISO = re.compile(r"(\d{4})(?:[-/.](\d{1,2})(?:[-/.](\d{1,2}))?)?(?=$|[T\s])")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?=$|[T\s])")


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
    parts = AND.split(names) if _is_pair(names) else [names]
    return [name for part in parts for name in (part.split(",") if _is_list(part) else [part])]


def _is_pair(names: str) -> bool:
    """Whether an "and" is between names: each is a full one, and the first part is not that of one organisation."""
    sides = [side.strip(" ,") for side in AND.split(names)]
    return all(" " in side for side in sides) and not is_organisation(names.partition(",")[0].strip())


def _is_list(names: str) -> bool:
    """Whether commas separate names: only if there is a full one on both sides, and nothing like "a division of …"."""
    sides = [side.strip() for side in names.split(",") if side.strip()]
    return all(" " in side and not re.match(r"[a-z]+ [a-z]+ ", side) for side in sides)


def parse_date(declared: str) -> str | None:
    """A date in ISO form, as precise as declared; None if it is ambiguous or unreadable."""
    words = tidy_whitespace(declared).replace("\n", " ")
    if match := _COMPACT.match(words) or _ISO.match(words):
        found = iso_date(*(int(part) for part in match.groups() if part))
    else:
        written = ANY.match(re.sub(rf"^{WEEKDAY},?\s+", "", words, flags=re.IGNORECASE))
        found = to_iso(written) if written and "/" not in written[0] else None  # of 05/06/2024 the day is unsure
    believed = found and "1000" <= found[:4] <= "2100" and f"{found}-01-01"[:10] not in _TEMPLATE_DATES
    return found if believed else None


AFFILIATION = re.compile(
    r"universit|institut|department|dept\b|laborator|\blabs?\b|school|college|faculty|cent(?:er|re)\b|academy|hospital"
    r"|\binc\b|\bltd\b|gmbh|corporation|\bcorp\b|company|research\b|\bai\b|ministry|foundation|society|division|group\b"
    r"|google|microsoft|facebook|amazon|street|avenue|\broad\b|p\.?o\.? box|\busa\b|\buk\b|germany|france|china|japan"
    r"|@|https?:|www\.|email|e-mail|\d{4,}|correspond|equal contribution|abstract|keywords",
    re.IGNORECASE,
)
PARTICLES = "de da di do du dos del della der den des van von zu zur la le el al bin ibn ben ter ten af av y e".split()
NAME_PART = re.compile(r"(?:[^\W\d_](?:[\w’'´`˘˚ˇ-]*\w)?\.?|[A-Z]\.(?:-?[A-Z]\.)*)")
NO_NAME = frozenset(
    "the a an of for and in on with by from new review article paper letter report original open access journal volume vol "
    "issue page pages table figure chapter section part draft version preprint proceedings conference workshop international "
    "annual technical user guide manual policy plan summary overview introduction january february march april may june july "
    "august september october november december confidential internal".split()
)
MARKS = re.compile(
    r"(?<=\s)[˘˚ˇ´`¨ˆ˜¸](?=\s|$)|[∗*†‡§¶‖#✉⋆◦]+|(?<=[^\W\d_])\d+(?:,\d+)*|\(\s*[\w ]?\s*\)"
    r"|\b\d+\b|\[[\d, ]+\]|[\u2070-\u209f²³¹]+"
)
TITLES = re.compile(r"\b(?:Prof|Dr)\b\.?\s+(?=[^\W\d_a-z])")
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
    if any(part.lower().strip(".") in NO_NAME for part in parts if len(part.strip(".")) > 1):
        return False
    proper = [part for part in parts if part[0].isupper() and NAME_PART.fullmatch(part)]
    longer = [part for part in proper if len(part.strip(".")) > 1]
    return len(longer) >= 1 and all(part in proper or part.lower() in PARTICLES for part in parts) and len(proper) >= 2


def is_organisation(words: str) -> bool:
    """Whether the text is capitalised words of which the last, or one before "of", denotes an organisation."""
    parts = words.split()
    if not 2 <= len(parts) <= 9 or len(words) > 90 or any(map(str.isdigit, words)) or not parts[0][:1].isupper():
        return False
    spelled = all(part[:1].isupper() or part.lower() in SMALL for part in parts)
    return spelled and bool(any(map(NAMED_LAST.search, AND.split(words))) or NAMED_FIRST.search(words))


def find_people(words: str) -> list[str]:
    """The people named in a line, without the marks, titles and degrees at their names."""
    return [name for piece in _pieces(words) if (name := _name(piece))]


def find_people_before_affiliation(words: str) -> list[str]:
    """The people that a line names before it says where they work: `Jane Doe, University of Oslo`."""
    names = map(_name, _pieces(re.sub(r"\([^()]{0,200}\)", "", words)))
    return [*takewhile(bool, names)]


def _pieces(words: str) -> list[str]:
    words = re.sub(r"<?(?<!\S)<?\S+@\S+|\{[^}]{0,300}\}\S*", ",", words)
    words = DEGREES.sub("", TITLES.sub("", MARKS.sub(",", words)))
    pieces = re.split(r"[,;·•|/\t\n]|(?<!\w)(?:and|AND|und|UND|et|ET|&)(?!\w)|\s{3,}", words)
    return [piece.strip() for piece in pieces if piece.strip(" .:–-")]


def _name(piece: str) -> str:
    """The person that a part of a line names; empty if it is something else."""
    name = re.sub(r"^(?:by|von|par|authors?:?)\s+", "", piece, flags=re.IGNORECASE)
    name = re.sub(r"\s+", " ", name).strip(" :–-")
    return (name if re.search(r"(?:^|\W)\w\.$", name) else name.rstrip(".")) if is_name(name) else ""


def parse_people(words: str) -> list[str]:
    """The people of a line that contains nothing else; empty if it contains anything else."""
    names = [*map(_name, _pieces(words))]
    return names if all(names) else []


def is_spelled_as_name(words: str) -> bool:
    """Whether the text is capitalised like a name; `3M` is."""
    parts = words.split()
    return len(parts) <= 8 and all(not part[:1].islower() or part.lower() in SMALL for part in parts)
