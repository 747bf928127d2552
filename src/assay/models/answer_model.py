"""The answer model protocol: reads a question and a text together and says whether the text answers it, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says about a question.

    answers: the probability that the text answers the question
    span: the characters of the text that most likely are the answer; (0, 0) for a text without words
    span_score: the probability of that span among those of the text
    """

    answers: float
    span: tuple[int, int] = (0, 0)
    span_score: float = 0.0


class AnswerModel(Protocol):
    @property
    def name(self) -> str:
        """Changes whenever the readings do."""
        ...

    async def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """One reading per text, in order. A text is read up to the model's window."""
        ...
