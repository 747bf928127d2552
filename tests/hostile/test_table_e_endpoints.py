"""Errors of endpoints and processes, and models that know it all: a test for each, over the sample corpus and real HTTP."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import forked
import pytest
from doubles import (
    ChatServer,
    EndpointFault,
    FaultServer,
    Script,
    direct,
    enough,
    keeps,
    no_calls,
    one_step,
    research,
    says,
    supported,
    writes,
)
from gateway import QUESTION, run_with, script, told
from hostile_runs import KEY, asked, door, kept, of, resumed, same_words, secret, sound

from assay.core.codec import dumps
from assay.core.errors import ModelError
from assay.core.events import Event, Failed, Route
from assay.core.run import Run
from assay.core.types import Outcome
from assay.store.database import Store
from assay.store.runs import budgets
from assay.workspace.context import WorkspaceContext
from assay.workspace.facade import Workspace
from assay.workspace.services import ask

# --- endpoints and processes ----------------------------------------------------------------------------------------

STATED = "For how many minutes has the alarm waited?"  # one sentence says it
PASSING = (
    EndpointFault.refuse,
    EndpointFault.hang_up,
    EndpointFault.reset_mid_body,
    EndpointFault.limited_fraction,
    EndpointFault.status_503,
    EndpointFault.html,
)

pytestmark = pytest.mark.long
TROUBLE = {
    "down": EndpointFault.refuse,
    "slow": EndpointFault.hang,
    "dripping": EndpointFault.drip,
    "rate-limited": EndpointFault.limited_one,
    "of the wrong shape": EndpointFault.html,
}


@pytest.mark.fake_clock
@pytest.mark.parametrize("fault", PASSING, ids=str)
async def test_an_endpoint_that_fails_once_is_asked_again_within_the_deadline(filled: Workspace, fault: EndpointFault):
    async with FaultServer(script().answer, fault, at="weigh", times=1) as server:
        ended = await asked(door(filled, server.url, llm_timeout=20.0), QUESTION)
    assert server.fault_count == 1 and ended.run.answer and ended.run.answer.claims
    assert not of(ended.run, Failed)


@pytest.mark.fake_clock
@pytest.mark.parametrize("trouble", TROUBLE)
async def test_an_endpoint_down_slow_rate_limited_or_of_the_wrong_shape_ends_the_run_typed_and_resumable(
    filled: Workspace, trouble: str
):
    async with FaultServer(script().answer, TROUBLE[trouble], at="write") as server:
        ended = await asked(door(filled, server.url, llm_timeout=2.0, budget_run_seconds=30.0), QUESTION)
        assert isinstance(ended.last, Failed) and ended.last.error in ("ModelError", "Late"), ended.last
        assert "\n" not in ended.last.detail and server.url in ended.last.detail
        assert ended.seconds < 30.0 + 2.0 and ended.run.evidence
        assert not kept(ended, filled) + secret(ended)
        before = server.counts.copy()
        server.fault = None
        again = await resumed(door(filled, server.url), ended.run)
    assert again.run.answer and again.run.answer.claims and not sound(again.run, filled)
    assert server.counts - before == {"write": 1, "check": 1}  # and nothing that was recorded


@pytest.mark.fake_clock
async def test_an_endpoint_that_is_down_before_anything_is_known_of_it_is_said_in_one_line(filled: Workspace):
    """What it can do is found out before a run is begun; so there is none to resume, and nothing is lost."""
    async with FaultServer(script().answer, EndpointFault.refuse) as server:
        with pytest.raises(ModelError) as error:
            await asked(door(filled, server.url, probed=None, llm_timeout=2.0), QUESTION)
        assert "\n" not in str(error.value) and server.url in str(error.value) and KEY not in str(error.value)
        server.fault = None
        ended = await asked(door(filled, server.url, probed=None), QUESTION)
    assert ended.run.answer and ended.run.answer.claims


@pytest.mark.fake_clock
async def test_an_endpoint_that_is_slower_than_the_time_there_is_leaves_an_answer_that_is_quoted(filled: Workspace):
    async with FaultServer(script().answer, EndpointFault.hang, at="write") as server:
        ended = await asked(door(filled, server.url, llm_timeout=60.0, budget_run_seconds=6.0), STATED)
    assert ended.seconds < 6.0 + 2.0
    assert ended.run.answer and ended.run.answer.claims and all(claim.quote for claim in ended.run.answer.claims)
    assert not sound(ended.run, filled)


@pytest.mark.kill
async def test_a_process_that_ends_after_any_event_is_resumed_and_nothing_recorded_is_requested_again(
    small: Workspace, monkeypatch: pytest.MonkeyPatch
):
    question = "How high may the water behind the Varn dam stand?"
    model = Script(
        route=research(),
        plan=one_step(question),
        weigh=keeps("may stand at 12 metres"),
        judge=enough(),
        write=writes("The water behind the Varn dam may stand at 12 metres. [{0}]"),
        check=supported(),
    )
    seen: list[str] = []

    def answer(request: dict[str, Any]) -> Any:
        seen.append(dumps(request["messages"]))
        return model.answer(request)

    with ChatServer(answer) as server:
        place = door(small, server.url)
        whole = await asked(place, question)
        assert whole.run.answer and whole.run.answer.claims
        for length in range(1, len(whole.run.events)):
            seen.clear()
            run = await begun(place, question, length, monkeypatch)
            assert len(run.events) == length
            again = await resumed(door(small, server.url), run)
            assert again.run.events[:length] == run.events, whole.run.kinds[length - 1]
            assert same_words(again.run, whole.run), whole.run.kinds[length - 1]
            assert len(seen) == len(set(seen)), whole.run.kinds[length - 1]
            assert not kept(again, small)


class Died(BaseException):
    """The end of a process, as far as a test can have it without one."""


async def begun(opened: Workspace, question: str, length: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of which so many events are on disk when it dies, whatever it was about to do with them."""
    record, one_transaction = ask.record, Store.one_transaction
    on_disk: list[str] = []
    together: list[bool] = []

    def until_it_dies(place: WorkspaceContext, run: Run, event: Event, store: Store | None = None) -> Run:
        longer = record(place, run, event, store)
        on_disk.append(run.id)
        if len(on_disk) == length and not together:
            raise Died
        return longer

    @contextmanager
    def flushed_and_dies(store: Store) -> Iterator[None]:
        """A reply and its settlement are on disk together."""
        together.append(True)
        with one_transaction(store):
            yield
        together.clear()
        if len(on_disk) == length:
            raise Died

    with monkeypatch.context() as patched, pytest.raises(Died):
        patched.setattr(ask, "record", until_it_dies)
        patched.setattr(Store, "one_transaction", flushed_and_dies)
        await asked(opened, question)
    return opened.questions.run(on_disk[0])


