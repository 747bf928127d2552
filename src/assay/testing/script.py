"""A model that follows a script, by role: the same script in process, as an `LLM`, and over HTTP, in a `ChatServer`.

script = Script(route={"route": "research", ...}, decide=[calls("search", query="aspirin fever"), no_calls()], ...)
with ChatServer(script.answer) as server: ...
script.assert_used_up()
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from assay.models.llm import Prompt, Reply
from assay.testing.fill_policies import cooperative_reply
from assay.testing.protocol import (
    ModelOutput,
    Request,
    ScriptedCall,
    ScriptedCalls,
    reply_in_process,
    role_of,
    schema_of,
    text_of,
)

# Written when it is asked for: from all that the request says, and the schema its reply must keep to.
ReplyWriter = Callable[[str, Mapping[str, Any] | None], ModelOutput]
ScriptLine = ModelOutput | ReplyWriter


def calls(tool: str, /, **arguments: Any) -> ScriptedCalls:
    """The model calls a tool. `calls(…) + calls(…)` are made together."""
    return ScriptedCalls((ScriptedCall(tool, arguments),))


def no_calls(why: str = "nothing is left to look for") -> ScriptedCalls:
    """The model calls no tool."""
    return ScriptedCalls((), why)


class UnexpectedRequest(AssertionError):
    """The script has no reply for this request."""


class Script:
    """Replies by role, or by the name of the prompt where it has one: `critique=…` answers `Assay · judge · critique`, which
    `judge=…` would answer otherwise.

    A list of replies is used up in order, one for each request; a single reply is repeated; a function writes a reply out of
    `(request_text, schema)`, alone or within a list. A reply is a dict (sent as JSON), a str (as it is), `calls(…)`, or
    anything else that `ChatServer` can send. Requests that run side by side have no order: give their role a function.

    A request that the script does not foresee raises `Unexpected`, and is kept in `problems` for `assert_used_up`. One that is
    no prompt of a run (it names no role: an endpoint is asked what it can do) gets whatever it asks for.
    """

    name = "scripted"

    def __init__(self, **by_role: ScriptLine | list[ScriptLine]) -> None:
        self._lists = {role: deque(lines) for role, lines in by_role.items() if isinstance(lines, list)}
        self._always = {role: line for role, line in by_role.items() if not isinstance(line, list)}
        self.used: Counter[str] = Counter()
        self.problems: list[UnexpectedRequest] = []

    def answer(self, request: Request) -> ModelOutput:
        """The next reply to a request such as this: what a `ChatServer` takes."""
        role, prompt = role_of(request)
        if not role:
            return cooperative_reply(request)
        line = self._line(role, prompt)
        if not callable(line):
            return line
        try:
            return line(text_of(request), schema_of(request))
        except AssertionError as problem:
            raise self._unexpected(f"the reply for {prompt or role} cannot be written: {problem}") from problem

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        return await reply_in_process(self.answer, prompt)

    def _line(self, role: str, prompt: str) -> ScriptLine:
        for part in (prompt, role):
            self.used[part] += part in self._lists or part in self._always
            if self._lists.get(part):
                return self._lists[part].popleft()
            if part in self._lists:
                raise self._unexpected(f"one request more than the script has replies for {part}")
            if part in self._always:
                return self._always[part]
        asked = " · ".join(part for part in (role, prompt) if part)
        raise self._unexpected(f"the script has no reply for {asked}")

    def _unexpected(self, words: str) -> UnexpectedRequest:
        self.problems.append(UnexpectedRequest(words))
        return self.problems[-1]

    def assert_used_up(self) -> None:
        """Every request was foreseen, and every reply was used: those in a list all, those that repeat once at least."""
        wrong = [str(problem) for problem in self.problems]
        wrong += [f"{len(left)} of the replies for {role} not used" for role, left in self._lists.items() if left]
        wrong += [f"the reply for {role} not used" for role in self._always if not self.used[role]]
        if wrong:
            raise AssertionError("; ".join(wrong))
