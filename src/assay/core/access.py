"""Read access as a value. Every read takes a `Scope`. Only `store/access/grants.py` makes one for a person, as of
now; ingest makes one for the document that it writes or removes."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from assay.core.errors import Missing


@dataclass(frozen=True, slots=True)
class Principal:
    """A user and the groups they belong to."""

    id: str
    groups: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All grantee names that apply to this user."""
        return frozenset({f"user:{self.id}"} | {f"group:{group}" for group in self.groups})

    def owns(self, base: Base) -> bool:
        """Whether the user may add and remove documents: they, or one of their groups, own the base."""
        return base.owner == self.id or base.owner in {f"group:{group}" for group in self.groups}


LOCAL = Principal("local")  # the single user of a local workspace
_ALIKE = str.maketrans(
    "оοсϲаαӏіi1|", "ooccaalllll"
)  # letters of other alphabets and signs that look like those of `local`


def looks_local(name: str) -> bool:
    """Whether somebody reads this name as that of the command line: in capitals, full width or other alphabets."""
    return unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE) == LOCAL.id


@dataclass(frozen=True, slots=True)
class Base:
    """A knowledge base: a named set of documents and an isolation boundary."""

    id: str
    name: str
    owner: str  # a user name, or `group:` plus a group name
    description: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The bases and labels that a user may read now. A document is readable when both its base and its label are."""

    principal: str
    bases: tuple[Base, ...]
    labels: frozenset[str]

    def allows(self, base: str, label: str) -> bool:
        return label in self.labels and any(base == each.id for each in self.bases)

    def find(self, name: str) -> Base | None:
        """The base with this id or, if there is none, with this name."""
        found = [base for base in self.bases if base.id == name] or [base for base in self.bases if base.name == name]
        return found[0] if found else None

    def named(self, name: str) -> Base:
        """The base with this id or name. Raises the same error for a missing base and for one the user may not read."""
        base = self.find(name)
        if base is not None:
            return base
        known = ", ".join(sorted(base.name for base in self.bases)) or "none yet; `assay add` makes one"
        raise Missing(f"There is no knowledge base called {name!r}. There is: {known}.")

    def narrowed(self, names: Iterable[str]) -> Scope:
        """The scope restricted to these bases; it can never be widened this way."""
        selected = tuple(self.named(name) for name in dict.fromkeys(names))
        return replace(self, bases=selected) if selected else self
