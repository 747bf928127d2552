"""Lets a draft be heard while it is written: each whole claim is recorded, code checks it at once, and the first claims go to
the judge while the rest is written. Which they are follows from the draft's words, never from when they arrive, so that a
resumed run and a replay make the same requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from assay.agent.context import RunContext
from assay.agent.steps.check import Placed, by_code, groups_of, judge_group
from assay.answer import compose
from assay.answer import draft as drafting
from assay.answer.checking.judge import needs_model
from assay.core.events import Checked, Claimed, Drafted, Event
from assay.core.run import Run
from assay.core.types import Claim
from assay.models.llm import Heard
from assay.models.meter import NoReply

FEW, FIRST = 4, 3  # claims of a draft that is checked in one request; claims of another that are checked first

Written = tuple[drafting.Writing, str] | NoReply
Verdicts = list[tuple[int, Claim, str]]  # places, claims with their verdicts, and who gave them


async def write_and_check(
    run: Run,
    context: RunContext,
    write: Callable[[Heard], Awaitable[Written]],
    read: Callable[[drafting.Writing, str], Drafted],
    without_model: Callable[[NoReply], Awaitable[Drafted]],
) -> AsyncGenerator[Event]:
    """The claims as they are written, the verdicts that are known before the draft is whole, and the draft."""
    news: asyncio.Queue[str] = asyncio.Queue()
    first = _FirstClaims(run, context, lambda: news.put_nowait(""))
    writing = asyncio.ensure_future(write(news.put_nowait))
    writing.add_done_callback(lambda _: news.put_nowait(""))
    opened = 0
    try:
        while not writing.done():
            text = await news.get()
            if text.count("{") != opened and (begun := drafting.read_begun(text)):
                opened = text.count("{")  # a claim is whole when the next one opens
                for event in first.take(read(begun[0], ""), begun[1]):
                    yield event
            for event in first.verdicts():
                yield event
        reply = writing.result()
        if isinstance(reply, NoReply):
            yield await without_model(reply)
            return
        drafted = read(*reply)
        for event in first.take(drafted, reply[0].stated):
            yield event
        await first.judged()
        for event in first.verdicts():
            yield event
        yield drafted
    finally:
        for task in (writing, *first.tasks):
            task.cancel()
        await asyncio.gather(writing, *first.tasks, return_exceptions=True)


@dataclass
class _FirstClaims:
    """What is known of a draft while it is written. What was recorded before the run was resumed is not recorded again."""

    run: Run
    context: RunContext
    wake: Callable[[], None]
    claimed: dict[int, Claimed] = field(init=False)
    checked: set[int] = field(init=False)
    sent: Placed = ()
    sent_as: dict[int, Claimed] = field(default_factory=dict)
    tasks: list[asyncio.Future[Verdicts]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claimed, self.checked = dict(self.run.claimed), set(self.run.checked_early)
        self.by_code = cache(by_code(self.run, self.context))

    def take(self, draft: Drafted, begun: int) -> Iterator[Event]:
        """The claims that are new, and the verdicts that code can give at once. When they are due, the first are sent to the
        judge."""
        found = compose.whole_claims(draft)
        first = [event.place for event in found[:FIRST]] if begun > FEW and len(found) >= FIRST else []
        open_: list[tuple[int, Claim]] = []
        for event in found:
            if self.claimed.get(event.place) != event:
                self.claimed[event.place] = event
                self.checked.discard(event.place)
                yield event
            elif event.place in self.checked and event.place not in first:
                continue
            ruled = self.by_code(event.place, event.claim)
            if needs_model(ruled):
                open_ += [(event.place, ruled)] if event.place in first else []
            elif event.place not in self.checked:
                self.checked.add(event.place)
                yield Checked(event.place, ruled)
        if open_ and open_ != self.sent:
            self.sent, self.sent_as = open_, {place: self.claimed[place] for place, _ in open_}
            self.tasks.append(asyncio.ensure_future(self._judge(self.run.then(draft), open_)))
            self.tasks[-1].add_done_callback(lambda _: self.wake())

    async def _judge(self, run: Run, open_: Placed) -> Verdicts:
        found: Verdicts = []
        for group in groups_of(run, open_):
            judgement = await judge_group(run, self.context, group)
            found += [(place, claim, judgement.by) for (place, _), claim in zip(group, judgement.claims, strict=True)]
        return found

    async def judged(self) -> None:
        """Wait for the verdicts on the first claims."""
        if self.sent:
            await self.tasks[-1]

    def verdicts(self) -> Iterator[Event]:
        """The verdicts on the first claims that have come and are not recorded yet."""
        last = self.tasks[-1] if self.sent else None
        if last is None or not last.done() or last.exception():
            return
        for place, claim, by in last.result():
            if place not in self.checked and self.claimed[place] == self.sent_as[place]:  # it may be written anew
                self.checked.add(place)
                yield Checked(place, claim, by)
