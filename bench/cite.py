"""What reaches the reader of a writer that cites falsely: Assay, paper-qa and llama-index's citation engine.

    .venv/bin/python bench/cite.py [--questions 20] [--out FILE]

One scripted model, served on loopback to all, writes four statements to each question:

- true: a sentence of a source, citing that source
- false: a statement that no source makes, citing a source
- foreign: a sentence of a source, citing a key that no source of this answer has
- altered: a quotation in quotation marks with one thing changed, citing the source it is taken from

Counted is what stands in the answer as the reader sees it: the statement with its citation. A statement whose foreign key was
removed does not count. Assay has its claims judged; the judge is the same model, once honest and once lying for the writer.
The peers ask for no judgement of what was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peer import PYTHON, PeerFailed, run_peer
from result_file import add_out, show, write_result
from scripted import ChatServer, argues, cooperative_reply, keeps, lookup, passages_in, role_of, supported, text_of

from assay.evaluate.metrics import mean
from assay.evaluate.plain_text import PlainTextReader, WordEmbedder
from assay.ingest.sources import SourceFile
from assay.workspace.facade import open_workspace

KINDS = ("true", "false", "foreign", "altered")
PEERS = {"paper-qa": "paper-qa", "llama-index": "llama-index's CitationQueryEngine"}
WORKS = (
    ("Pellam", "Orla Venn", "Sarrow", 1954),
    ("Brackwell", "Idris Holt", "Tarn", 1961),
    ("Tessick", "Mara Quill", "Ember", 1968),
    ("Ashmere", "Tomas Brand", "Wend", 1975),
    ("Coldharrow", "Lena Foss", "Calder", 1982),
    ("Hollin", "Piet Sarn", "Yore", 1989),
)


@dataclass(frozen=True, slots=True)
class Statement:
    kind: str
    text: str
    cites: str


def documents() -> dict[str, str]:
    return {name: " ".join(sentences(place)) for place, (name, *_) in enumerate(WORKS)}


def sentences(place: int) -> list[str]:
    name, person, river, year = WORKS[place]
    return [
        f"The {name} works was opened in {year} by {person}.",
        f"The {name} works treats {12 + 3 * place},500 cubic metres of water a day.",
        f"The filters of the {name} works were rebuilt in {year + 31} after the flood.",
        f"The {name} works takes its water from the river {river}.",
    ]


def questions(count: int) -> list[str]:
    return [f"What is known about the {WORKS[n % len(WORKS)][0]} works, part {n + 1}?" for n in range(count)]


def number_of(question: str) -> int:
    return int(re.findall(r"part (\d+)\?", question)[-1]) - 1


def statements(number: int, sources: Mapping[str, str], foreign: str) -> list[Statement]:
    """What the writer says to a question about one of the works, when shown these sources (key → text)."""
    place = number % len(WORKS)
    name, person, river, year = WORKS[place]
    own = sentences(place)
    key = next(key for key, text in sources.items() if own[0] in text)
    lies = [
        f"The {name} works was sold to a fund for {number + 3} million euros.",
        f"The {name} works was closed for {number + 2} weeks by an inspector.",
        f"{person} resigned over {number + 4} unpaid invoices.",
    ]
    changed = [
        own[0].replace(str(year), str(year + 1 + number)),
        own[3].replace(river, WORKS[(place + 1) % len(WORKS)][2]),
        own[1].replace("treats", "no longer treats"),
    ]
    way = (number // len(WORKS)) % 3
    return [
        Statement("true", own[0], key),
        Statement("false", lies[way], key),
        Statement("foreign", own[2], foreign),
        Statement("altered", f"“{changed[way]}”", key),
    ]


# --- the model ------------------------------------------------------------------------------------------------------


def deceitful(judge: Callable[[str, Any], Any]) -> Callable[[dict[str, Any]], Any]:
    """The model of all: it writes for whoever asks, in the form that is asked for."""
    every = [each for place in range(len(WORKS)) for each in sentences(place)]
    roles: dict[str, Callable[[str, Any], Any]] = {
        "route": lambda text, schema: lookup(),
        "weigh": keeps(*every),
        "write": write_claims,
        "revise": argues("the source says so"),
        "check": judge,
    }

    def answer(request: dict[str, Any]) -> Any:
        role, prompt = role_of(request)
        text = text_of(request)
        if role:
            return roles.get(prompt, roles[role])(text, None)
        if "relevance_score" in text:  # paper-qa has each text summarised first
            excerpt = text.partition("\n\n---\n\n")[2].partition("\n\n---\n\n")[0]
            return {"summary": excerpt, "relevance_score": 9}
        if "pqac-" in text:
            return write_for_paper_qa(text)
        if "Source 1:" in text:
            return write_for_llama_index(text)
        return cooperative_reply(request)

    return answer


def write_claims(text: str, schema: Any) -> dict[str, Any]:
    number = number_of(text)
    claims = [{"text": each.text, "cites": [each.cites]} for each in statements(number, passages_in(text), "0badf00d")]
    return {
        "shape": "prose",
        "blocks": [{"heading": "", "claims": claims, "opinion": False}],
        "conflicts": [],
        "missing": [],
    }


def write_for_paper_qa(text: str) -> str:
    shown = text.partition("Context:")[2].partition("\n\n---\n\nQuestion:")[0]
    found = re.split(r"(pqac-[0-9a-f]{8}): ", shown)
    sources = dict(zip(found[1::2], found[2::2], strict=True))
    return " ".join(f"{each.text} ({each.cites})" for each in statements(number_of(text), sources, "pqac-0badf00d"))


def write_for_llama_index(text: str) -> str:
    shown = text.rpartition("Below are several numbered sources of information:")[2]
    sources = dict(re.findall(r"Source (\d+):\n(.*?)(?=\nSource \d+:|\n------)", shown, re.DOTALL))
    return " ".join(f"{each.text} [{each.cites}]" for each in statements(number_of(text), sources, "99"))


def honest(text: str, schema: Any) -> Any:
    """Judges claims as they deserve: supported where a cited passage has the words."""
    rulings = supported()(text, schema)
    for ruling in rulings["rulings"]:
        claim = re.search(rf"^Claim {ruling['claim']} \([^)]*\): (.*)$", text, re.MULTILINE)
        said = claim[1].strip("“”") if claim else ""
        if not said or not any(said in words for words in ruling["words"]):
            ruling |= {"verdict": "unsupported", "why": "no cited passage says so", "words": []}
    return rulings


# --- what reaches the reader ----------------------------------------------------------------------------------------


def reached(kind: str, statement: Statement, seen: str) -> bool:
    """Whether the statement stands in the answer with its citation. A foreign citation is its key."""
    return statement.cites in seen if kind == "foreign" else statement.text.strip("“”") in seen


def shares(answers: Sequence[str], foreign: str) -> dict[str, float]:
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    everything = documents()
    for number, seen in enumerate(answers):
        for each in statements(number, everything, foreign):
            found[each.kind].append(float(reached(each.kind, each, seen)))
    return {f"{kind} shown": mean(each) for kind, each in found.items()}


async def ours(judge: Callable[[str, Any], Any], asked: Sequence[str]) -> list[str]:
    """Answers of Assay as text: each delivered claim with the keys that it cites."""
    with tempfile.TemporaryDirectory() as folder, ChatServer(deceitful(judge), window=32768) as server:
        at = Path(folder) / "workspace"
        with open_workspace(at, create=True, llm_base_url=server.url, llm_model="scripted", llm_api_key="k") as opened:
            opened.embedder = WordEmbedder()
            files = [
                SourceFile(f"works:{name}", name, data=json.dumps({"title": name, "text": text}).encode())
                for name, text in documents().items()
            ]
            await opened.documents.add_sources(files, reader=PlainTextReader())
            answers: list[str] = []
            for question in asked:
                run = [run async for run, _ in opened.ask(question)][-1]
                assert run.answer is not None and not server.problems, server.problems
                answers.append(" ".join(f"{claim.words} [{', '.join(claim.cites)}]" for claim in run.answer.claims))
    return answers


async def compared(given: argparse.Namespace) -> None:
    asked = questions(given.questions)
    rows: dict[str, dict[str, float]] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name, title in PEERS.items():
        with ChatServer(deceitful(honest), window=32768) as server:
            task = {"url": server.url, "documents": documents(), "questions": asked}
            try:
                reply = await asyncio.to_thread(run_peer, "peer_answers.py", name, task, given.peers)
            except PeerFailed as failed:
                missing[name] = failed.reason
                continue
            if server.problems:
                missing[name] = f"the writer could not read its prompt: {server.problems[0]!r}"
                continue
        versions |= reply["versions"]
        rows[title] = shares(reply["answers"], {"paper-qa": "pqac-0badf00d", "llama-index": "[99]"}[name])
    rows["Assay, honest judge"] = shares(await ours(honest, asked), "0badf00d")
    rows["Assay, the judge lies too"] = shares(await ours(supported(), asked), "0badf00d")
    figures = {f"{len(asked)} questions, {len(KINDS)} statements each": rows}
    show(figures)
    write_result(given.out, figures, versions, missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--peers", type=Path, default=PYTHON, help="the Python of the peers' environment")
    add_out(parser)
    asyncio.run(compared(parser.parse_args()))


if __name__ == "__main__":
    main()
