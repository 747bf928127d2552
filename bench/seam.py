"""What the way to a model costs us: processor time a request, and how long the first import takes.

    .venv/bin/python bench/seam.py [--rounds 7]

Every line speaks to the same server on the loopback, which answers at once; only this side is measured. The limit is httpx
with nothing around it. pydantic-ai is an extra; without it its lines are left out.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from result_file import add_out, write_result

REQUESTS = 200
WORDS = "hello " * 300
SERVER = """
import asyncio, json
MESSAGE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}
USAGE = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
REPLY = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [MESSAGE], "usage": USAGE}
BODY = json.dumps(REPLY).encode()
HEAD = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(BODY)
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = next(line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
            writer.write(HEAD + BODY)
    except (asyncio.IncompleteReadError, OSError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
IMPORTS = {
    "httpx": "import httpx",
    "ours (with settings)": "import httpx, assay.models.endpoint",
    "pydantic-ai's OpenAI model": "import pydantic_ai.models.openai",
}


async def ways(url: str) -> dict[str, Callable[[], Awaitable[object]]]:
    import httpx

    from assay.models.endpoint import ChatEndpoint
    from assay.models.llm import Message, Prompt

    client, ours = httpx.AsyncClient(), ChatEndpoint(url, "m", "k")
    prompt = Prompt((Message("user", WORDS),))
    body = {"model": "m", "messages": [{"role": "user", "content": WORDS}]}

    async def bare() -> object:
        return (await client.post(f"{url}/chat/completions", json=body)).json()

    found: dict[str, Callable[[], Awaitable[object]]] = {
        "httpx alone (limit)": bare,
        "ChatEndpoint": lambda: ours.complete(prompt, 30),
    }
    try:
        from pydantic_ai import Agent, ModelRequest
        from pydantic_ai.direct import model_request
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError:
        return found
    from assay.models.provider import ProviderModel

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="k"))
    provided, agent = ProviderModel("openai-chat:m", make=lambda: model), Agent(model)
    return found | {
        "pydantic-ai, direct request": lambda: model_request(model, [ModelRequest.user_text_prompt(WORDS)]),
        "ProviderModel": lambda: provided.complete(prompt, 30),
        "pydantic-ai, Agent": lambda: agent.run(WORDS),
    }


async def requests(url: str, rounds: int) -> dict[str, list[float]]:
    found = await ways(url)
    for way in found.values():
        await way()
    spent: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(rounds):  # interleaved, so that a busy moment hits all alike
        for name, way in found.items():
            began = time.process_time()
            for _ in range(REQUESTS):
                await way()
            spent[name].append((time.process_time() - began) / REQUESTS * 1000)
    return spent


def imports(rounds: int) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(rounds):
        for name, code in IMPORTS.items():
            timed = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
            done = subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                spent[name].append(float(done.stdout))
    return {name: each for name, each in spent.items() if each}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    add_out(parser)
    given = parser.parse_args()
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            spent = asyncio.run(requests(url, given.rounds))
        finally:
            server.kill()
    loaded = imports(given.rounds)
    for name, each in spent.items():
        print(f"{name:30} {statistics.median(each):6.2f} ms of processor a request (best {min(each):.2f})")
    for name, each in loaded.items():
        print(f"import {name:23} {statistics.median(each):6.2f} s of processor (best {min(each):.2f})")
    best = {name: {"ms of processor a request": min(each)} for name, each in spent.items()}
    best |= {f"import {name}": {"s of processor": min(each)} for name, each in loaded.items()}
    write_result(given.out, best)


if __name__ == "__main__":
    main()
