"""The chat protocol as plain data: what a request asks for, and what a test model may reply.

Every test model answers a request body. In process, a `Prompt` is first converted to the body that would have been
sent, so the same model works in process and behind a server.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.core.types import Usage
from assay.models.llm import Prompt, Reply, ToolCall
from doubles.local_server import HttpExchange

Request = Mapping[str, Any]  # the parsed body of one POST to /v1/chat/completions


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call. Arguments given as a string are sent unchanged, valid or not."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScriptedCalls:
    """Parallel tool calls, or none. A request with `tools` gets them natively, any other as one JSON object `{"why": …,
    "calls": [{"tool": …, "arguments": …}]}`. `+` joins two."""

    calls: tuple[ScriptedCall, ...] = ()
    why: str = "as scripted"

    def __add__(self, other: ScriptedCalls) -> ScriptedCalls:
        return ScriptedCalls((*self.calls, *other.calls), self.why)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A complete HTTP response instead of a model's reply: any status, any body."""

    status: int
    body: bytes | str | Mapping[str, Any] = b""
    media_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else _as_text(self.body).encode()


@dataclass(frozen=True, slots=True)
class ConnectionAction:
    """An arbitrary action on a connection: `play` gets the exchange. Only a server can play it."""

    play: Callable[[HttpExchange], Awaitable[None]]


ModelOutput = str | Mapping[str, Any] | ScriptedCalls | Reply | HttpReply | ConnectionAction
AnswerFunction = Callable[[dict[str, Any]], ModelOutput | Awaitable[ModelOutput]]


async def call_answer(answer: AnswerFunction, request: dict[str, Any]) -> ModelOutput:
    """Calls an answer function, sync or async."""
    output = answer(request)
    return await output if inspect.isawaitable(output) else output


async def reply_in_process(answer: AnswerFunction, prompt: Prompt) -> Reply:
    """The reply of an answer function to a prompt, without a server."""
    request = body_of(prompt)
    output = await call_answer(answer, request)
    if isinstance(output, (HttpReply, ConnectionAction)):
        raise TypeError(f"only a server can send {type(output).__name__}")
    return reply_of(output, request)


def reply_of(output: str | Mapping[str, Any] | ScriptedCalls | Reply, request: Request) -> Reply:
    """Converts the output to a `Reply`: a dict as JSON, calls in the form that this request supports, with tokens counted."""
    if isinstance(output, Reply):
        return output if output.usage.calls else _with_usage(output, request)
    if not isinstance(output, ScriptedCalls):
        return _with_usage(Reply(_as_text(output)), request)
    if not request.get("tools"):
        calls = [{"tool": call.tool, "arguments": call.arguments} for call in output.calls]
        return _with_usage(Reply(_as_text({"why": output.why, "calls": calls})), request)
    if not output.calls:
        return _with_usage(Reply(output.why), request)
    turn = len(request.get("messages", ()))  # a conversation only grows, so ids are unique within it
    native = tuple(
        ToolCall(f"call_{turn}_{n}", call.tool, _as_text(call.arguments)) for n, call in enumerate(output.calls)
    )
    return _with_usage(Reply("", native, "tool_calls"), request)


