"""Compares what a claim says of cells of tables with the cells: value, period, organisation, row, column and direction.

Only what differs is found here. Whether a sentence says more than its cells do is for a judge. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, DecimalException
from functools import lru_cache
from itertools import pairwise, product

from assay.answer.claims import ROW
from assay.core.identity import ORGANISATION
from assay.core.tables import table_rows
from assay.core.types import BETWEEN, Claim, ClaimedCell, Derivation, Document, Evidence, Passage
from assay.index.named_documents import NamedDocument, named_document
from assay.language.dates import dates
from assay.language.quantities import Number, figures, numbers, scale_in, stated_scales
from assay.language.terms import content_terms, fold_case, word_list
from assay.tables import derive
from assay.tables.cells import FoundCell, TablesOf

LONGEST_TABLE = 400  # rows whose labels are compared; a longer table is a list, whose labels are names
YEARS = re.compile(r"(?<![\d.,])(?:19|20)\d\d(?![\d.,]\d|\d)")
SHORT_YEAR = re.compile(r"\bFY ?['’]?(\d\d)\b(?!\d)", re.I)
FIRST_HALF = 6  # a year that ends in its first months may be called by the one before
NO_CELL = "is from a table, and the claim does not name its cell"
CODE = re.compile(r"[^\W\d_]-?\d")  # "F-42" is a name, and no figure
DIRECTIONS = {"up": 1, "down": -1, "same": 0}


@dataclass(frozen=True, slots=True)
class _Read:
    """A cell that a claim names, as it was found."""

    claimed: ClaimedCell
    cell: FoundCell
    passage: Passage

    @property
    def numbers(self) -> list[Number]:
        """The one number of the cell; none if it has several, or words."""
        found = [each for each in figures(self.cell.text) if any(map(str.isdigit, each.text))]
        return found if len(found) == 1 and not any(map(str.isalpha, self.cell.text)) else []

    @property
    def scales(self) -> frozenset[int]:
        """The powers of ten that its value may be in; none if none is declared."""
        table = self.cell.table
        return frozenset(stated_scales("\n".join((self.cell.row.label, self.cell.header, table.units, table.caption))))

    @property
    def around(self) -> str:
        """What is written about the cell besides its row and column."""
        return f"{self.cell.table.caption}\n{self.cell.table.period}\n{self.passage.above}"


def check(claim: Claim, evidence: Sequence[Evidence], tables: TablesOf) -> tuple[Claim, str]:
    """The claim with what its cells are, and how it differs from them; empty if it is not seen to."""
    if not claim.cells:
        return claim, ""
    read = {cell: found for cell in claim.cells if (found := _read(cell, evidence, tables))}
    cells = (replace(cell, found=read[cell].cell.facts if cell in read else None) for cell in claim.cells)
    found = list(read.values())
    others = _other_names(found, evidence, tables)
    differences = (
        *(_field_difference(each, others) for each in found),
        *_direction_differences(claim.cells, read),
        _figure_difference(claim, found, evidence, tables),
        _sentence_difference(claim.text, found, others),
    )
    return replace(claim, cells=tuple(cells)), next(filter(None, differences), "")


def _read(claimed: ClaimedCell, evidence: Sequence[Evidence], tables: TablesOf) -> _Read | None:
    passage = next((each.passage for each in evidence if each.key == claimed.cite), None)
    shown = tables(passage) if passage else None
    cell = shown.find(claimed.cell) if shown else None
    return _Read(claimed, cell, passage) if cell and passage else None


def own_facts(claim: Claim, evidence: Sequence[Evidence], tables: TablesOf) -> Claim | None:
    """The cells of a claim, each with its row, column, organisation and units, in its place; None if none was found."""
    found = [each for cell in claim.cells if (each := _read(cell, evidence, tables))]
    by_id = {each.cell.document.id: each.cell.document for each in found}
    quotes = dict.fromkeys(each.cell.quote for each in found)
    cites = [each.claimed.cite for each in found]
    return derive.derive(Derivation.facts, tuple(quotes), cites, by_id.get) if found else None


# --- the fields -----------------------------------------------------------------------------------------------------


def _field_difference(read: _Read, others: Sequence[NamedDocument]) -> str:
    claimed, line = read.claimed, read.cell.facts.line
    stated = [each for each in figures(claimed.value) if any(map(str.isdigit, each.text))]
    if len(stated) == 1 and read.numbers and not _is_value(stated[0], read):
        return f"the cell is “{line}”, not “{claimed.value}”"
    if _differs(_years(claimed.period), _cell_years(read)):
        return f"the cell is “{line}”, not of “{claimed.period}”"
    if _is_of_another(claimed.organisation, read, others):
        return f"the cell is “{line}”, not of “{claimed.organisation}”"
    if other := _other_line(claimed.measure, read) or _other_line(f"{claimed.measure} {claimed.period}", read):
        return f"the cell is “{line}”, and “{other}” is another"
    return ""


def _is_value(stated: Number, read: _Read) -> bool:
    """Whether a number is that of the cell, perhaps rounded or in another scale. Without a declared scale, any will do."""
    own = read.numbers[0]
    scales = read.scales | ({own.scale} if own.scale is not None else set())
    if stated.scale is None:
        powers = {0, *scales, *(range(-12, 13, 3) if not scales else ())}
    else:
        powers = {each - stated.scale for each in scales} or set(range(-12, 13, 3))
    powers |= {2} if stated.unit == "%" and own.unit != "%" else set()
    return any(
        _rounds_to(target.scaleb(power), value, stated.decimals)
        for power in powers
        for target, value in _pairs(own, stated)
    )


def _pairs(own: Number, stated: Number) -> Iterator[tuple[Decimal, Decimal]]:
    """The readings of two numbers that go together: "1,500" and "2,500" both have thousands, or both decimals; of "8,738" and
    "8.738" one has thousands and the other decimals."""
    ours, theirs = (sorted(map(abs, each.readings)) for each in (own, stated))
    if len(ours) != len(theirs):
        return product(ours, theirs)
    alike = ("," in own.text) == ("," in stated.text)
    return zip(ours, theirs if alike else reversed(theirs), strict=True)


def _rounds_to(target: Decimal, value: Decimal, decimals: int) -> bool:
    """Whether a value is another, rounded or cut to its decimals, or to the zeros at its end if two digits remain."""
    plain = value.normalize()
    steps = {Decimal(1).scaleb(-decimals)}
    exponent = plain.as_tuple().exponent
    if isinstance(exponent, int) and len(plain.as_tuple().digits) > 1:
        steps.add(Decimal(1).scaleb(exponent))
    try:
        return any(target.quantize(step, how) == value for step in steps for how in (ROUND_HALF_UP, ROUND_DOWN))
    except DecimalException:
        return False


def _years(text: str) -> frozenset[int]:
    return frozenset(map(int, YEARS.findall(text))) | {2000 + int(year) for year in SHORT_YEAR.findall(text)}


def _cell_years(read: _Read) -> frozenset[int]:
    """The years that a cell may be of, by its column or else by a row that is nothing but a period; none if neither says."""
    parts = read.cell.row.label.split(BETWEEN)
    periods = [part for part in parts if _years(part) and len(content_terms(YEARS.sub(" ", part))) <= bool(dates(part))]
    text = read.cell.header if _years(read.cell.header) else " ".join(periods)
    early = {day[0] - 1 for days in dates(text) for day in days if day[0] and day[1] <= FIRST_HALF}
    return _years(text) | early


def _differs(stated: frozenset[int], own: frozenset[int]) -> bool:
    return bool(stated and own) and not stated & own


def _direction_differences(cells: Sequence[ClaimedCell], read: dict[ClaimedCell, _Read]) -> Iterator[str]:
    """Changes that go the other way. Losses and outflows are left to the judge: a loss that grows is a smaller number."""
    for before, after in pairwise(cells):
        way = DIRECTIONS.get(after.direction.strip().lower())
        if way is None or before not in read or after not in read:
            continue
        # Two cells are of one thing at two times if they are a row in two columns, or of different years.
        one_row = read[before].cell.row.label == read[after].cell.row.label
        years = _cell_years(read[before]), _cell_years(read[after])
        if not one_row and not (all(years) and years[0].isdisjoint(years[1])):
            continue
        old, new = sorted((read[before], read[after]), key=lambda each: max(_cell_years(each), default=0))
        pair = [each.numbers[0].value for each in (old, new) if each.numbers and "(" not in each.cell.text]
        if len(pair) == 2 and min(pair) >= 0 and (pair[1] > pair[0]) - (pair[1] < pair[0]) != way:
            yield f"from “{old.cell.facts.line}” to “{new.cell.facts.line}” is not “{after.direction}”"


# --- rows and columns -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in content_terms(text) if not term.isdigit())


@dataclass(frozen=True, slots=True)
class _Line:
    """Another row or column of the table of a cell, and the words that tell it from the cell's own."""

    name: str
    terms: frozenset[str]
    own: frozenset[str]
    is_row: bool

    def is_named_by(self, said: frozenset[str]) -> bool:
        """Whether words name this one, and not the cell's own."""
        return self.terms <= said and not (self.own - self.terms) & said


