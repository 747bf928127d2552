"""What people decided about an answer, and what happened to the whole workspace. Part of the union in `events.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.types import Answer

WORKSPACE = "workspace"  # the chain of what happened to the whole of it


class Stakes(StrEnum):
    """What depends on an answer: where it is much, a person looks at it before it is delivered."""

    normal = "normal"
    high = "high"


class Decision(StrEnum):
    """What a reviewer makes of an answer that waits for them."""

    approve = "approve"
    edit = "edit"
    reject = "reject"


@dataclass(frozen=True, slots=True)
class AwaitingReview:
    """The answer is ready, and a person has to look at it first. `seal` is the digest of exactly this answer: an approval is
    for that and for nothing else. `four_eyes`: whoever asked cannot decide."""

    answer: Answer
    seal: str
    reasons: tuple[str, ...]
    four_eyes: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """A claim of the draft, by its place, as a reviewer wants it; without words it is dropped."""

    place: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A reviewer decided on the answer with this seal. What was edited is checked again and waits again."""

    decision: Decision
    seal: str
    by: str
    note: str = ""
    edits: tuple[Edit, ...] = ()


# What happened to the whole workspace; recorded in a chain of its own.


@dataclass(frozen=True, slots=True)
class Erased:
    """What these records said is gone, for good: with the documents it spoke of, with a person, or for its age."""

    why: str
    by: str
    gone: tuple[str, ...] = ()  # documents
    records: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of each run, which


@dataclass(frozen=True, slots=True)
class Granted:
    """From here on somebody (`user:…`, `group:…`) may read a knowledge base or a document, or may not any more."""

    what: str
    name: str
    may: bool
    by: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """Never recorded: it stands where somebody may not see, or nobody can see any more, what was recorded."""

    kind: str
    why: str


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Access to a document that the run had found was taken away, or the document was erased. What was recorded from `since`
    up to here counts no more, and nothing that follows knows of it."""

    since: int
    why: str = ""
