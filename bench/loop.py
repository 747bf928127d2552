"""What the loop itself costs: processor time a model request, beside other agents on the same scripted server.

    make bench
    .agents/bin/python bench/loop.py [--rounds 5] [--searches 5] [--at-once 50] [--out FILE]

The task: the model asks for one search at a time, five times, and then answers. The search returns the same eight passages to
all, at once; the server answers at once, from a process of its own. Each agent runs in a process of its own too, one round
after the other, so that a busy moment hits all alike. `bare` is a loop by hand over httpx that keeps nothing: the limit.

The others send the whole conversation again with every request and keep nothing on disk. Ours makes more requests for the same
five searches (route and plan, weigh and judge, write, check), reserves and settles each, writes every event to SQLite before
it is used, follows names, and checks every claim of the answer. paper-qa's agent gathers evidence five times, with a request
for each text that it summarises, and runs in an environment of its own. An agent that is not installed is named as missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from peer import ROOT
from result_file import add_out, versions_of, write_result

QUESTION = "When were the valves of the Pellam plant closed, and who signed for them?"
PASSAGES = 8  # of a search
AGENTS = ("bare", "ours", "pydantic-ai", "openai-agents", "langgraph")
PAPER_QA = "paper-qa"  # has an environment of its own
Agent = Callable[[], Awaitable[object]]


def text_of(number: int) -> str:
    return (
        f"Valve {number} of the Pellam plant was closed on day {number} by Dana Orr, who signed the log in hall {number % 7}. "
        f"The pressure before the valve was {number + 40} bar and fell to {number + 3} bar within an hour. "
        "Nobody was hurt, and the pumps of the second line went on as they had since the spring inspection. "
        "The report recommends that the seals be looked at again before the winter, and that the log be kept in two copies."
    )


def found(place: int) -> str:
    """What the search with this number returns, as the others are shown it."""
    return "\n\n".join(text_of(number) for number in range(place * PASSAGES, (place + 1) * PASSAGES))


# --- the server -----------------------------------------------------------------------------------------------------


def answer(searches: int) -> Callable[[dict[str, Any]], Any]:
    """The model of all: what it says depends on the request alone."""
    from scripted import (
        calls,
        cooperative_reply,
        keys_in,
        one_step,
        passages_in,
        research,
        role_of,
        schema_of,
        supported,
        tools_of,
    )
    from scripted import text_of as words_of

    def first(words: str) -> str:
        return words.partition(". ")[0] + "."

    def ours(role: str, words: str, wanted: Mapping[str, Any]) -> Any:
        left = int(found[1]) if (found := re.search(r"^(\d+) more round", words, re.MULTILINE)) else 0
        shown = passages_in(words)
        claims = [{"text": first(each), "cites": [key]} for key, each in list(shown.items())[:4]]
        weights = [{"id": each, "quote": first(shown[each]), "score": 8, "note": "It says when."} for each in shown]
        judged = {"answers": [], "enough": False, "missing": ["more valves"], "searches": [], "surprise": False}
        replies: dict[str, Callable[[], Any]] = {
            "route": lambda: research() | (one_step(QUESTION) if "steps" in wanted else {}),
            "plan": lambda: one_step(QUESTION),
            "decide": lambda: calls("search", query=f"valves {searches - left}"),
            "weigh": lambda: {"passages": weights} | (judged if "enough" in wanted else {}),
            "judge": lambda: judged,
            "write": lambda: {
                "shape": "prose",
                "blocks": [{"heading": "", "claims": claims, "opinion": False}],
                "conflicts": [],
                "missing": [],
            },
            "check": lambda: supported()(words, None),
        }
        assert role != "write" or keys_in(words)
        return replies[role]()

    def paper_qa(done: int) -> Any:
        if done < searches:
            return calls("gather_evidence", question=f"valves {done}")
        return calls("gen_answer") if done == searches else calls("complete", has_successful_answer=True)

    def say(request: dict[str, Any]) -> Any:
        role, _ = role_of(request)
        if role:
            return ours(role, words_of(request), (schema_of(request) or {}).get("properties", {}))
        done = sum(message["role"] == "tool" for message in request["messages"])
        if "gather_evidence" in tools_of(request):
            return paper_qa(done)
        if "relevance_score" in words_of(request):
            return {"summary": first(text_of(0)), "relevance_score": 8}
        if "Answer the question below with the context" in words_of(request):
            return first(text_of(0))
        if "search" not in tools_of(request):
            return cooperative_reply(request)  # asked what it can do, it can do everything
        return calls("search", query=f"valves {done}") if done < searches else first(text_of(0))

    return say


def serve(searches: int) -> None:
    from scripted import ChatServer

    with ChatServer(answer(searches), window=32768) as server:
        print(server.url, flush=True)
        sys.stdin.read()  # until whoever started this goes


def place_in(query: str) -> int:
    return int(query.rpartition(" ")[2]) if query.startswith("valves ") else 0


# --- the agents -----------------------------------------------------------------------------------------------------


async def bare(url: str, searches: int, folder: Path) -> Agent:
    import httpx

    client = httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=100))
    function = {
        "name": "search",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    }

    async def run() -> object:
        messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
        while True:
            body = {"model": "scripted", "messages": messages, "tools": [{"type": "function", "function": function}]}
            message = (await client.post(f"{url}/chat/completions", json=body)).json()["choices"][0]["message"]
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for call in message["tool_calls"]:
                query = json.loads(call["function"]["arguments"])["query"]
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": found(place_in(query))})

    return run


async def ours(url: str, searches: int, folder: Path) -> Agent:
    from loop_ours import agent  # in a file of its own, so that the others' processes do not load it

    texts = [text_of(number) for number in range(searches * PASSAGES)]
    return await agent(url, QUESTION, texts, PASSAGES, searches, folder)


async def pydantic_ai(url: str, searches: int, folder: Path) -> Agent:
    from pydantic_ai import Agent as Theirs
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="k"))
    agent = Theirs(model)

    @agent.tool_plain
    def search(query: str) -> str:
        """Search."""
        return found(place_in(query))

    return lambda: agent.run(QUESTION)


async def openai_agents(url: str, searches: int, folder: Path) -> Agent:
    from agents import Agent as Theirs
    from agents import OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)  # it would send what was asked elsewhere

    @function_tool
    def search(query: str) -> str:
        """Search."""
        return found(place_in(query))

    model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=url, api_key="k"))
    agent = Theirs("searcher", model=model, tools=[search])
    return lambda: Runner.run(agent, QUESTION, max_turns=searches + 5)


async def langgraph(url: str, searches: int, folder: Path) -> Agent:
    import warnings

    warnings.simplefilter("ignore")
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent

    @tool
    def search(query: str) -> str:
        """Search."""
        return found(place_in(query))

    agent = create_react_agent(ChatOpenAI(model="scripted", base_url=url, api_key="k"), [search])
    return lambda: agent.ainvoke({"messages": [("user", QUESTION)]})


async def paper_qa(url: str, searches: int, folder: Path) -> Agent:
    from loop_paper_qa import agent

    texts = [text_of(number) for number in range(searches * PASSAGES)]
    return await agent(url, QUESTION, texts, PASSAGES, searches, folder)


MADE = {"bare": bare, "ours": ours, "pydantic-ai": pydantic_ai, "openai-agents": openai_agents, "langgraph": langgraph}
MADE[PAPER_QA] = paper_qa


# --- measuring ------------------------------------------------------------------------------------------------------


def requests_of(name: str, searches: int, last: Any) -> int:
    """How many requests a run takes."""
    if name == PAPER_QA:  # one for each decision, one for each text that it summarises, and one for the answer
        return searches + 2 + searches * PASSAGES + 1
    return last.usage.calls if name == "ours" else searches + 1


async def measured(name: str, url: str, searches: int, runs: int, at_once: int) -> dict[str, float]:
    """One agent, in this process: processor time of runs one after the other, then of many at once."""
    with tempfile.TemporaryDirectory() as folder:
        run = await MADE[name](url, searches, Path(folder))
        last: Any = None
        for _ in range(2):
            last = await run()
        requests = requests_of(name, searches, last)
        began = time.process_time()
        for _ in range(runs):
            await run()
        alone = (time.process_time() - began) / runs
        began, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(run() for _ in range(at_once)))
        together, wall = (time.process_time() - began) / at_once, time.perf_counter() - wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(versions_of(("paper-qa",))))  # the last line but one: which of its environment
    return {
        "requests": requests,
        "ms a request": 1000 * alone / requests,
        "ms a run": 1000 * alone,
        "at once: ms a request": 1000 * together / requests,
        "at once: seconds": wall,
        "peak MB": peak,
    }


def child(given: argparse.Namespace, name: str, url: str, versions: dict[str, str]) -> dict[str, float] | str:
    """The figures of one agent, or why there are none. Its version is added if it has an environment of its own."""
    options = ["--searches", given.searches, "--runs", given.runs, "--at-once", given.at_once]
    python = ROOT / ".paper-qa" / "bin" / "python" if name == PAPER_QA else Path(sys.executable)
    if not python.exists():
        return "not installed: run `make bench` first"
    done = subprocess.run(
        [str(python), __file__, "--only", name, "--url", url, *map(str, options)], capture_output=True, text=True
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    *_, found, figures = done.stdout.splitlines()
    versions |= json.loads(found)
    return json.loads(figures)


def compared(given: argparse.Namespace) -> None:
    command = [sys.executable, __file__, "--serve", "--searches", str(given.searches)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        url = server.stdout.readline().strip()
        rows: dict[str, list[dict[str, float]]] = {name: [] for name in (*AGENTS, PAPER_QA)}
        missing: dict[str, str] = {}
        versions = versions_of(("pydantic-ai-slim", "openai-agents", "langgraph", "httpx"))
        for _ in range(given.rounds):
            for name, each in rows.items():
                if isinstance(row := child(given, name, url, versions), str):
                    missing[name] = row
                else:
                    each.append(row)
        server.kill()
    best = {name: {key: min(row[key] for row in each) for key in each[0]} for name, each in rows.items() if each}
    fastest = min(
        (name for name in best if name not in ("bare", "ours")),
        key=lambda name: best[name]["ms a request"],
        default="bare",
    )
    print(f"{given.searches} searches and an answer; the best of {given.rounds} rounds; × is against {fastest}")
    heads = f"{'requests':>8} {'ms a request':>13} {'×':>5} {'ms a run':>9} {'×':>5}"
    busy = f"{'ms a request':>13} {'×':>5} {'wall s':>7} {'peak MB':>8}"
    print(f"{'':16} {heads}   {given.at_once} at once: {busy}")
    for name, row in best.items():
        per, whole, many = (
            row[key] / best[fastest][key] for key in ("ms a request", "ms a run", "at once: ms a request")
        )
        print(
            f"{name:16} {row['requests']:8.0f} {row['ms a request']:13.2f} {per:5.2f} {row['ms a run']:9.1f} {whole:5.2f}"
            f"   {row['at once: ms a request']:25.2f} {many:5.2f} {row['at once: seconds']:7.2f} {row['peak MB']:8.0f}"
        )
    medians = {
        name: {key: statistics.median(row[key] for row in each) for key in each[0]}
        for name, each in rows.items()
        if each
    }
    write_result(given.out, {"the best round": best, "the median round": medians}, versions, missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10, help="one after the other, in each round")
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument(
        "--only", choices=(*AGENTS, PAPER_QA), help="one agent, in this process, on the server at --url"
    )
    parser.add_argument("--url", default="")
    parser.add_argument("--serve", action="store_true", help="only the server")
    add_out(parser)
    given = parser.parse_args()
    if given.serve:
        serve(given.searches)
    elif given.only:
        print(json.dumps(asyncio.run(measured(given.only, given.url, given.searches, given.runs, given.at_once))))
    else:
        compared(given)


if __name__ == "__main__":
    main()
