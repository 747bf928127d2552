"""What a tool is, and the interface through which it accesses data, for one person and one run: read-only, and never
wider than the scope."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from assay.answer.weigh import evidence_key
from assay.core.access import Scope
from assay.core.errors import ToolError, UserError
from assay.core.events import Found
from assay.core.printable import clean_text
from assay.core.types import Document, Evidence, Hit, Passage, Scalar
from assay.index.filters import EVERYTHING, Eq, Filter, both, matches
from assay.index.retrieve import SearchContext, permitted, readable, retrieve
from assay.index.search_filter import filter_fields
from assay.models.llm import ToolSpec
from assay.store import documents
from assay.store.documents import Entry, Traits

__all__ = ["Consult", "Result", "Tool", "ToolContext", "Within", "as_found", "checked", "schema_of", "tool"]

Body = Callable[..., Any]  # async for all built-in tools; a custom tool may be a plain function
Value = Scalar | tuple[str, ...]

LONG = 500  # characters of an argument
LONG_QUERY = 20_000  # of a query: a person's whole question may be one, though the schema asks models to be brief
NOT_BLANK = r"[^\s\x1c-\x1f]"
WAIT = 30.0  # seconds a custom tool may take


@dataclass(frozen=True, slots=True)
class Within:
    """Inclusive bounds of a number, of a text's length, or of a list's length."""

    low: int
    high: int


Query = Annotated[str, Within(1, LONG_QUERY)]
Count = Annotated[int, Within(1, 50)]
Brief = Annotated[str, Within(0, 100)]  # a date, a type or a name; empty for none


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    about: str  # the docstring: purpose, and a line per argument
    body: Body
    seconds: float = 0.0  # time limit; custom tools have one
    hides_note: bool = False  # the model sees only the tool's passages, since its note adds nothing
    reads_one: bool = False  # it reads within one document, so more of its results are worth weighing

    async def __call__(self, tool_context: ToolContext, arguments: Mapping[str, Any]) -> Result:
        given = checked(self, arguments)
        if self.seconds:
            return await _own(self, tool_context, given)
        try:
            return await self.body(tool_context, **given)
        except UserError as error:  # a user error is the model's to correct here
            raise ToolError(str(error)) from error


def tool(body: Body) -> Tool:
    """Turn a function into a tool: its name, docstring and signature are shown to models."""
    return Tool(getattr(body, "__name__", "tool"), inspect.getdoc(body) or "", body)


def built_in(*, hides_note: bool = False, reads_one: bool = False) -> Callable[[Body], Tool]:
    """`tool` for a built-in tool with one of these properties."""
    return lambda body: replace(tool(body), hides_note=hides_note, reads_one=reads_one)


# --- the signature --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a tool: the type that validates it, and its default."""

    name: str
    type: TypeAdapter[Any]
    required: bool
    default: Any


@cache
def parameters_of(body: Body) -> tuple[Parameter, ...]:
    """A tool's arguments, from its signature. Raises `TypeError` if the signature has no schema."""
    try:
        hints = typing.get_type_hints(body, include_extras=True)
    except Exception as error:  # evaluating an annotation may raise anything
        raise TypeError(f"its annotations cannot be read ({error})") from error
    first, *others = inspect.signature(body).parameters.values() or (None,)
    if first is None or first.name != "context":
        raise TypeError("its first argument must be called 'context'")
    return tuple(_parameter(each, hints.get(each.name)) for each in others)


