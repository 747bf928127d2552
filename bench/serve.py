"""One serving process under load: many streams at once, a large upload, slow readers, and a kill in the middle.

    .venv/bin/python bench/serve.py [--streams 200] [--workers 0 2] [--latency 3] [--megabytes 200] [--out FILE]

A scripted model answers over HTTP from a process of its own, each reply after `--latency` seconds: about what a hosted model
takes. The server is `assay serve` in a process of its own, with its limits per person and address switched off; the clients are
here. With several numbers of `--workers` each has a server of its own, one after the other.

`stretch` is the time a run takes with all streams open, over the time it takes alone: at 1.0 nobody notices the others. The
upload is a PDF of 400 pages that is nearly all pictures. `floor` is what the server's own processor time takes on as many
cores as processes work on runs, as a ratio of the same kind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from result_file import add_out, write_result
from scripted import ChatServer, cooperative_reply

QUESTION = "How does settling at Arden compare with dosing, and after how many minutes does valve {n}-11 open?"
LONG = httpx.Timeout(600.0, connect=60.0)


# --- processes ------------------------------------------------------------------------------------------------------


def model(latency: float) -> None:
    """The scripted model, until standard input closes."""

    async def answer(request: dict[str, Any]) -> Any:
        await asyncio.sleep(latency)
        return cooperative_reply(request)

    with ChatServer(answer) as server:
        print(server.url, flush=True)
        sys.stdin.read()


def free_port() -> int:
    with closing(socket.socket()) as own:
        own.bind(("127.0.0.1", 0))
        return own.getsockname()[1]


def start(workspace: Path, url: str, port: int, workers: int) -> subprocess.Popen[str]:
    environment = os.environ | {
        "ASSAY_LLM_BASE_URL": url,
        "ASSAY_LLM_MODEL": "scripted",
        "ASSAY_LLM_API_KEY": "k",
        "ASSAY_SERVE_RUNS_PER_PERSON": "0",
        "ASSAY_SERVE_REQUESTS_PER_MINUTE": "0",
        "ASSAY_SERVE_CONNECTIONS_PER_ADDRESS": "0",
        "ASSAY_FILE_MAX_MEGABYTES": "400",
    }
    serving = f"-m assay.cli.main serve --no-token --port {port} --workers {workers}"
    command = [sys.executable, *serving.split(), "--workspace", str(workspace)]
    server = subprocess.Popen(command, env=environment, text=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(600):
        try:
            if httpx.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                return server
        except httpx.HTTPError:
            pass
        if server.poll() is not None:
            raise SystemExit("the server did not start")
        time.sleep(0.1)
    raise SystemExit("the server did not become ready")


def processes(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = [
        child for thread in Path(f"/proc/{pid}/task").glob("*/children") for child in thread.read_text().split()
    ]
    return [pid, *(each for child in children for each in processes(int(child)))]


def memory(pid: int) -> int:
    """Megabytes that a process and its children have in memory now."""
    lines = [line for each in processes(pid) for line in Path(f"/proc/{each}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) // 1024


def processor(pid: int) -> float:
    """Seconds of processor time that a process and its children have taken."""
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in processes(pid)]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


# --- clients --------------------------------------------------------------------------------------------------------


async def followed(client: httpx.AsyncClient, run: str) -> str:
    """The state in which a run's stream ends."""
    kind = ""
    async with client.stream("GET", f"/api/runs/{run}/events") as stream:
        stream.raise_for_status()
        async for line in stream.aiter_lines():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ")
            elif line.startswith("data: ") and kind == "end":
                return json.loads(line.removeprefix("data: "))["state"]
    return "cut off"


async def asked(client: httpx.AsyncClient, number: int) -> str:
    reply = await client.post("/api/runs", json={"question": QUESTION.format(n=number)})
    reply.raise_for_status()
    return reply.json()["run"]


