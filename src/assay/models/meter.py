"""The only path to a model. A recorded reply is reused; otherwise reserve, send, settle, record, in that order.

Exhausted calls, tokens, money or time are an outcome (`NoReply`). An endpoint failure is a `ModelError`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from assay.core.codec import digest, dumps, to_json
from assay.core.errors import ModelError, TooLong
from assay.core.events import Fallback, ModelReplied, RawToolCall, RoleModel
from assay.core.types import Usage
from assay.models.cost import estimate_tokens, prompt_tokens
from assay.models.llm import LLM, Heard, Prompt, Reply, Role, StreamingLLM
from assay.models.replies import LARGEST
from assay.store.database import Store
from assay.store.runs import budgets
from assay.store.runs.budgets import SpendingReservation

GRACE = 1.0  # seconds beyond the deadline that a model may take to notice it
TOO_SHORT = 0.25  # seconds; with less time left, no request is sent
LONGEST = LARGEST + 1  # characters of a reply that are kept: enough to see that it is too long
HUGE = 100_000_000  # tokens; a larger reported count is not believed


@dataclass(frozen=True, slots=True)
class NoReply:
    """No reply, but not an error: an outcome that the loop handles."""

    why: Fallback
    detail: str


@dataclass(frozen=True, slots=True)
class ConnectedModel:
    """One model in one role."""

    llm: LLM
    role_model: RoleModel


@dataclass(frozen=True, slots=True)
class Ledger:
    """The budget that requests are charged to. This one has no limits and no records: for tests, and for free models."""

    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        """Reserve `tokens` for a request and `max_tokens` for its reply, within `seconds`. NoReply names the limit that it
        would exceed.
        """
        return SpendingReservation(0, seconds)

    def settle(self, id: int, model: str, usage: Usage) -> Usage:
        """Replace the reservation by the actual usage. Returns the usage with its cost."""
        return usage

    def release(self, id: int) -> None:
        """Return the reservation: the request was never sent, or was rejected unread."""

    def one_transaction(self) -> AbstractContextManager[None]:
        """A reply is recorded and settled within: both or neither."""
        return nullcontext()

    async def flushed(self) -> None:
        """Return when all reservations so far are on disk."""


class ConcurrencyLimit:
    """At most `limit` concurrent requests. Several meters may share one; each event loop has its own queue."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def enter(self, seconds: float) -> bool:
        """Wait for a slot; False if none becomes free in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._queue().acquire()
        except TimeoutError:
            return False
        return True

    def leave(self) -> None:
        self._queue().release()

    def _queue(self) -> asyncio.Semaphore:
        return self._queues.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self.limit))


@dataclass(frozen=True, slots=True)
class _Request:
    digest: str
    connected: ConnectedModel
    role: Role
    name: str
    prompt: Prompt
    documents: tuple[str, ...]
    tokens: int
    heard: Heard | None


@dataclass(eq=False)
class Meter:
    """The model requests of one run.

    A reservation is released only if the request was rejected unread. After any other failure, Ctrl-C or the end of the
    process, it stays and counts in full: the request may have been billed.
    """

    models: Mapping[Role, tuple[ConnectedModel, ...]]  # the role's model first, then its fallbacks
    record: Callable[[ModelReplied], None]  # durable when it returns
    recorded_reply: Callable[[str], ModelReplied | None]  # a recorded reply by its request digest
    ledger: Ledger
    restoring: Callable[[], AbstractContextManager[None]] = (
        nullcontext  # what is recorded within is forgotten if that fails
    )
    seconds: Callable[[Role], float] = lambda _: 900.0  # active seconds left for this role
    timeout: float = 120.0  # seconds per request
    concurrency: ConcurrencyLimit = field(default_factory=lambda: ConcurrencyLimit(4))
    temperature: float = 0.0
    hide: Callable[[str], str] = lambda words: words  # removes keys and passwords from replies
    clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    _flying: dict[str, asyncio.Future[ModelReplied | NoReply]] = field(default_factory=dict, init=False, repr=False)
    narrowed: dict[str, int] = field(default_factory=dict, init=False, repr=False)  # models whose window proved smaller

    async def consult(
        self,
        connected: ConnectedModel,
        role: Role,
        name: str,
        prompt: Prompt,
        documents: tuple[str, ...] = (),
        tokens: int = 0,
        heard: Heard | None = None,
    ) -> ModelReplied | NoReply:
        """The reply to a prompt: the recorded one, that of an identical request in flight, or a new one.

        tokens: of the prompt, if the caller has estimated them already
        heard: gets a new reply while it is written, if the model can be heard
        """
        digest = request_digest(role, name, prompt)
        while True:
            if (known := self.recorded_reply(digest)) is not None:
                return known
            if (flying := self._flying.get(digest)) is None:
                return await self._lead(_Request(digest, connected, role, name, prompt, documents, tokens, heard))
            await asyncio.wait([flying])
            if not flying.cancelled():
                return flying.result()

    async def _lead(self, request: _Request) -> ModelReplied | NoReply:
        """Send the request and share the reply with identical concurrent ones. If this is cancelled, one of them sends it."""
        flying = self._flying[request.digest] = asyncio.get_running_loop().create_future()
        try:
            result = await self._send(request)
        except Exception as error:
            flying.set_exception(error)
            flying.exception()  # mark as retrieved: no other task may be waiting for it
            raise
        else:
            flying.set_result(result)
            return result
        finally:
            del self._flying[request.digest]
            flying.cancel()

    async def _send(self, request: _Request) -> ModelReplied | NoReply:
        if not await self.concurrency.enter(max(self.seconds(request.role), 0.0)):
            return OUT_OF_TIME
        try:
            return await self._pay(request)
        finally:
            self.concurrency.leave()

    async def _pay(self, request: _Request) -> ModelReplied | NoReply:
        left = self.seconds(request.role)
        if left < TOO_SHORT:
            return OUT_OF_TIME
        model, prompt = request.connected.role_model.model, request.prompt
        tokens = request.tokens or prompt_tokens(prompt)
        most = min(self.timeout, left)
        place = self.ledger.reserve(request.role, model, tokens, prompt.max_tokens, most)
        if isinstance(place, NoReply):
            return place
        await self.ledger.flushed()  # no request leaves before its reservation is on disk
        begun = self.clock()
        try:
            heard = _hidden(request.heard, self.hide) if request.heard else None
            reply = _writable(await _in_time(request.connected.llm, prompt, place.seconds, heard), self.hide)
        except TooLong:
            self.ledger.release(place.id)
            raise
        except ModelError:
            if self.seconds(request.role) < TOO_SHORT:
                return OUT_OF_TIME
            if place.seconds < most and self.clock() - begun >= place.seconds:
                return NO_SECONDS
            raise
        usage = counted(reply, tokens, self.clock() - begun)
        with self.restoring(), self.ledger.one_transaction():
            consulted = ModelReplied(
                role=request.role.value,
                prompt=request.name,
                model=model,
                request=request.digest,
                text=reply.text,
                calls=tuple(RawToolCall(call.id, call.name, call.arguments) for call in reply.calls),
                finish=reply.finish,
                usage=self.ledger.settle(place.id, model, usage),
                documents=request.documents,
                pictures=tuple(each.picture for each in prompt.pictures),
            )
            self.record(consulted)
        return consulted


OUT_OF_TIME = NoReply(Fallback.time, "the time for this question is used up")
NO_SECONDS = NoReply(Fallback.time, "the seconds of models' time that one person may use in a day are nearly used up")


def request_digest(role: Role, name: str, prompt: Prompt) -> str:
    """The key of a recorded reply. The model is not part of it."""
    return digest(dumps([role.value, name, to_json(prompt.without_pixels)]))


async def _in_time(llm: LLM, prompt: Prompt, seconds: float, heard: Heard | None) -> Reply:
    try:
        async with asyncio.timeout(seconds + GRACE):
            if heard is not None and isinstance(llm, StreamingLLM):
                return await llm.stream(prompt, seconds, heard)
            return await llm.complete(prompt, seconds)
    except TimeoutError:
        raise ModelError(f"The model {llm.name} did not answer in {seconds:g} s.") from None


def _hidden(heard: Heard, hide: Callable[[str], str]) -> Heard:
    return lambda words: heard(hide(words)[:LONGEST])


def _writable(reply: Reply, hide: Callable[[str], str]) -> Reply:
    """The reply without secrets and without lone surrogates, which cannot be stored, truncated to `LONGEST` characters."""

    def whole(words: str) -> str:
        words = hide(words)
        return words[:LONGEST] if words.isascii() else words[:LONGEST].encode("utf-8", "replace").decode("utf-8")

    calls = tuple(replace(c, id=whole(c.id), name=whole(c.name), arguments=whole(c.arguments)) for c in reply.calls)
    return replace(reply, text=whole(reply.text), finish=whole(reply.finish), calls=calls)


def counted(reply: Reply, tokens: int, seconds: float) -> Usage:
    """The usage that the endpoint reports; estimated if the report is missing or implausible."""
    reported = reply.usage
    text = "".join((reply.text, *(call.name + call.arguments for call in reply.calls)))
    return Usage(
        calls=1,
        tokens_in=reported.tokens_in if 0 < reported.tokens_in <= HUGE else tokens,
        tokens_out=reported.tokens_out if 0 < reported.tokens_out <= HUGE else estimate_tokens(text),
        seconds=round(max(seconds, 0.0), 3),
    )


@dataclass(frozen=True, slots=True)
class StoreLedger(Ledger):
    """The budget of a person and a run, in the workspace's state. A model without a price is charged by tokens alone."""

    store: Store
    who: str
    run: str
    ceilings: budgets.Ceilings
    day: Callable[[], str]  # a function, because a run may span several days
    price: Callable[[str, int, int], float | None]  # USD for a model and its tokens in and out

    def reserve(
        self, role: Role, model: str, tokens: int, max_tokens: int, seconds: float
    ) -> SpendingReservation | NoReply:
        money, both = self.price(model, tokens, max_tokens) or 0.0, tokens + max_tokens
        place = budgets.reserve(
            self.store, self.who, self.run, role.value, model, both, money, self.ceilings, self.day(), seconds
        )
        if isinstance(place, budgets.SpendingReservation):
            return place
        why = Fallback.time if place.what is budgets.BudgetQuantity.seconds else Fallback(place.what.value)
        return NoReply(why, budgets.describe_ceiling(place, both, money))

    def settle(self, id: int, model: str, usage: Usage) -> Usage:
        priced = replace(usage, money=self.price(model, usage.tokens_in, usage.tokens_out) or 0.0)
        budgets.settle(self.store, id, priced)
        return priced

    def release(self, id: int) -> None:
        budgets.release(self.store, id)

    def one_transaction(self) -> AbstractContextManager[None]:
        return self.store.one_transaction()

    async def flushed(self) -> None:
        await self.store.flushed()

    def set_aside(self, model: str, tokens: int, max_tokens: int) -> bool:
        """Reserve the price of the final draft; False if the budget does not cover it."""
        money = self.price(model, tokens, max_tokens) or 0.0
        return budgets.reserve_for_draft(
            self.store, self.who, self.run, tokens + max_tokens, money, self.ceilings, self.day()
        )
