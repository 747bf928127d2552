"""The price of a request in US dollars: from the configured prices, else from the list in `genai-prices`.

Nothing is fetched: the list is the one in the installed package, and its updater is never started.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from assay.core.errors import UserError
from assay.core.types import Usage

Prices = Mapping[str, tuple[float, float]]  # model → dollars per million tokens, in and out
MILLION = 1_000_000


def parse_prices(words: str) -> dict[str, tuple[float, float]]:
    """Parses the setting `llm_prices`: `qwen=0/0, my-model=0.5/1.5`, dollars per million tokens in and out."""
    found: dict[str, tuple[float, float]] = {}
    for entry in filter(str.strip, re.split(r"[,;\n]", words)):
        name, equals, amounts = entry.rpartition("=")
        come_in, slash, come_out = amounts.partition("/")
        price = (_dollars(come_in), _dollars(come_out))
        if not (name.strip() and equals and slash) or None in price:
            raise UserError(
                f"`llm_prices` cannot be read at {entry.strip()!r}: write `model=0.5/1.5`, dollars per million tokens in "
                "and out, with commas between models."
            )
        found[name.strip()] = (price[0] or 0.0, price[1] or 0.0)
    return found


def price_of(model: str, usage: Usage, own: Prices) -> float | None:
    """What `usage` cost at `model`; None if its price is unknown. Configured prices take precedence."""
    price = own.get(model) or own.get(model.partition(":")[2])
    if price is not None:
        return (usage.tokens_in * price[0] + usage.tokens_out * price[1]) / MILLION
    return _listed(model, usage)


def ceiling(model: str, tokens_in: int, max_tokens: int, own: Prices) -> float | None:
    """The maximum cost of a request: its whole prompt and a reply of maximum length."""
    return price_of(model, Usage(tokens_in=tokens_in, tokens_out=max_tokens), own)


def _listed(model: str, usage: Usage) -> float | None:
    import genai_prices

    spent = genai_prices.Usage(input_tokens=usage.tokens_in, output_tokens=usage.tokens_out)
    for provider, name in _readings(model):
        try:
            return float(genai_prices.calc_price(spent, name, provider_id=provider).total_price)
        except (LookupError, ValueError):  # not in the list, or listed without a price for text
            continue
    return None


def _readings(model: str) -> Iterator[tuple[str | None, str]]:
    """A name as given, and split as `provider:model` or `provider/model`."""
    yield None, model
    for mark in (":", "/"):
        provider, found, name = model.partition(mark)
        if found and provider and name:
            yield provider, name


def _dollars(price: str) -> float | None:
    try:
        value = float(price.strip().removeprefix("$"))
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
