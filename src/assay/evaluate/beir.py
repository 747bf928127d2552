"""Labelled retrieval collections in the BEIR layout: corpus.jsonl, queries.jsonl, qrels/SPLIT.tsv."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.core.errors import UserError

Judgements = Mapping[str, Mapping[str, int]]  # query → document → grade


@dataclass(frozen=True, slots=True)
class BeirDocument:
    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class BeirCollection:
    """Documents, and the queries that have relevance judgements."""

    name: str
    documents: tuple[BeirDocument, ...]
    queries: Mapping[str, str]
    judgements: Judgements


def load(folder: Path, split: str = "") -> BeirCollection:
    """Load a collection from its folder. Queries without judgements are left out."""
    if not folder.is_dir():
        raise UserError(f"There is no folder {str(folder)!r}.")
    documents = tuple(
        BeirDocument(str(row["_id"]), str(row.get("title") or ""), str(row.get("text") or ""))
        for row in _read_jsonl(folder / "corpus.jsonl", "_id")
    )
    judgements = _read_judgements(_qrels_file(folder, split))
    queries = {str(row["_id"]): str(row["text"]) for row in _read_jsonl(folder / "queries.jsonl", "_id", "text")}
    judged = {
        query: queries[query] for query in queries if any(grade > 0 for grade in judgements.get(query, {}).values())
    }
    if not documents or not judged:
        raise UserError(f"{str(folder)!r} has no documents, or no queries with judgements.")
    return BeirCollection(folder.resolve().name, documents, judged, judgements)


def _qrels_file(folder: Path, split: str) -> Path:
    names = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    selected = split or ("test" if "test" in names else next(iter(names), ""))
    if selected not in names:
        raise UserError(
            f"{str(folder / 'qrels')!r} has no split {selected!r}. There is: {', '.join(names) or 'nothing'}."
        )
    return names[selected]


def _read_jsonl(file: Path, *needed: str) -> Iterator[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    try:
                        row = json.loads(line)
                    except json.JSONDecodeError as error:
                        raise UserError(f"{str(file)!r}, line {number}: not JSON ({error.msg}).") from error
                    missing = [name for name in needed if not isinstance(row, dict) or name not in row]
                    if missing:
                        raise UserError(f"{str(file)!r}, line {number}: it has no {missing[0]!r}.")
                    yield row
    except FileNotFoundError as error:
        raise UserError(f"{str(file)!r} is missing: this is not a collection in the BEIR layout.") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{str(file)!r} is not UTF-8.") from error


def _read_judgements(file: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        parts = line.split("\t")
        if len(parts) >= 3 and parts[-1].strip().lstrip("-").isdecimal():
            query, document, grade = parts[0].strip(), parts[-2].strip(), int(parts[-1])
            found.setdefault(query, {})[document] = grade
    return found
