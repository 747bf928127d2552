"""Title, authors, date and abstract, by layout and rule. What is not there stays empty: nothing is invented.

PDFs come with the looks of their first lines; other formats with what their own fields said. Only gaps are filled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assay.ingest import declared as said
from assay.ingest.dates import date_in, document_date
from assay.ingest.parsed import Parsed
from assay.types import Section


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the first pages, with its looks: what a title page is read from."""

    text: str
    start: int
    end: int
    page: int
    size: float
    bold: bool
    y: float  # from 0 at the top of the page to 1
    paragraph: int
    turned: bool = False  # runs up the page: a stamp in the margin


@dataclass(frozen=True, slots=True)
class Described:
    title: str = ""
    authors: tuple[str, ...] = ()
    date: str | None = None
    abstract: tuple[int, int] | None = None
    body: int = 0  # where the title block ends


NEAR = 4_000  # characters from the top: where a document says what it is
ABSTRACT_WITHIN, LONGEST_ABSTRACT, SHORTEST_ABSTRACT = 12_000, 5_000, 80
ABSTRACT = re.compile(
    r"(?:\A|\n\n?)[ \t#*_]*(?:abstract|summary|executive summary|résumé|zusammenfassung|kurzfassung|resumen|sommario"
    r"|samenvatting|resumo)\**_*[ \t]*(?P<mark>[.:—–-]+(?=\s|\w)|\n+)\s*",
    re.IGNORECASE,
)
AFTER_ABSTRACT = re.compile(
    r"\n+[ \t#*_]*(?:key ?words|index terms|ccs concepts|categories and subject|general terms|schlüsselwörter|mots[- ]clés"
    r"|palabras clave|acm reference|(?:(?:\d+|I)\.?\s+)?introduction|contents|\d\.?\s+[A-Z])",
    re.IGNORECASE,
)
AFFILIATION = re.compile(
    r"universit|institut|department|dept\b|laborator|\blabs?\b|school|college|faculty|cent(?:er|re)\b|academy|hospital"
    r"|\binc\b|\bltd\b|gmbh|corporation|\bcorp\b|company|research\b|\bai\b|ministry|foundation|society|division|group\b"
    r"|google|microsoft|facebook|amazon|street|avenue|\broad\b|p\.?o\.? box|\busa\b|\buk\b|germany|france|china|japan"
    r"|@|https?:|www\.|email|e-mail|\d{4,}|correspond|equal contribution|abstract|keywords",
    re.IGNORECASE,
)
PARTICLES = "de da di do du dos del della der den des van von zu zur la le el al bin ibn ben ter ten af av y e"
NAME_PART = re.compile(r"(?:[A-ZÀ-ÞŁŠŽĆČĐŐ](?:[\w’'´`˘˚ˇ-]*\w)?\.?|[A-Z]\.(?:-?[A-Z]\.)*)")
NO_NAME = (
    "the a an of for and in on with by from new review article paper letter report original open access journal volume "
    "vol issue page pages table figure chapter section part draft version preprint proceedings conference workshop "
    "international annual technical user guide manual policy plan summary overview introduction january february march "
    "april may june july august september october november december confidential internal"
)
MARKS = re.compile(
    r"(?<=\s)[˘˚ˇ´`¨ˆ˜¸](?=\s|$)|[∗*†‡§¶‖#✉⋆◦]+|(?<=[^\W\d_])\d+(?:,\d+)*|\(\s*[\w ]?\s*\)"
    r"|\b\d+\b|\[[\d, ]+\]|[\u2070-\u209f²³¹]+"
)
DEGREES = re.compile(r",?\s*\b(?:Ph\.?D|M\.?D|M\.?Sc|B\.?Sc|MBA|FRCP|Jr|Sr|Prof|Dr)\b\.?", re.IGNORECASE)
FIELD = re.compile(
    r"^[ \t>*_#-]*(title|subject|authors?|by|written by|date|published)[*_]*[ \t]*:[*_ \t]*(\S.*?)[*_ \t]*$",
    re.IGNORECASE,
)
FIELD_NAMES = {"subject": "title", "authors": "author", "by": "author", "written by": "author", "published": "date"}
UNTITLED_KINDS = frozenset({"csv", "xlsx", "email"})


