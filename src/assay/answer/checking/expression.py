"""The small language of workings: decimals, operations, comparisons, and functions over figures, dates, clock times and
items.

Nothing is executed: an expression is parsed to a tree, and only what is listed here has a value. Pure.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, DecimalException, localcontext
from functools import reduce
from itertools import pairwise
from typing import Any

from assay.language.dates import Day, dates
from assay.language.quantities import Readings, figures, plain_digits
from assay.language.quotation import find_words

LONGEST, DEEPEST, LARGEST_POWER = 1000, 150, 100
EXACT = Context(prec=40, Emax=400, Emin=-400)
CONSTANTS = frozenset(map(Decimal, ("7", "12", "24", "52", "60", "100", "360", "365", "365.25")))  # and powers of ten
TYPED = {"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**", "≥": ">=", "≤": "<=", "$": "", "€": "", "£": ""}
STRING = re.compile(r'"([^"]*)"|“([^“”]*)”|\'([^\']*)\'|‘([^‘’]*)’')
THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![.,]?\d)")  # or decimals
NUMERAL = re.compile(r"(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d{1,3})?")
CLOCK = re.compile(r"(?<![\d:.])(\d{1,2}):([0-5]\d)(?::([0-5]\d))?(?![\d:])(?:\s*([ap])\.?m\b)?", re.I)
DAY_SECONDS = 86_400
UNKNOWN = "its expression has parts that are not arithmetic"


class InvalidExpression(Exception):
    """Why an expression has no value, as a clause for the writer."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value, and the powers of ten that it may be in: 6 for a table in millions; none if no scale is seen."""

    value: Decimal
    scales: frozenset[int] = frozenset()
    shift: int = 0  # of a plain power of ten: 3 for 1000, which may convert thousands to millions


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A time of day, and its date where the words have one."""

    seconds: int
    day: Day | None = None


Result = Quantity | Day | bool
Value = Result | ClockTime


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. Its strings stand in the code as _0_, _1_ and so on."""

    tree: ast.expr
    code: str
    strings: Mapping[str, str]
    operands: tuple[str, ...]  # their words
    thousands: bool  # "1.234" is 1234

    @staticmethod
    def parse(text: str, operands: Sequence[str], *, thousands: bool = False) -> Expression:
        """Read an expression as a model types it. "11,154" and "765,5" are numbers if an operand has them."""
        if len(text) > LONGEST:
            raise InvalidExpression("its expression is too long")
        found = [next(filter(None, match.groups()), "") for match in STRING.finditer(text)]
        strings = {f"_{number}_": words for number, words in enumerate(found)}
        names = iter(strings)
        code = STRING.sub(lambda _: f" {next(names)} ", text).translate(str.maketrans(TYPED))
        own = {number for words in operands for number in re.findall(r"\d[\d.,]*\d", words[:LONGEST]) if "," in number}
        code = re.sub(r"\d[\d.,]*\d", lambda match: plain_digits(match[0])[0] if match[0] in own else match[0], code)
        code = THOUSANDS.sub(lambda match: match[0].replace(".", ""), code) if thousands else code
        code = re.sub(r"(?<=\d)\s*%|(?<![\w.])0+(?=\d)", "", code)
        code = re.sub(r"(?<![<>=!])=(?!=)", "==", " ".join(code.split()))
        try:
            if "#" in code or not code.isascii():
                raise ValueError
            return Expression(ast.parse(code, mode="eval").body, code, strings, tuple(operands), thousands)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InvalidExpression("its expression cannot be read") from None

    def evaluate(self, known: Readings, thresholds: Collection[Decimal] = ()) -> Result:
        """The value, where `known` are the figures that the operands have. `thresholds` are figures that the claim states:
        one side of a comparison may be one of them ("more than 20 %")."""
        try:
            with localcontext(EXACT):
                tree = self.tree
                if isinstance(tree, ast.Compare):
                    sides = [self._side(each, known, thresholds) for each in (tree.left, *tree.comparators)]
                    return all(_holds(op, *pair) for op, pair in zip(tree.ops, pairwise(sides), strict=True))
                if isinstance(found := self._value(tree, known, 0), ClockTime):
                    raise InvalidExpression("a clock time is not a result: take minutes or hours between two")
                return found
        except (DecimalException, ArithmeticError, ValueError):
            raise InvalidExpression("its expression cannot be computed") from None

    def _side(self, node: ast.expr, known: Readings, thresholds: Collection[Decimal]) -> Value:
        """A side of a comparison."""
        text = self.code[node.col_offset : node.end_col_offset]
        if isinstance(node, ast.Constant) and NUMERAL.fullmatch(text) and Decimal(text) in {*thresholds} - known.keys():
            return Quantity(Decimal(text))
        return self._value(node, known, 1)

    def _value(self, node: ast.expr, known: Readings, depth: int) -> Value:
        def inner(each: ast.expr) -> Value:
            return self._value(each, known, depth + 1)

        if depth > DEEPEST:
            raise InvalidExpression("its expression is nested too deeply")
        match node:
            case ast.Constant():
                return self._literal(node, known)
            case ast.Name():
                return _read(self._item(node), known, thousands=self.thousands)
            case ast.UnaryOp(op=ast.USub()):
                return _minus(_number(inner(node.operand)))
            case ast.BinOp(op=ast.Div(), left=left, right=ast.Constant() as right):
                return _by(_number(inner(left)), self._literal(right, known, _summands(left)))
            case ast.BinOp() if type(node.op) in OPERATIONS:
                return OPERATIONS[type(node.op)](_number(inner(node.left)), _number(inner(node.right)))
            case ast.Compare():
                sides = [inner(each) for each in (node.left, *node.comparators)]
                return all(_holds(op, *pair) for op, pair in zip(node.ops, pairwise(sides), strict=True))
            case ast.Call(func=ast.Name(id="count"), args=args, keywords=[]):
                return self._count([self._item(each) for each in args])
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS and args:
                return FUNCTIONS[name]([inner(each) for each in args])
        raise InvalidExpression(UNKNOWN)

    def _literal(self, node: ast.Constant, known: Readings, summands: int = 0) -> Quantity:
        """A number that an operand has, or one that every calculation may use."""
        text = self.code[node.col_offset : node.end_col_offset]
        value = Decimal(text) if NUMERAL.fullmatch(text) else Decimal(-1)
        if value in known:
            return Quantity(value, known[value])
        if value > 0 and value.normalize().as_tuple().digits == (1,):
            return Quantity(value, shift=value.adjusted())
        if value not in CONSTANTS and value not in (len(self.operands), summands):
            raise InvalidExpression(f"“{text[:40]}” is not read from an operand")
        return Quantity(value)

    def _item(self, node: ast.expr) -> str:
        """The words of an operand."""
        words = self.strings.get(node.id) if isinstance(node, ast.Name) else None
        if words is None:
            raise InvalidExpression("an item is not in quotation marks" if isinstance(node, ast.Constant) else UNKNOWN)
        if not any(find_words(words, each) for each in self.operands):
            raise InvalidExpression(f"“{words[:60]}” is not among its operands")
        return words

    def _count(self, items: Sequence[str]) -> Quantity:
        """How many operands are listed; each counts once."""
        for place, item in enumerate(items):
            if any(_is_same(item, other) for other in items[:place]):
                raise InvalidExpression(f"“{item[:60]}” is counted twice")
            if not any(_is_same(item, each) for each in self.operands):
                raise InvalidExpression(f"“{item[:60]}” is not an operand of its own")
        return Quantity(Decimal(len(items)))


