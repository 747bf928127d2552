"""Makes the golden workspaces, and writes down what this version of Assay makes of them.

Run once with Assay 0.1 at commit 8bb0002438cc8e567320442ea1224b32717ca5af, in the environment of that version:

    python make.py

It writes `workspaces/*.zip`, `bundles/*.zip` and `expected/*.json` beside itself. It is kept to show how they came about and
is not run by the tests; later versions name modules otherwise. Ids and times are those of the day, so a second time gives other
bytes. Documents are texts that need no parsing, the embedder knows words alone, and models follow a script on the loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from golden_runs import (
    HERE,
    SECOND_PLACE,
    WINDOW,
    WORKSPACE,
    asked_in,
    finish,
    listed,
    observed,
    opened,
    typed,
    verified,
)

from assay import __version__, erasing, reaching, reviewing
from assay.accounts import Pipeline
from assay.asking import How
from assay.audit.seal import notary_of, seal
from assay.branching import branch
from assay.events import KINDS, Checkpoint, Mode, Stakes, Where
from assay.ingest.fetch import Source
from assay.ingest.parsed import Parsed
from assay.run import Run
from assay.store import people
from assay.synthesising import Wish
from assay.testing import (
    ChatServer,
    Http,
    Script,
    WordEmbedder,
    calls,
    complete,
    direct,
    drops,
    enough,
    gap,
    keeps,
    lookup,
    missing,
    one_step,
    research,
    rests,
    reviewer,
    rewrites,
    role_of,
    says,
    steps,
    supported,
    writes,
)
from assay.testing.protocol import reply_of
from assay.trust import Decision, Edit
from assay.workspace import Workspace, open_workspace

COMMIT = "8bb0002438cc8e567320442ea1224b32717ca5af"
TODAY = "2026-01-01"
PLACE = "/tmp/papers"  # where the documents are said to be: nobody looks there
LEFT_OUT = (".lock", "-wal", "-shm", "cache.db", "audit.key")  # made again where needed; to check takes no private key
WHEN = (1980, 1, 1, 0, 0, 0)

# --- documents ------------------------------------------------------------------------------------------------------

PAINT = "The lamp room at Carrow Point is painted with orpiment."
GROUND = "All orpiment comes in barrels from the works in Dunmere, where it is ground."
TALL = "The tower of the lighthouse at Carrow Point is 31 metres tall."
LEANS = "It leans a little to the west."
TENDS = "Ines Tallow tends the beacon, day and night, and writes the log."
STRAY = {
    "garden.txt": "The roses behind the house are watered twice a week.",
    "boat.txt": "The boat is rowed ashore on Mondays.",
    "well.txt": "A rain barrel stands where the well was.",
    "kitchen.txt": "The kitchen stove burns driftwood.",
}
NOTES = (
    STRAY
    | {
        "lamp.txt": f"{PAINT} Nobody has painted it anew since.",
        "works.txt": f"{GROUND} They are closed in winter.",
        "tower.txt": f"{TALL} {LEANS}",
        "beacon.txt": f"{TENDS} She has never missed a watch.",
        "readings.txt": "Raw readings are kept for 90 days.",
        "archive.txt": "Raw readings are kept for 30 days and then destroyed.",
    }
    | {
        f"yard-{n}.txt": f"Yard note {n}. The paint of room {n} is ground in the yard, and the tower of yard {n} is tall. "
        f"The lamp in the room was out, so the paint had to wait. Who tends the light of yard {n} ground the paint."
        for n in range(1, 15)
    }
)
SURVEYED = {
    "tower.txt": f"{TALL} {LEANS}",
    "survey.txt": "A survey says that the tower at Carrow Point is 31 metres tall.",
    "lamp.txt": PAINT,
    "works.txt": GROUND,
}
PAPERS = {
    "The north sluice": "The north sluice at Marrow Quay was rebuilt in 1998. Its gate is lifted by a hydraulic ram that "
    "stands in a dry chamber. The ram takes 12 minutes to lift the gate, because its pump is small. A second pump was "
    "considered and rejected as too costly.",
    "Inspection of the sluices": "The north sluice at Marrow Quay was rebuilt in 2003. The hydraulic ram leaks oil at its "
    "lower seal. Inspectors replaced the seal and pressed the ram for two hours without loss. They advise an inspection "
    "every 6 months.",
    "Silt in the basin": "Silt settles in the basin at 4 centimetres a year. The sluices flush it out at spring tides, when "
    "both gates stand open for one hour. Dredging is needed where the flushing current does not reach.",
    "Costs of the harbour": "The harbour spends most of its money on dredging. Flushing silt with the sluices costs a tenth "
    "of dredging it. The pumps of the hydraulic ram use little power.",
}

HEIGHT = "How tall is the tower at Carrow Point?"
HOPS = "Where is the paint of the lamp room at Carrow Point ground, how tall is its tower, and who tends the light?"
PAINTED, LAMP = "What is the lamp room painted with?", Where(sources=("lamp",))
TENDED = "Who tends the beacon?"

# --- models ---------------------------------------------------------------------------------------------------------

PLAN = steps(
    ("What is the lamp room painted with?", "lamp room Carrow Point painted"),
    ("Where is {s1} ground?", "{s1} barrels works"),
    ("How tall is the tower at Carrow Point?", "tower lighthouse Carrow Point metres"),
)
CLAIMS = (
    "Orpiment, with which the lamp room at Carrow Point is painted, is ground in Dunmere [{painted with}, {Dunmere}].",
    "The tower of the lighthouse at Carrow Point is 31 metres tall [{31 metres}].",
    "Ines Tallow tends the beacon [{tends the beacon}].",
)


def looks_up(claim: str = CLAIMS[1], **other: Any) -> Script:
    """One search, one claim."""
    lines: dict[str, Any] = {"route": lookup(), "weigh": keeps(TALL), "judge": enough(), "write": writes(claim)}
    return Script(**lines | {"check": supported()} | other)


def hops(**other: Any) -> Script:
    """Three steps, of which one needs another; then a search for what is still missing."""

    def judge(text: str, schema: Any) -> Any:
        if "found: orpiment" not in text:
            return missing(s1="orpiment", s3="31 metres")(text, schema)
        if "found: Dunmere" not in text:
            return missing("who tends the light", s2="Dunmere")(text, schema)
        return enough()(text, schema)

    def decide(text: str, schema: Any) -> Any:
        return rests() if "beacon log watch" in text else calls("search", query="beacon log watch")

    lines: dict[str, Any] = {"route": research(), "plan": PLAN, "decide": decide, "judge": judge}
    lines |= {"weigh": keeps(PAINT, GROUND, TALL, TENDS), "write": writes(*CLAIMS), "check": supported()}
    return Script(**lines | other)


def self_critical() -> Script:
    """Says much, some of it wrong, writes that anew, and then finds its own draft wanting."""

    def decide(text: str, schema: Any) -> Any:
        return rests() if GROUND in text else calls("search", query="orpiment barrels works")

    def write(text: str, schema: Any) -> Any:
        said = ["The lamp room is painted with orpiment [{painted with orpiment}]."]
        said += [f"The tower at Carrow Point is {metres} metres tall [{{31 metres}}]." for metres in (31, 33)]
        said += ["All orpiment is ground in Dunmere [{works in Dunmere}]."] if GROUND in text else []
        return writes(*said)(text, schema)

    return hops(
        plan=steps("What is the lamp room painted with, and how tall is the tower?"),
        decide=decide,
        judge=enough(),
        write=write,
        revise=rewrites("The tower of the lighthouse at Carrow Point is 31 metres tall [{31 metres}]."),
        check=supported(missing=["where orpiment is ground"], search="where orpiment is ground"),
    )


def gives_up() -> Script:
    """Claims something that stands nowhere, and drops it."""
    wrong = "The tower at Carrow Point is 77 metres tall and was built by giants [{31 metres}]."
    return looks_up(write=writes(CLAIMS[1], wrong), revise=drops())


def wanders() -> Script:
    """Searches for this and that: the older searches are told in short."""
    left = ["watered roses", "boat rowed ashore", "rain barrel well", "kitchen stove"]

    def decide(text: str, schema: Any) -> Any:
        return calls("search", query=left.pop(0)) if left else rests()

    return hops(
        plan=one_step(TENDED, "tends beacon"),
        decide=decide,
        weigh=keeps(TENDS, *STRAY.values()),
        judge=missing("more"),
        write=writes(CLAIMS[2]),
    )


def talks() -> Script:
    def write(text: str, schema: Any) -> Any:
        return writes(f"{LEANS} [{{leans}}]" if "lean?" in text else CLAIMS[1])(text, schema)

    alone = {"question": "Does the tower at Carrow Point lean?"}
    return looks_up(standalone=alone, weigh=keeps(TALL, LEANS), write=write)


class Keeping:
    """A model whose replies are kept, as plain data: what it was asked (by digest), for which prompt, and what it said."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answers = answer
        self.kept: list[dict[str, Any]] = []

    def answer(self, request: dict[str, Any]) -> Any:
        role, prompt = role_of(request)
        reply = reply_of(self.answers(request), request)
        if role:
            told = [{"id": each.id, "tool": each.name, "arguments": each.arguments} for each in reply.calls]
            words = {"words": asked_in(request), "prompt": prompt or role, "text": reply.text}
            self.kept.append(words | {"calls": told, "finish": reply.finish})
        return reply


