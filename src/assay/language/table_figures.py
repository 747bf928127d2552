"""Reads figures as tables give them: their scale, unit, row and column; and finds the facts of a claim that its
passages lack. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from assay.language import facts
from assay.language.dates import DATED, MONTHS, YEAR, dates, days_of
from assay.language.negation import find_directions
from assay.language.quantities import ONES, Number, numbers
from assay.language.sentences import is_table_row
from assay.language.terms import content_terms, fold_case
from assay.language.units import UNITS, stated_scales
from assay.language.words import stop_words

FISCAL = re.compile(r"\bFY\s?['’]?(?:20)?(\d{2})\b|\bfiscal year (?:20)(\d{2})\b", re.I)
QUARTERS = dict(zip("1234", ("first", "second", "third", "fourth"), strict=True))
QUARTER = re.compile(r"\bQ([1-4])\b|\b([1-4])Q(?=\d|\b)")
REFERENCE = re.compile(
    r"\(?\b(?:[Ss]ee )?(?:N(?:ote|OTE)|T(?:able|ABLE)|F(?:igure|IGURE)|E(?:xhibit|XHIBIT))[Ss]?\s\d+[a-z]?\b\)?"
)
ROUNDED = re.compile(r"\b(?:about|around|roughly|nearly|almost|approximately|close to|over|more than|some)\s\W?$", re.I)
SUBJECT = re.compile(r"\b(?:the (?:company|group|registrant|issuer|fund|trust|corporation|firm)|we|our|us)\b", re.I)
PERIOD = re.compile(rf"\b(?:{'|'.join(MONTHS)}|fiscal|years?|ended|ending|as of)\b|[\d\W]", re.I)
SPAN = re.compile(r"\b(?:three|six|nine|twelve) months\b", re.I)
APART = re.compile(r"(?<=[\d)]) (?=[\d(])")  # between two cells of a row
QUANTITIES = tuple(
    frozenset(units.split())
    for units in ("s min h day week month year", "g kg mg µg t", "m km cm mm mile ft", "l ml", "W kW MW", "$ € £")
)
FURTHER = re.compile(r"(?:(?:\s|,|\||and\b)+(?:19|20)\d\d\b)+")  # years behind a date: of the next columns
NEGATIVE = re.compile(
    r"\b(?:loss(?:es)?|deficit|negative|minus|below|shortfall|outflows?|debit|used|lost|cost)\b", re.I
)
ROUGH = Decimal("0.03")  # share of a number by which "about" may be off
MAX_LABEL = 12  # words
GENERAL = frozenset("total net other subtotal sum".split())  # labels that need what stands above them


def plain(words: str) -> str:
    """The words with fiscal years and quarters in one form (FY22 and "fiscal year 2022" become "fiscal 2022"), without
    references such as "(Note 4)": their numbers are no figures."""
    words = REFERENCE.sub(" ", words)
    words = FISCAL.sub(lambda match: f"fiscal 20{match[1] or match[2]}", words)
    return QUARTER.sub(lambda match: f"{QUARTERS[match[1] or match[2]]} quarter ", words)


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A row of a table: its label, its figures, the periods above its columns, the lines of the table's header and those
    that stand above this row alone, and the whole line."""

    label: str
    numbers: tuple[Number, ...]
    years: tuple[str, ...]
    spans: tuple[str, ...]
    header: str = ""
    section: str = ""
    line: str = ""

    def column(self, place: int) -> tuple[str, str]:
        """Year and length of the period that a figure stands under; empty where the table does not say."""
        year = self.years[0] if len(self.years) == 1 else self.years[place] if place < len(self.years) else ""
        each = len(self.years) // len(self.spans) if self.spans else 0
        span = self.spans[place // each] if each and place // each < len(self.spans) else ""
        return year, span


@dataclass(frozen=True, slots=True)
class Tables:
    """The figures of some passages: those in rows of tables, those in prose, and the scales that are named."""

    rows: tuple[FigureRow, ...]
    prose: tuple[Number, ...]
    scales: frozenset[int]  # powers of ten

    @staticmethod
    def of(passages: Sequence[str]) -> Tables:
        rows: list[FigureRow] = []
        prose: list[Number] = []
        passages = [plain(passage) for passage in passages]
        for passage in passages:
            own, rest = _read(passage)
            rows += own
            prose += rest
        named = {scale for passage in passages for scale in stated_scales(passage)}
        return Tables(tuple(rows), tuple(prose), frozenset({0, *named}))

    def has(self, number: Number, *, rough: bool) -> bool:
        cells = (each for row in self.rows for each in row.numbers)
        return any(_stands_for(number, each, self.scales, rough) for each in (*self.prose, *cells))


@lru_cache(maxsize=1024)  # the same passages are read for every claim
def _read(passage: str) -> tuple[tuple[FigureRow, ...], tuple[Number, ...]]:
    rows: list[FigureRow] = []
    prose = list(facts.facts_of(passage).numbers)
    years: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    begun = False  # a header of several lines has begun
    header: list[str] = []
    section: list[str] = []  # lines without figures above a row, below the header
    ended = False  # a row has ended header and section
    for line in passage.splitlines():
        apart = APART.sub(" ; ", line)
        figures = [each for each in numbers(apart) if each.is_figure]
        found = tuple(YEAR.findall(line))
        piece = PERIOD.sub("", line).strip() == ""
        if len(found) > len(figures) and (len(found) > 1 or piece):
            years = (*years, *found) if begun and piece else found
            begun = piece
            header = [*([] if ended else header), *section, line]
            section, ended = [], False
        elif not figures:
            spans = tuple(map(str.lower, SPAN.findall(line))) or spans
            if stated_scales(line):
                header.append(line)
            else:
                section = [*([] if ended else section), line]
                ended = False
        elif label := _label(line):
            first_cell = re.search(r"\t| \| ", apart)  # figures of a label ("3M") stand in no column
            cells = tuple(each for each in figures if not first_cell or each.start >= first_cell.end())
            rows.append(
                FigureRow(label, cells or tuple(figures), years, spans, "\n".join(header), "\n".join(section), line)
            )
            begun, ended = False, True
            prose = [each for each in prose if each.text not in line]
    return tuple(rows), tuple(prose)


def _label(line: str) -> str:
    """The words before the first cell or figure of a row; empty if the line reads like a sentence."""
    cells = re.split(r"\t| \| |,(?=\S)", line.strip("| ")) if is_table_row(line) or line.count(",") > 4 else []
    label = cells[0] if cells else re.split(r"(?<![$€£(])[$€£(]*+\s?\d", line, maxsplit=1)[0]
    rest = "" if cells else line[len(label) :]
    sentence = len(re.findall(r"[^\W\d_]{4,}", rest)) > 1 or line.rstrip().endswith((".", ";"))
    return "" if (sentence and not cells) or len(label.split()) > MAX_LABEL else label.strip(" $€£(:—-\t")[:60]


def _stands_for(number: Number, other: Number, scales: frozenset[int], rough: bool) -> bool:
    """Whether a figure of the passages, in the scale of its table and rounded, is this number. Signs are left out: a
    loss may stand in brackets."""
    if number.unit and other.unit and number.unit != other.unit:
        return False
    value, given = (abs(max(each.values, key=abs)) for each in (number, other))
    zeros = max(0, number.value.normalize().adjusted() - len(number.value.normalize().as_tuple().digits) + 1)
    step = Decimal(1).scaleb((number.scale or 0) - number.decimals + (zeros if rough else 0))
    exact = not (rough or number.scale or number.decimals)
    slack = Decimal(0) if exact else min(step / 2, value * ROUGH)
    return any(abs(given.scaleb(scale) - value) <= slack for scale in scales)


def find_missing(claim: str, passages: Sequence[str], tables: Tables) -> Iterator[str]:
    """The numbers, dates and names of a claim that its passages lack, as written."""
    known = "\n".join(passages)
    there = facts.facts_of(known)
    for number in facts.missing_numbers(claim, there):
        rough = ROUNDED.search(claim[: number.start]) is not None
        in_words = not any(map(str.isdigit, number.text))
        is_count = number.text.lower() in ONES
        if not (is_count or (_is_known(number.text, claim, known) if in_words else tables.has(number, rough=rough))):
            yield claim[number.start : number.end].strip()
    yield from (each for each in facts.missing_dates(claim, there) if not _is_split(each, known))
    for name in facts.missing_names(claim, there, facts.lowercase_stems(known)):
        if not _is_known(re.sub(r"\s[\d.,]+$", "", DATED.sub("", name)).strip(), claim, known):
            yield name


def _is_split(date: str, known: str) -> bool:
    """Whether the parts of a date stand apart: the day in a table's header, the year above a column."""
    for match in DATED.finditer(known):
        further = FURTHER.match(known, match.end())
        for year, *rest in days_of(match):
            years = frozenset(YEAR.findall(further[0] if further else "" if year else known))
            if any(str(own) in years and part in ([rest[0], 0], rest) for own, *part in dates(date)[0]):
                return True
    return False


def _is_known(name: str, claim: str, known: str) -> bool:
    """Whether a name is in the passages in another form: in part, by its initials, or as "the Company" or "we" where it
    is the first name of the claim."""
    there = facts.facts_of(known)
    words = [word for word in facts.WORD.findall(name) if fold_case(word) not in stop_words()]
    parts = [fold_case(word) for word in words]
    found = sum(part in there.words for part in parts)
    if found == len(parts) or found >= 2 or SUBJECT.fullmatch(f"the {name}"):
        return True
    joined = "".join(parts)
    initials = fold_case("".join(word[0] for word in facts.WORD.findall(known) if word[0].isupper()))
    if len(joined) >= 3 and all(map(str.isupper, words)) and joined in initials:
        return True
    if len(joined) >= 4 and not joined.isalpha() and joined in "".join(facts.WORD.findall(fold_case(known))):
        return True
    return not found and name == next(iter(facts.names(claim)), "") and SUBJECT.search(known) is not None


def find_misplaced(claim: str, tables: Tables) -> Iterator[tuple[str, str, str]]:
    """Figures of the claim that stand only in rows or columns that it does not name: figure, "row" or "column", label.
    The claim must name another row or column of the table: otherwise nothing says that it means one."""
    named = _named(claim, tables.rows)
    periods = {*YEAR.findall(claim)}, {span.lower() for span in SPAN.findall(claim)}
    for number in numbers(claim):
        if not number.is_figure or any(_stands_for(number, each, tables.scales, False) for each in tables.prose):
            continue
        holding = [
            (row, row.column(place))
            for row in tables.rows
            for place, each in enumerate(row.numbers)
            if _stands_for(number, each, tables.scales, False)
        ]
        meant = [column for row, column in holding if row.label in named]
        if holding and named and not meant:
            yield number.text, "row", holding[0][0].label
        for place, own in enumerate(periods):
            above = {column[place] for column in meant}
            if len(own) == 1 and above and "" not in above and not above & own:
                yield number.text, "column", min(above)


def find_other_signs(claim: str, passages: Sequence[str], tables: Tables) -> Iterator[tuple[str, str]]:
    """Figures that stand in the passages only with a minus sign that the claim does not have, nor a word for it; or only
    without one that it has: the figure of the passages, and "with" or "without". A negative figure may be in brackets."""
    cells = [each for row in tables.rows for each in row.numbers]
    negative = NEGATIVE.search(claim) is not None or 1 in find_directions(claim).get(0, {})
    for number in numbers(claim):
        own = [
            each
            for each in (*tables.prose, *cells)
            if number.is_figure and _stands_for(number, each, tables.scales, False)
        ]
        signs = {each.value < 0 for each in own}
        if signs == {True} and number.value >= 0 and not negative:
            yield own[0].text, "with"
        if signs == {False} and number.value < 0:
            bracketed = re.compile(rf"\(\s?[$€£]?\s?{re.escape(own[0].text)}\s?\)")
            if not any(map(bracketed.search, passages)):
                yield own[0].text, "without"


def find_turned_rows(claim: str, tables: Tables) -> Iterator[str]:
    """Rows whose label the claim names whole, and whose figures move otherwise than the claim says from one year to
    another. Each comes as label and both figures with their years."""
    terms, years = frozenset(content_terms(claim)), set(YEAR.findall(claim))
    sides = find_directions(claim).get(0, {})  # the first pair of opposites: increase and decrease
    for row in tables.rows:
        label, cells = (
            set(content_terms(row.label)),
            sorted(zip(row.years, row.numbers, strict=False), key=lambda c: c[0]),
        )
        if len(sides) != 1 or len(cells) != 2 or not label or not label <= terms or not years & {*row.years}:
            continue
        (early, first), (late, last) = cells
        one, two = (abs(max(each.values)) for each in (first, last))
        if one != two and (two < one) != (1 in sides):
            yield f"“{row.label}” goes from {first.text} in {early} to {last.text} in {late}."


def _named(claim: str, rows: Sequence[FigureRow]) -> set[str]:
    """The labels that a claim names: by a word, in whatever form, that sets the label apart from others."""
    terms = frozenset(content_terms(claim))
    words = {label: frozenset(content_terms(label)) for label in {row.label for row in rows}}
    counts = Counter(term for own in words.values() for term in own)
    common = {term for term, count in counts.items() if count > 1}
    return {label for label, own in words.items() if not own - GENERAL or _has(terms, own - common or own)}


def _has(terms: frozenset[str], own: frozenset[str]) -> bool:
    return any(term in terms or (len(term) > 4 and any(other.startswith(term[:5]) for other in terms)) for term in own)


def find_other_units(claim: str, passages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Figures of the claim in a unit that the passages never use, and the units they use for that quantity."""
    words = re.findall(r"[^\W\d_]+|[$€£]", "\n".join(passages).lower())
    used = {UNITS[word] for word in words if word in UNITS and (len(word) > 1 or word in "$€£")}
    for number in numbers(claim):
        for quantity in QUANTITIES:
            if number.unit in quantity and number.unit not in used and (others := sorted(used & quantity)):
                yield claim[number.start : number.end].strip(), ", ".join(others)