async def whole(client: httpx.AsyncClient, number: int) -> float:
    """How long one run takes, from the question to the end of its stream; one that does not end well is an error."""
    begun = time.monotonic()
    state = await followed(client, await asked(client, number))
    if state != "delivered":
        raise RuntimeError(state)
    return time.monotonic() - begun


async def pulse(client: httpx.AsyncClient, until: asyncio.Event) -> list[float]:
    """How long `/health` takes, again and again."""
    taken: list[float] = []
    while not until.is_set():
        begun = time.monotonic()
        (await client.get("/health")).raise_for_status()
        taken.append(time.monotonic() - begun)
        await asyncio.sleep(0.2)  # seldom: the server's own time is measured too
    return taken


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def streams(client: httpx.AsyncClient, pid: int, count: int, workers: int) -> dict[str, Any]:
    """So many runs at once, each with its stream, beside one run alone."""
    await asyncio.gather(*(whole(client, number) for number in range(4 * max(workers, 1))))  # what is made once is made
    alone = statistics.median([await whole(client, number) for number in range(3)])
    before = processor(pid)
    over = asyncio.Event()
    health = asyncio.create_task(pulse(client, over))
    begun = time.monotonic()
    results = await asyncio.gather(*(whole(client, number) for number in range(count)), return_exceptions=True)
    together, each = time.monotonic() - begun, (processor(pid) - before) / count
    over.set()
    taken = [each for each in results if isinstance(each, float)]
    beats = await health
    return {
        "streams": count,
        "errors": count - len(taken),
        "why": "; ".join(sorted({repr(each) for each in results if isinstance(each, BaseException)})[:3]),
        "alone_s": round(alone, 2),
        "median_s": round(statistics.median(taken), 2) if taken else None,
        "p99_s": round(percentile(taken, 0.99), 2) if taken else None,
        "all_s": round(together, 2),
        "stretch": round(statistics.median(taken) / alone, 2) if taken else None,
        "processor_s_each": round(each, 3),
        "floor": round(max(1.0, each * count / alone / min(max(workers, 1), os.cpu_count() or 1)), 2),
        "health_p99_ms": round(percentile(beats, 0.99) * 1000),
        "rss_mb": memory(pid),
    }


async def upload(client: httpx.AsyncClient, pid: int, file: Path, size: int) -> dict[str, Any]:
    """`/health` while a large file arrives and is read."""
    over = asyncio.Event()
    health = asyncio.create_task(pulse(client, over))
    begun = time.monotonic()
    with file.open("rb") as data:
        reply = await client.post("/api/bases/default/documents", files={"files": (file.name, data)})
    reply.raise_for_status()
    sent = time.monotonic() - begun
    job = reply.json()
    while job["state"] in ("waiting", "running") and time.monotonic() - begun < 300:
        await asyncio.sleep(0.5)
        job = (await client.get(f"/api/jobs/{job['id']}")).json()
    over.set()
    beats = await health
    return {
        "megabytes": size // 1_000_000,
        "sent_s": round(sent, 1),
        "read_s": round(time.monotonic() - begun - sent, 1),
        "state": job["state"],
        "outcome": [f"{each['outcome']} {each['why']}".strip() for each in job["reports"]],
        "health_p50_ms": round(statistics.median(beats) * 1000, 1),
        "health_p99_ms": round(percentile(beats, 0.99) * 1000),
        "health_max_ms": round(max(beats) * 1000),
        "rss_mb": memory(pid),
    }


