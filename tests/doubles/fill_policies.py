"""Policies that fill a schema: at random, or so that a run makes progress. Hostile models and faults are built on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from doubles.fill import FillPolicy, Path, fill
from doubles.protocol import (
    ModelOutput,
    Request,
    ScriptedCall,
    ScriptedCalls,
    keys_in,
    passages_in,
    schema_of,
    text_of,
    tools_of,
)

PREFERRED = ("research", "search", "supported")  # the choices that advance a run

# Names of the fields in the replies that Assay asks for.
_ASKED = re.compile(r"^Question: (.+)$", re.MULTILINE)
_ASKING = frozenset({"question", "query"})
_POSITIVE = frozenset({"enough", "complete", "answers"})
_NUMBERED = frozenset({"id", "claim"})  # one of each
_EACH = frozenset({"passages", "rulings", "revisions", "words"})  # as many as allowed
_BLOCKING = frozenset({"needs", "readings", "missing", "searches", "conflicts"})  # fields that would block a run
_LEFT_OUT = frozenset({"calculation", "search"})  # fields that are empty if all is well
_KEYS = frozenset({"key", "keys", "cite", "cites", "left", "right"})
_IDS = re.compile(r"\b[0-9a-f]{8,}\b")  # marks and keys in a prompt
_STRAY_WORDS = "of the and however seven quite north paper under early which never between light almost".split()


def cooperative_reply(request: Request) -> ModelOutput:
    """The reply of a cooperative model: it agrees, and it quotes and cites what it is shown."""
    return reply_by_policy(cooperative_policy(request), request)


def reply_by_policy(policy: FillPolicy, request: Request) -> ModelOutput:
    """A reply in the form that the request asks for: tool calls, JSON or prose, filled by the policy."""
    if tools := tools_of(request):
        names = [policy.pick(list(tools), ("calls", "tool")) for _ in range(policy.count(0, 3, ("calls",)))]
        return ScriptedCalls(
            tuple(ScriptedCall(name, fill(tools[name], policy)) for name in names), policy.words(("why",))
        )
    if schema := schema_of(request):
        return fill(schema, policy)
    return {} if request.get("response_format") else policy.words(("text",))


def seeded_random(request: Request, seed: int) -> Random:
    """A random generator that depends only on the seed and the request: not on the order of requests, nor on the marks
    and keys that differ from run to run."""
    return Random(f"{seed} {_IDS.sub('', text_of(request))}")


def last_name(path: Path) -> str:
    """The name of the value itself: the last element of its path."""
    return path[-1] if path else ""


def is_key(path: Path) -> bool:
    """Whether the value is an evidence key."""
    return last_name(path) in _KEYS


def random_policy(request: Request, seed: int) -> FillPolicy:
    """Anything the schema allows, with text taken partly from the prompt."""
    random = seeded_random(request, seed)
    text = text_of(request)
    keys = keys_in(text)
    own = re.findall(r"\w+", _IDS.sub("", text))[-500:] or _STRAY_WORDS

    def words(path: Path) -> str:
        if keys and is_key(path) and random.random() < 0.8:
            return random.choice(keys)
        phrase = " ".join(random.choices(random.choice((own, _STRAY_WORDS)), k=random.randint(1, 8)))
        return f"{phrase} [{random.choice(keys)}]" if keys and random.random() < 0.3 else phrase

    return FillPolicy(
        pick=lambda options, path: random.choice(options),
        flag=lambda path: random.random() < 0.5,
        count=lambda low, high, path: random.randint(low, high),
        number=lambda low, high, path: random.choice((low, high, random.uniform(low, high))),
        words=words,
        wants=lambda path: random.random() < 0.5,
    )


def cooperative_policy(request: Request) -> FillPolicy:
    """The evidence is enough, the draft complete, every passage relevant and every claim supported, with text from the
    documents and keys that are shown. Fields that would block a run are left empty."""
    text = text_of(request)
    keys = keys_in(text)
    asked = (_ASKED.findall(text) or [text.strip().rpartition("\n")[2]])[-1] or "nothing"
    sentences = [_longest_sentence(words) for words in passages_in(text).values()] or [asked]
    turns: Counter[Path] = Counter()

    def turn(path: Path) -> int:
        turns[path] += 1
        return turns[path] - 1

    def pick(options: Sequence[Any], path: Path) -> Any:
        if last_name(path) in _NUMBERED:
            return options[turn(path) % len(options)]
        if last_name(path) in _LEFT_OUT:
            return next((each for each in options if each == {"type": "null"}), options[0])
        return next((word for word in PREFERRED if word in options), options[0])

    def count(low: int, high: int, path: Path) -> int:
        name = last_name(path)
        return high if name in _EACH else low if name in _BLOCKING else max(low, 1)

    def words(path: Path) -> str:
        if is_key(path):
            return keys[0] if keys else "none"
        if last_name(path) in _LEFT_OUT:
            return ""
        return asked if last_name(path) in _ASKING else sentences[turn(path) % len(sentences)]

    return FillPolicy(
        pick=pick,
        flag=lambda path: last_name(path) in _POSITIVE,
        count=count,
        number=lambda low, high, path: high,
        words=words,
        wants=lambda path: False,
    )


def _longest_sentence(words: str) -> str:
    return max(re.split(r"(?<=[.!?])\s+|\n", words), key=len).strip()
