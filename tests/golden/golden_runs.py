"""What the golden workspaces are looked at with: by `make.py`, which wrote down what the first version made of them, and by
`test_golden.py`, which looks again. Nothing here names an event: kinds are read from the records as they are written there."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer.main
from doubles import ChatServer, Script, keeps, role_of, supported
from doubles.script import ENOUGH

from assay.cli.main import main
from assay.core.access import LOCAL, Principal
from assay.core.codec import dumps, to_json
from assay.core.events import Decision
from assay.core.events.upgrade import FORMER_KINDS
from assay.core.run import Run
from assay.core.types import Answer
from assay.evaluate.plain_text import WordEmbedder
from assay.models.llm import Reply, ToolCall
from assay.store.runs.records import chain
from assay.workspace.facade import Workspace, open_workspace

HERE = Path(__file__).parent
WORKSPACE, SECOND_PLACE = "workspace", "second"  # in each archive: the folder, and where its seals are kept too
MODEL = "scripted"
WINDOW = 8192  # tokens that the model says it can take
MASK = "‹folder›"  # in the place of wherever a workspace was unpacked to

Json = dict[str, Any]
_put_together = cache(typer.main.get_command)  # all commands, once: that takes longer than most of them


# --- workspaces -----------------------------------------------------------------------------------------------------


def unpacked(name: str, to: Path) -> Path:
    """The folder that holds a golden workspace and its second place."""
    with zipfile.ZipFile(HERE / "workspaces" / f"{name}.zip") as archive:
        archive.extractall(to)
    return to


def opened(folder: Path, server: ChatServer | None = None, who: str = LOCAL.id, **flags: Any) -> Workspace:
    """The workspace in this folder, as somebody sees it, with this server as its model."""
    model = {"llm_base_url": server.url, "llm_model": MODEL, "llm_api_key": "k"} if server else {}
    whole = open_workspace(folder / WORKSPACE, **model | flags)
    whole.embedder = WordEmbedder()
    return whole if who == LOCAL.id else whole.for_principal(Principal(who))


def typed(folder: Path, *words: str) -> Json:
    """A command line, run in this process: exit code and what it printed."""
    own = {name: "" for name in os.environ if name.startswith("ASSAY_") and name != "ASSAY_CACHE_DIR"}
    # No vectors of another embedder are needed: an address that nobody asks anything loads faster than a model.
    given = {
        "ASSAY_WORKSPACE": str(folder / WORKSPACE),
        "ASSAY_EMBEDDER": "http://127.0.0.1:9/v1",
        "ASSAY_EMBEDDER_MODEL": "none",
        "COLUMNS": "200",
    }
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, given))
        for name in own.keys() - given.keys():
            os.environ.pop(name)
        stack.enter_context(patch.object(sys, "argv", ["assay", *words]))
        stack.enter_context(patch.object(typer.main, "get_command", _put_together))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    told = {"code": int(code or 0), "out": out.getvalue(), "err": err.getvalue()}
    return {name: each.replace(str(folder), MASK) if isinstance(each, str) else each for name, each in told.items()}


# --- what there is to see of it -------------------------------------------------------------------------------------


def spelled(answer: Answer | None) -> str | None:
    """An answer in its one spelling."""
    return None if answer is None else dumps(to_json(answer))


def but_for_time(answer: str | None) -> str | None:
    """The same, but for the seconds it took, which are never twice the same."""
    if answer is None:
        return None
    data = json.loads(answer)
    data.get("usage", {}).pop("seconds", None)
    return dumps(data)


JUDGED = ("why", "verdict", "by", "hints", "carried_by")  # of a claim: what its judge says


def what_is_said(answer: str | None) -> Any:
    """An answer without its price and without what its judge says of each claim: texts, citations and the rest."""
    if answer is None:
        return None
    data = json.loads(answer)
    data.pop("usage", None)
    for claim in (*(claim for block in data["blocks"] for claim in block["claims"]), *data["near"]):
        for name in JUDGED:
            claim.pop(name, None)
    return data


ADDED = ("version", "stop", "fallback", "cause")  # fields of events that the first version did not have


def as_first_version(data: Json) -> Json:
    """An event's data without what is added when an old one is read: what the first version read."""
    old = {name: value for name, value in data.items() if name not in ADDED}
    if "spine" in data:
        old["spine"] = [{name: value for name, value in each.items() if name != "lists"} for each in data["spine"]]
    if reasons := data.get("fallback"):
        rules = [f"rules: {each}" for each in reasons]
        if "by" in data:
            old["by"] = "; ".join([*([] if data["by"] == "rules" else [data["by"]]), *rules])
        if data.get("why"):
            old["why"] = f"{reasons[0]}: {data['why']}"
    if data.keys() == {"kind", "why"}:  # an event that is withheld names its kind
        old["kind"] = next((former for former, kind in FORMER_KINDS.items() if kind == data["kind"]), data["kind"])
    return old


def short(data: Any) -> str:
    return hashlib.sha256(dumps(data).encode()).hexdigest()[:16]


def verified(folder: Path) -> Json:
    """What `assay verify` says of the whole workspace, but for how long it took."""
    done = typed(folder, "verify", "--copy", str(folder / SECOND_PLACE), "--json")
    told = json.loads(done["out"])
    told.pop("seconds")
    return {"code": done["code"], "told": json.loads(json.dumps(told).replace(str(folder), MASK))}


def chain_of(folder: Path, run: str, who: str) -> list[list[Any]]:
    """A run's records: kind, digest of what it says, hash, link."""
    with open_workspace(folder / WORKSPACE) as workspace:
        return [[each.kind, each.digest, each.hash, each.link] for each in chain(workspace.store, run, who)]