# --- a workspace ----------------------------------------------------------------------------------------------------


class Plain:
    """Reads texts that need no parsing; their names are their titles."""

    async def read(self, data: Path | bytes, name: str) -> Parsed:
        assert isinstance(data, bytes)
        words = bytes(data).decode()
        return Parsed(text=words, kind="text", title=name.removesuffix(".txt"))


async def fill(folder: Path, texts: Mapping[str, str]) -> None:
    with open_workspace(folder / WORKSPACE, create=True) as whole:
        whole.embedder = WordEmbedder()
        files = [Source(uri=f"{PLACE}/{name}", name=name, data=words.encode()) for name, words in texts.items()]
        await whole.add_sources(files, reader=Plain())


async def last(given: AsyncIterator[tuple[Run, Any]]) -> Run:
    return [run async for run, _ in given][-1]


async def asks(workspace: Workspace, question: str, **how: Any) -> Run:
    return await last(workspace.ask(question, today=TODAY, **how))


async def with_model(folder: Path, script: Any, question: str, flags: dict[str, Any] | None = None, **how: Any) -> str:
    answer = script.answer if isinstance(script, Script) else script
    with ChatServer(answer, window=WINDOW) as server, opened(folder, server, **flags or {}) as workspace:
        return (await asks(workspace, question, **how)).id


