"""Text formats: plain text, Markdown, reStructuredText, Org.

The words stay as their author typed them. What the rendered page does not show is removed: front matter, comments,
embedded images, the markup of headings, and the marks of Markdown.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from html import unescape
from itertools import takewhile

from assay.core.formats import format_of_suffix
from assay.core.printable import clean_text
from assay.core.types import Section, Table
from assay.ingest.formats.archive import refuse_damaged
from assay.ingest.formats.html_hidden import hides_text
from assay.ingest.formats.table import first_rows, write_rows
from assay.ingest.formats.text import TextBuilder, decode
from assay.ingest.metadata import file_fields
from assay.ingest.parsed import FileLimits, Parsed
from assay.tables.build import GridCell, GridRow, build_table, caption_above


def parse(data: bytes, name: str, limits: FileLimits) -> Parsed:
    """Parse a text file; the suffix of the name determines the markup of its headings."""
    text = clean_text(decode(data))
    limits.check(characters=len(text))
    named = format_of_suffix(name)
    kind = named.name if named and named.plain else "text"
    front: dict[str, list[str]] = {}
    if kind == "markdown":
        front, text = _front_matter(text)
        text = _without_hidden(text)
    if kind == "text" and _XML.match(text):
        text = _without_tags(text)
    if kind == "org":
        front = {key.lower(): [value] for key, value in re.findall(r"(?mi)^#\+(title|author|date):[ \t]*(.+)$", text)}
    out = TextBuilder(kind, limits)
    find_headings = {"markdown": _markdown, "rst": _rst, "org": _org}.get(kind)
    references = frozenset(match[1].casefold() for match in DEFINITION.finditer(text))

    def write(part: str) -> None:
        shown = _rendered(part, references) if kind == "markdown" else part
        out.block(_BLANK_RUN.sub("\n\n", shown).strip("\n").rstrip())

    at = 0
    for head in find_headings(text) if find_headings else ():
        write(text[at : head.start])
        out.heading(head.words, head.level)
        at = head.end
    write(text[at:])
    if kind in {"markdown", "org"}:
        out.tables += find_pipe_tables("".join(out.parts))
    if lost := text.count("\ufffd"):
        out.warn(f"{lost} characters could not be decoded; save the file as UTF-8.")
    return out.parsed(
        title=file_fields.plausible_title(" ".join(front.get("title", []))) or _leading_title(out.sections),
        authors=file_fields.parse_authors(*front.get("author", []), *front.get("authors", [])),
        date=file_fields.parse_date(" ".join(front.get("date", []))),
        language=(front.get("lang") or front.get("language") or [None])[0],
        empty="The file is empty; check that it was saved.",
    )


@dataclass(frozen=True, slots=True)
class _Heading:
    """A heading with its markup, without the line break: `text[start:end]`."""

    words: str
    level: int
    start: int
    end: int


_BLANK_RUN = re.compile(r"\n(?:[ \t]*\n){2,}")


def _leading_title(sections: list[Section]) -> str:
    """The title: a single top-level heading that opens the text."""
    if not sections or sections[0].start:
        return ""
    first = sections[0]
    return first.title if all(section.level > first.level for section in sections[1:]) else ""


_XML = re.compile(
    r"\s*(?:<\?xml[^>]{0,300}\?>\s*)?(?:<!DOCTYPE[^>]{0,300}>\s*)?<([A-Za-z][\w:.-]*+)[^<>]{0,2000}>.*</\1\s*>\s*\Z",
    re.DOTALL,
)
_TAGS = re.compile(r"(?:<(?:[A-Za-z/][^<>]{0,2000}|\?[^<>]{0,300}\?|!DOCTYPE[^<>]{0,300})>\s*)++")


def _without_tags(text: str) -> str:
    """The text of an XML file. A tag alone between words marks some of them; several, or a line end, part two texts."""
    text = re.sub(r"<!--.*?(?:-->|\Z)", "", text, flags=re.DOTALL)
    text = re.sub(r"<!\[CDATA\[(.*?)\]\]>", lambda match: match[1].replace("<", "&lt;"), text, flags=re.DOTALL)
    return unescape(_TAGS.sub(_gap, text))


def _gap(tags: re.Match[str]) -> str:
    return "\n" if tags[0].count("<") > 1 or "\n" in tags[0] else tags[0].rpartition(">")[2]


_FRONT = re.compile(r"\A\s*---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z][\w -]*):(?:[ \t]+(.*))?$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$")
_SETEXT = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")
_NO_SETEXT = re.compile(r"^\s*(?:[-*+>|#]|\d+[.)]\s|$)|^ {4}|^\t")


def _front_matter(text: str) -> tuple[dict[str, list[str]], str]:
    """The fields in use, from the simple subset of YAML common in front matter; and the rest of the text."""
    match = _FRONT.match(text)
    if not match:
        return {}, text
    fields: dict[str, list[str]] = {}
    key = ""
    for line in match[1].split("\n"):
        if pair := _PAIR.match(line):
            key = pair[1].lower()
            fields[key] = _values(pair[2] or "")
        elif (item := re.match(r"\s+(?:-\s+)?(?:name:\s*)?(.+)$|-\s+(?:name:\s*)?(.+)$", line)) and key:
            value = item[1] or item[2]
            if not _PAIR.match(value):  # a field of a nested mapping (affiliation, e-mail) is not in use
                fields[key] += _values(value)
    # A rule above and below ordinary text looks the same; without a single field it is text.
    return (fields, text[match.end() :]) if fields else ({}, text)


def _values(value: str) -> list[str]:
    value = re.sub(r"(?<!\s)\s++#.*$", "", value.strip())
    if value.startswith("[") and value.endswith("]"):
        return [part for item in value[1:-1].split(",") for part in _values(item)]
    value = value.strip("\"'")
    return [] if value in {"", "|", ">", ">-", "|-", "{", "}"} else [value]


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_COMMENT_LINE = re.compile(r"(?mi)^ {0,3}\[(?://|comment|_)\]:\s*(?:#|<>).*$")
_DATA_URI = re.compile(r"data:[\w/+.;=-]{0,100};base64,[A-Za-z0-9+/=]+")
_ELEMENT = re.compile(r"<(\w+)\b([^<>]{0,1000})>.{0,4000}?</\1\s*>", re.DOTALL)  # bounded: tags may be left open
_SCRIPT = re.compile(r"<(script|style|template|noscript)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)


def _without_hidden(text: str) -> str:
    """Markdown without what its rendered page does not show; fenced code is kept unchanged."""
    shown = []
    for fenced, stretch in _stretches(text):
        if not fenced:
            stretch = _COMMENT_LINE.sub("", _SCRIPT.sub("", _COMMENT.sub("", stretch)))
            if "style" in stretch or "hidden" in stretch:
                stretch = _ELEMENT.sub(lambda match: "" if _hidden_tag(match[2]) else match[0], stretch)
        shown.append(_DATA_URI.sub("", stretch))
    return "".join(shown)


def _rendered(text: str, references: frozenset[str]) -> str:
    """Markdown without its marks, and fenced code without its fences."""
    return "".join(
        FENCE.sub("", stretch) if fenced else strip_marks(stretch, references) for fenced, stretch in _stretches(text)
    )


def _hidden_tag(attributes: str) -> bool:
    style = re.search(r"style\s*=\s*(\"[^\"]*\"|'[^']*')", attributes)
    return bool(re.search(r"(?:^|\s)hidden(?=\s|=|/|$)", attributes)) or bool(style and hides_text(style[1][1:-1]))


def _stretches(text: str) -> list[tuple[bool, str]]:
    """The text split into fenced code and the rest, in order; joined, they are the text."""
    found: list[tuple[bool, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        inside = bool(fence) or bool(mark)
        if not found or found[-1][0] != inside:
            found.append((inside, []))
        found[-1][1].append(line)
        if fence:
            closing = mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line.strip(" \t\n`~")
            fence = "" if closing else fence
        elif mark:
            fence = mark[1]
    return [(inside, "".join(lines)) for inside, lines in found]


def _markdown(text: str) -> list[_Heading]:
    heads: list[_Heading] = []
    offset = 0
    for fenced, stretch in _stretches(text):
        above, above_at = "", offset
        for line in stretch.splitlines(keepends=True):
            bare = line.rstrip("\n")
            if not fenced and (match := _ATX.match(bare)):
                heads.append(_Heading(_shown(match[2]), len(match[1]), offset, offset + len(line)))
                bare = ""
            elif not fenced and (match := _SETEXT.match(bare)) and not _NO_SETEXT.match(above):
                heads.append(_Heading(_shown(above), 1 if match[1][0] == "=" else 2, above_at, offset + len(line)))
                bare = ""
            above, above_at = bare, offset
            offset += len(line)
    return heads


def _shown(heading: str) -> str:
    """A heading's text without links, emphasis or an attribute list (`{#anchor}`)."""
    return strip_marks(re.sub(r"(?<!\s)\s*+\{[#.][^}]{0,300}\}\s*$", "", heading)).strip()


