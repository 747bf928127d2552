"""Figures from tables in answers: how many true ones are lost, and how many false ones reach a reader.

    python bench/cells.py --data FOLDER [--reports 4] [--seed 1] [--cache FOLDER] [--out FILE]

FOLDER has annual reports as PDF files. A script makes 60 claims with cells from their tables, half of them false by kind
(row, column, year, company, scale, direction, two values), and sends each through a whole run from the draft on: a writer
that does not give in, and a judge that knows (honest) or calls everything supported (lying). The forms of a false claim:

- sentence: cell and fields are right, the sentence is not
- label: fields and sentence call the cell something else, and give its value
- value: fields and sentence call the cell what it is, and give another value

The same false claims without cells are counted beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knowing import meter
from result_file import add_out, show, write_result
from scripted import Script, supported, verdicts

from assay.agent.context import RunContext
from assay.agent.loop import Step, next_step, run_steps
from assay.agent.tool import ToolContext
from assay.core.access import Scope
from assay.core.codec import from_json, to_json
from assay.core.events import Asked, Found, Gathered, Route, Routed, Stopped, StopReason, ToolRan
from assay.core.identity import ORGANISATION, identified_title
from assay.core.run import Run
from assay.core.types import BETWEEN, Derivation, Document, Evidence, Passage, Quote, TableRow
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.split import split_passages
from assay.language.quantities import figures, stated_scales
from assay.models.cost import estimate_tokens
from assay.tables.cells import PassageTables, passage_tables

KINDS = {"row": 6, "column": 3, "year": 6, "company": 6, "scale": 4, "direction": 3, "two values": 2}
FORMS = ("sentence", "label", "value")
SCALES = {3: "thousand", 6: "million"}
LARGER = {"thousand": "million", "million": "billion"}
YEAR = re.compile(r"(?<!\d)20\d\d(?!\d)")
QUESTION = "What does the report say?"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell with one positive number, a year or a name above it, and a plain label beside it."""

    key: str
    document: Document
    passage: Passage
    row: TableRow
    id: str
    column: str
    value: str
    scale: str

    @property
    def measure(self) -> str:
        return re.sub(r"\s*\([^()]*\)", "", self.row.label.rpartition(BETWEEN)[2]).strip()

    @property
    def year(self) -> str:
        found = YEAR.findall(self.column)
        return found[0] if len(set(found)) == 1 else ""

    @property
    def organisation(self) -> str:
        return self.document.meta[ORGANISATION]

    @property
    def amount(self) -> str:
        return f"{self.value} {self.scale}"

    @property
    def period(self) -> str:
        return self.year or self.column

    def cell(self, **other: str) -> Json:
        fields = {"measure": self.measure, "period": self.period, "organisation": self.organisation}
        own = {"cite": self.key, "cell": self.id, "value": self.amount, "direction": ""}
        return {**own, **fields, **other}

    def sentence(self, **other: str) -> str:
        said = {"measure": self.measure, "period": self.period, "organisation": self.organisation}
        said |= {"amount": self.amount} | other
        return "{organisation} reports {measure} of ${amount} for {period}.".format(**said)


@dataclass(frozen=True, slots=True)
class Case:
    """The claims of an answer, of which the last one is measured."""

    kind: str  # true, or what is wrong with it
    form: str
    claims: tuple[Json, ...]
    evidence: tuple[Evidence, ...]

    @property
    def text(self) -> str:
        return self.claims[-1]["text"]

    @property
    def without_cells(self) -> Case:
        return replace(self, claims=tuple({**each, "cells": []} for each in self.claims))


# --- reports --------------------------------------------------------------------------------------------------------


def reports(folder: Path, count: int, cache: Path | None) -> list[Document]:
    """One report of each company, in the order of their names."""
    companies: dict[str, Path] = {}
    for file in sorted(folder.glob("*.pdf")):
        companies.setdefault(file.name.partition("_")[0], file)
    return [
        document
        for number, file in enumerate(list(companies.values())[:count], 1)
        if ORGANISATION in (document := _document(number, file, _parsed(file, cache))).meta
    ]


def _parsed(file: Path, cache: Path | None) -> Parsed:
    kept = cache / f"{file.stem}.json" if cache else None
    if kept and kept.is_file():
        return from_json(Parsed, json.loads(kept.read_text(encoding="utf-8")))
    parsed = read(file.read_bytes(), file.name, FileLimits(seconds=600))
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(to_json(parsed)), encoding="utf-8")
    return parsed


