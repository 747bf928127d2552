"""Who may read what, as a value. Every read takes a `Scope`; only the store makes one, for one person, at one moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from assay.core.errors import Missing


@dataclass(frozen=True, slots=True)
class Principal:
    """A person, and the groups they are in."""

    id: str
    groups: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Everything that a grant to this person may be written to."""
        return frozenset({f"user:{self.id}"} | {f"group:{group}" for group in self.groups})

    def owns(self, base: Base) -> bool:
        """Whether they may fill and empty a base: it is theirs, or that of a group they are in."""
        return base.owner == self.id or base.owner in {f"group:{group}" for group in self.groups}


LOCAL = Principal("local")  # the one person on a laptop


@dataclass(frozen=True, slots=True)
class Base:
    """A knowledge base: a named set of documents, and a border that nothing crosses."""

    id: str
    name: str
    owner: str  # a person's name, or `group:` and a group's
    description: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The bases and labels that a person may read now. A document is readable when both its base and its label are."""

    principal: str
    bases: tuple[Base, ...]
    labels: frozenset[str]

    def allows(self, base: str, label: str) -> bool:
        return label in self.labels and any(base == each.id for each in self.bases)

    def named(self, name: str) -> Base:
        """The base with this name. What is not there and what is not yours look the same."""
        for base in self.bases:
            if base.name == name:
                return base
        known = ", ".join(sorted(base.name for base in self.bases)) or "none yet; `assay add` makes one"
        raise Missing(f"There is no knowledge base called {name!r}. There is: {known}.")

    def narrowed(self, names: Iterable[str]) -> Scope:
        """Only these bases; nothing can be widened this way."""
        chosen = tuple(self.named(name) for name in dict.fromkeys(names))
        return replace(self, bases=chosen) if chosen else self
