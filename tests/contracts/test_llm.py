"""What every `LLM` must do. A new one joins by adding itself to `MODELS`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from assay.core.errors import ModelError
from assay.core.types import Usage
from assay.models.endpoint import ChatEndpoint
from assay.models.llm import LLM, Message, Prompt, Reply

PROMPT = Prompt((Message("system", "Be brief."), Message("user", "Say hello.")), max_tokens=20)


class Scripted:
    """The smallest model there can be."""

    name = "m"

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        if seconds <= 0:
            raise ModelError("The model m did not answer in 0 s.")
        return Reply("Hello.", usage=Usage(calls=1, tokens_in=7, tokens_out=3), model=self.name)


def scripted(url: str) -> LLM:
    return Scripted()


def endpoint(url: str) -> LLM:
    return ChatEndpoint(url, "m")


def provider(url: str) -> LLM:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    from assay.models.provider import ProviderModel

    return ProviderModel("some:m", make=lambda: FunctionModel(lambda *_: ModelResponse([TextPart("Hello.")])))


MODELS: tuple[Callable[[str], LLM], ...] = (scripted, endpoint, provider)


@pytest.fixture(params=MODELS, ids=lambda make: make.__name__)
def llm(request: pytest.FixtureRequest, endpoint_url: str) -> LLM:
    return request.param(endpoint_url)


async def test_a_prompt_gets_a_reply_with_its_usage(llm: LLM):
    reply = await llm.complete(PROMPT, 30)
    assert (reply.text, reply.calls, reply.finish) == ("Hello.", (), "stop")
    assert reply.usage.calls == 1 and reply.usage.tokens_in > 0 and reply.usage.tokens_out > 0
    assert reply.model and llm.name


async def test_several_requests_run_at_once(llm: LLM):
    replies = await asyncio.gather(*(llm.complete(PROMPT, 30) for _ in range(5)))
    assert [reply.text for reply in replies] == ["Hello."] * 5


async def test_no_time_is_a_model_error(llm: LLM):
    with pytest.raises(ModelError):
        await llm.complete(PROMPT, 0)
