from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from loopback import Kept

from assay.core.errors import ModelError, TooLong
from assay.core.events import Fallback, ModelReplied, RawToolCall, RoleModel
from assay.core.types import Usage
from assay.models.llm import Message, Prompt, Reply, Role, ToolCall
from assay.models.meter import (
    ConcurrencyLimit,
    ConnectedModel,
    Ledger,
    Meter,
    NoReply,
    StoreLedger,
    request_digest,
)
from assay.store.database import Store, open_store
from assay.store.runs import budgets
from assay.store.runs.budgets import Ceilings, SpendingReservation


@dataclass
class Fake:
    """A model that says what it is told to, or does what it is told to do."""

    say: Callable[[Prompt, float], object] = lambda prompt, seconds: "yes"
    name: str = "fake"
    pause: float = 0.0
    seen: list[Prompt] = field(default_factory=list)
    busiest: int = 0
    _busy: int = 0

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        self.seen.append(prompt)
        self._busy += 1
        self.busiest = max(self.busiest, self._busy)
        try:
            await asyncio.sleep(self.pause)
            said = self.say(prompt, seconds)
        finally:
            self._busy -= 1
        if isinstance(said, Exception):
            raise said
        return said if isinstance(said, Reply) else Reply(str(said), usage=Usage(1, 40, 10))


def metered(llm: Fake, kept: Kept | None = None, **how) -> tuple[Meter, ConnectedModel, Kept]:
    kept = kept or Kept()
    connected = ConnectedModel(llm, RoleModel("weigh", "fake"))
    return (
        Meter({Role.weigh: (connected,)}, kept.replies.append, kept.recorded_reply, **{"ledger": Ledger(), **how}),
        connected,
        kept,
    )


def asked(words: str, **how) -> Prompt:
    return Prompt((Message("user", words),), **how)


async def consult(meter: Meter, connected: ConnectedModel, words: str = "Well?", role: Role = Role.weigh):
    return await meter.consult(connected, role, "weigh", asked(words), ("d1",))


@pytest.fixture
def store(tmp_path: Path):
    opened = open_store(tmp_path / "state.db", create=True)
    yield opened
    opened.close()


def ledger_of(store: Store, run: str = "r1", price: float | None = 0.001, **most) -> StoreLedger:
    def priced(model: str, tokens_in: int, tokens_out: int) -> float | None:
        return None if price is None else price * (tokens_in + tokens_out)

    return StoreLedger(store, "ann", run, Ceilings(**most), lambda: "2024-05-17", priced)


@pytest.mark.fake_clock
async def test_a_reply_is_recorded_with_what_it_took(store):
    call = ToolCall("c1", "search", '{"query": "x"}')
    llm = Fake(lambda *_: Reply("because", (call,), "tool_calls", Usage(1, 40, 10), "fake-2"), pause=0.01)
    meter, connected, kept = metered(llm, ledger=ledger_of(store))
    reply = await consult(meter, connected)
    assert kept.replies == [reply]
    assert reply == ModelReplied(
        role="weigh",
        prompt="weigh",
        model="fake",
        request=request_digest(Role.weigh, "weigh", asked("Well?")),
        text="because",
        calls=(RawToolCall("c1", "search", '{"query": "x"}'),),
        finish="tool_calls",
        usage=Usage(1, 40, 10, 0.05, reply.usage.seconds),
        documents=("d1",),
    )
    assert reply.usage.seconds == pytest.approx(0.01)
    assert budgets.spent_by_run(store, "r1") == reply.usage


async def test_a_recorded_reply_is_never_requested_again_whatever_is_left():
    llm = Fake()
    meter, connected, kept = metered(llm)
    first = await consult(meter, connected)
    again, connected, _ = metered(llm, kept, ledger=NothingLeft(), seconds=lambda _: 0.0)
    assert await consult(again, connected) == first
    assert len(llm.seen) == 1


async def test_a_reply_is_found_again_by_all_that_was_shown_and_not_by_the_model():
    meter, connected, _ = metered(llm := Fake())
    other = ConnectedModel(llm, RoleModel("weigh", "another"))
    await consult(meter, connected)
    assert (await consult(meter, other)).model == "fake"
    for prompt in (asked("Else?"), asked("Well?", max_tokens=9), asked("Well?", form="json", schema={"a": 1})):
        await meter.consult(connected, Role.weigh, "weigh", prompt)
    await meter.consult(connected, Role.weigh, "another", asked("Well?"))
    await meter.consult(connected, Role.judge, "weigh", asked("Well?"))
    assert len(llm.seen) == 6


async def test_identical_requests_in_flight_share_one_call():
    meter, connected, kept = metered(llm := Fake(pause=0.01))
    replies = await asyncio.gather(*(consult(meter, connected) for _ in range(10)))
    assert len(llm.seen) == len(kept.replies) == 1
    assert all(reply == replies[0] for reply in replies)