# --- runs that are killed -------------------------------------------------------------------------------------------

# What is asked, with which model, and the event after which the process is killed (the how-manieth of its kind); "in flight"
# is a request that the model has got and has not answered.
Deadly = tuple[str, Callable[[], Any] | None, str, int]
KILLED: dict[str, Deadly] = {
    "killed while searching, by rule": (HEIGHT, None, "ToolRan", 1),
    "killed while checking, by rule": ("How long are raw readings kept?", None, "Checked", 1),
    "killed while searching, with a model": (HOPS, hops, "ToolRan", 2),
    "killed while checking, with a model": (HOPS, hops, "Checked", 1),
    "killed while a request was in flight": (HOPS, hops, "in flight", 4),
    "killed synthesis, by rule": ("", None, "Looked", 2),
    "killed synthesis, with a model": ("", reviewer, "Drew", 2),
    "killed synthesis, while narrating": ("", reviewer, "Drafted", 1),
    "killed, and then its document was erased": (HEIGHT, None, "Checked", 1),
}


def model_of(label: str) -> Callable[[Any], Any] | None:
    made = KILLED[label][1]
    model = made() if made else None
    return model.answer if isinstance(model, Script) else model


async def dies(folder: Path, label: str, address: str) -> None:
    """In a process of its own: asks, and kills itself when its time has come."""
    question, _, kind, count = KILLED[label]
    model = {"llm_base_url": address, "llm_model": "scripted", "llm_api_key": "k"} if address else {}
    with open_workspace(folder / WORKSPACE, **model) as workspace:
        workspace.embedder = WordEmbedder()
        begun = workspace.ask(question, today=TODAY, mode=Mode.thorough) if question else _synthesis(workspace)
        async for run, event in begun:
            print(run.id, flush=True)
            count -= type(event).__name__ == kind
            if not count:
                os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(f"{label}: it was not killed")


