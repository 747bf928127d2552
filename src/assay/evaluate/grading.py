"""What an answer is worth against its case, by its words and by a model's grade, and what many are worth together."""

from __future__ import annotations

import asyncio
import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from assay.answer.checking.judge import AskModel
from assay.core.codec import digest
from assay.core.errors import UserError
from assay.core.events import RoleModel
from assay.core.run import Run
from assay.core.types import Answer, Outcome, Verdict, omitted_when_empty
from assay.evaluate.cases import Case
from assay.evaluate.metrics import mean, mean_interval
from assay.evaluate.qa import holds
from assay.language.terms import content_terms
from assay.models.ask import ask as ask_meter
from assay.models.capability import probe
from assay.models.factory import has_model, llm_for, models_by_role
from assay.models.llm import Role
from assay.models.meter import ConnectedModel, Ledger, Meter, NoReply
from assay.prompts import fence, fence_mark
from assay.workspace.facade import Workspace

NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?")
COVERED = 0.6  # share of a point's terms that a statement must contain to cover it
TAGS = 3  # tags that a verdict names
WORDS, MODEL = "words", "model"  # who grades
QUALITY = tuple(
    "right exact numbers token_f1 points evidence_recall citation_precision citation_recall support label".split()
)
COST = ("rounds", "requests", "tokens", "money", "seconds")


Ask = Callable[..., Any]


class ModelGrade(BaseModel):
    model_config = ConfigDict(extra="forbid")

    right: bool
    covered: list[int] = Field(default_factory=list, max_length=100)


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
    by: str = omitted_when_empty(WORDS)  # who says whether it is right
    person: bool | None = None  # how a person graded the answer that the case gives
    given: Mapping[str, bool] = field(default_factory=dict)  # how words and model grade the same answer
    given_digest: str = omitted_when_empty("")  # of that answer
    how: str = omitted_when_empty("")  # how it was answered: mode, route, model

    @property
    def has_expected_text(self) -> bool:
        """Whether there is an answer, and an expected one to compare it with."""
        return self.outcome != Outcome.abstained and not self.metrics.keys().isdisjoint({"exact", "points"})


def answer_text(answer: Answer) -> str:
    return answer.said or " ".join(" ".join(claim.words.split()) for claim in answer.claims)


def grade(case: Case, run: Run, names: Mapping[str, str], seconds: float, how: str = "") -> Graded:
    """The grade by words. `names` are the file names of documents, by id; `seconds` is how long the answer took."""
    answer = run.answer
    assert answer is not None
    text = answer_text(answer)
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
    return Graded(case.id, case.question, case.tags, run.id, answer.outcome.value, text, expected, metrics, how=how)


def with_model_grade(case: Case, graded: Graded, found: ModelGrade) -> Graded:
    """The model's grade in the place of that by words."""
    right = _is_right(case, found)
    metrics = {
        **graded.metrics,
        "right": float(right),
        "label": float((graded.outcome == Outcome.answered) == right),
        **({"points": len(set(found.covered)) / len(case.points)} if case.points else {}),
    }
    return replace(graded, metrics=metrics, by=MODEL)


def with_person_grade(case: Case, graded: Graded, found: ModelGrade | None) -> Graded:
    """How a person, the words and the model (`found`) grade the answer that the case gives."""
    matched = match(case, case.given) if case.grade is not None else {}
    if "right" not in matched:
        return replace(graded, person=None, given={}, given_digest="")
    by_model = {} if found is None else {MODEL: _is_right(case, found)}
    given = {WORDS: bool(matched["right"])} | by_model
    return replace(graded, person=case.grade, given=given, given_digest=digest(case.given))


def match(case: Case, text: str) -> dict[str, float]:
    """How far a text says what the case expects, by its words."""
    found: dict[str, float] = {}
    if case.answer:
        exact, numbers = holds(text, case.answer), numbers_match(text, case.answer)
        found |= {"right": float(exact or numbers), "exact": float(exact), "token_f1": token_f1(text, case.answer)}
        if NUMBER.search(case.answer):
            found["numbers"] = float(numbers)
    if case.points:
        covered = mean([float(covers(text, point)) for point in case.points])
        found |= {"points": covered, "right": min(found.get("right", 1.0), float(covered == 1.0))}
    return found


