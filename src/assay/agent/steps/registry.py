"""All steps by name. A step only yields events. Each has its own file, with its rules and its prompt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum, auto

from assay.agent.context import RunContext
from assay.agent.steps.call import call
from assay.agent.steps.check import check
from assay.agent.steps.compact import compact
from assay.agent.steps.decide import decide
from assay.agent.steps.deliver import deliver
from assay.agent.steps.draft import draft
from assay.agent.steps.edit import edit
from assay.agent.steps.gather import gather
from assay.agent.steps.hop import hop
from assay.agent.steps.judge import judge
from assay.agent.steps.pause import pause
from assay.agent.steps.plan import plan
from assay.agent.steps.recall import recall
from assay.agent.steps.reopen import reopen
from assay.agent.steps.rephrase import rephrase
from assay.agent.steps.revise import revise
from assay.agent.steps.route import route
from assay.agent.steps.seek import seek
from assay.agent.steps.sift import sift
from assay.agent.steps.stop import stop
from assay.agent.steps.summarise import summarise
from assay.core.events import Event
from assay.core.run import Run


class Step(Enum):
    SUMMARISE = auto()
    REPHRASE = auto()
    ROUTE = auto()
    RECALL = auto()
    PLAN = auto()
    DECIDE = auto()
    CALL = auto()
    HOP = auto()
    SIFT = auto()
    GATHER = auto()
    JUDGE = auto()
    COMPACT = auto()
    STOP = auto()
    PAUSE = auto()
    DRAFT = auto()
    CHECK = auto()
    SEEK = auto()
    REVISE = auto()
    REOPEN = auto()
    EDIT = auto()
    DELIVER = auto()


STEPS: Mapping[Step, Callable[[Run, RunContext], AsyncIterator[Event]]] = {
    Step.SUMMARISE: summarise,
    Step.REPHRASE: rephrase,
    Step.ROUTE: route,
    Step.RECALL: recall,
    Step.PLAN: plan,
    Step.DECIDE: decide,
    Step.CALL: call,
    Step.HOP: hop,
    Step.SIFT: sift,
    Step.GATHER: gather,
    Step.JUDGE: judge,
    Step.COMPACT: compact,
    Step.STOP: stop,
    Step.PAUSE: pause,
    Step.DRAFT: draft,
    Step.CHECK: check,
    Step.SEEK: seek,
    Step.REVISE: revise,
    Step.REOPEN: reopen,
    Step.EDIT: edit,
    Step.DELIVER: deliver,
}
