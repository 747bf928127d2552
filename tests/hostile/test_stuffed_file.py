"""One file that is stuffed with the words of questions, or with denials, does not keep an answer from being given."""

from __future__ import annotations

from pathlib import Path

import pytest
from doubles import ChatServer
from doubles.fill_policies import cooperative_reply
from doubles.protocol import ModelOutput, Request, role_of, text_of
from notes import filled, opened

from assay.core.events import Answered
from assay.core.types import Outcome
from assay.workspace.facade import Workspace

TRUE = "The lighthouse at Carrow Point was built in 1871."
QUESTION = "When was the lighthouse at Carrow Point built?"
NOTES = {
    "light.txt": f"The light at Carrow Point.\n\n{TRUE} Its lamp stands 31 metres above the sea.\n",
    "ferry.txt": "The ferry to Tarn leaves at 08:15 and 17:40 on weekdays. A return ticket costs 14 crowns.\n",
    "harbour.txt": "Vessels over 40 metres need a pilot. The gate of the inner basin closes at 22:00.\n",
}
STUFFED = {
    "words": f"{QUESTION[:-1]} " * 200,
    "denials": f"{QUESTION} This is not known. No document says when it was built, and nobody can answer that.\n\n"
    * 60,
}


async def outcome(workspace: Workspace) -> tuple[Outcome, str]:
    """How the question ends, and what is quoted or said."""
    last = [event async for _, event in workspace.ask(QUESTION)][-1]
    assert isinstance(last, Answered)
    return last.answer.outcome, " ".join(each.quote.text if each.quote else each.text for each in last.answer.claims)


@pytest.mark.parametrize("kind", STUFFED)
async def test_an_answer_is_given_whatever_one_file_is_stuffed_with(tmp_path: Path, kind: str):
    await filled(tmp_path / "workspace", NOTES | {"stuffed.txt": STUFFED[kind]})
    with opened(tmp_path / "workspace") as workspace:
        how, said = await outcome(workspace)
    assert how is not Outcome.abstained and TRUE in said
    prompts: dict[str, str] = {}

    def answer(request: Request) -> ModelOutput:
        prompts[role_of(request)[0]] = text_of(request)
        return cooperative_reply(request)

    with ChatServer(answer) as server, opened(tmp_path / "workspace", server) as workspace:
        await outcome(workspace)
    assert TRUE in prompts["weigh"] and TRUE in prompts["write"], "a model has the true words before it"