async def test_an_error_is_shared_by_those_who_wait_for_the_same_reply():
    meter, connected, _ = metered(llm := Fake(lambda *_: ModelError("broken"), pause=0.01))
    replies = await asyncio.gather(*(consult(meter, connected) for _ in range(3)), return_exceptions=True)
    assert [str(each) for each in replies] == ["broken"] * 3
    assert len(llm.seen) == 1
    with pytest.raises(ModelError):
        await consult(meter, connected)
    assert len(llm.seen) == 2, "an error is not remembered"


async def test_when_the_one_who_asks_is_cancelled_one_of_those_who_wait_asks_anew():
    meter, connected, kept = metered(llm := Fake(pause=0.02))
    first, second, third = (asyncio.create_task(consult(meter, connected)) for _ in range(3))
    await asyncio.sleep(0.005)
    first.cancel()
    second_reply, third_reply = await asyncio.gather(second, third)
    assert second_reply == third_reply == kept.replies[0]
    assert first.cancelled() and len(llm.seen) == 2


async def test_one_who_waits_can_be_cancelled_without_harm_to_the_one_who_asks():
    meter, connected, _ = metered(llm := Fake(pause=0.02))
    first, second = (asyncio.create_task(consult(meter, connected)) for _ in range(2))
    await asyncio.sleep(0.005)
    second.cancel()
    assert (await first).text == "yes"
    assert second.cancelled() and len(llm.seen) == 1


async def test_no_more_requests_are_out_at_once_than_the_limit_allows():
    meter, connected, _ = metered(llm := Fake(pause=0.005), concurrency=ConcurrencyLimit(3))
    await asyncio.gather(*(consult(meter, connected, f"{n}") for n in range(12)))
    assert llm.busiest == 3


def test_a_meter_serves_one_event_loop_after_another():
    meter, connected, _ = metered(llm := Fake(pause=0.001), concurrency=ConcurrencyLimit(1))

    async def several(prefix: str) -> None:
        await asyncio.gather(*(consult(meter, connected, f"{prefix}{n}") for n in range(3)))

    asyncio.run(several("a"))
    asyncio.run(several("b"))
    assert len(llm.seen) == 6


# --- time -----------------------------------------------------------------------------------------------------------


async def test_no_request_leaves_when_the_time_is_up():
    meter, connected, kept = metered(llm := Fake(), seconds=lambda _: 0.0)
    reply = await consult(meter, connected)
    assert isinstance(reply, NoReply) and reply.why is Fallback.time
    assert not llm.seen and not kept.replies


async def test_a_role_has_its_own_time():
    meter, connected, _ = metered(Fake(), seconds=lambda role: 10.0 if role is Role.write else 0.0)
    assert isinstance(await consult(meter, connected, role=Role.write), ModelReplied)
    assert isinstance(await consult(meter, connected, role=Role.weigh), NoReply)


@pytest.mark.parametrize(("left", "given"), [(5.0, 5.0), (500.0, 20.0)])
async def test_a_request_gets_the_time_that_is_left_and_no_more_than_its_own(left, given):
    seconds: list[float] = []
    llm = Fake(lambda prompt, allowed: seconds.append(allowed) or "yes")
    meter, connected, _ = metered(llm, seconds=lambda _: left, timeout=20.0)
    await consult(meter, connected)
    assert seconds == [given]


async def test_a_failure_at_the_end_of_the_time_is_no_failure_but_the_end_of_the_time():
    left = iter([5.0, 5.0, 0.01])
    meter, connected, _ = metered(Fake(lambda *_: ModelError("did not answer")), seconds=lambda _: next(left))
    reply = await consult(meter, connected)
    assert isinstance(reply, NoReply) and reply.why is Fallback.time


async def test_waiting_for_a_turn_ends_with_the_time():
    clock = asyncio.get_running_loop().time
    end = clock() + 0.3
    meter, connected, _ = metered(
        Fake(pause=1.0), concurrency=ConcurrencyLimit(1), seconds=lambda _: end - clock(), timeout=60.0
    )
    replies = await asyncio.gather(*(consult(meter, connected, f"{n}") for n in range(3)))
    assert [reply.why for reply in replies[1:]] == [Fallback.time] * 2
    assert clock() - end < 2


async def test_a_model_that_does_not_keep_to_the_deadline_is_left():
    meter, connected, _ = metered(Fake(pause=30.0), timeout=0.05)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(ModelError, match="did not answer"):
        await consult(meter, connected)
    assert asyncio.get_running_loop().time() - begun < 2


# --- money ----------------------------------------------------------------------------------------------------------


class NothingLeft(Ledger):
    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        return NoReply(Fallback.money, "nothing is left")


@pytest.mark.parametrize(
    ("most", "why"),
    [({"run_calls": 1}, Fallback.calls), ({"run_tokens": 1200}, Fallback.tokens), ({"day_money": 1.2}, Fallback.money)],
)
async def test_a_request_that_would_pass_a_ceiling_does_not_leave(store, most, why):
    llm = Fake(lambda *_: Reply("yes", usage=Usage(1, 900, 100)))
    meter, connected, kept = metered(llm, ledger=ledger_of(store, **most))
    assert isinstance(await consult(meter, connected, "1"), ModelReplied)
    reply = await consult(meter, connected, "2")
    assert isinstance(reply, NoReply) and reply.why is why
    assert len(llm.seen) == len(kept.replies) == 1


