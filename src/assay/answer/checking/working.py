"""Proof of a calculation, a count or a comparison: code finds the operands in the cited text, evaluates, and compares.

It settles wording, arithmetic, count and order. Whether operands are what the claim calls them is not settled here.
Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, DecimalException, localcontext

from assay.answer.checking.expression import (
    EXACT,
    LONGEST,
    THOUSANDS,
    Expression,
    InvalidExpression,
    Quantity,
    Result,
    is_count,
)
from assay.core.types import Basis, Working
from assay.language.dates import dates
from assay.language.quantities import Number, Readings, figures, numbers, readings, scale_in
from assay.language.quotation import find_words, line_at

MOST_OPERANDS = 200
MOST_RESULTS = 4  # expressions of one claim
LONGEST_CLAIM = 10_000
SIGNS = {"*": "×", "**": "^", "-": "−", "==": "="}


@dataclass(frozen=True, slots=True)
class Proof:
    """Proved, refuted, or neither: then `why` says what could not be checked. `value` is the computed value; `steps` are
    lines that a reader can open."""

    ok: bool
    why: str
    value: str = ""
    steps: tuple[str, ...] = ()
    refuted: bool = False  # an operand is in no cited passage, or the arithmetic gives another result


def basis(working: Working) -> Basis:
    """What the expression makes of the claim: a count, a comparison or a calculation."""
    working = _parts(working)[0]
    try:
        tree = Expression.parse(working.expression, [each.words for each in working.operands]).tree
    except InvalidExpression:
        return Basis.calculation
    if is_count(tree):
        return Basis.counted
    return Basis.comparison if isinstance(tree, ast.Compare) else Basis.calculation


def prove(claim: str, working: Working, texts: Mapping[str, str]) -> Proof:
    """Whether the working gives its result, and the claim states it. `texts` are what is shown of each passage, by key.
    Several expressions, parted by semicolons, have as many results: each is proved by itself."""
    proofs = [_prove(claim, part, texts) for part in _parts(working)]
    wrong = next(iter(sorted((proof for proof in proofs if not proof.ok), key=lambda proof: not proof.refuted)), None)
    steps = dict.fromkeys(step for proof in proofs for step in proof.steps)
    return wrong or Proof(True, "", "; ".join(proof.value for proof in proofs), tuple(steps))


def _parts(working: Working) -> list[Working]:
    expressions, results, units = (
        [part.strip() for part in text[:LONGEST].split(";")]
        for text in (working.expression, working.result, working.unit)
    )
    if not 1 < len(expressions) <= MOST_RESULTS or len(results) != len(expressions):
        return [working]
    units = units if len(units) == len(expressions) else units[:1] * len(expressions)
    return [
        replace(working, expression=expression, result=result, unit=unit)
        for expression, result, unit in zip(expressions, results, units, strict=True)
    ]


def _prove(claim: str, working: Working, texts: Mapping[str, str]) -> Proof:
    """The proof, in whichever reading of figures such as "1.234" it holds; refuted if it holds in none."""
    words = " ".join((working.expression, *(each.words for each in working.operands)))
    proofs = [_prove_as(claim, working, texts, thousands=False)]
    if not proofs[0].ok and THOUSANDS.search(words[:LONGEST]):
        proofs.append(_prove_as(claim, working, texts, thousands=True))
    return min(proofs, key=lambda proof: (not proof.ok, proof.refuted))


def _prove_as(claim: str, working: Working, texts: Mapping[str, str], *, thousands: bool) -> Proof:
    try:
        if len(working.operands) > MOST_OPERANDS or len(working.result) + len(working.unit) > LONGEST:
            raise InvalidExpression("its working is too long")
        expression = Expression.parse(
            working.expression, [each.words for each in working.operands], thousands=thousands
        )
        known, places = _find(working, texts)
        value = expression.evaluate(known, frozenset(figure.value for figure in figures(claim[:LONGEST_CLAIM])))
        with localcontext(EXACT):
            shown = _shown(value, working)
            wrong, open_ = _compare(value, shown, claim[:LONGEST_CLAIM], working)
    except MissingOperand as missing:
        return Proof(False, str(missing), refuted=True)
    except InvalidExpression as unreadable:
        return Proof(False, str(unreadable))
    except DecimalException:
        return Proof(False, "its result is out of range")
    steps = (f"{_typeset(working.expression)} = {shown}", *places)
    return Proof(not (wrong or open_), wrong or open_, shown, steps, refuted=bool(wrong))


class MissingOperand(InvalidExpression):
    """An operand is not in what it cites."""


def _find(working: Working, texts: Mapping[str, str]) -> tuple[Readings, list[str]]:
    """The figures that the operands have, and where each operand stands."""
    known: Readings = {}
    steps: list[str] = []
    for operand in working.operands:
        text, words = texts.get(operand.cite, ""), " ".join(operand.words[: LONGEST + 1].split())
        places = find_words(words, text) if len(words) <= LONGEST else []
        if not places:
            raise MissingOperand(f"“{words[:60]}” is not in what it cites")
        for value, scales in readings(text, places).items():
            known[value] = known.get(value, frozenset()) | scales
        steps.append(f"{words}: “{line_at(text, places[0])[:200]}” [{operand.cite}]")
    return known, steps


def _compare(value: Result, shown: str, claim: str, working: Working) -> tuple[str, str]:
    """Why the value is not the result; and else why it is not seen to be what the claim states."""
    stated_result = " ".join(working.result.split())[:40]
    if isinstance(value, bool):
        if not value:
            return f"{_typeset(working.expression)} is not so", ""
        usual = stated_result.lower().rstrip(".") in {"true", "yes", ""}
        return "", "" if usual else f"its comparison is true, not “{stated_result}”"
    if isinstance(value, tuple):
        right, stated = (any(value in days for days in dates(text)) for text in (stated_result, claim))
    else:
        unit = f"{working.result} {working.unit}"
        percent = re.search(r"%|\b(?:per|pro|por|pour) ?[cz]i?ent|\bpct\b", unit, re.I) is not None
        found = figures(working.result)
        if len(found) != 1 or not any(map(str.isdigit, working.result)):
            return "", f"its result “{stated_result}” is not one number in figures"
        result = replace(found[0], scale=scale_in(unit))
        right = any(_rounds_to(value, each, percent=percent) for each in result.meanings)
        stated = any(
            _states(each, value, result, claim, percent=percent)
            for figure in (*figures(claim), *numbers(claim))
            for each in figure.meanings
        )
    if not right:
        return f"it computes to {shown}, not {stated_result}", ""
    return "", "" if stated else f"the claim does not state its result, {stated_result}, as a figure"


def _rounds_to(value: Quantity, figure: Number, *, percent: bool) -> bool:
    """Whether a figure is the value, rounded to the decimals that it shows, in any scale that the value may have."""
    own = figure.scale or 0
    may = {value.value.scaleb(scale - own) for scale in value.scales or {own, 0}}
    may |= {value.value} if figure.scale is None else set()
    may |= {each * 100 for each in may} if percent else set()
    step = Decimal(1).scaleb(-figure.decimals)
    rounded = {each.quantize(step, mode) for each in may for mode in (ROUND_HALF_UP, ROUND_HALF_EVEN)}
    return figure.value in rounded | {abs(each) for each in rounded}


def _states(figure: Number, value: Quantity, result: Number, claim: str, *, percent: bool) -> bool:
    """Whether a figure of the claim is the result, or the value in two digits or more."""
    scale = figure.scale
    if scale is None and result.scale is not None:
        scale = result.scale if scale_in(claim) == result.scale else 0
    if abs(figure.value.scaleb(scale or 0)).normalize() in {abs(each) for each in result.values}:
        return True
    if not value.scales and result.scale is not None:
        return False
    digits = figure.value.normalize().as_tuple().digits
    return len(digits) > 1 and _rounds_to(value, replace(figure, scale=scale), percent=percent)


def _shown(value: Result, working: Working) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "-".join(f"{part:02}" for part in value if part)
    decimals = max([2, *(each.decimals + 1 for each in figures(working.result))])
    text = f"{value.value.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP):f}"
    return text.rstrip("0").rstrip(".")


def _typeset(expression: str) -> str:
    parts = re.split(r'("[^"]*"|“[^“”]*+”)', expression)
    spaced = r"\s*(\*\*|[*/×÷+−^]|(?<=[\w)%\s])-|[<>=]=?)\s*"
    parts[::2] = [re.sub(spaced, lambda match: f" {SIGNS.get(match[1], match[1])} ", part) for part in parts[::2]]
    return " ".join("".join(parts).split())
