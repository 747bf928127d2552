"""What a tool is: a typed, read-only function over a `ToolContext`. The signature is the schema, the docstring the manual.

Arguments are checked strictly, before anything runs: what does not fit is a `ToolError` that says what is wrong.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import typing
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal

from assay.agent.tool_context import Consult, Result, ToolContext, as_found
from assay.core.errors import ToolError, UserError
from assay.core.types import Scalar
from assay.language.clean import clean_text
from assay.models.llm import ToolSpec

__all__ = ["Consult", "Result", "Tool", "ToolContext", "Within", "as_found", "checked", "guarded", "schema_of", "tool"]

Body = Callable[..., Any]  # async for all of ours; a person's own may be a plain function
Value = Scalar | tuple[str, ...]

LONG = 500  # characters of an argument
LONG_QUERY = 20_000  # of a query: a person's whole question may be one, though a model is told to be brief
WAIT = 30.0  # seconds that somebody's own tool may take


@dataclass(frozen=True, slots=True)
class Within:
    """Bounds, both included: of a number, of a text's length, or of how many a list holds."""

    low: int
    high: int


Query = Annotated[str, Within(1, LONG_QUERY)]
Count = Annotated[int, Within(1, 50)]
Brief = Annotated[str, Within(0, 100)]  # a date, a type or a name; empty for none


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    about: str  # the docstring: what it is for, and a line for each argument
    body: Body
    seconds: float = 0.0  # how long it may take; set for tools that are somebody's own

    async def __call__(self, tool_context: ToolContext, arguments: Mapping[str, Any]) -> Result:
        given = checked(self, arguments)
        if self.seconds:
            return await _own(self, tool_context, given)
        try:
            return await self.body(tool_context, **given)
        except UserError as error:  # what would be a person's to put right is the model's here
            raise ToolError(str(error)) from error


def tool(body: Body) -> Tool:
    return Tool(getattr(body, "__name__", "tool"), inspect.getdoc(body) or "", body)


# --- the signature --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument: what it must be, its bounds, and what stands in for it where it is left out."""

    name: str
    kind: Literal["string", "integer", "number", "boolean", "strings"]
    low: int
    high: int
    choices: tuple[str, ...] = ()
    required: bool = True
    default: Any = None


@cache
def parameters_of(body: Body) -> tuple[Parameter, ...]:
    """The arguments of a tool. Raises `TypeError` where the signature is not one that a model can be told of."""
    try:
        hints = typing.get_type_hints(body, include_extras=True)
    except Exception as error:  # whatever an annotation may run into
        raise TypeError(f"its annotations cannot be read ({error})") from error
    first, *others = inspect.signature(body).parameters.values() or (None,)
    if first is None or first.name != "context":
        raise TypeError("its first argument must be called 'context'")
    return tuple(_parameter(each, hints.get(each.name)) for each in others)


def _parameter(of: inspect.Parameter, hint: Any) -> Parameter:
    if of.kind in {of.VAR_POSITIONAL, of.VAR_KEYWORD, of.POSITIONAL_ONLY}:
        raise TypeError(f"{of.name!r} must be an argument with a name of its own")
    required = of.default is of.empty
    given = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Within)), None)
    inner = typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint
    if typing.get_origin(inner) is Literal and all(isinstance(each, str) for each in typing.get_args(inner)):
        return Parameter(of.name, "string", 0, LONG, typing.get_args(inner), required, of.default)
    if inner is bool:
        return Parameter(of.name, "boolean", 0, 1, (), required, of.default)
    bounds: dict[Any, tuple[Any, Within]] = {
        str: ("string", Within(1 if required else 0, LONG)),
        int: ("integer", Within(1, 50) if of.name == "k" else Within(0, 1_000_000)),
        float: ("number", Within(-1_000_000_000, 1_000_000_000)),
        list[str]: ("strings", Within(1, 20)),
        tuple[str, ...]: ("strings", Within(1, 20)),
    }
    known = next((of_kind for each, of_kind in bounds.items() if each == inner), None)
    if known is None:
        raise TypeError(f"{of.name!r} must be str, int, float, bool, list[str] or a Literal of strings")
    within = given or known[1]
    return Parameter(of.name, known[0], within.low, within.high, (), required, of.default)