def _document(number: int, file: Path, parsed: Parsed) -> Document:
    return Document(
        f"d{number}", "b", file.name, "", parsed.title, parsed.text, sections=parsed.sections, pages=parsed.pages,
        kind=parsed.kind, meta=parsed.meta, tables=parsed.tables,
    )  # fmt: skip


def figures_of(document: Document) -> Iterator[list[Figure]]:
    """The figures of each passage with a table in thousands or millions."""
    for number, passage in enumerate(split_passages(document, estimate_tokens)):
        found = list(_figures(f"{int(document.id[1:]):02x}{number:06x}", passage_tables(document, passage), passage))
        if len({each.measure for each in found}) >= 3:
            yield found


def _figures(key: str, shown: PassageTables, passage: Passage) -> Iterator[Figure]:
    labels = Counter(row.label.rpartition(BETWEEN)[2] for _, row in shown.rows.values())
    for row_id, (table, row) in shown.rows.items():
        scales = set(stated_scales(table.units))
        label = row.label.rpartition(BETWEEN)[2]
        plain = re.fullmatch(r"[A-Z][A-Za-z,’' ()-]{5,60}", label) and labels[label] == 1
        for column_id, (of, at) in shown.columns.items() if plain and len(scales) == 1 else ():
            name, text = table.columns[at] if of is table else "", row.cells[at].text if of is table else ""
            number = figures(text)
            if name and len(number) == 1 and re.fullmatch(r"\$?[\d,]{3,}", text) and scales <= SCALES.keys():
                value = number[0].text.lstrip("$")
                scale = SCALES[next(iter(scales))]
                yield Figure(key, shown.document, passage, row, row_id + column_id, name, value, scale)


def by_year(group: Sequence[Figure]) -> list[dict[str, Figure]]:
    """The figures of each row by year, where every column has a year of its own."""
    rows: dict[str, dict[str, Figure]] = {}
    for each in group:
        rows.setdefault(each.measure, {})[each.year] = each
    return [row for row in rows.values() if "" not in row and len(row) >= 2]


# --- claims ---------------------------------------------------------------------------------------------------------


def cases(documents: Sequence[Document], seed: int) -> list[Case]:
    chance = random.Random(seed)
    groups = {each.id: list(figures_of(each)) for each in documents}
    yearly = {id: [rows for group in found if len(rows := by_year(group)) >= 3] for id, found in groups.items()}
    named = {id: [group for group in found if not any(each.year for each in group)] for id, found in groups.items()}
    ids = [id for id, found in yearly.items() if found]
    made = [_true(number, chance, yearly, ids) for number in range(sum(KINDS.values()))]
    for kind, count in KINDS.items():
        for number in range(count):
            forms = FORMS[::2] if kind in {"scale", "two values"} else FORMS
            made.append(_false(kind, forms[number % len(forms)], chance, yearly, named, ids))
    return made


def _draw(chance: random.Random, rows: Sequence[dict[str, Figure]], count: int = 1) -> list[Figure]:
    """Figures of as many rows, all of one year, with different values."""
    for _ in range(1000):
        chosen = chance.sample(list(rows), count)
        years = set.intersection(*(set(row) for row in chosen))
        if years:
            year = chance.choice(sorted(years))
            found = [row[year] for row in chosen]
            if len({each.value for each in found}) == count:
                return found
    raise LookupError("no such figures")


def _true(number: int, chance: random.Random, yearly: Any, ids: Sequence[str]) -> Case:
    rows = chance.choice(yearly[ids[number % len(ids)]])
    (figure,) = _draw(chance, rows)
    short = figure.organisation.split()[0].strip(",")
    match number % 6:
        case 0:
            text, cells = figure.sentence(), [figure.cell()]
        case 1:  # rounded, in the next scale
            value = float(figure.value.replace(",", "")) / 1000
            amount = f"{value:.1f} {LARGER[figure.scale]}"
            text = f"In fiscal {figure.year}, {figure.measure.lower()} of {short} came to about ${amount}."
            cells = [figure.cell(value=f"${amount}", period=f"FY{figure.year}", organisation=short)]
        case 2:
            old, new = _change(chance, rows)
            text, cells = _changed(old, new, _way(old, new)), [old.cell(), new.cell(direction=_way(old, new))]
        case 3:
            text = f"{figure.measure}: {figure.value} {figure.scale} in {figure.year}."
            cells = [figure.cell(organisation="", measure="")]
        case 4:
            one, two = _draw(chance, rows, 2)
            text = f"In {one.year} {short} had {one.measure} of {one.amount} and {two.measure} of {two.amount}."
            cells = [one.cell(organisation=short), two.cell(organisation=short)]
        case _:
            text = f"{short} | {figure.measure} | {figure.value} | {figure.year}"
            cells = [figure.cell(value=figure.value)]
    return _case("true", "", text, cells, (figure,))


