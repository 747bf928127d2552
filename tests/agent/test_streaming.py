"""A draft while it is written: its claims are recorded one by one, the first are checked meanwhile, and a run that breaks off
there goes on with the same requests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, HttpReply, Script, keeps, lookup, role_of, supported, text_of, verdicts
from doubles.held_stream import HeldStream
from doubles.protocol import body_of
from doubles.replies import Json, _claim
from notes import folder_of, opened

from assay.agent.context import RunContext
from assay.agent.loop import play
from assay.core.events import Asked, Checked, Claimed, Critiqued, Drafted, Mode, ModelReplied, RoleModel
from assay.core.run import Run
from assay.core.types import Outcome, Verdict
from assay.governance.replay import replay
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import ConnectedModel, Ledger, Meter
from assay.workspace.facade import Workspace
from assay.workspace.services.ask import run_context_for

QUESTION = "What does the ferry do?"
FACTS = [
    "The ferry to Oster leaves Velden at nine.",
    "The ferry to Oster carries 120 passengers.",
    "The ferry to Oster burns 80 litres of oil.",
    "The ferry to Oster was built in Lund.",
    "The ferry to Oster is painted green.",
    "The ferry to Oster has two masts.",
]
CLAIMS = [
    "From Velden the ferry goes to Oster at nine [{leaves Velden}].",
    "As many as 120 passengers find room on the ferry to Oster [{carries 120}].",
    "It takes 80 litres of oil to bring the ferry to Oster [{80 litres}].",
    "In Lund the ferry to Oster was built [{built in Lund}].",
    "Green is the colour of the ferry to Oster [{painted green}].",
    "Two masts stand on the ferry to Oster [{two masts}].",
]
folder = folder_of({"ferry": " ".join(FACTS), "pier": "The pier of Velden was painted in May."})


def drafts(*claims: str, conflicts: Any = (), late: bool = False) -> Any:
    """write: these claims; `late`, with what belongs before them after them."""

    def key(text: str, claim: str) -> str:
        return _claim(text, claim)["cites"][0]

    def write(text: str, schema: Any) -> Json:
        stated = {"claims": [_claim(text, claim) for claim in claims]}
        sides = [{"left": key(text, left), "right": key(text, right), "about": ""} for left, right in conflicts]
        block = {"heading": ""} | (stated | {"opinion": False} if late else {"opinion": False} | stated)
        parts = ({"conflicts": sides}, {"blocks": [block]})
        first, second = parts[::-1] if late else parts
        return {"shape": "prose"} | first | second | {"missing": []}

    return write


def model(**other: Any) -> Script:
    lines: dict[str, Any] = {
        "route": lookup(),
        "weigh": keeps(*FACTS),
        "judge": {"enough": True, "missing": [], "steps": [], "surprise": False, "why": ""},
        "write": drafts(*CLAIMS),
        "check": supported(),
    }
    return Script(**lines | other)


def plain(claim: str) -> str:
    return claim.partition(" [")[0] + "."


def asked_of(server: ChatServer, role: str) -> list[str]:
    return [text_of(request) for request in server.requests if role_of(request)[0] == role]


async def recorded(workspace: Workspace, until: Any = lambda run: False) -> Run:
    """The run of the question, as far as that."""
    last: Run | None = None
    async for run, _ in workspace.ask(QUESTION, mode=Mode.quick):
        last = run
        if until(run):
            break
    assert last is not None
    return last


def places(run: Run, kind: type) -> list[int]:
    return [event.place for event in run.events if isinstance(event, kind)]  # type: ignore[attr-defined]


async def test_the_first_claims_are_checked_while_the_rest_is_written(folder: Path):
    held = HeldStream(model().answer, upto="Two masts")
    with ChatServer(held) as server, opened(folder, server, llm_concurrency=4) as workspace:
        steps = workspace.ask(QUESTION, mode=Mode.quick)
        async for run, _ in steps:
            if places(run, Checked) == [0, 1, 2]:
                break
        assert held.reached.is_set() and not held.released.is_set()
        assert run.draft is None and places(run, Claimed) == [0, 1, 2, 3, 4]  # the sixth is not whole
        assert len(asked_of(server, "check")) == 1 and "Question:" not in asked_of(server, "check")[0]
        held.release()
        async for each, _ in steps:
            run = each
    first, second = asked_of(server, "check")
    assert "Claim 3 " in first and "Claim 4 " not in first
    assert "Claim 3 " in second and "Claim 4 " not in second and QUESTION in second and plain(CLAIMS[0]) in second
    assert places(run, Claimed) == [0, 1, 2, 3, 4, 5] == places(run, Checked)
    for place, kind in enumerate(run.kinds):
        if kind == "Checked":
            assert run.events[place].place in places(Run(run.id, run.events[:place]), Claimed)  # type: ignore[union-attr]
    assert run.answer is not None and [claim.text for claim in run.answer.claims] == list(map(plain, CLAIMS))
    assert sum(isinstance(event, Critiqued) for event in run.events) == 1


@pytest.mark.parametrize("count", [1, 4])
async def test_a_short_draft_is_checked_in_one_request(folder: Path, count: int):
    with (
        ChatServer(model(write=drafts(*CLAIMS[:count])).answer) as server,
        opened(folder, server, llm_concurrency=4) as workspace,
    ):
        run = await recorded(workspace)
    assert len(asked_of(server, "check")) == 1 and places(run, Claimed) == list(range(count))
    assert run.kinds.index("Drafted") < run.kinds.index("Checked")


async def test_an_endpoint_that_does_not_stream_gets_the_same_requests(folder: Path):
    seen = []
    for whole in (False, True):
        answer = model().answer

        def reply(request: dict[str, Any], answer: Any = answer, whole: bool = whole) -> Any:
            if whole and request.get("stream"):
                return HttpReply(400, {"error": {"message": "stream is not supported", "param": "stream"}})
            return answer(request)

        with ChatServer(reply) as server, opened(folder, server, llm_concurrency=4) as workspace:
            run = await recorded(workspace)
        assert run.answer is not None and run.answer.outcome is Outcome.answered
        seen.append([(event.prompt, event.text) for event in run.events if isinstance(event, ModelReplied)])
        assert any(request.get("stream") for request in server.requests)
    assert sorted(seen[0]) == sorted(seen[1])


@pytest.mark.parametrize("late", [False, True], ids=["in order", "conflicts and opinion last"])
async def test_a_stream_that_breaks_off_is_asked_for_again(folder: Path, late: bool):
    held = HeldStream(model(write=drafts(*CLAIMS, late=late)).answer, upto="Two masts", broken=True)
    held.release()
    with ChatServer(held) as server, opened(folder, server, llm_concurrency=4) as workspace:
        run = await recorded(workspace)
        again = await workspace.questions.replay(run)
    assert len(asked_of(server, "write")) == 2 and len(asked_of(server, "check")) == 2
    assert places(run, Claimed) == [0, 1, 2, 3, 4, 5]  # what was recorded is not recorded again
    assert again.differences == () and again.answer == run.answer


async def test_what_was_checked_does_not_count_when_the_second_writing_says_something_else(folder: Path):
    writings = [drafts(*CLAIMS), drafts(CLAIMS[1], CLAIMS[0], *CLAIMS[2:])]
    held = HeldStream(model(write=writings).answer, upto="Two masts", broken=True)
    with ChatServer(held) as server, opened(folder, server, llm_concurrency=4) as workspace:
        steps = workspace.ask(QUESTION, mode=Mode.quick)
        async for run, _ in steps:
            if places(run, Checked) == [0, 1, 2]:
                held.release()
        again = await workspace.questions.replay(run)
    assert run.answer is not None
    assert [claim.text for claim in run.answer.claims][:2] == [plain(CLAIMS[1]), plain(CLAIMS[0])]
    assert [run.checked[place].text for place in sorted(run.checked)][:2] == [plain(CLAIMS[1]), plain(CLAIMS[0])]
    assert again.differences == () and again.answer == run.answer


async def test_a_claim_that_fails_while_the_rest_is_written_is_put_right_afterwards(folder: Path):
    script = model(check=[verdicts("unsupported", "supported"), supported(), supported()], revise=Revising())
    with ChatServer(script.answer) as server, opened(folder, server, llm_concurrency=4) as workspace:
        run = await recorded(workspace)
        again = await workspace.questions.replay(run)
    assert run.answer is not None and run.answer.claims[0].text == "At nine the ferry leaves Velden for Oster."
    assert again.differences == () and again.answer == run.answer


class Revising:
    def __call__(self, text: str, schema: Any) -> Json:
        key = _claim(text, CLAIMS[0])["cites"]
        revision = {"claim": 1, "action": "rewrite", "text": "At nine the ferry leaves Velden for Oster.", "cites": key}
        return {"revisions": [revision | {"argument": "", "calculation": None}]}


# --- from any prefix ------------------------------------------------------------------------------------------------


class Streaming:
    """A model that is heard piece by piece, and keeps count of what it is asked."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[str] = []

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        self.asked.append(role_of(body_of(prompt))[0])
        await asyncio.sleep(0)
        return await self.script.complete(prompt, seconds)

    async def stream(self, prompt: Prompt, seconds: float, heard: Any) -> Reply:
        reply = await self.complete(prompt, seconds)
        for end in range(0, len(reply.text), 40):
            heard(reply.text[:end])
            await asyncio.sleep(0)
        return reply


