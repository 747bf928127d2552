"""Finds what a table says in answer to a question: a cell by row and column, rows by condition, counts, extremes and
sums.

A reading binds every content word of the question to the table, a column, a row or the operation. A table answers only
if all readings, of all tables, give the same values. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, takewhile

from assay.core.formats import formats_by_noun
from assay.core.identity import ORGANISATION
from assay.core.tables import row_spans, table_rows
from assay.core.types import Document, Table, TableCell, TableRow, file_name
from assay.language.dates import MONTHS, parse_written_date
from assay.language.terms import asking_stems, content_terms, fold_case, stem_word
from assay.tables.question import AUXILIARIES, MEASURES, TOTAL, Operation, TableQuestion, Word, parse, stems, tokens

ROWS = 5000  # of a table that is read; one with more rows answers nothing
LISTED = 40  # rows of an answer
YES, NO = frozenset({"yes", "y", "true", "x", "✓", "✔", "ja"}), frozenset({"no", "n", "false", "-", "–", "nein", ""})
CENTURIES = 150  # years between the first and the last of a column; more are numbers
SHORT = 4  # words of a cell that one name may stand for
PLACES = stems("location place site town city address country region headquarters")  # names of columns for "where"
LONG = 8  # words of a cell that is text, not a value
SIMILAR = 4  # letters that two forms of a word share, at least
CONDITIONS = 3  # of one reading
CONTAINER = "table data list sheet"  # what a table is called, whatever it holds


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """What a table says: the cells that are the answer, and the rows they are in. `value` is set where it is computed."""

    operation: Operation
    document: str
    table: Table
    rows: tuple[TableRow, ...]
    cells: tuple[TableCell, ...]
    column: str = ""
    value: str = ""


@dataclass(eq=False)
class Grid:
    """A table with the words of its parts."""

    document: Document
    table: Table

    @cached_property
    def rows(self) -> list[TableRow]:
        return table_rows(self.table, self.document.text)

    @cached_property
    def heads(self) -> list[frozenset[str]]:
        return [stems(_spaced(name)) for name in self.table.columns]

    @cached_property
    def around(self) -> str:
        """What is written above the table and of its document: what the rows are, and where they are from."""
        document = self.document
        kind = " ".join(noun for noun, formats in formats_by_noun().items() if document.kind in formats)
        owner, heading = document.meta.get(ORGANISATION, ""), document.heading_at(self.table.start)
        return " ".join((document.title, _spaced(file_name(document.uri)), owner, heading, kind, CONTAINER))

    @cached_property
    def about(self) -> frozenset[str]:
        """The words around the table and its own. The years of a table are its own, if it has some."""
        around, own = stems(self.around), stems(self.own)
        if any(map(as_date, own.union(*self.heads))):
            around = frozenset(each for each in around if not any(map(str.isdigit, each)))
        return own | around

    def compounded(self, words: Iterable[Word]) -> frozenset[int]:
        """The words that are part of a compound in the name of the file or the document: "state crime" of statecrime.csv."""
        joined = fold_case(f"{file_name(self.document.uri)} {self.document.title}").split()
        return frozenset(
            word.place
            for word in words
            if len(word.stem) > SIMILAR and any(word.stem in each and word.stem != each for each in joined)
        )

    @cached_property
    def own(self) -> str:
        return " ".join((self.table.caption, self.table.units, self.table.period))

    def value(self, row: TableRow, column: int) -> str:
        return row.label if column == 0 else row.cells[column].text

    @cached_property
    def types(self) -> list[str]:
        """The kind of values in each column: number, date, flag, text or name."""
        return [_type([row.cells[column].text for row in self.rows]) for column in range(len(self.table.columns))]

    @cached_property
    def identifying(self) -> int:
        """The last of the columns that identify rows: the first that is not all codes and numbers."""
        coded = [
            all(any(map(str.isdigit, row.cells[column].text)) for row in self.rows) for column in range(len(self.heads))
        ]
        return next((column for column, codes in enumerate(coded) if not codes), 0)

    @cached_property
    def key(self) -> int:
        """The column that names the rows: the first whose values differ and are no numbers, else the first of all."""
        for column, type_ in enumerate(self.types):
            values = [self.value(row, column) for row in self.rows]
            if type_ in {"name", "text", "date"} and len(set(values)) == len(values):
                return column
        return 0


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _type(values: Sequence[str]) -> str:
    filled = [value for value in values if value.strip()]
    if not filled:
        return "empty"
    if all(fold_case(value.strip()) in YES | NO for value in filled) and len(filled) > 1:
        return "flag"
    most = 0.7 * len(filled)
    years = [int(value) for value in filled if YEAR.fullmatch(value.strip())]
    if len(years) == len(filled) and max(years) - min(years) > CENTURIES:
        return "number"
    if sum(as_date(value) is not None for value in filled) >= most:
        return "date"
    if sum(as_number(value) is not None for value in filled) >= most:
        return "number"
    return "text" if sum(len(value.split()) for value in filled) / len(filled) > LONG else "name"


CELL_FIGURE = re.compile(
    r"^(?:[$€£¥~<>≤≥]|max\.?|min\.?|ca\.?|USD|EUR|CHF|GBP)?\s*+([-−+(]?)\s*+[$€£¥]?\s*+(\d[\d,. ’']*+)(.*)$",
    re.S | re.I,
)


def as_number(value: str) -> float | None:
    """The number that a cell consists of, with its sign; a unit may follow, as in "37 m" and "(81)"."""
    match = CELL_FIGURE.match(value.strip())
    if not match or len(match[3].split()) > 3 or re.match(r"[-:/]\s*\d|\w*\d\w", match[3].strip()):
        return None
    digits = re.sub(r"[ ’']", "", match[2]).rstrip(".,")
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", digits) or "," not in digits:
        digits = digits.replace(",", "")
    else:
        digits = digits.replace(".", "").replace(",", ".") if digits.count(",") == 1 else digits.replace(",", "")
    try:
        return -float(digits) if match[1] and match[1] != "+" else float(digits)
    except ValueError:
        return None


YEAR = re.compile(r"(?:1[5-9]|20)\d\d")


def as_date(value: str) -> str | None:
    """The day, month or year that a cell consists of, as ISO 8601."""
    words = value.strip()
    if match := re.fullmatch(r"((?:1[5-9]|20)\d\d(?:-\d\d(?:-\d\d)?)?)(?:[ T]\d\d:\d\d(?::\d\d)?)?", words):
        return match[1]
    if match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)", words):
        return f"{match[3] if len(match[3]) == 4 else '20' + match[3]}-{match[1].zfill(2)}-{match[2].zfill(2)}"
    found = parse_written_date(words) if len(words) < 40 else None
    return found[0] if found else None


def has_word(word: Word, there: frozenset[str]) -> bool:
    """Whether one of these stems is the word, or another form of it; numbers and codes must be equal."""
    if word.stem in there or stem_word(MEASURES.get(word.text, word.text)) in there:
        return True
    if len(word.stem) < SIMILAR or any(map(str.isdigit, word.text)):
        return False
    return any(_alike(word.stem, other) for other in there if other.startswith(word.stem[:SIMILAR]))


def _alike(one: str, other: str) -> bool:
    """Whether two stems are forms of one word: spend and spent, subscribe and subscription."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    shorter, longer = sorted((len(one), len(other)))
    return shared >= 0.75 * longer or (shared == shorter and longer - shorter <= 3)