_ADORNED = re.compile(
    r"""(?m)^(?:(?P<over>[=\-`:.'"~^_*+#<>])(?P=over){2,}[ \t]*\n)?"""
    r"""[ \t]*(?P<words>\S[^\n]*)\n(?P<line>(?P<under>[=\-`:.'"~^_*+#<>])(?P=under){2,})[ \t]*$"""
)


def _rst(text: str) -> list[_Heading]:
    """Underlined lines; the order in which the underline characters first appear gives the levels."""
    levels: dict[tuple[str, bool], int] = {}
    heads: list[_Heading] = []
    for match in _ADORNED.finditer(text):
        over, words = match["over"], match["words"].rstrip()
        if len(match["line"]) + 1 >= len(words) and over in (None, match["under"]) and any(map(str.isalnum, words)):
            level = levels.setdefault((match["under"], bool(over)), len(levels) + 1)
            heads.append(_Heading(words, level, match.start(), match.end()))
    return heads


def _org(text: str) -> list[_Heading]:
    return [
        _Heading(match[2], len(match[1]), match.start(), match.end())
        for match in re.finditer(r"(?m)^(\*+)[ \t]+(?:(?:TODO|DONE)[ \t]+)?(.+?)(?:[ \t]+:[\w:@]+:)?[ \t]*$", text)
    ]


CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^`]{1,2000})(?<!`)\1(?!`)")
LINK = re.compile(
    r"!?\[([^\[\]]{0,2000})\]\((?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s{1,3}[\"'(][^\"\n]{0,500}[\"')])?\)"
)
REFERENCE = re.compile(r"!?\[([^\[\]]{1,1000})\]\[([^\[\]]{0,300})\]")
DEFINITION = re.compile(r"(?m)^ {0,3}\[([^\[\]^][^\[\]]{0,300})\]:[ \t]+\S+(?:[ \t]+[\"'(].{0,300}[\"')])?[ \t]*$\n?")
AUTOLINK = re.compile(r"<(?:mailto:)?((?:https?://|ftp://)[^<>\s]{1,2000}|[\w.+-]{1,100}@[\w.-]{1,200})>")
INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|tt|u|var)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
BLOCK_TAG = re.compile(
    r"</?(?:blockquote|br|caption|center|colgroup|col|dd|details|div|dl|dt|figcaption|figure|h[1-6]|hr|img|li|ol|p|picture|pre"
    r"|section|source|summary|table|tbody|td|tfoot|th|thead|tr|ul|video)(?:\s[^<>]{0,2000})?/?>",
    re.IGNORECASE,
)
STARS = re.compile(r"(?<![\\*\w])(\*{1,3})(?=[^\s*])([^*]{1,2000}?)(?<=[^\s\\])\1(?!\*)")
STRONG = re.compile(r"(?<![\\*])\*\*(?=[^\s*])([^*]{1,2000}?)(?<=[^\s\\])\*\*(?!\*)")  # also inside a word
LINES = re.compile(r"(?<![\w\\])(_{1,3})(?=[^\s_])([^_]{1,2000}?)(?<=[^\s\\])\1(?!\w)")
STRUCK = re.compile(r"~~(?=\S)([^~\n]{1,1000}?)~~")
QUOTED = re.compile(r"(?m)^ {0,3}(?:>[ \t]?)+")
RULE = re.compile(r"(?m)^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$\n?")
ESCAPED = re.compile(r"\\([*_`#>~-])")
FENCE = re.compile(r"(?m)^ {0,3}(?:`{3,}|~{3,}).*$\n?")


def strip_marks(text: str, references: frozenset[str] = frozenset()) -> str:
    """Markdown outside fenced code, without its marks; `references` are the names of links that the file defines."""
    text = RULE.sub("", QUOTED.sub("", DEFINITION.sub("", text)))
    shown: list[str] = []
    at = 0
    for code in CODE.finditer(text):
        if "\n\n" not in code[2]:
            shown += [_without_marks(text[at : code.start()], references), code[2].strip()]
            at = code.end()
    return "".join([*shown, _without_marks(text[at:], references)])


def _without_marks(text: str, references: frozenset[str]) -> str:
    if not any(mark in text for mark in "*_[<~\\"):
        return text
    text = AUTOLINK.sub(r"\1", text)
    for _ in range(3):  # emphasis within emphasis, an image in a link
        before = text
        text = LINK.sub(r"\1", text)
        if references:
            text = REFERENCE.sub(
                lambda link: link[1] if (link[2] or link[1]).casefold() in references else link[0], text
            )
        text = LINES.sub(r"\2", STRONG.sub(r"\1", STARS.sub(r"\2", text)))
        if text == before:
            break
    text = BLOCK_TAG.sub(" ", INLINE_TAG.sub("", STRUCK.sub(r"\1", text)))
    return ESCAPED.sub(r"\1", text)


_RULE = re.compile(r"^[ \t]*+\|?(?:[ \t]*+:?-{1,200}:?[ \t]*+\|)+(?:[ \t]*+:?-{1,200}:?[ \t]*+)?$")


def find_pipe_tables(text: str) -> list[Table]:
    """The Markdown tables of a text."""
    lines = [(match[0], match.start()) for match in re.finditer(r"(?m)^.*$", text)]
    tables: list[Table] = []
    index = 1
    while index < len(lines):
        if "|" not in lines[index][0] or not _RULE.match(lines[index][0]) or "|" not in lines[index - 1][0]:
            index += 1
            continue
        below = takewhile(lambda at: "|" in lines[at][0], range(index + 1, len(lines)))
        rows = [_row(*lines[at]) for at in below]
        above = [line for line, _ in lines[max(0, index - 4) : index - 1] if line.strip()][-2:]
        caption = caption_above([line.strip(" #*_") for line in above])
        table = build_table([_row(*lines[index - 1])], rows, caption=caption, above=above)
        tables += [table] if table is not None else []
        index += 1 + len(rows)
    return tables


def _row(line: str, at: int) -> GridRow:
    bare = line.strip()
    begin = at + line.index(bare) + bare.startswith("|")
    cells: list[GridCell] = []
    for column, words in enumerate(re.split(r"(?<!\\)\|", bare.removeprefix("|").removesuffix("|"))):
        if text := words.strip():
            start = begin + words.index(text)
            cells.append(GridCell(text, column, start, start + len(text)))
        begin += len(words) + 1
    return GridRow(tuple(cells), at, at + len(line))


_SEPARATORS = ",;\t|"


def parse_delimited(data: bytes, name: str, limits: FileLimits) -> Parsed:
    text = clean_text(decode(data))
    limits.check(characters=len(text))
    out = TextBuilder("csv", limits)
    title = ""
    with refuse_damaged("CSV"):
        csv.field_size_limit(max(len(text), 131_072))
        separator = separator_of(text)
        # `sep=;` in the first line is an instruction to Excel, not a row.
        body = text.split("\n", 1)[-1] if text[:4].lower() == "sep=" else text
        if separator:
            rows = csv.reader(io.StringIO(body), delimiter=separator)
            title = write_rows(first_rows(rows, out), out, always_named=True)
        else:
            out.block("\n".join(line.strip().strip('"') for line in body.splitlines() if line.strip()))
    return out.parsed(title=title, empty="The table is empty; check that it was exported.")


def separator_of(text: str) -> str:
    """The separator that gives the most rows of equal width, more than one column; empty if there is none."""
    if text[:4].lower() == "sep=" and text[4:5]:
        return text[4]
    sample = "\n".join(text[:50_000].splitlines()[:100])
    scored: dict[str, tuple[float, int]] = {}
    for separator in _SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(sample), delimiter=separator) if row]
        except csv.Error:
            continue
        if widths and (usual := max(set(widths), key=lambda width: (widths.count(width), width))) > 1:
            scored[separator] = (widths.count(usual) / len(widths), usual)
    best = max(scored, key=lambda separator: scored[separator], default="")
    return best if best and scored[best][0] > 0.3 else ""
