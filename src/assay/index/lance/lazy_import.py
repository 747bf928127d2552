"""Imports lancedb without its client for remote catalogues, which is never used here and costs a second per start.

lancedb imports its REST client (hundreds of generated models) at the top. Placeholder modules replace it during the import
and are removed afterwards. If lancedb should ever need the real client to load, it gets it.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

REMOTE = ("lance_namespace", "lance_namespace_urllib3_client")


class _Placeholder(ModuleType):
    """A module in which every name is an empty class."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []  # makes it a package

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (Exception,), {})
        setattr(self, name, made)
        return made


class _Finder:
    """A meta path finder for the placeholders only."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        here = name.partition(".")[0] in REMOTE
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if here else None  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def load_lancedb() -> ModuleType:
    """lancedb, imported with placeholders unless it, or its client, is already imported."""
    if "lancedb" in sys.modules or any(name in sys.modules for name in REMOTE):
        return importlib.import_module("lancedb")
    finder = _Finder()
    sys.meta_path.insert(0, finder)  # type: ignore[arg-type]
    try:
        loaded = importlib.import_module("lancedb")
    except Exception:
        _forget(("lancedb", *REMOTE))
        sys.meta_path.remove(finder)  # type: ignore[arg-type]
        return importlib.import_module("lancedb")
    sys.meta_path.remove(finder)  # type: ignore[arg-type]
    _forget(REMOTE)
    return loaded


def _forget(packages: Sequence[str]) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