def _synthesis(workspace: Workspace, **other: Any) -> AsyncIterator[tuple[Run, Any]]:
    chosen = [entry.id for entry in sorted(workspace.sources(), key=lambda entry: entry.title)]
    wish = {"reranker": "none", "questions": 2, "today": TODAY, "audiences": ("expert", "plain")} | other
    return workspace.synthesise(chosen, Wish(**wish))


def killed(folder: Path, label: str) -> str:
    """The run that a process left behind."""
    _, _, kind, count = KILLED[label]
    child: subprocess.Popen[str] | None = None
    answers, seen = model_of(label), 0

    async def answer(request: dict[str, Any]) -> Any:
        nonlocal seen
        assert answers is not None
        seen += bool(role_of(request)[0])
        if kind == "in flight" and seen == count:
            assert child is not None
            child.kill()
            await asyncio.sleep(1)
        return answers(request)

    def run(address: str) -> str:
        nonlocal child
        command = [sys.executable, __file__, "dies", str(folder), label, address]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        out, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL, (label, child.returncode)
        return out.split()[0]

    if answers is None:
        return run("")
    with ChatServer(answer, window=WINDOW) as server:
        return run(server.url)


# --- the workspaces -------------------------------------------------------------------------------------------------


async def questions(folder: Path) -> dict[str, str]:
    """Questions with and without a model, a conversation, branches."""
    await fill(folder, NOTES)
    made: dict[str, str] = {}
    with opened(folder) as workspace:
        plain = await asks(workspace, HEIGHT)
        made["answered by rule"] = plain.id
        made["abstained by rule"] = (await asks(workspace, "Which company built the Coldharrow dam?")).id
        made["conflict by rule"] = (await asks(workspace, "How long are raw readings kept?")).id
        made["whole set by rule"] = (await asks(workspace, "List every note about the yard", mode=Mode.quick)).id
        made["branch by rule"] = (await last(branch(workspace, plain, plain.kinds.index("Drafted")))).id
        first = await last(workspace.chat(HEIGHT, how=How(today=TODAY)))
        made["conversation by rule"] = first.id
        again = await last(workspace.chat("And does it lean?", first.asked.thread, How(today=TODAY)))
        made["follow-up by rule"] = again.id
    made["look-up"] = await with_model(folder, looks_up(), HEIGHT)
    made["research of several hops"] = await with_model(folder, hops(), HOPS, mode=Mode.thorough)
    made["revised and reopened"] = await with_model(folder, self_critical(), HOPS, mode=Mode.thorough)
    made["a claim is dropped"] = await with_model(folder, gives_up(), HEIGHT)
    made["searches told in short"] = await with_model(
        folder, wanders(), TENDED, {"search_rounds": 8, "llm_window": 4096}, mode=Mode.thorough
    )
    made["direct"] = await with_model(
        folder, Script(route=direct(), direct=says("Good morning to you.")), "Good morning!"
    )
    with ChatServer(talks().answer, window=WINDOW) as server, opened(folder, server) as workspace:
        first = await last(workspace.chat(HEIGHT, how=How(today=TODAY)))
        made["conversation"] = first.id
        made["follow-up"] = (await last(workspace.chat("Does it lean?", first.asked.thread, How(today=TODAY)))).id
    other = looks_up("The lighthouse's tower at Carrow Point is 31 metres tall [{31 metres}].")
    with ChatServer(other.answer, window=WINDOW) as server, opened(folder, server) as workspace:
        origin = workspace.run(made["look-up"])
        made["branch with another model"] = (
            await last(branch(workspace, origin, origin.kinds.index("Drafted"), "another"))
        ).id
        by_rule = await last(branch(workspace, origin, origin.kinds.index("Drafted"), "none"))
        made["branch of a run with a model, by rule"] = by_rule.id
    return made


