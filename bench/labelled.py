"""Questions of multi-hop sets with the documents that answer them, ready to be asked: what cost.py measures on."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from knowing import Knowing, meter

from assay.agent.context import ROUNDS, Limits, RunContext
from assay.agent.tool import ToolContext
from assay.answer.weigh import BatchLimits
from assay.core.events import Asked, Event, Mode, Route
from assay.core.run import Run
from assay.core.types import Usage
from assay.evaluate.runner import BASE, DAY, SCHEME, BeirCollection, load, open_collection
from assay.index.hop_ranking import HOP_SETTINGS
from assay.index.retrieve import SearchContext
from assay.workspace.facade import Workspace


@dataclass(frozen=True, slots=True)
class Case:
    """One question, and the documents that answer it."""

    collection: str
    id: str
    question: str
    kind: str
    gold: Mapping[str, tuple[str, str]]  # our document → title and text


@dataclass(frozen=True, slots=True)
class Cost:
    """What one way of dealing with one question took, and how much of what answers it was found."""

    calls: int
    tokens_in: int
    tokens_out: int
    weighed: int
    recall: float
    all: bool
    of: Mapping[str, int] = field(default_factory=dict)  # tokens by prompt

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Setting:
    """A workspace with a collection in it, opened once."""

    opened: Workspace
    search_context: SearchContext
    weights: dict[str, tuple[Usage, tuple[Event, ...]]] = field(default_factory=dict)  # of passages weighed alone

    def tool_context(self) -> ToolContext:
        scope = self.opened.scope([BASE])
        return ToolContext(self.search_context, lambda: scope)

    def context(self, model: Knowing, mode: Mode, width: BatchLimits) -> RunContext:
        return RunContext(
            self.tool_context(),
            Run.then,
            self.opened.documents.get,
            limits=Limits(ROUNDS[mode]),
            hops=HOP_SETTINGS[mode],
            meter=meter(model),
            width=width,
        )


def asked(case: Case, model: Knowing, mode: Mode, route: Route | None = None) -> Run:
    role_models = tuple(each[0].role_model for each in meter(model).models.values())
    return Run(case.id, (Asked(case.question, "local", DAY, mode, route=route, seats=role_models),))


def costed(case: Case, model: Knowing, found: Sequence[str]) -> Cost:
    got = len(case.gold.keys() & set(found))
    spent = model.spent
    recall = got / len(case.gold)
    whole = got == len(case.gold)
    return Cost(spent.calls, spent.tokens_in, spent.tokens_out, model.weighed, recall, whole, dict(model.tokens))


def read(folder: Path, count: int, seed: int) -> tuple[BeirCollection, list[dict[str, str]]]:
    """A collection, and a sample of its questions with what the set says about each."""
    collection = load(folder)
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    judged = [row for row in rows if str(row["_id"]) in collection.queries]
    chosen = random.Random(seed).sample(judged, min(count or len(judged), len(judged)))
    return collection, [{"id": str(row["_id"]), "kind": kind(row)} for row in chosen]


def kind(row: Mapping) -> str:
    """How many hops a question takes, as its id says (MuSiQue), or what type it is (HotpotQA: two hops)."""
    hop = str(row["_id"]).partition("hop")[0]
    return f"{hop} hops" if hop.isdigit() else f"2 hops, {row.get('metadata', {}).get('type', '?')}"


def folders(data: Path) -> Iterator[Path]:
    yield from (
        [data] if (data / "corpus.jsonl").exists() else sorted(each.parent for each in data.glob("*/corpus.jsonl"))
    )


async def gathered(given: argparse.Namespace, cache: Path) -> list[tuple[Setting, Case]]:
    found: list[tuple[Setting, Case]] = []
    for folder in folders(given.data):
        collection, rows = read(folder, given.questions, given.seed)
        opened = await open_collection(collection, cache, print)
        ours = {entry.uri.removeprefix(SCHEME): entry.id for entry in opened.documents.listing([BASE])}
        texts = {item.id: (item.title, item.text) for item in collection.documents}
        search_context = await opened.context.search_context(opened.scope([BASE]))
        for row in rows:
            wanted = [doc for doc, grade in collection.judgements[row["id"]].items() if grade > 0]
            gold = {ours[doc]: texts[doc] for doc in wanted}
            case = Case(collection.name, row["id"], collection.queries[row["id"]], row["kind"], gold)
            found.append((Setting(opened, replace(search_context, vectors={})), case))
    return found
