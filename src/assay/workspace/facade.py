"""The door: open a workspace, then add, search, ask. Everything else is done by the services that a workspace holds; each is
imported when it is first used. The command line and the server use nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.access import LOCAL, Principal
from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.settings import Settings, load_settings, secret
from assay.core.types import Hit
from assay.ingest.sources import find_sources
from assay.store import erasure
from assay.store.access import rights
from assay.store.database import STATE, claim, open_store, state_address
from assay.workspace.context import WorkspaceContext
from assay.workspace.types import DEFAULT_BASE, AskOptions, check_length

if TYPE_CHECKING:
    from assay.ingest.pipeline import Progress
    from assay.ingest.readiness import Readiness
    from assay.workspace.services.documents import Documents
    from assay.workspace.services.models import Models
    from assay.workspace.services.people import People
    from assay.workspace.services.questions import Questions
    from assay.workspace.services.rechecks import Rechecks
    from assay.workspace.services.records import Records
    from assay.workspace.services.reviews import Reviews as Reviews
    from assay.workspace.services.serving import Figures, Jobs, Underway, Watches
    from assay.workspace.services.setup import Setup
    from assay.workspace.services.syntheses import Syntheses
    from assay.workspace.services.threads import Threads
    from assay.workspace.types import Steps


def default_workspace() -> Path:
    """$ASSAY_WORKSPACE, or a folder in the user's data directory."""
    import platformdirs

    given = os.environ.get("ASSAY_WORKSPACE")
    return Path(given) if given else Path(platformdirs.user_data_dir("assay", appauthor=False)) / "workspace"


def has_workspace(folder: Path) -> bool:
    """Whether there is a workspace: its state is in a file there, or its settings name a server."""
    return (folder / STATE).is_file() or bool(secret(load_settings(folder).state))


def open_workspace(
    path: Path | str | None = None, *, create: bool = False, principal: Principal = LOCAL, **flags: Any
) -> Workspace:
    """The workspace in `path`, for one person. `flags` are settings that override environment and file."""
    folder = Path(path).expanduser() if path else default_workspace()
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{str(folder)!r} is a file; a workspace is a folder.")
    settings = load_settings(folder, flags)
    if create:
        claim(folder, state_elsewhere=bool(settings.state))
    store = open_store(state_address(folder, secret(settings.state)), create=create)
    opened = Workspace(folder, settings, store, principal)
    rights.note_found(store)
    if erasure.is_unfinished(store):
        opened.records.finish_pending()
    return opened


class Workspace(WorkspaceContext):
    """Documents, their index and the runs over them, for one person; and what can be done with them, by kind. A service is
    named as its class, and made when it is first used."""

    documents: Documents
    figures: Figures
    jobs: Jobs
    models: Models
    people: People
    questions: Questions
    rechecks: Rechecks
    records: Records
    reviews: Reviews
    setup: Setup
    syntheses: Syntheses
    threads: Threads
    underway: Underway
    watches: Watches

    def __getattr__(self, name: str) -> Any:
        if name not in Workspace.__annotations__:
            raise AttributeError(f"A workspace has no {name!r}.", name=name, obj=self)
        module = "serving" if name in ("figures", "jobs", "underway", "watches") else name
        service = getattr(import_module(f"assay.workspace.services.{module}"), name.capitalize())(self)
        setattr(self, name, service)
        return service

    @property
    def context(self) -> WorkspaceContext:
        """The workspace as its services see it."""
        return self

    def with_settings(self, settings: Settings | None = None, **changed: Any) -> Workspace:
        """The same workspace with other settings. Expensive parts are shared."""
        wanted = settings or self.settings.model_validate(dict(self.settings) | changed)
        return replace(self, settings=wanted)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def add(
        self,
        paths: Sequence[Path | str],
        base: str = DEFAULT_BASE,
        *,
        description: str = "",
        only_for: Sequence[str] = (),
        say: Callable[[Progress], None] = lambda _: None,
    ) -> Readiness:
        """Make files and folders searchable. Unchanged files cost nothing; an interrupted add is continued. With `only_for`
        (`user:…`, `group:…`) nobody else but the owner may read them."""
        files = find_sources([Path(path) for path in paths])
        return await self.documents.add_sources(files, base, description=description, only_for=only_for, say=say)

    async def search(self, query: str, k: int = 10, where: SearchFilters | None = None) -> list[Hit]:
        """The k best passages for a query."""
        check_length(query.strip())
        from assay.index.retrieve import retrieve
        from assay.index.search_filter import filter_for

        where = where or SearchFilters()
        scope = self.scope(where.bases)
        filtered = filter_for(where, lambda: self.traits(where.bases))
        return await retrieve(await self.search_context(scope), query, k, scope, filtered)

    def ask(self, question: str, how: AskOptions | None = None, **given: Any) -> Steps:
        """Research a question. Each event is stored before it is yielded, with the run up to it. Options are given as
        `AskOptions` or as its fields: `ask(question, mode=Mode.quick)`."""
        from assay.workspace.services import ask

        return ask.ask(self, question, how or AskOptions(**given))

    def resume(self, run_id: str, choice: str = "", words: str = "") -> Steps:
        """Continue a run that was interrupted, has failed or waits for a choice. Recorded steps are not repeated."""
        from assay.workspace.services import ask

        return ask.resume(self, self.run(run_id), choice, words)

    def chat(self, question: str, thread: str = "", how: AskOptions | None = None) -> Steps:
        """One turn of a conversation: in the given thread, or in a new one."""
        return self.threads.chat(question, thread, how or AskOptions())
