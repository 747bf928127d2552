"""Proof of a claim that gives one cell of a table and says nothing else: row, column, value, unit. Pure.

Every word of the claim must be of the row's label, of the line above the row, of the period, or the name in the title of
the document; and every word of the label and of that line must be in the claim. In doubt nothing is proved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.answer.evidence_text import Sources
from assay.core.types import Evidence
from assay.language.dates import YEAR, dates
from assay.language.facts import WORD, remove_numbers_and_dates
from assay.language.quantities import Number, numbers
from assay.language.table_figures import SPAN, FigureRow, Tables, plain
from assay.language.terms import fold_case, stem_word
from assay.language.units import UNITS, stated_scales

SAYS = "reported recorded showed posted had"
NEUTRAL = frozenset(
    f"{SAYS} a an the of in at on for by to from as s its was were is are been be came amounted stood and".split()
)
PERIODS = frozenset(
    map(stem_word, "fiscal year years ended ending months weeks quarter half first second third".split())
)
LENGTHS = frozenset(map(stem_word, "months weeks quarter half".split()))
SUBJECT = re.compile(
    rf"(?:^|(?<=, ))([^\s,;:'’]+(?: [^\s,;:'’]+){{0,4}}?)(?:['’]s?| (?:{SAYS.replace(' ', '|')}))(?= )"
)
YEARS = re.compile(r"(?:(?:19|20)\d\d[\s|]{0,40}){1,60}$")  # that end a line
EMPTY = re.compile(
    r"(?:^|\s|\|)[—–-]{1,9}(?=\s|\||$)|(?:\t[ ]{0,9}\t|\|\s{0,9}\|)(?=.{0,99}\d)"
)  # a cell without a figure
LONGEST_LABEL = 60  # characters; a longer one is not whole


def gives_cell(claim: str, cited: Sequence[Evidence], sources: Sources) -> bool:
    """Whether a claim gives the value of exactly one cell of what it cites, and names its row, period and unit."""
    found = 0
    for each in cited:
        title = sources.titles.get(each.passage.doc_id, "")
        rest = plain(_without_subject(claim, title))
        values = [number for number in numbers(rest) if number.is_figure]
        if len(values) != 1:
            return False
        text = f"{each.passage.context}\n{each.passage.text}"
        rows = Tables.of([text]).rows
        scales = set(stated_scales(text))
        for row in rows:
            holds = any(number.value == values[0].value for number in row.numbers)
            found += holds
            if holds and not (len(scales) < 2 and _is_named(rest, row, rows) and _is_cell(rest, values[0], row)):
                return False
    return found == 1


def _without_subject(claim: str, title: str) -> str:
    """The claim without the name of whom it speaks, if the title has it: "Costco's membership fees"."""
    match, known = SUBJECT.search(claim), frozenset(WORD.findall(fold_case(title)))
    if match is None or not known.issuperset(WORD.findall(fold_case(match[1]))):
        return claim
    return claim[: match.start()] + claim[match.end() :]


def _is_named(rest: str, row: FigureRow, rows: Sequence[FigureRow]) -> bool:
    """Whether the claim has all words of the label and of the line above it, no other ones, and no other row fits."""
    words, header = _words(remove_numbers_and_dates(rest)), _words(row.header)
    label = _words(row.label)
    own = label | _words(row.section)
    others = (_words(f"{other.label} {other.section}") for other in rows if other is not row)
    return (
        bool(label)
        and len(row.label) < LONGEST_LABEL
        and own <= words
        and words - own <= PERIODS & header
        and header & LENGTHS <= _words(rest)
        and not any(other <= words and not other < own for other in others)
    )


def _is_cell(rest: str, value: Number, row: FigureRow) -> bool:
    """Whether the value stands in the row under the one year that the claim names, with its sign, scale and unit."""
    columns = [row.column(place) for place in range(len(row.numbers))]
    places = [place for place, number in enumerate(row.numbers) if number.value == value.value]
    if not _is_regular(row) or len(places) != 1 or columns.count(columns[places[0]]) > 1:
        return False
    year, span = columns[places[0]]
    named = {
        UNITS[word] for word in re.findall(r"[^\W\d_]+|[$€£%]", f"{row.header} {row.line}".lower()) if word in UNITS
    }
    headed = {day[1:] for days in dates(row.header) for day in days}
    return (
        set(YEAR.findall(rest)) == {year}
        and set(map(str.lower, SPAN.findall(rest))) == ({span} if span else set())
        and all(any(day[1:] in headed for day in days) for days in dates(rest))
        and {value.scale or 0} == (set(stated_scales(row.header)) or {0})
        and (not value.unit or value.unit in named)
        and re.search(rf"\(\s?[$€£]?\s?{re.escape(row.numbers[places[0]].text.strip('$€£ '))}", row.line) is None
    )


def _is_regular(row: FigureRow) -> bool:
    """Whether each figure of a row stands under a year: the years end their line, and no cell is empty or has words."""
    cells = row.line.partition(row.label)[2]
    headed = all(
        len(YEAR.findall(line)) == len(YEAR.findall(match[0] if (match := YEARS.search(line)) else ""))
        for line in row.header.splitlines()
    )
    return (
        len(row.numbers) == len(row.years)
        and headed
        and not any(map(str.isalpha, cells))
        and EMPTY.search(cells) is None
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(stem_word(word) for word in WORD.findall(fold_case(text)) if word not in NEUTRAL)
