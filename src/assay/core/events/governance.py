"""Events for reviews of an answer and for workspace-wide changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.core.types import Answer, omitted_when_empty

WORKSPACE = "workspace"  # the chain of workspace-wide events


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
    """The answer is ready and needs a review. `seal` is the digest of exactly this answer: an approval is valid for
    that digest only. `four_eyes`: the asker may not decide."""

    answer: Answer
    seal: str
    reasons: tuple[str, ...]
    four_eyes: bool = False


@dataclass(frozen=True, slots=True)
class Edit:
    """A reviewer's change to a claim of the draft, by index; without text the claim is dropped."""

    place: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A reviewer decided on the answer with this seal. An edited answer is checked again and waits for review again."""

    decision: Decision
    seal: str
    by: str
    note: str = ""
    edits: tuple[Edit, ...] = ()


# Workspace-wide events, recorded in their own chain.


@dataclass(frozen=True, slots=True)
class Erased:
    """The payloads of these records were erased permanently: because of erased documents, an erased person, or age. Signed if
    any head was signed before: then nobody without the key can pretend that something was erased."""

    why: str
    by: str
    gone: tuple[str, ...] = ()  # documents
    records: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # run → positions of its erased records
    key: str = omitted_when_empty("")  # public
    signature: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class Granted:
    """A user or group (`user:…`, `group:…`) was granted or denied read access to a base or a document from here on."""

    what: str
    name: str
    may: bool
    by: str
    where: str = omitted_when_empty("")  # of a list for a pattern of locations: the id of the base, `/` and the pattern


class AccountChange(StrEnum):
    """What was changed about a person's account."""

    added = "added"
    removed = "removed"
    groups = "groups"
    administrator = "administrator"
    password = "password"
    key_added = "key added"
    key_removed = "key removed"
    linked = "sign-in linked"
    unlinked = "sign-in unlinked"
    handed_over = "handed over"  # everything they own and everything they asked


@dataclass(frozen=True, slots=True)
class AccountChanged:
    """A person's account, groups, rights or credentials were changed. Secrets are never recorded."""

    name: str  # `user:…`
    change: AccountChange
    by: str
    detail: str = omitted_when_empty(
        ""
    )  # the groups, the key's id, the provider's subject, yes or no, or who has it all now


@dataclass(frozen=True, slots=True)
class SettingChanged:
    """A setting of the workspace was changed in the browser. Of a secret it is recorded only whether it was set."""

    name: str
    before: str
    after: str
    by: str


class FeedbackKind(StrEnum):
    """What somebody says of an answer, or of one of its claims."""

    wrong = "wrong"
    incomplete = "incomplete"
    unclear = "unclear"
    helpful = "helpful"


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """The person who asked says what they make of an answer. Erased with the run that it is about."""

    run: str
    kind: FeedbackKind
    by: str
    claim: int | None = None  # its position in the answer, from 0; None: the whole answer
    words: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class DocumentEdited:
    """A person corrected what was found out about a document. Erased with the document."""

    what: str  # the document's id
    by: str
    title: str
    date: str = omitted_when_empty("")


@dataclass(frozen=True, slots=True)
class DocumentMarked:
    """A person switched a document off or on, or tagged it: how it stands from then on. Erased with the document."""

    what: str  # the document's id
    by: str
    off: bool = omitted_when_empty(False)
    tags: tuple[str, ...] = omitted_when_empty(())


WorkspaceEvent = Erased | Granted | AccountChanged | SettingChanged | FeedbackGiven | DocumentEdited | DocumentMarked


@dataclass(frozen=True, slots=True)
class Withheld:
    """Never recorded. Replaces an event that the viewer may not see or that was erased."""

    kind: str
    why: str
    progress: str = omitted_when_empty("")  # what may be said of it all the same: how much was done


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Access to a document that the run had found was withdrawn, or the document was erased. Events from `since` up
    to here no longer count, and later events do not depend on them."""

    since: int
    why: str = ""
