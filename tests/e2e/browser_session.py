"""A real server over a real workspace, a scripted model behind it, and a person in front of it in Debian's Chromium.

Whoever reads watches the browser as well: what it complains of, what fails, and what would leave the server. A test in which
any of that happens has failed, whatever it looked at.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from doubles import ChatServer, Script, role_of
from notes import filled, opened, until
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, ViewportSize, expect

from assay.serve.app import make_app
from assay.serve.process import ServerProcess, listen
from assay.serve.state import ServeOptions, Server
from assay.workspace.facade import Workspace

PHONE: ViewportSize = {"width": 390, "height": 844}
TABLET: ViewportSize = {"width": 820, "height": 1180}
LAPTOP: ViewportSize = {"width": 1280, "height": 860}
SCREENSHOTS = os.environ.get("ASSAY_SCREENSHOTS", "")
TWO_FRAMES = "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
WAIT = 15_000  # milliseconds within which whatever is bound to happen has happened, also on a slow machine
STARTING = (
    60_000  # the same for a first file, which waits for the parsers, and a first question, which waits for the models
)
expect.set_options(timeout=WAIT)

# What the browser says of its own when a test takes the network or the server away.
CUT_OFF = "net::ERR_(INTERNET_DISCONNECTED|CONNECTION_|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|NETWORK_CHANGED)"


def done(work: Coroutine[Any, Any, Any]) -> Any:
    """Asynchronous work done, also where playwright has a loop of its own in this thread."""
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(asyncio.run, work).result()


class Model:
    """A model that says what it is told to, by role, and not before it is let: `hold("write")` keeps those replies back."""

    def __init__(self) -> None:
        self.says: Callable[[Any], Any] = Script().answer
        self.held: frozenset[str] = frozenset()
        self.server = ChatServer(self.answer)

    def plays(self, script: Script | Callable[[Any], Any], hold: str = "") -> None:
        self.says = script.answer if isinstance(script, Script) else script
        self.held = frozenset(hold.split())

    def hold(self, *roles: str) -> None:
        self.held |= set(roles)

    def let(self, *roles: str) -> None:
        """These replies may go out now; without a name, all."""
        self.held = self.held - set(roles) if roles else frozenset()

    async def answer(self, request: dict[str, Any]) -> Any:
        while self.held & set(role_of(request)):  # noqa: ASYNC110  what lets it go on is in another thread
            await asyncio.sleep(0.01)
        return self.says(request)


class Desk:
    """A server in a thread. It can be closed and opened again at the same address, as somebody who restarts it would."""

    def __init__(
        self, folder: Path, model: Model | None = None, serving: ServeOptions | None = None, **flags: Any
    ) -> None:
        self.folder, self.model, self.serving, self.flags = folder, model, serving or ServeOptions(), flags
        self.meaning = False  # whether passages are embedded as they are for people, or by their words alone
        self.port = 0
        self.workspace: Workspace
        self.served: Server
        self._process: ServerProcess
        self._thread: threading.Thread

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        flags = {"serve_requests_per_minute": 0, "serve_runs_per_person": 0} | self.flags
        self.workspace = opened(self.folder, self.model.server if self.model else None, **flags)
        if self.meaning:
            self.workspace.context.parts.embedder = None
        self.served = server = Server(self.workspace, self.serving, grace=0.2)
        listening = listen("127.0.0.1", self.port)
        self.port = listening.getsockname()[1]
        self._process = ServerProcess(make_app(server), server)
        self._thread = threading.Thread(target=self._process.run, args=([listening],), daemon=True)
        self._thread.start()
        until(lambda: self._process.started or not self._thread.is_alive())
        assert self._process.started, "the server did not start"

    def close(self) -> None:
        self._process.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive(), "the server did not end"
        self.workspace.close()

    def api(self, path: str, **given: Any) -> Any:
        """What the API says at this path: the same that the page is made from."""
        method = given.pop("method", "POST" if "json" in given else "GET")
        reply = httpx.request(method, f"{self.url}{path}", timeout=30.0, **given)
        assert reply.status_code < 400, reply.text
        return reply.json() if "json" in reply.headers.get("content-type", "") else reply.text

    def sends(self, *files: Path, base: str = "default") -> None:
        """Files are added, and have been read."""
        sent = [("files", (file.name, file.read_bytes())) for file in files]
        job = self.api(f"/api/bases/{base}/documents", method="POST", files=sent)["id"]
        until(lambda: self.api(f"/api/jobs/{job}")["state"] not in {"waiting", "running"}, 60)

    def document(self, words: str) -> str:
        """The id of a document that goes by these words."""
        return self.api("/api/documents", params={"q": words})["documents"][0]["id"]

    def run(self, run: str) -> Any:
        return self.api(f"/api/runs/{run}")


@contextmanager
def desk(
    folder: Path,
    texts: Mapping[str, str] | None = None,
    model: Model | None = None,
    serving: ServeOptions | None = None,
    *,
    meaning: bool = False,
    **flags: Any,
) -> Iterator[Desk]:
    """A desk over these texts, with this model if there is one."""
    if texts is not None:
        done(filled(folder, texts))
    made = Desk(folder, model, serving, **flags)
    made.meaning = meaning
    if model:
        model.server.start()
    made.open()
    try:
        yield made
    finally:
        if model:
            model.let()
        made.close()
        if model:
            model.server.close()


def desk_fixtures(texts: Mapping[str, str]) -> tuple[Any, Any]:
    """Fixtures `model` and `served` for a module: a desk over these texts."""

    @pytest.fixture(scope="module")
    def model() -> Model:
        return Model()

    @pytest.fixture(scope="module")
    def served(model: Model, tmp_path_factory: pytest.TempPathFactory, _plain_environment: None) -> Iterator[Desk]:
        with desk(tmp_path_factory.mktemp("desk") / "workspace", texts, model) as opened:
            yield opened

    return model, served


class Reader:
    """A person at the page, who notices everything that a browser has against it."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.url = url
        self.complaints: list[str] = []
        self.strangers: list[str] = []
        self.asked: list[str] = []  # paths that were asked for, in order
        self._foreseen: list[str] = []
        self.context = browser.new_context(**{"viewport": LAPTOP, "reduced_motion": "reduce"} | context)
        self.context.set_default_timeout(WAIT)
        self.context.route(re.compile(rf"^(?!{re.escape(url)}/)(?!blob:)(?!data:)"), self._stranger)
        self.page = self.context.new_page()
        self._listen(self.page)

    def _listen(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("requestfailed", self._failed)
        page.on("request", lambda request: self.asked.append(request.url.removeprefix(self.url)))
        page.on("dialog", self._dialog)
        page.on("popup", lambda other: self.complaints.append(f"popup: {other.url}"))

    def _said(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.complaints.append(f"console: {said.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _stranger(self, route: Any) -> None:
        self.strangers.append(route.request.url)
        route.abort()

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the page itself has let go of it: a stream, a picture out of sight
            self.complaints.append(f"failed: {request.url} {request.failure}")

    def foresees(self, *patterns: str) -> None:
        """What the browser may say, since the test brings it about."""
        self._foreseen += patterns

    def leaves(self) -> None:
        """In the end nothing was wrong, and nothing was asked of anybody else."""
        self.page.close()
        self.context.close()
        wrong = [each for each in self.complaints if not any(re.search(known, each) for known in self._foreseen)]
        assert not wrong, wrong
        assert not self.strangers, self.strangers

    # --- what a person does -----------------------------------------------------------------------------------------

    def goes(self, hash: str = "#/") -> Page:
        self.page.goto(f"{self.url}/{hash}")
        return self.page

    def asks(self, question: str) -> Locator:
        """The turn that a question begins."""
        many = self.turns.count()
        self.page.get_by_label("Your question").fill(question)
        self.page.get_by_role("button", name="Ask", exact=True).click()
        expect(self.turns).to_have_count(many + 1)
        return self.turns.nth(many)

    @property
    def turns(self) -> Locator:
        return self.page.get_by_role("article", name="Question and answer")

    def run_of(self, turn: Locator) -> str:
        return turn.get_attribute("data-run") or ""

    def picture(self, name: str) -> None:
        if SCREENSHOTS:
            folder = Path(SCREENSHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=folder / f"page-{name}.png")

    def pictures(self, name: str) -> None:
        """The same at three widths, and in the dark."""
        if not SCREENSHOTS:
            return
        was = self.page.viewport_size
        for width, size in (("phone", PHONE), ("tablet", TABLET), ("desktop", LAPTOP)):
            self.page.set_viewport_size(size)
            self.page.evaluate(TWO_FRAMES)
            self.picture(f"{name}-{width}")
        self.page.emulate_media(color_scheme="dark")
        self.page.evaluate(TWO_FRAMES)
        self.picture(f"{name}-dark")
        self.page.emulate_media(color_scheme="null")
        if was:
            self.page.set_viewport_size(was)

    # --- what is true of every screen -------------------------------------------------------------------------------

    def fits(self) -> None:
        """Nothing sticks out at the side: the page does not scroll that way."""
        over = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, f"the page is {over} pixels too wide at {self.page.url}"

    def accessible(self, where: str) -> None:
        """Axe finds nothing serious."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        wrong = [
            f"{where}: {each['id']} at {node['target']}: {node['html'][:160]} {node.get('failureSummary', '')}"
            for each in found
            if each["impact"] in {"serious", "critical"}
            for node in each["nodes"]
        ]
        assert not wrong, "\n".join(wrong)