ASKING = """
import asyncio, sys
from assay.workspace.facade import open_workspace
from assay.core.events import Mode

async def main():
    with open_workspace(sys.argv[1], llm_base_url=sys.argv[2], llm_model="scripted", llm_api_key=sys.argv[3]) as opened:
        async for run, event in opened.ask(sys.argv[4], mode=Mode.quick):
            print(run.id, flush=True)
asyncio.run(main())
"""


def test_a_process_killed_with_a_call_in_flight_is_resumed_and_the_call_is_repeated_and_counted(filled: Workspace):
    with FaultServer(script().answer, EndpointFault.hang, at="write") as server:
        place = door(filled, server.url)
        command = [sys.executable, "-c", ASKING, str(filled.path), server.url, KEY, QUESTION]
        child = forked.Process(command, stdout=forked.PIPE, text=True)
        try:
            began = time.monotonic()
            while not server.fault_count and child.poll() is None and time.monotonic() - began < 120:
                time.sleep(0.02)
        finally:
            child.kill()
            printed, _ = child.communicate()
        assert server.fault_count, "it never came to write"
        run = filled.questions.run(printed.split()[-1])
        assert run.answer is None and run.evidence and not run.failed
        before, server.fault = server.counts.copy(), None
        again = asyncio.run(resumed(place, run))
    assert again.run.events[: len(run.events)] == run.events
    assert again.run.answer and again.run.answer.claims and not kept(again, filled) + sound(again.run, filled)
    assert server.counts - before == {"write": 1, "check": 1}  # what was in flight, and what comes after it
    paid = budgets.spent_by_run(filled.store, run.id)
    tried = 3  # requests: two to measure it as a judge, and one to see whether it takes pictures
    assert paid.calls == again.run.usage.calls + 1 + tried  # both times it was sent
    assert paid.tokens_in + paid.tokens_out > again.run.usage.tokens_in + again.run.usage.tokens_out


# --- a model that knows it all --------------------------------------------------------------------------------------


async def test_a_model_that_answers_a_factual_question_without_searching_is_made_to_search(filled: Workspace):
    model = script(route=direct("everybody knows that"), judge=enough())
    ended, server = await run_with(filled, model)
    run = ended.run
    assert run.route is not Route.direct and run.calls and "direct" not in server.counts
    assert run.answer and run.answer.outcome is not Outcome.direct and run.answer.claims
    assert not run.answer.said


async def test_a_model_that_answers_a_factual_question_without_searching_abstains_where_nothing_is_found(
    filled: Workspace,
):
    question = "What is the boiling point of tungsten at Brackwell?"
    model = Script(
        route=direct("general knowledge"),
        plan=one_step(question),
        weigh=keeps("boiling point"),
        decide=no_calls("it boils at 5,555 degrees, no search is needed"),
        write=writes("It boils at 5,555 degrees. [{0}]"),
        direct=says("It boils at 5,555 degrees."),
    )
    with ChatServer(model.answer) as server:
        run = (await asked(door(filled, server.url), question)).run
    assert run.calls and run.answer and run.answer.outcome is Outcome.abstained
    assert "5,555" not in dumps([run.answer.said, [claim.words for claim in run.answer.claims], list(run.answer.gaps)])


async def test_what_a_model_says_without_searching_is_labelled_as_not_from_the_documents(filled: Workspace):
    question = "please sing a lullaby for babies"
    model = Script(route=direct(), direct=says("Sleep, little one."))
    with ChatServer(model.answer) as server:
        run = (await asked(door(filled, server.url), question)).run
        assert run.answer and run.answer.outcome is Outcome.direct
        assert run.answer.said == "Sleep, little one." and not run.answer.claims
        assert "not from your documents" in told(run, filled).lower()
        off = Script(route=direct(), weigh=keeps("lullaby"), decide=no_calls(), plan=one_step(question))
        server.answer = off.answer
        run = (await asked(door(filled, server.url, llm_general=False), question)).run
    assert run.calls and run.answer and run.answer.outcome is Outcome.abstained and not run.answer.said


async def test_a_model_that_makes_no_call_has_the_question_searched_in_its_own_words(filled: Workspace):
    """Its plan asks for nothing, and it would rather write at once."""
    model = script(plan=one_step("?", "?"), decide=no_calls("I know this"))
    ended, _ = await run_with(filled, model)
    assert ended.run.calls[0].tool == "search" and ended.run.calls[0].arguments["query"] == QUESTION
