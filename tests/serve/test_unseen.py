"""While an answer may have to be reviewed, no word that a model wrote reaches whoever asked, on any route; a reviewer sees
all of it, and after the approval so does the asker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles import ChatServer, Script, calls, enough, keeps, missing, no_calls, steps, supported, writes
from doubles.held_stream import HeldReply
from serving import ANSWER, Sent, followed, sent, until
from team import Team, team
from test_mcp import over_http

from assay.store.access import grants
from assay.store.runs import reviews
from assay.workspace.facade import open_workspace

SECRET = "zanthoric"
ASKED = "How tall is the tower, and why?"
RULES: dict[str, dict[str, Any]] = {
    "always": {"review_always": True},
    "support": {"review_support": 1.0},
    "conflicts": {"review_conflicts": True},
    "flagged": {"review_flagged": True},
    "topic": {"review_classes": "word:tower"},
    "base": {},  # its answers are reviewed
    "stakes": {},  # the person who asks says so
}
HOLDS = {"always", "topic", "base", "stakes"}  # the others may, and here do not


def script() -> Script:
    """A model that has the word in everything it writes."""
    return Script(
        standalone={"question": f"How tall is the {SECRET} tower, and why?"},
        route={
            "route": "research",
            "every": False,
            "readings": [
                f"How tall is the {SECRET} tower of the lighthouse?",
                f"How tall is the {SECRET} tower at sea?",
            ],
            "why": f"the {SECRET} tower",
        },
        plan=steps((f"How tall is the {SECRET} tower?", f"{SECRET} tower lighthouse Carrow Point metres")),
        decide=lambda text, schema: (
            no_calls(SECRET) if "beacon" in text else calls("search", query=f"{SECRET} beacon log")
        ),
        weigh=keeps(ANSWER, note=f"it is {SECRET}"),
        judge=lambda text, schema: (enough() if "beacon" in text else missing(f"the {SECRET} reason"))(text, schema),
        write=writes(
            f"The tower at Carrow Point is {SECRET} and 31 metres tall [{{31 metres}}].", lacking=[f"{SECRET} why"]
        ),
        check=supported(f"the passages are {SECRET}", missing=[f"the {SECRET} reason"]),
        direct={"text": f"I am {SECRET}."},
    )


@contextmanager
def reviewed(
    folder: Path, rule: str, held: HeldReply | None = None
) -> Iterator[tuple[Team, httpx.Client, httpx.Client]]:
    with open_workspace(folder) as opened:
        grants.share(opened.store, opened.scope().bases[0], "user:reader")
        if rule == "base":
            reviews.set_review_required(opened.store, opened.scope().bases[0].id, on=True)
    flags = {"reviewers": "user:reader"} | RULES[rule]
    with (
        ChatServer(held or script().answer) as model,
        team(folder, model, **flags) as us,
        us.as_("editor") as asker,
        us.as_("reader") as reviewer,
    ):
        yield us, asker, reviewer


def wish(rule: str, **more: Any) -> dict[str, Any]:
    return {"question": ASKED, "eagerness": "sparing", **({"stakes": "high"} if rule == "stakes" else {}), **more}


def before_delivery(frames: list[Any]) -> str:
    """What was streamed up to the answer."""
    kinds = [each.event for each in frames]
    return json.dumps([each.data for each in frames[: kinds.index("Answered") if "Answered" in kinds else len(kinds)]])


@pytest.mark.parametrize("rule", RULES)
def test_the_stream_has_no_word_of_a_model_before_delivery(folder: Path, rule: str):
    held = HeldReply(script().answer, "check")
    with reviewed(folder, rule, held) as (_, asker, _reviewer):
        run = asker.post("/api/runs", json=wish(rule, talk=True)).json()
        early: list[Sent] = []  # events that are read before the answer can be delivered
        late: list[Sent] = []
        with asker.stream("GET", f"/api/runs/{run['run']}/events") as reply:
            for each in sent(reply.iter_lines()):
                (late if held.released.is_set() else early).append(each)
                if each.event == "Drafted":
                    held.released.set()
        assert {"ToolRan", "Gathered", "Drafted"} <= {each.event for each in early}
        words = json.dumps([each.data for each in early])
        assert SECRET not in words and "31 metres" not in words and "weighed" in words
        assert rule not in HOLDS or SECRET not in json.dumps([each.data for each in late])
        state = asker.get(f"/api/runs/{run['run']}").json()["state"]
        assert state == ("held" if rule in HOLDS else "delivered")


@pytest.mark.long
@pytest.mark.parametrize("rule", sorted(HOLDS))
def test_no_route_gives_the_asker_a_word_of_it_until_it_is_approved(folder: Path, rule: str):
    with reviewed(folder, rule) as (_, asker, reviewer):
        begun = asker.post("/api/runs", json=wish(rule, talk=True)).json()
        followed(asker, begun["run"])
        second = asker.post(
            "/api/runs", json=wish(rule, thread=begun["thread"], question="And why is it so tall?")
        ).json()
        followed(asker, second["run"])
        for run in (begun["run"], second["run"]):
            paths = ("", "/events?format=json", "/trace", "/answer", "/bundle", f"/diff/{begun['run']}")
            replies = {path: asker.get(f"/api/runs/{run}{path}") for path in paths}
            replies["runs"] = asker.get("/api/runs")
            replies["thread"] = asker.get(f"/api/threads/{begun['thread']}")
            replies["replay"] = asker.post(f"/api/runs/{run}/replay")
            replies["review"] = asker.get(f"/api/reviews/{run}")
            for path, reply in replies.items():
                assert SECRET not in reply.text, (path, reply.text)
            view = replies[""].json()
            assert view["state"] == "held" and view["evidence"] == [] and view["understood"] == ""
            assert view["held"]["progress"].startswith("Searched ") and "passages weighed" in view["held"]["progress"]
            assert replies["/answer"].status_code == replies["/bundle"].status_code == 400
        sheet = reviewer.get(f"/api/reviews/{begun['run']}").json()
        assert SECRET in json.dumps(sheet) and SECRET in reviewer.get(f"/api/reviews/{begun['run']}/trace").text
        decision = {"decision": "approve", "seal": sheet["seal"]}
        assert reviewer.post(f"/api/reviews/{begun['run']}/decision", json=decision).status_code == 200
        until(lambda: asker.get(f"/api/runs/{begun['run']}").json()["state"] == "delivered")
        assert SECRET in asker.get(f"/api/runs/{begun['run']}/answer").text
        assert SECRET in asker.get(f"/api/runs/{begun['run']}/trace").text


def test_a_branch_of_a_held_run_is_no_way_around(folder: Path):
    with reviewed(folder, "always") as (_, asker, _reviewer):
        run = asker.post("/api/runs", json=wish("always")).json()["run"]
        events = [each.event for each in followed(asker, run)]
        place = events.index("Drafted") - 1
        again = asker.post(f"/api/runs/{run}/rerun", json={"from": place}).json()["run"]
        assert SECRET not in before_delivery(followed(asker, again))
        assert SECRET not in asker.get(f"/api/runs/{again}/trace").text


@pytest.mark.long
@pytest.mark.parametrize("rule", ["always", "conflicts"])
async def test_chat_front_ends_and_agents_are_told_how_far_it_is(folder: Path, rule: str):
    held = HeldReply(script().answer, "check")
    asked = {"model": "assay", "messages": [{"role": "user", "content": ASKED}]}
    told: list[str] = []  # what each is told before the answer can be delivered; one that is always reviewed never is

    def hear(line: str) -> None:
        if rule == "always" or not held.released.is_set():
            told.append(line)
        if "Stopped" in line:  # the last line before the answer is written
            held.released.set()

    def stream() -> str:
        with asker.stream("POST", "/v1/chat/completions", json=asked | {"stream": True}) as reply:
            lines = []
            for line in reply.iter_lines():
                hear(line)
                lines.append(line)
        return "\n".join(lines)

    async def note(done: float, total: float | None, message: str | None) -> None:
        hear(message or "")

    with reviewed(folder, rule, held) as (us, asker, _):
        streamed = await asyncio.to_thread(stream)
        whole = (await asyncio.to_thread(asker.post, "/v1/chat/completions", json=asked)).text
        held.released.clear()
        async with over_http(us.at, us.keys["editor"]) as session:
            reply = await session.call_tool("ask", {"question": ASKED}, progress_callback=note)
        if rule == "always":
            for words in (streamed, whole, reply.model_dump_json()):
                assert SECRET not in words and "waits for a reviewer" in words and "passages weighed" in words
        assert not any(SECRET in line for line in told)
        assert sum("Stopped" in line for line in told) == 2 and any("weighed" in line for line in told)
