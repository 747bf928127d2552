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
from doubles.fill_policies import cooperative_reply
from doubles.protocol import (
    ModelOutput,
    Request,
    ScriptedCall,
    ScriptedCalls,
    reply_in_process,
    role_of,
    schema_of,
    text_of,
)

# A reply computed on request, from the request's text and the schema the reply must match.
ReplyWriter = Callable[[str, Mapping[str, Any] | None], ModelOutput]
ScriptLine = ModelOutput | ReplyWriter


def calls(tool: str, /, **arguments: Any) -> ScriptedCalls:
    """The model calls a tool. `calls(…) + calls(…)` are parallel calls."""
    return ScriptedCalls((ScriptedCall(tool, arguments),))


def no_calls(why: str = "nothing is left to look for") -> ScriptedCalls:
    """The model calls no tool."""
    return ScriptedCalls((), why)


ENOUGH: Mapping[str, Any] = {"answers": [], "enough": True, "missing": [], "searches": [], "surprise": False}


def _needs_plan(routing: Mapping[str, Any]) -> bool:
    searches = routing.get("route") == "research" or routing.get("every")
    return bool(searches) and not routing.get("readings") and "steps" not in routing


def _mapping(reply: ModelOutput) -> Mapping[str, Any]:
    return reply if isinstance(reply, Mapping) else {}


class UnexpectedRequest(AssertionError):
    """The script has no reply for this request."""


class Script:
    """Replies by role, or by the name of the prompt if it has one: `revise=…` answers `Assay · write · revise`, which
    `write=…` would answer otherwise.

    A list of replies is consumed in order, one per request; a single reply is repeated; a function computes a reply
    from `(request_text, schema)`, alone or within a list. A reply is a dict (sent as JSON), a str (unchanged),
    `calls(…)`, or anything else that `ChatServer` can send. Parallel requests have no order: give their role a
    function.

    An unexpected request raises `UnexpectedRequest`, and is kept in `problems` for `assert_used_up`. A request that is
    not a prompt of a run (it names no role: a probe of an endpoint's capabilities) gets whatever it asks for.
    """

    name = "scripted"

    def __init__(self, **by_role: ScriptLine | list[ScriptLine]) -> None:
        self._lists = {role: deque(lines) for role, lines in by_role.items() if isinstance(lines, list)}
        self._always = {role: line for role, line in by_role.items() if not isinstance(line, list)}
        self.used: Counter[str] = Counter()
        self.problems: list[UnexpectedRequest] = []

    def answer(self, request: Request) -> ModelOutput:
        """The next reply to such a request; pass this to a `ChatServer`. A request that asks for a route and a plan gets
        both in one, and so does one that asks for weights and a judgement; a judgement is "enough" if there is none."""
        role, prompt = role_of(request)
        if not role:
            return cooperative_reply(request)
        reply = self._written(role, prompt, request)
        wanted = (schema_of(request) or {}).get("properties", {})
        if not isinstance(reply, Mapping):
            return reply
        if role == "route" and "steps" in wanted and _needs_plan(reply):
            return {**reply, **_mapping(self._written("plan", "", request))}
        if role == "weigh" and "enough" in wanted and "enough" not in reply:
            judged = self._written("judge", "", request) if self._has("judge") else ENOUGH
            return {**reply, **_mapping(judged)}
        return reply

    def _written(self, role: str, prompt: str, request: Request) -> ModelOutput:
        line = self._line(role, prompt)
        if not callable(line):
            return line
        try:
            return line(text_of(request), schema_of(request))
        except AssertionError as problem:
            raise self._unexpected(f"the reply for {prompt or role} cannot be written: {problem}") from problem

    def _has(self, role: str) -> bool:
        return role in self._lists or role in self._always

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
        """Asserts that every request was expected and every reply used: all replies of a list, repeated ones at least
        once."""
        wrong = [str(problem) for problem in self.problems]
        wrong += [f"{len(left)} of the replies for {role} not used" for role, left in self._lists.items() if left]
        wrong += [f"the reply for {role} not used" for role in self._always if not self.used[role]]
        if wrong:
            raise AssertionError("; ".join(wrong))