def _other_lines(read: _Read) -> Iterator[_Line]:
    """The rows that have something in the column of the cell, by their labels with and without groups; and the columns,
    without the words that all have. Words of the cell's own row tell no column apart, nor those of its column a row."""
    label, header = _terms(read.cell.row.label), _terms(read.cell.header)
    rows = table_rows(read.cell.table, read.cell.document.text)
    for row in rows if len(rows) <= LONGEST_TABLE else ():
        if row.label != read.cell.row.label and row.cells[read.cell.column].text:
            for name in {row.label, row.label.rpartition(BETWEEN)[2]}:
                if _terms(name) - label - header and label - _terms(name):
                    yield _Line(row.label, _terms(name), label, is_row=True)
    names = read.cell.table.columns[1:]
    common = frozenset[str].intersection(*map(_terms, names)) if len(names) > 1 else frozenset[str]()
    for name in names:
        theirs, own = _terms(name) - common, header - common
        if theirs - own - label and own - theirs:
            yield _Line(name, theirs, own, is_row=False)


def _other_line(words: str, read: _Read) -> str:
    """The row or column that words name, and nothing else; empty if that may be the cell's own."""
    said = _terms(words)
    known = _terms(f"{read.around}\n{read.cell.header}\n{read.cell.row.label}\n{read.claimed.organisation}")
    for other in _other_lines(read):
        alone = len(said) == 1 and not other.is_row  # "amount" may be no name of a column
        if other.is_named_by(said) and said - other.terms <= known and not alone:
            return other.name
    return ""


