"""What agents do when something fails: the model's endpoint, the model itself, a tool, or the process.

    make bench
    .agents/bin/python bench/faults.py [--patience 240] [--out FILE]

The task, the scripted model and the agents are those of loop.py: five searches and an answer. In each case one thing goes
wrong, at the third request of the run unless the case says otherwise. Each agent has the settings that it comes with, and a
process of its own. `killed` ends the process during the third request, and starts it again on the same folder.

Shown: whether it answers, and how many requests were made; or the error that a caller sees; or that it had not ended when
patience did. Without a fault ours takes some twenty requests and the others six.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import loop
from result_file import add_out, versions_of, write_result

AT = 3  # the request of a run that fails
SEARCHES = 5
ANSWERS = "answers"
ERROR = re.compile(r"[\w.]*(Error|Exception|Timeout|Behavior)\b")  # the last line of a traceback


@dataclass
class Faulty:
    """The scripted model, with the fault of a case. `count` is how many requests were those of a run."""

    case: str
    count: int = 0
    reached: threading.Event = field(default_factory=threading.Event)
    healed: bool = False

    def __post_init__(self) -> None:
        self.usual: Callable[[dict[str, Any]], Any] = loop.answer(SEARCHES)

    def __call__(self, request: dict[str, Any]) -> Any:
        from scripted import role_of, tools_of

        role, _ = role_of(request)
        if not role and "search" not in tools_of(request):
            return self.usual(request)  # asked what it can do, before the run
        self.count += 1
        if self.count == AT:
            self.reached.set()
        if self.healed:
            return self.usual(request)
        return self.at_fault(request, role) or self.usual(request)

    def at_fault(self, request: dict[str, Any], role: str) -> Any:
        from scripted import EndpointFault, calls, faulty_reply, tools_of

        if self.case == "never satisfied":  # every reply asks for one more search
            return calls("search", query=f"valves {self.count % SEARCHES}") if "search" in tools_of(request) else None
        fault = CASES[self.case]
        offered = fault not in ("arguments_truncated", "unknown_tool") or "search" in tools_of(request)
        if fault and offered and self.count >= AT and not self.healed:
            self.healed = self.case != "killed"
            return faulty_reply(EndpointFault[fault], request)
        return None


CASES: Mapping[str, str] = {
    "no fault": "",
    "500, once": "status_500",
    "429, Retry-After: 1": "limited_one",
    "closed without a reply": "hang_up",
    "reset in the middle of a reply": "reset_mid_body",
    "no reply, ever": "hang",
    "a sign-in page as the reply": "html",
    "arguments that break off": "arguments_truncated",
    "a tool that does not exist": "unknown_tool",
    "never satisfied": "",
    "killed": "hang",
}


# --- one agent in a process -----------------------------------------------------------------------------------------


async def ours(url: str, folder: Path, again: bool) -> str:
    from loop_ours import filled

    texts = [loop.text_of(number) for number in range(SEARCHES * loop.PASSAGES)]
    endpoint = {"llm_base_url": url, "llm_model": "scripted", "llm_api_key": "k", "search_rounds": SEARCHES}
    opened, _ = await filled(folder, texts, **endpoint)
    steps = opened.resume(last_run(opened)) if again else opened.ask(loop.QUESTION)
    *_, (run, last) = [step async for step in steps]
    return ANSWERS if run.answer and run.answer.blocks else f"ends as {type(last).__name__}"


def last_run(opened: Any) -> str:
    from assay.store.runs.history import history

    return history(opened.store, opened.principal.id, opened.scope(), 1)[0].id


async def attempt(name: str, url: str, folder: Path, again: bool) -> str:
    if name == "ours":
        return await ours(url, folder, again)
    words = said(await (await loop.MADE[name](url, SEARCHES, folder))())
    return ANSWERS if words.startswith("Valve 0 ") else f"says {words[:40]!r}"


def said(result: Any) -> str:
    """The last words of an agent."""
    if isinstance(result, dict):
        return str(result["messages"][-1].content)
    return str(getattr(result, "output", getattr(result, "final_output", result)))


# --- all of them ----------------------------------------------------------------------------------------------------


def outcome(name: str, case: str, patience: float) -> str:
    from scripted import ChatServer

    faulty = Faulty(case)
    with tempfile.TemporaryDirectory() as folder, ChatServer(faulty, window=32768) as server:
        command = [sys.executable, __file__, "--only", name, "--url", server.url, "--folder", folder]
        began = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if case == "killed":
            assert faulty.reached.wait(patience), "the third request never came"
            began.kill()
            began.communicate()
            faulty.healed = True
            began = subprocess.Popen([*command, "--again"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, errors = began.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            began.kill()
            began.communicate()
            return f"had not ended after {patience:g} s; requests: {faulty.count}"
    if began.returncode:
        lines = [line for line in errors.strip().splitlines() if line.strip()] or ["it ended without a word"]
        raised = next((line for line in reversed(lines) if ERROR.match(line)), lines[-1])
        kind, _, words = raised.partition(": ")
        return f"{kind.rpartition('.')[2]}: {words[:60]}; requests: {faulty.count}"
    return f"{json.loads(out.strip().splitlines()[-1])}; requests: {faulty.count}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patience", type=float, default=240, help="seconds until a case is given up")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--only", choices=loop.AGENTS, help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    add_out(parser)
    given = parser.parse_args()
    if given.only:
        print(json.dumps(asyncio.run(attempt(given.only, given.url, given.folder, given.again))))
        return
    rows: dict[str, dict[str, str]] = {}
    for case in given.cases:
        with ThreadPoolExecutor(len(loop.AGENTS)) as pool:  # most of the time they wait
            found = pool.map(lambda name, case=case: outcome(name, case, given.patience), loop.AGENTS)
            rows[case] = dict(zip(loop.AGENTS, found, strict=True))
        print(f"\n{case}")
        for name, words in rows[case].items():
            print(f"  {name:16}{words}", flush=True)
    versions = versions_of(("pydantic-ai-slim", "openai-agents", "langgraph", "httpx"))
    write_result(given.out, rows, versions)


if __name__ == "__main__":
    main()