def _is_right(case: Case, found: ModelGrade) -> bool:
    """A model's grade; nothing is right that leaves out a point."""
    return found.right and len(set(found.covered)) == len(case.points)


def _correctness(case: Case, answer: Answer, text: str) -> dict[str, float]:
    abstained = answer.outcome is Outcome.abstained
    if case.abstain:
        return {"right": float(abstained), "abstention": float(abstained)}
    found = match(case, "" if abstained else text)
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
    gold = set(case.pages) or {each for each in case.documents if each != "?"}
    seen, shown = (
        {names.get(of.doc_id, "") + (f":{of.page}" if case.pages else "") for of in (each.passage for each in those)}
        for those in (run.evidence, cited)
    )
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


async def connect_judge(opened: Workspace) -> AskModel:
    """Asks the model that the settings name for the role `check`, through the product's prompts and parser."""
    settings = opened.settings
    if not has_model(settings):
        raise UserError("There is no model to judge: set `llm_base_url` and `llm_model`.")
    opened.context.check_model_consent()
    llm = llm_for(settings, models_by_role(settings)[Role.check][0])
    can = await probe(llm, settings.llm_timeout)
    window = settings.llm_window or can.window
    role_model = RoleModel(Role.check.value, llm.name, can.tools, can.schema, can.json, window, small=False)
    models = {Role.check: (ConnectedModel(llm, role_model),)}
    meter = Meter(models, lambda _: None, lambda _: None, Ledger(), timeout=settings.llm_timeout)
    return functools.partial(ask_meter, meter)


def judge_on_demand(opened: Workspace) -> AskModel:
    """The same, connected at the first question: where everything is graded, the endpoint may be gone."""
    connected: AskModel | None = None
    connecting = asyncio.Lock()

    async def ask(role: Role, name: str, kind: type[Any], build_prompt: Callable[[int], Any], **more: Any) -> Any:
        nonlocal connected
        async with connecting:
            connected = connected or await connect_judge(opened)
        return await connected(role, name, kind, build_prompt, **more)

    return ask


async def grade_by_model(ask: Ask, case: Case, answer: str) -> ModelGrade | None:
    """The model's grade; None if the case says nothing about what an answer says, or if no usable reply came."""
    if not answer or case.abstain or not case.expects_text:
        return None
    mark = fence_mark(case.id)
    points = [f"{number}. {point}" for number, point in enumerate(case.points, 1)]
    expected = "\n".join(filter(None, (case.answer, *points)))
    values = {
        "question": fence(mark, "question", case.question),
        "expected": fence(mark, "expected", expected),
        "answer": fence(mark, "answer", answer),
    }

    def check(found: ModelGrade) -> str:
        known = set(range(1, len(points) + 1))
        return "" if known.issuperset(found.covered) else f"covered has numbers that no point has: use {sorted(known)}"

    reply = await ask(Role.check, "grade", ModelGrade, lambda _: values, check=check, max_tokens=300)
    return None if isinstance(reply, NoReply) else reply[0]


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
    return Estimate(mean(values), *mean_interval(values), len(values))


def summarise(graded: Sequence[Graded]) -> dict[str, Estimate]:
    """Each metric over the cases that it applies to."""
    names = [name for name in (*QUALITY, "abstention", *COST) if any(name in each.metrics for each in graded)]
    return {name: estimate_metric(name, graded) for name in names}


