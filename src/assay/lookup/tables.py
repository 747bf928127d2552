"""Finds what a table says in answer to a question: cells by row and column, rows by condition, counts and extremes.

An interpretation assigns every content word of the question to the table, a column, a row or the operation. A table
answers only if no noun of the question is left over. Pure.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from assay.core.identity import ORGANISATION
from assay.core.tables import table_rows
from assay.core.types import Document, Table, TableCell, TableRow
from assay.language.dates import parse_written_date
from assay.language.terms import asking_stems, fold_case, stem_word
from assay.lookup.table_question import (
    DETERMINING,
    MEASURES,
    PAST,
    TOTAL,
    Operation,
    TableQuestion,
    Word,
    asks_total,
    parse,
    stems,
    tokens,
)

ROWS = 5000  # of a table that is read
LISTED = 40  # rows of an answer
YES, NO = frozenset({"yes", "y", "true", "x", "✓", "✔", "ja"}), frozenset({"no", "n", "false", "-", "–", "nein", ""})
SUMS = frozenset({"total", "totals", "sum", "subtotal", "average", "mean", "overall", "grand"})
SHORT = 4  # words of a cell that one name may stand for
PLACES = stems("location place site town city address country region headquarters venue room")  # heads for "where"
LONG = 8  # words of a cell that is text, not a value


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """What a table says: the cells that are the answer, the rows they are in, and the words of the question they account
    for. `value` is set where it is computed."""

    operation: Operation
    document: str
    table: Table
    rows: tuple[TableRow, ...]
    cells: tuple[TableCell, ...]
    column: str = ""
    value: str = ""
    score: float = 0.0


@dataclass(eq=False)
class Grid:
    """A table with the words of its parts."""

    document: Document
    table: Table

    @cached_property
    def rows(self) -> list[TableRow]:
        return table_rows(self.table, self.document.text)[:ROWS]

    @cached_property
    def heads(self) -> list[frozenset[str]]:
        return [stems(name.replace("_", " ")) for name in self.table.columns]

    @cached_property
    def about(self) -> frozenset[str]:
        """The words above and around the table: what the rows are, and where they are from."""
        document, table = self.document, self.table
        name = document.uri.rpartition("/")[2].replace("_", " ")
        above = document.text[max(0, table.start - 300) : table.start].rsplit("\n\n", 2)[-1] if table.start else ""
        owner = document.meta.get(ORGANISATION, "")
        heading = document.heading_at(table.start)
        return stems(" ".join((document.title, name, owner, heading, table.caption, table.units, table.period, above)))

    @cached_property
    def cells(self) -> list[list[frozenset[str]]]:
        return [[stems(self.value(row, column)) for column in range(len(self.table.columns))] for row in self.rows]

    def value(self, row: TableRow, column: int) -> str:
        return row.label if column == 0 else row.cells[column].text

    @cached_property
    def types(self) -> list[str]:
        """The kind of values in each column: number, date, flag, text or name."""
        return [_type([self.value(row, column) for row in self.rows]) for column in range(len(self.table.columns))]


def _type(values: Sequence[str]) -> str:
    filled = [value for value in values if value.strip()]
    if not filled:
        return "empty"
    if all(fold_case(value.strip()) in YES | NO for value in filled) and len(filled) > 1:
        return "flag"
    most = 0.7 * len(filled)
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
    if not match or len(match[3].split()) > 3 or re.match(r"[-:/]\s*\d", match[3].strip()):
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
    if match := re.fullmatch(r"(\d{4}(?:-\d\d(?:-\d\d)?)?)(?:[ T]\d\d:\d\d(?::\d\d)?)?", words):
        return match[1] if YEAR.match(words) else None
    if match := re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{4}|\d\d)", words):
        return f"{match[3].zfill(4) if len(match[3]) == 4 else '20' + match[3]}-{match[1].zfill(2)}-{match[2].zfill(2)}"
    found = parse_written_date(words) if len(words) < 40 else None
    return found[0] if found else None


# --- words and parts ------------------------------------------------------------------------------------------------


def has_word(word: Word, there: frozenset[str]) -> bool:
    """Whether one of these stems is the word, or another form of it; numbers and codes must be equal."""
    others = (MEASURES.get(word.text, ""), PAST.get(word.text, ""))
    if word.stem in there or any(stem_word(other) in there for other in others if other):
        return True
    if any(sign.isdigit() for sign in word.text) or len(word.stem) < 4:
        return False
    least = max(4, len(word.stem) - 3)
    return any(
        len(other) >= 4 and (other.startswith(word.stem) or (len(other) >= least and word.stem.startswith(other)))
        for other in there
    )


def covered(words: Iterable[Word], there: frozenset[str]) -> frozenset[int]:
    return frozenset(word.place for word in words if has_word(word, there))


PARTICIPLE = re.compile(r"(?:ed|ing|wn|en|ught|ilt|old|ent|eld|ept|elt|ade)$")


def leftover(asked: TableQuestion, accounted: frozenset[int]) -> list[Word]:
    """The words that nothing accounts for. A verb needs no account: it follows a noun, where a noun follows an article, a
    preposition or the word that asks."""
    known = {word.text for word in asked.words if word.place in accounted}
    left: list[Word] = []
    for word in asked.words:
        if word.place in accounted | asked.ordering or (word.stem in asking_stems() and not word.named):
            continue
        follows = word.before in known and (asked.auxiliary or word in asked.subject)
        if not word.named and word.before not in DETERMINING and (follows or PARTICIPLE.search(word.text)):
            continue
        left.append(word)
    return left


# --- interpretations ------------------------------------------------------------------------------------------------


def look_up(question: str, documents: Sequence[Document]) -> TableAnswer | None:
    """The best answer that the tables of these documents give; None if none accounts for the whole question. Documents
    are in order of relevance, which decides between equals."""
    asked = parse(question)
    best: TableAnswer | None = None
    for document in documents:
        for table in document.tables:
            grid = Grid(document, table)
            if not grid.rows or len(table.columns) < 2:
                continue
            for found in interpretations(asked, grid):
                if not _repeats(question, found) and (best is None or _rank(found) > _rank(best)):
                    best = found
    return best


def _rank(found: TableAnswer) -> tuple[bool, float]:
    """A number that a table gives comes before the number of its rows."""
    return found.operation is not Operation.counted, found.score


def _repeats(question: str, found: TableAnswer) -> bool:
    """Whether an answer has nothing but words of the question: the name of a row does not say who made it."""
    computed = found.operation in {Operation.counted, Operation.total}
    return not computed and all(stems(cell.text) <= stems(question) for cell in found.cells)


def interpretations(asked: TableQuestion, grid: Grid) -> Iterable[TableAnswer]:
    readings: list[Callable[[TableQuestion, Grid], TableAnswer | None]] = []
    match asked.operation:
        case Operation.largest | Operation.smallest:
            ordering = [word for word in asked.words if word.place in asked.ordering]
            named = any(has_word(word, head) for word in ordering for head in grid.heads)
            readings = [_cell] if named else [_extreme]  # the column itself may give the highest
        case Operation.counted:
            readings = [_cell, _selected, *([_total] if asks_total(asked.text) else [])]
        case Operation.rows:
            readings = [_cell, _selected]
        case Operation.total:
            readings = [_cell, _total]
        case _:
            readings = [_cell]
    if COMPARED.search(asked.text):  # it describes rows, and names none
        readings = [each for each in readings if each is not _cell]
    for reading in readings:
        if found := reading(asked, grid):
            yield found


def _cell(asked: TableQuestion, grid: Grid) -> TableAnswer | None:
    """One cell: the row that the question names, and the column that it asks for."""
    words = [word for word in asked.words if word.place not in asked.ordering]
    keys = [_row_keys(words, grid, place) for place in range(len(grid.rows))]
    weights = [sum(2 if word.named else 1 for word in row) for row in keys]
    most = max(weights, default=0)
    if not most and len(grid.rows) > 1:  # the row of a table with one row needs no name
        return None
    best = [place for place, weight in enumerate(weights) if weight == most]
    named = keys[best[0]]
    if asked.operation is Operation.cell and named and not _identified(asked, grid, best[0], named):
        return None
    columns = _target_columns(asked, grid, best[0], named)
    found: TableAnswer | None = None
    for column, matched in columns:
        values = {grid.value(grid.rows[place], column) for place in best}
        rows = [grid.rows[place] for place in best]
        if len(values) != 1 or not "".join(values).strip():
            continue
        accounted = frozenset(word.place for word in named) | matched | covered(words, grid.about | grid.heads[0])
        accounted |= _unit(asked, grid.table.columns[column])
        if leftover(asked, accounted):
            continue
        score = most + 2 * len(matched) - 0.1 * (len(best) - 1) + 0.5 * _fits(asked.kind, grid.types[column])
        answer = TableAnswer(
            Operation.cell, grid.document.id, grid.table, (rows[0],), (rows[0].cells[column],),
            grid.table.columns[column], score=score,
        )  # fmt: skip
        if found is None or score > found.score:
            found = answer
    return found


def _unit(asked: TableQuestion, column: str) -> frozenset[int]:
    """The unit that a question ends with, if the column has one: "in megabases" for "Size (Mb)"."""
    last = asked.words[-1:]
    asks = (
        asked.kind == "number"
        and column.rstrip().endswith(")")
        and asked.text.rstrip(" ?.").endswith(tuple(word.text for word in last))
    )
    return frozenset(word.place for word in last if asks and word.before == "in" and not word.named)


def _row_keys(words: Sequence[Word], grid: Grid, place: int) -> tuple[Word, ...]:
    """The words of the question that name this row: those in cells that they mostly fill."""
    found: dict[int, Word] = {}
    for column, cell in enumerate(grid.cells[place]):
        inside = [word for word in words if has_word(word, cell)]
        if not inside or len(cell) > 3 * LONG:
            continue
        own = stems(grid.rows[place].cells[column].text)  # without the group that the row is in
        filled = 2 * len(inside) >= len(cell) or (len(cell) <= SHORT and any(word.named for word in inside))
        filled = filled or (column == 0 and 0 < len(own) <= 2 * sum(has_word(word, own) for word in inside))
        if filled and not all(word.place in covered([word], grid.heads[column]) for word in inside):
            found.update({word.place: word for word in inside})
    return tuple(found.values())


def _identified(asked: TableQuestion, grid: Grid, place: int, named: Sequence[Word]) -> bool:
    """Whether the words that name a row are in its label, or in a column that the question names too: what a dam feeds is
    not the dam. Codes and numbers before the label do not count."""
    cells = grid.cells[place]
    codes = [all(re.search(r"\d", grid.value(row, column)) for row in grid.rows) for column in range(len(cells))]
    label = next((column for column, coded in enumerate(codes) if not coded), 0)
    inside = [column for column, cell in enumerate(cells) if any(has_word(word, cell) for word in named)]
    return any(column <= label or covered(asked.words, grid.heads[column]) for column in inside)


def _target_columns(
    asked: TableQuestion, grid: Grid, place: int, named: Sequence[Word]
) -> list[tuple[int, frozenset[int]]]:
    """The columns that may be asked for, each with the words that name it."""
    used = {column for column, cell in enumerate(grid.cells[place]) if any(has_word(word, cell) for word in named)}
    rest = [word for word in asked.words if word not in named and word.place not in asked.ordering]
    every = [word for word in asked.words if word.place not in asked.ordering]
    scored = [
        (column, covered(rest, head) | (covered(every, head) if covered(rest, head) else frozenset()))
        for column, head in enumerate(grid.heads)
        if column not in used and _may_answer(asked, grid.types[column])
    ]
    if asked.kind == "place":
        scored = [(column, matched) for column, matched in scored if grid.heads[column] & PLACES] or scored
    spoken = [(column, matched) for column, matched in scored if matched]
    if spoken:
        most = max(len(matched) for _, matched in spoken)
        best = [(column, matched) for column, matched in spoken if len(matched) == most]
        beside = [len(grid.heads[column]) for column, _ in best]  # the name that has least beside what was said
        best = [each for each, size in zip(best, beside, strict=True) if size == min(beside)]
        whole = min(beside) <= most
        return best if len(best) == 1 or whole or len({matched for _, matched in best}) > 1 else []
    if asked.kind == "place" and len(scored) == 1 and grid.heads[scored[0][0]] & PLACES:
        return scored
    dates = [(column, matched) for column, matched in scored if grid.types[column] == "date"]
    if len(dates) == 1 and asked.kind == "date":
        return dates
    return scored if len(scored) == 1 and len(grid.table.columns) == 2 else []


def _fits(kind: str, type_: str) -> bool:
    return {"number": "number", "date": "date", "name": "name", "place": "name"}.get(kind) == type_


def _may_answer(asked: TableQuestion, type_: str) -> bool:
    """Whether values of a type can be what is asked for: a date is nobody and no place, and "no" does not say which."""
    if asked.kind in {"name", "place"} and type_ in {"date", "number"}:
        return False
    return type_ != "empty" and (type_ != "flag" or asked.operation is Operation.cell)


# --- conditions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Condition:
    """What rows must meet: the words of the question that say it, the column, and the test."""

    words: frozenset[int]
    column: int
    holds: Callable[[TableRow], bool]


def conditions(asked: TableQuestion, grid: Grid, subject: int, taken: frozenset[int]) -> list[Condition]:
    """The conditions that the question sets, whole values first."""
    found: list[Condition] = []
    used = set(taken)
    for column, head in enumerate(grid.heads):
        if grid.types[column] == "flag":
            matched = covered(asked.words, head)
            if matched and len(matched) >= 0.6 * len([each for each in head if len(each) > 3]) and not matched <= used:
                wanted = not matched & asked.negated
                found.append(Condition(matched, column, _flagged(grid, column, wanted=wanted)))
                used |= matched
    if (period := _period(asked, grid, frozenset(used))) and period.column not in {each.column for each in found}:
        found.append(period)
        used |= period.words
    spoken = f" {' '.join(tokens(asked.text))} "
    values: list[tuple[int, str, int]] = []
    for column in range(len(grid.table.columns)):
        if grid.types[column] in {"flag", "empty", "text"}:
            continue
        for value in {" ".join(tokens(grid.value(row, column))) for row in grid.rows}:
            if value and f" {value} " in spoken:
                values.append((len(value.split()), value, column))
    for _, value, column in sorted(values, key=lambda each: (-each[0], each[1] != "", each[2])):
        own = _places_of(asked, value)
        if not own or own <= used or column in {each.column for each in found}:
            continue
        beside = covered(asked.words, grid.heads[column])
        if value.replace(".", "").isdigit() and not beside and _in_columns(grid, value) > 1:
            continue
        found.append(Condition(own | beside, column, _valued(grid, column, value, negated=bool(own & asked.negated))))
        used |= own | beside
    for word in leftover(asked, frozenset(used) | covered(asked.words, grid.about)):
        for column in range(len(grid.table.columns)):
            if column == subject or grid.types[column] in {"flag", "empty", "number", "date", "text"}:
                continue
            if has_word(word, grid.heads[column]) or column in {each.column for each in found}:
                continue
            if any(has_word(word, cells[column]) for cells in grid.cells):
                found.append(
                    Condition(frozenset({word.place}), column, _worded(grid, column, word, word.place in asked.negated))
                )
                used.add(word.place)
                break
    return found


MONTH_AND_YEAR = re.compile(r"\b(" + "|".join(calendar.month_name[1:]) + r")\s+((?:1[5-9]|20)\d\d)\b", re.I)
IN_YEAR = re.compile(r"\b(?:in|during|of|for)\s+((?:1[5-9]|20)\d\d)\b", re.I)


def _period(asked: TableQuestion, grid: Grid, taken: frozenset[int]) -> Condition | None:
    """The year or the month that dates must be in, on the column that the question names or the only one with dates."""
    match = MONTH_AND_YEAR.search(asked.text) or IN_YEAR.search(asked.text)
    if match is None:
        return None
    whole = match.re is MONTH_AND_YEAR
    period = f"{match[2]}-{_MONTHS.index(match[1].lower()):02}" if whole else match[1]
    dated = [column for column, type_ in enumerate(grid.types) if type_ == "date"]
    spoken = [column for column in dated if covered(asked.words, grid.heads[column])] or dated
    said = frozenset(word.place for word in asked.words if word.text in tokens(match[0]))
    if len(spoken) != 1 or said <= taken:
        return None
    column = spoken[0]
    return Condition(
        said | covered(asked.words, grid.heads[column]),
        column,
        lambda row: (as_date(grid.value(row, column)) or "").startswith(period),
    )


_MONTHS = [month.lower() for month in calendar.month_name]


def _places_of(asked: TableQuestion, value: str) -> frozenset[int]:
    inside = set(value.split())
    return frozenset(word.place for word in asked.words if word.text in inside)


def _in_columns(grid: Grid, value: str) -> int:
    return sum(
        any(" ".join(tokens(grid.value(row, column))) == value for row in grid.rows)
        for column in range(len(grid.table.columns))
    )


def _flagged(grid: Grid, column: int, *, wanted: bool) -> Callable[[TableRow], bool]:
    return lambda row: (fold_case(grid.value(row, column).strip()) in YES) == wanted


def _valued(grid: Grid, column: int, value: str, *, negated: bool) -> Callable[[TableRow], bool]:
    return lambda row: (" ".join(tokens(grid.value(row, column))) == value) != negated


def _worded(grid: Grid, column: int, word: Word, negated: bool) -> Callable[[TableRow], bool]:
    return lambda row: has_word(word, stems(grid.value(row, column))) != negated


COMPARED = re.compile(
    r"\b(more than|over|above|at least|less than|under|below|at most|before|after|since"
    r"|(?:great|long|larg|high|new|young|lat|few|low|small|short|old|earli|cheap)er than)\s+([$€£]?\d[\d.,/-]*)",
    re.I,
)
ABOVE = re.compile(r"more|over|above|at least|after|since|(?:great|long|larg|high|new|young|lat)er", re.I)
OF_DAYS = re.compile(r"before|after|since|(?:lat|earli|old|new|young)er", re.I)
INCLUSIVE = frozenset({"at least", "at most", "since"})


def compared(asked: TableQuestion, grid: Grid) -> Condition | None:
    """A condition like "more than 20", on the column that the question names or the only one that fits."""
    match = COMPARED.search(asked.text)
    if match is None:
        return None
    day = as_date(match[2]) if OF_DAYS.match(match[1]) else None
    kind = "date" if day else "number"
    fitting = [column for column, type_ in enumerate(grid.types) if type_ == kind]
    spoken = [column for column in fitting if covered(asked.words, grid.heads[column])] or fitting
    bound = day or as_number(match[2])
    if len(spoken) != 1 or bound is None:
        return None
    column, sign = spoken[0], match[1].lower()

    def holds(row: TableRow) -> bool:
        value = as_date(grid.value(row, column)) if day else as_number(grid.value(row, column))
        if value is None:
            return False
        if sign in INCLUSIVE and value == bound:
            return True
        return (value > bound) == bool(ABOVE.match(sign)) and value != bound  # type: ignore[operator]

    matched = frozenset(word.place for word in asked.words if word.text in tokens(match[0]))
    return Condition(matched | covered(asked.words, grid.heads[column]), column, holds)


def _subject_column(asked: TableQuestion, grid: Grid) -> tuple[int, frozenset[int]] | None:
    """The column of what is asked for, and the words that name it; the labels of the rows, if the table is about it."""
    dated = [column for column, type_ in enumerate(grid.types) if type_ == "date"]
    if asked.kind == "date" and asked.subject and len(dated) == 1:  # "on which day"
        return dated[0], frozenset({asked.subject[0].place})
    for count in range(len(asked.subject), 0, -1):
        if found := _column_named(asked.subject[:count], grid):
            return found
    if not asked.subject:
        return (0, frozenset()) if asked.operation is not Operation.rows or asked.kind == "name" else None
    first = asked.subject[0]
    places = frozenset({first.place})
    if has_word(first, grid.heads[0]) or has_word(first, grid.about):
        return 0, places
    nouns = [word for word in asked.subject if not PARTICIPLE.search(word.text)] or [first]
    labels = sum(all(has_word(word, stems(row.label)) for word in nouns) for row in grid.rows)
    if labels > 1 or any(has_word(first, head) for head in grid.heads):
        return 0, places
    return _column_named(asked.subject[1:], grid) if len(asked.subject) > 1 else None  # "turbidity sensors"


def _column_named(words: Sequence[Word], grid: Grid) -> tuple[int, frozenset[int]] | None:
    """The column that has these words as its name, and their places."""
    for column, head in enumerate(grid.heads):
        exact = all(has_word(word, head) for word in words) and len(head - {"id", "name", "no"}) <= len(words)
        if exact and grid.types[column] in {"name", "date", "text", "number"}:
            return column, frozenset(word.place for word in words)
    return None


def _counted_rows(grid: Grid) -> list[TableRow]:
    """The rows without totals."""
    return [row for row in grid.rows if not SUMS & set(tokens(row.label)[:2])]


def _rows_of_subject(asked: TableQuestion, grid: Grid) -> list[TableRow]:
    """The rows; only those that the subject names, if it names some by their labels: zones, not the total."""
    rows = _counted_rows(grid)
    first = asked.subject[:1]
    if first and not has_word(first[0], grid.heads[0]):
        named = [row for row in rows if has_word(first[0], stems(row.label))]
        if len(named) > 1:
            return named
    return rows


def _selected(asked: TableQuestion, grid: Grid) -> TableAnswer | None:
    """The rows that meet every condition, or their number."""
    subject = _subject_column(asked, grid)
    if subject is None or grid.types[subject[0]] == "empty":
        return None
    column, matched = subject
    if asked.operation is Operation.counted and grid.types[column] == "number":
        return None  # the column says how many; its rows are something else
    comparison = compared(asked, grid)
    taken = matched | (comparison.words if comparison else frozenset())
    wanted = [*conditions(asked, grid, column, taken), *([comparison] if comparison else [])]
    if asked.operation is Operation.counted and any(each.column == column == 0 for each in wanted):
        return None  # the question names a row, and one row has one label: its cells may say how many
    accounted = matched.union(covered(asked.words, grid.about), *(each.words for each in wanted))
    bare = (
        asked.operation is Operation.counted and not wanted and bool(covered(asked.subject, grid.heads[0] | grid.about))
    )
    if leftover(asked, accounted) or (not wanted and not bare):
        return None
    rows = [row for row in _rows_of_subject(asked, grid) if all(each.holds(row) for each in wanted)]
    if not rows or (len(rows) > LISTED and asked.operation is not Operation.counted):
        return None
    cells = tuple(row.cells[column] for row in rows if grid.value(row, column).strip())
    distinct = tuple({cell.text: cell for cell in cells}.values())
    score = sum(2 if word.named else 1 for word in asked.words if word.place in accounted) - 0.5
    if asked.operation is Operation.counted:
        return TableAnswer(
            Operation.counted, grid.document.id, grid.table, tuple(rows), cells, grid.table.columns[column],
            str(len(rows)), score - (1 if bare else 0),
        )  # fmt: skip
    return TableAnswer(
        Operation.rows, grid.document.id, grid.table, tuple(rows), distinct, grid.table.columns[column], score=score
    )


def _extreme(asked: TableQuestion, grid: Grid) -> TableAnswer | None:
    """The row with the largest or the smallest value of the column that the question names."""
    subject = _subject_column(asked, grid)
    if subject is None:
        return None
    column, matched = subject
    rest = [word for word in asked.words if word.place not in matched]
    ordered = [word for word in asked.words if word.place in asked.ordering]
    measures = [
        (len(covered(rest, head)), place, covered(rest, head))
        for place, head in enumerate(grid.heads)
        if place != column and grid.types[place] in ({"date"} if asked.dates else {"number", "date"})
    ]
    if asked.dates and not any(count for count, _, _ in measures):
        measures = [
            (len(covered(rest, head)), place, covered(rest, head))
            for place, head in enumerate(grid.heads)
            if place != column and grid.types[place] in {"number", "date"}
        ]
    spoken = [each for each in measures if each[0] or _measured(ordered, grid.heads[each[1]])]
    if not spoken and len(measures) == 1:
        spoken = measures
    if not spoken:
        return None
    most = max(count for count, _, _ in spoken)
    best = [each for each in spoken if each[0] == most]
    if len(best) > 1:  # the name that has least beside what was said
        best = sorted(best, key=lambda each: len(grid.heads[each[1]]))[:1]
    _, measure, named = best[0]
    wanted = [
        each
        for each in conditions(asked, grid, column, matched | named | asked.ordering)
        if each.column != measure and not each.words <= named
    ]
    accounted = matched.union(named, covered(asked.words, grid.about), *(each.words for each in wanted))
    if leftover(asked, accounted):
        return None
    read = as_date if grid.types[measure] == "date" else as_number
    rows = [row for row in _rows_of_subject(asked, grid) if all(each.holds(row) for each in wanted)]
    values = [(value, row) for row in rows if (value := read(grid.value(row, measure))) is not None]
    if len(values) < 2:
        return None
    pick = max if asked.operation is Operation.largest else min
    top = pick(value for value, _ in values)  # type: ignore[type-var]
    best_rows = [row for value, row in values if value == top]
    if len(best_rows) > 3:
        return None
    score = sum(2 if word.named else 1 for word in asked.words if word.place in accounted) + len(named)
    cells = tuple(cell for row in best_rows for cell in (row.cells[column], row.cells[measure]))
    return TableAnswer(
        asked.operation, grid.document.id, grid.table, tuple(best_rows), cells, grid.table.columns[measure], score=score
    )


def _measured(ordering: Sequence[Word], head: frozenset[str]) -> bool:
    """Whether "highest" asks for this column, as "height" does."""
    roots = {re.sub(r"(?:i?est)$", "", word.text) for word in ordering}
    return any(stem_word(MEASURES.get(root, "")) in head for root in roots if root)


def _total(asked: TableQuestion, grid: Grid) -> TableAnswer | None:
    """The sum of a column over the rows that meet every condition, if neither the column nor a row gives totals itself."""
    words = [word for word in asked.words if word.place not in asked.ordering]
    measures = [
        (covered(words, head), place)
        for place, head in enumerate(grid.heads)
        if grid.types[place] == "number" and covered(words, head) and not stems(" ".join(TOTAL)) & head
    ]
    if not measures:
        return None
    most = max(len(matched) for matched, _ in measures)
    best = [each for each in measures if len(each[0]) == most]
    if len(best) != 1:
        return None
    named, column = best[0]
    wanted = [each for each in conditions(asked, grid, 0, named) if each.column != column]
    sums = frozenset(word.place for word in asked.words if word.text in TOTAL)
    around = grid.about | grid.heads[0]
    accounted = (named | sums).union(covered(asked.words, around), *(each.words for each in wanted))
    rows = [row for row in _counted_rows(grid) if all(each.holds(row) for each in wanted)]
    values = [as_number(grid.value(row, column)) for row in rows]
    if leftover(asked, accounted) or len(rows) < 2 or any(value is None for value in values):
        return None
    total = sum(value for value in values if value is not None)
    score = sum(2 if word.named else 1 for word in asked.words if word.place in accounted)
    return TableAnswer(
        Operation.total, grid.document.id, grid.table, tuple(rows), tuple(row.cells[column] for row in rows),
        grid.table.columns[column], f"{total:g}" if total < 1e6 else f"{total:.2f}".removesuffix(".00"), score,
    )  # fmt: skip
