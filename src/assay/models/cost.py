"""What a request costs: its tokens, estimated on the high side so that reservations and prompt budgets seldom fall short, and
their price in US dollars, from the configured prices or the list in `genai-prices`.

Nothing is fetched: the list is the one in the installed package, and its updater is never started.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from assay.core.errors import UserError
from assay.core.types import Usage
from assay.models.llm import Prompt

P = TypeVar("P")

# Every tokenizer splits words, capitals and digits differently; these costs are near the worst of the common ones. The length
# of a piece is bounded, so that its cost can be cached: nearly all of a text consists of a few thousand distinct pieces.
_PIECES = re.compile(r"[a-z]{1,64}|[A-Z]{1,64}|[0-9]{1,64}|[!-/:-@\[-`{-~]{1,2}|\s{2,64}|\n")
# A line with the space after it, beyond which no piece goes. Prompts repeat most of their lines, so their costs are cached.
_LINES = re.compile(r"[^\n]+\s*|\s+")
_TOKEN = 180  # costs are whole parts of a token, so that a sum is the same in any order
_LOWER, _CAPITAL, _BEYOND_ASCII = 40, 80, 81  # of a letter, and of a byte
_MESSAGE = 6  # the delimiters of a message
PICTURE = 1900  # of a picture with 1,024 pixels in width and height, near the worst of the common ways to count
_FRAME = 16  # the prefix and suffix of a chat template
_LONG = 2000  # characters; a longer line is not cached


def estimate_tokens(text: str) -> int:
    """The estimated tokens of a text, rather too many than too few. Pure."""
    total = sum(_remembered(line) if len(line) <= _LONG else _estimated(line) for line in _LINES.findall(text))
    return total // _TOKEN + bool(text)


def _estimated(line: str) -> int:
    total = sum(map(_cost, _PIECES.findall(line)))
    if not line.isascii():
        total += (len(line.encode("utf-8", "replace")) - len(line.encode("ascii", "ignore"))) * _BEYOND_ASCII
    return total


_remembered = lru_cache(maxsize=1 << 13)(_estimated)


@lru_cache(maxsize=1 << 14)
def _cost(piece: str) -> int:
    first = piece[0]
    if first.islower():
        return max(_TOKEN, len(piece) * _LOWER)
    if first.isupper():
        return max(_TOKEN, len(piece) * _CAPITAL)
    if first.isdigit():
        return _TOKEN * (1 + len(piece))
    return _TOKEN * (1 + len(piece) // 64)


def fit_to_tokens(text: str, room: int) -> str:
    """The longest prefix of a text that fits into `room` tokens, with a mark if it was cut."""
    reach = max(4 * room, 64)  # avoids counting a long document to its end to find its prefix
    while reach < len(text) and estimate_tokens(text[:reach]) <= room:
        reach *= 2
    if reach >= len(text) and estimate_tokens(text) <= room:
        return text
    low, high = 0, min(reach, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle] + "…") <= room else (low, middle - 1)
    return f"{text[:low].rstrip()}…" if low else ""


def fair_share(needs: Sequence[int], room: int) -> int:
    """The most tokens that each text may take so that all fit into `room`: short ones leave their rest to the long ones."""
    left = sorted(needs)
    for place, need in enumerate(left):
        share = room // (len(left) - place)
        if need > share:
            return share
        room -= need
    return max(left, default=0)


def pack(items: Iterable[P], cost: Callable[[P], int], room: int, most: int = sys.maxsize) -> list[list[P]]:
    """The items in order, in as few groups as have at most `room` tokens and `most` items. One that is too long is alone."""
    groups: list[list[P]] = []
    left = 0
    for item in items:
        needed = cost(item)
        if not groups or needed > left or len(groups[-1]) == most:
            groups.append([])
            left = room
        groups[-1].append(item)
        left -= needed
    return groups


def shorten_path(heading: str, room: int) -> str:
    """A path of headings in at most `room` tokens. The outermost are dropped first: units and captions are innermost."""
    parts = heading.split(" › ")
    while len(parts) > 1 and estimate_tokens(heading) > room:
        parts = parts[1:]
        heading = " › ".join(("…", *parts))
    return fit_to_tokens(heading, room)


def prompt_tokens(prompt: Prompt) -> int:
    """The estimated tokens of a whole prompt, including its tools and schema."""
    schemas = [tool.name + tool.about + _spelt(tool.parameters) for tool in prompt.tools]
    if prompt.schema is not None and prompt.form == "schema":
        schemas.append(_spelt(prompt.schema))
    words = [message.text for message in prompt.messages] + schemas
    pictures = sum(PICTURE + estimate_tokens(each.before) + estimate_tokens(each.after) for each in prompt.pictures)
    return _FRAME + sum(estimate_tokens(each) + _MESSAGE for each in words) + pictures


def _spelt(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)


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
