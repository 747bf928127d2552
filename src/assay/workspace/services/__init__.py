"""What can be done with a workspace, by kind. Each service is imported when it is first used, so that a question does not load
what only a server needs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from assay.core.settings import Settings
    from assay.store.database import Store
    from assay.workspace.context import WorkspaceContext
    from assay.workspace.services.documents import Documents
    from assay.workspace.services.models import Models
    from assay.workspace.services.people import People
    from assay.workspace.services.questions import Questions
    from assay.workspace.services.records import Records
    from assay.workspace.services.reviews import Reviews
    from assay.workspace.services.serving import Figures, Jobs, RunsUnderWay
    from assay.workspace.services.setup import Setup
    from assay.workspace.services.syntheses import Syntheses
    from assay.workspace.services.threads import Threads


class Services:
    """What a workspace holds."""

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

    @cached_property
    def documents(self) -> Documents:
        from assay.workspace.services.documents import Documents

        return Documents(self.context)

    @cached_property
    def questions(self) -> Questions:
        from assay.workspace.services.questions import Questions

        return Questions(self.context)

    @cached_property
    def threads(self) -> Threads:
        from assay.workspace.services.threads import Threads

        return Threads(self.context)

    @cached_property
    def reviews(self) -> Reviews:
        from assay.workspace.services.reviews import Reviews

        return Reviews(self.context)

    @cached_property
    def syntheses(self) -> Syntheses:
        from assay.workspace.services.syntheses import Syntheses

        return Syntheses(self.context)

    @cached_property
    def people(self) -> People:
        from assay.workspace.services.people import People

        return People(self.context)

    @cached_property
    def records(self) -> Records:
        from assay.workspace.services.records import Records

        return Records(self.context)

    @cached_property
    def models(self) -> Models:
        from assay.workspace.services.models import Models

        return Models(self.context)

    @cached_property
    def setup(self) -> Setup:
        from assay.workspace.services.setup import Setup

        return Setup(self.context)

    @cached_property
    def jobs(self) -> Jobs:
        from assay.workspace.services.serving import Jobs

        return Jobs(self.context)

    @cached_property
    def underway(self) -> RunsUnderWay:
        from assay.workspace.services.serving import RunsUnderWay

        return RunsUnderWay(self.context)

    @cached_property
    def figures(self) -> Figures:
        from assay.workspace.services.serving import Figures

        return Figures(self.context)
