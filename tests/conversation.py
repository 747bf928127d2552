"""A conversation of ten turns about a lighthouse: follow-ups, a translation, a doubt, a rephrasing, thanks, changes of
subject. The model that answers it has no memory: what it says follows from what it is shown."""

from __future__ import annotations

import re
from typing import Any

from doubles import Script, keeps, lookup, supported, writes

PAINT = "The lamp room at Carrow Point is painted with orpiment."
GROUND = "All orpiment comes in barrels from the works in Dunmere, where it is ground."
TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
LEANS = "The tower leans a little to the west."
TENDS = "Ines Tallow tends the beacon, day and night, and writes the log."
NOTES = {
    "Lamp room": f"{PAINT} Nobody has painted it anew since.",
    "Works": f"{GROUND} They are closed in winter.",
    "Tower": f"{TALL} {LEANS}",
    "Beacon": f"{TENDS} She has never missed a watch.",
} | {f"Yard {n}": f"Yard note {n}. The fence of yard {n} was mended in spring." for n in range(1, 5)}

FIRST = "How tall is the tower at Carrow Point?"
GERMAN = "Der Lampenraum in Carrow Point ist mit Orpiment gestrichen."
BOILED = "Carrow Point: der Lampenraum ist mit Orpiment gestrichen."
ROW = "Orpiment | Dunmere"
# What is said, what is understood, and what the answer contains.
TURNS: tuple[tuple[str, str, str], ...] = (
    (FIRST, "", "31 metres"),
    ("Does it lean?", "Does the tower at Carrow Point lean?", "leans a little"),
    ("And what is its lamp room painted with?", "What is the lamp room at Carrow Point painted with?", "orpiment"),
    ("In German, please.", "put the last answer differently", GERMAN),
    ("Are you sure?", "check the last answer", "Judged again: 1 of 1 statements hold"),
    ("Could you boil that down for my boss?", "put the last answer differently", BOILED),
    ("Thanks!", "no question to the documents", "You are welcome."),
    ("Where is orpiment ground?", "", "Dunmere"),
    ("As a table", "put the last answer differently", ROW),
    ("Who tends the beacon?", "", "Ines Tallow"),
)


def printed(shown: str) -> str:
    """What an answer contains as text shows it: the cells of a row stand in columns."""
    return shown.replace(" | ", "  ")


SEARCHED = (0, 1, 2, 7, 9)  # the turns that ask the documents something
READ: dict[str, dict[str, Any]] = {
    "Does it lean?": {"question": "Does the tower at Carrow Point lean?"},
    "And what is its lamp room painted with?": {
        "about": "question",
        "question": "What is the lamp room at Carrow Point painted with?",
    },
    "In German, please.": {"about": "answer", "question": "Say it in German."},
    "Are you sure?": {"about": "answer", "doubt": True, "question": "Is the answer right?"},
    "Could you boil that down for my boss?": {"about": "answer", "question": "Could you boil the answer down?"},
    "Where is orpiment ground?": {"question": "Where is orpiment ground?"},
    "As a table": {"about": "answer", "question": "Put the answer into a table."},
    "Who tends the beacon?": {"question": "Who tends the beacon?"},
}


def _after(name: str, text: str) -> str:
    found = re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)
    assert found, f"the request has no line {name!r}"
    return found[-1]


def _write(text: str, schema: Any) -> Any:
    asked = _after("Question", text)
    claims = {
        "tall": f"{TALL} [{{31 metres}}]",
        "lean": f"{LEANS} [{{leans}}]",
        "painted": f"{PAINT} [{{painted with}}]",
        "ground": f"{GROUND} [{{Dunmere}}]",
        "tends": f"{TENDS} [{{tends}}]",
    }
    return writes(next(claim for word, claim in claims.items() if word in asked))(text, schema)


def _rework(text: str, schema: Any) -> Any:
    wish = _after("The person now says", text)
    if "German" in wish:
        return writes(f"{GERMAN} [{{0}}]")(text, schema)
    if "boil" in wish:
        assert GERMAN in text, "the claims of the last answer are shown"
        return writes(f"{BOILED} [{{0}}]")(text, schema)
    draft: Any = writes(f"{ROW} [{{0}}]", shape="table")(text, schema)
    draft["blocks"][0]["heading"] = "Paint | Works"
    return draft


def script(**other: Any) -> Script:
    lines: dict[str, Any] = {
        "standalone": lambda text, schema: READ[_after("The latest turn", text)],
        "route": lookup(),
        "weigh": keeps(PAINT, GROUND, TALL, LEANS, TENDS),
        "write": _write,
        "rework": _rework,
        "check": supported(),
    }
    return Script(**lines | other)


# The same without a model: what is said, what is understood, and what the answer contains. Nothing is rewritten.
RULED: tuple[tuple[str, str, str], ...] = (
    (FIRST, "", "31 metres"),
    ("Does it lean?", f"Does it lean? {FIRST}", "Tower"),
    ("Why?", f"Why? Does it lean? {FIRST}", "Tower"),
    ("thank you", "no question to the documents", "You are welcome."),
    ("What is the lamp room painted with?", "", "orpiment"),
    ("Who tends the beacon?", "", "Ines Tallow"),
)
RULED_SEARCHED = (0, 1, 2, 4, 5)