def covered(words: Iterable[Word], there: frozenset[str]) -> frozenset[int]:
    return frozenset(word.place for word in words if has_word(word, there))


@lru_cache(maxsize=50_000)
def _content(name: str) -> frozenset[str]:
    """The stems of a name without small words and footnote marks."""
    words = [word for word in tokens(_spaced(name)) if len(word) > 1 and content_terms(word)]
    return frozenset(map(stem_word, words or tokens(name)))


def leftover(asked: TableQuestion, bound: frozenset[int]) -> list[Word] | None:
    """The words that nothing binds: such as only shape a question, and one verb. None if there are others."""
    known = {word.text for word in asked.words if word.place in bound}
    left = [word for word in asked.words if word.place not in bound]
    verbs = [word for word in left if word.stem not in asking_stems()]
    if any(word.named or word.place in asked.ordering for word in left) or len(verbs) > 1:
        return None
    for verb in verbs:
        second = asked.auxiliary or verb in asked.subject
        if not second or verb.before not in known | AUXILIARIES or verb in asked.subject[:1]:
            return None
    return left


@dataclass(frozen=True, slots=True)
class Condition:
    """What rows must meet: the words of the question that say it, the column, and the places of the rows that do."""

    words: frozenset[int]
    column: int
    rows: frozenset[int]


