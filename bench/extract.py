"""What the answers without a model are worth: which sentences are chosen, and when none is.

    python bench/extract.py --data SET [SET …] [--samples FOLDER] [--cache FOLDER] [--out FILE]

A SET is a folder in BEIR's layout whose queries may carry `metadata.answer` and `metadata.supporting_facts`. Each
question is researched by rule, as the product does it, three times: over its own documents, without the documents that
hold its answer, and over the documents of the next set. Only the first can be answered. Evidence and sentence vectors are
kept in the cache, so that another way of choosing is measured in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pickle
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from result_file import add_out, write_result

from assay.agent.context import RunContext
from assay.agent.hops import scoring
from assay.agent.loop import carry_on
from assay.agent.past_searches import past_searches
from assay.agent.tool import ToolContext
from assay.answer.extractive import extract, selection
from assay.answer.extractive.selection import Candidate, Extraction
from assay.core.events import Asked, Stopped
from assay.core.run import Run
from assay.core.types import Evidence, Hit
from assay.evaluate.beir import load
from assay.evaluate.metrics import mean
from assay.evaluate.runner import BASE, DAY, open_collection
from assay.index.filters import Filter, In, Not, both
from assay.index.protocol import Index
from assay.language.sentences import split_sentences
from assay.language.terms import fold_case
from assay.models.local.bundled import BundledEmbedder
from assay.workspace.facade import Workspace, open_workspace


@dataclass(frozen=True, slots=True)
class Case:
    """A question with everything that was found for it, as it stands just before an answer is drafted."""

    id: str
    question: str
    kind: str
    answerable: bool
    answer: str
    gold: tuple[str, ...]  # sentences
    evidence: tuple[Evidence, ...]
    ties: tuple[tuple[str, str, str], ...]
    titles: Mapping[str, str]
    nearest: float  # cosine of the best passage


class Without:
    """An index in which some documents are not there."""

    def __init__(self, index: Index, documents: Sequence[str]) -> None:
        self.index, self.rest = index, Not(In("doc", tuple(documents)))

    async def dense(self, vector: np.ndarray, k: int, where: Filter) -> list[Hit]:
        return await self.index.dense(vector, k, both(where, self.rest))

    async def lexical(self, query: str, k: int, where: Filter) -> list[Hit]:
        return await self.index.lexical(query, k, both(where, self.rest))

    async def fetch(self, ids: Sequence[str], where: Filter) -> list[Hit]:
        return await self.index.fetch(ids, both(where, self.rest))


async def researched(opened: Workspace, question: str, without: Sequence[str] = ()) -> dict[str, Any]:
    """The run up to the point where it stops searching."""
    scope = opened.scope()
    search_context = await opened.search_context(scope)
    if without:
        search_context = replace(
            search_context, indexes={name: Without(index, without) for name, index in search_context.indexes.items()}
        )
    context = RunContext(ToolContext(replace(search_context, vectors={}), lambda: scope), Run.then, opened.document)
    run = Run("r", (Asked(question, opened.principal.id, DAY),))
    async for event in carry_on(run, context):
        run = run.then(event)
        if isinstance(event, Stopped):
            break
    done = await past_searches(run, context)
    ranked = scoring.rank_passages(question, done, context.hops) if done else []
    return {
        "evidence": run.evidence[:12],
        "ties": tuple((each.hit.passage.id, each.link.source, each.link.name) for each in ranked if each.link),
        "titles": {each.hit.passage.doc_id: each.hit.title for each in ranked},
        "nearest": max((float(done[0].vector @ hit.vector) for hit in done[0].hits), default=0.0) if done else 0.0,
    }


def gold_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[str, ...]:
    """The supporting sentences. Their numbers are those of another splitter: near enough on encyclopaedia text."""
    found = []
    for title, number in row.get("metadata", {}).get("supporting_facts", []):
        body = texts.get(title, "")
        spans = split_sentences(body)
        if number < len(spans):
            found.append(body[slice(*spans[number])])
    return tuple(found)


async def researched_set(folder: Path, over: Path, cache: Path, remove: bool, limit: int) -> list[Case]:
    """The questions of one set over the documents of the same or another one, from the cache where they are there."""
    kind = "without gold" if remove else "own" if folder == over else "foreign"
    kept = cache / f"cases-{folder.name}-{over.name}-{kind.replace(' ', '-')}-{limit}.pickle"
    if kept.exists():
        return [Case(*each) for each in pickle.loads(kept.read_bytes())]  # written by this very program
    own, other = load(folder), load(over)
    rows = {row["_id"]: row for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    texts = {item.title: item.text for item in own.documents}
    cases: list[Case] = []
    with await open_collection(other, cache) as opened:
        ids = {entry.uri.removeprefix("collection:"): entry.id for entry in opened.sources([BASE])}
        for number, (query, words) in enumerate(list(own.queries.items())[: limit or None]):
            gold = [ids[document] for document, grade in own.judgements[query].items() if grade > 0] if remove else []
            found = await researched(opened, words, gold)
            answer = rows[query].get("metadata", {}).get("answer", "")
            cases.append(Case(query, words, kind, kind == "own", answer, gold_of(rows[query], texts), **found))
            if number % 20 == 0:
                print(f"  {folder.name} over {over.name} ({kind}): {number}", flush=True)
    _keep(kept, cases)
    return cases


def _keep(file: Path, cases: Sequence[Case]) -> None:
    file.write_bytes(pickle.dumps([tuple(getattr(case, each.name) for each in fields(Case)) for case in cases]))


async def researched_samples(folder: Path, cache: Path) -> list[Case]:
    kept = cache / "cases-samples.pickle"
    if kept.exists():
        return [Case(*each) for each in pickle.loads(kept.read_bytes())]
    cases: list[Case] = []
    place = Path(tempfile.mkdtemp(dir=cache))
    with open_workspace(place, create=True) as opened:
        await opened.add([folder / "corpus"])
        for row in map(json.loads, (folder / "questions.jsonl").read_text().splitlines()):
            found = await researched(opened, row["question"])
            cases.append(
                Case(row["id"], row["question"], row["kind"], row["kind"] != "unanswerable", row["answer"],
                     tuple(row["evidence"]), **found)
            )  # fmt: skip
        for number, question in enumerate(NOWHERE):
            found = await researched(opened, question)
            cases.append(Case(f"n{number}", question, "nowhere", False, "", (), **found))
    shutil.rmtree(place)
    _keep(kept, cases)
    return cases


NOWHERE = (
    "What is the capital of Mongolia?",
    "What is the boiling point of tungsten?",
    "Who wrote the novel Moby-Dick?",
    "How many moons does Jupiter have?",
    "What is the best recipe for sourdough bread?",
    "When did the Berlin Wall fall?",
    "Who won the football world cup in 1998?",
    "How do I renew my passport?",
)


# --- measuring ------------------------------------------------------------------------------------------------------

OFF = Extraction()
WAYS: dict[str, Extraction] = {
    "as it is": OFF,
    "  no nearness": replace(OFF, nearness=0.0),
    "  no words": replace(OFF, words=0.0),
    "  no titles": replace(OFF, title=0.0),
    "  no worth of the passage": replace(OFF, passage=0.0),
    "  no opening": replace(OFF, opening=0.0),
    "  no kind of answer": replace(OFF, kind=0.0),
    "  fragments as good as sentences": replace(OFF, fragment=0.0),
    "  no fresh words": replace(OFF, fresh=0.0),
    "  no ties": replace(OFF, tied=0.0),
    "  same passage as good as another": replace(OFF, again=0.0),
    "  five sentences": replace(OFF, claims=5),
    "  three sentences": replace(OFF, claims=3),
    "  stop 0.35": replace(OFF, stop=0.35),
    "  stop 0.55": replace(OFF, stop=0.55),
}


class Vectors:
    """Vectors of texts, each embedded once and kept."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.known: dict[str, np.ndarray] = pickle.loads(file.read_bytes()) if file.exists() else {}

    def learn(self, texts: Iterable[str]) -> None:
        new = [each for each in dict.fromkeys(texts) if each not in self.known]
        if new:
            self.known.update(zip(new, asyncio.run(BundledEmbedder().queries(new)), strict=True))
            self.file.write_bytes(pickle.dumps(self.known))

    def of(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.known[each] for each in texts])


