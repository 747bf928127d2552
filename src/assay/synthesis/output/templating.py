"""The Jinja2 environments of the page, the map and the Markdown file. Every printed value is stripped of invisible
characters and escaped for its format. Only `Markup` (our own files and macros) is printed unescaped."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from assay.answer.render import MARKDOWN
from assay.synthesis.output.footnotes import printable

LINE_START = re.compile(r"^(?:[-+=]|\d+[.)](?=\s|$))")  # would start a list or a heading


@cache
def html_environment() -> Environment:
    """For HTML and SVG."""
    environment = _environment()
    environment.finalize = _clean
    environment.filters["fixed"] = lambda value, digits=1: f"{value:.{digits}f}"
    environment.filters["short"] = lambda value: f"{value:g}"
    return environment


@cache
def markdown_environment() -> Environment:
    environment = _environment()
    environment.finalize = _escape_markdown
    return environment


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("assay.synthesis.output"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )


def _clean(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _escape_markdown(value: Any) -> Any:
    return Markup(md(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


def md(words: str) -> str:
    """Escape words so that they format nothing, anywhere on a line."""
    safe = MARKDOWN.sub(r"\\\1", printable(words))
    start = LINE_START.match(safe)
    return f"{safe[: start.end() - 1]}\\{safe[start.end() - 1 :]}" if start else safe


@cache
def asset(name: str) -> Markup:
    """A style sheet or script of the package."""
    return Markup((resources.files("assay.synthesis.output") / "templates" / name).read_text(encoding="utf-8"))
