"""How well rules alone tell whether a claim follows from what it cites.

    python bench/grounding.py --data FOLDER [--out FILE] [--twisted]

FOLDER holds `*.jsonl` with {claim, evidence: [sentence, …], label: SUPPORT | PARTIAL | NEUTRAL | REFUTE, rationale: [place]}.
A claim is shown the sentences that people marked as its evidence, or all of them where they marked none. Printed for each set
and label: the verdicts of `claim_rules.by_rule`. What must be near zero is the share of NEUTRAL and REFUTE that is called
supported, since that is delivered without a model ever seeing it; what is left as partial goes to a model. `--twisted` takes
sentences of the evidence as claims, as they stand and with one thing changed: a number, a name, a negation, a direction, or the
source that is cited. As they stand they should be supported; twisted, never.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from result_file import add_out, write_result

from assay.answer.checking import claim_rules
from assay.answer.claims import Sources
from assay.core.types import Claim, Evidence, Passage, Quote
from assay.language.names import find_names
from assay.language.sentences import split_sentences

LABELS = ("SUPPORT", "PARTIAL", "NEUTRAL", "REFUTE")
VERDICTS = ("supported", "partial", "unsupported", "contradicted")
Case = tuple[Claim, Evidence, Sources, str]


def cases(file: Path) -> Iterator[Case]:
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        marked = row.get("rationale") or []
        if marked and isinstance(marked[0], list):  # several ways to show it: the first one
            marked = marked[0]
        shown = [row["evidence"][place] for place in marked] or row["evidence"]
        words = "\n\n".join(sentence.strip() for sentence in shown)
        passage = Passage(row["id"], "d", words, 0, len(words))
        evidence = Evidence("k", passage, Quote("d", 0, len(words), words), 9.0, "")
        yield Claim(row["claim"].strip(), ("k",)), evidence, Sources({"d": row.get("title", "")}), row["label"]


def measured(found: list[Case]) -> dict[str, dict[str, float]]:
    counts = {label: Counter[str]() for label in LABELS}
    for claim, evidence, sources, label in found:
        verdict = claim_rules.by_rule(claim, (evidence,), sources).verdict
        counts[label][str(verdict)] += 1
    return {
        label: {"n": own.total(), **{verdict: round(own[verdict] / own.total(), 3) for verdict in VERDICTS}}
        for label, own in counts.items()
        if own.total()
    }


# --- sentences of the evidence as claims, as they stand and twisted -------------------------------------------------


def sentences(file: Path, most: int = 400) -> list[tuple[str, str]]:
    """(sentence, passage it stands in), each passage once."""
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        told = [sentence.strip() for sentence in row["evidence"] if 8 <= len(sentence.split()) <= 40]
        for sentence in told[1:2] or told[:1]:
            if re.search(r"[.]$", sentence) and len(split_sentences(sentence)) == 1:
                found.setdefault(sentence, "\n\n".join(told[:12]))
    return sorted(found.items())[:most]


def another_number(words: str, dice: random.Random) -> str:
    places = list(re.finditer(r"(?<![\w.,-])\d+(?![\w.,-])", words))
    if not places:
        return ""
    one = dice.choice(places)
    return f"{words[: one.start()]}{int(one[0]) + dice.choice((1, 7, 30))}{words[one.end() :]}"


def another_name(words: str, dice: random.Random) -> str:
    own = [name for name in find_names(words) if name.start > 0 and words[name.start - 1] not in '"“«`']  # no title
    if not own:
        return ""
    one = dice.choice(own)
    return f"{words[: one.start]}{dice.choice(('Zanker', 'Mirela Oduya', 'Port Vessen'))}{words[one.end :]}"


def negated(words: str, dice: random.Random) -> str:
    if re.search(r"\b(?:not|no)\b", words):
        return re.sub(r"\bnot |\bno ", "", words, count=1)
    twisted = re.sub(r"\b(is|was|are|were|has|have|can|will|may)\b(?! not)", r"\1 not", words, count=1)
    return twisted if twisted != words else ""


def turned(words: str, dice: random.Random) -> str:
    swaps = {"increased": "decreased", "decreased": "increased", "increase": "decrease", "more": "less", "higher": "lower",
             "lower": "higher", "before": "after", "after": "before", "reduced": "increased", "less": "more", "rise": "fall",
             "improved": "worsened", "largest": "smallest"}  # fmt: skip
    held = [word for word in swaps if re.search(rf"\b{word}\b", words)]
    return re.sub(rf"\b{held[0]}\b", swaps[held[0]], words) if held else ""


TWISTS = {"a number": another_number, "a name": another_name, "a negation": negated, "a direction": turned}


def twisted(file: Path) -> dict[str, dict[str, float]]:
    """Verdicts on sentences as they stand, cited to another passage, and with one thing changed."""
    dice = random.Random(7)
    told = sentences(file)
    counts: dict[str, Counter[str]] = {}
    for place, (sentence, passage) in enumerate(told):
        other = told[(place + len(told) // 2) % len(told)][1]
        tries = {"as it stands": (sentence, passage), "another source": (sentence, other)}
        tries |= {name: (words, passage) for name, twist in TWISTS.items() if (words := twist(sentence, dice))}
        for name, (words, shown) in tries.items():
            evidence = Evidence("k", Passage("p", "d", shown, 0, len(shown)), Quote("d", 0, len(shown), shown), 9.0, "")
            verdict = claim_rules.by_rule(Claim(words, ("k",)), (evidence,)).verdict
            counts.setdefault(name, Counter())[str(verdict)] += 1
    return {
        name: {"n": own.total(), **{verdict: round(own[verdict] / own.total(), 3) for verdict in VERDICTS}}
        for name, own in counts.items()
    }


def show(name: str, figures: dict[str, dict[str, float]]) -> None:
    for label, own in figures.items():
        row = "  ".join(f"{verdict} {own[verdict]:.3f}" for verdict in VERDICTS)
        print(f"{name:22} {label:14} n={own['n']:<5} {row}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    add_out(parser)
    parser.add_argument("--twisted", action="store_true")
    given = parser.parse_args()
    figures: dict[str, object] = {}
    for file in sorted(given.data.glob("*.jsonl")):
        if given.twisted:
            figures[file.stem] = own = twisted(file)
            show(file.stem, own)
            continue
        found = list(cases(file))
        begun = time.perf_counter()
        figures[file.stem] = own = measured(found)
        show(file.stem, own)
        print(f"{'':22} {1000 * (time.perf_counter() - begun) / len(found):.2f} ms a claim")
    write_result(given.out, figures)


if __name__ == "__main__":
    main()
