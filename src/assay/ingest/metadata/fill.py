"""Title, authors, date and abstract, by layout and rule. Missing values stay empty: nothing is invented.

PDFs supply the typography of their first lines, other formats their own metadata fields. Only gaps are filled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from assay.core.formats import TitleSource, format_named
from assay.core.identity import KIND, ORGANISATION, PERIOD, title_by_identity
from assay.core.types import Section
from assay.ingest.metadata.dates import ANY, find_date, find_date_in_file_name, find_document_date
from assay.ingest.metadata.file_fields import (
    AFFILIATION,
    DEGREES,
    find_people,
    find_people_before_affiliation,
    is_name,
    is_organisation,
    parse_authors,
    parse_people,
    plausible_title,
)
from assay.ingest.metadata.identity import find_identity, own_title
from assay.ingest.parsed import Parsed


@dataclass(frozen=True, slots=True)
class FrontLine:
    """A line of the first pages with its typography, from which the title page is read."""

    text: str
    start: int
    end: int
    page: int
    size: float
    bold: bool
    y: float  # from 0 at the top of the page to 1
    paragraph: int
    turned: bool = False  # rotated: a stamp in the margin


ABSTRACT_WITHIN, LONGEST_ABSTRACT, SHORTEST_ABSTRACT = 12_000, 5_000, 80
ABSTRACT = re.compile(
    r"(?:\A|\n\n?)[ \t#*_]*(?:abstract|summary|executive summary|résumé|zusammenfassung|kurzfassung|resumen|sommario"
    r"|samenvatting|resumo)\**_*[ \t]*(?P<mark>[.:—–-]+(?=\s|\w)|\n+)\s*",
    re.IGNORECASE,
)
AFTER_ABSTRACT = re.compile(
    r"(?<!\n)\n++[ \t#*_]*+(?:key ?words|index terms|ccs concepts|categories and subject|general terms|schlüsselwörter"
    r"|mots[- ]clés|palabras clave|acm reference|(?:(?:\d+|I)\.?\s+)?introduction|contents|\d\.?\s+[A-Z])",
    re.IGNORECASE,
)


def read_front_page(
    text: str, sections: Sequence[Section], front: Sequence[FrontLine], declared: Mapping[str, str]
) -> tuple[dict[str, Any], int]:
    """The metadata on the first page of a document with layout, and the offset at which its title block ends. `declared` are
    the file's own fields."""
    upright = [place for place in front if place.page == 0 and not place.turned]
    titled = find_title_lines(upright)
    title = " ".join(place.text.strip() for place in titled)
    claimed = plausible_title(declared.get("title", ""))
    if claimed and _folded(claimed) in _folded(text[:NEAR]) and len(claimed.split()) > 1:
        title = title if _folded(claimed) in _folded(title) and len(title) < 2 * len(claimed) else claimed
    elif not title and len(claimed.split()) > 2 and "_" not in claimed:
        title = claimed
    abstract = find_abstract(text, sections)
    authors, after = find_authors_below(upright, titled)
    if authors and abstract is None and not _vouched(upright, after):
        authors, after = (), 0
    if not authors:
        names = parse_authors(declared.get("author", ""))  # programs and filing agents fill in their own
        authors = names if all(is_name(name) or is_organisation(name) for name in names) else ()
    page = text[: max((place.end for place in front if place.page == 0), default=NEAR)][:8_000]
    paragraphs = groupby((place for place in upright if place not in titled), key=lambda place: place.paragraph)
    head = lines_above_prose([place.text for place in places] for _, places in paragraphs)
    facts = {
        "title": re.sub(r"\s+", " ", MARKS_AT_END.sub("", title)).strip(),
        "authors": authors,
        "date": find_document_date(page, "\n".join(head[:25]), title),
        "abstract": abstract,
    }
    return facts, max([after, *(place.end for place in titled)])


def fill_metadata(parsed: Parsed, name: str = "") -> Parsed:
    """A parsed document with its gaps filled from its text and, last, from its file name."""
    format = format_named(parsed.kind)
    if not format.has_title:
        return _identified(replace(parsed, date=parsed.date or find_date_in_file_name(name)), name)
    fields = parse_header_lines(parsed.text) if format.header_lines else {}
    candidates = (parsed.title, plausible_title(fields.get("title", "")), _opening(parsed, format.title_source))
    title = next((own for each in candidates if (own := own_title(plausible_title(each), parsed.text))), "")
    paragraphs = (paragraph.split("\n") for paragraph in parsed.text[:NEAR].split("\n\n")[:12])
    lines = lines_below_title(lines_above_prose(paragraphs), title)
    abstract = parsed.abstract or find_abstract(parsed.text, parsed.sections)
    signed = () if format.described_by_layout else find_byline(lines, sure=abstract is not None)
    date = find_date(fields.get("date", "")) or find_document_date(parsed.text[:2_000], "\n".join(lines), title)
    authors = parse_authors(fields.get("author", "")) or signed
    by_program = format.authored_by_program
    filled = replace(
        parsed,
        title=title,
        authors=(signed or parsed.authors if by_program else parsed.authors) or authors,
        date=(date or parsed.date if by_program else parsed.date or date) or find_date_in_file_name(name),
        abstract=abstract,
    )
    found = _identified(filled, name)
    return found if found.title else replace(found, title=title_by_identity(found.meta))