async def unfinished(folder: Path) -> dict[str, str]:
    """Runs that wait for a choice, that failed, and that were killed."""
    await fill(folder, NOTES)
    made: dict[str, str] = {}
    with opened(folder) as workspace:
        made["paused by rule"] = (await asks(workspace, HEIGHT, checkpoints=(Checkpoint.sources,))).id
    waits = hops(plan=one_step(TENDED, "tends beacon"), decide=rests(), judge=enough(), write=writes(CLAIMS[2]))
    made["paused"] = await with_model(folder, waits, TENDED, checkpoints=(Checkpoint.sources,))
    made["carried on after a pause"] = await with_model(folder, waits, TENDED, checkpoints=(Checkpoint.sources,))
    with ChatServer(waits.answer, window=WINDOW) as server, opened(folder, server) as workspace:
        await last(workspace.resume(made["carried on after a pause"], "answer now"))

    def broken(request: dict[str, Any]) -> Any:
        return Http(401, {"error": "no"}) if role_of(request)[0] == "write" else hops().answer(request)

    for label in ("failed", "failed and carried on"):
        made[label] = await with_model(folder, broken, HOPS, mode=Mode.thorough)
    with ChatServer(hops().answer, window=WINDOW) as server, opened(folder, server) as workspace:
        await last(workspace.resume(made["failed and carried on"]))
    for label in list(KILLED)[:5]:
        made[label] = await asyncio.to_thread(killed, folder, label)
    return made


async def reviewed(folder: Path) -> dict[str, str]:
    """Answers that wait for a reviewer, and what became of others."""
    await fill(folder, SURVEYED)
    made: dict[str, str] = {}
    high: dict[str, Any] = {"stakes": Stakes.high}
    with opened(folder) as workspace:
        for label in ("waits, by rule", "approved, by rule", "edited, by rule", "rejected"):
            made[label] = (await asks(workspace, HEIGHT, **high)).id
    for label in ("waits", "approved", "edited", "edited and waits again"):
        made[label] = await with_model(folder, looks_up(), HEIGHT, **high)
    with ChatServer(looks_up().answer, window=WINDOW) as server, opened(folder, server) as workspace:
        bench = reviewing.at_terminal(workspace)

        async def decide(label: str, decision: Decision, note: str = "", edits: tuple[Edit, ...] = ()) -> None:
            run = made[label]
            reviewing.decide(bench, run, decision, reviewing.shown(bench, run).seal, note, edits)
            if decision is not Decision.reject:
                await last(reviewing.carried_on(bench, run))

        edit = (Edit(0, "The tower is 31 metres tall."),)
        await decide("approved, by rule", Decision.approve)
        await decide("approved", Decision.approve, "well said")
        await decide("rejected", Decision.reject, "Ask the harbour master.")
        for label in ("edited, by rule", "edited", "edited and waits again"):
            await decide(label, Decision.edit, edits=edit)
        await decide("edited, by rule", Decision.approve)
        await decide("edited", Decision.approve)
    return made


