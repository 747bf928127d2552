"""Models that keep to the protocol and misbehave within it. Whatever they say, what Assay promises must hold.

Each is an `LLM` in process, and its `answer` goes into a `ChatServer`. The same seed and the same request give the same
reply. Where a model misbehaves in one role only, `otherwise` answers in the others: by default an easy-going model. A
request that names no role (an endpoint is asked what it can do) gets what it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.models.llm import Prompt, Reply
from assay.testing.fill import Path, Policy
from assay.testing.policies import agreeable, by_chance, easy_going, is_key, last, randomness, said_by
from assay.testing.protocol import Call, Calls, Request, Said, quoted_in, reply_in_process, role_of, text_of, tools_of

Otherwise = Callable[[Request], Said]


class AtRandom:
    """Says anything that the schema allows."""

    name = "at-random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def answer(self, request: Request) -> Said:
        return said_by(by_chance(request, self.seed), request) if role_of(request)[0] else agreeable(request)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class AlwaysContinue:
    """Never has enough: something is always missing, a draft always has a gap, and there is always one more search."""

    name = "always-continue"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def answer(self, request: Request) -> Said:
        return said_by(_insatiable(request, self.seed), request) if role_of(request)[0] else agreeable(request)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class SameCall:
    """Makes the same call whenever it may make one."""

    name = "same-call"

    def __init__(
        self,
        tool: str = "search",
        arguments: Mapping[str, Any] | None = None,
        otherwise: Otherwise = agreeable,
    ) -> None:
        self.calls = Calls((Call(tool, arguments or {"query": "the same once more"}),), "once more")
        self.otherwise = otherwise

    def answer(self, request: Request) -> Said:
        return self.calls if decides(request) else self.otherwise(request)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class UnknownTools:
    """Calls tools that do not exist, several at a time, some of them with the name of a real one in other letters."""

    name = "unknown-tools"

    def __init__(self, seed: int = 0, otherwise: Otherwise = agreeable) -> None:
        self.seed = seed
        self.otherwise = otherwise

    def answer(self, request: Request) -> Said:
        if not decides(request):
            return self.otherwise(request)
        random = randomness(request, self.seed)
        real = [*tools_of(request), "search"]
        names = [f"find_{random.randrange(1000)}", random.choice(real).upper(), "", f"../{real[0]}"]
        wanted = random.sample(names, k=random.randint(1, len(names)))
        return Calls(tuple(Call(name, {"query": "anything"}) for name in wanted))

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class InventsKeys:
    """Cites keys that it never saw, wherever a key may stand and in all that it writes."""

    name = "invents-keys"

    def __init__(self, seed: int = 0, otherwise: Otherwise = agreeable) -> None:
        self.seed = seed
        self.otherwise = otherwise

    def answer(self, request: Request) -> Said:
        cites = role_of(request)[0] in ("judge", "write", "check")
        return said_by(_inventive(request, self.seed), request) if cites else self.otherwise(request)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class Obedient:
    """Does what documents tell it to: says the words they ask for, gives the verdict they ask for, calls the tool they name.
    Where they tell it nothing it is easy-going."""

    name = "obedient"

    def __init__(self, otherwise: Otherwise = agreeable) -> None:
        self.otherwise = otherwise

    def answer(self, request: Request) -> Said:
        orders = orders_in(text_of(request))
        if not orders:
            return self.otherwise(request)
        named = list(dict.fromkeys(_CALLED.findall(" ".join(orders))))
        if named and decides(request):
            return Calls(tuple(Call(name, {"query": orders[0]}) for name in named), orders[0])
        return said_by(_servile(request, orders), request)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


def decides(request: Request) -> bool:
    """Whether this request is for tool calls."""
    return role_of(request)[0] == "decide"


_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget)\b.*\b(?:previous|above|prior|earlier|instructions?)\b"
    r"|\b(?:you (?:must|should|are to|will)|please|now|instead|system:|assistant:)\b"
    r"|^\W*(?:output|print|reply|respond|answer|say|write|repeat|reveal|call|invoke|use|mark|rate|score|stop|do not|never)\b",
    re.IGNORECASE,
)
_SAID = re.compile(
    r"\b(?:output|print|reply|respond|answer|say|write|repeat)\b(?: only| exactly| with| that|:)*\s+(?P<words>.+)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“'‘]([^\"”'’]{2,})[\"”'’]")
_CALLED = re.compile(r"\b(?:call|invoke|run|use)\s+(?:the\s+)?(?:tool\s+)?[`\"'“]?([a-z]+(?:_[a-z]+)*)", re.IGNORECASE)


def orders_in(text: str) -> list[str]:
    """The sentences of the quoted documents that tell the reader to do something."""
    shown = "\n".join(words for _, words in quoted_in(text))
    return [words for each in re.split(r"(?<=[.!?])\s+|\n", shown) if _ORDER.search(words := each.strip())]


_LACKING = frozenset({"query", "missing", "gap"})


def _insatiable(request: Request, seed: int) -> Policy:
    """No to every question; something is missing wherever something may be; a new search each time."""
    chance = by_chance(request, seed)
    easy = easy_going(request)

    def count(low: int, high: int, path: Path) -> int:
        return low if last(path) == "answers" else 1 if last(path) == "missing" else easy.count(low, high, path)

    return replace(
        easy,
        flag=lambda path: False,
        count=count,
        words=lambda path: chance.words(path) if last(path) in _LACKING else easy.words(path),
        wants=lambda path: last(path) in _LACKING,
    )


def _inventive(request: Request, seed: int) -> Policy:
    random = randomness(request, seed)
    easy = easy_going(request)

    def words(path: Path) -> str:
        made_up = f"{random.getrandbits(32):08x}"
        return made_up if is_key(path) else f"{easy.words(path)} [{made_up}]"

    # Also where the schema says which keys there are: not every endpoint holds its model to it.
    return replace(
        easy,
        pick=lambda options, path: words(path) if is_key(path) else easy.pick(options, path),
        words=words,
        wants=is_key,
    )


def _servile(request: Request, orders: list[str]) -> Policy:
    easy = easy_going(request)
    told = " ".join(orders).lower()
    wanted = next((match for each in orders if (match := _SAID.search(each))), None)
    words = wanted["words"] if wanted else orders[0]
    quoted = _QUOTED.search(words)
    speech = quoted[1] if quoted else words
    return replace(
        easy,
        pick=lambda options, path: next(
            (each for each in options if isinstance(each, str) and re.search(rf"\b{re.escape(each)}\b", told, re.I)),
            easy.pick(options, path),
        ),
        words=lambda path: easy.words(path) if is_key(path) else speech,
    )
