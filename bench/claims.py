"""Which claims reach a reader: word overlap, the checks of peers, and ours, with the same scripted judge.

    .venv/bin/python bench/claims.py --data FILE-OR-FOLDER… [--limit 200] [--seed 1] [--out FILE]

A file is in the form of `assay evaluate claims` or of bench/grounding.py; of a folder, every `*.jsonl` is taken. The judges:
`none`, `oracle`, which knows the labels, and `liar`, which calls everything supported. A true claim should be kept, a false one
should not pass. A check that is nothing but the judge's word is as good as the judge: with the liar it passes everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peer import PYTHON, PeerFailed, run_peer
from result_file import add_out, show, write_result

from assay.core.types import Verdict
from assay.evaluate.claims import ClaimCase, JudgeKind, load, measure
from assay.evaluate.metrics import mean
from assay.language.terms import content_terms

OVERLAPS = (0.6, 0.8, 1.0)  # share of a claim's terms that the passages must have
PEERS = {"llama-index": "FaithfulnessEvaluator", "haystack": "FaithfulnessEvaluator"}
LABELS = {"SUPPORT": "supported", "PARTIAL": "partial", "NEUTRAL": "unsupported", "REFUTE": "contradicted"}


@dataclass(frozen=True, slots=True)
class LabelledSet:
    name: str
    cases: Sequence[ClaimCase]


def read_sets(places: Sequence[Path], limit: int, seed: int) -> list[LabelledSet]:
    """A folder is one set: as many of each of its files."""
    found: list[LabelledSet] = []
    for place in places:
        files = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
        cases = [case for file in files for case in sampled(read_file(file), limit, seed)]
        found.append(LabelledSet(f"{place.parent.name}/{place.name}" if place.is_file() else place.name, cases))
    return found


def sampled(cases: Sequence[ClaimCase], limit: int, seed: int) -> Sequence[ClaimCase]:
    return random.Random(seed).sample(cases, limit) if 0 < limit < len(cases) else cases


def read_file(file: Path) -> list[ClaimCase]:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / file.name
        copy.write_text("".join(json.dumps(as_claim(row)) + "\n" for row in rows), encoding="utf-8")
        return load(copy)


def as_claim(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A claim with sentences as its evidence, in the form of one with passages: the sentences that people marked, or all."""
    if "passages" in row:
        return row
    marked = row.get("rationale") or []
    if marked and isinstance(marked[0], list):  # several ways to show it: the first one
        marked = marked[0]
    sentences = [row["evidence"][place] for place in marked] or row["evidence"]
    passage = {"title": row.get("title", ""), "text": "\n\n".join(each.strip() for each in sentences)}
    return {"id": row["id"], "claim": row["claim"], "passages": [passage], "label": LABELS[row["label"]]}


def overlap(case: ClaimCase) -> float:
    own = frozenset(content_terms(case.claim.text))
    shown = frozenset(term for each in case.evidence for term in content_terms(each.passage.text))
    return len(own & shown) / len(own) if own else 0.0


def shares(cases: Sequence[ClaimCase], passed: Sequence[bool]) -> dict[str, float]:
    """Shares of the true, the false and the partly true claims that reach the reader."""

    def share(*labels: Verdict) -> float:
        return mean([float(own) for case, own in zip(cases, passed, strict=True) if case.label in labels])

    return {
        "true kept": share(Verdict.supported),
        "false passed": share(Verdict.unsupported, Verdict.contradicted),
        "partly true passed": share(Verdict.partial),
    }


def as_task(case: ClaimCase, judge: JudgeKind) -> dict[str, Any]:
    yes = judge is JudgeKind.liar or case.label is Verdict.supported
    texts = [each.passage.text for each in case.evidence]
    return {"claim": case.claim.text, "question": case.evidence[0].note, "passages": texts, "yes": yes}


async def measured(
    found: LabelledSet, python: Path, versions: dict[str, str], missing: dict[str, str]
) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    held = [overlap(case) for case in found.cases]
    for least in OVERLAPS:
        rows[f"word overlap, {100 * least:.0f} %"] = shares(found.cases, [each >= least for each in held])
    for judge in (JudgeKind.none, JudgeKind.oracle, JudgeKind.liar):
        for name, what in PEERS.items() if judge is not JudgeKind.none else ():
            task = {"cases": [as_task(case, judge) for case in found.cases]}
            try:
                reply = run_peer("peer_checks.py", name, task, python)
            except PeerFailed as failed:
                missing[name] = failed.reason
                continue
            versions |= reply["versions"]
            rows[f"{name}'s {what}, judge {judge}"] = shares(found.cases, reply["passed"])
        own = await measure(found.cases, judge)
        names = {"true kept": "true_kept", "false passed": "false_passed", "partly true passed": "partial_passed"}
        rows[f"Assay, judge {judge}"] = {column: own[name] for column, name in names.items()}
    return rows


async def compared(given: argparse.Namespace) -> None:
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    figures = {
        f"{each.name}, {len(each.cases)} claims": await measured(each, given.peers, versions, missing)
        for each in read_sets(given.data, given.limit, given.seed)
    }
    show(figures)
    write_result(given.out, figures, versions, missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--limit", type=int, default=200, help="claims of each file; 0 for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    asyncio.run(compared(parser.parse_args()))


if __name__ == "__main__":
    main()