def manual(tool: Tool) -> tuple[str, dict[str, str]]:
    """The docstring as what the tool is for, and what it says about each argument."""
    names = {each.name for each in parameters_of(tool.body)}
    lines: dict[str, str] = {}
    about: list[str] = []
    for line in tool.about.splitlines():
        match = re.fullmatch(r"(\w+): (.+)", line.strip())
        if match and match[1] in names:
            lines[match[1]] = match[2]
        else:
            about.append(line.strip())
    return re.sub(r"\n{2,}", "\n", "\n".join(about)).strip(), lines


def schema_of(tool: Tool) -> ToolSpec:
    """The tool as a model is told of it."""
    about, lines = manual(tool)
    parameters = parameters_of(tool.body)
    return ToolSpec(
        tool.name,
        about,
        {
            "type": "object",
            "properties": {each.name: _property(each, lines.get(each.name, "")) for each in parameters},
            "required": [each.name for each in parameters if each.required],
            "additionalProperties": False,
        },
    )


def _property(of: Parameter, line: str) -> dict[str, Any]:
    longest = min(of.high, LONG)
    text: dict[str, Any] = {"type": "string", **({"minLength": of.low} if of.low else {}), "maxLength": longest}
    shape: dict[str, Any]
    match of.kind:
        case "string":
            shape = {"type": "string", "enum": list(of.choices)} if of.choices else text
        case "strings":
            items = {"type": "string", "minLength": 1, "maxLength": LONG}
            shape = {"type": "array", "items": items, "minItems": of.low, "maxItems": of.high}
        case "boolean":
            shape = {"type": "boolean"}
        case _:
            shape = {"type": of.kind, "minimum": of.low, "maximum": of.high}
    default = {} if of.required else {"default": list(of.default) if of.kind == "strings" else of.default}
    return shape | ({"description": line} if line else {}) | default


# --- checking -------------------------------------------------------------------------------------------------------


def checked(tool: Tool, arguments: Any) -> dict[str, Value]:
    """The arguments as the tool takes them, if they fit exactly. Nothing is converted; an optional one may be null."""
    if not isinstance(arguments, Mapping):
        raise ToolError(f"{tool.name} takes one JSON object of arguments, not {_said(arguments)}.")
    parameters = parameters_of(tool.body)
    for name in arguments:
        if name not in {each.name for each in parameters}:
            taken = ", ".join(each.name for each in parameters) or "none"
            raise ToolError(f"{tool.name} takes no argument {_short(str(name))!r}. It takes: {taken}.")
    given: dict[str, Value] = {}
    for each in parameters:
        value = arguments.get(each.name)
        if value is not None:
            given[each.name] = _fitting(tool.name, each, value)
        elif each.required:
            raise ToolError(f"{tool.name} needs the argument {each.name!r}.")
    return given


WANTED = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "strings": "a list of strings",
}
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "strings": (list, tuple),
}


def _fitting(tool: str, of: Parameter, value: Any) -> Value:
    fits = isinstance(value, TYPES[of.kind]) and (of.kind == "boolean") == (type(value) is bool)
    if not fits or (of.kind == "strings" and not all(isinstance(each, str) for each in value)):
        raise ToolError(f"{tool}: {of.name!r} must be {WANTED[of.kind]}, not {_said(value)}.")
    if of.kind == "strings":
        if not of.low <= len(value) <= of.high:
            raise ToolError(f"{tool}: {of.name!r} must have {of.low} to {of.high} entries, not {len(value)}.")
        return tuple(_text(tool, of.name, each, 1, LONG) for each in value)
    if of.choices:
        if value not in of.choices:
            raise ToolError(f"{tool}: {of.name!r} must be one of: {', '.join(of.choices)}; not {_short(value)!r}.")
        return value
    if of.kind == "string":
        return _text(tool, of.name, value, of.low, of.high)
    if of.kind != "boolean" and not of.low <= value <= of.high:
        instead = f", not {value}" if abs(value) < 1e15 else ""
        raise ToolError(f"{tool}: {of.name!r} must be from {of.low} to {of.high}{instead}.")
    return value


