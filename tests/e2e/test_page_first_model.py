"""A model in a minute: found on this machine or chosen from a provider's list, and told in words what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_session import Desk, Model, Reader, desk
from doubles.local_server import HttpExchange, LocalServer
from lighthouse import PAPERS
from playwright.sync_api import expect

from assay.models import endpoint

KEY = "sk-tern-0123456789"
NAMES = [f"tern-{size}" for size in ("small", "medium", "large")]
Reads = Callable[..., Reader]


class Provider(LocalServer):
    """Lists models to whoever has the key."""

    def __init__(self) -> None:
        super().__init__(self._serve)

    async def _serve(self, exchange: HttpExchange) -> None:
        known = exchange.request.headers.get("authorization") == f"Bearer {KEY}"
        listed = {"data": [{"id": name} for name in NAMES]} if known else {"error": {"message": "no"}}
        await exchange.reply(200 if known else 401, json.dumps(listed).encode())


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as made:
        yield made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path / "workspace", PAPERS) as opened:
        yield opened


def test_a_model_of_this_machine_is_one_press_and_home_says_who_writes(
    reads: Reads, served: Desk, monkeypatch: pytest.MonkeyPatch
):
    model = Model()
    with model.server as here:
        monkeypatch.setattr(endpoint, "LOCAL_SERVERS", {"Ollama": urlsplit(here.url).port})
        reader = reads(served)
        page = reader.goes("#/model")
        page.get_by_role("button", name="scripted (Ollama)").click()
        expect(page.get_by_text("This is an address of this computer: nothing leaves it.")).to_be_visible()
        reader.accessible("a model of this machine")
        reader.pictures("model-here")
        page.get_by_role("button", name="Use this model").click()
        expect(page.get_by_text("Questions are answered with scripted from now on.")).to_be_visible()
        expect(page.get_by_text("Answers are written and checked by scripted.")).to_be_visible()
        page.get_by_role("link", name="Ask a question").click()
        expect(page.get_by_text("Answers are written and checked by scripted.")).to_be_visible()
        expect(page.get_by_text("As a judge")).to_have_count(0)
        reader.pictures("home-with-model")


def test_the_models_of_an_address_are_a_list_and_a_wrong_key_or_name_is_told(
    reads: Reads, served: Desk, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(endpoint, "LOCAL_SERVERS", {})
    reader = reads(served)
    page = reader.goes("#/model")
    page.get_by_role("button", name="OpenRouter").click()
    expect(page.get_by_label("Address")).to_have_value("https://openrouter.ai/api/v1")
    expect(page.get_by_text("To openrouter.ai would be sent")).to_be_visible()
    expect(page.get_by_label("Key")).to_be_focused()
    reader.accessible("a provider")
    reader.pictures("model-provider")
    page.get_by_label("Address").fill(f"http://127.0.0.1:{provider.port}/v1")
    page.get_by_label("Key").fill("sk-wrong")
    page.get_by_role("button", name="Show its models").click()
    expect(page.get_by_text("refuses the key")).to_be_visible()
    page.get_by_label("Key").fill(KEY)
    page.get_by_label("Model", exact=True).fill("tern")
    page.get_by_role("button", name="Use this model").click()
    expect(page.get_by_text(re.compile("has no model 'tern'; there are tern-small"))).to_be_visible()
    expect(page.get_by_role("button", name="Use it all the same")).to_be_visible()
    page.get_by_role("button", name="Show its models").click()
    page.get_by_label("3 models there").select_option("tern-large")
    reader.accessible("a list of models")
    reader.pictures("model-list")
    page.get_by_role("button", name="Use this model").click()
    expect(page.get_by_text("Questions are answered with tern-large from now on.")).to_be_visible()
    assert served.api("/api/me")["written_by"] == "Answers are written and checked by tern-large."
    page.get_by_label("Address").fill("http://127.0.0.1:9/v1")
    page.get_by_role("button", name="Show its models").click()
    expect(page.get_by_text("could not be reached: is it running there?")).to_be_visible(timeout=4000)
    reader.foresees("status of 502")


def test_a_model_without_an_address_is_not_connected(tmp_path: Path, reads: Reads):
    with desk(tmp_path / "workspace", PAPERS, llm_model="tern-large") as opened:
        reader = reads(opened)
        page = reader.goes()
        page.get_by_role("link", name="Connect it").click()
        expect(page.get_by_text("The model 'tern-large' is not connected: nothing says where it is.")).to_be_visible()
