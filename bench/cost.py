"""What a question costs: model calls and tokens of the loop, of the naive design, and of one search, by evidence recall.

    .venv/bin/python bench/cost.py --data ../shared/data/multihop --questions 50 --cache bench/out/cost [--json figures.json]
    .venv/bin/python bench/cost.py --sieve [...]        which passages are worth showing to a model

A model that knows the labels (knowing.py) takes part in the real loop, in process, so every prompt is the product's own and
only their number and size differ. Tokens are estimated the same way everywhere (models/tokens.py, which guesses high).

naive       every passage of every search is weighed, one a request, at every round, remembering nothing: `own searches` is
            the plain loop (a model's searches alone), `our searches` the very searches that ours makes
one search  the passages of one search go to the writer: one call
look-up     Assay, routed to a look-up
ours        Assay, researching
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from knowing import Knowing, meter

from assay.agent import hops, sift
from assay.agent.by_rule import searches
from assay.agent.gather import gather
from assay.agent.kit import Kit
from assay.agent.limits import ROUNDS, Limits
from assay.agent.loop import play
from assay.agent.sift import Sieve
from assay.agent.steps import HOPS, STEPS, Step
from assay.agent.tool import Desk
from assay.answer import draft
from assay.evaluate.beir import Collection, load
from assay.evaluate.metrics import mean
from assay.evaluate.runner import BASE, DAY, SCHEME, prepared
from assay.events import Asked, Decided, Event, Found, Gathered, Mode, Route, Routed, Stopped, StopReason, ToolRan
from assay.evidence.assess import Width
from assay.evidence.weigh import key_of, quote
from assay.index.retrieve import Shelf
from assay.models.llm import Role
from assay.run import Run
from assay.types import Evidence, Usage
from assay.workspace import Workspace

ALONE = Width(together=1, alone=1)
NAIVE = (5, 10, 20, 50)  # passages of a search that the naive design weighs
SIEVES = (4, 6, 8, 10, 12, 16)
ONCE = (5, 10, 20)  # passages of one search that go to the writer


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

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True)
class Setting:
    """A workspace with a collection in it, opened once."""

    opened: Workspace
    shelf: Shelf
    weights: dict[str, tuple[Usage, tuple[Event, ...]]] = field(default_factory=dict)  # of passages weighed alone

    def desk(self) -> Desk:
        scope = self.opened.scope([BASE])
        return Desk(self.shelf, lambda: scope)

    def kit(self, model: Knowing, mode: Mode, width: Width) -> Kit:
        return Kit(
            self.desk(),
            Run.then,
            self.opened.document,
            limits=Limits(ROUNDS[mode]),
            hops=HOPS[mode],
            meter=meter(model),
            width=width,
        )


Way = Callable[[Setting, Case], Awaitable[Cost]]


def asked(case: Case, model: Knowing, mode: Mode, route: Route | None = None) -> Run:
    seats = tuple(each[0].seat for each in meter(model).seats.values())
    return Run(case.id, (Asked(case.question, "local", DAY, mode, route=route, seats=seats),))


def costed(case: Case, model: Knowing, found: Sequence[str]) -> Cost:
    got = len(case.gold.keys() & set(found))
    spent = model.spent
    recall = got / len(case.gold)
    return Cost(spent.calls, spent.tokens_in, spent.tokens_out, model.weighed, recall, got == len(case.gold))


# --- the ways -------------------------------------------------------------------------------------------------------


def ours(mode: Mode = Mode.balanced, width: Width | None = None, route: Route | None = None, sieve: Sieve | None = None) -> Way:
    async def way(setting: Setting, case: Case) -> Cost:
        model = Knowing(case.question, case.gold)
        before = sift.SIEVES[mode]
        sift.SIEVES[mode] = sieve or before
        try:
            run = await play(asked(case, model, mode, route), setting.kit(model, mode, width or Width()))
        finally:
            sift.SIEVES[mode] = before
        assert run.delivered, run.events[-1]
        return costed(case, model, [each.passage.doc_id for each in run.evidence])

    return way


def naive(width: int, hopping: bool, mode: Mode = Mode.balanced) -> Way:
    """The same loop, but whatever a search returns is weighed, one passage a request, whether it was weighed before or not."""

    async def way(setting: Setting, case: Case) -> Cost:
        model = Knowing(case.question, case.gold)
        kit = setting.kit(model, mode, ALONE)
        run = await done(Step.PLAN, await done(Step.ROUTE, asked(case, model, mode), kit), kit)
        while not (run.satisfied or run.nothing_left or kit.limits.reached(run) or kit.limits.barren(run)):
            before = len(run.events)
            run = narrowed(await done(Step.DECIDE, run, kit), before, width)
            if run.calls_waiting:
                run = await done(Step.CALL, run, kit)
            if hopping and sift.hop_due(run):
                begun = len(run.events)
                run = narrowed(await done(Step.HOP, run, kit), begun, width)
                run = await done(Step.CALL, run, kit) if run.calls_waiting else run
            results = [event for event in run.events[before:] if isinstance(event, ToolRan)]
            unique = {found.passage.id: found for result in results for found in result.found}
            run = await weighed(run, kit, setting, model, tuple(unique.values()))
            if run.round_unjudged:
                run = await done(Step.JUDGE, run, kit)
        run = await play(run.then(Stopped(StopReason.sufficient)), kit)
        assert run.delivered, run.events[-1]
        return costed(case, model, [each.passage.doc_id for each in run.evidence])

    return way


async def done(step: Step, run: Run, kit: Kit) -> Run:
    async for event in STEPS[step](run, kit):
        run = run.then(event)
    return run


def narrowed(run: Run, since: int, width: int) -> Run:
    """The same, with searches that return this much at most."""
    events = list(run.events)
    for place in range(since, len(events)):
        event = events[place]
        if isinstance(event, Decided):
            calls = [replace(each, arguments={**each.arguments, "k": width}) for each in event.calls]
            events[place] = replace(event, calls=tuple(calls))
    return replace(run, events=tuple(events))


async def weighed(run: Run, kit: Kit, setting: Setting, model: Knowing, found: Sequence[Found]) -> Run:
    """What the model says of these passages, each paid for anew. It would say the same again, so that is looked up."""
    before = tuple(event for event in run.events if not isinstance(event, ToolRan | Gathered))
    for each in found:
        if each.passage.id not in setting.weights:
            asked = model.spent
            events = tuple([event async for event in gather(Run(run.id, (*before, ToolRan("c", (each,)))), kit)])
            spent = Usage(1, model.spent.tokens_in - asked.tokens_in, model.spent.tokens_out - asked.tokens_out)
            setting.weights[each.passage.id] = (spent, events)
        else:
            model.recall(each.passage.text)
            model.spent += setting.weights[each.passage.id][0]
        for event in setting.weights[each.passage.id][1]:
            run = run.then(event)
    return run


def one_search(width: int) -> Way:
    """No agent: one search, and what it returns goes to the writer as it is."""

    async def way(setting: Setting, case: Case) -> Cost:
        model = Knowing(case.question, case.gold)
        kit = setting.kit(model, Mode.quick, ALONE)
        hits = await setting.desk().retrieve(case.question, width)
        evidence = [
            Evidence(key_of(hit.passage), hit.passage, quote(hit.passage, 0, len(hit.passage.text)), 5.0, case.question, "")
            for hit in hits
        ]
        run = asked(case, model, Mode.quick).then(Gathered(tuple(evidence)))
        sources = kit.sources(run)
        await kit.ask(
            Role.write,
            "write",
            draft.Writing,
            lambda room: draft.lay_out(case.question, evidence, sources, "mark", room),
            schema=draft.schema([each.key for each in evidence]),
        )
        return costed(case, model, [hit.passage.doc_id for hit in hits])

    return way


# --- what is worth showing ------------------------------------------------------------------------------------------


async def sieved(setting: Setting, case: Case, mode: Mode) -> dict[tuple[int, int], tuple[float, bool, int]]:
    """(of_run, of_call) → recall, all, how many are shown, of the first round: one search, and the names in it followed."""
    model = Knowing(case.question, case.gold)
    kit = setting.kit(model, mode, ALONE)
    run = asked(case, model, mode, Route.research)
    run = await done(Step.PLAN, run.then(Routed(Route.research, "")), kit)
    for step in (Step.DECIDE, Step.CALL, Step.HOP, Step.CALL):
        run = await done(step, run, kit)
    ranked = [each.hit.passage for each in hops.order(case.question, await searches(run, kit), kit.hops)]
    first = [found.passage for found in run.results["c1"].found]
    found: dict[tuple[int, int], tuple[float, bool, int]] = {}
    for of_run in (*SIEVES, 10**6):
        for of_call in (0, sift.SIEVES[mode].of_call):
            shown = {each.id: each.doc_id for each in (*ranked[:of_run], *first[:of_call])}
            got = len(case.gold.keys() & set(shown.values()))
            found[of_run, of_call] = (got / len(case.gold), got == len(case.gold), len(shown))
    return found


async def sieves(cases: Sequence[tuple[Setting, Case]], modes: Sequence[Mode]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for mode in modes:
        rows = [(case.collection, await sieved(setting, case, mode)) for setting, case in cases]
        print(f"\n{mode.value}: gold documents among what a model is shown after the first round (recall / all of them / shown)")
        for of_run, of_call in rows[0][1]:
            line = []
            for name in dict.fromkeys(name for name, _ in rows):
                own = [row[of_run, of_call] for collection, row in rows if collection == name]
                line.append(f"{name} {mean([r for r, _, _ in own]):.3f}/{mean([a for _, a, _ in own]):.3f}/{mean([n for _, _, n in own]):4.1f}")
                figures[f"{mode.value} {of_run}+{of_call} {name}"] = [mean([float(each[n]) for each in own]) for n in range(3)]
            best = "all" if of_run > 1000 else str(of_run)
            print(f"  best {best:>3} of the run, {of_call} of the call   " + "   ".join(line), flush=True)
    return figures


# --- the table ------------------------------------------------------------------------------------------------------


def table(title: str, costs: Mapping[str, Sequence[Cost]], base: str) -> None:
    print(f"\n{title}")
    print(f"{'':34} {'calls':>7} {'in':>8} {'out':>6} {'weighed':>8} {'recall':>7} {'all':>6}   calls and tokens of {base!r}")
    calls, tokens = mean([c.calls for c in costs[base]]), mean([c.tokens for c in costs[base]])
    for name, each in costs.items():
        own = mean([c.calls for c in each]), mean([c.tokens for c in each])
        print(
            f"{name:34} {own[0]:7.1f} {mean([c.tokens_in for c in each]):8.0f} {mean([c.tokens_out for c in each]):6.0f} "
            f"{mean([c.weighed for c in each]):8.1f} {mean([c.recall for c in each]):7.3f} {mean([c.all for c in each]):6.3f}"
            f"   {own[0] / calls:6.2f} {own[1] / tokens:6.2f}",
            flush=True,
        )


def equal(costs: Mapping[str, Sequence[Cost]], family: str, target: str) -> str:
    """The cheapest of a family that finds as much as the target; the one that finds most, where none does."""
    names = [name for name in costs if name.startswith(family)]
    wanted = mean([c.recall for c in costs[target]])
    enough = [name for name in names if mean([c.recall for c in costs[name]]) >= wanted - 1e-9]
    if enough:
        return min(enough, key=lambda name: mean([c.tokens for c in costs[name]]))
    return max(names, key=lambda name: mean([c.recall for c in costs[name]]))


def read(folder: Path, count: int, seed: int) -> tuple[Collection, list[dict[str, str]]]:
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
    yield from [data] if (data / "corpus.jsonl").exists() else sorted(each.parent for each in data.glob("*/corpus.jsonl"))


async def gathered(given: argparse.Namespace, cache: Path) -> list[tuple[Setting, Case]]:
    found: list[tuple[Setting, Case]] = []
    for folder in folders(given.data):
        collection, rows = read(folder, given.questions, given.seed)
        opened = await prepared(collection, cache, print)
        ours = {entry.uri.removeprefix(SCHEME): entry.id for entry in opened.sources([BASE])}
        texts = {item.id: (item.title, item.text) for item in collection.documents}
        shelf = await opened.shelf(opened.scope([BASE]))
        for row in rows:
            wanted = [doc for doc, grade in collection.judgements[row["id"]].items() if grade > 0]
            gold = {ours[doc]: texts[doc] for doc in wanted}
            case = Case(collection.name, row["id"], collection.queries[row["id"]], row["kind"], gold)
            found.append((Setting(opened, replace(shelf, vectors={})), case))
    return found


def ways() -> dict[str, Way]:
    found: dict[str, Way] = {f"naive, own searches, {k} each": naive(k, hopping=False) for k in NAIVE}
    found |= {f"naive, our searches, {k} each": naive(k, hopping=True) for k in NAIVE}
    found |= {f"one search, {k} passages": one_search(k) for k in ONCE}
    found |= {
        "look-up, 8 a request": ours(route=Route.lookup),
        "ours, 8 a request": ours(),
        "ours, 1 a request": ours(width=ALONE),
        "ours, quick": ours(Mode.quick),
        "ours, thorough": ours(Mode.thorough),
    }
    return found


async def compared(cases: Sequence[tuple[Setting, Case]]) -> dict[str, object]:
    costs: dict[str, list[Cost]] = {}
    for name, way in ways().items():
        began = time.process_time()
        costs[name] = [await way(setting, case) for setting, case in cases]
        print(f"({name}: {time.process_time() - began:.0f} s of processor)", flush=True)
    target = "ours, 8 a request"
    base = equal(costs, "naive", target)
    table(f"all {len(cases)} questions", costs, base)
    print(f"\nthe cheapest naive way with ours' recall is {base!r}")
    for family in ("naive, own searches", "naive, our searches"):
        print(f"of {family!r}: {equal(costs, family, target)!r}")
    groups: dict[str, list[int]] = defaultdict(list)
    for place, (_, case) in enumerate(cases):
        groups[f"{case.collection}, {case.kind}"].append(place)
    shown = (base, "one search, 10 passages", "look-up, 8 a request", target, "ours, 1 a request")
    for title, places in sorted(groups.items()):
        table(f"{title}: {len(places)} questions", {name: [costs[name][p] for p in places] for name in shown}, base)
    once = costs["one search, 10 passages"]
    for title, places in {
        "one search finds everything": [p for p, cost in enumerate(once) if cost.all],
        "one search does not": [p for p, cost in enumerate(once) if not cost.all],
    }.items():
        if places:
            share = len(places) / len(cases)
            table(f"{title} ({share:.0%})", {name: [costs[name][p] for p in places] for name in shown}, base)
    return {name: [asdict(cost) for cost in each] for name, each in costs.items()}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multihop"), help="a set, or a folder of sets")
    parser.add_argument("--questions", type=int, default=50, help="of each set; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where the embedded collections are kept between runs")
    parser.add_argument("--sieve", action="store_true", help="only: which passages are worth showing to a model")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        cases = await gathered(given, given.cache or Path(temporary))
        figures = await sieves(cases, tuple(Mode)) if given.sieve else await compared(cases)
        for setting, _ in cases:
            setting.opened.close()
    if given.json:
        given.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main())