def is_count(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "count"


def _is_same(one: str, two: str) -> bool:
    return " ".join(one.casefold().split()) == " ".join(two.casefold().split())


def _read(words: str, known: Mapping[Decimal, frozenset[int]], *, thousands: bool) -> Quantity | Day | ClockTime:
    """The clock time, the date or the number that words are."""
    clocks = list(CLOCK.finditer(words))
    if (days := dates(words)) and (len(days) > 1 or len(days[0]) > 1):
        raise InvalidExpression(f"“{words[:60]}” is not one date")
    day = min(days[0]) if days else None
    if clocks:
        return ClockTime(_seconds(words, clocks), day)
    if day:
        return day
    found = {max(map(abs, each.readings)) if thousands else abs(each.value) for each in figures(words)} & known.keys()
    if len(found) != 1:
        raise InvalidExpression(f"“{words[:60]}” is neither a date nor a number")
    return Quantity(value := found.pop(), known[value])


def _seconds(words: str, clocks: Sequence[re.Match[str]]) -> int:
    """Seconds since midnight."""
    hours, minutes, seconds = (int(part or 0) for part in clocks[0].groups()[:3])
    if half := (clocks[0][4] or "").lower():
        usable, hours = 1 <= hours <= 12, hours % 12 + 12 * (half == "p")
    else:
        usable = hours < 24
    if len(clocks) > 1 or not usable:
        raise InvalidExpression(f"“{words[:60]}” is not one clock time")
    return hours * 3600 + minutes * 60 + seconds


def _summands(node: ast.expr) -> int:
    """How many terms a sum has: a mean divides by that number."""
    count = 1
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node, count = node.left, count + 1
    return count


# --- operations -----------------------------------------------------------------------------------------------------


def _number(value: Value) -> Quantity:
    if not isinstance(value, Quantity):
        raise InvalidExpression("it calculates with something that is not a number")
    return value


def _shared(left: Quantity, right: Quantity) -> frozenset[int]:
    """The scales of a sum or a comparison. Thousands are not added to millions."""
    if left.scales and right.scales and not left.scales & right.scales:
        raise InvalidExpression("its operands are in different scales, such as thousands and millions")
    return left.scales & right.scales or left.scales | right.scales


def _minus(own: Quantity) -> Quantity:
    return Quantity(-own.value, own.scales)


def _add(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.value + right.value, _shared(left, right))


def _times(left: Quantity, right: Quantity) -> Quantity:
    left, right = (right, left) if left.shift else (left, right)
    return Quantity(left.value * right.value, _scales(left, right, 1) | right.scales)


def _by(left: Quantity, right: Quantity) -> Quantity:
    if not right.value:
        raise InvalidExpression("it divides by zero")
    same = left.scales == right.scales
    return Quantity(left.value / right.value, frozenset() if same else _scales(left, right, -1))


def _scales(left: Quantity, right: Quantity, sign: int) -> frozenset[int]:
    """The scales that a product may have: a factor may be a plain number, or convert the scale."""
    both = {one + sign * two for one in left.scales for two in right.scales}
    return left.scales | both | ({one - sign * right.shift for one in left.scales} if abs(right.shift) > 2 else set())


def _power(left: Quantity, right: Quantity) -> Quantity:
    if abs(right.value) > LARGEST_POWER:
        raise InvalidExpression("its power is too large")
    return Quantity(left.value**right.value)


def _sum(values: Sequence[Value]) -> Quantity:
    return reduce(_add, map(_number, values))


def _mean(values: Sequence[Value]) -> Quantity:
    total = _sum(values)
    return Quantity(total.value / len(values), total.scales)


def _change(values: Sequence[Value]) -> Quantity:
    old, new = map(_number, _pair(values))
    part = _by(Quantity(_add(new, _minus(old)).value), Quantity(abs(old.value)))
    return Quantity(part.value * 100)


def _days(values: Sequence[Value]) -> Quantity:
    first, last = _pair(values)
    if not (isinstance(first, tuple) and isinstance(last, tuple)):
        raise InvalidExpression("days are counted between two dates")
    return Quantity(Decimal(_days_between(first, last)))


def _days_between(first: Day, last: Day) -> int:
    """The days from one date to another. Where a year is not given, it is that of the other, or of the turn of the year
    between them."""
    if not all(first[1:] + last[1:]):
        raise InvalidExpression("days are counted between two complete dates")
    if not (first[0] or last[0]):  # a leap year would be told by its year
        found = {_days_between((year, *first[1:]), last) for year in (2001, 2004)}
        if len(found) > 1:
            raise InvalidExpression("its dates have no year")
        return found.pop()
    years = (first[0] or last[0] - (first[1:] > last[1:]), last[0] or first[0] + (first[1:] > last[1:]))
    one, other = (date(year, *day[1:]) for year, day in zip(years, (first, last), strict=True))
    return (other - one).days


def _elapsed(values: Sequence[Value], unit: int) -> Quantity:
    """The time between two clock times, in units of so many seconds. Only dates take it past midnight."""
    first, last = _pair(values)
    if not (isinstance(first, ClockTime) and isinstance(last, ClockTime)):
        raise InvalidExpression("minutes and hours are counted between two clock times")
    if (first.day is None) != (last.day is None):
        raise InvalidExpression("one of its clock times has a date and the other has none")
    seconds = last.seconds - first.seconds
    if first.day and last.day:
        seconds += _days_between(first.day, last.day) * DAY_SECONDS
    if seconds < 0:
        raise InvalidExpression("its second clock time is before the first; past midnight both need their dates")
    return Quantity(Decimal(seconds) / unit)


def _pair(values: Sequence[Value]) -> Sequence[Value]:
    if len(values) != 2:
        raise InvalidExpression("change, days, hours and minutes take two values")
    return values


def _holds(op: ast.cmpop, left: Value, right: Value) -> bool:
    """Whether a comparison holds between two numbers, or two dates."""
    order = ORDERS.get(type(op))
    if order is None:
        raise InvalidExpression(UNKNOWN)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        _shared(left, right)
        gap = left.value - right.value
        return order(Decimal(0) if abs(gap) < abs(left.value).scaleb(-25) else gap, 0)
    if isinstance(left, tuple) and isinstance(right, tuple):
        if not (left[0] and right[0]):
            raise InvalidExpression("it compares dates without a year")
        parts = min(sum(map(bool, left)), sum(map(bool, right)))
        if left != right and left[:parts] == right[:parts]:
            raise InvalidExpression("it compares a date with one that is less exact")
        return order(left, right)
    raise InvalidExpression("it compares things of different kinds")


ORDERS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt, ast.Lt: operator.lt, ast.GtE: operator.ge, ast.LtE: operator.le, ast.Eq: operator.eq,
}  # fmt: skip
OPERATIONS: dict[type[ast.operator], Callable[[Quantity, Quantity], Quantity]] = {
    ast.Add: _add, ast.Sub: lambda left, right: _add(left, _minus(right)), ast.Mult: _times, ast.Div: _by, ast.Pow: _power,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[Sequence[Value]], Value]] = {
    "sum": _sum,
    "mean": _mean,
    "min": lambda values: reduce(lambda best, each: each if _holds(ast.Lt(), each, best) else best, values),
    "max": lambda values: reduce(lambda best, each: each if _holds(ast.Gt(), each, best) else best, values),
    "change": _change,
    "days": _days,
    "hours": lambda values: _elapsed(values, 3600),
    "minutes": lambda values: _elapsed(values, 60),
}
