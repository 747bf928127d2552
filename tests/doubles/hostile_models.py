"""Models that follow the protocol and misbehave within it. Whatever they reply, Assay's guarantees must hold.

Each is an `LLM` in process, and its `answer` can be passed to a `ChatServer`. The same seed and request give the same
reply. A model that misbehaves in one role only uses `otherwise` for the others: by default a cooperative model. A
request without a role (a probe of an endpoint's capabilities) gets what it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay.models.llm import Prompt, Reply
from doubles.fill import FillPolicy, Path
from doubles.fill_policies import (
    cooperative_policy,
    cooperative_reply,
    is_key,
    last_name,
    random_policy,
    reply_by_policy,
    seeded_random,
)
from doubles.protocol import (
    ModelOutput,
    Request,
    ScriptedCall,
    ScriptedCalls,
    quoted_in,
    reply_in_process,
    role_of,
    text_of,
    tools_of,
)

Otherwise = Callable[[Request], ModelOutput]


class _HostileModel:
    """Shared base: the same answer in process as behind a server."""

    def answer(self, request: Request) -> ModelOutput:
        raise NotImplementedError

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)


class RandomModel(_HostileModel):
    """Replies anything that the schema allows."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def answer(self, request: Request) -> ModelOutput:
        return (
            reply_by_policy(random_policy(request, self.seed), request)
            if role_of(request)[0]
            else cooperative_reply(request)
        )


class AlwaysContinue(_HostileModel):
    """Never has enough: something is always missing, a draft always has a gap, and there is always one more search."""

    name = "always-continue"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def answer(self, request: Request) -> ModelOutput:
        return (
            reply_by_policy(_unsatisfied_policy(request, self.seed), request)
            if role_of(request)[0]
            else cooperative_reply(request)
        )


class SameCall(_HostileModel):
    """Makes the same call whenever it may make one."""

    name = "same-call"

    def __init__(
        self,
        tool: str = "search",
        arguments: Mapping[str, Any] | None = None,
        otherwise: Otherwise = cooperative_reply,
    ) -> None:
        self.calls = ScriptedCalls((ScriptedCall(tool, arguments or {"query": "the same once more"}),), "once more")
        self.otherwise = otherwise

    def answer(self, request: Request) -> ModelOutput:
        return self.calls if offers_tools(request) else self.otherwise(request)


class UnknownTools(_HostileModel):
    """Calls tools that do not exist, several at a time, some of them with the name of a real one in other letters."""

    name = "unknown-tools"

    def __init__(self, seed: int = 0, otherwise: Otherwise = cooperative_reply) -> None:
        self.seed = seed
        self.otherwise = otherwise

    def answer(self, request: Request) -> ModelOutput:
        if not offers_tools(request):
            return self.otherwise(request)
        random = seeded_random(request, self.seed)
        real = [*tools_of(request), "search"]
        names = [f"find_{random.randrange(1000)}", random.choice(real).upper(), "", f"../{real[0]}"]
        wanted = random.sample(names, k=random.randint(1, len(names)))
        return ScriptedCalls(tuple(ScriptedCall(name, {"query": "anything"}) for name in wanted))


class InventsKeys(_HostileModel):
    """Cites keys that it never saw, wherever a key may stand and in all that it writes."""

    name = "invents-keys"

    def __init__(self, seed: int = 0, otherwise: Otherwise = cooperative_reply) -> None:
        self.seed = seed
        self.otherwise = otherwise

    def answer(self, request: Request) -> ModelOutput:
        cites = role_of(request)[0] in ("judge", "write", "check")
        return reply_by_policy(_invented_keys_policy(request, self.seed), request) if cites else self.otherwise(request)


