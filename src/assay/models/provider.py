"""A language model by provider name, such as `anthropic:claude-sonnet-4-5`, through pydantic-ai.

The package is an optional extra, loaded at the first request. Chat endpoints do not need it: see `endpoint.py`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import warnings
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assay.core.errors import ModelError, TooLong, UserError
from assay.models import endpoint
from assay.models.http import EXCERPT, CorrectedRequest, TransientFailure, with_retries
from assay.models.llm import Prompt, Reply, ToolCall

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

FINISHES = {"tool_call": "tool_calls", None: "stop"}
SECRETS = ("_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY")  # suffixes of environment variables with keys
SHORTEST_SECRET = 6
NOISE = ("CostNotFoundWarning", "UsageExtractionFailedWarning", "UnsupportedSettingWarning")


@dataclass(eq=False)
class ProviderModel:
    """One model of one provider. The key never appears in errors or in the repr.

    name: `provider:model`, as pydantic-ai knows them
    api_key: if empty, the provider's own environment variable is used, such as OPENAI_API_KEY
    make: creates the model from its name; for tests
    """

    name: str
    api_key: str = field(default="", repr=False)
    make: Callable[[], Model] | None = field(default=None, repr=False)
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    _models: dict[asyncio.AbstractEventLoop, Model] = field(default_factory=dict, init=False, repr=False)
    _with_temperature: bool = field(default=True, init=False, repr=False)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        clock = asyncio.get_running_loop().time
        began = clock()
        problem = ""

        async def attempt(left: float) -> Reply:
            nonlocal problem
            model = await self._model()
            with_temperature = self._with_temperature
            try:
                response = await self._request(model, prompt, left, with_temperature)
                return read_response(response, prompt, self.name, clock() - began)
            except Exception as error:  # any exception of a provider's package; cancellation is not an Exception
                if with_temperature and self._refuses_temperature(error):
                    raise CorrectedRequest from None
                problem = self._words(error)
                if not is_transient(error):
                    raise self._error(error) from None
                raise TransientFailure(self._error(error), getattr(error, "retry_after", None)) from None

        def late() -> str:
            before = f" Before that: {problem}" if problem else ""
            return f"The model {self.name} did not answer in {max(seconds, 0):.3g} s.{before}"

        return await with_retries(attempt, seconds, late=late, sleep=self.sleep)

    async def window(self, seconds: float) -> int | None:
        """The context window in tokens, prompt and reply together, from pydantic-ai's own list. No request is sent."""
        try:
            async with asyncio.timeout(max(seconds, 0)):
                profile: Mapping[str, Any] = (await self._model()).profile or {}
        except TimeoutError:
            return None
        return endpoint.bounded(profile.get("context_window"))

    async def close(self) -> None:
        model = self._models.pop(asyncio.get_running_loop(), None)
        if model is not None:
            async with model:  # closes its connections on exit
                pass

    async def _model(self) -> Model:
        # A provider's connections belong to one event loop. Loading takes a second or two, so it runs in a thread.
        loop = asyncio.get_running_loop()
        if loop not in self._models:
            for other in [other for other in self._models if other.is_closed()]:
                self._models.pop(other, None)
            made = await asyncio.to_thread(self.make or self._made)
            self._models.setdefault(loop, made)
        return self._models[loop]

    def _made(self) -> Model:
        try:
            from pydantic_ai import exceptions
            from pydantic_ai.models import infer_model
            from pydantic_ai.providers import infer_provider, infer_provider_class
        except ImportError:
            raise UserError(
                f"The model {self.name!r} is reached through pydantic-ai: install Assay with its extra, `assay[providers]`."
            ) from None
        for noise in NOISE:  # it would mix with the terminal output
            warnings.simplefilter("ignore", getattr(exceptions, noise))

        def keyed(provider: str) -> Any:
            kind: Any = infer_provider_class(provider)
            return kind(api_key=self.api_key)

        try:
            return infer_model(self.name, keyed if self.api_key else infer_provider)
        except ImportError as error:
            group = re.search(r"pydantic-ai-slim\[[\w-]+\]", str(error))
            install = f'`pip install "{group[0]}"`' if group else "the provider's own package"
            raise UserError(f"The model {self.name!r} needs a package that is not here: install {install}.") from None
        except exceptions.UserError as error:
            variable = re.search(r"`([A-Z][A-Z0-9_]+)`", str(error))
            if variable is None:
                raise UserError(
                    f"There is no model {self.name!r}: write `provider:model`, as in `anthropic:claude-sonnet-4-5`."
                ) from None
            raise UserError(
                f"The model {self.name!r} needs a key: set `llm_api_key`, or {variable[1]} in the environment."
            ) from None
        except Exception as error:  # each provider's package has its own exceptions
            raise UserError(
                f"The model {self.name!r} cannot be set up ({type(error).__name__}): {self._words(error)}"
            ) from None

    async def _request(self, model: Model, prompt: Prompt, seconds: float, with_temperature: bool) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.settings import ModelSettings

        # The package's own timeout comes after ours, so that only ours is reported.
        settings = ModelSettings(max_tokens=prompt.max_tokens, timeout=max(seconds, 0) + 5, max_retries=0)
        if with_temperature:
            settings["temperature"] = prompt.temperature
        asked = request_parameters(prompt, model.profile or {})
        return await model_request(
            model, messages_of(prompt), model_settings=settings, model_request_parameters=asked, instrument=False
        )

    def _refuses_temperature(self, error: Exception) -> bool:
        """Whether the temperature was the reason for the refusal; later requests omit it."""
        from pydantic_ai.exceptions import ModelRequestRejectedError

        refusal = endpoint.parse_refusal(_body(error)) if isinstance(error, ModelRequestRejectedError) else None
        if refusal is None or endpoint.adaptation_for(refusal) != "no temperature":
            return False
        self._with_temperature = False
        return True

    def _error(self, error: Exception) -> Exception:
        from pydantic_ai import exceptions

        words, refusal = self._words(error), endpoint.parse_refusal(_body(error))
        rejected = isinstance(error, exceptions.ModelRequestRejectedError | exceptions.ModelServerError)
        match error:
            case UserError():
                return error
            case _ if isinstance(error, exceptions.ModelContextWindowExceededError) or (
                rejected and endpoint.is_too_long(refusal)
            ):
                return TooLong(
                    f"The prompt is too long for the model {self.name}. It said: {words}",
                    endpoint.stated_window(refusal),
                )
            case exceptions.ModelAuthenticationError():
                return ModelError(
                    f"The model {self.name} refused the key: check `llm_api_key`, or the provider's own variable in the "
                    f"environment. It said: {words}"
                )
            case exceptions.ModelNotFoundError():
                return ModelError(f"The model {self.name} is not known there: check `llm_model`. It said: {words}")
            case _:
                return ModelError(f"The model {self.name} failed ({type(error).__name__}). It said: {words}")

    def _words(self, error: Exception) -> str:
        text = str(error)
        kept = [value for name, value in os.environ.items() if name.endswith(SECRETS) and len(value) >= SHORTEST_SECRET]
        for secret in filter(None, (self.api_key, *kept)):
            text = text.replace(secret, "…")
        return " ".join(text[: EXCERPT * 50].split())[:EXCERPT]


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    from pydantic_ai import exceptions

    return isinstance(
        error,
        exceptions.ModelRateLimitError
        | exceptions.ModelUnavailableError
        | exceptions.ModelServerError
        | exceptions.ModelConnectionError,
    )


