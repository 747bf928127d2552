"""Probes an endpoint with three small requests: does it call tools, follow a schema, write JSON?

An endpoint may accept a parameter and ignore it, so only a reply that could not have come about otherwise counts.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from assay.core.errors import Late, ModelError
from assay.core.types import Picture, omitted_when_empty
from assay.models.llm import LLM, Message, Prompt, Reply, ShownPicture, ToolSpec

DEFAULT_WINDOW = 8192
SHORT, PATIENT = 60, 1500  # tokens of a reply; the second for models that reason before they answer
ASKING_WINDOW = 5.0  # seconds at most


@dataclass(frozen=True, slots=True)
class Capability:
    """The result of a probe. `window` is in tokens, prompt and reply together; `note` says what was assumed or refused.

    `sure` is False if the endpoint was too slow to tell: the result is safe to use, but should be probed again later.
    """

    tools: bool
    schema: bool
    json: bool
    window: int
    note: str = ""
    sure: bool = True
    images: bool = omitted_when_empty(False)  # it sees pictures; found out when there is a figure to show


@runtime_checkable
class KnowsWindow(Protocol):
    """A model that may know its context window."""

    async def window(self, seconds: float) -> int | None: ...


@runtime_checkable
class Checkable(Protocol):
    """A model whose address, key and name can be checked at once."""

    async def check(self) -> tuple[str, ...]: ...

    async def listed(self) -> tuple[str, ...]: ...


# The prompt asks for something other than the schema, so a reply that follows the schema shows that the endpoint enforces it.
_COLOURS = ("amber", "teal")
_SCHEMA = Prompt(
    messages=(Message("user", "Is snow white? Answer with one word, yes or no."),),
    form="schema",
    schema={
        "type": "object",
        "properties": {"shade": {"type": "string", "enum": list(_COLOURS)}},
        "required": ["shade"],
        "additionalProperties": False,
    },
    max_tokens=SHORT,
)
# Some endpoints refuse JSON mode if the prompt does not contain the word "JSON".
_JSON = Prompt(
    messages=(Message("user", "Greet the sea in three words. (Format: JSON)"),), form="json", max_tokens=SHORT
)
_TOOLS = Prompt(
    messages=(Message("user", "Look up the word plover in the dictionary."),),
    tools=(
        ToolSpec(
            "look_up",
            "Looks a word up in the dictionary.",
            {
                "type": "object",
                "properties": {"word": {"type": "string"}},
                "required": ["word"],
                "additionalProperties": False,
            },
        ),
    ),
    max_tokens=SHORT,
)
_PLAIN = Prompt(messages=(Message("user", "Say yes."),), max_tokens=SHORT)


async def probe(llm: LLM, seconds: float) -> Capability:
    """The capabilities of the model behind `llm`. Raises ModelError if the endpoint does not answer."""
    late: list[str] = []
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    kept: dict[str, bool] = {}
    notes: list[str] = []
    tried: tuple[tuple[str, Prompt, Callable[[Reply], bool]], ...] = (
        ("a JSON schema", _SCHEMA, follows_schema),
        ("JSON mode", _JSON, follows_json_mode),
        ("tool calls", _TOOLS, calls_tools),
    )
    for place, (what, prompt, kept_to) in enumerate(tried):
        share = (end - clock()) / (len(tried) - place + 0.5)  # the rest is for a final plain request
        try:
            kept[what] = kept_to(await _patiently(llm, prompt, share))
        except Late as error:
            kept[what] = False
            late.append(what)
            if len(late) == len(tried):
                raise
            notes.append(f"{what}: {error}")
        except ModelError as error:
            # Refused, or out of order altogether? A plain request tells, and raises the error worth showing.
            await llm.complete(_PLAIN, end - clock())
            kept[what] = False
            notes.append(f"{what}: {error}")
    window = await llm.window(min(end - clock(), ASKING_WINDOW)) if isinstance(llm, KnowsWindow) else None
    if window is None:
        notes.append(f"the endpoint does not say how long a prompt may be: {DEFAULT_WINDOW} tokens are assumed")
    return Capability(
        tools=kept["tool calls"],
        schema=kept["a JSON schema"],
        json=kept["JSON mode"],
        window=window or DEFAULT_WINDOW,
        note="; ".join(note.rstrip(".") for note in notes),
        sure=not late,
    )


_STRIPED = (
    "iVBORw0KGgoAAAANSUhEUgAAAOAAAADgCAIAAACVT/22AAACqUlEQVR4nO3OMRFCQQBEsROGTtT9BiWggG3fFZmJgJzzPnCvfgBDP4ChH8DQD2"
    "DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+"
    "AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQwPXKwfwNAPYOgHMPQDGPoBDP"
    "0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4AQz+AoR/A0A9g"
    "6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4Aw/l+4F79AIZ+AEM/gKEfwNAPYOgHMP"
    "QDGPoBDP0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4AQz+A"
    "oR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAPYOgHMPQDGM55PXCvfgBDP4ChH8DQD2DoBzD0Axj6AQ"
    "z9AIZ+AEM/gKEfwNAPYOgHMPQDGPoBDP0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6AQz9AIZ+AEM/gKEfwNAP"
    "YOgHMPQDGPoBDP0Ahn4AQz+AoR/A0A9g6Acw9AMY+gEM/QCGfgBDP4ChH8DQD2DoBzD0Axj6Afz3A32gVqlwR8/hAAAAAElFTkSuQmCC"
)
STRIPES = ("green", "red", "yellow", "blue")  # of the picture, from top to bottom: no model guesses their order


async def sees(llm: LLM, seconds: float) -> bool:
    """Whether the model behind `llm` sees pictures. Raises ModelError if the endpoint does not answer a plain request."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    picture = Picture("", 1, (0.0, 0.0, 1.0, 1.0), "", "")
    shown = ShownPicture(picture, "The picture:", "That was the picture.", base64.b64decode(_STRIPED))
    asked = Message(
        "user", "Name the four colours of the stripes in the picture, from top to bottom, in English words."
    )
    try:
        return names_stripes(await _patiently(llm, Prompt((asked,), max_tokens=SHORT, pictures=(shown,)), seconds))
    except Late:
        raise
    except ModelError:
        await llm.complete(_PLAIN, end - clock())
        return False


