"""An answer model based on words only: instant, deterministic, for tests that do not depend on meaning."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.models.llm import Reading


class WordAnswers:
    """A text answers a question by the share of the question's words that it has; the span is its last word that the
    question does not have, a number if one is asked for."""

    name = "words"

    async def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        asked = set(re.findall(r"\w+", question.lower()))
        return [self._reading(asked, text) for text in texts]

    def _reading(self, asked: set[str], text: str) -> Reading:
        words = list(re.finditer(r"[\d.,]*\d|\w+", text))
        share = len(asked & {word[0].lower() for word in words}) / max(1, len(asked))
        own = [word for word in words if word[0].lower() not in asked]
        numbers = [word for word in own if word[0][0].isdigit()] if asked & {"how", "when"} else []
        span = next((found[-1].span() for found in (numbers, own, words) if found), (0, 0))
        return Reading(share, span, share)
