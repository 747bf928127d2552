"""Text that a file holds but does not show. It is kept apart: counted, described and excerpted, never part of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.core.printable import clean_text
from assay.core.types import HIDDEN

LONGEST_EXCERPT = 2_000  # characters
MOST_LISTED = 8  # pages


@dataclass(frozen=True, slots=True)
class HiddenText:
    """`how` completes "Text is …": covered, too small to read. Page 0: the format has no pages."""

    text: str
    how: str
    page: int = 0

    @property
    def words(self) -> int:
        return sum(any(map(str.isalnum, word)) for word in self.text.split())


def describe_hidden(found: Iterable[HiddenText]) -> str:
    """How much was left out, where, and how it was hidden; empty if there is nothing."""
    ways: Counter[str] = Counter()
    pages: set[int] = set()
    for each in found:
        ways[each.how] += each.words
        pages.add(each.page)
    total = ways.total()
    if not total:
        return ""
    counted = [how if len(ways) == 1 else f"{count} {how}" for how, count in ways.most_common()]
    where = listed_pages(sorted(pages - {0}))
    return f"Text that no reader sees was left out: {total} word{'s'[: total > 1]}{where} ({', '.join(counted)})."


def listed_pages(pages: Sequence[int]) -> str:
    """` on page 2`, ` on pages 2 and 7`; empty for none."""
    if not pages:
        return ""
    names = [*map(str, pages[:MOST_LISTED]), *(["others"] if len(pages) > MOST_LISTED else [])]
    last = f" and {names[-1]}" if len(names) > 1 else ""
    return f" on page{'s'[: len(names) > 1]} {', '.join(names[:-1] or names)}{last}"


def hidden_meta(found: Iterable[HiddenText]) -> dict[str, str]:
    """The beginning of the hidden text, for a person who looks at the document: it is neither indexed nor sent to a model."""
    excerpt: list[str] = []
    length = 0
    for each in found:
        words = " ".join(clean_text(each.text).split())
        if words:
            excerpt.append(words)
            length += len(words) + 1
        if length > LONGEST_EXCERPT:
            break
    joined = " ".join(excerpt)
    return {HIDDEN: joined[:LONGEST_EXCERPT] + ("…" if len(joined) > LONGEST_EXCERPT else "")} if joined else {}
