"""Somebody with a name and a key of their own who knows the source and every id there is, and asks for anything."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from doubles.fill import FillPolicy, fill
from worlds import EDITOR, QUESTION, READER, World, asked, operations

from assay.agent.tool import Parameter, ToolContext, parameters_of
from assay.agent.toolbox import TOOLS
from assay.core.codec import dumps, to_json
from assay.core.errors import AssayError
from assay.core.events import Checkpoint, Mode, SearchFilters
from assay.core.types import Document
from assay.serve.mcp_tools import DocumentTools
from assay.serve.mcp_tools import ToolError as MCPError
from assay.store.access import grants, offers
from assay.store.runs import history
from assay.workspace.types import AskOptions

LEFT_OUT = re.compile(
    r"/(original|pictures|page/\d+|pages)|^/metrics|^/api/session|^/v1/"
)  # bytes of files have a test of their own
DEAR = re.compile(r"^/api/(ask|runs|synthesis|forecast)$|/(rerun|ask-again|resume|choice|replay|forecast)$")


@dataclass
class Attack:
    """The reader, who knows every id there is, and takes whatever comes next by chance."""

    made: World
    random: random.Random
    routes: list[tuple[str, str, dict[str, Any]]]
    schemas: dict[str, Any]
    runs: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)

    def word(self, name: str = "") -> str:
        """Something to put into a place: an id or a name that there is, whosever it is, or nothing at all."""
        documents, marks = list(self.made.marks), list(self.made.marks.values())
        of = {
            "document": documents,
            "run": self.runs,
            "a": self.runs,
            "b": self.runs,
            "thread": self.threads,
            "name": ["shared", "private", "own", "editor", "reader"],
            "base": ["shared", "private", "own"],
        }
        some = of.get(name) or [*documents, *marks, *self.runs, "shared", "private", "tower", QUESTION, "user:reader"]
        return self.random.choice(some) if self.random.random() < 0.95 else "d0123456789abcdef"

    def said(self, path: tuple[str, ...], stored: bool) -> str:
        """What stands in a field. In what is kept, the attacker's own words must not be taken for a leak later on."""
        name = path[-1].rstrip("s") if path else ""
        if stored and name not in ("document", "thread", "base"):
            return self.random.choice(["tower", "Carrow Point", QUESTION, "user:reader", "group:desk"])
        return self.word(name)

    def body(self, schema: dict[str, Any], stored: bool = False) -> Any:
        policy = FillPolicy(
            pick=lambda options, path: self.random.choice(list(options)),
            flag=lambda path: self.random.random() < 0.2,
            count=lambda low, high, path: min(high, low + self.random.randrange(2)),
            number=lambda low, high, path: self.random.choice([low, min(high, low + 3)]),
            words=lambda path: self.said(path, stored),
            wants=lambda path: self.random.random() < 0.4,
        )
        return fill({**schema, "$defs": self.schemas}, policy)

    def request(self) -> tuple[str, str, dict[str, Any]]:
        """Some operation that there is, with whatever it takes."""
        cheap = [each for each in self.routes if not DEAR.search(each[1])]
        method, path, operation = self.random.choice(cheap if self.random.random() < 0.93 else self.routes)
        place = re.sub(r"\{(\w+)\}", lambda at: self.word(at[1]), path)
        query = {
            each["name"]: self.body(each["schema"])
            for each in operation.get("parameters", ())
            if each["in"] == "query" and (each.get("required") or self.random.random() < 0.3)
        }
        query = {name: value for name, value in query.items() if value is not None and not isinstance(value, dict)}
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        more: dict[str, Any] = {"params": query}
        if content:
            more["json"] = self.body(content["schema"], stored=not path.endswith("/search"))
            if isinstance(more["json"], dict) and "model" in more["json"]:
                more["json"]["model"] = False
        return method, place, more

    async def route(self) -> None:
        method, place, more = self.request()
        reply = await self.made.ask(method, place, **more)
        assert reply.status_code != 500, (method, place, more, reply.text)
        self.held(f"{method} {place}", f"{reply.headers}\n{text_of(reply)}", f"{place} {more}")

    async def function(self) -> None:
        """What the command line stands on, as the reader."""
        seen, word = self.made.as_(READER), self.word()
        document, run, thread, name = (self.word(each) for each in ("document", "run", "thread", "name"))
        some: list[Callable[[], Any]] = [
            lambda: seen.search(self.random.choice([QUESTION, word]), 20),
            lambda: seen.search(QUESTION, 20, SearchFilters(sources=(word,))),
            lambda: [to_json(each) for each in seen.documents.listing()],
            lambda: seen.documents.named(word, seen.scope()),
            lambda: seen.documents.get(document),
            lambda: seen.documents.original(Document(document, "", "", "0" * 64, "", "")),
            lambda: seen.questions.run(run),
            lambda: seen.syntheses.account(run),
            lambda: seen.threads.get(thread),
            lambda: history.history(seen.store, "reader", seen.scope(), 50),
            lambda: seen.people.document_access(document),
            lambda: seen.people.base_access(name),
        ]
        await self.told("a function", self.random.choice(some), f"{word} {document} {run} {thread} {name}")

    async def tool(self) -> None:
        """What a model that obeys the attacker can call, with whatever arguments."""
        seen = self.made.as_(READER)
        search_context = await seen.context.search_context(seen.scope())
        tool_context = ToolContext(search_context, seen.scope, today="2026-03-01")
        name = self.random.choice(sorted(TOOLS))
        tool = TOOLS[name]
        given = {each.name: self.argument(each) for each in parameters_of(tool.body)}
        await self.told(name, lambda: tool(tool_context, given), dumps(given))

    def argument(self, of: Parameter) -> Any:
        schema = of.type.json_schema()
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        known = {"integer": 1, "number": 1.0, "boolean": True, "array": [self.word(), self.word()]}
        if schema.get("type") == "integer":
            return min(20, schema.get("maximum", 20))
        return known.get(schema.get("type", ""), self.word(of.name))

    async def mcp(self) -> None:
        """The tools of an agent elsewhere, which comes with the reader's key."""

        async def done(work: Any) -> Any:
            return await work

        reach = DocumentTools(lambda _: self.made.as_(READER), done, lambda *_: pytest.fail("nothing is asked here"))
        word = self.word()
        some: list[Callable[[], Any]] = [
            lambda: reach.search(None, query=self.random.choice([QUESTION, word]), k=20),
            lambda: reach.sources(None, base=self.random.choice(["", "shared", "private"])),
            lambda: reach.sources(None, words=word),
            lambda: reach.read(None, document=word),
        ]
        await self.told("an MCP tool", self.random.choice(some), word)

    async def told(self, what: str, ask: Callable[[], Any], given: str) -> None:
        try:
            found = ask()
            found = await found if isinstance(found, Awaitable) else found
        except (AssayError, MCPError) as error:
            found = str(error)
        self.held(what, repr(found), given)

    async def asks(self) -> None:
        run = await asked(
            self.made.as_(READER), self.random.choice([QUESTION, "Who wants the tower pulled down?"]), mode=Mode.quick
        )
        self.runs.append(run)

    async def access_changes(self) -> None:
        """The editor gives and takes; half of the time the index has not heard of it."""
        document = self.random.choice([each for each, mark in self.made.marks.items() if "own" not in mark])
        name, may = self.random.choice(["user:reader", "user:reader", "group:desk"]), self.random.random() < 0.4
        if self.random.random() < 0.3:
            shared = next(base for base in self.made.as_(EDITOR).scope().bases if base.name == "shared")
            if (name in grants.shared_with(self.made.workspace.store, shared)) != may:
                (grants.share if may else grants.stop_sharing)(self.made.workspace.store, shared, name, "editor")
            return
        self.made.set_access(document, name, may)
        if self.random.random() < 0.05:
            for base in self.made.as_(EDITOR).scope().bases:
                await self.made.as_(EDITOR).people.update_index(base)

    def held(self, what: str, told: str, given: str) -> None:
        """Nothing of what may not be read is in it, but for what the attacker has brought along."""
        for word, document in self.made.forbidden(READER).items():
            if word in told and word not in given:
                self.leaks.append(f"{what} gave {word} of {document}: {told[max(0, told.index(word) - 200) :][:400]}")

    async def sequence(self) -> None:
        for _ in range(self.random.randint(3, 6)):
            step = self.random.choices(
                [self.route, self.function, self.tool, self.mcp, self.access_changes, self.asks], [60, 10, 7, 7, 15, 1]
            )[0]
            await step()


