"""A glossary of measures: what a figure is computed from, and what tables call its rows. Data in `data/glossary.toml`.

Search looks for the rows of a measure that a question names; planner, writer and judge are told its expression.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from assay.core.errors import UserError
from assay.language.terms import content_terms

Terms = frozenset[str]  # stems of the content words of a name
LONGEST_NAME = 8  # content words
_BETWEEN_OPERANDS = re.compile(r"\s[-+*/]\s|[(),]")


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure that is computed. `operands` are rows, those of measures inside it included."""

    name: str
    expression: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Glossary:
    """names: every name with its other names; measures: by name; called: which name is meant by these terms"""

    names: Mapping[str, tuple[str, ...]]
    measures: Mapping[str, Measure]
    called: Mapping[Terms, str]

    def spellings(self, name: str) -> list[Terms]:
        """The terms of a name and of its other names."""
        return list(dict.fromkeys(map(terms, (name, *self.names.get(name, ())))))


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A row of a table that a question asks for, as tables may call it. `of` is the measure that needs it, if one does."""

    name: str
    spellings: tuple[Terms, ...]
    of: str = ""


def terms(name: str) -> Terms:
    return frozenset(content_terms(name.replace("&", "")))


def name_grams(question: str) -> dict[Terms, None]:
    """What may be a name in a question: the terms of up to eight words in a row, longer ones first."""
    words = content_terms(question.replace("&", ""))
    spans = (
        (first, first + size)
        for size in range(min(LONGEST_NAME, len(words)), 0, -1)
        for first in range(len(words) - size + 1)
    )
    return dict.fromkeys(frozenset(words[first:last]) for first, last in spans)


def asked_measures(question: str, glossary: Glossary) -> list[Measure]:
    """The measures that a question names, none whose name is part of a longer one."""
    found: dict[Terms, Measure] = {}
    for gram in name_grams(question):
        name = glossary.called.get(gram, "")
        if name in glossary.measures and not any(gram < longer for longer in found):
            found[gram] = glossary.measures[name]
    return list(dict.fromkeys(found.values()))


def describe_measures(text: str, glossary: Glossary) -> str:
    """The usual definitions of the measures that a text names, in one line."""
    return "; ".join(f"{each.name} = {each.expression}" for each in asked_measures(text, glossary))


def asked_rows(question: str, glossary: Glossary) -> list[AskedRow]:
    """The rows that a question names or that the measures in it are computed from."""
    found: dict[str, AskedRow] = {}
    for measure in asked_measures(question, glossary):
        for name in (measure.name, *measure.operands):  # a table may have the measure itself as a row
            found.setdefault(name, AskedRow(name, tuple(glossary.spellings(name)), measure.name))
    for gram in name_grams(question):
        if (name := glossary.called.get(gram, "")) and name not in glossary.measures:
            found.setdefault(name, AskedRow(name, tuple(glossary.spellings(name))))
    return list(found.values())


@cache
def load_glossary(own: Path | None = None) -> Glossary:
    """The bundled glossary, with a team's own file added to it."""
    bundled = (resources.files("assay.language") / "data" / "glossary.toml").read_text(encoding="utf-8")
    parts = [tomllib.loads(bundled), *([_read(own)] if own else [])]
    names: dict[str, tuple[str, ...]] = {}
    expressions: dict[str, str] = {}
    for part in parts:
        for name, others in part.get("names", {}).items():
            names[name] = (*names.get(name, ()), *others)
        expressions |= part.get("measures", {})
    called = {terms(each): name for name, others in names.items() for each in others}
    called |= {terms(name): name for name in (*names, *expressions)}
    measures = {name: Measure(name, text, tuple(_operands(name, expressions))) for name, text in expressions.items()}
    return Glossary(names, measures, {key: name for key, name in called.items() if key})


def _operands(name: str, expressions: Mapping[str, str], inside: tuple[str, ...] = ()) -> Iterator[str]:
    parts = (part.strip() for part in _BETWEEN_OPERANDS.split(expressions[name]))
    for part in dict.fromkeys(part for part in parts if part and not part.replace(".", "").isdigit()):
        if part in expressions and part not in inside:
            yield from _operands(part, expressions, (*inside, name))
        else:
            yield part


def _read(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"The glossary {str(path)!r} cannot be read: {error}.") from None
    names, measures = found.get("names", {}), found.get("measures", {})
    listed = isinstance(names, dict) and all(
        isinstance(others, list) and all(isinstance(each, str) for each in others) for others in names.values()
    )
    if not listed or not isinstance(measures, dict) or not all(isinstance(each, str) for each in measures.values()):
        raise UserError(
            f"The glossary {str(path)!r} needs a table [measures] of expressions and a table [names] of lists of names."
        )
    return found