def conditions(asked: TableQuestion, grid: Grid) -> list[Condition]:
    found = [each for column in range(len(grid.table.columns)) for each in _valued(asked, grid, column)]
    found += _flagged(asked, grid) + _dated(asked, grid) + _compared(asked, grid)
    return [each for each in found if each.rows]


def _valued(asked: TableQuestion, grid: Grid, column: int) -> Iterator[Condition]:
    """The rows whose cell in a column the question names, for each set of words that no other contains. A value that is
    said whole comes before a longer one."""
    if grid.types[column] in {"flag", "empty"}:
        return
    said = f" {' '.join(tokens(asked.text))} "
    best: dict[frozenset[int], tuple[int, set[int]]] = {}
    for place, row in enumerate(grid.rows):
        own, value = row.cells[column].text, grid.value(row, column)
        if not own.strip() or len(own.split()) > 3 * LONG or not (named := _names(asked, own)):
            continue
        words, whole = named
        words |= covered(asked.words, stems(value))
        whole += f" {' '.join(tokens(own))} " in said
        if whole > best.get(words, (-1, set()))[0]:
            best[words] = (whole, set())
        if whole == best[words][0]:
            best[words][1].add(place)
    for words, (_, rows) in best.items():
        if not any(words < other for other in best):
            negated = bool(words & asked.negated)
            yield Condition(words, column, frozenset(range(len(grid.rows))) - rows if negated else frozenset(rows))


def _names(asked: TableQuestion, cell: str) -> tuple[frozenset[int], int] | None:
    """The words of the question that name a cell, and 1 if they are all of its words; None if they are too few of them."""
    content = _content(cell)
    inside = [word for word in asked.words if has_word(word, content)]
    reached = [stem for stem in content if any(has_word(word, frozenset({stem})) for word in inside)]
    enough = 2 * len(reached) >= len(content) or (len(content) <= SHORT and any(word.named for word in inside))
    return (frozenset(word.place for word in inside), int(len(reached) == len(content))) if inside and enough else None


def _flagged(asked: TableQuestion, grid: Grid) -> list[Condition]:
    """Columns of yes and no are conditions by their names."""
    found: list[Condition] = []
    for column, head in enumerate(grid.heads):
        words = covered(asked.words, head) if grid.types[column] == "flag" else frozenset()
        if words and len(words) >= 0.6 * len(_content(grid.table.columns[column])):
            wanted = not words & asked.negated
            cells = (fold_case(row.cells[column].text.strip()) for row in grid.rows)
            rows = frozenset(place for place, cell in enumerate(cells) if (cell in YES) == wanted)
            found.append(Condition(words, column, rows))
    return found


MONTH_AND_YEAR = re.compile(r"\b(?:([^\W\d_]+)\s+)?((?:1[5-9]|20)\d\d)\b")


def _dated(asked: TableQuestion, grid: Grid) -> list[Condition]:
    """Columns of days, by the month or the year that the question names."""
    found: list[Condition] = []
    for match in MONTH_AND_YEAR.finditer(fold_case(asked.text)):
        month = MONTHS.get(match[1] or "")
        said = {match[2], match[1]} if month else {match[2]}
        period = f"{match[2]}-{month:02}" if month else match[2]
        words = frozenset(word.place for word in asked.words if word.text in said)
        for column in (place for place, type_ in enumerate(grid.types) if type_ == "date"):
            days = (as_date(row.cells[column].text) or "" for row in grid.rows)
            rows = frozenset(place for place, day in enumerate(days) if day.startswith(period))
            found.append(Condition(words, column, rows))
    return found


COMPARED = re.compile(
    r"\b(more than|over|above|at least|less than|under|below|at most|before|after|since"
    r"|(?:great|long|larg|high|new|young|lat|few|low|small|short|old|earli|cheap)er than)\s+([$€£]?\d[\d.,/-]*)",
    re.I,
)
ABOVE = re.compile(r"more|over|above|at least|after|since|(?:great|long|larg|high|new|young|lat)er", re.I)
INCLUSIVE = frozenset({"at least", "at most", "since"})