@dataclass(frozen=True, slots=True)
class Measured:
    """One question: what was chosen, how sure that is, and whether it is right."""

    precision: float
    recall: float
    f1: float
    holds_answer: bool | None  # none where the answer is yes or no, or not known
    sentences: int
    strength: float
    conflicts: int


def measured(case: Case, found: Sequence[Candidate], vectors: Vectors, by: Extraction) -> Measured:
    if not found:
        return Measured(0, 0, 0, False if case.answer else None, 0, by.bias, 0)
    of = selection.field(case.question, found, vectors.of([case.question, *(each.said for each in found)]), by)
    places = selection.choose(case.question, of, by)
    said = [found[place].quote.text for place in places]
    right = sum(any(same(each, gold) for gold in case.gold) for each in said) / len(said)
    recalled = sum(any(same(each, gold) for each in said) for gold in case.gold) / max(1, len(case.gold))
    f1 = 2 * right * recalled / (right + recalled) if right + recalled else 0.0
    answer = None if case.answer.lower() in {"", "yes", "no"} else any(_key(case.answer) in _key(each) for each in said)
    drafted = extract.draft(case.question, found, vectors.of([case.question, *(each.said for each in found)]), by)
    strength = extract.strength(case.question, of, places, by)
    return Measured(right, recalled, f1, answer, len(said), strength, len(drafted.conflicts))