def _identified(parsed: Parsed, name: str) -> Parsed:
    """With organisation, kind and period. The name of its organisation is no title for a report or an invoice."""
    found = find_identity(parsed.text, parsed.title, name, parsed.authors, has_abstract=parsed.abstract is not None)
    only_name = _folded(parsed.title) == _folded(found.get(ORGANISATION, "")) and (KIND in found or PERIOD in found)
    return replace(parsed, title="" if only_name else parsed.title, meta={**found, **parsed.meta})


def _opening(parsed: Parsed, source: TitleSource) -> str:
    """The title that the text opens with: its first line, or a heading over the whole text."""
    if source is TitleSource.first_line:
        return find_title_line(parsed.text)
    if source is TitleSource.none or not parsed.sections:
        return ""
    first, *others = parsed.sections
    over = not parsed.text[: first.start].strip() and all(section.level > first.level for section in others)
    fits = len(first.title) <= 200 and not first.title.endswith(":") and not NO_TITLE.match(first.title)
    return plausible_title(first.title) if over and fits else ""


MARKS_AT_END = re.compile(r"\s{0,9}[∗*†‡§]{1,9}\s{0,9}$")


def find_title_lines(lines: Sequence[FrontLine]) -> list[FrontLine]:
    """The largest text in the upper part of the first page, over one or several lines."""
    upper = [line for line in lines if line.y < 0.65]
    if not upper:
        return []
    weights: Counter[float] = Counter()
    for line in lines:
        weights[line.size] += len(line.text)
    body = weights.most_common(1)[0][0]
    first = upper[0]
    # a bold title in the size of the text; not if everything is bold, nor if it is a table row
    headed = (
        first.bold
        and any(not line.bold for line in lines)
        and not NO_TITLE.match(first.text)
        and first.text[-1:] not in ".,;:"
        and len(first.text.split()) >= 2
        and "\t" not in first.text
    )
    for size in sorted({line.size for line in upper if line.size > 1.1 * body}, reverse=True):
        group = _together([line for line in upper if abs(line.size - size) < 0.06 * size])
        running_lines = _running_text_above(lines, group[0])
        if running_lines >= 3 or (running_lines and headed and first.size <= 1.1 * body):
            continue  # larger text below the first sentences is a section heading
        words = " ".join(line.text for line in group).split()
        more = [line for line in upper if 1.1 * body < line.size < size and len(line.text.split()) >= 4]
        if len(words) <= 2 and more and group[0].y < min(line.y for line in more):
            continue  # the name of a journal or a firm above the title
        if len(words) <= 30:
            return [] if NO_TITLE.match(group[0].text) else group
    return _together([line for line in upper if line.bold and line.size == first.size]) if headed else []


def _running_text_above(lines: Sequence[FrontLine], below: FrontLine) -> int:
    """The number of lines of running text above this one."""
    over = (line.text.split() for line in lines if line.start < below.start and line.y < below.y)
    return sum(len(words) >= 8 and 2 * sum(word[:1].islower() for word in words) > len(words) for words in over)


def _together(lines: list[FrontLine]) -> list[FrontLine]:
    """The first of these lines and those that follow it directly."""
    group = lines[:1]
    for line in lines[1:]:
        if line.paragraph - group[-1].paragraph > 1 or line.y - group[-1].y > 0.06 or len(group) >= 5:
            break
        group.append(line)
    return group


def find_authors_below(lines: Sequence[FrontLine], titled: Sequence[FrontLine]) -> tuple[tuple[str, ...], int]:
    """The names below the title, in the same type; and the offset at which their last line ends."""
    if not titled:
        return (), 0
    last = max(line.end for line in titled)
    below = [line for line in lines if line.start >= last and line.y < 0.93][:25]
    style: tuple[float, bool] | None = None
    gathered = ""
    end = sentences = 0
    for line in below:
        words = line.text.strip()
        if ABSTRACT.match(words + "\n") or len(words) > 400:
            break
        affiliated = AFFILIATION.search(DEGREES.sub("", words))
        names = find_people_before_affiliation(words) if affiliated else find_people(words)
        if style is None:
            if not names:
                sentences += len(words.split()) > 12  # a subtitle may be long, but not as long as running text
                if sentences > 2 or line.start - last > 600:
                    break
                continue
            style = (line.size, line.bold)
        elif (line.size, line.bold) != style or not (names or _goes_on(gathered, words)):
            if gathered.count(",") >= 2 or AFFILIATION.search(words) is None:
                break  # a list of names ends at the first other text; names one per line may continue below
            continue
        shown = ", ".join(names) if affiliated else line.text
        gathered += (" " if _goes_on(gathered, words) else ", ") + shown if gathered else shown
        end = line.end
    return tuple(dict.fromkeys(find_people(gathered))), end