def describe(
    text: str,
    sections: Sequence[Section] = (),
    front: Sequence[Place] = (),
    declared: Mapping[str, str] | None = None,
) -> Described:
    """What a laid-out document says of itself on its first page; `declared` is what the file's fields claim."""
    claims = declared or {}
    upright = [place for place in front if place.page == 0 and not place.turned]
    titled = title_lines(upright)
    title = " ".join(place.text.strip() for place in titled)
    claimed = said.title(claims.get("title", ""))
    if claimed and _folded(claimed) in _folded(text[:NEAR]) and len(claimed.split()) > 1:
        title = title if _folded(claimed) in _folded(title) and len(title) < 2 * len(claimed) else claimed
    elif not title and len(claimed.split()) > 2 and "_" not in claimed:
        title = claimed
    abstract = abstract_in(text, sections)
    authors, after = authors_below(upright, titled)
    if authors and abstract is None and not _vouched(upright, after):
        authors, after = (), 0
    if not authors:
        authors = tuple(name for name in said.authors(claims.get("author", "")) if is_name(name))
    page = text[: max((place.end for place in front if place.page == 0), default=NEAR)][:8_000]
    return Described(
        title=re.sub(r"\s+", " ", MARKS_AT_END.sub("", title)).strip(),
        authors=authors,
        date=document_date(page, tuple(place.text for place in upright)),
        abstract=abstract,
        body=max([after, *(place.end for place in titled)]),
    )


def described(parsed: Parsed) -> Parsed:
    """A parsed document with the gaps filled that its text can fill."""
    fields = _fields(parsed.text) if parsed.kind in {"text", "markdown", "rst", "org", "html"} else {}
    prose = parsed.kind not in UNTITLED_KINDS
    return replace(
        parsed,
        title=parsed.title
        or said.title(fields.get("title", ""))
        or (_first_line(parsed) if parsed.kind == "text" else ""),
        authors=parsed.authors or said.authors(fields.get("author", "")),
        date=parsed.date
        or (date_in(fields.get("date", "")) if "date" in fields else None)
        or (document_date(parsed.text[:2_000], tuple(parsed.text[:1_000].split("\n")[:15])) if prose else None),
        abstract=parsed.abstract or (abstract_in(parsed.text, parsed.sections) if prose else None),
    )


# --- title ----------------------------------------------------------------------------------------------------------

MARKS_AT_END = re.compile(r"\s*[∗*†‡§]+\s*$")
NO_TITLE = re.compile(
    r"(?i:chapter|section|part|appendix|figure|table)\s+[\dIVX]|\d[\d.]*\s+\w|page \d|contents$"
    r"|table of contents|[^\w\s]*[a-zß-ÿ]"
)


def title_lines(lines: Sequence[Place]) -> list[Place]:
    """The largest words in the upper part of the first page, over as many lines as they take."""
    upper = [
        line for line in lines if line.y < 0.65 and sum(map(str.isalpha, line.text)) >= 3 and not _is_date(line.text)
    ]
    if not upper:
        return []
    weights: dict[float, int] = {}
    for line in lines:
        weights[line.size] = weights.get(line.size, 0) + len(line.text)
    body = max(weights, key=lambda size: weights[size])
    for size in sorted({line.size for line in upper if line.size > 1.1 * body}, reverse=True):
        group = _together([line for line in upper if abs(line.size - size) < 0.06 * size])
        words = " ".join(line.text for line in group).split()
        more = [line for line in upper if 1.1 * body < line.size < size and len(line.text.split()) >= 4]
        if len(words) <= 2 and more and group[0].y < min(line.y for line in more):
            continue  # the name of a journal or a firm stands over the title
        if len(words) <= 30:
            return [] if NO_TITLE.match(group[0].text) else group
    first = upper[0]
    emphatic = (
        first.bold and not NO_TITLE.match(first.text) and first.text[-1:] not in ".,;:" and len(first.text.split()) >= 2
    )
    # a title in bold of the text's own size; not when everything is bold
    plain = any(not line.bold for line in lines)
    return _together([line for line in upper if line.bold and line.size == first.size]) if emphatic and plain else []


def _is_date(words: str) -> bool:
    return len(words) < 40 and date_in(words) is not None


def _together(lines: list[Place]) -> list[Place]:
    """The first of these lines and those that follow it directly."""
    group = lines[:1]
    for line in lines[1:]:
        if line.paragraph - group[-1].paragraph > 1 or line.y - group[-1].y > 0.06 or len(group) >= 5:
            break
        group.append(line)
    return group


def _first_line(parsed: Parsed) -> str:
    """A short line with a blank one below it opens a text the way a title does."""
    head, _, rest = parsed.text.lstrip("\n").partition("\n\n")
    words = head.strip()
    fits = "\n" not in words and 2 <= len(words) <= 120 and words[-1] not in ".,;:!?-" and len(rest) > len(words)
    return words if fits and any(map(str.isalpha, words)) and said.title(words) else ""


# --- authors --------------------------------------------------------------------------------------------------------


