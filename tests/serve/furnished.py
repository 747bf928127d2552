"""A server with something of everything behind it, made through its own API: documents (one of them a PDF), a base that is
empty, runs that were delivered, wait, are held for a reviewer, have failed and were stopped, a synthesis, a conversation, a
job; and somebody else.

with furnished(folder) as (at, real), at.client() as client:
    client.get(f"/api/documents/{real.document}")
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from notes import filled
from serving import QUESTION, Served, served, until

from assay.core.access import LOCAL, Principal
from assay.core.events import Asked, Failed
from assay.evaluate.grading import Graded
from assay.evaluate.user_cases import keep_evaluation
from assay.serve.state import Server
from assay.store.access import grants, members
from assay.store.runs import records, reviews

EVALUATION = "cases.csv"
PDF = Path(__file__).parents[2] / "samples" / "corpus" / "nitrate-probe-drift-study.pdf"  # with a table


@dataclass(frozen=True, slots=True)
class Real:
    """What there is, by id."""

    bases: tuple[str, ...]
    document: str  # a text
    other: str  # another
    pdf: str
    delivered: str
    waiting: str
    failed: str
    cancelled: str
    stopped: str  # another that was cancelled, which no list of ids holds
    held: str
    seal: str  # of the answer that is held
    synthesis: str
    thread: str
    job: str
    person: str  # somebody else
    offered: str  # the id of a knowledge base that somebody else offers

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.delivered, self.waiting, self.failed, self.cancelled, self.synthesis)

    def ids(self, path: str = "") -> dict[str, tuple[str, ...]]:
        """By the name that a path has for them: a `name` is a person's among people, and a `run` under review is held."""
        return {
            "name": self._names(path),
            "document": (self.document, self.pdf),
            "run": (self.held,) if path.startswith("/api/reviews/") else self.runs,
            "thread": (self.thread,),
            "job": (self.job,),
            "model": ("assay", *(f"assay-quick/{base}" for base in self.bases)),
            "n": ("1",),
            "a": self.runs,
            "b": self.runs,
            "base": (self.offered,),
            "key": ("0123456789abcdef",),  # nobody's: one's own is only ever taken back, see `spare`
            "kind": ("runs",),
            "identity": ("0123456789abcdef",),  # nobody's, as a key
            "watch": ("w0123456789abcdef",),
        }

    def _names(self, path: str) -> tuple[str, ...]:
        if path.startswith("/api/people/"):
            return (self.person,)
        return (EVALUATION,) if path.startswith("/api/evaluations/") else self.bases

    def path(self, path: str) -> str:
        """A path of the OpenAPI document with something real in each of its places."""
        return path.format(**{name: ids[0] for name, ids in self.ids(path).items()})


@contextmanager
def furnished(folder: Path, **flags: Any) -> Iterator[tuple[Served, Real]]:
    """A server for one person, with something of everything."""
    asyncio.run(filled(folder, {}))
    with served(folder, **flags) as at, at.client() as client:
        yield at, furnish(client, at.server, LOCAL)


