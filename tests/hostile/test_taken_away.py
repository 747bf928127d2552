"""Access taken away, or a document erased: at the next step of a run that is under way, and in every view of old ones."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest
from worlds import EDITOR, QUESTION, READER, World, asked, world

from assay.core.access import Principal
from assay.core.codec import dumps, to_json
from assay.core.events import Answered, Failed, Narrowed, Withheld
from assay.serve.run_registry import ActiveRun, EventFrame
from assay.serve.stream import stored_frames
from assay.store.access import grants, members, offers
from assay.store.runs import history, records
from assay.workspace.services.records import flush


@pytest.fixture
async def made(tmp_path: Path):
    async with world(tmp_path / "workspace") as one:
        (shared,) = [base for base in one.as_(EDITOR).scope().bases if base.name == "shared"]
        grants.share(one.workspace.store, shared, "user:reader")
        yield one


def marks(made: World, *words: str) -> list[str]:
    return [mark for mark in made.marks.values() if any(word in mark for word in words)]


def take(made: World, *words: str) -> None:
    for document, mark in made.marks.items():
        if any(word in mark for word in words):
            made.set_access(document, "user:reader", False)


def shown(made: World, run: str) -> str:
    """Everything that a run says to its person, as text."""
    seen = made.as_(READER)
    return dumps([to_json(event) for event in seen.questions.run(run).events])


async def everywhere(made: World, run: str, thread: str = "") -> str:
    """The same over HTTP, in every form there is."""
    paths = ["", "/events?format=json", "/events", "/trace", *(f"/answer?format={each}" for each in FORMS)]
    places = [f"/api/runs/{run}{path}" for path in paths] + ["/api/runs", f"/api/synthesis/{run}"]
    places += [f"/api/threads/{thread}"] if thread else []
    replies = [await made.ask("GET", place) for place in places]
    replies.append(await made.ask("POST", f"/api/runs/{run}/replay"))
    assert not [reply for reply in replies if reply.status_code >= 500]
    return "\n".join(reply.text for reply in replies)


STRIDE = 1 if os.environ.get("ASSAY_SOAK") else 4  # events between two moments at which something is taken away
FORMS = ("text", "markdown", "html", "json", "bibtex")


@pytest.mark.long
async def test_an_old_run_shows_nothing_from_the_first_mention_on_of_a_document_that_was_taken_away(made: World):
    run = await asked(made.as_(READER))
    assert any(mark in shown(made, run) for mark in marks(made, "secret")), "it is there before"
    take(made, "secret")
    told = await everywhere(made, run)
    assert not [mark for mark in marks(made, "secret") if mark in told]
    now = made.as_(READER).questions.run(run)
    assert now.delivered and now.answer is None and now.withheld
    whole = (await made.ask("GET", f"/api/runs/{run}")).json()
    assert whole["state"] == "delivered" and whole["answer"] is None and "withheld" in whole["withheld"]
    (line,) = [each for each in (await made.ask("GET", "/api/runs")).json()["runs"] if each["id"] == run]
    assert line["outcome"] is None and line["question"] == QUESTION
    assert list(records.faults(made.workspace.store, run)) == []
    seen = made.as_(READER)
    (past,) = history.history(seen.store, "reader", seen.scope())
    assert past.state == "withheld"


async def test_access_that_is_given_again_shows_an_old_run_again(made: World):
    run = await asked(made.as_(READER))
    before = shown(made, run)
    take(made, "secret")
    assert shown(made, run) != before
    for document, mark in made.marks.items():
        if "secret" in mark:
            made.set_access(document, "user:reader", True)
    assert shown(made, run) == before


@pytest.mark.long
async def test_a_follow_up_knows_nothing_of_an_earlier_answer_that_is_withheld(made: World):
    seen = made.as_(READER)
    thread = ""
    for question in (QUESTION, "And who keeps it?"):
        async for run, _ in seen.chat(question, thread, _by_rule()):
            thread = run.asked.thread
    second = seen.threads.get(thread)[1][-1]
    told_of = second.asked.history[0]
    first = seen.questions.run(told_of.run)
    unsaid = {found.passage.doc_id for found in first.found} - set(told_of.documents)
    assert told_of.answer and unsaid, "it was found in the first turn, and is not cited there"
    for document in unsaid:
        if "own" not in made.marks[document]:
            made.set_access(document, "user:reader", False)
    assert seen.questions.run(second.id).asked.history[0].answer == "(withheld)"
    assert all(isinstance(event, Withheld) for event in seen.questions.run(second.id).events[1:])
    take(made, "secret")
    told = await everywhere(made, second.id, thread)
    assert not [mark for mark in marks(made, "secret") if mark in told]
    now = seen.questions.run(second.id)
    assert now.asked.history[0].answer == "(withheld)" and not now.asked.history[0].documents
    async for run, _ in seen.chat("Since when?", thread, _by_rule()):
        assert not [mark for mark in marks(made, "secret") if mark in dumps(to_json(run.asked))]


def _by_rule() -> Any:
    from assay.workspace.types import AskOptions

    return AskOptions(model=False, today="2026-03-01")


async def carried(made: World, place: int, lose: Any, **how: Any) -> tuple[str, list[str], bool]:
    """A run of the reader's, in which something is lost after so many events: the run, what was done once that was noticed,
    and whether it came to that."""
    seen, late, lost, noticed, run = made.as_(READER), [], False, False, None
    async for run, event in seen.ask(QUESTION, model=False, today="2026-03-01", **how):
        noticed |= isinstance(event, Narrowed)
        late += [dumps(to_json(event)), dumps(to_json(run.events))] if noticed else []
        if len(run.events) == place:
            await lose()
            lost = True
    assert run is not None
    return run.id, late, lost


@pytest.mark.long
async def test_a_run_under_way_goes_on_without_what_is_taken_away_whenever_that_happens(made: World):
    async def lose() -> None:
        take(made, "secret")

    secret, place, narrowed = marks(made, "secret"), 1, 0
    while True:
        run, late, lost = await carried(made, place, lose)
        if not lost:
            break
        # What a step had begun with may still be put on record; the person sees none of it, and nothing after the next step.
        now = made.as_(READER).questions.run(run)
        assert not [mark for mark in secret if mark in await everywhere(made, run)], place
        assert now.delivered, place
        if any(isinstance(event, Narrowed) for event in now.events):
            narrowed += 1
            assert now.answer is not None and now.answer.cited_keys <= {each.key for each in now.evidence}
            assert late and not [mark for mark in secret if any(mark in each for each in late)], place
        assert list(records.faults(made.workspace.store, run)) == []
        for document, mark in made.marks.items():
            if "secret" in mark:
                made.set_access(document, "user:reader", True)
        place += STRIDE
    assert narrowed >= 2, "it happened after something was found, more than once"


async def test_a_document_erased_while_a_run_is_under_way_is_in_no_byte_of_its_record(made: World):
    seen = made.as_(EDITOR)
    gone = next(document for document, mark in made.marks.items() if mark == "zqsecret0x")

    async def lose() -> None:
        await seen.records.erase(seen.documents.named(gone, seen.scope()), seen.scope(["shared"]))

    run, _, lost = await carried(made, 6, lose)
    assert lost
    now = made.as_(READER).questions.run(run)
    assert now.answer is not None and [event for event in now.events if isinstance(event, Narrowed)]
    assert isinstance(now.events[-1], Answered)
    assert list(records.faults(made.workspace.store, run)) == []
    flush(made.workspace.store.engine)
    for path in made.workspace.path.rglob("*"):
        assert not path.is_file() or b"zqsecret0x" not in path.read_bytes(), path


async def test_what_is_at_hand_for_a_watcher_is_held_against_what_they_may_read(made: World):
    run = await asked(made.as_(READER))
    runs, seen, secret = made.server.runs, made.as_(READER), marks(made, "secret")
    own = ActiveRun(run, "reader", seen.questions.run(run))  # as if it were under way, with its events in memory
    own.frames.extend(stored_frames(seen, run, -1))
    assert any(mark in frame.body for frame in own.frames for mark in secret)
    runs.active[run] = own
    take(made, "secret")
    frames: list[EventFrame] = []
    async with aclosing(cast(AsyncGenerator[EventFrame | None], made.server.follower.follow(seen, run))) as told:
        async for frame in told:
            assert frame is not None
            frames.append(frame)
            if frame.seq == len(own.run.events) - 1:
                break
    del runs.active[run]
    assert not [frame for frame in frames if any(mark in frame.body for mark in secret)]
    hidden = [json.loads(frame.body) for frame in frames if not json.loads(frame.body)["event"]]
    assert hidden and all("may not read" in each["line"] for each in hidden)


async def test_what_is_at_hand_is_not_shown_either_once_the_run_was_narrowed(made: World):
    seen, secret, run = made.as_(READER), marks(made, "secret"), ""
    steps = cast(AsyncGenerator[Any], seen.ask(QUESTION, model=False, today="2026-03-01"))
    async with aclosing(steps):
        async for so_far, event in steps:
            run = so_far.id
            if any(mark in dumps(to_json(event)) for mark in secret):
                break
    own = ActiveRun(run, "reader", seen.questions.run(run))  # as it was when the document went
    own.frames.extend(stored_frames(seen, run, -1))
    assert any(mark in frame.body for frame in own.frames for mark in secret)
    take(made, "secret")
    since = made.workspace.questions.hidden_events(run, seen.scope()).since
    assert since is not None
    records.append(made.workspace.store, run, len(own.run.events), Narrowed(since))
    made.server.runs.active[run] = own
    _, _, frames = made.server.follower._after(seen, run, -1)
    assert len(frames) == len(own.run.events) + 1
    assert not [frame for frame in frames if any(mark in frame.body for mark in secret)]
    assert not [mark for mark in secret if mark in made.server.follower._statements(seen, run)]
    del made.server.runs.active[run]


async def test_an_index_that_has_not_heard_of_a_change_hides_and_never_shows(made: World):
    secret = next(document for document, mark in made.marks.items() if mark == "zqsecret0x")

    async def found(who: Principal) -> set[str]:
        return {hit.passage.doc_id for hit in await made.as_(who).search(QUESTION, 20)}

    guest = Principal("guest")
    assert secret in await found(READER)
    made.set_access(secret, "user:reader", False)
    made.set_access(secret, "user:guest", True)
    offers.answer(made.workspace.store, guest, made.as_(EDITOR).scope().named("shared").id, True)
    assert secret not in await found(READER)
    assert await found(guest) == set(), "it was given, and the index does not know yet"
    for base in made.as_(EDITOR).scope().bases:
        assert await made.as_(EDITOR).people.update_index(base)
    assert await found(guest) == {secret} and secret not in await found(READER)


async def test_a_run_of_somebody_who_was_removed_stops(made: World):
    gate = asyncio.Event()

    async def slowly() -> AsyncIterator[Any]:
        async for step in made.as_(READER).ask(QUESTION, model=False, today="2026-03-01"):
            yield step
            while not gate.is_set():  # noqa: ASYNC110 - the engine has a loop of its own
                await asyncio.sleep(0.005)

    run = await made.server.live.begin(made.as_(READER), slowly())
    _, former = members.remove_member(made.workspace.store, made.workspace.context.cache, "reader")
    gate.set()
    await made.rest()
    last = made.workspace.for_principal(Principal(former)).questions.run(run.id).events[-1]
    assert isinstance(last, Failed) and last.error == "removed"
