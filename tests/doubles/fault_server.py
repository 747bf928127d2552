"""A chat endpoint that works until it is told to fail, in one of the ways that endpoints fail.

with FaultServer(script.answer, EndpointFault.hang, at="weigh") as server: ...
"""

from __future__ import annotations

from typing import Any

from doubles.chat_server import ChatServer
from doubles.fault_replies import EndpointFault, faulty_reply, with_wrong_usage
from doubles.protocol import (
    AnswerFunction,
    ConnectionAction,
    HttpReply,
    ModelOutput,
    call_answer,
    reply_of,
    role_of,
)


class FaultServer(ChatServer):
    """A `ChatServer` with faults: in all its replies, or in those to one role or prompt (`at`), and only in the first
    `times` of these. `fault`, `at` and `times` may be changed while it runs; `fault_count` is the number of faults
    sent.

    A request that gets a fault never reaches `answer`, unless the fault leaves the reply itself valid
    (`EndpointFault.harmless`). Broken tool arguments are sent in a tool call if tools are offered, else as the JSON of
    the reply.
    """

    def __init__(
        self,
        answer: AnswerFunction,
        fault: EndpointFault | None = None,
        at: str | None = None,
        times: int | None = None,
        *,
        model: str = "scripted",
        window: int | None = None,
    ) -> None:
        super().__init__(self._answer, model=model, window=window, refuse=self._refuses)
        self.fault = fault
        self.at = at
        self.times = times
        self.fault_count = 0
        self._behave = answer

    async def _answer(self, request: dict[str, Any]) -> ModelOutput:
        fault = self.fault
        if fault is None or not self._fails(*role_of(request)):
            return await call_answer(self._behave, request)
        self.fault_count += 1
        if not fault.harmless:
            return faulty_reply(fault, request, self.model)
        good = await call_answer(self._behave, request)
        if isinstance(good, (HttpReply, ConnectionAction)):
            return good
        return with_wrong_usage(fault, reply_of(good, request), request, self.model)

    def _fails(self, *asked: str) -> bool:
        return (self.at is None or self.at in asked) and (self.times is None or self.fault_count < self.times)

    def _refuses(self) -> bool:
        """Whether to reset a new connection unread. The role is unknown at that point, so `at` must be unset."""
        refuses = self.fault is EndpointFault.refuse and self.at is None and self._fails()
        self.fault_count += refuses
        return refuses