def estimate_metric(name: str, graded: Sequence[Graded]) -> Estimate:
    return estimate([each.metrics[name] for each in graded if name in each.metrics])


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a grader and people call the same answers right, with the 95 % interval of the share. `kappa` is 0 at chance
    and 1 at full agreement; None if both call everything the same."""

    n: int
    same: int
    low: float
    high: float
    kappa: float | None


def agreement(graded: Sequence[Graded]) -> dict[str, Agreement]:
    """For each grader, its agreement with people on the answers that the cases give."""
    found: dict[str, Agreement] = {}
    for grader in (WORDS, MODEL):
        pairs = [
            (each.given[grader], each.person) for each in graded if each.person is not None and grader in each.given
        ]
        if pairs:
            alike = estimate([float(own == person) for own, person in pairs])
            own, person = mean([float(one) for one, _ in pairs]), mean([float(bool(two)) for _, two in pairs])
            chance = own * person + (1 - own) * (1 - person)
            kappa = (alike.mean - chance) / (1 - chance) if chance < 1 else None
            found[grader] = Agreement(alike.n, round(alike.mean * alike.n), alike.low, alike.high, kappa)
    return found


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
    better_tags: Mapping[str, int] = field(default_factory=dict)  # of those in `better`, the most frequent first


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
    won = [two for one, two in judged if two.metrics["right"] > one.metrics["right"]]
    better = tuple(two.question for two in won)
    worse = tuple(two.question for one, two in judged if two.metrics["right"] < one.metrics["right"])
    return Comparison(
        len(pairs),
        summarise([one for one, _ in pairs]),
        summarise([two for _, two in pairs]),
        differences,
        better,
        worse,
        len(judged) - len(better) - len(worse),
        dict(Counter(tag for two in won for tag in two.tags).most_common()),
    )


def result_words(graded: Sequence[Graded]) -> str:
    """One evaluation in plain words: what was right, and what the rest got."""
    judged = [each for each in graded if "right" in each.metrics]
    if not judged:
        return "No case says what a right answer is, so none is called right or wrong."
    wrong = [each for each in judged if not each.metrics["right"]]
    silent = sum(each.outcome == Outcome.abstained for each in wrong)
    rest = f" {silent} got no answer, {len(wrong) - silent} a wrong or incomplete one." if wrong else ""
    return f"{len(judged) - len(wrong)} of {len(judged)} questions were answered as expected.{rest}"


def verdict(found: Comparison, first: str, second: str) -> str:
    """The comparison in plain words: is the second one worth its cost?"""
    judged = found.same + len(found.better) + len(found.worse)
    if not judged:
        return "No case says what a right answer is, so there is no verdict."
    enough = f"For {100 * found.first['right'].mean:.0f} % of your questions {first} is enough."
    neither = round(judged * (1 - found.first["right"].mean)) - len(found.better)
    tags = ", ".join(f"{tag}: {count}" for tag, count in list(found.better_tags.items())[:TAGS])
    wins = f" {second} alone is right on {len(found.better)}{f' ({tags})' if tags else ''}." if found.better else ""
    loses = f" {first} alone is right on {len(found.worse)}." if found.worse else ""
    neither_right = f" Neither is right on {neither}." if neither else ""
    ratio, unit = _cost(found)
    takes = f"{second} takes {ratio:.1f} times the {unit} of {first}."
    cost = takes if unit else f"Neither {first} nor {second} asks a model."
    gain = found.differences.get("right", Estimate(0.0, 0.0, 0.0, 0))
    winner, sign = (second, 1) if gain.mean >= 0 else (first, -1)
    low, high = sorted((100 * sign * gain.low, 100 * sign * gain.high))
    if gain.low > 0 or gain.high < 0:
        words = f"{winner} is right more often, by {abs(100 * gain.mean):.0f} points ({low:.0f} to {high:.0f})."
    else:
        words = f"No difference in right answers is shown ({100 * gain.low:+.0f} to {100 * gain.high:+.0f} points)."
    worth = ""
    if gain.low <= 0 and ratio > 1:
        worth = f" On these questions {second} is not shown to be worth its cost."
    elif gain.low <= 0 and unit != "tokens":  # seconds vary by themselves
        worth = f" On these questions {second} is not shown to add anything."
    sentences = f"{enough}{wins}{loses}{neither_right} {words} {cost}{worth}"
    return re.sub(r"(?<=\. )[a-z]", lambda start: start[0].upper(), sentences)


def _cost(found: Comparison) -> tuple[float, str]:
    """How many times as much the second one takes, and of what: tokens, or seconds where no model is asked."""
    for name in ("tokens", "seconds"):
        one, two = found.first.get(name), found.second.get(name)
        if one and two and one.mean > 0 and two.mean > 0:
            return two.mean / one.mean, name
    return 1.0, ""