# --- organisations --------------------------------------------------------------------------------------------------


def _named(document: Document) -> NamedDocument:
    return named_document(document.id, document.uri, document.meta)


def _other_names(found: Sequence[_Read], evidence: Iterable[Evidence], tables: TablesOf) -> tuple[NamedDocument, ...]:
    """The organisations of other documents in the evidence."""
    shown = (tables(each.passage) for each in evidence) if found else ()
    documents = {each.document.id: each.document for each in shown if each}
    own = {_named(each.cell.document).name for each in found}
    names = {each.name: each for each in map(_named, documents.values())}
    return tuple(each for name, each in names.items() if name and name not in own)


def _names(words: str, of: NamedDocument) -> bool:
    """Whether words name an organisation: by a word of its name, its initials, or its name as one word."""
    written = re.findall(r"[^\W_]+", words)
    plain = [fold_case(word) for word in written]
    initials = {fold_case(word) for word in written if word.isupper()}
    called = not (of.organisation | of.file).isdisjoint(plain) or not of.aliases.isdisjoint(initials)
    return called or bool(of.name and of.name in "".join(plain))


def _is_of_another(organisation: str, read: _Read, others: Sequence[NamedDocument]) -> bool:
    """Whether an organisation is that of another document, or one that this document does not mention."""
    document = read.cell.document
    own = f"{document.title}\n{read.around}\n{read.cell.row.label}\n{read.cell.header}"
    core = named_document("", "", {ORGANISATION: organisation})
    if not core.name or _names(organisation, _named(document)) or _names(own, core):
        return False
    return any(_names(organisation, each) for each in others) or not _mentions(document.text, organisation)


def _mentions(text: str, organisation: str) -> bool:
    """Whether a text has a name, at least without its legal form."""
    legal = word_list("legal_words")
    words = [word for word in re.findall(r"[^\W_]+", fold_case(organisation)) if word not in legal]
    return re.search(r"(?<![^\W_])" + r"\W+".join(map(re.escape, words)) + r"(?![^\W_])", fold_case(text)) is not None


# --- the sentence ---------------------------------------------------------------------------------------------------


def _figure_difference(claim: Claim, found: Sequence[_Read], evidence: Sequence[Evidence], tables: TablesOf) -> str:
    """A figure of the sentence that stands where the value of a cell should; what a calculation gives is proved by itself."""
    if claim.working is not None:
        return ""
    stated = figures(claim.text)
    for each in found:
        if _drops_scale(claim.text, each, stated):
            return f"the cell is “{each.cell.facts.line}”, and the sentence gives its figure without the scale"
    unsaid = [each for each in found if each.numbers and not any(_is_value(number, each) for number in stated)]
    if not unsaid:
        return ""
    prose = figures_outside(claim, evidence, tables)
    for number in numbers(claim.text):
        year = YEARS.fullmatch(number.text)
        if not year and not any(_is_value(number, each) for each in found if each.numbers) and not _has(prose, number):
            return f"the cell is “{unsaid[0].cell.facts.line}”, and the sentence says “{number.text}”"
    return ""