def _text(tool: str, name: str, value: str, low: int, high: int) -> str:
    if low and not value.strip():
        raise ToolError(f"{tool}: {name!r} must not be empty.")
    if not low <= len(value) <= high:
        few = f"at least {low} are needed" if len(value) < low else f"at most {high} are allowed"
        raise ToolError(f"{tool}: {name!r} is {len(value)} characters long; {few}.")
    if any("\ud800" <= sign <= "\udfff" for sign in value):  # half a character: nothing can store it
        raise ToolError(f"{tool}: {name!r} holds characters that are not text.")
    return value


def _said(value: Any) -> str:
    """A JSON value's type in words."""
    named: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (bool, "true or false"),
        (str, "a string"),
        (int, "a whole number"),
        (float, "a number"),
        ((list, tuple), "a list"),
        (Mapping, "an object"),
    )
    return next((word for kind, word in named if isinstance(value, kind)), "null")


def _short(words: str, most: int = 60) -> str:
    words = clean_text(words).encode("utf-8", "replace").decode()
    return words if len(words) <= most else f"{words[:most]}…"


# --- somebody's own tool --------------------------------------------------------------------------------------------


def guarded(tool: Tool, seconds: float = WAIT) -> Tool:
    """The same tool where nothing it does can harm a run: whatever it raises is refused, and it gets only so long."""
    return replace(tool, seconds=seconds)


async def _own(tool: Tool, tool_context: ToolContext, given: Mapping[str, Value]) -> Result:
    call = _started(tool.body, tool_context, given)
    task = asyncio.ensure_future(call)
    try:
        # Not `wait_for`: that would wait on for a task which does not let itself be cancelled.
        await asyncio.wait({task}, timeout=tool.seconds)
        if not task.done():
            raise ToolError(f"{tool.name} took longer than {tool.seconds:g} seconds.")
        if task.cancelled():
            raise ToolError(f"{tool.name} failed: it was cancelled.")
        outcome = task.result()
    finally:
        task.cancel()
    if isinstance(outcome, ToolError):
        raise ToolError(_short(str(outcome), LONG))
    if isinstance(outcome, BaseException):
        raise ToolError(f"{tool.name} failed: {type(outcome).__name__}: {_short(str(outcome), 200)}") from outcome
    if isinstance(outcome, str):
        return Result(note=clean_text(outcome))
    if not isinstance(outcome, Result):
        raise ToolError(f"{tool.name} failed: it gave back {type(outcome).__name__}, not a Result or text.")
    return _vouched(tool, tool_context, outcome)


def _started(body: Body, tool_context: ToolContext, given: Mapping[str, Value]) -> Coroutine[Any, Any, Any]:
    return (
        _awaited(body, tool_context, given)
        if inspect.iscoroutinefunction(body)
        else _threaded(body, tool_context, given)
    )


async def _awaited(body: Body, tool_context: ToolContext, given: Mapping[str, Value]) -> Any:
    try:
        return await body(tool_context, **given)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # also SystemExit: a tool does not end the process
        return error


async def _threaded(body: Body, tool_context: ToolContext, given: Mapping[str, Value]) -> Any:
    """A plain function in a thread of its own, which the process does not wait for at its end."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(body(tool_context, **given))
        except BaseException as error:
            outcome.append(error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name=f"tool {getattr(body, '__name__', '')}", daemon=True).start()
    await done.wait()
    return outcome[0]


def _vouched(tool: Tool, tool_context: ToolContext, result: Result) -> Result:
    """What somebody's own tool found counts only if it stands so in a document that this person may read."""
    known = {each.passage.doc_id: tool_context.document(each.passage.doc_id) for each in result.found}
    for each in result.found:
        document = known[each.passage.doc_id]
        if document is None or document.text[each.passage.start : each.passage.end] != each.passage.text:
            raise ToolError(f"{tool.name} failed: a passage that it gave back does not stand in a document.")
    readable = tool_context.titles(result.documents)
    return replace(
        result,
        note=clean_text(result.note),
        documents=tuple(each for each in result.documents if each in readable),
        left=max(0, result.left),
    )
