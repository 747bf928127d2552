"""What a request costs, by a person's own prices and by the list that is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assay.core.errors import UserError
from assay.core.types import Usage
from assay.models.cost import ceiling, parse_prices, price_of

MILLION = Usage(calls=1, tokens_in=1_000_000, tokens_out=1_000_000)


def test_prices_are_read_as_a_person_writes_them():
    written = " qwen=0/0, my-model = 0.5/$1.5;\nqwen2.5:1.5b=1/2,"
    assert parse_prices(written) == {"qwen": (0, 0), "my-model": (0.5, 1.5), "qwen2.5:1.5b": (1, 2)}
    assert parse_prices(" ") == {}


@pytest.mark.parametrize(
    "written", ["x", "x=1", "=1/2", "x=a/b", "x=-1/2", "x=nan/1", "x=1/inf", "x=1/2/3", "x=/", "a=1/2, b"]
)
def test_prices_that_make_no_sense_are_the_persons_to_put_right(written: str):
    with pytest.raises(UserError, match="`llm_prices` cannot be read at"):
        parse_prices(written)


def test_a_persons_own_price_comes_first():
    assert price_of("gpt-4o", MILLION, {"gpt-4o": (1, 2)}) == 3
    assert price_of("openai:gpt-4o", MILLION, {"gpt-4o": (1, 2)}) == 3
    assert price_of("qwen", MILLION, {"qwen": (0, 0)}) == 0


@pytest.mark.parametrize("name", ["gpt-4o", "openai:gpt-4o", "openai/gpt-4o", "gpt-4o-2024-08-06"])
def test_a_known_model_has_the_price_of_the_list(name: str):
    price = price_of(name, Usage(tokens_in=1000, tokens_out=100), {})
    assert price is not None
    assert 0.0001 < price < 0.1


@pytest.mark.parametrize(
    "name", ["qwen", "my-model", "qwen2.5:1.5b", "nobody:nothing", "a/b/c", "openai:never-made", ":", ""]
)
def test_the_price_of_an_unknown_model_is_not_made_up(name: str):
    assert price_of(name, MILLION, {}) is None
    assert ceiling(name, 10, 10, {}) is None


def test_a_ceiling_is_the_prompt_and_the_longest_reply():
    assert ceiling("m", 2_000_000, 500_000, {"m": (1, 2)}) == 3
    dear, cheap = ceiling("gpt-4o", 1000, 4000, {}), price_of("gpt-4o", Usage(tokens_in=1000, tokens_out=100), {})
    assert dear is not None and cheap is not None and dear > cheap


def test_nothing_is_fetched_and_nothing_runs_on():
    code = (
        "import socket, threading\n"
        "def refuse(*_, **__): raise AssertionError('a price went to the network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "import assay.models.cost as prices, sys\n"
        "assert 'genai_prices' not in sys.modules\n"
        "from assay.core.types import Usage\n"
        "assert prices.price_of('gpt-4o', Usage(tokens_in=1000), {}) > 0\n"
        "assert prices.price_of('nobody-knows', Usage(tokens_in=1000), {}) is None\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
