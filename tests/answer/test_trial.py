"""How well a model judges is measured with the claims that ship with Assay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from doubles.protocol import ModelOutput, Request, reply_in_process
from doubles.trial_replies import claims_of_trial, trial_rulings

from assay.core.codec import from_json, to_json
from assay.core.errors import ModelError
from assay.models.capability import Capability
from assay.models.llm import Prompt, Reply
from assay.workspace.judge_trial import (
    MOST_FALSE_PASSED,
    MOST_TRUE_LOST,
    JudgeTrial,
    describe_trial,
    measure_judge,
    trial_claims,
    trial_form,
)

ABLE = Capability(tools=True, schema=True, json=True, window=16_000)


class Judge:
    """A model that answers each request with a function of it."""

    name = "judge"

    def __init__(self, answer: Callable[[Request], ModelOutput]) -> None:
        self.answer = answer
        self.asked: list[Request] = []

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        def noted(request: Any) -> ModelOutput:
            self.asked.append(request)
            return self.answer(request)

        return await reply_in_process(noted, prompt)


def rules(request: Request, verdict: Callable[[str], str]) -> ModelOutput:
    """Right rulings, with each verdict changed."""
    right = trial_rulings(request, capable=True)
    assert right is not None
    return {"rulings": [each | {"verdict": verdict(each["verdict"])} for each in right["rulings"]]}


def is_right(request: Request) -> ModelOutput:
    return rules(request, lambda verdict: verdict)


async def test_a_judge_that_is_always_right_is_capable():
    judge = Judge(is_right)
    trial = await measure_judge(judge, 20, ABLE)
    assert (trial.true_lost, trial.false_passed, trial.n, trial.capable, trial.sure) == (0.0, 0.0, 24, True, True)
    assert len(judge.asked) == 2
    assert trial.tokens > 1000 and trial.note == "" and trial.form == trial_form()


async def test_a_judge_that_calls_everything_supported_is_not_capable_and_is_not_asked_twice():
    judge = Judge(lambda request: rules(request, lambda _: "supported"))
    trial = await measure_judge(judge, 20, ABLE)
    assert (trial.true_lost, trial.false_passed, trial.capable, trial.sure) == (0.0, 1.0, False, True)
    assert len(judge.asked) == 1 and trial.n == 12
    assert trial.note.startswith("wrong about: ")


@pytest.mark.parametrize("verdict", ["unsupported", "partial", "contradicted"])
async def test_a_judge_that_refuses_everything_is_not_capable(verdict: str):
    trial = await measure_judge(Judge(lambda request: rules(request, lambda _: verdict)), 20, ABLE)
    assert (trial.true_lost, trial.false_passed, trial.capable, trial.sure) == (1.0, 0.0, False, True)


@pytest.mark.parametrize("said", ["I would rather talk about the weather.", "", '{"rulings": 3}', "{" * 500])
async def test_a_judge_that_writes_garbage_is_not_capable_and_will_be_measured_again(said: str):
    trial = await measure_judge(Judge(lambda _: said), 20, ABLE)
    assert not trial.capable and not trial.sure and trial.n == 0
    assert trial.note and "measures it again" in " ".join(describe_trial(trial))


async def test_a_judge_whose_endpoint_fails_is_not_capable_and_will_be_measured_again():
    def fails(_: Request) -> ModelOutput:
        raise ModelError("The endpoint is down.")

    trial = await measure_judge(Judge(fails), 20, ABLE)
    assert (trial.capable, trial.sure, trial.note) == (False, False, "The endpoint is down")


async def test_a_judge_that_rules_on_only_a_few_claims_is_not_capable():
    def lazy(request: Request) -> ModelOutput:
        right = trial_rulings(request, capable=True)
        assert right is not None
        return {"rulings": right["rulings"][:3]}

    trial = await measure_judge(Judge(lazy), 20, ABLE)
    assert not trial.capable


@pytest.mark.parametrize(
    ("lost", "passed", "capable"),
    [(MOST_TRUE_LOST, MOST_FALSE_PASSED, True), (MOST_TRUE_LOST + 1, 0, False), (0, MOST_FALSE_PASSED + 1, False)],
)
async def test_the_thresholds_are_where_they_are_said_to_be(lost: int, passed: int, capable: bool):
    """Errors on the first claims, true and false, that the judge sees."""
    left = Counter(supported=lost, other=passed)

    def errs(verdict: str) -> str:
        kind = "supported" if verdict == "supported" else "other"
        if left[kind] == 0:
            return verdict
        left[kind] -= 1
        return "unsupported" if kind == "supported" else "supported"

    trial = await measure_judge(Judge(lambda request: rules(request, errs)), 20, ABLE)
    assert trial.capable is capable and trial.sure


async def test_a_small_window_takes_more_requests_and_none_is_cut():
    judge = Judge(is_right)
    trial = await measure_judge(judge, 20, Capability(tools=False, schema=False, json=True, window=4096))
    assert trial.capable and len(judge.asked) > 2
    shown = [each for request in judge.asked for each in claims_of_trial(request).values()]
    assert len(shown) == len(set(shown)) == 24
    text = "\n".join(message["content"] for request in judge.asked for message in request["messages"])
    assert all(line in text for each in trial_claims() for line in each.passage.splitlines())


def test_half_of_the_claims_are_false_and_every_kind_of_false_claim_occurs_once():
    true = [each for each in trial_claims() if each.is_true]
    false = Counter(each.kind for each in trial_claims() if not each.is_true)
    assert len(true) == 12 and len(false) == 12 and set(false.values()) == {1}
    assert {each.label for each in trial_claims()} == {"supported", "unsupported", "contradicted"}
    half = trial_claims()[:12]
    assert sum(each.is_true for each in half) == 6


def test_the_result_can_be_stored():
    trial = JudgeTrial(0.083, 0.0, 24, True, "wrong about: count", True, 4000, "f")
    assert from_json(JudgeTrial, to_json(trial)) == trial


def test_the_error_rates_and_their_consequence_are_said():
    able, unable = JudgeTrial(0.083, 0.0, 24, True, tokens=4100), JudgeTrial(0.0, 1.0, 12, False, "wrong about: scope")
    assert "refuses 8% of true claims and passes 0% of false ones" in describe_trial(able)[0]
    assert "settles whether" in describe_trial(able)[0] and "4,100 tokens" in describe_trial(able)[0]
    assert "settles nothing" in describe_trial(unable)[0] and describe_trial(unable)[1] == "Note: wrong about: scope."
