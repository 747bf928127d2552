"""Fences untrusted text in prompts: documents are data, and reach a model only between two marks that they cannot predict."""

from __future__ import annotations

import re

from assay.core.codec import digest
from assay.core.types import Passage
from assay.language.clean import clean_text

_BRACKETS = re.compile("[⟦⟧\u301a\u301b]")  # the fence's own brackets and lookalikes
# Control tokens of chat templates, which servers of local models obey anywhere: a space is inserted, so that they are text.
_TEMPLATE = re.compile(
    r"<(?=\|\w)|(?<=\w)\|(?=>)|\[(?=/?INST\])|<(?=/?(?:s|think|tool_call|tool_response|(?:start|end)_of_turn|SYS)>)|<(?=<SYS>>)",
    re.I,
)


def fence_mark(run: str) -> str:
    """The mark of a run. No document can contain it, because the run's id is drawn at random after the documents were
    written; it is the same when the run is resumed or replayed."""
    return digest(f"fence {run}")[:12]


def fence(mark: str, label: str, words: str) -> str:
    """Untrusted text as a model sees it: labelled and between marks. Inside there are no lookalikes of the marks, no invisible
    characters and no control tokens of chat templates. Text of documents, file names, descriptions, tools and models
    enters a prompt only through this function.
    """
    inside = _neutralise(words, mark)
    above = " ".join(_neutralise(label, mark).split())
    return f"⟦{mark} quoted: {above}⟧\n{inside}\n⟦end {mark}⟧"


def _neutralise(words: str, mark: str) -> str:
    seen = _BRACKETS.sub("|", clean_text(words))
    return _TEMPLATE.sub(lambda match: f"{match[0]} ", seen).replace(mark, "…")


def table_label(passage: Passage) -> str:
    """What a label says of a passage that is part of a table: the caption, units and header that are outside it."""
    return f" · table: {' / '.join(passage.context.splitlines())}" if passage.context else ""
