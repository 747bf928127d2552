"""What an answer is worth against its case, and what many are worth together. Pure."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.core.run import Run
from assay.core.types import Answer, Outcome, Verdict
from assay.evaluate.cases import Case
from assay.evaluate.metrics import mean
from assay.evaluate.qa import holds
from assay.language.terms import content_terms

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
SAMPLES, SEED = 1000, 7  # of the bootstrap
COVERED = 0.6  # share of a point's terms that a statement must contain to cover it
QUALITY = (
    "right",
    "token_f1",
    "points",
    "evidence_recall",
    "citation_precision",
    "citation_recall",
    "support",
    "label",
)
COST = ("rounds", "requests", "tokens", "money", "seconds")


@dataclass(frozen=True, slots=True)
class Graded:
    """One case with its run. A metric that the case says nothing about is left out."""

    case: str
    question: str
    tags: tuple[str, ...]
    run: str
    outcome: str
    answer: str
    expected: str
    metrics: Mapping[str, float]


def grade(case: Case, run: Run, names: Mapping[str, str], seconds: float) -> Graded:
    """`names` are the file names of documents, by id; `seconds` is how long the answer took."""
    answer = run.answer
    assert answer is not None
    text = answer.said or " ".join(" ".join(claim.words.split()) for claim in answer.claims)
    metrics = {
        **_correctness(case, answer, text),
        **_evidence(case, run, answer, names),
        "rounds": float(run.rounds),
        "requests": float(run.usage.calls),
        "tokens": float(run.usage.tokens_in + run.usage.tokens_out),
        "money": run.usage.money,
        "seconds": seconds,
    }
    expected = "nothing" if case.abstain else case.answer or "; ".join(case.points)
    return Graded(case.id, case.question, case.tags, run.id, answer.outcome.value, text, expected, metrics)


def _correctness(case: Case, answer: Answer, text: str) -> dict[str, float]:
    abstained = answer.outcome is Outcome.abstained
    if case.abstain:
        return {"right": float(abstained), "abstention": float(abstained)}
    found: dict[str, float] = {}
    if case.answer:
        right = not abstained and (holds(text, case.answer) or numbers_match(text, case.answer))
        found |= {"right": float(right), "token_f1": 0.0 if abstained else token_f1(text, case.answer)}
    if case.points:
        covered = mean([float(not abstained and covers(text, point)) for point in case.points])
        found |= {"points": covered, "right": min(found.get("right", 1.0), float(covered == 1.0))}
    if "right" in found:
        found["label"] = float((answer.outcome is Outcome.answered) == bool(found["right"]))
    return found | {"abstention": float(not abstained)}


def _evidence(case: Case, run: Run, answer: Answer, names: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    claims = answer.claims
    if claims:
        found["support"] = mean([float(claim.verdict is Verdict.supported) for claim in claims])
    weighed = {each.key: each for each in run.evidence}
    cited = [weighed[key] for claim in claims for key in claim.cites if key in weighed]
    if case.pages:
        gold = set(case.pages)
        seen = {f"{names.get(each.passage.doc_id, '')}:{each.passage.page}" for each in run.evidence}
        shown = {f"{names.get(each.passage.doc_id, '')}:{each.passage.page}" for each in cited}
    else:
        gold = {each for each in case.documents if each != "?"}
        seen = {names.get(each.passage.doc_id, "") for each in run.evidence}
        shown = {names.get(each.passage.doc_id, "") for each in cited}
    if gold:
        found["evidence_recall"] = len(gold & seen) / len(gold)
        found["citation_recall"] = len(gold & shown) / len(gold)
        if shown:
            found["citation_precision"] = len(gold & shown) / len(shown)
    return found


def token_f1(text: str, wanted: str) -> float:
    own, gold = Counter(content_terms(text)), Counter(content_terms(wanted))
    shared = sum((own & gold).values())
    return 2 * shared / (sum(own.values()) + sum(gold.values())) if shared else 0.0


def covers(text: str, point: str) -> bool:
    """Whether a text says a point: its numbers, and most of its words."""
    gold = frozenset(content_terms(point))
    shared = len(gold & frozenset(content_terms(text))) / len(gold) if gold else 0.0
    numbers = not NUMBER.search(point) or numbers_match(text, point)
    return holds(text, point) or (numbers and shared >= COVERED)


def numbers_match(text: str, wanted: str) -> bool:
    """Whether every number of `wanted` is in the text, within the rounding of the less exact of the two."""
    gold, own = _numbers(wanted), _numbers(text)
    return bool(gold) and all(any(_same(one, other) for other in own) for one in gold)


def _numbers(text: str) -> list[tuple[float, int]]:
    """The numbers of a text, each with its decimals."""
    found = (match[0].replace(",", "") for match in NUMBER.finditer(text))
    return [(float(each), len(each.partition(".")[2])) for each in found if each not in "-"]


def _same(one: tuple[float, int], other: tuple[float, int]) -> bool:
    decimals = min(one[1], other[1])
    return round(one[0], decimals) == round(other[0], decimals)


# --- many cases -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % bootstrap interval, over `n` cases."""

    mean: float
    low: float
    high: float
    n: int