def messages_of(prompt: Prompt) -> list[ModelMessage]:
    """A prompt's messages for pydantic-ai: user and system messages in one type, model messages in another."""
    from pydantic_ai.messages import (
        BinaryContent,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserContent,
        UserPromptPart,
    )

    made: list[ModelMessage] = []
    pictures: list[UserContent] = [
        part
        for each in prompt.pictures
        for part in (each.before, BinaryContent(each.png, media_type="image/png"), each.after)
    ]
    for message in prompt.messages:
        if message.role == "assistant":
            made.append(ModelResponse(parts=[TextPart(message.text)]))
            continue
        shown = [message.text, *pictures] if pictures else message.text
        part = SystemPromptPart(message.text) if message.role == "system" else UserPromptPart(shown)
        pictures = pictures if message.role == "system" else []
        if made and isinstance(made[-1], ModelRequest):
            made[-1] = ModelRequest(parts=[*made[-1].parts, part])
        else:
            made.append(ModelRequest(parts=[part]))
    return made


def request_parameters(prompt: Prompt, profile: Mapping[str, Any]) -> ModelRequestParameters:
    """Tools and output mode, as far as the provider supports them; the prompt's text states them in any case."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    tools = [
        ToolDefinition(name=tool.name, parameters_json_schema=_plain(tool.parameters), description=tool.about)
        for tool in prompt.tools
    ]
    if prompt.form == "schema" and prompt.schema is not None and profile.get("supports_json_schema_output"):
        shape = OutputObjectDefinition(
            json_schema=_plain(prompt.schema), name="reply", strict=endpoint.is_closed(prompt.schema)
        )
        return ModelRequestParameters(function_tools=tools, output_mode="native", output_object=shape)
    if prompt.form != "text" and profile.get("supports_json_object_output"):
        return ModelRequestParameters(function_tools=tools, output_mode="prompted")
    return ModelRequestParameters(function_tools=tools)


def read_response(response: ModelResponse, prompt: Prompt, name: str, seconds: float) -> Reply:
    from pydantic_ai.messages import TextPart, ToolCallPart

    text = endpoint.clean("".join(part.content for part in response.parts if isinstance(part, TextPart)))
    calls = tuple(
        ToolCall(endpoint.clean(part.tool_call_id), endpoint.clean(part.tool_name), endpoint.as_arguments(part.args))
        for part in [part for part in response.parts if isinstance(part, ToolCallPart)][: endpoint.MOST_CALLS]
    )
    finish, usage = response.finish_reason, response.usage
    return Reply(
        text=endpoint.without_thoughts(text),
        calls=calls,
        finish="tool_calls" if calls and finish is None else FINISHES.get(finish, finish or "stop"),
        usage=endpoint.usage_or_estimate(usage.input_tokens, usage.output_tokens, prompt, text, calls, seconds),
        model=response.model_name or name,
    )


def _body(error: Exception) -> str:
    """The provider's error body, as JSON if it was JSON."""
    body = getattr(error, "body", None)
    return json.dumps(body, default=str) if isinstance(body, Mapping) else str(body or error)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(value, default=dict))
