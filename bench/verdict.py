"""Is the loop worth its cost? The verdict of `assay evaluate run --baseline one-shot` on public sets.

    .venv/bin/python bench/verdict.py --data SET… [--queries 40] [--documents 250] [--seed 1] [--cache FOLDER] [--out FILE]

A SET is a folder in BEIR's layout. Every question is answered twice: by one search whose passages go to the writer
(`one-shot`), and by the loop. The model of both knows the labels (knowing.py), so that only what is found differs; a question
counts as right if every labelled document of it is among the evidence. Comparison and verdict are those of the command.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cost import ours
from labelled import Case, Cost, Setting
from quality import sample
from result_file import add_out, show, write_result

from assay.core.events import Route
from assay.evaluate.grading import Comparison, Graded, compare, verdict
from assay.evaluate.runner import BASE, SCHEME, BeirCollection, load, open_collection

ONE_SHOT, LOOP = "one search", "the loop"


async def answered(collection: BeirCollection, cache: Path) -> dict[str, list[Graded]]:
    with await open_collection(collection, cache, print) as opened:
        own = {entry.uri.removeprefix(SCHEME): entry.id for entry in opened.documents.listing([BASE])}
        texts = {item.id: (item.title, item.text) for item in collection.documents}
        context = await opened.context.search_context(opened.scope([BASE]))
        setting = Setting(opened, replace(context, vectors={}))
        found: dict[str, list[Graded]] = {ONE_SHOT: [], LOOP: []}
        for query, words in collection.queries.items():
            gold = {own[doc]: texts[doc] for doc, grade in collection.judgements[query].items() if grade > 0}
            case = Case(collection.name, query, words, "", gold)
            for name, way in ((ONE_SHOT, ours(route=Route.one_shot)), (LOOP, ours())):
                found[name].append(graded(case, await way(setting, case)))
    return found


def graded(case: Case, cost: Cost) -> Graded:
    metrics = {
        "right": float(cost.all),
        "evidence_recall": cost.recall,
        "requests": float(cost.calls),
        "tokens": float(cost.tokens),
    }
    return Graded(case.id, case.question, (), "", "", "", "", metrics)


def rows(found: Comparison) -> dict[str, dict[str, Any]]:
    sides = {ONE_SHOT: found.first, LOOP: found.second, "difference": found.differences}
    return {
        name: {
            "right": own["right"].mean,
            "from": own["right"].low,
            "to": own["right"].high,
            "evidence recall": own["evidence_recall"].mean,
            "requests": own["requests"].mean,
            "tokens": own["tokens"].mean,
        }
        for name, own in sides.items()
    }


async def compared(folders: Sequence[Path], given: argparse.Namespace) -> None:
    figures: dict[str, Any] = {}
    verdicts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for folder in folders:
            chosen = sample(load(folder), given.queries, given.documents, given.seed)
            both = await answered(chosen, given.cache or Path(temporary))
            found = compare(both[ONE_SHOT], both[LOOP])
            title = f"{chosen.name}: {len(chosen.queries)} questions over {len(chosen.documents)} documents"
            figures[title] = rows(found)
            verdicts[chosen.name] = {"verdict": verdict(found, ONE_SHOT, LOOP)}
            show({title: figures[title]})
            print(verdicts[chosen.name]["verdict"], flush=True)
    write_result(given.out, {**figures, "Verdicts": verdicts})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--queries", type=int, default=40, help="of each set; 0 for all")
    parser.add_argument("--documents", type=int, default=250, help="of each set; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where the embedded collections are kept between runs")
    add_out(parser)
    given = parser.parse_args()
    asyncio.run(compared(given.data, given))


if __name__ == "__main__":
    main()
