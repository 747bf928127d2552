"""What a tool is: a typed, read-only function over a `Desk`. The signature is the schema; arguments are checked strictly."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from assay.access import Scope
from assay.errors import ToolError
from assay.events import Found
from assay.index.filters import EVERYTHING, Filter
from assay.index.retrieve import Shelf, retrieve
from assay.types import Hit, Scalar


@dataclass(frozen=True, slots=True)
class Desk:
    """What a tool may touch: searching, for one person. The scope is made anew at each call, by the server alone."""

    shelf: Shelf
    scope: Callable[[], Scope]
    where: Filter = EVERYTHING  # what the person, or the question itself, limited the search to
    seen: dict[str, Hit] = field(default_factory=dict)  # every hit of this run by passage, with its vector

    async def retrieve(self, query: str, k: int) -> list[Hit]:
        hits = await retrieve(self.shelf, query, k, self.scope(), self.where)
        self.seen.update({hit.passage.id: hit for hit in hits})
        return hits


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gives back: passages, and a line that says how it went."""

    found: tuple[Found, ...]
    note: str


Body = Callable[..., Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    about: str
    body: Body

    async def __call__(self, desk: Desk, arguments: Mapping[str, Scalar]) -> Result:
        return await self.body(desk, **checked(self, arguments))


def tool(body: Body) -> Tool:
    return Tool(getattr(body, "__name__", "tool"), inspect.getdoc(body) or "", body)


def checked(tool: Tool, arguments: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The arguments, if they fit the signature exactly; otherwise a `ToolError` that says what is wrong."""
    signature = inspect.signature(tool.body)
    hints = typing.get_type_hints(tool.body)
    parameters = {name: each for name, each in signature.parameters.items() if name != "desk"}
    for name in arguments:
        if name not in parameters:
            raise ToolError(f"{tool.name} takes no argument {name!r}. It takes: {', '.join(parameters)}.")
    for name, parameter in parameters.items():
        if name not in arguments:
            if parameter.default is inspect.Parameter.empty:
                raise ToolError(f"{tool.name} needs the argument {name!r}.")
            continue
        value = arguments[name]
        if not isinstance(value, hints[name]) or (hints[name] is int and isinstance(value, bool)):
            raise ToolError(f"{tool.name}: {name!r} must be {hints[name].__name__}, not {type(value).__name__}.")
    return dict(arguments)


def as_found(hits: list[Hit]) -> tuple[Found, ...]:
    return tuple(Found(hit.passage, hit.rank, hit.scores.get("fused", 0.0)) for hit in hits)
