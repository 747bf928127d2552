"""Every pattern of the package, with the ways in which it is used, and words that are made to be hard for it."""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as code  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

import assay

ROOT = Path(assay.__file__).parent
ONCE = {"match", "fullmatch"}
EVERYWHERE = {"search", "finditer", "findall", "sub", "subn", "split"}
APART = ("assay.__main__",)  # which no document and no model reaches in use


@dataclass(frozen=True, slots=True)
class Used:
    """A pattern, where it is from, and whether it is tried at one place of the words or at all of them."""

    where: str
    pattern: re.Pattern[Any]
    everywhere: bool


def all_used() -> list[Used]:
    """Each pattern once; what is put together from words that are only known later is left out."""
    texts = {_named(file): file.read_text() for file in sorted(ROOT.rglob("*.py"))}
    methods: dict[str, set[str]] = {}
    for text in texts.values():
        for name, method in re.findall(rf"\b(\w+)\.({'|'.join(sorted(ONCE | EVERYWHERE))})\b", text):
            methods.setdefault(name, set()).add(method)
    found: dict[tuple[Any, int, bool], Used] = {}
    for module, text in texts.items():
        if module.startswith(APART) or "import re\n" not in text:
            continue
        own = vars(importlib.import_module(module))
        for used in (*_called(module, ast.parse(text), own), *_named_here(module, own, methods)):
            found.setdefault((used.pattern.pattern, used.pattern.flags, used.everywhere), used)
    return list(found.values())


def _named(file: Path) -> str:
    return "assay." + ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _called(module: str, tree: ast.AST, own: dict[str, Any]) -> Iterator[Used]:
    """`re.sub(…)` and its kin."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        if node.func.attr not in ONCE | EVERYWHERE:
            continue
        flags = [each.value for each in node.keywords if each.arg == "flags"] + (
            node.args[2:] if node.func.attr not in {"sub", "subn", "split"} else []
        )
        try:
            words = eval(compile(ast.Expression(node.args[0]), module, "eval"), own)
            given = sum(int(eval(compile(ast.Expression(each), module, "eval"), own)) for each in flags)
        except NameError:
            continue
        if isinstance(words, str | bytes):
            yield Used(f"{module}:{node.lineno}", re.compile(words, given), node.func.attr in EVERYWHERE)


def _named_here(module: str, own: dict[str, Any], methods: dict[str, set[str]]) -> Iterator[Used]:
    """Patterns that the module keeps, alone or in a table."""

    def inside(value: Any) -> Iterator[re.Pattern[Any]]:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, dict):
            yield from itertools.chain.from_iterable(map(inside, value.values()))
        elif isinstance(value, tuple | list):
            yield from itertools.chain.from_iterable(map(inside, value))

    for name, value in list(own.items()):
        for pattern in inside(value):
            alone = isinstance(value, re.Pattern)
            uses = methods.get(name, set()) if alone else EVERYWHERE
            if uses & EVERYWHERE or not uses:
                yield Used(f"{module}.{name}", pattern, True)
            elif uses:
                yield Used(f"{module}.{name}", pattern, False)


def signs(pattern: re.Pattern[Any]) -> list[str]:
    """Characters that the pattern looks for, each kind once."""
    found: dict[str, None] = {}

    def walk(tree: Any) -> None:
        for kind, value in tree:
            if kind is code.LITERAL:
                found.setdefault(chr(value))
            elif kind in (code.NOT_LITERAL, code.ANY):
                found.setdefault("x")
            elif kind is code.IN:
                for inner, each in value:
                    if inner is code.NEGATE:
                        found.setdefault("x")
                    elif inner is code.LITERAL:
                        found.setdefault(chr(each))
                    elif inner is code.RANGE:
                        found.setdefault(chr(each[0]))
                    elif inner is code.CATEGORY:
                        category(each)
            elif kind is code.CATEGORY:
                category(value)
            elif kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
                walk(value[2])
            elif kind is code.SUBPATTERN:
                walk(value[3])
            elif kind is code.BRANCH:
                for each in value[1]:
                    walk(each)
            elif kind in (code.ASSERT, code.ASSERT_NOT):
                walk(value[1])
            elif kind is code.ATOMIC_GROUP:
                walk(value)

    def category(kind: Any) -> None:
        name = str(kind).rpartition("CATEGORY_")[2].removeprefix("UNI_")
        told = {"DIGIT": "1", "SPACE": " \n", "WORD": "a", "NOT_DIGIT": "x", "NOT_SPACE": "x", "NOT_WORD": "-"}
        for sign in told[name]:
            found.setdefault(sign)

    walk(parser.parse(pattern.pattern, pattern.flags if isinstance(pattern.pattern, str) else pattern.flags & ~re.U))
    return list(found)


def hard(pattern: re.Pattern[Any], wide: bool) -> Iterator[tuple[str, str]]:
    """What is put first, and what is said again and again after it."""
    own = signs(pattern)
    spaced = [sign for sign in own if sign.isspace()]
    several = list(dict.fromkeys([*spaced, *own[: 16 if wide else 5], "a", "1"]))
    pairs = ["".join(pair) for pair in itertools.permutations(several[: 7 if wide else 2], 2)]
    for again in (*several, *pairs):
        for first in ("", *(own[:3] if wide else own[:1])):
            yield first, again


def seconds(used: Used, first: str, again: str, length: int) -> float:
    """Processor time to try it on so many characters, with one at the end that fits nowhere."""
    words: Any = first + (again * (length // len(again) + 1))[:length] + "\0"
    words = words.encode("latin-1", "replace") if isinstance(used.pattern.pattern, bytes) else words
    begun = time.thread_time()
    if used.everywhere:
        for _ in used.pattern.finditer(words):
            pass
    else:
        used.pattern.match(words), used.pattern.fullmatch(words)
    return time.thread_time() - begun
