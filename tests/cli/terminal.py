"""A command line that is typed in this process, with or without somebody at the keyboard; and notes to ask about."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from doubles import Script, enough, keeps, lookup, research, supported, writes
from doubles import steps as plans

QUESTION = "Where is the paint of the lamp room at Carrow Point ground?"
PAINT = "The lamp room at Carrow Point is painted with orpiment."
GROUND = "All orpiment comes in barrels from the works in Dunmere, where it is ground."
NOTES = {
    "lamp": f"# The lamp room\n\n{PAINT} Nobody has painted it anew since.",
    "works": f"# The works\n\n{GROUND} They are closed in winter.",
    "garden": "# The garden\n\nThe roses behind the house are watered twice a week.",
}
ANSWER = "The paint of the lamp room at Carrow Point is orpiment, ground in Dunmere."
CLAIM = f"{ANSWER[:-1]} [{{painted with orpiment}}, {{works in Dunmere}}]."


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Typed = Callable[..., Done]


class Keyboard(io.StringIO):
    """Somebody who types these lines, and then is gone."""

    def isatty(self) -> bool:
        return True


def looked_up(**other: Any) -> Script:
    """A model for which the question is a look-up; `other` takes the place of single lines."""
    lines: dict[str, Any] = {
        "route": lookup(),
        "weigh": keeps(PAINT, GROUND),
        "write": writes(CLAIM),
        "check": supported(),
    }
    return Script(**lines | other)


def researched(**other: Any) -> Script:
    """A model that plans two steps, the second of which needs the first."""
    lines: dict[str, Any] = {
        "route": research(),
        "plan": plans(
            ("What is the lamp room painted with?", "lamp room painted"),
            ("Where is {s1} ground?", "{s1} barrels works"),
        ),
        "judge": enough(s1="orpiment", s2="Dunmere"),
    }
    return looked_up(**lines | other)