async def erased(folder: Path) -> dict[str, str]:
    """Documents that were erased, and access that was taken away, after runs that speak of them and in the middle of others."""
    await fill(folder, SURVEYED)
    made: dict[str, str] = {}
    with opened(folder) as workspace:
        base = workspace.scope().bases[0]
        people.share(workspace.store, base, "user:reader", "local")
        await reaching.change_base(workspace, base.name, "user:guest", True)
        made["cited what was erased"] = (await asks(workspace, HEIGHT)).id
        made["did not speak of it"] = (await asks(workspace, PAINTED, where=LAMP)).id
        made["narrowed"] = (await asks(workspace, HEIGHT, stakes=Stakes.high)).id
        reader = opened(folder, who="reader")
        made["of a reader who lost access"] = (
            await asks(reader, "Where is all orpiment ground?", where=Where(sources=("works",)))
        ).id
        made["of a reader"] = (await asks(reader, PAINTED, where=LAMP)).id
    made["with a model, cited what was erased"] = await with_model(folder, looks_up(), HEIGHT)
    label = "killed, and then its document was erased"
    made[label] = await asyncio.to_thread(killed, folder, label)
    with opened(folder) as workspace:
        gone = [each for each in workspace.sources() if each.name == "survey.txt"]
        await erasing.erase(workspace, gone, workspace.scope())
        (works,) = (each.id for each in workspace.sources() if each.name == "works.txt")
        await reaching.change_document(workspace, works, "user:reader", False)
        await last(workspace.resume(made["narrowed"]))
        bench = reviewing.at_terminal(workspace)
        reviewing.decide(bench, made["narrowed"], Decision.approve, reviewing.shown(bench, made["narrowed"]).seal)
        await last(reviewing.carried_on(bench, made["narrowed"]))
        made["asked after the erasure"] = (await asks(workspace, HEIGHT)).id
    return made


async def syntheses(folder: Path) -> dict[str, str]:
    """Accounts of several papers, with and without a model, whole and cut off."""
    await fill(folder, PAPERS)
    made: dict[str, str] = {}
    with opened(folder) as workspace:
        made["by rule"] = (await last(_synthesis(workspace))).id
        made["summary by rule"] = (await last(_synthesis(workspace, pipeline=Pipeline.summary))).id
    with ChatServer(reviewer(), window=WINDOW) as server, opened(folder, server) as workspace:
        made["with a model"] = (await last(_synthesis(workspace))).id
        made["summary with a model"] = (await last(_synthesis(workspace, pipeline=Pipeline.summary))).id
    for label in list(KILLED)[5:8]:
        made[label] = await asyncio.to_thread(killed, folder, label)
    return made


WORKSPACES: dict[str, Callable[[Path], Any]] = {
    "questions": questions,
    "unfinished": unfinished,
    "reviewed": reviewed,
    "erased": erased,
    "syntheses": syntheses,
}
BUNDLES = {"questions": "research of several hops", "syntheses": "with a model"}

# How each unfinished run is carried on: what is chosen or decided, and the model that is asked for what is still to be said.
FINISH: dict[str, tuple[dict[str, str], Callable[[], Any] | None]] = {
    "paused by rule": ({"choice": "answer now"}, None),
    "paused": ({"choice": "answer now"}, lambda: hops(write=writes(CLAIMS[2])).answer),
    "failed": ({}, lambda: hops().answer),
    "waits, by rule": ({"decide": "approve"}, None),
    "waits": ({"decide": "approve"}, lambda: looks_up().answer),
    "edited and waits again": ({"decide": "approve"}, lambda: looks_up().answer),
} | {label: ({}, (lambda label=label: model_of(label)) if KILLED[label][1] else None) for label in KILLED}


# --- writing it down ------------------------------------------------------------------------------------------------