def _compared(asked: TableQuestion, grid: Grid) -> list[Condition]:
    """A condition like "more than 20", on columns that the question names or on the only one that fits."""
    match = COMPARED.search(asked.text)
    if match is None:
        return []
    sign, day, number = match[1].lower(), as_date(match[2].rstrip(".,")), as_number(match[2])
    words = frozenset(word.place for word in asked.words if word.text in tokens(match[0]))
    found: list[Condition] = []
    for kind, read, bound in (("date", as_date, day), ("number", as_number, number)):
        fitting = [column for column, type_ in enumerate(grid.types) if type_ == kind and bound is not None]
        spoken = [column for column in fitting if covered(asked.words, grid.heads[column])]
        for column in spoken or (fitting if len(fitting) == 1 else []):
            values = [read(row.cells[column].text) for row in grid.rows]
            rows = (place for place, value in enumerate(values) if value is not None and _exceeds(value, sign, bound))
            found.append(Condition(words, column, frozenset(rows)))
    return found


def _exceeds(value: str | float, sign: str, bound: object) -> bool:
    if str(value).startswith(str(bound)) if isinstance(value, str) else value == bound:
        return sign in INCLUSIVE
    return (value > bound) == bool(ABOVE.match(sign))  # type: ignore[operator]


QUALIFIED = re.compile(r"[(,/]|\b(?:per|of|in|by|at|for|from)\b")


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer, and how well its words are bound: fewer that are left over, then more that name rows and columns, then
    the name of the column said whole."""

    answer: TableAnswer
    left: int
    exact: tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Target:
    """A column that may be asked for, the words that name it, and whether they are its whole name."""

    column: int
    words: frozenset[int]
    whole: bool = False


def look_up(question: str, documents: Sequence[Document]) -> TableAnswer | None:
    """What the tables of these documents say; None if no reading accounts for the whole question, or two differ."""
    asked = parse(question)
    grids = (Grid(document, table) for document in documents for table in document.tables)
    found = [each for grid in grids if _may_read(asked, grid) for each in _best(readings(asked, grid))]
    least = min((each.left for each in found), default=0)
    found = [each.answer for each in found if each.left == least]
    return (
        found[0] if found and len({_values(each) for each in found}) == 1 and not _repeats(question, found[0]) else None
    )


def _may_read(asked: TableQuestion, grid: Grid) -> bool:
    """Whether a table is of a size to be read, and has beginnings of all words but one: most have not."""
    table = grid.table
    if not asked.words or len(table.columns) < 2 or not 0 < len(row_spans(table)) <= ROWS:
        return False
    written = (grid.document.text[table.start : table.end], *table.columns, grid.own, grid.around)
    there = fold_case(_spaced(" ".join(written)))
    free = {*MEASURES, *MONTHS, *TOTAL}
    absent = [word for word in asked.words if word.text.isalpha() and word.stem[:SIMILAR] not in there]
    absent = [word for word in absent if word.text not in free and word.place not in asked.ordering]
    return not any(word.named for word in absent) and sum(word.stem not in asking_stems() for word in absent) < 2


def _best(found: Iterable[Reading]) -> list[Reading]:
    every = list(found)
    rank = max(((-each.left, each.exact) for each in every), default=None)
    return [each for each in every if (-each.left, each.exact) == rank]


def _values(found: TableAnswer) -> tuple[str, ...]:
    return (found.value,) if found.value else tuple(sorted(fold_case(cell.text) for cell in found.cells))


def _repeats(question: str, found: TableAnswer) -> bool:
    """Whether an answer has nothing but words of the question: the name of a row does not say who made it."""
    return not found.value and all(stems(cell.text) <= stems(question) for cell in found.cells)


def readings(asked: TableQuestion, grid: Grid) -> Iterator[Reading]:
    wanted = conditions(asked, grid)
    cells = list(_cells(asked, grid, wanted))
    yield from cells
    if not cells:
        if asked.operation is Operation.counted:
            yield from _counts(asked, grid, wanted)
        if asked.operation in {Operation.largest, Operation.smallest}:
            yield from _extremes(asked, grid, wanted)
        if not TOTAL.isdisjoint(tokens(asked.text)):
            yield from _totals(asked, grid, wanted)


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows that meet conditions. `exact` counts the words that rows and columns bind."""

    rows: tuple[TableRow, ...]
    left: int
    exact: int
    chosen: tuple[Condition, ...]