def names_stripes(reply: Reply) -> bool:
    words = reply.text.casefold()
    places = [words.find(colour) for colour in STRIPES]
    return -1 not in places and places == sorted(places)


def follows_schema(reply: Reply) -> bool:
    value = _object(reply.text)
    return value is not None and value.keys() == {"shade"} and value["shade"] in _COLOURS


def follows_json_mode(reply: Reply) -> bool:
    """Whether the reply is a JSON object and nothing else. A truncated reply counts if it begins as one."""
    cut = reply.finish == "length" and reply.text.lstrip().startswith("{")
    return cut or _object(reply.text) is not None


def calls_tools(reply: Reply) -> bool:
    arguments = [_object(call.arguments) for call in reply.calls if call.name == "look_up"]
    return any(each is not None and isinstance(each.get("word"), str) for each in arguments)


def describe_capability(capability: Capability) -> list[str]:
    """The capabilities and their consequences, one line each."""
    if capability.tools:
        deciding = "Tool calls: yes. The model calls tools the way its endpoint offers."
    else:
        instead = "constrained by a schema" if capability.schema else "read out of what it writes"
        deciding = f"Tool calls: no. The model names its next step in a JSON object instead, {instead}."
    if capability.schema:
        forms = "JSON schema: yes. Replies are held to the form that is asked for."
    elif capability.json:
        forms = "JSON schema: no, but JSON mode: yes. Replies are JSON; their form is checked, and asked for again if wrong."
    else:
        forms = "JSON schema and JSON mode: no. JSON is looked for in the text; a reply without it is asked for again."
    lines = [deciding, forms, f"Context: {capability.window} tokens, prompt and reply together."]
    if capability.images:
        lines.append("Pictures: yes. Figures are shown to the model with their captions.")
    if not capability.sure:
        lines.append("The endpoint was too slow to find out everything; it is asked again the next time.")
    return [*lines, f"Note: {capability.note}."] if capability.note else lines


async def _patiently(llm: LLM, prompt: Prompt, seconds: float) -> Reply:
    """A non-empty reply. A model that reasons first may use up a short reply on reasoning, so a longer one is tried next."""
    clock = asyncio.get_running_loop().time
    end = clock() + seconds
    reply = await llm.complete(prompt, seconds)
    if reply.finish == "length" and not reply.text.strip() and not reply.calls:
        return await llm.complete(replace(prompt, max_tokens=PATIENT), end - clock())
    return reply


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
