"""Measures how well a model judges: it rules on two dozen claims that ship with Assay, half of them false, asked like
the claims of a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from assay import prompts
from assay.answer.checking.judge import JudgeRequest, by_model
from assay.answer.claims import Sources
from assay.core.codec import digest
from assay.core.errors import ModelError
from assay.core.events import ModelReplied, RoleModel
from assay.core.types import Claim, Evidence, Passage, Quote, Verdict
from assay.models.ask import ask
from assay.models.capability import DEFAULT_WINDOW, Capability
from assay.models.llm import LLM, Role
from assay.models.meter import ConnectedModel, Ledger, Meter, NoReply
from assay.prompts import fence_mark

# Of twelve each. A false claim that passes reaches the reader as proven; one slip may be chance.
MOST_FALSE_PASSED = 1
MOST_TRUE_LOST = 3  # a true claim that is refused is revised and judged once more, so it costs less
TOGETHER, FEW = 12, 6  # claims per request where the window allows it; few if no tool calls suggest a slow, small model
FRAME, EACH = 1600, 400  # tokens of a request without claims, and of one claim with its passage and ruling
UNKNOWN = Capability(tools=False, schema=False, json=False, window=DEFAULT_WINDOW)


@dataclass(frozen=True, slots=True)
class TrialClaim:
    """A claim of the trial, its only passage, and whether it follows from it."""

    passage: str
    claim: str
    label: str
    kind: str

    @property
    def is_true(self) -> bool:
        return self.label == Verdict.supported


@dataclass(frozen=True, slots=True)
class JudgeTrial:
    """The error rates of a judge: the share of true claims that it refused, and of false ones that it called supported,
    among `n` claims. `sure` is False if the endpoint was too slow or its replies were unusable: then it is measured
    again later. `form` names the claims and the prompt that were used."""

    true_lost: float
    false_passed: float
    n: int
    capable: bool
    note: str = ""
    sure: bool = True
    tokens: int = 0
    form: str = ""


@cache
def trial_claims() -> tuple[TrialClaim, ...]:
    data = (resources.files("assay.answer.checking") / "data" / "judge_trial.jsonl").read_text(encoding="utf-8")
    return tuple(TrialClaim(**json.loads(line)) for line in data.splitlines())


@cache
def trial_form() -> str:
    """Changes with the claims and with the prompt: a result for another form is out of date."""
    return digest(f"{prompts.template('check')}{trial_claims()}")[:12]


async def measure_judge(
    llm: LLM, seconds: float, can: Capability = UNKNOWN, ledger: Ledger | None = None
) -> JudgeTrial:
    """The error rates of the model behind `llm` as a judge. Stops as soon as it cannot count as capable any more."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    role_model = RoleModel(Role.check.value, llm.name, can.tools, can.schema, can.json, can.window)
    replies: list[ModelReplied] = []
    meter = Meter(
        models={Role.check: (ConnectedModel(llm, role_model),)},
        record=replies.append,
        recorded_reply=lambda _: None,
        ledger=ledger or Ledger(),
        seconds=lambda _: end - clock(),
        timeout=seconds,
    )
    ruled: list[tuple[TrialClaim, Verdict | None]] = []
    claims, note = trial_claims(), ""
    together = max(1, min(TOGETHER if can.tools else FEW, (can.window - FRAME) // EACH))
    while len(ruled) < len(claims) and not note and not _is_lost(ruled):
        group = claims[len(ruled) : len(ruled) + together]
        try:
            verdicts = await _rule(meter, group)
        except ModelError as error:
            note = str(error)
            break
        if isinstance(verdicts, NoReply):
            note = verdicts.detail
        else:
            ruled += zip(group, verdicts, strict=True)
    return _result(ruled, note, sum(each.usage.tokens_in + each.usage.tokens_out for each in replies))


async def _rule(meter: Meter, group: Sequence[TrialClaim]) -> list[Verdict | None] | NoReply:
    """The model's verdicts, asked for and read as those of a run are."""
    failed: list[NoReply] = []

    async def ask_model(*arguments: Any, **options: Any) -> Any:
        reply = await ask(meter, *arguments, **options)
        if isinstance(reply, NoReply):
            failed.append(reply)
        return reply

    evidence = [_evidence(each) for each in group]
    claims = tuple(Claim(each.claim, (own.key,), Verdict.partial) for each, own in zip(group, evidence, strict=True))
    judged = await by_model(
        JudgeRequest(claims), evidence, Sources(), ask_model, mark=fence_mark("trial of a judge"), documents=()
    )
    return failed[0] if failed else [claim.verdict for claim in judged.claims]


def _evidence(of: TrialClaim) -> Evidence:
    key, size = digest(of.claim)[:8], len(of.passage)
    passage = Passage(f"trial {key}", f"trial {key}", of.passage, 0, size)
    return Evidence(key, passage, Quote(passage.doc_id, 0, size, of.passage), 10.0, "")


def _lost(ruled: Sequence[tuple[TrialClaim, Verdict | None]]) -> list[TrialClaim]:
    return [each for each, verdict in ruled if each.is_true and verdict is not Verdict.supported]


def _passed(ruled: Sequence[tuple[TrialClaim, Verdict | None]]) -> list[TrialClaim]:
    return [each for each, verdict in ruled if not each.is_true and verdict is Verdict.supported]


def _is_lost(ruled: Sequence[tuple[TrialClaim, Verdict | None]]) -> bool:
    return len(_lost(ruled)) > MOST_TRUE_LOST or len(_passed(ruled)) > MOST_FALSE_PASSED


def _result(ruled: Sequence[tuple[TrialClaim, Verdict | None]], note: str, tokens: int) -> JudgeTrial:
    true = sum(each.is_true for each, _ in ruled)
    wrong = _lost(ruled) + _passed(ruled)
    if wrong and not note:
        note = f"wrong about: {', '.join(each.kind.replace('_', ' ') for each in wrong)}"
    decided = len(ruled) == len(trial_claims()) or _is_lost(ruled)
    return JudgeTrial(
        true_lost=round(len(_lost(ruled)) / true, 3) if true else 1.0,
        false_passed=round(len(_passed(ruled)) / (len(ruled) - true), 3) if len(ruled) > true else 1.0,
        n=len(ruled),
        capable=decided and not _is_lost(ruled),
        note=note.rstrip("."),
        sure=decided,
        tokens=tokens,
        form=trial_form(),
    )


def is_small(size: str, role: Role, can: Capability, trial: JudgeTrial | None) -> bool:
    """Unless the settings say: a judge that failed its trial, and what neither calls tools nor judges well."""
    able = trial is None or trial.capable if role is Role.check else can.tools or bool(trial and trial.capable)
    return size == "small" or (size == "auto" and not able)


def describe_trial(trial: JudgeTrial) -> list[str]:
    """The error rates of a judge and their consequence, one line each."""
    if not trial.sure:
        return [
            f"As a judge: not measured ({trial.note}). {SMALL} `assay doctor` measures it again.",
        ]
    rates = f"refuses {trial.true_lost:.0%} of true claims and passes {trial.false_passed:.0%} of false ones"
    measured = f"As a judge: {rates} ({trial.n} claims, {trial.tokens:,} tokens). {LARGE if trial.capable else SMALL}"
    return [measured, f"Note: {trial.note}."] if trial.note else [measured]


LARGE = "Its word settles whether a statement follows from what it cites."
SMALL = "Its word settles nothing: statements are delivered only as quotations, or word for word."
