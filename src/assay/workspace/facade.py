"""The façade: open a workspace, then add, search, ask. The command line and the server use nothing else of this package."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.access import LOCAL, Principal, Scope
from assay.core.errors import Missing, UserError
from assay.core.events import Event, FeedbackGiven, FeedbackKind, SearchFilters
from assay.core.formats import format_named
from assay.core.settings import load_settings, secret
from assay.core.types import Document, Hit, LeftOut
from assay.ingest.parsed import file_limits
from assay.ingest.sources import SourceFile, find_sources
from assay.store import erasure
from assay.store.database import STATE, claim, open_store, state_address
from assay.workspace.context import PrincipalHolder, WorkspaceContext
from assay.workspace.types import AskOptions, SynthesisRequest

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from assay.answer.checking.trial import JudgeTrial
    from assay.core.access import Base
    from assay.core.run import Run
    from assay.core.settings import Settings
    from assay.core.synthesis import Synthesis
    from assay.governance.replay import Replay
    from assay.index.retrieve import SearchContext
    from assay.ingest.engine import DocumentReader
    from assay.ingest.parsed import PageBox
    from assay.ingest.pipeline import Progress
    from assay.ingest.readiness import Readiness
    from assay.models.capability import Capability
    from assay.models.embedder import Embedder
    from assay.models.llm import LLM
    from assay.store.access.offers import Offer
    from assay.store.database import Store
    from assay.store.documents import Entry
    from assay.store.threads import Thread
    from assay.synthesis.forecast import SynthesisForecast
    from assay.workspace.feedback import FeedbackItem
    from assay.workspace.model_connection import ModelConnection, ProposedModel
    from assay.workspace.review import ReviewService as ReviewService
    from assay.workspace.settings_change import SettingGroup
    from assay.workspace.suggest import Suggestion
    from assay.workspace.types import Access, ErasureReport, Steps, WorkForecast

DEFAULT_BASE = "default"


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
    context = WorkspaceContext(folder, settings, store, PrincipalHolder(principal))
    if erasure.is_unfinished(store):
        from assay.workspace.erase import finish_pending

        finish_pending(context)
    return Workspace(context)


@dataclass
class Workspace:
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
    def cache(self) -> Engine:
        return self.context.cache

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

    def with_settings(self, **changed: Any) -> Workspace:
        """The same workspace with other settings. Expensive parts are shared."""
        settings = self.settings.model_validate(dict(self.settings) | changed)
        return Workspace(replace(self.context, settings=settings))

    def close(self) -> None:
        self.context.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- documents --------------------------------------------------------------------------------------------------

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
        return await self.add_sources(
            find_sources([Path(path) for path in paths]), base, description=description, only_for=only_for, say=say
        )

    async def add_sources(
        self,
        files: Sequence[SourceFile],
        base: str = DEFAULT_BASE,
        *,
        description: str = "",
        only_for: Sequence[str] = (),
        say: Callable[[Progress], None] = lambda _: None,
        reader: DocumentReader | None = None,
    ) -> Readiness:
        """Make sources searchable. With `only_for` nobody else but the owner may read them. `reader` replaces the parsers."""
        from assay.workspace import documents

        return await documents.add_sources(
            self.context, files, base, description=description, only_for=only_for, say=say, reader=reader
        )

    async def sync(
        self, folder: Path | str, base: str = DEFAULT_BASE, *, say: Callable[[Progress], None] = lambda _: None
    ) -> tuple[Readiness, list[Entry]]:
        """Make the base agree with a folder: add new and changed files, remove those that are gone."""
        from assay.workspace import documents

        return await documents.sync(self.context, folder, base, say)

    async def remove(self, names: Sequence[str], base: str = "") -> list[Entry]:
        """Remove documents by path, file name, title or id, with everything that was stored of them."""
        from assay.workspace import documents

        return await documents.remove(self.context, names, base)

    async def edit_document(self, document: str, title: str | None = None, date: str | None = None) -> None:
        """Correct the title or the date of a document. Its owner only; it is recorded."""
        from assay.workspace import documents

        await documents.edit(self.context, document, title, date)

    def mark_document(
        self,
        document: str,
        off: bool | None = None,
        tags: Sequence[str] | None = None,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> Entry:
        """Switch a document off or on, set its tags, or add and remove some. Its owner only; it is recorded, and holds at
        once."""
        from assay.workspace import documents

        return documents.mark(self.context, document, off, tags, add, remove)

    def is_off(self, document: str) -> bool:
        """Whether a document is switched off."""
        from assay.store import document_list

        entry = document_list.entry(self.store, document, self.scope())
        return entry is not None and entry.off

    def citing_runs(self, document: str) -> list[Run]:
        """This person's answers that cite a document, newest first."""
        from assay.workspace import citing

        return citing.citing_runs(self.context, document)

    async def reindex(self, base: str = DEFAULT_BASE, *, say: Callable[[Progress], None] = lambda _: None) -> Readiness:
        """Rebuild the index of a base with the current settings, and read again what an earlier version read. The files are not
        needed, since texts and originals are stored."""
        from assay.workspace import documents

        return await documents.reindex(self.context, base, say)

    def outdated(self, bases: Sequence[str] = ()) -> str:
        """A sentence about documents of this person that a reindex would read or split otherwise; empty if there are none."""
        from assay.workspace.outdated import describe_outdated

        own = [base for base in self.scope(bases).bases if self.principal.owns(base)]
        return describe_outdated(self.context, own)

    def outdated_of_all(self) -> str:
        """The same about the documents of everybody: for the operator."""
        from assay.store.access import grants
        from assay.workspace.outdated import describe_outdated

        return describe_outdated(self.context, grants.every_base(self.store))

    async def tidy_indexes(self) -> int:
        """Optimise the indexes to which much was written. Returns their number."""
        from assay.workspace import documents

        return await documents.tidy_indexes(self.context)

    def backup(self, to: Path) -> int:
        from assay.workspace.move import backup_workspace

        return backup_workspace(self.context, to)

    async def copy_indexes(self, to: str) -> dict[str, int]:
        from assay.workspace.move import copy_indexes

        return await copy_indexes(self.context, to)

    async def drop_indexes(self) -> None:
        from assay.workspace.move import drop_indexes

        await drop_indexes(self.context)

    def copy_originals(self, to: str) -> int:
        from assay.workspace.move import copy_originals

        return copy_originals(self.context, to)

    def drop_originals(self) -> None:
        from assay.workspace.move import drop_originals

        drop_originals(self.context)

    def move_state(self, to: str) -> dict[str, int]:
        from assay.workspace.move import move_state_to

        return move_state_to(self.context, to)

    def named(self, name: str, scope: Scope) -> list[Entry]:
        """Documents with this name. One name may fit several; the name of a folder fits all files in it."""
        from assay.store.document_list import named
        from assay.store.documents import PENDING, READY, UNREADABLE, listing

        return named(name, listing(self.store, scope, READY, PENDING, UNREADABLE))

    def sources(self, bases: Sequence[str] = ()) -> list[Entry]:
        """Every document this person may read, and every file that could not be read."""
        return self.context.sources(bases)

    def document(self, document: str) -> Document | None:
        return self.context.document(document)

    def original(self, document: Document) -> bytes | None:
        """The bytes of the file as it was added."""
        with suppress(Missing), self.context.blobs.as_file(document.digest) as path:
            return path.read_bytes()
        return None

    async def boxes(self, document: str, start: int, end: int) -> list[PageBox]:
        """The location of a span on the pages of a PDF; empty for formats without fixed pages."""
        from assay.ingest.pdf.ocr import find_boxes

        found = self.document(document)
        data = self.original(found) if found and format_named(found.kind).page_images else None
        return await find_boxes(found, data, start, end, file_limits(self.settings)) if found and data else []

    async def search_context(self, scope: Scope) -> SearchContext:
        """What a search, or a tool, needs to look through the bases in `scope`."""
        return await self.context.search_context(scope)

    async def search(self, query: str, k: int = 10, where: SearchFilters | None = None) -> list[Hit]:
        """The k best passages for a query."""
        from assay.index.retrieve import retrieve
        from assay.index.search_filter import filter_for

        where = where or SearchFilters()
        scope = self.scope(where.bases)
        filtered = filter_for(where, lambda: self.context.traits(where.bases))
        return await retrieve(await self.search_context(scope), query, k, scope, filtered)

    def left_out(self, where: SearchFilters) -> LeftOut | None:
        """How many of the documents that this person may read a search with these limits leaves out; None without limits."""
        from assay.index.search_filter import count_left_out

        return count_left_out(where, lambda: self.context.traits(where.bases))

    # --- erasing and sharing ----------------------------------------------------------------------------------------

    async def erase(self, selected: Sequence[Entry], scope: Scope) -> ErasureReport:
        """Erase documents with all their versions and everything that was made of them."""
        from assay.workspace import erase

        return await erase.erase(self.context, selected, scope)

    async def erase_person(self, name: str, *, with_documents: bool = False, by: str = "") -> ErasureReport:
        """Erase a person's questions, answers and credentials. Their spending stays, without a name."""
        from assay.workspace import erase

        return await erase.erase_person(self.context, name, with_documents=with_documents, by=by)

    async def delete_base(self, name: str) -> ErasureReport:
        """Erase a knowledge base with everything in it."""
        from assay.workspace import erase

        return await erase.erase_base(self.context, self.context.require_owner(self.scope().named(name)))

    def base_access(self, name: str) -> Access:
        """Who may read a base. Only its owner may ask."""
        from assay.workspace import share

        return share.base_access(self.context, name)

    def document_access(self, document: str) -> Access:
        """Who may read a document. Only its owner may ask."""
        from assay.workspace import share

        return share.document_access(self.context, document)

    async def share_base(self, name: str, who: str, may: bool, by: str = "") -> Access:
        """Give a user or group access to a base, or revoke it."""
        from assay.workspace import share

        return share.share_base(self.context, name, who, may, by)

    async def share_document(self, document: str, who: str, may: bool, by: str = "") -> Access:
        """Give a user or group access to a document, or revoke it. The document has its own list of readers from
        then on."""
        from assay.workspace import share

        return await share.share_document(self.context, document, who, may, by)

    async def reset_document_access(self, document: str, by: str = "") -> Access:
        """Remove a document's own list of readers: the list of its base applies again."""
        from assay.workspace import share

        return await share.reset_document_access(self.context, document, by)

    def offers(self) -> list[Offer]:
        """Knowledge bases that others share with this person, and that they have not accepted."""
        from assay.store.access import offers

        return offers.listing(self.store, self.principal)

    def answer_offer(self, base: str, accepted: bool) -> Base:
        """Accept a shared knowledge base by its id; or decline it, or leave it."""
        from assay.store.access import offers

        return offers.answer(self.store, self.principal, base, accepted)

    def owned_document(self, document: str) -> tuple[Base, Entry]:
        """A document with its base, if this person owns it."""
        from assay.workspace import share

        return share.owned_document(self.context, document)

    # --- asking -----------------------------------------------------------------------------------------------------

    def ask(self, question: str, how: AskOptions | None = None, **given: Any) -> Steps:
        """Research a question. Each event is stored before it is yielded, with the run up to it. Options are given as
        `AskOptions` or as its fields: `ask(question, mode=Mode.quick)`."""
        from assay.workspace import ask

        return ask.ask(self.context, question, how or AskOptions(**given))

    def resume(self, run_id: str, choice: str = "", words: str = "") -> Steps:
        """Continue a run that was interrupted, has failed or waits for a choice. Recorded steps are not repeated."""
        from assay.workspace import ask

        return ask.resume(self.context, self.run(run_id), choice, words)

    def check_choice(self, run: Run, choice: str, words: str) -> None:
        """Raise a UserError unless `resume` would accept this choice."""
        from assay.workspace import ask

        ask.resumption(run, choice, words, self.principal.id)

    def record(self, run: Run, event: Event) -> Run:
        """Append an event to a run. Secrets in it are masked."""
        from assay.workspace import ask

        return ask.record(self.context, run, event)

    def run(self, run_id: str) -> Run:
        """A recorded run, with the text of the documents that this person may still read."""
        return self.context.run(run_id)

    def run_for_asker(self, run_id: str, run: Run | None = None) -> Run:
        """A recorded run as the person who asked may see it: without the draft, while a reviewer may have to approve
        it."""
        from assay.governance.reviewing import redact_run

        return redact_run(run or self.run(run_id), watched=self.may_need_review(run_id))

    def progress_line(self, run_id: str) -> str:
        """How far a run is, in numbers alone."""
        from assay.governance.reviewing import progress_line

        return progress_line(self.run(run_id))

    def chat(self, question: str, thread: str = "", how: AskOptions | None = None) -> Steps:
        """One turn of a conversation: in the given thread, or in a new one."""
        from assay.workspace import chat

        return chat.chat(self.context, question, thread, how or AskOptions())

    def threads(self, limit: int = 50) -> list[Thread]:
        """This person's conversations, the latest first."""
        from assay.store import threads

        return threads.listing(self.store, self.principal.id, limit)

    def thread(self, name: str) -> tuple[Thread, list[Run]]:
        """A conversation with its turns."""
        from assay.workspace import chat

        return chat.thread(self.context, name)

    def thread_page(self, name: str, before: str, limit: int) -> tuple[Thread, list[Run], int]:
        """A conversation with its latest turns, or those before a run; and how many are earlier still."""
        from assay.workspace import chat

        return chat.thread_page(self.context, name, before, limit)

    def suggest_questions(self) -> list[Suggestion]:
        """Questions to begin with, which the documents answer. No model is asked."""
        from assay.workspace import suggest

        return suggest.first_questions(self.context)

    def suggest_follow_ups(self, run: Run) -> list[Suggestion]:
        """Questions that could follow an answer, about the documents that it cites."""
        from assay.workspace import suggest

        return suggest.follow_ups(self.context, run)

    def give_feedback(self, run: Run, kind: FeedbackKind, claim: int | None = None, words: str = "") -> FeedbackGiven:
        """Record what the person who asked makes of an answer, or of one claim of it, by its position."""
        from assay.workspace import feedback

        return feedback.give(self.context, run, kind, claim, words)

    def feedback(self, *, everyone: bool = False, limit: int = 200) -> list[FeedbackItem]:
        """What this person said of answers, or what everyone did, newest first."""
        from assay.workspace import feedback

        return feedback.listing(self.context, everyone=everyone, limit=limit)

    def share_thread(self, thread: str, name: str, may: bool) -> list[str]:
        """Let a person or a group read a conversation of this person's, or no longer. Returns who may read it."""
        from assay.workspace import shared_threads

        return shared_threads.share(self.context, thread, name, may)

    def thread_readers(self, thread: str) -> list[str]:
        """Who else may read a conversation of this person's."""
        from assay.workspace import shared_threads

        return shared_threads.readers(self.context, thread)

    def shared_threads(self) -> list[Thread]:
        """Conversations that others share with this person."""
        from assay.workspace import shared_threads

        return shared_threads.listing(self.context)

    def shared_thread(self, thread: str) -> tuple[Thread, list[Run]]:
        """A conversation that somebody shares with this person, as far as they may read its documents."""
        from assay.workspace import shared_threads

        return shared_threads.shared_thread(self.context, thread)

    async def replay(self, run: Run) -> Replay:
        """Recompute a run from its record alone, and compare the two."""
        from assay.workspace import rerun

        return await rerun.replay_run(self.context, run)

    def branch(self, origin: Run, place: int, model: str = "") -> Steps:
        """A new run that begins with the events of another one before the step of record `place`."""
        from assay.workspace import rerun

        return rerun.branch(self.context, origin, place, model)

    def check_branch(self, origin: Run, place: int) -> None:
        """Raise a UserError unless a branch can begin at this record."""
        from assay.workspace import rerun

        rerun.first_of_step(origin, place)

    def check_model_name(self, model: str) -> str:
        """The name of the model, if a user may choose it: a model of the configured endpoint, or empty."""
        from assay.workspace import model_roles

        return model_roles.check_model_name(self.context, model)

    def with_model(self, model: str) -> Workspace:
        """The same workspace with this model in every role; unchanged if the name is empty."""
        from assay.workspace import model_roles

        return Workspace(model_roles.with_model(self.context, model))

    async def probe_model(self, llm: LLM, name: str) -> Capability:
        """Find out what a model's endpoint can do, and remember it."""
        from assay.workspace import model_roles

        return await model_roles.capability(self.context, llm, name, anew=True)

    def judge_summary(self) -> str:
        """How well the model judges claims, as it was measured; empty if it was not."""
        from assay.workspace import model_roles

        return model_roles.judge_summary(self.context)

    async def measure_judge(self, llm: LLM, name: str, can: Capability) -> JudgeTrial:
        """Measure how well a model judges claims, and remember it."""
        from assay.workspace import model_roles

        return await model_roles.judge_trial(self.context, llm, name, can, anew=True)

    def model_connection(self, proposed: ProposedModel | None = None) -> ModelConnection:
        """The connection to a language model, or what a proposed one would mean. Nothing is sent and nothing is changed."""
        from assay.workspace import model_connection

        return model_connection.connection(self.context, proposed)

    async def test_model(self, proposed: ProposedModel, agreed: Sequence[str] = ()) -> list[str]:
        """Try an endpoint with test sentences: what it can do, in words."""
        from assay.workspace import model_connection

        return await model_connection.test(self.context, proposed, tuple(agreed))

    def connect_model(self, proposed: ProposedModel, agreed: Sequence[str] = (), *, by: str = LOCAL.id) -> Workspace:
        """Store which model is asked, and the agreement to send text to its machine. Returns the workspace with it."""
        from assay.workspace import model_connection

        settings = model_connection.connect(self.context, proposed, tuple(agreed), by)
        return Workspace(replace(self.context, settings=settings))

    def disconnect_model(self, *, by: str = LOCAL.id) -> Workspace:
        """Go on without a model, and forget its key. Returns the workspace without it."""
        from assay.workspace import model_connection

        return Workspace(replace(self.context, settings=model_connection.disconnect(self.context, by)))

    # --- settings ---------------------------------------------------------------------------------------------------

    def setting_groups(self) -> tuple[SettingGroup, ...]:
        """The settings that an administrator can change in the browser, with their values."""
        from assay.workspace import settings_change

        return settings_change.setting_groups(self.context)

    def change_settings(self, wanted: Mapping[str, Any], *, by: str = LOCAL.id) -> Workspace:
        """Store these settings, and record each change. Returns the workspace with them."""
        from assay.workspace import settings_change

        return Workspace(replace(self.context, settings=settings_change.change(self.context, wanted, by)))

    # --- synthesis --------------------------------------------------------------------------------------------------

    def synthesise(self, documents: Sequence[str], request: SynthesisRequest | None = None) -> Steps:
        """Read these documents, by id, and write one account of them. `resume` continues it like any run."""
        from assay.workspace import synthesise

        return synthesise.synthesise(self.context, documents, request or SynthesisRequest())

    async def plan_synthesis(self, documents: Sequence[str], request: SynthesisRequest) -> SynthesisForecast:
        """What a synthesis is expected to take."""
        from assay.workspace import synthesise

        return await synthesise.plan(self.context, documents, request)

    def account(self, run_id: str) -> Synthesis:
        """The result of a synthesis."""
        from assay.workspace import synthesise

        return synthesise.account(self.context, self.run(run_id))

    # --- forecasts --------------------------------------------------------------------------------------------------

    def forecast_question(self, how: AskOptions) -> WorkForecast:
        """What a question is expected to take. No model is asked."""
        from assay.workspace import forecast

        return forecast.forecast_question(self.context, how)

    def forecast_files(self, files: Sequence[SourceFile], base: str) -> WorkForecast:
        """What adding these files is expected to take."""
        from assay.workspace import forecast

        return forecast.forecast_files(self.context, files, base)

    def record_added(self, expected: WorkForecast, report: Readiness) -> None:
        """Store a forecast of added files with what adding them took."""
        from assay.workspace import forecast

        forecast.record_added(self.context, expected, report)

    # --- review -----------------------------------------------------------------------------------------------------

    def reviews(
        self, *, admin: bool | None = None, principal_of: Callable[[str, str], Principal] | None = None
    ) -> ReviewService:
        """The reviews this person may do. `admin` says whether they are an administrator; `principal_of(run, name)`
        returns the current principal of a person who asked. By default both come from the store, as for the command
        line."""
        from assay.workspace import review

        return review.review_service(self.context, admin, principal_of)

    def may_need_review(self, run_id: str) -> bool:
        """Whether the answer of a run waits for a reviewer, or may still have to."""
        from assay.governance.reviewing import may_need_review

        return may_need_review(self.store, self.settings, run_id)

    def mark_for_review(self, base: str, *, on: bool) -> None:
        """Decide whether answers that use this base wait for a reviewer. Only its owner may do so."""
        from assay.workspace import review

        review.mark_base(self.context, base, on=on)

    async def notify_reviewers(self, seconds: float) -> int:
        """Notify the webhook of every waiting answer that it was not notified of yet. Returns their number."""
        from assay.workspace import review

        return await review.notify_reviewers(self.context, seconds)