VOUCHES = re.compile(
    r"universit|institut|department|laborator|school of|college|hospital|faculty|^(?:by|authors?)\b|@\w",
    re.IGNORECASE,
)


def _vouched(lines: Sequence[FrontLine], after: int) -> bool:
    """Whether an affiliation or a byline is nearby: it is for authors' names, but not for table headers."""
    return any(VOUCHES.search(line.text) for line in lines if line.start <= after + 400)


def _goes_on(gathered: str, words: str) -> bool:
    """Whether a list of names continues on the next line."""
    ended = gathered.rstrip()
    open_ended = bool(ended) and "," in gathered and ended[-1] not in ",;" and not ended.endswith(" and")
    return open_ended and not AFFILIATION.search(words)


def find_abstract(text: str, sections: Sequence[Section] = ()) -> tuple[int, int] | None:
    """The span of the text under (or after) "Abstract", without the label; None if there is no label."""
    match = ABSTRACT.search(text, 0, ABSTRACT_WITHIN)
    if match is None:
        return None
    start = match.end()
    heading = next((section.start for section in sections if section.start >= start), len(text))
    stop = AFTER_ABSTRACT.search(text, start, start + LONGEST_ABSTRACT)
    end = min(heading, stop.start() if stop else len(text))
    if end - start > LONGEST_ABSTRACT:
        end = text.find("\n\n", start)  # no end found: the first paragraph is certainly part of it
        end = end if end > 0 else len(text)
    end = start + len(text[start:end].rstrip())
    return (start, end) if SHORTEST_ABSTRACT <= end - start <= LONGEST_ABSTRACT else None


def _folded(words: str) -> str:
    return re.sub(r"\W+", "", words).casefold()


NEAR = 4_000  # characters from the top in which a document describes itself
FIELD = re.compile(
    r"^[ \t>*_#-]*(title|subject|authors?|by|from|to|(?:written|prepared|compiled) by|date|published)[*_]*[ \t]*:"
    r"[*_ \t]*(\S.*?)[*_ \t]*$",
    re.IGNORECASE,
)
FIELD_NAMES = {
    "subject": "title", "authors": "author", "by": "author", "written by": "author", "prepared by": "author",
    "compiled by": "author", "published": "date",
}  # fmt: skip
NO_TITLE = re.compile(
    r"(?i:chapter|section|part|appendix|figure|table)\s+[\dIVX]|(?!(?:19|20)\d\d\s)\d[\d.:]*\s+\w|page \d|contents$"
    r"|table of contents|[^\w\s]*[a-zß-ÿ]|(?i:dear|hi|hello|good (?:morning|day)|to whom|copyright)\b"
    r"|(?i:.*\bpage \d+ of \d+)"
)
KIND_OF_DOCUMENT = re.compile(
    r"\b(?:minutes|agenda|reports?|(?:release|meeting|field) notes|handbook|manual|policy|procedures?|guide|guidelines"
    r"|plan|programme|rules|regulations|memo(?:randum)?|bulletin|newsletter|specification|terms of reference|agreement"
    r"|study|survey|directory|inventory|statement|instructions|proposal|strategy|charter|protokoll|bericht|rapport)\b",
    re.IGNORECASE,
)
RULED_LINE = re.compile(r"[=\-~*_#]{3,}\s*$")
CODE = re.compile(r"\d{4}")
LINES = 6  # of a title block


def lines_above_prose(paragraphs: Iterable[Sequence[str]]) -> list[str]:
    """The lines above the first paragraph of running text."""
    kept: list[str] = []
    for lines in paragraphs:
        if is_prose(" ".join(lines)):
            return [*kept, *lines_before_sentence(lines)]
        kept += lines
    return kept


def lines_before_sentence(lines: Sequence[str]) -> list[str]:
    """The lines of a paragraph before its first sentence, if no blank line separates them: capitals, or a date."""
    sentence_lines = (number for number, line in enumerate(lines[:5]) if not _is_date(line) and not _capitalised(line))
    return list(lines[: next(sentence_lines, 5)])


def _capitalised(line: str) -> bool:
    words = re.findall(r"[^\W\d_]{2,}", line)
    return len(line) <= 80 and 2 * sum(word[0].isupper() for word in words) >= len(words)


