"""What a question costs: model calls and tokens of the loop, of the naive design, and of one search, by evidence recall.

    .venv/bin/python bench/cost.py --data ../shared/data/multihop --questions 50 --cache bench/out/cost [--out FILE]
    .venv/bin/python bench/cost.py --only look-up ours [...]   ways whose names begin so, without the others
    .venv/bin/python bench/cost.py --sieve [...]        which passages are worth showing to a model

A model that knows the labels (knowing.py) takes part in the real loop, in process, so every prompt is the product's own and
only their number and size differ. Tokens are estimated the same way everywhere (models/cost.py, which guesses high).

naive       every passage of every search is weighed, one a request, at every round, remembering nothing: `own searches` is
            the plain loop (a model's searches alone), `our searches` the very searches that ours makes
one search  the passages of one search go to the writer: one call
paper-qa    `Docs.aquery`: the nearest texts are summarised and scored one by one, the best go to the writer (`make bench`)
look-up     Assay, routed to a look-up
ours        Assay, researching
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from knowing import Knowing
from labelled import Case, Cost, Setting, asked, costed, gathered
from naive import ALONE, done, naive
from paper_qa_cost import paper_qa_costs
from peer import PYTHON, PeerFailed
from result_file import add_out, write_result

from assay.agent.loop import Step, play
from assay.agent.steps import gather
from assay.agent.steps.gather import SiftLimits
from assay.agent.steps.read_evidence import past_searches
from assay.answer import draft
from assay.answer.weigh import BatchLimits, evidence_key, quote
from assay.core.events import Gathered, Mode, Route, Routed
from assay.core.types import Evidence
from assay.evaluate.metrics import mean
from assay.index import hop_ranking
from assay.models.llm import Role

NAIVE = (5, 10, 20, 50)  # passages of a search that the naive design weighs
SIEVES = (4, 6, 8, 10, 12, 16)
TRIED = (6, 8, 16)  # of SIEVES, in whole runs
PROMPTS = ("route", "plan", "weigh", "judge", "decide", "write", "check", "revise", "critique")
ONCE = (5, 10, 20)  # passages of one search that go to the writer
PAPER_QA = (10, 30)  # texts that paper-qa has summarised; ten is what it comes with


Way = Callable[[Setting, Case], Awaitable[Cost]]


# --- the ways -------------------------------------------------------------------------------------------------------


def ours(
    mode: Mode = Mode.balanced,
    width: BatchLimits | None = None,
    route: Route | None = None,
    sieve: SiftLimits | None = None,
) -> Way:
    async def way(setting: Setting, case: Case) -> Cost:
        model = Knowing(case.question, case.gold)
        before = gather.SIFT_LIMITS[mode]
        gather.SIFT_LIMITS[mode] = sieve or before
        try:
            run = await play(asked(case, model, mode, route), setting.context(model, mode, width or BatchLimits()))
        finally:
            gather.SIFT_LIMITS[mode] = before
        assert run.delivered, run.events[-1]
        return costed(case, model, [each.passage.doc_id for each in run.evidence])

    return way


def one_search(width: int) -> Way:
    """No agent: one search, and what it returns goes to the writer as it is."""

    async def way(setting: Setting, case: Case) -> Cost:
        model = Knowing(case.question, case.gold)
        context = setting.context(model, Mode.quick, ALONE)
        hits = await setting.tool_context().retrieve(case.question, width)
        evidence = [
            Evidence(
                evidence_key(hit.passage),
                hit.passage,
                quote(hit.passage, 0, len(hit.passage.text)),
                5.0,
                case.question,
                "",
            )
            for hit in hits
        ]
        run = asked(case, model, Mode.quick).then(Gathered(tuple(evidence)))
        sources = context.sources(run)
        await context.ask(
            Role.write,
            "write",
            draft.Writing,
            lambda room: draft.build_prompt(case.question, evidence, sources, "mark", room),
            schema=draft.schema([each.key for each in evidence]),
        )
        return costed(case, model, [hit.passage.doc_id for hit in hits])

    return way


# --- what is worth showing ------------------------------------------------------------------------------------------


async def sieved(setting: Setting, case: Case, mode: Mode) -> dict[tuple[int, int], tuple[float, bool, int]]:
    """(of_run, of_call) → recall, all, how many are shown, of the first round: one search, and the names in it followed."""
    model = Knowing(case.question, case.gold)
    context = setting.context(model, mode, ALONE)
    run = asked(case, model, mode, Route.research)
    run = await done(Step.PLAN, run.then(Routed(Route.research, "")), context)
    for step in (Step.DECIDE, Step.CALL, Step.HOP, Step.CALL):
        run = await done(step, run, context)
    ranked = [
        each.hit.passage
        for each in hop_ranking.rank_passages(case.question, await past_searches(run, context), context.hops)
    ]
    first = [found.passage for found in run.results["c1"].found]
    found: dict[tuple[int, int], tuple[float, bool, int]] = {}
    for of_run in (*SIEVES, 10**6):
        for of_call in (0, gather.SIFT_LIMITS[mode].of_call):
            shown = {each.id: each.doc_id for each in (*ranked[:of_run], *first[:of_call])}
            got = len(case.gold.keys() & set(shown.values()))
            found[of_run, of_call] = (got / len(case.gold), got == len(case.gold), len(shown))
    return found


async def sieves(cases: Sequence[tuple[Setting, Case]], modes: Sequence[Mode]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for mode in modes:
        rows = [(case.collection, await sieved(setting, case, mode)) for setting, case in cases]
        print(
            f"\n{mode.value}: gold documents among what a model is shown after the first round (recall / all of them / shown)"
        )
        for of_run, of_call in rows[0][1]:
            line = []
            for name in dict.fromkeys(name for name, _ in rows):
                own = [row[of_run, of_call] for collection, row in rows if collection == name]
                recall, whole, shown = (mean([float(each[n]) for each in own]) for n in range(3))
                line.append(f"{name} {recall:.3f}/{whole:.3f}/{shown:4.1f}")
                figures[f"{mode.value} {of_run}+{of_call} {name}"] = [
                    mean([float(each[n]) for each in own]) for n in range(3)
                ]
            best = "all" if of_run > 1000 else str(of_run)
            print(f"  best {best:>3} of the run, {of_call} of the call   " + "   ".join(line), flush=True)
    return figures


# --- the table ------------------------------------------------------------------------------------------------------


def table(title: str, costs: Mapping[str, Sequence[Cost]], base: str) -> None:
    print(f"\n{title}")
    print(
        f"{'':34} {'calls':>7} {'in':>8} {'out':>6} {'weighed':>8} {'recall':>7} {'all':>6}   calls and tokens of {base!r}"
    )
    calls, tokens = mean([c.calls for c in costs[base]]), mean([c.tokens for c in costs[base]])
    for name, each in costs.items():
        own = mean([c.calls for c in each]), mean([c.tokens for c in each])
        print(
            f"{name:34} {own[0]:7.1f} {mean([c.tokens_in for c in each]):8.0f} {mean([c.tokens_out for c in each]):6.0f} "
            f"{mean([c.weighed for c in each]):8.1f} {mean([c.recall for c in each]):7.3f} {mean([c.all for c in each]):6.3f}"
            f"   {own[0] / calls:6.2f} {own[1] / tokens:6.2f}",
            flush=True,
        )


def means(costs: Sequence[Cost], base: Sequence[Cost]) -> dict[str, float]:
    """Per question; the ratios are against the cheapest naive way that finds as much as ours."""
    calls, tokens = mean([each.calls for each in costs]), mean([each.tokens for each in costs])
    return {
        "evidence recall": mean([each.recall for each in costs]),
        "all found": mean([float(each.all) for each in costs]),
        "requests": calls,
        "tokens": tokens,
        "requests, ratio": calls / mean([each.calls for each in base]),
        "tokens, ratio": tokens / mean([each.tokens for each in base]),
    }


def equal(costs: Mapping[str, Sequence[Cost]], family: str, target: str) -> str:
    """The cheapest of a family that finds as much as the target; the one that finds most, where none does."""
    names = [name for name in costs if name.startswith(family)]
    wanted = mean([c.recall for c in costs[target]])
    enough = [name for name in names if mean([c.recall for c in costs[name]]) >= wanted - 1e-9]
    if enough:
        return min(enough, key=lambda name: mean([c.tokens for c in costs[name]]))
    return max(names, key=lambda name: mean([c.recall for c in costs[name]]))


def ways() -> dict[str, Way]:
    found: dict[str, Way] = {f"naive, own searches, {k} each": partial(naive, width=k, hopping=False) for k in NAIVE}
    found |= {f"naive, our searches, {k} each": partial(naive, width=k, hopping=True) for k in NAIVE}
    found |= {f"one search, {k} passages": one_search(k) for k in ONCE}
    found |= {
        "look-up, 8 a request": ours(route=Route.lookup),
        "ours, 8 a request": ours(),
        "ours, 1 a request": ours(width=ALONE),
        "ours, quick": ours(Mode.quick),
        "ours, thorough": ours(Mode.thorough),
    }
    found |= {
        f"ours, best {n} of the run": ours(sieve=replace(gather.SIFT_LIMITS[Mode.balanced], of_run=n)) for n in TRIED
    }
    return found


async def compared(
    cases: Sequence[tuple[Setting, Case]], peers: Path
) -> tuple[dict[str, Any], dict[str, str], dict[str, str]]:
    """The figures, the versions of the peers, and what could not be run and why."""
    costs: dict[str, list[Cost]] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    try:
        found, versions = await paper_qa_costs(cases, PAPER_QA, peers)
        costs |= {f"paper-qa, {width} texts": each for width, each in found.items()}
    except PeerFailed as failed:
        missing["paper-qa"] = failed.reason
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
    total = sum(cost.tokens for cost in costs[target])
    parts = {name: sum(cost.of.get(name, 0) for cost in costs[target]) / total for name in PROMPTS}
    print(f"tokens of {target!r}: " + ", ".join(f"{name} {share:.0%}" for name, share in parts.items()))
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
    figures = {f"{len(cases)} questions": {name: means(each, costs[base]) for name, each in costs.items()}}
    return figures, versions, missing


async def some(cases: Sequence[tuple[Setting, Case]], beginnings: Sequence[str]) -> dict[str, Any]:
    """The figures of the ways whose names begin so, each beside the last."""
    chosen = {name: way for name, way in ways().items() if name.startswith(tuple(beginnings))}
    costs = {name: [await way(setting, case) for setting, case in cases] for name, way in chosen.items()}
    base = list(costs)[-1]
    table(f"all {len(cases)} questions", costs, base)
    return {f"{len(cases)} questions": {name: means(each, costs[base]) for name, each in costs.items()}}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/multihop"), help="a set, or a folder of sets")
    parser.add_argument("--questions", type=int, default=50, help="of each set; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="where the embedded collections are kept between runs")
    parser.add_argument("--only", nargs="+", default=(), help="the ways whose names begin so")
    parser.add_argument("--sieve", action="store_true", help="only: which passages are worth showing to a model")
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        cases = await gathered(given, given.cache or Path(temporary))
        if given.sieve:
            figures, versions, missing = await sieves(cases, tuple(Mode)), {}, {}
        elif given.only:
            figures, versions, missing = await some(cases, given.only), {}, {}
        else:
            figures, versions, missing = await compared(cases, given.peers)
        for setting, _ in cases:
            setting.opened.close()
    write_result(given.out, figures, versions, missing)


if __name__ == "__main__":
    asyncio.run(main())