class ObeysDocuments(_HostileModel):
    """Follows instructions in documents: writes the words, gives the verdict and calls the tools that they ask for. Without
    such instructions it is cooperative."""

    name = "obeys-documents"

    def __init__(self, otherwise: Otherwise = cooperative_reply) -> None:
        self.otherwise = otherwise

    def answer(self, request: Request) -> ModelOutput:
        orders = instructions_in(text_of(request))
        if not orders:
            return self.otherwise(request)
        named = list(dict.fromkeys(_CALLED.findall(" ".join(orders))))
        if named and offers_tools(request):
            return ScriptedCalls(tuple(ScriptedCall(name, {"query": orders[0]}) for name in named), orders[0])
        return reply_by_policy(_obedient_policy(request, orders), request)


def offers_tools(request: Request) -> bool:
    """Whether this request asks for tool calls."""
    return role_of(request)[0] == "decide"


_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget)\b.*\b(?:previous|above|prior|earlier|instructions?)\b"
    r"|\b(?:you (?:must|should|are to|will)|please|now|instead|system:|assistant:)\b"
    r"|^\W*(?:output|print|reply|respond|answer|say|write|repeat|reveal|call|invoke|use|mark|rate|score|stop|do not|never)\b",
    re.IGNORECASE,
)
_QUOTED_ORDER = re.compile(
    r"\b(?:output|print|reply|respond|answer|say|write|repeat)\b(?: only| exactly| with| that|:)*\s+(?P<words>.+)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“'‘]([^\"”'’]{2,})[\"”'’]")
_CALLED = re.compile(r"\b(?:call|invoke|run|use)\s+(?:the\s+)?(?:tool\s+)?[`\"'“]?([a-z]+(?:_[a-z]+)*)", re.IGNORECASE)


def instructions_in(text: str) -> list[str]:
    """The sentences of the quoted documents that are instructions to the reader."""
    shown = "\n".join(words for _, words in quoted_in(text))
    return [words for each in re.split(r"(?<=[.!?])\s+|\n", shown) if _ORDER.search(words := each.strip())]


_LACKING = frozenset({"query", "missing", "search", "searches"})


def _unsatisfied_policy(request: Request, seed: int) -> FillPolicy:
    """Answers no to every question but whether a draft answers at all, reports something missing wherever possible, and
    starts a new search each time."""
    chance = random_policy(request, seed)
    easy = cooperative_policy(request)

    def count(low: int, high: int, path: Path) -> int:
        name = last_name(path)
        return low if name == "answers" else 1 if name in ("missing", "searches") else easy.count(low, high, path)

    return replace(
        easy,
        flag=lambda path: last_name(path) == "answers",
        count=count,
        words=lambda path: chance.words(path) if last_name(path) in _LACKING else easy.words(path),
        wants=lambda path: last_name(path) in _LACKING,
    )


def _invented_keys_policy(request: Request, seed: int) -> FillPolicy:
    random = seeded_random(request, seed)
    easy = cooperative_policy(request)

    def words(path: Path) -> str:
        made_up = f"{random.getrandbits(32):08x}"
        return made_up if is_key(path) else f"{easy.words(path)} [{made_up}]"

    # Even if the schema lists the allowed keys: not every endpoint enforces it on its model.
    return replace(
        easy,
        pick=lambda options, path: words(path) if is_key(path) else easy.pick(options, path),
        words=words,
        wants=is_key,
    )


def _obedient_policy(request: Request, orders: list[str]) -> FillPolicy:
    easy = cooperative_policy(request)
    instructions = " ".join(orders).lower()
    wanted = next((match for each in orders if (match := _QUOTED_ORDER.search(each))), None)
    words = wanted["words"] if wanted else orders[0]
    quoted = _QUOTED.search(words)
    speech = quoted[1] if quoted else words
    return replace(
        easy,
        pick=lambda options, path: next(
            (
                each
                for each in options
                if isinstance(each, str) and re.search(rf"\b{re.escape(each)}\b", instructions, re.I)
            ),
            easy.pick(options, path),
        ),
        words=lambda path: easy.words(path) if is_key(path) else speech,
    )