def _drops_scale(words: str, read: _Read, stated: Sequence[Number]) -> bool:
    """Whether a sentence has the digits of a cell alone, where the field has a scale. In a row of a table, its header may
    have it."""
    own = [each for each in figures(read.claimed.value) if each.scale]
    if len(own) != 1 or ROW in words or scale_in(words) is not None:
        return False
    said = [each for each in stated if read.numbers and _is_value(each, read)]
    return bool(said) and all(each.scale is None and set(each.readings) & set(own[0].readings) for each in said)


def _sentence_difference(words: str, found: Sequence[_Read], others: Sequence[NamedDocument]) -> str:
    """Years, an organisation, or a row or column in the sentence that are those of no cell."""
    if not found:
        return ""
    line = found[0].cell.facts.line
    own = [_cell_years(each) for each in found if each.numbers]
    labels = _years("\n".join(f"{each.cell.row.label}\n{each.claimed.measure}" for each in found))
    if own and all(own) and _differs(_years(words), labels.union(*own)):
        return f"the cell is “{line}”, and the sentence names another year"
    said_own = any(_names(words, _named(each.cell.document)) for each in found)
    around = "\n".join(f"{each.around}\n{each.cell.row.label}\n{each.cell.header}" for each in found)
    for other in others:
        if not said_own and _names(words, other) and not _names(around, other):
            return f"the cell is “{line}”, and the sentence names another organisation"
    return next(filter(None, (_other_in_sentence(words, each, found) for each in found)), "")


def _other_in_sentence(words: str, read: _Read, found: Sequence[_Read]) -> str:
    """How a sentence names another row or column, where the fields name the right one. A word alone may mean another thing
    than the row that is called so."""
    said, fields = _terms(words), _terms(f"{read.claimed.measure} {read.claimed.organisation} {read.claimed.period}")
    taken = {name for each in found for name in (each.cell.row.label, each.cell.header)}
    for other in _other_lines(read):
        enough = len(other.terms) > 1 or not other.is_row
        if other.name not in taken and enough and (other.own - other.terms) & fields and other.is_named_by(said):
            return f"the cell is “{read.cell.facts.line}”, and the sentence names “{other.name}”"
    return ""


# --- figures without a cell -----------------------------------------------------------------------------------------


def without_cell(claim: Claim, evidence: Sequence[Evidence], tables: TablesOf) -> str:
    """A figure of a claim that stands in a table it cites and in no prose of it, and for which no cell is named."""
    if claim.working is not None or not any(map(str.isdigit, claim.text)):
        return ""
    read = [found for cell in claim.cells if (found := _read(cell, evidence, tables))]
    shown = [each for each in (tables(own.passage) for own in evidence if own.key in claim.cites) if each]
    rows = [row for each in shown for _, row in each.rows.values()]
    listed = [
        number for row in rows for cell in row.cells[1:] if not CODE.search(cell.text) for number in figures(cell.text)
    ]
    prose = figures_outside(claim, evidence, tables)
    for number in numbers(claim.text):
        small = abs(number.value) <= 20 or YEARS.fullmatch(number.text)
        if small or _has(prose, number) or not _has(listed, number):
            continue
        named = (_is_value(number, each) if each.numbers else _has(figures(each.cell.text), number) for each in read)
        if not any(named):
            return f"“{number.text}” {NO_CELL}"
    return ""


def figures_outside(claim: Claim, evidence: Sequence[Evidence], tables: TablesOf) -> list[Number]:
    """The figures in what a claim cites that are in no row of a table."""
    found: list[Number] = []
    for each in evidence:
        if each.key in claim.cites:
            text, start, shown = each.passage.text, each.passage.start, tables(each.passage)
            for _, row in reversed([*shown.rows.values()]) if shown else ():
                text = text[: row.start - start] + "\n" + text[row.end - start :]
            found += figures(text)
    return found


def _has(among: Sequence[Number], number: Number) -> bool:
    digits = {abs(each).normalize() for each in number.readings}
    return any(digits & {abs(each).normalize() for each in other.readings} for other in among)