def text_of(reply: httpx.Response) -> str:
    """What a reply says; of an archive, what its files say."""
    if reply.headers.get("content-type") != "application/zip":
        return reply.text
    with zipfile.ZipFile(io.BytesIO(reply.content)) as packed:
        return "\n".join(packed.read(name).decode(errors="replace") for name in packed.namelist())


async def furnished(made: World, seed: int) -> Attack:
    """Runs and conversations from when the reader could read everything: a look at what they show is half of the attack."""
    described = (await made.ask("GET", "/openapi.json")).json()
    routes = [each for each in operations(described) if not LEFT_OUT.search(each[1])]
    attack = Attack(made, random.Random(seed), routes, described.get("components", {}).get("schemas", {}))
    shared = next(base for base in made.as_(EDITOR).scope().bases if base.name == "shared")
    grants.share(made.workspace.store, shared, "user:reader", "editor")
    offers.answer(made.workspace.store, READER, shared.id, True)
    seen = made.as_(READER)
    attack.runs.append(await asked(seen))
    attack.runs.append(await asked(seen, checkpoints=(Checkpoint.sources,)))
    thread = ""
    for question in (QUESTION, "And who keeps it?"):
        told = seen.chat(question, thread, AskOptions(model=False, today="2026-03-01", mode=Mode.quick))
        run = [run async for run, _ in told][-1]
        thread = run.asked.thread
        attack.runs.append(run.id)
    attack.threads.append(thread)
    theirs = await asked(made.as_(EDITOR))
    attack.runs.append(theirs)
    return attack