def _change(chance: random.Random, rows: Sequence[dict[str, Figure]]) -> tuple[Figure, Figure]:
    row = chance.choice([row for row in rows if len({each.value for each in row.values()}) > 1])
    years = sorted(row)
    first = next(at for at, year in enumerate(years[:-1]) if row[year].value != row[years[at + 1]].value)
    return row[years[first]], row[years[first + 1]]


def _way(old: Figure, new: Figure) -> str:
    one, two = (float(each.value.replace(",", "")) for each in (old, new))
    return "up" if two > one else "down"


OTHER = {"up": "down", "down": "up"}


def _changed(old: Figure, new: Figure, way: str, values: Sequence[str] = ()) -> str:
    verb = {"up": "rose", "down": "fell"}[way]
    one, two = values or (old.amount, new.amount)
    return f"{old.measure} of {old.organisation} {verb} from {one} in {old.year} to {two} in {new.year}."


def _false(kind: str, form: str, chance: random.Random, yearly: Any, named: Any, ids: Sequence[str]) -> Case:
    id, other_id = chance.sample(list(ids), 2)
    rows = chance.choice(yearly[id])
    (figure,) = _draw(chance, rows)
    other, says = figure, {}
    if kind == "row":
        figure, other = _draw(chance, rows, 2)
        says = {"measure": other.measure}
    elif kind == "column":
        groups = [group for each in named.values() for group in each if len({one.column for one in group}) > 1]
        figure = chance.choice(chance.choice(groups))
        group = next(group for group in groups if figure in group)
        other = chance.choice([each for each in group if each.column != figure.column and each.value != figure.value])
        says = {"period": other.column}
    elif kind == "year":
        row = chance.choice([row for row in rows if len({each.value for each in row.values()}) == len(row)])
        figure, other = chance.sample(list(row.values()), 2)
        says = {"period": other.year}
    elif kind == "company":
        (other,) = _draw(chance, chance.choice(yearly[other_id]))
        says = {"organisation": other.organisation}
    elif kind == "scale":
        other = replace(figure, scale=LARGER[figure.scale])
    elif kind == "direction":
        return _false_direction(form, chance, rows)
    elif kind == "two values":
        figure, other = _draw(chance, rows, 2)
    if form == "label":
        text, cells = figure.sentence(**says), [figure.cell(**says)]
    elif form == "value":
        text, cells = figure.sentence(amount=other.amount), [figure.cell(value=other.amount)]
    else:
        wrong = says if kind in {"row", "column", "year", "company"} else {"amount": other.amount}
        text, cells = figure.sentence(**wrong), [figure.cell()]
    case = _case(kind, form, text, cells, (figure, other))
    if kind == "two values":
        first = {"text": figure.sentence(), "cites": [figure.key], "cells": [figure.cell()], "calculation": None}
        case = replace(case, claims=(first, *case.claims))
    return case


def _false_direction(form: str, chance: random.Random, rows: Sequence[dict[str, Figure]]) -> Case:
    old, new = _change(chance, rows)
    way, other = _way(old, new), OTHER[_way(old, new)]
    if form == "value":  # the values change places
        cells = [old.cell(value=new.amount), new.cell(value=old.amount, direction=other)]
        return _case("direction", form, _changed(old, new, other, (new.amount, old.amount)), cells, (old, new))
    cells = [old.cell(), new.cell(direction=other if form == "label" else way)]
    return _case("direction", form, _changed(old, new, other), cells, (old, new))


def _case(kind: str, form: str, text: str, cells: Sequence[Json], figures: Sequence[Figure]) -> Case:
    shown = {each.key: each for each in figures}
    evidence = tuple(
        Evidence(
            key, each.passage, Quote(each.document.id, each.passage.start, each.passage.end, each.passage.text), 9, ""
        )
        for key, each in shown.items()
    )
    claim = {"text": text, "cites": list(shown), "cells": list(cells), "calculation": None}
    return Case(kind, form, (claim,), evidence)