def authors_below(lines: Sequence[Place], titled: Sequence[Place]) -> tuple[tuple[str, ...], int]:
    """Names under the title, set alike; and where their last line ends."""
    if not titled:
        return (), 0
    last = max(line.end for line in titled)
    below = [line for line in lines if line.start >= last and line.y < 0.8][:25]
    style: tuple[float, bool] | None = None
    gathered = ""
    end = 0
    for line in below:
        words = line.text.strip()
        if ABSTRACT.match(words + "\n") or len(words) > 400 or OPENING.match(words):
            break
        names = [] if AFFILIATION.search(DEGREES.sub("", words)) else _names_in(words)
        if style is None:
            if not names:
                if len(words.split()) > 12 or line.start - last > 600:
                    break
                continue
            style = (line.size, line.bold)
        elif (line.size, line.bold) != style or not (names or _goes_on(gathered, words)):
            if gathered.count(",") >= 2 or AFFILIATION.search(words) is None:
                break  # names in a list end where something else begins; names one by one may have more below
            continue
        gathered += (" " if _goes_on(gathered, words) else ", ") + line.text if gathered else line.text
        end = line.end
    return tuple(dict.fromkeys(_names_in(gathered))), end


OPENING = re.compile(r"(?:\d\.?|I\.)?\s*introduction\b", re.IGNORECASE)
VOUCHES = re.compile(
    r"universit|institut|department|laborator|school of|college|hospital|faculty|^(?:by|authors?)\b", re.IGNORECASE
)


def _vouched(lines: Sequence[Place], after: int) -> bool:
    """Names stand over an affiliation or an address; the heads of a table do not."""
    near = [line for line in lines if line.start <= after + 400]
    return any(VOUCHES.search(line.text) for line in near)


def _goes_on(gathered: str, words: str) -> bool:
    """Does a list of names run over the end of its line?"""
    ended = gathered.rstrip()
    open_ended = bool(ended) and "," in gathered and ended[-1] not in ",;" and not ended.endswith(" and")
    return open_ended and not AFFILIATION.search(words)


def _names_in(words: str) -> list[str]:
    words = re.sub(r"\S+@\S+|\{[^}]*\}\S*", ",", words)
    words = DEGREES.sub("", MARKS.sub(",", words))
    pieces = re.split(r"[,;·•|/\t\n]|(?<!\w)(?:and|und|et|&)(?!\w)|\s{3,}", words)
    names = (re.sub(r"^(?:by|von|par|authors?:?)\s+", "", piece.strip(), flags=re.IGNORECASE) for piece in pieces)
    return [re.sub(r"\s+", " ", name).strip(" .:–-") for name in names if is_name(name)]


def is_name(words: str) -> bool:
    """Two to five parts that are spelled as a person's are. Names in other scripts are short and alone on their line."""
    parts = words.replace("\xa0", " ").strip(" .:–-").split()
    if not 2 <= len(parts) <= 5 or len(words) > 60 or AFFILIATION.search(words):
        return False
    if any(part.lower().strip(".") in NO_NAME.split() for part in parts):
        return False
    proper = [part for part in parts if NAME_PART.fullmatch(part)]
    longer = [part for part in proper if len(part.strip(".")) > 1]
    return (
        len(longer) >= 1
        and all(part in proper or part.lower() in PARTICLES.split() for part in parts)
        and len(proper) >= 2
    )


# --- abstract -------------------------------------------------------------------------------------------------------


def abstract_in(text: str, sections: Sequence[Section] = ()) -> tuple[int, int] | None:
    """The words under (or after) "Abstract", without the label; none where there is no label."""
    match = ABSTRACT.search(text, 0, ABSTRACT_WITHIN)
    if match is None:
        return None
    start = match.end()
    heading = next((section.start for section in sections if section.start >= start), len(text))
    stop = AFTER_ABSTRACT.search(text, start, start + LONGEST_ABSTRACT)
    end = min(heading, stop.start() if stop else len(text))
    if end - start > LONGEST_ABSTRACT:
        end = text.find("\n\n", start)  # no end in sight: the first paragraph is surely part of it
        end = end if end > 0 else len(text)
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if SHORTEST_ABSTRACT <= end - start <= LONGEST_ABSTRACT else None


# --- fields at the top of a plain text ------------------------------------------------------------------------------


def _fields(text: str) -> dict[str, str]:
    """`Title: …`, `Author: …` and `Date: …` in the first lines of a text."""
    found: dict[str, str] = {}
    for line in text[:3_000].split("\n")[:20]:
        if match := FIELD.match(line):
            name = match[1].lower()
            found.setdefault(FIELD_NAMES.get(name, name), match[2])
        elif found and len(line) > 200:
            break
    return found


def _folded(words: str) -> str:
    return re.sub(r"\W+", "", words).casefold()