def _parameter(of: inspect.Parameter, hint: Any) -> Parameter:
    if of.kind in {of.VAR_POSITIONAL, of.VAR_KEYWORD, of.POSITIONAL_ONLY}:
        raise TypeError(f"{of.name!r} must be an argument with a name of its own")
    inner, *extras = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    required = of.default is of.empty
    if inner is not bool and not (
        typing.get_origin(inner) is Literal and all(isinstance(each, str) for each in typing.get_args(inner))
    ):
        defaults: list[tuple[Any, Within]] = [
            (str, Within(1 if required else 0, LONG)),
            (int, Within(1, 50) if of.name == "k" else Within(0, 1_000_000)),
            (float, Within(-1_000_000_000, 1_000_000_000)),
            (list[str], Within(1, 20)),
            (tuple[str, ...], Within(1, 20)),
        ]
        usual = next((within for kind, within in defaults if kind == inner), None)
        if usual is None:
            raise TypeError(f"{of.name!r} must be str, int, float, bool, list[str] or a Literal of strings")
        inner = _bounded(inner, next((each for each in extras if isinstance(each, Within)), usual))
    adapter = TypeAdapter[Any](inner, config=ConfigDict(strict=True, allow_inf_nan=False))
    return Parameter(of.name, adapter, required, of.default)


def _bounded(kind: Any, within: Within) -> Any:
    low, high = within.low, within.high
    if kind is str:
        return Annotated[str, Field(min_length=low or None, max_length=high, pattern=NOT_BLANK if low else None)]
    if kind in (int, float):
        return Annotated[kind, Field(ge=low, le=high)]
    entry = _bounded(str, Within(1, LONG))
    return Annotated[tuple[entry, ...], Field(strict=False, min_length=low, max_length=high)]  # a list becomes a tuple


def manual(tool: Tool) -> tuple[str, dict[str, str]]:
    """Split the docstring into the purpose and the description of each argument."""
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


@lru_cache(maxsize=256)
def schema_of(tool: Tool) -> ToolSpec:
    """The tool's specification as sent to a model."""
    about, lines = manual(tool)
    parameters = parameters_of(tool.body)
    properties = {each.name: _property(each, lines.get(each.name, "")) for each in parameters}
    required = [each.name for each in parameters if each.required]
    schema = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    return ToolSpec(tool.name, about, schema)


SCHEMA_KEYS = ("type", "enum", "items")  # bounds are checked, and named where one is passed


def _property(of: Parameter, line: str) -> dict[str, Any]:
    return _ordered(of.type.json_schema()) | ({"description": line} if line else {})


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """The keys of a JSON schema shown to models, in a fixed order, since recorded requests are looked up by digest."""
    if "const" in schema:  # a Literal of one choice
        schema["enum"] = [schema["const"]]
    if "items" in schema:
        schema["items"] = _ordered(schema["items"])
    return {key: schema[key] for key in SCHEMA_KEYS if key in schema}


# --- checking -------------------------------------------------------------------------------------------------------


def checked(tool: Tool, arguments: Any) -> dict[str, Value]:
    """The validated arguments. Nothing is converted; an optional argument may be null. Raises `ToolError` on a mismatch."""
    if not isinstance(arguments, Mapping):
        raise ToolError(f"{tool.name} takes one JSON object of arguments, not {GIVEN.get(type(arguments), 'null')}.")
    parameters = parameters_of(tool.body)
    names = [each.name for each in parameters]
    for name in arguments:
        if name not in names:
            taken = ", ".join(names) or "none"
            raise ToolError(f"{tool.name} takes no argument {_short(str(name))!r}. It takes: {taken}.")
    given: dict[str, Value] = {}
    for each in parameters:
        value = arguments.get(each.name)
        if value is None and each.required:
            raise ToolError(f"{tool.name} needs the argument {each.name!r}.")
        if value is not None:
            try:
                given[each.name] = each.type.validate_python(at_most(each, value))
            except ValidationError as error:
                raise ToolError(f"{tool.name}: {each.name!r} {_explain(each, value, error)}.") from None
    return given


def at_most(of: Parameter, value: Any) -> Any:
    """A number of results that is too high is the highest one allowed: nobody has to ask again for that."""
    most = of.type.json_schema().get("maximum") if of.name == "k" and type(value) is int else None
    return value if most is None else min(value, most)


WANTED = {  # by the type in the JSON schema
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list of strings",
}
GIVEN = {  # by the type of the value
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    dict: "an object",
}