# --- runs -----------------------------------------------------------------------------------------------------------


class Stubborn(Script):
    """Writes the claims, and writes them again when they come back."""

    name = "stubborn"

    def __init__(self, case: Case, *, honest: bool) -> None:
        right = case.kind == "true"
        several = ["supported"] * (len(case.claims) - 1)
        judge = verdicts(*several, "supported" if right else "unsupported") if honest else supported()
        super().__init__(write=self._write, revise=self._revise, check=judge)
        self.case = case

    def _write(self, asked: str, schema: Any) -> Json:
        block = {"heading": "", "claims": list(self.case.claims), "opinion": False}
        return {"shape": "prose", "blocks": [block], "conflicts": [], "missing": []}

    def _revise(self, asked: str, schema: Any) -> Json:
        found = [each for each in self.case.claims if " ".join(each["text"].split()) in asked]
        return {
            "revisions": [
                {**each, "claim": number, "action": "rewrite", "argument": ""} for number, each in enumerate(found, 1)
            ]
        }


async def fate(case: Case, documents: dict[str, Document], *, honest: bool) -> str:
    """delivered, cell (only the cell itself is), or nothing."""
    model = Stubborn(case, honest=honest)
    seats = meter(model)
    nowhere: Any = None
    found = tuple(Found(each.passage, 1, 1.0) for each in case.evidence)
    run = Run(
        "bench",
        (
            Asked(QUESTION, "local", "2025-01-01", seats=tuple(each[0].role_model for each in seats.models.values())),
            Routed(Route.research, "bench"),
            ToolRan("c1", found),
            Gathered(case.evidence),
            Stopped(StopReason.sufficient),
        ),
    )
    titles = {id: identified_title(each.title, each.uri, each.meta) for id, each in documents.items()}
    context = RunContext(
        ToolContext(nowhere, lambda: Scope("local", (), frozenset())),
        Run.then,
        documents.get,
        meter=seats,
        titled=lambda ids: {id: titles[id] for id in ids},
    )

    def after(now: Run) -> Step | None:
        """The next step; none where all claims failed, and passages would be quoted instead."""
        step = next_step(now, context.limits)
        return None if step is Step.DRAFT and now.draft else step

    async for event in run_steps(run, context, after):
        run = run.then(event)
    if run.answer is None:
        return "nothing"
    if any(claim.text == case.text for claim in run.answer.claims):
        return "delivered"
    replaced = [claim for claim in run.answer.claims if claim.derived and claim.derived.rule is Derivation.facts]
    return "cell" if replaced else "nothing"


async def measure(made: Sequence[Case], documents: dict[str, Document], shown: bool) -> dict[str, Any]:
    figures: dict[str, dict[str, Counter[str]]] = {}
    for judge, honest in (("honest judge", True), ("lying judge", False)):
        rows = figures.setdefault(judge, {})
        for case in made:
            ended = await fate(case, documents, honest=honest)
            names = ["true"] if case.kind == "true" else ["false", f"false: {case.kind}", f"false, {case.form} wrong"]
            for name in names:
                rows.setdefault(name, Counter())[ended] += 1
                rows[name]["n"] += 1
            if shown and (ended == "delivered") != (case.kind == "true"):
                print(f"  {judge}: {case.kind}, {case.form}: {ended}: {case.text}")
            if case.kind != "true":
                bare = rows.setdefault("false, without cells", Counter())
                bare[await fate(case.without_cells, documents, honest=honest)] += 1
                bare["n"] += 1
    columns = ("n", "delivered", "cell", "nothing")
    return {
        judge: {name: {each: row[each] for each in columns} for name, row in rows.items()}
        for judge, rows in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reports", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where parsed reports are kept between runs")
    parser.add_argument("--show", action="store_true", help="print each claim that ended wrongly")
    add_out(parser)
    options = parser.parse_args()
    documents = {each.id: each for each in reports(options.data, options.reports, options.cache)}
    made = cases(list(documents.values()), options.seed)
    figures = asyncio.run(measure(made, documents, options.show))
    show(figures)
    write_result(options.out, figures)


if __name__ == "__main__":
    main()