def is_prose(paragraph: str) -> bool:
    """Whether a paragraph is prose: sentences are long and mostly lower case; names, places and titles are not."""
    words = paragraph.split()
    small = sum(word[:1].islower() for word in words)
    return len(paragraph) > 400 or (len(words) >= 25 and small > 0.5 * len(words))


def parse_header_lines(text: str) -> dict[str, str]:
    """`Title: …`, `Author: …` and `Date: …` in the first lines of a text."""
    found: dict[str, str] = {}
    for line in text[:3_000].split("\n")[:20]:
        if match := FIELD.match(line):
            name = match[1].lower()
            found.setdefault(FIELD_NAMES.get(name, name), match[2])
        elif found and len(line) > 200:
            break
    if "from" in found and "to" in found:  # a memo
        found.setdefault("author", re.sub(r"(?<!\s)\s*+<[^<>]*+>", "", found["from"]))
    return found


def find_title_line(text: str) -> str:
    """The title of a plain text: a short line above a blank one, or the top of a block of such lines."""
    block, _, rest = text.lstrip("\n").partition("\n\n")
    lines = [line.strip() for line in block.split("\n") if line.strip() and not RULED_LINE.match(line.strip())]
    ruled = len(lines) < len([line for line in block.split("\n") if line.strip()])
    if len(lines) == 1 and not ruled and _is_sentence_of_title(lines[0]):
        lines = [lines[0].rstrip(".。")]
    if not 1 <= len(lines) <= LINES or len(rest) <= len(block) or not all(map(_fits, lines)):
        return ""
    first, *below = lines
    if NO_TITLE.match(first) or _is_date(first) or not plausible_title(first) or len(first) < 2:
        return ""
    if not below:
        return first
    return _title_over(first, below, rest) if not ruled else first


def _is_sentence_of_title(line: str) -> bool:
    """Whether a line that ends in a full stop is short and has no other sentence in it, as many titles of old texts."""
    return len(line) <= 90 and line.endswith((".", "。")) and not re.search(r"[!?。]|\w\w[.…] |\.\.", line[:-1])


def _title_over(first: str, below: Sequence[str], rest: str) -> str:
    """The title of a block of several lines: in capitals, or with a document type ("minutes", "report") in it or below it."""
    if any(CODE.search(ANY.sub("", line)) for line in below) or re.match(r"(?:dear|to)\b", rest.strip(), re.IGNORECASE):
        return ""  # the address at the top of a letter or a receipt
    kind = KIND_OF_DOCUMENT.search(first)
    below_kind = KIND_OF_DOCUMENT.search(below[0]) if "@" not in below[0] else None
    loud = first.isupper() and sum(map(str.isalpha, first)) >= 4
    if below_kind and not kind and (loud or len(first) <= 60):
        return f"{first}: {below[0]}"  # "Minutes of the meeting" is a title only with the name of the body that met
    return first if kind or loud else ""


def _fits(line: str) -> bool:
    """Whether a line is short and not a sentence."""
    return len(line) <= 120 and line[-1] not in ".,;:!?-" and (line[0].isalnum() or line[0] in "\"'“‘«„¿¡(")


def lines_below_title(head: Sequence[str], title: str) -> list[str]:
    """The lines of a head that are not its title."""
    whole = _folded(title)
    lines = [line.strip() for line in head if line.strip() and not RULED_LINE.match(line.strip())]
    return [line for line in lines if not (_folded(line) in whole and not _is_date(line))] if whole else lines


def find_byline(lines: Sequence[str], sure: bool) -> tuple[str, ...]:
    """The names on the first line below a title, if the line has nothing else: after "by", or several of them.

    `sure`: other evidence, such as an abstract, confirms that they are names, so two are enough. Without it, two pairs of
    capitalised words may be anything.
    """
    line = _without_date(lines[0]) if lines else ""
    names = parse_people(line)
    enough = bool(re.match(r"by\s", line, re.IGNORECASE)) or len(names) >= (2 if sure else 4)
    return tuple(dict.fromkeys(names)) if enough else ()


def _without_date(line: str) -> str:
    """A byline up to the end of its first statement, or up to its date."""
    line = line[:300]
    match = ANY.search(line)
    before = line[: match.start()] if match else line
    first = re.split(r"(?<=\w\w\w)\.\s|;|\t", before)[0]
    lead = r"(?<![,.(\s–—-])[,.(\s–—-]++(?:(?:as of|dated|revised|issued|updated|on)\s*)*$"
    return re.sub(lead, "", first.rstrip() + " ").strip()


def _is_date(line: str) -> bool:
    match = ANY.search(line)
    return match is not None and len(line) - len(match[0]) <= 2
