"""Every way in which an endpoint goes wrong, in every role: a run ends in an outcome, in time, with all it had; and goes on."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from doubles import (
    ChatServer,
    EndpointFault,
    FaultServer,
    Script,
    calls,
    drops,
    enough,
    keeps,
    missing,
    one_step,
    research,
    supported,
    writes,
)
from hostile_runs import KEY, Ended, asked, door, kept, of, resumed, same_words, secret, sound, typed_end

from assay.core.codec import dumps
from assay.core.events import Answered, Drafted, Failed, Gathered, ModelReplied, Stopped, ToolRan
from assay.core.types import Outcome
from assay.workspace.facade import Workspace

QUESTION = "How high may the water behind the Varn dam stand?"
SECOND = "cracks crest closed"
ROLES = ("route", "decide", "weigh", "write", "check")
STRIDE = 1 if os.environ.get("ASSAY_SOAK") else 3
TIMEOUT, DEADLINE, GRACE = 2.5, 15.0, 2.0
pytestmark = pytest.mark.fake_clock  # timeouts strike when the server waits, not when the machine is busy

# What is wrong with the reply alone leaves nothing to fail: the model is told, and after that the rules take over.
ABOUT_THE_REPLY = frozenset(
    fault
    for fault in EndpointFault
    if fault.name.startswith(("arguments_", "usage_"))
    or fault.name
    in {"too_long", "prose", "wrong_types", "extra_fields", "cut_off", "unknown_tool", "parallel_calls", "not_utf8"}
) - {EndpointFault.arguments_huge}  # five megabytes are not read to their end


def well(request_of: list[str] | None = None):
    """A model with which the question passes through every role, in as few requests as can be. One claim is left open by the
    rules, so that it has to be checked by a model."""
    script = Script(
        route=research(),
        plan=one_step(QUESTION, "water Varn dam metres"),
        weigh=keeps("may stand at 12 metres", "begins when the water"),
        judge=lambda text, schema: (enough() if SECOND in text else missing("why it may not"))(text, schema),
        decide=calls("search", query=SECOND),
        write=writes(
            "The water behind the Varn dam may stand at 12 metres. [{12 metres}]",
            "Cracks in the crest keep the water at the Varn dam at 12 metres. [{12 metres}]",
        ),
        revise=drops(),
        check=supported(),
    )

    def answer(request: dict[str, Any]) -> Any:
        if request_of is not None:
            request_of.append(dumps(request["messages"]))
        return script.answer(request)

    return answer


@dataclass(frozen=True, slots=True)
class Case:
    fault: EndpointFault
    role: str
    ended: Ended
    again: Ended | None  # after the endpoint was mended, where the run had failed
    fault_count: int
    answered: tuple[str, ...]  # what was asked of the healthy model, over both
    lost: tuple[str, ...]  # what was wrong with the record when the run had ended

    def __str__(self) -> str:
        return f"{self.fault} at {self.role}"


async def case(
    opened: Workspace,
    fault: EndpointFault,
    role: str,
    patience: float = TIMEOUT,
    deadline: float = DEADLINE,
) -> Case:
    answered: list[str] = []
    async with FaultServer(well(answered), fault, at=role) as server:
        place = door(opened, server.url, llm_timeout=patience, budget_run_seconds=deadline)
        ended = await asked(place, QUESTION)
        lost = kept(ended, opened)
        again, fault_count = None, server.fault_count
        if ended.failed:
            server.fault = None
            again = await resumed(door(opened, server.url), ended.run)
        assert not server.problems, f"{fault} at {role}: {server.problems}"
        return Case(fault, role, ended, again, fault_count, tuple(answered), tuple(lost))


async def healthy(opened: Workspace) -> Ended:
    async with ChatServer(well()) as server:
        return await asked(door(opened, server.url), QUESTION)


def wrong_with(each: Case, opened: Workspace, plain: Ended) -> list[str]:
    """What does not hold of one case."""
    ended, again, run = each.ended, each.again, each.ended.run
    wrong = [*typed_end(ended), *each.lost, *secret(ended)]
    if not each.fault_count:
        wrong.append("the fault was never met")
    if ended.seconds > DEADLINE + GRACE:
        wrong.append(f"it took {ended.seconds:.1f} s of {DEADLINE:g}")
    wrong += _had(run, each.role)
    if (ended.failed is None) != (each.fault in ABOUT_THE_REPLY):
        wrong.append(f"it ended in {type(ended.last).__name__}: {getattr(ended.last, 'detail', '')}")
    if ended.failed is None:
        wrong += sound(run, opened)
        if each.fault.harmless and not same_words(run, plain.run):
            wrong.append("a bill changed the answer")
        return wrong
    if again is None:
        return [*wrong, "it was not resumed"]
    wrong += typed_end(again) + kept(again, opened) + secret(again) + sound(again.run, opened)
    if again.run.events[: len(run.events)] != run.events:
        wrong.append("what was recorded is not what it went on from")
    if not same_words(again.run, plain.run):
        wrong.append("resumed, it does not say what it would have said")
    twice = [words for words, times in Counter(each.answered).items() if times > 1]
    return wrong + [f"a recorded reply was requested again: {words[-200:]}" for words in twice]


def _had(run, role: str) -> list[str]:
    """What a run must have on record by the time it comes to this role."""
    before = {"route": (), "weigh": (ToolRan,), "decide": (ToolRan, Gathered), "write": (Gathered, Stopped)}
    wanted = before.get(role, (Gathered, Stopped, Drafted))
    lost = [f"no {kind.__name__} is on record" for kind in wanted if not of(run, kind)]
    if role in ("decide", "write", "check") and not run.evidence:
        lost.append("the evidence is gone")
    return lost


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """All that anybody logs, however chatty, kept from the terminal."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.getMessage()} {record.exc_text or ''} {record.exc_info or ''}")

    chatty = [logging.getLogger(name) for name in ("httpx", "httpcore", "asyncio", "assay", "sqlalchemy")]
    before = [(each, each.level, each.propagate) for each in chatty]
    handler = Keep(logging.DEBUG)
    for each in chatty:
        each.addHandler(handler)
        each.setLevel(logging.DEBUG if each.name != "sqlalchemy" else logging.WARNING)
        each.propagate = False
    yield lines
    for each, level, propagate in before:
        each.removeHandler(handler)
        each.setLevel(level)
        each.propagate = propagate


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.long
async def test_every_fault_in_this_role_ends_in_an_outcome_in_time_with_the_evidence_kept(
    small: Workspace, role: str, logged: list[str]
):
    """`make soak` has every fault in every role; otherwise each is in one role of three."""
    plain = await healthy(small)
    assert plain.run.answer is not None and plain.run.answer.outcome is Outcome.answered
    cases = [await case(small, fault, role) for fault in list(EndpointFault)[ROLES.index(role) % STRIDE :: STRIDE]]
    wrong = [f"{each}: {words}" for each in cases for words in wrong_with(each, small, plain)]
    assert not wrong, "\n".join(wrong)
    assert logged and not [line for line in logged if KEY in line]