def _selections(
    asked: TableQuestion, grid: Grid, wanted: Sequence[Condition], bound: frozenset[int], apart: frozenset[int]
) -> Iterator[Selection]:
    """The sets of conditions, on other columns than those `apart`, that with `bound` account for every word. No condition
    is superfluous."""
    around = covered(asked.words, grid.about | grid.heads[grid.key] | grid.heads[0]) | grid.compounded(asked.words)
    usable = [each for each in wanted if each.column not in apart]
    for chosen in _choices(usable, bound, CONDITIONS):
        named = bound.union(*(each.words | covered(asked.words, grid.heads[each.column]) for each in chosen))
        left = leftover(asked, named | around)
        if left and grid.key in apart and _describes(asked, grid, left, chosen):
            continue
        rows = set(range(len(grid.rows))).intersection(*(each.rows for each in chosen))
        if left is not None and rows:
            yield Selection(tuple(grid.rows[place] for place in sorted(rows)), len(left), len(named), chosen)


def _describes(asked: TableQuestion, grid: Grid, left: Sequence[Word], chosen: Sequence[Condition]) -> bool:
    """Whether a verb that is left over may say which rows are meant: ferries that leave a port are not those in it."""
    named = all(covered(asked.words, grid.heads[each.column]) for each in chosen)
    return not named and any(word.stem not in asking_stems() for word in left)


def _choices(usable: Sequence[Condition], bound: frozenset[int], most: int) -> Iterator[tuple[Condition, ...]]:
    yield ()
    for place, each in enumerate(usable if most else ()):
        if not each.words <= bound:
            others = [other for other in usable[place + 1 :] if other.column != each.column]
            for rest in _choices(others, bound | each.words, most - 1):
                yield (each, *rest)


def _target(asked: TableQuestion, grid: Grid, column: int) -> Target | None:
    """A column as what is asked for, if the question names it, with the noun that its name ends in."""
    words = covered(asked.words, grid.heads[column])
    if asked.kind == "date" and grid.types.count("date") == 1 and grid.types[column] == "date":
        words |= frozenset(word.place for word in asked.subject[:1])
    elif column != grid.key and not _noun_said(asked, grid.document, grid.table.columns[column]):
        words = frozenset()
    if column == grid.key and not words and asked.subject and any(has_word(word, grid.about) for word in asked.subject):
        words = frozenset(word.place for word in asked.subject if has_word(word, grid.about))
    content = _content(grid.table.columns[column])
    reached = all(any(has_word(word, frozenset({stem})) for word in asked.words) for stem in content)
    return Target(column, words, reached) if words else None


def _noun_said(asked: TableQuestion, document: Document, name: str) -> bool:
    """Whether the question has a name or a number of a column, or its noun: the last word before what qualifies it. The
    height of a dam is not the dam. Only English is known to put the noun last."""
    core = QUALIFIED.split(_spaced(name))[0]
    words = [word for word in tokens(core) if content_terms(word)] or tokens(core)
    last = frozenset(map(stem_word, words[-1:])) if document.language in (None, "en") else stems(core)
    named = [word for word in asked.words if word.named]
    return bool(covered(asked.words, last) or covered(named, stems(_spaced(name))))


def _targets(asked: TableQuestion, grid: Grid) -> list[Target]:
    """The columns that may be asked for. If "which" names some, it is one of them, or the rows of their days and numbers."""
    columns = [column for column in range(len(grid.table.columns)) if _may_answer(asked, grid, column)]
    found = [target for column in columns if (target := _target(asked, grid, column))]
    if subject := [each for each in found if each.words & {word.place for word in asked.subject}]:
        measured = [each for each in subject if grid.types[each.column] in {"date", "number"}]
        found = subject + [Target(grid.key, each.words) for each in measured if asked.operation is Operation.rows]
    elif asked.kind:
        found = [each for each in found if each.column != grid.key]
    dates = [column for column in columns if grid.types[column] == "date"]
    places = [column for column in columns if PLACES & grid.heads[column]]
    for kind, fitting in (("date", dates), ("place", places)):
        if not found and asked.kind == kind and len(fitting) == 1:
            found = [Target(fitting[0], frozenset())]
    return found