def _with_usage(reply: Reply, request: Request) -> Reply:
    asked = sum(len(_content(message)) for message in request.get("messages", ()))
    characters = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
    usage = Usage(calls=1, tokens_in=asked // 4 + 1, tokens_out=characters // 4 + 1)
    return Reply(reply.text, reply.calls, reply.finish, usage, reply.model)


def _as_text(output: str | Mapping[str, Any]) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


# --- reading a request ----------------------------------------------------------------------------------------------


def role_of(request: Request) -> tuple[str, str]:
    """The role and the name of the prompt, from its first line: `Assay · write · revise` gives ("write", "revise").
    A prompt without a name of its own has the name ""; one that is not Assay's has neither."""
    messages = request.get("messages") or ({},)
    first = _content(messages[0]).partition("\n")[0]
    title, role, name = ([part.strip() for part in first.split("·")] + ["", ""])[:3]
    return (role, name) if title == "Assay" else ("", "")


def text_of(request: Request) -> str:
    """The text of all messages of the request, concatenated."""
    return "\n\n".join(_content(message) for message in request.get("messages", ()))


def tools_of(request: Request) -> dict[str, Mapping[str, Any]]:
    """The tools that a request offers, name → JSON schema of the arguments: native, in its JSON schema, or in its text."""
    if native := request.get("tools"):
        return {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in native}
    calls = ((schema_of(request) or {}).get("properties", {}).get("calls") or {}).get("items", {}).get("anyOf", ())
    if calls:
        offered = [call["properties"] for call in calls]
        return {each["tool"]["enum"][0]: each["arguments"] for each in offered}
    offered_tools = _OFFERED.findall(text_of(request)) if role_of(request)[0] == "decide" else []
    return {
        name: _signature(arguments) for name, arguments in reversed(offered_tools)
    }  # past calls come later in the text


_OFFERED = re.compile(r"^- (\w+)\((.*?)\): ", re.MULTILINE)
_ARGUMENT = re.compile(r"(\w+): (string|integer|number|boolean)\b(?:[^,=]*)(=)?")


def _signature(arguments: str) -> Mapping[str, Any]:
    """Parses `query: string, k: integer = 8` into a JSON schema; anything beyond a plain type name is ignored."""
    found = _ARGUMENT.findall(arguments)
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind, _ in found},
        "required": [name for name, _, default in found if not default],
    }


def schema_of(request: Request) -> Mapping[str, Any] | None:
    """The JSON schema that the reply must match: from the request, or else from its text."""
    form = request.get("response_format") or {}
    stated = (form.get("json_schema") or {}).get("schema") or form.get("schema")
    if stated:
        return stated
    return next((found for found in _objects(text_of(request)) if "properties" in found), None)


def asked_in(text: str) -> str:
    """The text of a prompt without the documents it quotes."""
    return _FENCED.sub("", text)


_KEY = re.compile(r"\bkey:? ([0-9a-f]{8})\b")


def keys_in(text: str) -> list[str]:
    """The evidence keys that a prompt shows, in order, without duplicates."""
    return list(dict.fromkeys(_KEY.findall(text)))


_FENCED = re.compile(r"⟦(\w+) quoted: (?:key:? )?([^,·⟧]*)[^⟧]*⟧\n(.*?)\n⟦end \1⟧", re.DOTALL)


# Labels of fenced text that is not a passage: written by models, tools and other people.
_NOT_PASSAGES = frozenset(
    "steps missing searches collections documents objections parts readings claims claim aspect kind subject".split()
)


def passages_in(text: str) -> dict[str, str]:
    """The document text that a prompt shows, by the id or key it is shown under."""
    found = ((match[2].strip(), match[3]) for match in _FENCED.finditer(text))
    return {label: words for label, words in found if label not in _NOT_PASSAGES}


def quoted_in(text: str) -> list[tuple[str, str]]:
    """All fenced text of a prompt, with its labels: text from documents and from other untrusted sources."""
    return [(match[2].strip(), match[3]) for match in _FENCED.finditer(text)]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
            yield found
        except ValueError:
            at += 1


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)


def body_of(prompt: Prompt) -> dict[str, Any]:
    """The request body that a prompt would be sent as."""
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.text} for message in prompt.messages],
        "max_tokens": prompt.max_tokens,
        "temperature": prompt.temperature,
    }
    if prompt.form == "schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "reply", "schema": prompt.schema}}
    elif prompt.form == "json":
        body["response_format"] = {"type": "json_object", "schema": prompt.schema}
    if prompt.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.about, "parameters": t.parameters}}
            for t in prompt.tools
        ]
    return body
