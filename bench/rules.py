"""Every group of word rules on trial: what switching it off costs, on a set made for its purpose.

    .venv/bin/python bench/rules.py --data FOLDER [--only names dates …] [--questions 80] [--cache FOLDER] [--out FILE]

FOLDER holds public sets (`retrieval`, `multihop`, `financebench`, `parsing`, `grounding`, `injection`, `synthesis`, `claims`,
`qa`); a trial whose set is missing is named. A switch replaces functions of the product with ones that know nothing, in this
process only. `change` is the mean difference without the group, for the same questions, with its 95 % interval: a group whose
interval holds zero has shown no use. Results of an earlier run in the file of --out are kept for groups that are not run again.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib
import json
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from result_file import add_out, show, write_result
from rule_trials import TRIALS, Given, Row

import assay
from assay.evaluate.metrics import mean, mean_interval

SOURCE = Path(assay.__file__).parent
PATTERN = re.compile(r"\b(?:re|regex)\.compile\(|\b_sign\($")


def nothing(value: Any) -> Callable[..., Any]:
    """A function that returns this, whatever it is given."""
    return lambda *_, **__: value


def same(first: Any, *_: Any, **__: Any) -> Any:
    return first


def split_at_stops(text: str) -> list[tuple[int, int]]:
    """Sentences without any rule: a stop and a space, or a line end."""
    ends = [match.end() for match in re.finditer(r"[.!?。！？](?=\s|$)|\n", text)]
    spans = zip([0, *ends], [*ends, len(text)], strict=True)
    bare = ((start + len(text[start:end]) - len(text[start:end].lstrip()), end) for start, end in spans)
    return [(start, start + len(text[start:end].rstrip())) for start, end in bare if text[start:end].strip()]


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are switched together. `files` are what they consist of, as FILE or FILE:FUNCTION; `off` are functions, with
    what stands for them while the group is off; `trials` measure it. `unmeasured` says what would, where nothing does."""

    name: str
    files: tuple[str, ...]
    off: Mapping[str, Any] = field(default_factory=dict)
    trials: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # trial → its figures
    unmeasured: str = ""


