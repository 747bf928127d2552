"""A chat endpoint that behaves well until it is told to misbehave, in one of the ways that endpoints do.

with FaultServer(script.answer, Fault.hang, at="weigh") as server: ...
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from assay.testing.chat import ChatServer
from assay.testing.misbehaviour import Fault, misbehaviour, misbilled
from assay.testing.protocol import Action, Answer, Http, Said, reply_of, role_of, said


class FaultServer:
    """A `ChatServer` (in `chat`) whose replies go wrong: all of them, or those to requests of one role or prompt (`at`), and
    only the first `times` of these. `fault`, `at` and `times` may be set while it runs; `struck` counts.

    A request that is struck never reaches `answer`, unless the fault leaves the reply itself good (`Fault.harmless`). What is
    wrong about tool arguments is sent as a tool call where tools are offered, and otherwise as the JSON of the reply.
    """

    def __init__(
        self,
        answer: Answer,
        fault: Fault | None = None,
        at: str | None = None,
        times: int | None = None,
        *,
        model: str = "scripted",
        window: int | None = None,
    ) -> None:
        self.fault = fault
        self.at = at
        self.times = times
        self.struck = 0
        self._well = answer
        self.chat = ChatServer(self._answer, model=model, window=window, shut=self._shut)

    @property
    def url(self) -> str:
        """What a client takes for its base URL."""
        return self.chat.url

    def __enter__(self) -> Self:
        self.chat.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.chat.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: Any, error: Any, at: Any) -> None:
        self.chat.close()

    async def _answer(self, request: dict[str, Any]) -> Said:
        fault = self.fault
        if fault is None or not self._strikes(*role_of(request)):
            return await said(self._well, request)
        self.struck += 1
        if not fault.harmless:
            return misbehaviour(fault, request, self.chat.model)
        good = await said(self._well, request)
        return (
            good
            if isinstance(good, (Http, Action))
            else misbilled(fault, reply_of(good, request), request, self.chat.model)
        )

    def _strikes(self, *asked: str) -> bool:
        return (self.at is None or self.at in asked) and (self.times is None or self.struck < self.times)

    def _shut(self) -> bool:
        """Who asks is known only once the request is read; a server that refuses everybody need not read it."""
        shut = self.fault is Fault.refuse and self.at is None and self._strikes()
        self.struck += shut
        return shut