def observed(folder: Path, run: str, who: str) -> Json:
    """All that can be seen of a run without carrying it on."""
    seen: Json = {"run": run, "who": who, "records": chain_of(folder, run, who)}
    if not who:
        return seen  # the chain of the whole workspace is nobody's to look into
    with opened(folder, who=who) as workspace:
        now = workspace.questions.run(run)
        seen["delivered"], seen["answer"] = now.delivered, spelled(now.answer)
        seen["events"] = [short(as_first_version(to_json(event))) for event in now.events]
        if now.asked.brief is not None and now.delivered:
            account = as_first_version(to_json(workspace.syntheses.account(run)))
            seen["account"] = {name: short(part) for name, part in account.items()}
        if now.answer is not None:
            made = asyncio.run(workspace.questions.replay(now))
            seen["replayed"] = {
                "same": made.same,
                "differences": list(made.differences),
                "as_recorded": made.as_recorded,
                "answer": spelled(made.answer) == seen["answer"],
            }
    if who == LOCAL.id:
        traced = typed(folder, "trace", run, "--json")
        told = json.loads(traced["out"])
        seen["trace"] = {
            "code": traced["code"],
            "whole": told["whole"],
            "faults": told["faults"],
            "records": [short(each | {"payload": as_first_version(each["payload"])}) for each in told["records"]],
        }
        seen["trace_in_words"] = typed(folder, "trace", run)
        seen["replay"] = typed(folder, "replay", run)
        seen["verify"] = typed(folder, "verify", run, "--copy", str(folder / SECOND_PLACE), "--json")["code"]
    return seen


def listed(folder: Path) -> Json:
    """What `assay runs`, `assay review` and `assay sources` list, and the conversations."""
    with opened(folder) as workspace:
        threads = [
            [each.title, [run.id for run in workspace.threads.get(each.id)[1]]] for each in workspace.threads.listing()
        ]
    return {
        "threads": threads,
        "runs": json.loads(typed(folder, "runs", "--json", "--limit", "100")["out"]),
        "waiting": json.loads(typed(folder, "review", "--json")["out"]),
        "decided": [each["run"] for each in json.loads(typed(folder, "review", "--decided", "--json")["out"])],
        "sources": json.loads(typed(folder, "sources", "--json")["out"]),
    }


# --- models ---------------------------------------------------------------------------------------------------------


def asked_in(request: Mapping[str, Any]) -> str:
    """The words of a request and nothing of its form, by digest."""
    words = [[each.get("role", ""), each.get("content") or ""] for each in request.get("messages", ())]
    return hashlib.sha256(json.dumps(words, ensure_ascii=False).encode()).hexdigest()


NOTED = (
    "The lamp room at Carrow Point is painted with orpiment.",
    "All orpiment comes in barrels from the works in Dunmere, where it is ground.",
    "The tower of the lighthouse at Carrow Point is 31 metres tall.",
    "Ines Tallow tends the beacon, day and night, and writes the log.",
)
# Prompts whose replies have another form now, or that show other passages, with what is said today.
TODAY: dict[str, Any] = {"check": supported(), "weigh": keeps(*NOTED)}
GONE = frozenset({"critique", *TODAY})  # kept replies that nobody can be given any more


class Kept:
    """A model that says what another one said to the same words: plain data, in a file. To words that were never asked it says
    what came next for this prompt, and keeps in `strange` that it did so. Where the form of a reply has changed, it says the
    same in today's form."""

    def __init__(self, replies: Sequence[Json]) -> None:
        self.left = [each for each in replies if each["prompt"] not in GONE]
        self.strange: list[str] = []
        judged = [
            json.loads(each["text"]) for each in replies if each["prompt"] == "judge"
        ]  # said with the weights today
        self._well = Script(**TODAY, judge=[*judged, *[ENOUGH] * 9])  # says what it can do to whoever asks that

    def answer(self, request: dict[str, Any]) -> Any:
        role, prompt = role_of(request)
        if not role or (prompt or role) in TODAY:
            return self._well.answer(request)
        name, words = prompt or role, asked_in(request)
        own = next((each for each in self.left if each["words"] == words), None)
        if own is None:
            self.strange.append(name)
            own = next(each for each in self.left if each["prompt"] == name)
        self.left.remove(own)
        calls = tuple(ToolCall(each["id"], each["tool"], each["arguments"]) for each in own["calls"])
        return Reply(own["text"], calls, own["finish"])


# --- carrying on ----------------------------------------------------------------------------------------------------


def finish(folder: Path, run: str, how: Mapping[str, str], answer: Callable[[Any], Any] | None) -> Json:
    """Carry a run on to its end: with a choice where it waits for one, with an approval where it waits for that."""
    done = asyncio.run(_finish(folder, run, how, answer))
    kinds = [record[0] for record in chain_of(folder, run, LOCAL.id)]
    return {"delivered": done.delivered, "kinds": kinds, "answer": but_for_time(spelled(done.answer))}


async def _finish(folder: Path, run: str, how: Mapping[str, str], answer: Callable[[Any], Any] | None) -> Run:
    with ExitStack() as stack:
        server = stack.enter_context(ChatServer(answer, window=WINDOW)) if answer else None
        workspace = stack.enter_context(opened(folder, server))
        if how.get("decide"):
            reviews = workspace.reviews
            reviews.decide(run, Decision(how["decide"]), reviews.sheet(run).seal)
        async for _ in workspace.resume(run, how.get("choice", ""), how.get("words", "")):
            pass
        return workspace.questions.run(run)
