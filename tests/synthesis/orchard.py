"""Documents about an orchard, and a kit over them, for tests of how documents are described and asked about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

from assay.agent.context import RunContext
from assay.agent.tool import ToolContext
from assay.core.events import Asked, Event
from assay.core.run import Run
from assay.core.synthesis import Brief, Pipeline
from assay.core.types import Document, Section
from assay.evaluate.plain_text import WordEmbedder

PRUNING = """Pruning the old pear trees

Pear trees are pruned in February, before the sap rises. A saw with fine teeth leaves a smooth wound. Wounds are sealed with \
grafting wax on the same day.

Grafting wax

Grafting wax is melted over a low flame. It keeps the wound dry for two summers. The wax comes from the hives at Tarrow Farm.

Tools

The pruning saw is cleaned with alcohol between trees. A dirty saw carries canker from tree to tree.
"""
HIVES = """The hives at Tarrow Farm

Tarrow Farm keeps forty hives along the southern hedge. The bees fly to the pear trees in April. Each hive gives two \
kilograms of wax a year.

Swarms

A swarm is caught with a straw skep. Swarms leave the hives in May, when the colony has two queens.
"""
CANKER = """Abstract

Canker of pear trees spreads on pruning saws. We cut sixty trees with clean saws and sixty with dirty saws. Canker appeared \
on nine trees that were cut with dirty saws and on none of the others.

Methods

Saws were cleaned with alcohol for one minute. The trees were examined in August.
"""


def document(id: str, words: str, title: str = "", **more: Any) -> Document:
    """A document whose short lines are its headings."""
    at = 0
    sections: list[Section] = []
    for line in words.split("\n"):
        if line and len(line) < 40 and not line.endswith(".") and ";" not in line:
            sections.append(Section(line, 1, at, at + len(line)))
        at += len(line) + 1
    given = {"uri": f"notes/{id}.txt", "sections": tuple(sections)} | more
    return Document(id, "base", digest="", title=title, text=words, **given)


PRUNED = document("pruning", PRUNING, "Pruning the old pear trees", authors=("Ada Quill",), date="2021-03")
HIVED = document("hives", HIVES, "The hives at Tarrow Farm", authors=("Bo Lark",), date="2019")
CANKERED = document(
    "canker", CANKER, "Canker on saws", authors=("Cy Dorn",), date="2023", abstract=(10, CANKER.index("\n\nMethods"))
)
THREE = (PRUNED, HIVED, CANKERED)


def asked(*documents: Document) -> Run:
    brief = Brief(Pipeline.summary, tuple(each.id for each in documents))
    return Run("r1", (Asked("What?", "me", "2026-01-01", brief=brief),))


def context(*documents: Document) -> RunContext:
    """A kit that can read these documents."""
    search_context: Any = SimpleNamespace(embedder=WordEmbedder(), answer_model=None)
    nobody: Any = None
    held = {each.id: each for each in documents}
    return RunContext(ToolContext(search_context, nobody), Run.then, held.get)


async def done(stage: Callable[[Run, RunContext], AsyncIterator[Event]], run: Run, with_: RunContext) -> Run:
    """The run after a stage."""
    async for event in stage(run, with_):
        run = run.then(event)
    return run