async def test_the_money_is_reserved_before_the_request_leaves(store):
    before: list[Usage] = []
    llm = Fake(lambda *_: before.append(budgets.spent_by_run(store, "r1")) or "yes")
    meter, connected, _ = metered(llm, ledger=ledger_of(store))
    await consult(meter, connected)
    assert before[0].calls == 1 and before[0].money > 1.024 and before[0].tokens_in > 1024


async def test_a_model_without_a_price_counts_by_its_tokens(store):
    meter, connected, _ = metered(Fake(), ledger=ledger_of(store, price=None, run_money=0.01))
    assert (await consult(meter, connected)).usage.money == 0.0
    assert budgets.spent_by_run(store, "r1").tokens_in == 40


async def test_a_prompt_turned_away_unread_costs_nothing(store):
    meter, connected, _ = metered(Fake(lambda *_: TooLong("too long", 100)), ledger=ledger_of(store))
    with pytest.raises(TooLong):
        await consult(meter, connected)
    assert budgets.spent_by_run(store, "r1") == Usage()


async def test_a_request_that_failed_counts_at_what_was_reserved(store):
    meter, connected, _ = metered(Fake(lambda *_: ModelError("broken")), ledger=ledger_of(store))
    with pytest.raises(ModelError):
        await consult(meter, connected)
    assert budgets.spent_by_run(store, "r1").tokens_in > 1024


async def test_a_request_in_flight_when_the_run_is_interrupted_is_counted_as_lost(store):
    meter, connected, kept = metered(Fake(pause=30.0), ledger=ledger_of(store))
    task = asyncio.create_task(consult(meter, connected))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not kept.replies
    assert budgets.mark_lost(store, "r1") == 1
    assert budgets.spent_by_run(store, "r1").calls == 1


async def test_what_is_set_aside_for_the_draft_is_there_when_the_search_has_used_up_the_rest(store):
    own = ledger_of(store, run_tokens=4000, price=None)
    assert own.set_aside("fake", 500, 1024)
    llm = Fake(lambda *_: Reply("yes", usage=Usage(1, 800, 200)))
    meter, connected, _ = metered(llm, ledger=own)
    replies = [await consult(meter, connected, f"{n}") for n in range(5)]
    assert isinstance(replies[-1], NoReply)
    assert isinstance(await consult(meter, connected, "draft", Role.write), ModelReplied)


@pytest.mark.long
async def test_200_runs_at_once_spend_no_more_than_the_persons_day(store):
    llm = Fake(lambda *_: Reply("yes", usage=Usage(1, 60, 40)), pause=0.001)
    highest = 0

    async def run(n: int) -> None:
        nonlocal highest
        meter, connected, _ = metered(llm, ledger=ledger_of(store, f"r{n}", price=None, day_tokens=30_000))
        while isinstance(await consult(meter, connected, f"{n}.{len(llm.seen)}"), ModelReplied):
            total = budgets.spent(store, "ann", "2024-05-17")
            highest = max(highest, total.tokens_in + total.tokens_out)

    await asyncio.gather(*(run(n) for n in range(200)))
    assert len(llm.seen) > 200
    assert 28_000 < highest <= 30_000


@pytest.mark.parametrize("said", [Usage(), Usage(1, -5, -5), Usage(1, 10**30, 10**30)])
async def test_usage_that_cannot_be_true_is_estimated(store, said):
    meter, connected, _ = metered(Fake(lambda *_: Reply("a few words in reply", usage=said)), ledger=ledger_of(store))
    usage = (await consult(meter, connected)).usage
    assert 0 < usage.tokens_in < 200 and 0 < usage.tokens_out < 50
    assert budgets.spent_by_run(store, "r1") == usage


async def test_half_a_character_in_a_reply_can_still_be_written_down(store):
    broken = Reply("ok \ud83d", (ToolCall("\ud83d", "se\ud83d", '"\udc00"'),), usage=Usage(1, 1, 1))
    meter, connected, kept = metered(Fake(lambda *_: broken), ledger=ledger_of(store))
    await consult(meter, connected)
    assert kept.replies[0].text == "ok ?"
    assert kept.replies[0].calls == (RawToolCall("?", "se?", '"?"'),)


async def test_of_a_reply_that_nobody_would_read_to_its_end_only_so_much_is_kept():
    call = ToolCall("c", "search", "y" * 5_000_000)
    meter, connected, kept = metered(Fake(lambda *_: Reply("x" * 5_000_000, (call,), usage=Usage(1, 1, 1))))
    await consult(meter, connected)
    assert len(kept.replies[0].text) == len(kept.replies[0].calls[0].arguments) == 1_000_001


async def test_what_cannot_be_recorded_is_not_used():
    meter, connected, _ = metered(Fake())

    def full(_: ModelReplied) -> None:
        raise OSError("disk full")

    meter = replace(meter, record=full)
    with pytest.raises(OSError, match="disk full"):
        await consult(meter, connected)