def same(chosen: str, gold: str) -> bool:
    """The same sentence, though split otherwise: most words in common, or one inside the other."""
    ours, theirs = (frozenset(_key(each).split()) for each in (chosen, gold))
    common = len(ours & theirs)
    alike = common >= 0.7 * min(len(ours), len(theirs)) and common > 0.45 * max(len(ours), len(theirs))
    return alike or " ".join(gold.split()) in " ".join(chosen.split())


def _key(words: str) -> str:
    return " ".join(["", *re.findall(r"[^_\W]+", fold_case(words)), ""])


def auc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """How often something that can be answered is stronger than something that cannot."""
    left, right = np.array(positive)[:, None], np.array(negative)[None]
    return float(((left > right) + 0.5 * (left == right)).mean())


def run_all(
    sets: Mapping[str, list[Case]], vectors: Vectors, by: Extraction, titled: bool
) -> dict[str, list[Measured]]:
    results: dict[str, list[Measured]] = {}
    for name, cases in sets.items():
        found = [extract.candidates(each.evidence, each.ties, each.titles if titled else None, by) for each in cases]
        if not titled:  # as it is called where titles are not handed in: not even headings are embedded
            found = [[replace(each, label="") for each in several] for several in found]
        vectors.learn(
            t for case, own in zip(cases, found, strict=True) for t in (case.question, *(c.said for c in own))
        )
        results[name] = [measured(case, own, vectors, by) for case, own in zip(cases, found, strict=True)]
    return results


def line(results: Sequence[Measured], gold: bool) -> str:
    of = [mean([getattr(each, name) for each in results]) for name in ("precision", "recall", "f1")]
    chosen = " ".join(f"{figure:.3f}" for figure in of) if gold else " " * 17
    known = [float(each.holds_answer) for each in results if each.holds_answer is not None]
    said = mean([float(each.sentences) for each in results])
    return f"{chosen} {mean(known) if known else 0:.2f} {said:.1f} {sum(each.conflicts > 0 for each in results):>2}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", type=Path, required=True)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--cache", type=Path, default=Path("bench/out/extract"))
    parser.add_argument("--limit", type=int, default=100)
    add_out(parser)
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)

    async def research() -> dict[str, list[Case]]:
        folders = [each.resolve() for each in arguments.data]
        sets: dict[str, list[Case]] = {}
        for number, folder in enumerate(folders):
            other = folders[(number + 1) % len(folders)]
            for over, remove in ((folder, False), (folder, True), *(((other, False),) if other != folder else ())):
                cases = await researched_set(folder, over, arguments.cache, remove, arguments.limit)
                sets[f"{folder.name}: {cases[0].kind}"] = cases
        if arguments.samples:
            for case in await researched_samples(arguments.samples, arguments.cache):
                kind = "own" if case.answerable else "nowhere" if case.kind == "nowhere" else "unanswerable"
                sets.setdefault(f"samples: {kind}", []).append(case)
        return sets

    sets = asyncio.run(research())
    vectors = Vectors(arguments.cache / "vectors.pickle")
    own = {name: cases for name, cases in sets.items() if name.endswith(": own")}
    print("precision, recall and F1 of the sentences; answers held; sentences; questions with a conflict")
    print(" " * 34 + " | ".join(f"{name.removesuffix(': own'):28}" for name in own))
    ways = [*((name, by, True) for name, by in WAYS.items()), ("  titles not handed in", OFF, False)]
    for name, by, titled in ways:
        results = run_all(own, vectors, by, titled)
        print(
            f"{name:34}" + " | ".join(line(results[each], any(c.gold for c in own[each])) for each in own), flush=True
        )
    figures: dict[str, Any] = {}
    print("\nabstained, and how well strength tells it from the answerable questions of the same set (AUC)")
    everything = run_all(sets, vectors, OFF, True)
    for name, results in everything.items():
        answerable = everything[f"{name.partition(':')[0]}: own"]
        figures[name] = {
            "abstained": mean([float(each.strength < 0) for each in results]),
            "auc": auc([each.strength for each in answerable], [each.strength for each in results]),
            "f1": mean([each.f1 for each in results]),
            "conflicts": sum(each.conflicts > 0 for each in results),
            "questions": len(results),
        }
        at = figures[name]
        print(f"  {name:40} {at['abstained']:.2f}" + ("" if name.endswith(": own") else f"  AUC {at['auc']:.3f}"))
    write_result(arguments.out, figures)


if __name__ == "__main__":
    main()