async def kit(workspace: Workspace, run: Run, llm: Streaming) -> RunContext:
    from dataclasses import replace

    models = {Role(role_model.role): (ConnectedModel(llm, role_model),) for role_model in run.asked.seats}
    meter = Meter(models, lambda _: None, lambda _: None, Ledger())
    return replace(await run_context_for(workspace.context, run), record=Run.then, meter=meter)


@pytest.mark.parametrize("mode", [Mode.quick, Mode.thorough])
async def test_a_run_cut_off_after_any_event_goes_on_from_its_claims_and_asks_nothing_twice(folder: Path, mode: Mode):
    seats = tuple(RoleModel(role.value, "scripted", True, True, True) for role in Role)
    begun = Run("r1", (Asked(QUESTION, "local", "2026-01-01", mode=mode, seats=seats),))
    with opened(folder) as reader:
        first = Streaming(model())
        whole = await play(begun, await kit(reader, begun, first))
        assert whole.answer is not None and whole.answer.outcome is Outcome.answered
        assert whole.kinds.index("Checked") < whole.kinds.index("Drafted")
        wrong = []
        for length in range(whole.kinds.index("Claimed"), len(whole.events)):
            prefix = Run("r1", whole.events[:length])
            llm = Streaming(model())
            again = await play(prefix, await kit(reader, begun, llm))
            same = again.answer is not None and again.answer.blocks == whole.answer.blocks
            counts = [places(run, kind) for run in (again, whole) for kind in (Claimed, Checked)]
            if not same or len(llm.asked) != len(whole.consulted) - len(prefix.consulted) or counts[:2] != counts[2:]:
                wrong.append((length, whole.kinds[length - 1], llm.asked, counts))
        assert not wrong
        replayed = await replay(whole, await run_context_for(reader.context, whole))
        assert replayed.differences == () and replayed.answer == whole.answer


async def test_the_record_of_a_claim_says_whether_it_is_one_side_of_a_conflict(folder: Path):
    script = model(write=drafts(*CLAIMS[:2], conflicts=[(CLAIMS[0], CLAIMS[1])]))
    with ChatServer(script.answer) as server, opened(folder, server, llm_concurrency=4) as workspace:
        run = await recorded(workspace)
    draft = next(event for event in run.events if isinstance(event, Drafted))
    claimed = [event for event in run.events if isinstance(event, Claimed)]
    assert [event.side for event in claimed] == [bool(draft.conflicts)] * 2
    assert all(claim.verdict is Verdict.supported for claim in run.checked.values())