def packed(folder: Path, to: Path) -> None:
    """An archive with the same bytes for the same files."""
    files = [each for each in sorted(folder.rglob("*")) if each.is_file() and not each.name.endswith(LEFT_OUT)]
    with zipfile.ZipFile(to, "w") as archive:
        for each in files:
            info = zipfile.ZipInfo(each.relative_to(folder).as_posix(), WHEN)
            info.external_attr = 0o644 << 16
            archive.writestr(info, each.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def settled(folder: Path) -> None:
    """All that was written is in the one file of the state."""
    connection = sqlite3.connect(folder / WORKSPACE / "state.db")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def owners(folder: Path) -> dict[str, str]:
    connection = sqlite3.connect(folder / WORKSPACE / "state.db")
    found = dict(connection.execute("SELECT id, who FROM runs"))
    connection.close()
    return found


def written(name: str, data: Any) -> None:
    (HERE / "expected" / f"{name}.json").write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")


def make(name: str) -> None:
    with tempfile.TemporaryDirectory(prefix="golden-") as place:
        folder = Path(place) / "made"
        made = asyncio.run(WORKSPACES[name](folder))
        (folder / SECOND_PLACE).mkdir()
        with open_workspace(folder / WORKSPACE, audit_copy=str(folder / SECOND_PLACE)) as workspace:
            seal(notary_of(workspace.store, workspace.path, workspace.settings))
        if name in BUNDLES:
            (HERE / "bundles" / f"{name}.zip").unlink(missing_ok=True)
            done = typed(folder, "export", made[BUNDLES[name]], "--out", str(HERE / "bundles" / f"{name}.zip"))
            assert done["code"] == 0, done
        settled(folder)
        packed(folder, HERE / "workspaces" / f"{name}.zip")
        looked_at(name, made, Path(place))


def looked_at(name: str, made: Mapping[str, str], place: Path) -> None:
    """What this version sees in what was packed, and what it makes of what is unfinished."""
    folder, copy = place / "seen", place / "finished"
    for each in (folder, copy):
        with zipfile.ZipFile(HERE / "workspaces" / f"{name}.zip") as archive:
            archive.extractall(each)
    whose = owners(folder)
    labels = dict(made) | ({"the whole workspace": "workspace"} if "workspace" in whose else {})
    expected: dict[str, Any] = {"made_with": {"assay": __version__, "commit": COMMIT}, "verify": verified(folder)}
    expected["listed"] = listed(folder)
    expected["bundle"] = BUNDLES.get(name)
    expected["runs"] = {label: observed(folder, run, whose[run]) for label, run in labels.items()}
    expected["finish"] = {}
    for label in [label for label in made if label in FINISH]:
        how, model = FINISH[label]
        keeping = Keeping(answers) if model and (answers := model()) else None
        done = finish(copy, made[label], how, keeping.answer if keeping else None)
        expected["finish"][label] = {"how": how} | done | {"replies": keeping.kept if keeping else None}
    expected["verify_after"] = typed(copy, "verify", "--quiet")["code"]
    written(name, expected)


def kinds_in(name: str) -> set[str]:
    expected = json.loads((HERE / "expected" / f"{name}.json").read_text("utf-8"))
    return {record[0] for run in expected["runs"].values() for record in run["records"]}


def main() -> None:
    if sys.argv[1:2] == ["dies"]:
        asyncio.run(dies(Path(sys.argv[2]), *sys.argv[3:5]))
        return
    for part in ("workspaces", "expected", "bundles"):
        (HERE / part).mkdir(exist_ok=True)
    for name in sys.argv[1:] or WORKSPACES:
        make(name)
        print(name)
    found = {kind for each in WORKSPACES for kind in kinds_in(each)}
    print("never recorded:", ", ".join(sorted(KINDS.keys() - found - {"Withheld"})) or "nothing")


if __name__ == "__main__":
    main()
