"""The text above the running text of a document without layout: its title, its fields, its byline."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.ingest.metadata.authors import parse_organisations, parse_people
from assay.ingest.metadata.document_date import ANY, find_date
from assay.ingest.metadata.file_fields import plausible_title

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


def text_above_prose(text: str) -> str:
    """The lines above the first paragraph of running text."""
    kept: list[str] = []
    for paragraph in text[:NEAR].split("\n\n")[:12]:
        if is_prose(paragraph):
            return "\n".join([*kept, *lines_before_sentence(paragraph.split("\n"))])
        kept.append(paragraph)
    return "\n".join(kept)


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


# --- title ----------------------------------------------------------------------------------------------------------


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


# --- byline ---------------------------------------------------------------------------------------------------------


def lines_below_title(head: str, title: str) -> list[str]:
    """The lines of a head that are not its title."""
    whole = _folded(title)
    lines = [line.strip() for line in head.split("\n") if line.strip() and not RULED_LINE.match(line.strip())]
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


def find_signing_organisation(lines: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """The units that sign a document below its title, next to its date; and the number of lines they take."""
    found: list[str] = []
    for number, line in enumerate(lines[:4]):
        names = parse_organisations(_without_date(line))
        dated = find_date(line) is not None
        if (names and dated) or (found and dated):
            return tuple(dict.fromkeys(found + names)), number + bool(names)
        if not names:
            break
        found += names
    return (), 0


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


def _folded(words: str) -> str:
    return re.sub(r"\W+", "", words).casefold()
