"""The dependencies of a run (`RunContext`), its limits and its event log. Reaching a limit is an outcome, not an error."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel

from assay.agent.tool import Tool, ToolContext
from assay.agent.toolbox import TOOLS
from assay.answer.claims import Sources
from assay.answer.weigh import Assessor, BatchLimits
from assay.core.codec import digest
from assay.core.events import Event, Mode, ModelReplied, Narrowed, Stopped, StopReason, Withheld
from assay.core.figures import captioned
from assay.core.run import Run
from assay.core.types import Answer, Document, Figure, Passage, Picture
from assay.index.hop_ranking import HopSettings
from assay.language.glossary import Glossary, load_glossary
from assay.models.ask import UNKNOWN_WINDOW, ask
from assay.models.cost import PICTURE, fit_to_tokens
from assay.models.llm import Heard, Role, ShownPicture
from assay.models.meter import ConnectedModel, Meter, NoReply
from assay.prompts import fence, fence_mark
from assay.tables.cells import PassageTables, passage_tables

ROUNDS = {Mode.quick: 3, Mode.balanced: 5, Mode.thorough: 10}
SET_ROUNDS = {Mode.quick: 3, Mode.balanced: 8, Mode.thorough: 16}  # of a whole set: reading takes rounds
AT_ONCE = 8  # tasks that run concurrently
TITLE = 48  # tokens of a title before its date
MOST_PICTURES = 4  # in one request
PICTURED = 3  # the share of a window that pictures may take
BARREN = 2  # consecutive rounds without anything new


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the search phase of a run.

    `seconds_left` counts active time only; time spent waiting for a person is free. The meter enforces the ceilings on
    calls, tokens and money again before each request; the limits here end the search early enough that budget remains
    for writing the answer. A ceiling of 0 means no limit.
    """

    rounds: int = ROUNDS[Mode.balanced]
    set_rounds: int = SET_ROUNDS[Mode.balanced]
    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    kept_back: float = 0.25  # share of every ceiling reserved for writing and checking
    room: int = 8192  # tokens of the smallest deciding window; older results are compacted when it fills
    seconds: float = 900.0
    seconds_left: Callable[[], float] = lambda: 900.0

    @property
    def late(self) -> bool:
        """Whether the rest of the time is for writing and checking."""
        return self.seconds_left() <= self.kept_back * self.seconds

    def rounds_for(self, run: Run) -> int:
        """The rounds that this kind of question is allowed."""
        return self.set_rounds if run.every else self.rounds

    def reached(self, run: Run) -> Stopped | None:
        if run.rounds >= self.rounds_for(run):
            return Stopped(StopReason.rounds, f"{run.rounds} rounds of searching were allowed")
        if self.late:
            return Stopped(StopReason.time, f"{self.seconds:g} seconds were allowed for this question")
        used, share = run.usage, 1 - self.kept_back
        if self.calls and used.calls >= share * self.calls:
            return Stopped(StopReason.calls, f"{self.calls} calls of a model were allowed")
        if self.tokens and used.tokens_in + used.tokens_out >= share * self.tokens:
            return Stopped(StopReason.tokens, f"{self.tokens} tokens were allowed")
        if self.money and used.money >= share * self.money:
            return Stopped(StopReason.money, f"{self.money:g} USD were allowed")
        return None

    def barren(self, run: Run) -> bool:
        """Whether the last rounds found nothing new."""
        last = run.fresh[-BARREN:]
        return len(last) == BARREN and not any(last)


Place = tuple[str, int, tuple[float, float, float, float]]  # a document, a page and a box
T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

NARROWED = "a document was erased, or may not be read any more"


