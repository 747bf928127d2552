"""`extract_entities`: names, dates or figures in the results so far, with the passages they occur in. Never evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from assay.agent.hops.scoring import bare_title, name_key, names_in
from assay.agent.tool import Result, tool
from assay.agent.tool_context import ToolContext
from assay.agent.toolbox.documents import shown
from assay.agent.toolbox.results import Piece, documents_of, quoted, results
from assay.agent.toolbox.search import some
from assay.core.types import Hit
from assay.language.dates import MONTHS
from assay.language.terms import fold_case
from assay.prompts.fence import fence

MOST = 40
KEYS = 4  # passage keys listed per entity

_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\.?"
DATE = re.compile(
    rf"\b\d{{4}}-\d\d(?:-\d\d)?\b|\b(?:\d{{1,2}} )?{_MONTH} (?:\d{{1,2}}, )?\d{{4}}\b|\b\d{{1,2}} {_MONTH}(?!\w)", re.I
)
NUMBER = re.compile(r"(?<![\w.,-])[-+]?[$€£]?\d[\d,.]*\d%?|(?<![\w.,-])[-+]?[$€£]?\d%?")
UNIT = re.compile(r"\s?(?:%|°C|[A-Za-zµ]{1,12}[23]?(?:/[A-Za-z]+)?)(?!\w)")


class Entities(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    entities: list[str] = Field(max_length=100)


@tool
async def extract_entities(context: ToolContext, type: str) -> Result:
    """List the things of one kind that the results so far name, and where. Not evidence.

    type: what kind: person, company, place, date, number, or any other
    """
    pieces = results(context)

    def build_prompt(room: int) -> Mapping[str, str]:
        fenced = fence(context.mark, "kind", shown(type, 300))
        return {"type": fenced, "passages": quoted(context, pieces, [piece.key for piece in pieces], room)}

    named: Sequence[str] | None = None
    if context.consult is not None:
        note = await context.consult("entities", Entities, build_prompt, documents_of(pieces))
        named = note.entities if note is not None else None
    by_rule = named is None
    places = _places(_by_rule(type)(pieces) if named is None else named, pieces)
    what = f"{'names' if by_rule and _by_rule(type) is _names else shown(type, 60)} in {some(len(pieces), 'passage')}"
    if not places:
        return Result((), f"no {what}", documents_of(pieces))
    lines = [
        f"- {name} [{', '.join(keys[:KEYS])}{', …' if len(keys) > KEYS else ''}]"
        for name, keys in list(places.items())[:MOST]
    ]
    more = f"; {MOST} listed, {len(places) - MOST} more" if len(places) > MOST else ""
    return Result((), "\n".join((f"{len(places)} {what}{more}:", *lines)), documents_of(pieces))


def _places(found: Iterable[str], pieces: Sequence[Piece]) -> dict[str, list[str]]:
    """Map each entity to the keys of the passages that contain it. Entities found in no passage are invented and
    dropped."""
    words = [(piece.key, f" {_flat(f'{piece.title} {piece.passage.text}')} ") for piece in pieces]
    places: dict[str, list[str]] = {}
    known: set[str] = set()
    for name in found:
        wanted = _flat(name)
        keys = [key for key, text in words if wanted and f" {wanted} " in text]
        if keys and wanted not in known:
            known.add(wanted)
            places[shown(name)] = keys
    return places


def _flat(words: str) -> str:
    return " ".join(re.findall(r"[^\W_]+|[%$€£]", fold_case(words)))


def _by_rule(type: str) -> Callable[[Sequence[Piece]], list[str]]:
    kind = fold_case(type)
    if re.search(r"\b(?:dates?|days?|months?|years?|times?)\b", kind):
        return _dates
    return _figures if re.search(r"\b(?:numbers?|figures?|amounts?|values?|quantit|sums?|prices?)", kind) else _names


def _names(pieces: Sequence[Piece]) -> list[str]:
    """The names that the rules would follow, excluding words capitalised only because they start a sentence."""
    found: list[str] = []
    for piece in pieces:
        hit = Hit(piece.passage, np.empty(0), {}, title=piece.title)
        title = name_key(bare_title(piece.title))
        found += [name for each, (name, _) in names_in(hit, pieces=False).items() if each != title]
    return found


def _dates(pieces: Sequence[Piece]) -> list[str]:
    return [match[0].rstrip(".") for piece in pieces for match in DATE.finditer(piece.passage.text)]


def _figures(pieces: Sequence[Piece]) -> list[str]:
    """Numbers with the word or sign that follows them, such as 52 mg/l. Numbers that are part of a date are excluded."""
    found: list[str] = []
    for piece in pieces:
        text = DATE.sub(lambda date: " " * len(date[0]), piece.passage.text)
        for match in NUMBER.finditer(text):
            unit = UNIT.match(text, match.end())
            found.append(match[0] + (unit[0] if unit else ""))
    return found
