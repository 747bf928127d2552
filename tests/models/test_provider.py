"""Models by a provider's name, with pydantic-ai's own stand-ins for models: nothing leaves the process."""

from __future__ import annotations

import asyncio
import builtins
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from loopback import Naps

from assay.core.errors import Late, ModelError, TooLong, UserError
from assay.core.types import Picture
from assay.models.llm import Message, Prompt, ShownPicture, ToolSpec
from assay.models.provider import ProviderModel, messages_of, request_parameters

pytest.importorskip("pydantic_ai")  # an extra

from pydantic_ai import exceptions
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

KEY = "sk-very-secret-1234"
PROMPT = Prompt(
    (Message("system", "Be brief."), Message("user", "Hi."), Message("assistant", "Yes?"), Message("user", "Who?"))
)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
Answer = Callable[[list[ModelMessage], AgentInfo], Any]


def stands_for(answer: Answer, **more: Any) -> ProviderModel:
    async def said(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        made = answer(messages, info)
        return await made if asyncio.iscoroutine(made) else made

    profile = more.pop("profile", None)
    return ProviderModel(
        "some:model", make=lambda: FunctionModel(said, model_name="m-1", profile=profile), **{"sleep": Naps(), **more}
    )


def fails(*errors: Exception) -> Answer:
    waiting = list(errors)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if waiting:
            raise waiting.pop(0)
        return ModelResponse(parts=[TextPart("Well.")])

    return answer


def http(kind: type[exceptions.ModelAPIError], status: int, body: object) -> Exception:
    return exceptions.ModelHTTPError.for_category(kind, status_code=status, model_name="m", body=body)  # type: ignore[arg-type]


async def test_messages_tools_and_settings_reach_the_model():
    seen: list[tuple[list[ModelMessage], AgentInfo]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append((messages, info))
        return ModelResponse(
            parts=[ThinkingPart("hm"), TextPart("Me."), ToolCallPart("search", {"query": "x"}, "c1")],
            usage=RequestUsage(input_tokens=9, output_tokens=4),
            finish_reason="tool_call",
        )

    tool = ToolSpec("search", "Searches.", {"type": "object", "properties": {}})
    reply = await stands_for(answer).complete(Prompt(PROMPT.messages, tools=(tool,), max_tokens=77), 5)
    assert (reply.text, reply.finish, reply.model) == ("Me.", "tool_calls", "m-1")
    assert [(call.id, call.name, call.arguments) for call in reply.calls] == [("c1", "search", '{"query": "x"}')]
    assert (reply.usage.calls, reply.usage.tokens_in, reply.usage.tokens_out) == (1, 9, 4)
    messages, info = seen[0]
    assert [[part.part_kind for part in message.parts] for message in messages] == [
        ["system-prompt", "user-prompt"],
        ["text"],
        ["user-prompt"],
    ]
    assert [tool.name for tool in info.function_tools] == ["search"]
    assert info.model_settings is not None
    assert (info.model_settings["max_tokens"], info.model_settings["temperature"]) == (77, 0.0)


async def test_what_was_not_told_is_estimated():
    quiet = ModelResponse(parts=[TextPart("<think>hm</think>Me.")], usage=RequestUsage())
    reply = await stands_for(lambda messages, info: quiet).complete(PROMPT, 5)
    assert reply.text == "Me."
    assert reply.finish == "stop"
    assert reply.usage.tokens_in >= 4
    assert reply.usage.tokens_out >= 1


async def test_no_more_calls_are_kept_than_make_sense():
    many = ModelResponse(parts=[ToolCallPart("f", "{}") for _ in range(200)])
    reply = await stands_for(lambda messages, info: many).complete(PROMPT, 5)
    assert len(reply.calls) == 64


@pytest.mark.parametrize(
    ("form", "profile", "mode"),
    [
        ("text", {"supports_json_schema_output": True}, "text"),
        ("schema", {"supports_json_schema_output": True}, "native"),
        ("schema", {"supports_json_object_output": True}, "prompted"),
        ("json", {"supports_json_object_output": True, "supports_json_schema_output": True}, "prompted"),
        ("schema", {}, "text"),
    ],
)
async def test_the_form_is_asked_for_as_far_as_the_provider_has_it(form: Any, profile: dict[str, bool], mode: str):
    asked = request_parameters(Prompt(PROMPT.messages, form, SCHEMA), profile)
    assert asked.output_mode == mode
    assert asked.prompted_output_instructions is None  # the prompt's own words say what is wanted
    well = stands_for(lambda messages, info: ModelResponse(parts=[TextPart("{}")]), profile=profile)
    assert (await well.complete(Prompt(PROMPT.messages, form, SCHEMA), 5)).text == "{}"


PASSING = [
    http(exceptions.ModelRateLimitError, 429, "slow down"),
    http(exceptions.ModelOverloadedError, 529, "busy"),
    http(exceptions.ModelServerError, 500, "oops"),
    exceptions.ModelConnectionError("m", "reset"),
]


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
async def test_what_may_pass_is_tried_again_within_the_time(error: Exception):
    naps = Naps()
    assert (await stands_for(fails(error, error), sleep=naps).complete(PROMPT, 30)).text == "Well."
    assert naps.taken == [0.5, 1.0]
    with pytest.raises(ModelError, match=r"some:model failed"):
        await stands_for(fails(*[error] * 9)).complete(PROMPT, 0.3)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (http(exceptions.ModelAuthenticationError, 401, f"bad key {KEY}"), ModelError, "`llm_api_key`"),
        (http(exceptions.ModelNotFoundError, 404, "no such model"), ModelError, "`llm_model`"),
        (http(exceptions.ModelRequestRejectedError, 400, {"message": f"what is {KEY}"}), ModelError, "what is …"),
        (exceptions.UnexpectedModelBehavior("odd"), ModelError, "odd"),
        (KeyError("choices"), ModelError, "KeyError"),
        (
            http(
                exceptions.ModelContextWindowExceededError,
                400,
                {"message": "prompt is too long: 210000 tokens > 200000 maximum"},
            ),
            TooLong,
            "too long",
        ),
        (
            http(
                exceptions.ModelRequestRejectedError,
                400,
                {"message": "request (24030 tokens) exceeds the available context size (200000 tokens)"},
            ),
            TooLong,
            "too long",
        ),
    ],
)
async def test_what_will_not_pass_is_an_error_at_once_and_never_shows_the_key(
    error: Exception, kind: type[ModelError], words: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SOME_API_KEY", KEY)
    naps = Naps()
    asked = stands_for(fails(error), sleep=naps)
    with pytest.raises(kind, match=words) as raised:
        await asked.complete(PROMPT, 30)
    assert KEY not in f"{raised.value!r} {asked!r}"
    assert not naps.taken
    assert not isinstance(raised.value, TooLong) or raised.value.window == 200_000


async def test_a_temperature_that_is_refused_is_left_out_from_then_on():
    sent: list[bool] = []

    async def refuses_later(warm: bool) -> ModelResponse:
        await asyncio.sleep(0.01)  # so that several are refused before the first one learns
        if warm:
            raise http(exceptions.ModelRequestRejectedError, 400, {"message": "`temperature` is deprecated here."})
        return ModelResponse(parts=[TextPart("Well.")])

    def answer(messages: list[ModelMessage], info: AgentInfo) -> Any:
        sent.append("temperature" in (info.model_settings or {}))
        return refuses_later(sent[-1])

    asked = stands_for(answer)
    await asyncio.gather(*(asked.complete(PROMPT, 5) for _ in range(2)))
    assert (await asked.complete(PROMPT, 5)).text == "Well."
    assert sent == [True, True, False, False, False]


@pytest.mark.fake_clock
async def test_it_ends_within_its_seconds():
    async def forever() -> ModelResponse:
        await asyncio.sleep(60)
        raise AssertionError

    began = asyncio.get_running_loop().time()
    with pytest.raises(Late, match=r"did not answer in 0\.4 s"):
        await stands_for(lambda messages, info: forever()).complete(PROMPT, 0.4)
    assert asyncio.get_running_loop().time() - began < 0.9


def test_event_loops_can_come_and_go():
    asked = stands_for(lambda messages, info: ModelResponse(parts=[TextPart("Me.")]))

    async def ask() -> str:
        return (await asked.complete(PROMPT, 5)).text

    assert [asyncio.run(ask()) for _ in range(3)] == ["Me."] * 3
    assert len(asked._models) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("openai:gpt-4o", "set `llm_api_key`, or OPENAI_API_KEY in the environment"),
        ("anthropic:claude-sonnet-4-5", r"ANTHROPIC_API_KEY|pydantic-ai-slim\[anthropic\]"),
        ("nobody:nothing", "There is no model 'nobody:nothing': write `provider:model`"),
        ("gpt-4o", "There is no model 'gpt-4o'"),
        ("", "There is no model"),
    ],
)
async def test_a_model_that_cannot_be_set_up_is_the_persons_to_put_right(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch
):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UserError, match=words):
        await ProviderModel(name).complete(PROMPT, 30)


async def test_a_key_by_setting_is_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = ProviderModel("openai-chat:gpt-4o", KEY)
    assert (await made._model()).model_name == "gpt-4o"
    assert (await made.window(5) or 0) > 8192
    await made.close()


async def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pydantic_ai"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(UserError, match=r"assay\[providers\]"):
        await ProviderModel("openai:gpt-4o").complete(PROMPT, 5)


def test_nothing_is_loaded_before_the_first_request():
    code = (
        "import sys; from assay.models.provider import ProviderModel; ProviderModel('openai:x')\n"
        "print('pydantic_ai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_pictures_are_parts_of_the_first_message_of_the_user():
    shown = ShownPicture(Picture("d", 1, (0.0, 0.0, 1.0, 1.0), "Figure 1", ""), "before", "after", b"png")
    messages = (Message("system", "a"), Message("user", "b"), Message("assistant", "c"), Message("user", "d"))
    first, _, last = messages_of(Prompt(messages, pictures=(shown,)))
    parts = [getattr(part, "content", None) for part in (*first.parts, *last.parts)]
    assert parts == ["a", ["b", "before", BinaryContent(b"png", media_type="image/png"), "after"], "d"]