def groups() -> list[Group]:
    """All groups. A new rule gets a row here, or belongs to one."""
    from assay.core.events import StopReason
    from assay.index.hop_ranking import NextSearches, first_search
    from assay.index.named_documents import NamedWeights

    def first_search_only(question: str, ran: Sequence[Any], *_: Any) -> NextSearches:
        stop = NextSearches(stop=StopReason.nothing_new, why="off")
        return stop if ran else NextSearches(tuple(first_search(question)))

    titles = {
        "assay.ingest.metadata.fill.find_title_lines": nothing([]),
        "assay.ingest.metadata.fill.find_title_line": nothing(""),
    }
    dates = {
        "assay.ingest.metadata.dates.find_document_date": nothing(None),
        "assay.ingest.metadata.dates.find_date_in_file_name": nothing(None),
    }
    authors = {
        "assay.ingest.metadata.fill.find_authors_below": nothing(((), 0)),
        "assay.ingest.metadata.fill.find_byline": nothing(()),
    }
    kept = ("true_kept", "false_passed", "partial_passed")
    return [
        Group(
            "names",
            ("language/names.py:find_names",),
            {"assay.language.names.find_names": nothing([])},
            {"multi-hop": ("R@5",), "conflicts": ("F1",), "claims": kept, "extracts": ()},
        ),
        Group(
            "hops",
            ("index/hop_ranking.py",),
            {"assay.index.hop_ranking.next_searches": first_search_only},
            {"multi-hop": ("R@5",)},
        ),
        Group(
            "dates in text",
            ("language/dates.py",),
            {"assay.language.dates.dates": nothing([]), "assay.language.dates.days_of": nothing(frozenset())},
            {"claims": kept, "conflicts": ("F1",), "extracts": ()},
        ),
        Group(
            "quantities",
            ("language/quantities.py",),
            {"assay.language.quantities.numbers": nothing([]), "assay.language.quantities.figures": nothing([])},
            {"claims": kept, "conflicts": ("F1",), "extracts": ()},
        ),
        Group("titles", ("ingest/metadata/fill.py",), titles, {"metadata": ("title",)}),
        Group("dates of documents", ("ingest/metadata/dates.py",), dates, {"metadata": ("date",)}),
        Group("authors", ("ingest/metadata/file_fields.py",), authors, {"metadata": ("authors",)}),
        Group(
            "fields of files",
            ("ingest/metadata/file_fields.py",),
            {
                "assay.ingest.metadata.file_fields.plausible_title": same,
                "assay.ingest.metadata.file_fields.parse_authors": lambda *given: tuple(filter(None, given)),
            },
            {"metadata": ("title", "authors")},
        ),
        Group(
            "identity",
            ("ingest/metadata/identity.py",),
            {
                "assay.ingest.metadata.identity.find_identity": nothing({}),
                "assay.ingest.metadata.identity.own_title": same,
            },
            {"metadata": ("title", "organisation")},
        ),
        Group(
            "named documents",
            ("index/named_documents.py",),
            {"assay.index.named_documents.weigh_named": nothing(NamedWeights())},
            {"pages": (), "search": ()},
        ),
        Group(
            "table kinds",
            ("tables/labels.py", "tables/labels.py"),
            {"assay.tables.labels.asked_tables": nothing([])},
            {"pages": ()},
        ),
        Group(
            "glossary",
            ("language/glossary.py", "language/data/glossary.toml"),
            {"assay.language.glossary.asked_rows": nothing([]), "assay.language.glossary.asked_measures": nothing([])},
            {"pages": ()},
        ),
        Group(
            "sentences",
            (
                "language/sentences.py:split_sentences",
                "language/sentences.py:_blocks",
                "language/sentences.py:_ends_sentence",
            ),
            {"assay.language.sentences.split_sentences": split_at_stops},
            {"sentences": ()},
        ),
        Group(
            "language of a text",
            ("language/identify.py",),
            {"assay.language.identify.identify_language": nothing(None)},
            {"languages": ()},
        ),
        Group(
            "instructions to a model",
            ("language/injection.py",),
            {"assay.language.injection._find_signs": nothing(())},
            {"injection": ()},
        ),
        Group(
            "disputes",
            ("language/disputes.py",),
            {"assay.language.disputes.among_documents": nothing({})},
            {"conflicts": ()},
        ),
        Group(
            "sentences that stand in an abstract",
            ("synthesis/key_sentences.py:is_sentence",),
            {"assay.synthesis.key_sentences.is_sentence": nothing(True)},
            {"abstracts": ()},
        ),
        Group(
            "headings of Markdown",
            ("ingest/formats/plain.py:_markdown",),
            {"assay.ingest.formats.plain._markdown": nothing([])},
            {"headings": ()},
        ),
        Group(
            "table readings",
            ("tables/lookup.py", "tables/question.py"),
            {"assay.tables.lookup.look_up": nothing(None)},
            {"extracts": ()},
        ),
        Group(
            "declared units",
            ("ingest/declared_units.py",),
            unmeasured="tables of reports with the units that a person reads for them",
        ),
        Group(
            "suggested questions",
            ("workspace/suggest.py",),
            unmeasured="people who say which of the questions they would ask",
        ),
        Group(
            "readability",
            ("synthesis/audience.py",),
            unmeasured="words with their syllables as a dictionary counts them",
        ),
    ]


# --- switching ------------------------------------------------------------------------------------------------------


@contextmanager
def switched_off(off: Mapping[str, Any]) -> Iterator[None]:
    """Replace functions wherever they were imported, and forget what was computed with them."""
    changed: list[tuple[Any, str, Any]] = []
    for place, other in off.items():
        module, _, name = place.rpartition(".")
        original = getattr(importlib.import_module(module), name)
        for each in [each for key, each in sys.modules.items() if key.startswith("assay.")]:
            for attribute in [key for key, value in vars(each).items() if value is original]:
                changed.append((each, attribute, original))
                setattr(each, attribute, other)
    _forget()
    try:
        yield
    finally:
        for each, attribute, original in changed:
            setattr(each, attribute, original)
        _forget()


