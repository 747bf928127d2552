"""The model of the simulation, behind its endpoint: it replies well, with nothing, with rubbish, with lies, without an end,
late or never; and the endpoint fails in all the ways that endpoints do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from random import Random
from typing import Any

import httpx
from doubles import AlwaysContinue, EndpointFault, InventsKeys, ObeysDocuments, RandomModel, SameCall, UnknownTools
from doubles.chat_server import completion, events
from doubles.fault_replies import faulty_reply
from doubles.fill_policies import cooperative_reply
from doubles.protocol import ConnectionAction, HttpReply, ModelOutput, Request, reply_of, role_of
from doubles.synthesis_replies import synthesis_model

from assay.models.llm import Reply

NEVER = 1e6  # seconds
WINDOW = 8192
Pieces = Iterator[tuple[float, bytes | Exception]]


@dataclass
class Played:
    """What the network sees of one request."""

    wait: float
    pieces: Pieces = field(default_factory=lambda: iter(()))
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    fails: Exception | None = None


# Of a model: what it says. Of the network: whether and when that arrives.
MISBEHAVIOURS = ("empty", "nothing", "random", "never enough", "same call", "unknown tools", "invented keys", "obeys",
                 "prose", "cut off", "wrong types", "endless", "slow")  # fmt: skip
FAILURES = ("refused", "reset", "hang", "limited", "500", "503", "html", "too long", "hang midway")
_FAULTS = {
    "prose": EndpointFault.prose,
    "cut off": EndpointFault.cut_off,
    "wrong types": EndpointFault.wrong_types,
    "limited": EndpointFault.limited_one,
    "500": EndpointFault.status_500,
    "503": EndpointFault.status_503,
    "html": EndpointFault.html,
    "too long": EndpointFault.too_long,
}


class SimulatedModel:
    """`trouble` is the chance that a reply is not what a good model would say; `outage` that the network fails."""

    def __init__(self, random: Random, note: Callable[[str], None]) -> None:
        self.random, self.note = random, note
        self.trouble = self.outage = 0.0
        self.kinds: tuple[str, ...] = MISBEHAVIOURS
        self.asked: Counter[str] = Counter()
        self._sound = synthesis_model()

    def play(self, request: httpx.Request) -> Played:
        if request.method == "GET":
            return self._whole({"data": [{"id": "simulated", "max_model_len": WINDOW}]}, 0.01)
        body = json.loads(request.content)
        role, name = role_of(body)
        kind = self._kind()
        self.asked[kind] += 1
        self.note(f"asks {name or role or 'probe'}: {kind}")
        return self._played(kind if role else "sound" if kind in MISBEHAVIOURS else kind, body)

    def _kind(self) -> str:
        if self.random.random() < self.outage:
            return self.random.choice(FAILURES)
        return self.random.choice(self.kinds) if self.random.random() < self.trouble else "sound"

    def _played(self, kind: str, body: dict[str, Any]) -> Played:
        wait = self.random.uniform(0.05, 1.5)
        match kind:
            case "refused":
                return Played(wait, fails=httpx.ConnectError("refused"))
            case "reset":
                return Played(wait, iter([(0.1, b'data: {"cho'), (0.1, httpx.ReadError("reset"))]))
            case "hang":
                return Played(NEVER)
            case "hang midway":
                return Played(wait, iter([(0.1, b"data: {"), (NEVER, b"")]), headers=_STREAM)
            case "endless" if body.get("stream"):
                line = {"choices": [{"index": 0, "delta": {"content": "and so on "}, "finish_reason": None}]}
                return Played(wait, repeat((0.5, f"data: {json.dumps(line)}\n\n".encode())), headers=_STREAM)
            case "endless":
                return Played(wait, repeat((0.5, b" ")))
            case "slow":
                return self._said(cooperative_reply(body), body, self.random.uniform(2.0, 25.0))
        return self._said(self._words(kind, body), body, wait)

    def _words(self, kind: str, body: Request) -> ModelOutput:
        seed = self.random.getrandbits(30)
        match kind:
            case "empty":
                return ""
            case "nothing":
                return {}
            case "random":
                return RandomModel(seed).answer(body)
            case "never enough":
                return AlwaysContinue(seed).answer(body)
            case "same call":
                return SameCall(otherwise=self._sound).answer(body)
            case "unknown tools":
                return UnknownTools(seed, otherwise=self._sound).answer(body)
            case "invented keys":
                return InventsKeys(seed, otherwise=self._sound).answer(body)
            case "obeys":
                return ObeysDocuments(otherwise=self._sound).answer(body)
            case "sound":
                return self._sound(body)
        return faulty_reply(_FAULTS[kind], body)

    def _said(self, output: ModelOutput, body: dict[str, Any], wait: float) -> Played:
        assert not isinstance(output, ConnectionAction)
        if isinstance(output, HttpReply):
            return Played(wait, iter([(0.0, output.data)]), output.status, {"content-type": output.media_type})
        reply = output if isinstance(output, Reply) else reply_of(output, body)
        if body.get("stream"):
            pace = self.random.choice((0.0, 0.01, 0.2))
            return Played(wait, ((pace, each) for each in events(reply, body, "simulated")), headers=_STREAM)
        return self._whole(completion(reply, "simulated"), wait)

    @staticmethod
    def _whole(body: dict[str, Any], wait: float) -> Played:
        return Played(wait, iter([(0.0, json.dumps(body).encode())]))


_STREAM = {"content-type": "text/event-stream"}