def furnish(client: httpx.Client, server: Server, who: Principal, base: str = "reports") -> Real:
    """One of each, through the API; what only happens when something breaks is put on record by hand."""
    made(client.post("/api/bases", json={"name": base, "description": "What was reported."}))
    files = [
        ("files", ("tower.txt", b"The tower of the lighthouse at Carrow Point is 31 metres tall. It leans a little.")),
        ("files", ("shore/lamp.txt", b"The lamp room at Carrow Point is painted with orpiment, which is poisonous.")),
        ("files", ("drift.pdf", PDF.read_bytes())),
        ("files", ("noise.pdf", b"%PDF-1.7 and nothing that follows")),
    ]
    job = made(client.post(f"/api/bases/{base}/documents", files=files))["id"]
    until(lambda: client.get(f"/api/jobs/{job}").json()["state"] in {"done", "failed"}, 60)
    found = {each["name"]: each for each in client.get("/api/documents", params={"base": base}).json()["documents"]}
    document, other, pdf = (found[name]["id"] for name in ("tower.txt", "lamp.txt", "drift.pdf"))
    waiting = ask(client, checkpoints=["sources"])
    assert waiting["state"] == "waiting", waiting
    talked = ask(client, talk=True)
    held = ask(client, stakes="high")
    assert held["state"] == "held", held
    review = reviews.latest(server.workspace.store, held["id"])
    assert review is not None
    synthesis = made(client.post("/api/synthesis", json={"documents": [document, other], "questions": 1}))["run"]
    until(lambda: client.get(f"/api/runs/{synthesis}").json()["state"] not in {"running"}, 60)
    graded = Graded("1", "How tall is the tower?", (), talked["id"], "answered", "31 metres", "31", {"right": 1.0})
    keep_evaluation(server.workspace.path, EVALUATION, [("assay", "balanced mode", [graded])])
    return Real(
        bases=(base,),
        document=document,
        other=other,
        pdf=pdf,
        delivered=talked["id"],
        waiting=waiting["id"],
        failed=broken(server, who, "ModelError"),
        cancelled=broken(server, who, "cancelled"),
        stopped=broken(server, who, "cancelled"),
        held=held["id"],
        seal=review.seal,
        synthesis=synthesis,
        thread=talked["thread"],
        job=job,
        person=members.add(server.workspace.store, "colleague").name,
        offered=offered(server, who),
    )


def offered(server: Server, who: Principal) -> str:
    """A knowledge base that somebody else offers."""
    store = server.workspace.store
    base = grants.get_or_create_base(store, "of a neighbour", Principal("neighbour"))
    grants.share(store, base, f"user:{who.id}", by="neighbour")
    return base.id


def destroys(method: str, path: str) -> bool:
    """Whether what an operation names is gone after it. A list of readers is not: it is its base's again."""
    return path.endswith("/erase") or (method == "DELETE" and not path.endswith("/access"))


def spare(client: httpx.Client) -> dict[str, tuple[str, ...]]:
    """What may be deleted without being missed, by the name that a path has for it; `erased` is another document, and
    `person` somebody."""
    made(client.post("/api/bases", json={"name": "spare"}))
    files = [("files", ("spare.txt", b"Nobody needs this.")), ("files", ("other.txt", b"Nobody needs that either."))]
    job = made(client.post("/api/bases/spare/documents", files=files))["id"]
    until(lambda: client.get(f"/api/jobs/{job}").json()["state"] == "done", 60)
    document, other = client.get("/api/documents", params={"base": "spare"}).json()["documents"]
    thread = ask(client, talk=True)["thread"]
    person = made(client.post("/api/people", json={"name": "leaver"}))["name"]
    ids = {"name": ("spare",), "document": (document["id"],), "erased": (other["id"],), "thread": (thread,)}
    if client.get("/api/me").json()["auth"] == "keys":  # else nobody has one
        ids["key"] = (made(client.post("/api/keys", json={"label": "spare"}))["id"],)
    return {**ids, "person": (person,)}


def made(reply: httpx.Response) -> Any:
    assert reply.is_success, reply.text
    return reply.json()


def ask(client: httpx.Client, **wish: Any) -> Any:
    return made(client.post("/api/ask", json={"question": QUESTION, **wish}))


def broken(server: Server, who: Principal, why: str) -> str:
    """A run that got no further than its question."""
    store = server.workspace.store
    run = records.begin(store, who.id)
    records.append(store, run, 0, Asked(QUESTION, who.id, "2026-01-01"))
    records.append(store, run, 1, Failed(why, "The endpoint did not answer."))
    return run


def operations(described: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every operation of an OpenAPI document: method, path, and what it says of it."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if method in {"get", "post", "put", "patch", "delete", "head", "options", "trace"}:
                yield method.upper(), path, operation