def estimate(values: Sequence[float]) -> Estimate:
    if not values:
        return Estimate(0.0, 0.0, 0.0, 0)
    generator = random.Random(SEED)
    means = sorted(mean(generator.choices(values, k=len(values))) for _ in range(SAMPLES))
    return Estimate(mean(values), means[int(0.025 * SAMPLES)], means[int(0.975 * SAMPLES) - 1], len(values))


def summarise(graded: Sequence[Graded]) -> dict[str, Estimate]:
    """Each metric over the cases that it applies to."""
    names = [name for name in (*QUALITY, "abstention", *COST) if any(name in each.metrics for each in graded)]
    return {name: estimate([each.metrics[name] for each in graded if name in each.metrics]) for name in names}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two evaluations of the same cases. A difference is the second minus the first."""

    n: int
    first: Mapping[str, Estimate]
    second: Mapping[str, Estimate]
    differences: Mapping[str, Estimate]
    better: tuple[str, ...]  # questions that only the second got right
    worse: tuple[str, ...]  # questions that only the first got right
    same: int


def compare(first: Sequence[Graded], second: Sequence[Graded]) -> Comparison:
    other = {each.case: each for each in second}
    pairs = [(one, other[one.case]) for one in first if one.case in other]
    names = [name for name in (*QUALITY, "abstention", *COST) if any(name in one.metrics for one, _ in pairs)]
    differences = {
        name: estimate(
            [two.metrics[name] - one.metrics[name] for one, two in pairs if name in one.metrics and name in two.metrics]
        )
        for name in names
    }
    judged = [(one, two) for one, two in pairs if "right" in one.metrics and "right" in two.metrics]
    better = tuple(two.question for one, two in judged if two.metrics["right"] > one.metrics["right"])
    worse = tuple(two.question for one, two in judged if two.metrics["right"] < one.metrics["right"])
    return Comparison(
        len(pairs),
        summarise([one for one, _ in pairs]),
        summarise([two for _, two in pairs]),
        differences,
        better,
        worse,
        len(judged) - len(better) - len(worse),
    )


def verdict(found: Comparison, first: str, second: str) -> str:
    """The comparison in plain words: is the second one worth its cost?"""
    judged = found.same + len(found.better) + len(found.worse)
    if not judged:
        return "No case says what a right answer is, so there is no verdict."
    same = f"For {100 * found.same / judged:.0f} % of your questions {first} and {second} come to the same."
    cost = _cost_words(found, first, second)
    gain = found.differences.get("right", Estimate(0.0, 0.0, 0.0, 0))
    winner, sign = (second, 1) if gain.mean >= 0 else (first, -1)
    low, high = sorted((100 * sign * gain.low, 100 * sign * gain.high))
    if gain.low > 0 or gain.high < 0:
        words = f"{winner} is right more often, by {abs(100 * gain.mean):.0f} points ({low:.0f} to {high:.0f})."
    else:
        words = f"No difference in right answers is shown ({100 * gain.low:+.0f} to {100 * gain.high:+.0f} points)."
    worth = "" if gain.low > 0 else f" On these questions {second} is not shown to be worth its cost."
    return f"{same} {words} {cost}{worth}"


def _cost_words(found: Comparison, first: str, second: str) -> str:
    for name, unit in (("tokens", "tokens"), ("seconds", "seconds")):
        one, two = found.first.get(name), found.second.get(name)
        if one and two and one.mean > 0 and two.mean > 0:
            return f"{second} takes {two.mean / one.mean:.1f} times the {unit} of {first}."
    return f"Neither {first} nor {second} asks a model."
