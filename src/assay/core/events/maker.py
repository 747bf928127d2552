"""Who produced an event: a model, named by prompt and model (`weigh@gpt`), or rules; and why rules replaced a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

RULES = "rules"


class Fallback(StrEnum):
    """Why no model reply was available, so that rules were used."""

    money = "money"
    tokens = "tokens"
    calls = "calls"
    time = "time"
    unusable = "unusable"  # the replies could not be used


Fallbacks = tuple[Fallback, ...] | None  # the type of the field `fallback` of events


@dataclass(frozen=True, slots=True)
class Maker:
    """The producer of something. `by` is `rules` or model labels; `fallback` says why rules produced all or part of
    it instead of a model."""

    by: str = RULES
    fallback: Fallbacks = None

    @property
    def label(self) -> str:
        """For display: `weigh@gpt; rules: money`."""
        own = () if self.fallback and self.by == RULES else (self.by,)
        return "; ".join((*own, *(f"{RULES}: {why}" for why in self.fallback or ())))


BY_RULES = Maker()


def stand_in(why: Fallback) -> Maker:
    """Rules as a fallback for a model."""
    return Maker(RULES, (why,))


def combine_makers(makers: Iterable[Maker]) -> Maker:
    """The combined maker of several parts: each once, models before rules."""
    makers = list(makers)
    labels = dict.fromkeys(each.by for each in makers if each.by != RULES or not each.fallback)
    fallback = tuple(dict.fromkeys(why for each in makers for why in each.fallback or ()))
    return Maker("; ".join(sorted(labels, key=lambda each: each == RULES)) or RULES, fallback or None)


def fallbacks(event: object) -> tuple[Fallback, ...]:
    """Why rules produced an event, or a part of it, instead of a model."""
    return getattr(event, "fallback", None) or ()
