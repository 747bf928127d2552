"""The door: open a workspace, then add, search, ask. Everything else is done by the services that a workspace holds; each is
imported when it is first used. The command line and the server use nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.access import LOCAL, Principal, Scope
from assay.core.errors import UserError
from assay.core.events import SearchFilters
from assay.core.settings import Settings, load_settings, secret
from assay.core.types import Hit
from assay.ingest.sources import find_sources
from assay.store import erasure
from assay.store.database import STATE, claim, open_store, state_address
from assay.workspace.context import PrincipalHolder, WorkspaceContext
from assay.workspace.types import DEFAULT_BASE, AskOptions

if TYPE_CHECKING:
    from assay.ingest.pipeline import Progress
    from assay.ingest.readiness import Readiness
    from assay.models.embedder import Embedder
    from assay.store.database import Store
    from assay.workspace.services.documents import Documents
    from assay.workspace.services.models import Models
    from assay.workspace.services.people import People
    from assay.workspace.services.questions import Questions
    from assay.workspace.services.records import Records
    from assay.workspace.services.reviews import Reviews as Reviews
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
    opened = Workspace(WorkspaceContext(folder, settings, store, PrincipalHolder(principal)))
    if erasure.is_unfinished(store):
        opened.records.finish_pending()
    return opened


class Services:
    """What can be done with a workspace, by kind. A service is named as its module, and made when it is first used."""

    documents: Documents
    models: Models
    people: People
    questions: Questions
    records: Records
    reviews: Reviews
    setup: Setup
    syntheses: Syntheses
    threads: Threads

    def __getattr__(self, name: str) -> Any:
        if name not in Services.__annotations__:
            raise AttributeError(f"A workspace has no {name!r}.", name=name, obj=self)
        service = getattr(import_module(f"assay.workspace.services.{name}"), name.capitalize())(self.context)
        setattr(self, name, service)
        return service


@dataclass
class Workspace(Services):
    """Documents, their index and the runs over them, for one person."""

    context: WorkspaceContext

    @property
    def path(self) -> Path:
        return self.context.path

    @property
    def settings(self) -> Settings:
        return self.context.settings

    @property
    def store(self) -> Store:
        return self.context.store

    @property
    def principal(self) -> Principal:
        return self.context.principal

    @principal.setter
    def principal(self, principal: Principal) -> None:
        """The same person in other groups. Runs that are under way notice it too."""
        self.context.session.principal = principal

    @property
    def embedder(self) -> Embedder:
        return self.context.embedder

    @embedder.setter
    def embedder(self, embedder: Embedder) -> None:
        """Use this embedder instead of the one that the settings name."""
        self.context.parts.embedder = embedder

    def scope(self, bases: Sequence[str] = ()) -> Scope:
        """What this person may read now, limited to `bases` if any are named."""
        return self.context.scope(bases)

    def for_principal(self, principal: Principal) -> Workspace:
        """The same workspace for another person. Expensive parts are shared."""
        return Workspace(self.context.for_principal(principal))

    def with_settings(self, settings: Settings | None = None, **changed: Any) -> Workspace:
        """The same workspace with other settings. Expensive parts are shared."""
        wanted = settings or self.settings.model_validate(dict(self.settings) | changed)
        return Workspace(replace(self.context, settings=wanted))

    def close(self) -> None:
        self.context.close()

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
        from assay.index.retrieve import retrieve
        from assay.index.search_filter import filter_for

        where = where or SearchFilters()
        scope = self.scope(where.bases)
        filtered = filter_for(where, lambda: self.context.traits(where.bases))
        return await retrieve(await self.context.search_context(scope), query, k, scope, filtered)

    def ask(self, question: str, how: AskOptions | None = None, **given: Any) -> Steps:
        """Research a question. Each event is stored before it is yielded, with the run up to it. Options are given as
        `AskOptions` or as its fields: `ask(question, mode=Mode.quick)`."""
        from assay.workspace.services import ask

        return ask.ask(self.context, question, how or AskOptions(**given))

    def resume(self, run_id: str, choice: str = "", words: str = "") -> Steps:
        """Continue a run that was interrupted, has failed or waits for a choice. Recorded steps are not repeated."""
        from assay.workspace.services import ask

        return ask.resume(self.context, self.context.run(run_id), choice, words)

    def chat(self, question: str, thread: str = "", how: AskOptions | None = None) -> Steps:
        """One turn of a conversation: in the given thread, or in a new one."""
        return self.threads.chat(question, thread, how or AskOptions())