def _explain(of: Parameter, value: Any, error: ValidationError) -> str:
    """Explain in words why an argument's value is invalid."""
    first = error.errors(include_url=False)[0]
    context, schema = first.get("ctx", {}), of.type.json_schema()
    match first["type"]:
        case "string_too_short" if context["min_length"] > 1 and first["input"]:
            return f"is {len(first['input'])} characters long; at least {context['min_length']} are needed"
        case "string_pattern_mismatch" | "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"is {len(first['input'])} characters long; at most {context['max_length']} are allowed"
        case "string_unicode":  # a lone surrogate cannot be stored
            return "holds characters that are not text"
        case "too_short" | "too_long":
            return f"must have {schema['minItems']} to {schema['maxItems']} entries, not {len(value)}"
        case "literal_error" if isinstance(value, str):
            return f"must be one of: {', '.join(_ordered(schema)['enum'])}; not {_short(value)!r}"
        case "greater_than_equal" | "less_than_equal" | "finite_number":
            instead = f", not {value}" if abs(value) < 1e15 else ""
            return f"must be from {schema['minimum']} to {schema['maximum']}{instead}"
        case _:
            return f"must be {WANTED[schema['type']]}, not {GIVEN.get(type(value), 'null')}"


def _short(words: str, most: int = 60) -> str:
    words = clean_text(words).encode("utf-8", "replace").decode()
    return words if len(words) <= most else f"{words[:most]}…"


# --- custom tools ---------------------------------------------------------------------------------------------------


async def _own(tool: Tool, tool_context: ToolContext, given: Mapping[str, Value]) -> Result:
    """Run a custom tool so that it cannot harm a run: any exception becomes a refusal, and it has a time limit."""
    task = asyncio.ensure_future(_outcome(tool.body, tool_context, given))
    try:
        # Not `wait_for`: it would keep waiting for a task that ignores cancellation.
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


async def _outcome(body: Body, tool_context: ToolContext, given: Mapping[str, Value]) -> Any:
    """The function's return value, or the exception it raises."""
    if not inspect.iscoroutinefunction(body):
        return await _run_in_thread(body, tool_context, given)
    try:
        return await body(tool_context, **given)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # including SystemExit: a tool must not end the process
        return error


async def _run_in_thread(body: Body, tool_context: ToolContext, given: Mapping[str, Value]) -> Any:
    """Run a plain function in a daemon thread, which does not delay process exit."""
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
    """Validate the result of a custom tool: `ToolError` unless each passage is verbatim in a readable document."""
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
        whole=(),
    )


