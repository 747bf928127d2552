"""The readiness report: what can be asked about now, what cannot, and what to do about it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.ingest.parsed import Status


@dataclass(frozen=True, slots=True)
class FileReport:
    """The result for one file. `outcome`: added, replaced, unchanged, moved, duplicate, finished, or failed."""

    path: str
    status: str
    outcome: str
    pages: int = 0
    characters: int = 0
    passages: int = 0
    why: str = ""
    title: str = ""
    language: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Readiness:
    """The result of a whole ingestion; `--json` prints it."""

    base: str
    workspace: str
    files: tuple[FileReport, ...]
    readable: int
    unreadable: int
    duplicates: int
    pages: int
    characters: int
    passages: int
    languages: Mapping[str, int]
    warnings: tuple[str, ...]
    seconds: float
    embedded: int


def summarise_files(
    base: str,
    workspace: str,
    files: Sequence[FileReport],
    known_languages: Sequence[str],
    seconds: float,
    embedded: int,
) -> Readiness:
    """Summarise the files. `known_languages` are those the embedder was trained on; empty if unknown."""
    good = [file for file in files if file.status == Status.read and file.outcome != "duplicate"]
    languages = Counter(file.language for file in good if file.language)
    return Readiness(
        base=base,
        workspace=workspace,
        files=tuple(files),
        readable=len(good),
        unreadable=sum(file.status != Status.read for file in files),
        duplicates=sum(file.outcome == "duplicate" for file in files),
        pages=sum(file.pages for file in good),
        characters=sum(file.characters for file in good),
        passages=sum(file.passages for file in good),
        languages=dict(languages.most_common()),
        warnings=tuple(language_warnings(languages, known_languages)),
        seconds=round(seconds, 3),
        embedded=embedded,
    )


def language_warnings(languages: Mapping[str, int], known: Sequence[str]) -> list[str]:
    unknown = {language: count for language, count in languages.items() if known and language not in known}
    return [
        f"{count} {'document is' if count == 1 else 'documents are'} in {language!r}, which the embedder was not trained on: "
        "search by meaning will be weak there, search by words still works. Set `embedder` to a multilingual model."
        for language, count in unknown.items()
    ]