def _forget() -> None:
    for key, module in list(sys.modules.items()):
        if key.startswith("assay."):
            for value in list(vars(module).values()):
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def import_everything() -> None:
    """Import all of the product, so that a switch reaches every place."""
    for found in pkgutil.walk_packages(assay.__path__, "assay."):
        if not found.name.endswith("__main__"):
            try:
                importlib.import_module(found.name)
            except ImportError:  # an optional dependency
                continue


# --- sizes ----------------------------------------------------------------------------------------------------------


def size(files: Sequence[str]) -> tuple[int, int]:
    """Lines and compiled patterns of what a group consists of."""
    texts = [_part(each) for each in files]
    return sum(text.count("\n") for text in texts), sum(len(PATTERN.findall(text)) for text in texts)


def _part(place: str) -> str:
    file, _, function = place.partition(":")
    text = (SOURCE / file).read_text(encoding="utf-8")
    if not function:
        return text
    found = next(each for each in ast.parse(text).body if getattr(each, "name", "") == function)
    return "".join(text.splitlines(keepends=True)[found.lineno - 1 : found.end_lineno])


# --- trying ---------------------------------------------------------------------------------------------------------


async def try_group(group: Group, given: Given, whole: dict[str, list[Row]]) -> dict[str, dict[str, Any]]:
    """The figures of a group: one row for each figure of its trials. `whole` keeps the trials with every rule."""
    lines, patterns = size(group.files)
    sized = {"lines": lines, "patterns": patterns}
    found: dict[str, dict[str, Any]] = {}
    for name, wanted in group.trials.items():
        set_name, trial = TRIALS[name]
        if name not in whole:
            whole[name] = await trial(given)
        with switched_off(group.off):
            without = await trial(given)
        for figure, (before, after) in paired(whole[name], without, wanted).items():
            found[f"{group.name}: {figure} ({set_name})"] = {**sized, **compared(before, after)}
    return found or {group.name: sized}


def paired(
    whole: Sequence[Row], without: Sequence[Row], wanted: Sequence[str]
) -> dict[str, tuple[list[float], list[float]]]:
    """For each figure its values with and without a group, of the same questions. Two shares of one thing have one prefix."""
    names = dict.fromkeys(name for row in whole for name in row)
    return {
        name: (
            [row[name] for row in whole if name in row],
            [other[name] for row, other in zip(whole, without, strict=True) if name in row],
        )
        for name in names
        if not wanted or name.startswith(tuple(wanted))
    }


def compared(before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    differences = [b - a for a, b in zip(before, after, strict=True)]
    low, high = mean_interval(differences)
    return {
        "n": len(before),
        "with": mean(before),
        "without": mean(after),
        "change": f"{mean(differences):+.3f} ({low:+.3f} … {high:+.3f})",
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", default=[], metavar="GROUP")
    parser.add_argument("--questions", type=int, default=80, help="of each collection")
    parser.add_argument(
        "--cache", type=Path, default=Path("rules-cache"), help="where workspaces are kept between runs"
    )
    add_out(parser)
    options = parser.parse_args()
    import_everything()
    given = Given(options.data.resolve(), options.cache.resolve(), options.questions)
    figures: dict[str, dict[str, Any]] = {}
    missing: dict[str, str] = {}
    if options.out and options.out.exists():
        figures = json.loads(options.out.read_text(encoding="utf-8"))["figures"]
    whole: dict[str, list[Row]] = {}
    listed, done = groups(), set[str]()
    for group in listed:
        if options.only and group.name not in options.only:
            continue
        began = time.perf_counter()
        try:
            found = await try_group(group, given, whole)
        except FileNotFoundError as error:
            missing[group.name] = f"no {error.filename}"
            continue
        figures = {name: row for name, row in figures.items() if name.partition(":")[0] != group.name} | found
        show(found)
        print(f"{time.perf_counter() - began:.0f} s", flush=True)
        order = [group.name for group in listed]
        figures = dict(sorted(figures.items(), key=lambda item: order.index(item[0].partition(":")[0])))
        note = "Nothing measures: " + "; ".join(
            f"{each.name} (would need {each.unmeasured})" for each in listed if each.unmeasured
        )
        done.add(group.name)
        kept = {name.partition(":")[0] for name in figures} - done
        write_result(options.out, figures, missing=missing, note=f"{note}.", partly=bool(kept))


if __name__ == "__main__":
    asyncio.run(main())