async def slow(port: int, pid: int, run: str, count: int, seconds: float = 15.0) -> dict[str, Any]:
    """Readers who open a stream and hardly read it."""
    before = memory(pid)
    opened: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(f"GET /api/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        await writer.drain()
        opened.append((reader, writer))
    most = before
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        for reader, _ in opened:
            await asyncio.wait_for(reader.read(64), 30)
        most = max(most, memory(pid))
        await asyncio.sleep(0.5)
    for _, writer in opened:
        writer.close()
    return {"readers": count, "before_mb": before, "most_mb": most, "growth_mb": most - before}


async def restarted(
    client: httpx.AsyncClient, workspace: Path, url: str, port: int, server: Any, count: int, workers: int
) -> Any:
    """Kill the server with runs under way, start it again, and see what becomes of every run that it had acknowledged."""
    runs = await asyncio.gather(*(asked(client, number) for number in range(count)))
    await asyncio.sleep(2.0)
    server.send_signal(signal.SIGKILL)
    server.wait()
    again = await asyncio.to_thread(start, workspace, url, port, workers)
    begun = time.monotonic()
    states = await asyncio.gather(*(followed(client, run) for run in runs), return_exceptions=True)
    lost = sum(state != "delivered" for state in states)
    why = "; ".join(sorted({repr(state) for state in states if state != "delivered"})[:3])
    return again, {"runs": count, "lost": lost, "why": why, "seconds": round(time.monotonic() - begun, 1)}


def large_file(path: Path, megabytes: int) -> Path:
    """A PDF of 400 pages: a paragraph on each, and a picture that nothing makes smaller."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    side = int((megabytes * 1_000_000 / 400 / 3) ** 0.5)
    canvas = Canvas(str(path), pageCompression=0)
    for page in range(400):
        for line in range(8):
            words = (
                f"Valve {page}-{line} at the works of Arden opens after {(page * 7 + line) % 59} minutes of settling."
            )
            canvas.drawString(72, 760 - 14 * line, words)
        noise = Image.frombytes("RGB", (side, side), os.urandom(side * side * 3))
        canvas.drawImage(ImageReader(noise), 72, 100, 400, 500)
        canvas.showPage()
    canvas.save()
    return path


def prepared(folder: Path) -> Path:
    """A workspace with documents in it."""
    sys.path.insert(0, str(Path(__file__).parent))
    from synthesis import document

    (folder / "documents").mkdir()
    for number in range(40):
        (folder / "documents" / f"report-{number:03}.md").write_text(document(number), encoding="utf-8")
    workspace = folder / "workspace"
    add = [sys.executable, "-m", "assay.cli.main", "add", str(folder / "documents"), "--workspace", str(workspace)]
    subprocess.run(add, check=True, capture_output=True)
    return workspace


async def measured(arguments: argparse.Namespace, url: str, folder: Path, workers: int) -> dict[str, Any]:
    workspace, count = prepared(folder), arguments.streams
    port = free_port()
    server = start(workspace, url, port, workers)
    pool = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    figures: dict[str, Any] = {}
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=LONG, limits=pool) as client:
            figures["streams"] = await streams(client, server.pid, count, workers)
            figures["slow"] = await slow(port, server.pid, await asked(client, 1), count)
            server, figures["restart"] = await restarted(client, workspace, url, port, server, count // 4, workers)
            if arguments.megabytes:
                file = large_file(folder / "large.pdf", arguments.megabytes)
                size = await asyncio.to_thread(lambda: file.stat().st_size)
                figures["upload"] = await upload(client, server.pid, file, size)
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
    if server.returncode:
        raise SystemExit(f"the server ended with {server.returncode}")
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2], help="processes that work on runs")
    parser.add_argument("--latency", type=float, default=3.0)
    parser.add_argument("--megabytes", type=int, default=200)
    add_out(parser)
    parser.add_argument("--model", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.model:
        return model(arguments.latency)
    figures: dict[str, Any] = {}
    for workers in arguments.workers:
        command = [sys.executable, __file__, "--model", "--latency", str(arguments.latency)]
        endpoint = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert endpoint.stdout is not None
        try:
            with tempfile.TemporaryDirectory() as name:
                url = endpoint.stdout.readline().strip()
                for part, found in asyncio.run(measured(arguments, url, Path(name), workers)).items():
                    figures.setdefault(part, {})[f"{workers} workers"] = found
        finally:
            endpoint.kill()
    print(json.dumps(figures, indent=2))
    write_result(arguments.out, figures)
    return None


if __name__ == "__main__":
    main()