@dataclass
class Log:
    """A run as it grows: an event is recorded before it is part of the run, and on disk before it is published."""

    run: Run
    record: Callable[[Run, Event], Run]
    flushed: Callable[[], Awaitable[None]]
    _shown: int = 0
    _replies: dict[str, ModelReplied] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shown = len(self.run.events)
        self._replies = dict(self.run.consulted)

    def add(self, event: Event) -> None:
        self.run = self.record(self.run, event)
        if isinstance(event, ModelReplied):
            self._replies[event.request] = event

    @contextmanager
    def restoring(self, outer: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Forget what was added within if its transaction fails, as the store does: later events would leave a gap."""
        run, replies = self.run, dict(self._replies)
        try:
            with outer():
                yield
        except BaseException:
            self.run, self._replies = run, replies
            raise

    def narrow(self, now: Run) -> None:
        """Continue with the part of the run that may still be seen, and record that; later steps know nothing of the rest."""
        since = self._since(now)
        self.run = now
        self._replies = dict(now.consulted)
        self.add(Narrowed(since, NARROWED))

    def _since(self, now: Run) -> int:
        """The first position from which something was removed. What was removed while the run was not active was not in
        this log."""
        before = self.run.events
        aside = [range(event.since, place) for place, event in enumerate(now.events) if isinstance(event, Narrowed)]
        first = next(
            (
                place
                for place, event in enumerate(now.events)
                if (place < len(before) and event != before[place])
                or (isinstance(event, Withheld) and not any(place in each for each in aside))
            ),
            0,
        )
        # A question with history or a brief contains text from them, and is shown all the same.
        return 0 if first == 1 and (now.asked.history or now.asked.brief) else first

    async def unseen(self) -> Sequence[Event]:
        """Events added since the last call, now on disk."""
        run = self.run  # a reply that comes while this waits is not on disk yet
        await self.flushed()
        new = run.events[self._shown :]
        self._shown = len(run.events)
        return new

    def recorded_reply(self, request: str) -> ModelReplied | None:
        """The recorded reply to a request, if any."""
        return self._replies.get(request)


async def no_crop(document: Document, figure: Figure) -> bytes | None:
    """Where no originals are, or none may be shown."""
    return None


@dataclass(frozen=True, slots=True)
class RunContext:
    """The dependencies of a run. `record` persists an event and returns the extended run; without a meter everything is
    decided by rule."""

    tool_context: ToolContext
    record: Callable[[Run, Event], Run]  # on disk after `flushed`
    document: Callable[[str], Document | None]  # within the scope of the person asking
    read_together: Callable[[Iterable[str]], object] = lambda ids: None  # those that this step will ask for, at once
    unreadable: Callable[[], tuple[str, ...]] = tuple
    limits: Limits = field(default_factory=Limits)
    hops: HopSettings = field(default_factory=HopSettings)
    meter: Meter | None = None
    glossary: Glossary = field(default_factory=load_glossary)
    tools: Mapping[str, Tool] = field(default_factory=lambda: TOOLS)
    width: BatchLimits = field(default_factory=BatchLimits)
    cutoff: float = 3.0
    reranks: bool = False  # a model scores the shortlist before the best of it are weighed
    general: bool = True  # answers that are not from the documents are allowed, labelled as such
    assess: Assessor | None = None  # a custom assessor, instead of the model
    titled: Callable[[Sequence[str]], Mapping[str, str]] | None = None  # replaces `tool_context` where there is none
    oversees: Callable[[Run, Answer], tuple[str, ...]] = lambda run, answer: ()  # reasons why the answer needs review
    cleared: Callable[[str], bool] = lambda seal: False  # whether an unused approval exists for this seal
    four_eyes: bool = False  # the person who asked cannot review
    marks_disagreement: bool = False  # a claim on which two judgements differ is delivered with a mark, not dropped
    current: Callable[[Run], Run] = lambda run: run  # the run as its person may see it now
    flushed: Callable[[], Awaitable[None]] = lambda: asyncio.sleep(0)  # returns when all that was recorded is on disk
    crop: Callable[[Document, Figure], Awaitable[bytes | None]] = no_crop  # a figure as a picture, within the scope
    shown_before: Mapping[Place, Picture] = field(default_factory=dict)  # of a run that is replayed
    _titles: dict[str, str] = field(default_factory=dict)
    _dates: dict[str, str] = field(default_factory=dict)
    _tables: dict[str, PassageTables | None] = field(default_factory=dict)
    _crops: dict[Place, tuple[Picture, bytes]] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop cached document lookups: some documents may no longer be readable."""
        for known in (
            self._titles,
            self._dates,
            self._tables,
            self._crops,
            self.tool_context.seen,
            self.tool_context.searched,
        ):
            known.clear()

    def _models(self, role: Role) -> Sequence[ConnectedModel]:
        return self.meter.models.get(role, ()) if self.meter is not None else ()

    def small(self, role: Role) -> bool:
        """Whether this role's model is small: it gets short prompts, and the rules overrule it."""
        return any(connected.role_model.small for connected in self._models(role))

    def window(self, role: Role) -> int:
        """The smallest context window among this role's models."""
        windows = (connected.role_model.window or UNKNOWN_WINDOW for connected in self._models(role))
        return min(windows, default=UNKNOWN_WINDOW)

    def other_model(self, role: Role, other: Role) -> bool:
        """Whether another role has another model."""
        own, theirs = ([each.role_model.model for each in self._models(one)][:1] for one in (role, other))
        return bool(theirs) and own != theirs

    async def ask(
        self,
        role: Role,
        name: str,
        kind: type[T],
        build_prompt: Callable[[int], Mapping[str, str]],
        *,
        check: Callable[[T], str] = lambda _: "",
        schema: Mapping[str, Any] | None = None,
        documents: Sequence[str] = (),
        max_tokens: int = 1024,
        heard: Heard | None = None,
        pictures: Sequence[ShownPicture] = (),
    ) -> tuple[T, str] | NoReply:
        """Ask a model for a value of this type. `check` says what is wrong with it. Only for runs that have a model."""
        assert self.meter is not None, "a run without a model asks none"
        return await ask(
            self.meter,
            role,
            name,
            kind,
            build_prompt,
            check=check,
            schema=schema,
            documents=documents,
            max_tokens=max_tokens,
            heard=heard,
            pictures=pictures,
        )

    async def pictures(self, role: Role, run: Run, passages: Iterable[tuple[str, Passage]]) -> dict[str, ShownPicture]:
        """The pictures of the figures whose captions are among these passages, by the names that the passages are shown
        under: the first ones, as many as fit a part of the window, if all models of this role take pictures."""
        models = self._models(role)
        most = min(MOST_PICTURES, self.window(role) // PICTURED // PICTURE)
        found: dict[str, ShownPicture] = {}
        for name, passage in passages if models and all(each.role_model.images for each in models) else ():
            document = self.document(passage.doc_id)
            for figure in captioned(document, passage.start, passage.end)[:1] if document else ():
                made = await self._picture(document, figure) if document and figure.box else None
                if made is not None and len(found) < most:
                    before, _, after = fence(mark(run), f"picture of {name}, {made[0].place}", "").split("\n")
                    found[name] = ShownPicture(made[0], before, after, made[1])
        return found

    async def _picture(self, document: Document, figure: Figure) -> tuple[Picture, bytes] | None:
        """A figure as it is shown; of one that cannot be drawn any more, what a replayed run recorded."""
        assert figure.box is not None
        place = document.id, figure.page, figure.box
        if place not in self._crops and (png := await self.crop(document, figure)) is not None:
            self._crops[place] = Picture(*place, figure.name, digest(png)), png
        known = self.shown_before.get(place)
        return self._crops.get(place) or ((known, b"") if known else None)

    def titles(self, run: Run) -> dict[str, str]:
        """Titles of the found documents, by id; cached, since the loop asks at every step."""
        new = sorted({found.passage.doc_id for found in run.found} - self._titles.keys())
        if new:
            known = (self.titled or self.tool_context.titles)(new)
            self._titles.update({doc: known.get(doc, "") for doc in new})
        return self._titles

    def read_evidence(self, run: Run) -> None:
        """Read the documents of all evidence, for a step that needs nearly all of them."""
        self.read_together({each.passage.doc_id for each in run.evidence})

    def sources(self, run: Run) -> Sources:
        """Metadata of the documents that the evidence is from."""
        self._look_up_dates({each.passage.doc_id for each in run.evidence})
        return Sources(self.titles(run), {doc: date for doc, date in self._dates.items() if date}, self._tables_of)

    def _tables_of(self, passage: Passage) -> PassageTables | None:
        """The tables of a passage; cached, since every prompt and every check asks."""
        if passage.id not in self._tables:
            document = self.document(passage.doc_id)
            self._tables[passage.id] = passage_tables(document, passage) if document else None
        return self._tables[passage.id]

    def dated_titles(self, run: Run) -> dict[str, str]:
        """Titles of the found documents, each with its date, for prompts."""
        titles = self.titles(run)
        self._look_up_dates({found.passage.doc_id for found in run.found})
        dates = {doc: self._dates.get(doc, "") for doc in titles}
        return {
            doc: f"{fit_to_tokens(title, TITLE)}, {dates[doc]}" if dates[doc] and dates[doc] not in title else title
            for doc, title in titles.items()
        }

    def _look_up_dates(self, documents: Set[str]) -> None:
        new = sorted(documents - self._dates.keys())
        if new and self.titled is None:
            known = self.tool_context.dates(new)  # one query: fetching whole documents for a few dates is wasteful
            self._dates.update({doc: known.get(doc, "") for doc in new})
        for doc in new if self.titled is not None else ():
            document = self.document(doc)
            self._dates[doc] = (document.date if document else None) or ""


def one_model(run: Run, *roles: Role) -> bool:
    """Whether one capable model has these roles: one request then asks it for what they do."""
    seats = [[each for each in run.asked.seats if each.role == role] for role in roles]
    names = {tuple(each.model for each in seat) for seat in seats}
    return run.asked.has_model and len(names) == 1 and not any(each.small for seat in seats for each in seat)


def mark(run: Run) -> str:
    return fence_mark(run.id)


def run_before(run: Run, follows: Callable[[Event], bool]) -> Run:
    """The run without its last events, as far as they follow from what a step does. After a resume the step sees what it
    saw before, so that it makes the same requests and recorded replies match."""
    events = run.events
    while follows(events[-1]):
        events = events[:-1]
    return Run(run.id, events)


async def run_in_order(work: Iterable[Coroutine[None, None, R]], at_once: int = AT_ONCE) -> AsyncIterator[R]:
    """Results in input order, whatever order the work finishes in, so that an interrupted run records the same
    events. At most `at_once` tasks run ahead of the first unfinished one, which limits memory and yields early
    results first."""
    left = iter(work)
    tasks = deque(asyncio.ensure_future(each) for each in islice(left, at_once))
    try:
        while tasks:
            yield await tasks[0]
            tasks.popleft()
            tasks.extend(asyncio.ensure_future(each) for each in islice(left, 1))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in left:
            each.close()  # never started
