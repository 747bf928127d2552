"""The notes that are asked about here, and how."""

from __future__ import annotations

from assay.core.run import Run
from assay.workspace.facade import Workspace

NOTES = {
    "pumps.md": "# Pumps\n\nPump P-7 stands in hall 3. It was repaired in March 2021, after its seal had failed twice.\n",
    "halls.md": "# Halls\n\nHall 3 has two cranes. Its floor was renewed in 2019 because of the old drains.\n",
}
QUESTION = "Where does pump P-7 stand?"


async def ask(opened: Workspace, question: str = QUESTION, **how: object) -> Run:
    return [run async for run, _ in opened.ask(question, **how)][-1]