def _may_answer(asked: TableQuestion, grid: Grid, column: int) -> bool:
    """Whether the values of a column can be what is asked for: a date is nobody and no place, and "no" does not say which."""
    type_ = grid.types[column]
    if asked.operation is Operation.counted and column == grid.key:
        return False
    if asked.kind == "number":
        return all(any(map(str.isdigit, row.cells[column].text)) for row in grid.rows if row.cells[column].text)
    if asked.kind in {"name", "place"}:
        return type_ in {"name", "text"}
    return type_ != "empty" and (type_ != "flag" or asked.operation is Operation.cell)


def _cells(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Iterator[Reading]:
    """The values of a column in the rows that meet every condition: one, or several if rows are asked for."""
    several = asked.operation is Operation.rows
    for target in (*_targets(asked, grid), *_beside_label(asked, grid, wanted)):
        for chosen in _selections(asked, grid, wanted, target.words, frozenset({target.column})):
            rows = chosen.rows
            cells = {row.cells[target.column].text: row.cells[target.column] for row in rows}
            if "" in cells or not _identified(asked, grid, target, chosen) or len(cells) > (LISTED if several else 1):
                continue
            operation = Operation.rows if len(cells) > 1 else Operation.cell
            shown = rows if several else rows[:1]
            yield _reading(grid, operation, shown, cells.values(), target, chosen)


def _identified(asked: TableQuestion, grid: Grid, target: Target, chosen: Selection) -> bool:
    """Whether rows are meant: by their names, by a column that is named too, or as what is asked for. A place that a dam
    feeds is not the dam; what names a row stands before what is said of it."""
    if len(grid.rows) == 1 or (target.column == grid.key and chosen.chosen):
        return True
    columns = [each.column for each in chosen.chosen]
    if asked.operation is Operation.rows and columns and max(columns) < target.column:
        return True
    return any(each <= max(grid.identifying, grid.key) or covered(asked.words, grid.heads[each]) for each in columns)


def _beside_label(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Iterator[Target]:
    """The second of two columns needs no name, if the whole label of a row is said."""
    labelled = [each for each in wanted if each.column == 0 and len(each.rows) == 1]
    for place in {place for each in labelled for place in each.rows} if len(grid.table.columns) == 2 else ():
        named = _names(asked, grid.rows[place].cells[0].text)
        if named and named[1] and _may_answer(asked, grid, 1):
            yield Target(1, frozenset())


def _reading(
    grid: Grid, operation: Operation, rows: Sequence[TableRow], cells: Iterable[TableCell],
    target: Target, chosen: Selection, value: str = "",
) -> Reading:  # fmt: skip
    name = grid.table.columns[target.column]
    answer = TableAnswer(operation, grid.document.id, grid.table, tuple(rows), tuple(cells), name, value)
    return Reading(answer, chosen.left, (chosen.exact, target.whole))


def _subject(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Target | None:
    """The column of the things that are asked for, by their name; those that the rows are, if nothing else is named."""
    first = {word.place for word in asked.subject}
    named = [
        target for column in range(len(grid.heads)) if (target := _target(asked, grid, column)) and target.words & first
    ]
    named = [each for each in named if grid.types[each.column] in {"name", "text", "date"} or each.column == grid.key]
    if of_rows := [each for each in named if each.column == grid.key]:
        return of_rows[0]
    if not first or any(each.column == grid.key and each.words & first for each in wanted):
        return Target(grid.key, frozenset())
    return named[0] if len(named) == 1 else None


def _counts(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Iterator[Reading]:
    """The number of rows that meet every condition. Where a column says how many, its rows are something else."""
    subject = _subject(asked, grid, wanted)
    numbers = [head for head, type_ in zip(grid.heads, grid.types, strict=True) if type_ == "number"]
    if subject is None or not subject.words or subject.column != grid.key:
        return
    if any(covered(asked.subject, head) for head in numbers):
        return
    for chosen in _selections(asked, grid, wanted, subject.words, frozenset({subject.column})):
        rows = _without_totals(grid, chosen.rows)
        labels = {grid.value(row, grid.key) for row in rows}
        if rows and len(labels) == len(rows) and (chosen.chosen or covered(asked.subject, grid.heads[grid.key])):
            cells = [row.cells[grid.key] for row in rows]
            yield _reading(grid, Operation.counted, rows, cells, subject, chosen, str(len(rows)))


def _measures(asked: TableQuestion, grid: Grid) -> list[Target]:
    """The columns that rows may be ordered by: those that the question names, else the only one."""
    fitting = [column for column, type_ in enumerate(grid.types) if type_ in {"number", "date"}]
    spoken = [
        Target(column, words, len(words) >= len(_content(grid.table.columns[column])))
        for column in fitting
        if (words := covered(asked.words, grid.heads[column]))
    ]
    kind = "date" if asked.dates and "date" in grid.types else "number"
    return spoken or [
        Target(column, frozenset()) for column in fitting if grid.types.count(kind) == 1 and grid.types[column] == kind
    ]


def _extremes(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Iterator[Reading]:
    """The row with the largest or the smallest value of a column."""
    subject = _subject(asked, grid, wanted)
    pick = max if asked.operation is Operation.largest else min
    if subject is None:
        return
    for measure in _measures(asked, grid):
        column = grid.key if subject.column == measure.column else subject.column
        bound = subject.words | measure.words | asked.ordering
        apart = {measure.column, *([column] if subject.words else [])}  # labels may say which rows are meant
        for chosen in _selections(asked, grid, wanted, bound, frozenset(apart)):
            rows = _without_totals(grid, chosen.rows)
            read = as_date if grid.types[measure.column] == "date" else as_number
            values = [(value, row) for row in rows if (value := read(row.cells[measure.column].text)) is not None]
            if len(values) < 2 or len(values) < len(rows):
                continue
            top = pick(value for value, _ in values)  # type: ignore[type-var]
            best = [row for value, row in values if value == top]
            cells = [cell for row in best for cell in (row.cells[column], row.cells[measure.column])]
            if len(best) <= 3 and all(cell.text for cell in cells):
                yield _reading(grid, asked.operation, best, cells, measure, chosen)


def _totals(asked: TableQuestion, grid: Grid, wanted: Sequence[Condition]) -> Iterator[Reading]:
    """The sum of a column over the rows that meet every condition, if neither the column nor a row gives totals itself."""
    sums = frozenset(word.place for word in asked.words if word.text in TOTAL)
    for target in (target for column in range(len(grid.heads)) if (target := _target(asked, grid, column))):
        if grid.types[target.column] != "number" or is_total(grid.table.columns[target.column]):
            continue
        for chosen in _selections(asked, grid, wanted, target.words | sums, frozenset({target.column})):
            rows = _without_totals(grid, chosen.rows)
            values = [as_number(row.cells[target.column].text) for row in rows]
            if len(rows) > 1 and None not in values:
                total = sum(value for value in values if value is not None)
                cells = [row.cells[target.column] for row in rows]
                yield _reading(grid, Operation.total, rows, cells, target, chosen, f"{total:.10g}")


def is_total(name: str) -> bool:
    return not TOTAL.isdisjoint(tokens(name))


def _without_totals(grid: Grid, rows: Sequence[TableRow]) -> list[TableRow]:
    """The rows that are no sums, by their names; nor the last one, if its numbers add up the others."""
    plain = [row for row in rows if not is_total(row.label)]
    last, above = grid.rows[-1], [row for row in grid.rows[:-1] if not is_total(row.label)]
    numeric = [column for column, type_ in enumerate(grid.types) if type_ == "number" and column != grid.key]
    columns = [[as_number(row.cells[column].text) or 0.0 for row in (*above, last)] for column in numeric]
    columns = [
        values for values in columns if any(two - one != 1 for one, two in pairwise(values))
    ]  # no numbers of rows
    adds_up = len(above) > 1 and columns and all(abs(sum(values[:-1]) - values[-1]) < 1e-6 for values in columns)
    return [row for row in plain if not (adds_up and row is last)]