WAITING = (
    EndpointFault.hang,
    EndpointFault.hang_midway,
    EndpointFault.drip,
    EndpointFault.limited_one,
    EndpointFault.status_503,
)
SHORT = 4.0  # seconds of a run whose requests may take longer than it


@pytest.mark.long
@pytest.mark.parametrize("role", ROLES)
async def test_a_request_that_may_take_longer_than_the_run_ends_with_the_run(small: Workspace, role: str):
    """The rules write what the model had no time for; whoever is to write has the last quarter of the time."""
    cases = [await case(small, fault, role, patience=60.0, deadline=SHORT) for fault in WAITING]
    for each in cases:
        assert each.fault_count and not typed_end(each.ended) and not each.lost, str(each)
        assert each.ended.seconds <= SHORT + GRACE, f"{each}: {each.ended.seconds:.1f} s"
        assert not _had(each.ended.run, each.role), str(each)
        if each.ended.failed is None:
            assert not sound(each.ended.run, small), str(each)
    assert any(each.ended.run.answer for each in cases)


async def test_evidence_that_was_gathered_before_a_fault_is_what_the_rules_quote_from(small: Workspace):
    run = (await case(small, EndpointFault.prose, "write")).ended.run
    assert [event.by for event in of(run, Drafted)] == ["rules"] and run.answer
    quoted = [*run.answer.claims, *run.answer.near]
    assert quoted and all(claim.quote for claim in quoted) and not sound(run, small)


async def test_a_run_that_failed_twice_is_resumed_twice(small: Workspace):
    answered: list[str] = []
    async with FaultServer(well(answered), EndpointFault.status_500, at="weigh") as server:
        place = door(small, server.url, llm_timeout=0.6)
        first = await asked(place, QUESTION)
        second = await resumed(place, first.run)
        assert isinstance(first.last, Failed) and isinstance(second.last, Failed)
        server.at = "write"
        third = await resumed(place, second.run)
        assert isinstance(third.last, Failed)
        server.fault = None
        last = await resumed(place, third.run)
    assert isinstance(last.last, Answered) and not kept(last, small) + sound(last.run, small)
    assert len(answered) == len(set(answered)) == len(of(last.run, ModelReplied))
