"""A small library about a lighthouse, for tests of whole runs: three hops that no single search finds, among many notes that
use the same words; and a workspace over it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doubles import (
    Script,
    calls,
    enough,
    keeps,
    missing,
    no_calls,
    research,
    rewrites,
    supported,
    writes,
)
from doubles import steps as plans
from notes import filled, opened  # noqa: F401

from assay.core.run import Run
from assay.workspace.facade import Workspace

QUESTION = "Where is the paint of the lamp room at Carrow Point ground, how tall is its tower, and who tends the light?"
PAINT = "The lamp room at Carrow Point is painted with orpiment."
GROUND = "All orpiment comes in barrels from the works in Dunmere, where it is ground."
TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
TENDS = "Ines Tallow tends the beacon, day and night, and writes the log."
NOTES = {
    "lamp": f"{PAINT} Nobody has painted it anew since.",
    "works": f"{GROUND} They are closed in winter.",
    "tower": f"{TALL} It leans a little.",
    "beacon": f"{TENDS} She has never missed a watch.",
} | {
    f"yard-{n}": f"Yard note {n}. The paint of room {n} is ground in the yard, and the tower of yard {n} is tall. "
    f"The lamp in the room was out, so the paint had to wait. Who tends the light of yard {n} ground the paint."
    for n in range(1, 31)
}
STEPS = plans(
    ("What is the lamp room painted with?", "lamp room Carrow Point painted"),
    ("Where is {s1} ground?", "{s1} barrels works"),
    ("How tall is the tower at Carrow Point?", "tower lighthouse Carrow Point metres"),
)
CLAIMS = (
    "Orpiment, with which the lamp room at Carrow Point is painted, is ground in Dunmere [{painted with}, {Dunmere}].",
    "The tower of the lighthouse at Carrow Point is 31 metres tall [{31 metres}].",
    "Ines Tallow tends the beacon [{tends the beacon}].",
)
LITERAL = (f"{PAINT} [{{painted with}}]", f"{GROUND} [{{Dunmere}}]", f"{TALL} [{{31 metres}}]", f"{TENDS} [{{tends}}]")


def script(**other: Any) -> Script:
    """Every step once, as it would go: two searches that depend on each other, one that does not, and one for what is missing.
    `other` takes the place of single lines."""
    lines: dict[str, Any] = {
        "route": [research()],
        "plan": [STEPS],
        "decide": [calls("search", query="beacon log watch")],
        "weigh": keeps(PAINT, GROUND, TALL, TENDS),
        "judge": [missing(s1="orpiment", s3="31 metres"), missing("who tends the light", s2="Dunmere"), enough()],
        "write": [writes(*CLAIMS)],
        "check": supported(),
    }
    return Script(**lines | other)


def stateless(*claims: str) -> Script:
    """The same model without a memory: what it says follows from what it is shown, so that a run may ask it again."""

    def judge(text: str, schema: Any) -> Any:
        shown = text.partition("Evidence:")[2]
        if TENDS in shown:
            return enough()(text, schema)
        if GROUND in shown:
            return missing("who tends the light", s2="Dunmere")(text, schema)
        return missing(s1="orpiment", s3="31 metres")(text, schema)

    def decide(text: str, schema: Any) -> Any:
        return no_calls() if TENDS in text else calls("search", query="beacon log watch")

    return script(route=research(), plan=STEPS, decide=decide, judge=judge, write=writes(*claims or CLAIMS))


def literal() -> Script:
    """A model without a memory that writes in the words of the documents: no judge is needed."""
    return stateless(*LITERAL)


def self_critical() -> Script:
    """A model that looks up little, says much, some of it wrong, and then finds its own draft wanting."""

    def decide(text: str, schema: Any) -> Any:
        return no_calls() if GROUND in text else calls("search", query="orpiment barrels works")

    def write(text: str, schema: Any) -> Any:
        more = [f"The tower at Carrow Point is {metres} metres tall [{{31 metres}}]." for metres in (31, 32, 33)]
        said = [
            "The lamp room is painted with orpiment [{painted with orpiment}].",
            "Orpiment is what the lamp room at Carrow Point is painted with [{painted with orpiment}].",
            "At Carrow Point the lamp room is painted [{painted with orpiment}].",
            "The lighthouse at Carrow Point has a tower [{31 metres}].",
            "The tower of the lighthouse is 31 metres tall [{31 metres}].",
        ]
        late = ["All orpiment is ground in Dunmere [{works in Dunmere}]."] if GROUND in text else []
        return writes(*said, *more, *late)(text, schema)

    def check(text: str, schema: Any) -> Any:
        lacks = [] if "ground in Dunmere" in text else ["where orpiment is ground"]
        return supported(missing=lacks, search="where orpiment is ground" if lacks else "")(text, schema)

    return script(
        route=research(),
        plan=plans("What is the lamp room painted with, and how tall is the tower?"),
        decide=decide,
        judge=enough(),
        write=write,
        revise=rewrites("The tower of the lighthouse at Carrow Point is 31 metres tall [{31 metres}]."),
        check=check,
    )


async def fill(folder: Path, notes: dict[str, str] = NOTES) -> None:
    await filled(folder, notes)


async def answered(workspace: Workspace, question: str = QUESTION, **how: Any) -> Run:
    """A question, carried as far as it goes."""
    return [run async for run, _ in workspace.ask(question, **how)][-1]


async def resumed(workspace: Workspace, run: Run, choice: str = "", words: str = "") -> Run:
    return [each async for each, _ in workspace.resume(run.id, choice, words)][-1]