# Asks the model for a note: prompt, type of the note, values of the prompt by room, documents. None if the budget or the model
# does not allow it.
Consult = Callable[[str, type[Any], Callable[[int], Mapping[str, str]], Sequence[str]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result: passages, and a note about them. The note informs decisions and is never evidence.

    documents: documents the note mentions beside those of the passages
    left: number of further matching passages that were not returned
    whole: documents of which every passage was returned, by this call or earlier ones
    undated: number of documents that the call's dates left out for lack of one
    """

    found: tuple[Found, ...] = ()
    note: str = ""
    documents: tuple[str, ...] = ()
    left: int = 0
    whole: tuple[str, ...] = ()
    undated: int = 0


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may access. The server alone computes the scope, for each call; tool arguments cannot affect it."""

    search_context: SearchContext
    scope: Callable[[], Scope]
    where: Filter = EVERYTHING  # filter set by the person
    seen: dict[str, Hit] = field(default_factory=dict)  # every hit of this run by passage id, with its vector
    found: tuple[Found, ...] = ()  # results of the run's calls, from its events
    evidence: tuple[Evidence, ...] = ()  # the results that were kept
    weighed: frozenset[str] = frozenset()  # passages that were kept or rejected
    today: str = ""  # the day of asking
    mark: str = ""  # fence mark of the run
    consult: Consult | None = None
    most: int = 200  # most passages that an exhaustive search returns
    searched: dict[tuple[object, ...], tuple[int, list[Hit]]] = field(default_factory=dict)  # searches of this run

    @property
    def bases(self) -> dict[str, str]:
        """The searchable knowledge bases: name → description."""
        return {base.name: base.description for base in self.scope().bases}

    async def retrieve(self, query: str, k: int, where: Filter = EVERYTHING, *, deep: bool = False) -> list[Hit]:
        """The k best passages. `deep` is for reading a lot of one source: no cap per document, no reranking. The same
        search is made once for as long as nothing that it could find has changed."""
        scope, where = self.scope(), both(self.where, where)
        if deep:  # it reads much of which little is kept, and that can be fetched again
            search_context = replace(self.search_context, per_document=0, reranker=None, diversity=0.0)
            return await retrieve(search_context, query, k, scope, where)
        search = (query, where, scope, documents.state_of(self.search_context.store, scope))
        width, hits = self.searched.get(search, (0, []))
        if width < k:
            hits = await retrieve(self.search_context, query, k, scope, where)
            self.searched[search] = (k, hits)
        self.seen.update({hit.passage.id: hit for hit in hits[:k]})
        return hits[:k]

    async def passages(self, document: str) -> list[Hit]:
        """Every passage of a document in reading order; empty if it is gone, not readable by this person, or out of
        scope."""
        scope = self.scope()
        one = both(both(self.where, Eq("doc", document)), readable(scope))
        anywhere = np.full(self.search_context.embedder.dim, self.search_context.embedder.dim**-0.5, np.float32)
        indexes = [
            self.search_context.indexes[base.id] for base in scope.bases if base.id in self.search_context.indexes
        ]
        counts = await asyncio.gather(*(index.count(one) for index in indexes))
        filled = [(index, count) for index, count in zip(indexes, counts, strict=True) if count]
        # With k equal to the row count, nearest-neighbour search returns all rows of a document for any query vector.
        found = await asyncio.gather(*(index.dense(anywhere, count, one) for index, count in filled))
        hits = permitted(self.search_context.store, [hit for part in found for hit in part], scope)
        return sorted(hits, key=lambda hit: (hit.passage.start, hit.passage.end))

    def sources(self) -> list[Entry]:
        """The documents this person may read within the scope of the search, ordered by path."""
        scope = self.scope()
        entries = documents.listing(self.search_context.store, scope)
        return entries if self.where == EVERYTHING else [each for each in entries if self._is_searched(each)]

    def traits(self) -> list[Traits]:
        """What filters know of these documents."""
        return [each for each in documents.traits(self.search_context.store, self.scope()) if self._is_searched(each)]

    def _is_searched(self, of: Entry | Document | Traits) -> bool:
        return matches(self.where, filter_fields(of))

    def entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries of those of these documents that this person may read now."""
        return documents.entries(self.search_context.store, ids, self.scope())

    def document(self, document: str) -> Document | None:
        """A document with its text; None if this person may not read it or it is out of scope."""
        found = documents.get(self.search_context.store, document, self.scope())
        return found if found is not None and self._is_searched(found) else None

    def titles(self, ids: Sequence[str]) -> dict[str, str]:
        """Titles of those of these documents that this person may read now, each with the rest of its identity."""
        return documents.identified_titles(self.search_context.store, ids, self.scope())

    def dates(self, ids: Sequence[str]) -> dict[str, str]:
        """Dates of those of these documents that this person may read now."""
        return documents.dates(self.search_context.store, ids, self.scope())

    def passage(self, name: str) -> Passage:
        """A passage that this run has found, by id or key. Raises for any other."""
        keys = {each.key: each.passage for each in self.evidence}
        known = {found.passage.id: found.passage for found in self.found}
        named = {evidence_key(passage): passage for passage in known.values()} | known | keys
        wanted = named.get(name.strip().strip("[]"))
        if wanted is None or wanted.doc_id not in self.titles([wanted.doc_id]):
            raise ToolError(f"There is no passage {name!r} among what was found. Use a key that a search has shown.")
        return wanted


def as_found(hits: Sequence[Hit]) -> tuple[Found, ...]:
    """Hits in order. Hits without a rank, because they were requested by name, get the full score."""
    return tuple(Found(hit.passage, rank, hit.scores.get("fused", 1.0)) for rank, hit in enumerate(hits, 1))
