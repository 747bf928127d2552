"""Every place of a workspace that holds words of documents, or what was made of them: an erasure reaches each, and a test fills
each, erases, and looks through all. A new table or file is listed here, or there as one without such words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select

from assay.core.codec import dumps
from assay.core.private_files import write_private
from assay.store.blobs import ORIGINALS, UPLOADS
from assay.store.database import FORMER_STATES, STATE, Store
from assay.store.dialect import among
from assay.store.schema import SAME_RECORD, payloads, records

EVALUATIONS = "evaluations"


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A place by its tables, its files in the workspace's folder, or what the setting of this name says."""

    name: str
    tables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    setting: str = ""


TEXT_PLACES = (
    TextPlace("texts, titles and tables of documents", tables=("documents", "texts", "tables")),
    TextPlace("what runs recorded", tables=("payloads",)),
    TextPlace("reports of uploads", tables=("job_files",)),
    TextPlace("comments of reviewers", tables=("reviews",)),
    TextPlace("the state as a file, with its write-ahead log", files=(STATE, f"{STATE}-*"), setting="state"),
    TextPlace("states from before an upgrade or a move", files=FORMER_STATES),
    TextPlace("the search index", files=("index/**/*",), setting="index"),
    TextPlace("vectors by content", files=("cache.db", "cache.db-*")),
    TextPlace("originals", files=(f"{ORIGINALS}/**/*",), setting="blobs"),
    TextPlace("files that wait to be read", files=(f"{UPLOADS}/**/*",), setting="blobs"),
    TextPlace("results of evaluations", files=(f"{EVALUATIONS}/*.json",)),
)


def scrub_evaluations(store: Store, folder: Path) -> None:
    """Delete the words of evaluated cases whose runs were erased, in part or as a whole; their figures stay."""
    for file in sorted((folder / EVALUATIONS).glob("*.json")):
        try:
            kept = json.loads(file.read_text("utf-8"))
            results = [each for side in kept["sides"] for each in side["results"]]
            erased = _erased(store, {each["run"] for each in results})
            changed = [each for each in results if each["run"] in erased and any(each[name] for name in _WORDS)]
            for each in changed:
                each |= dict.fromkeys(_WORDS, "")
        except (ValueError, KeyError, TypeError):  # not a file of results: nobody knows what it holds
            file.unlink(missing_ok=True)
            continue
        if changed:
            write_private(file, dumps(kept).encode())


_WORDS = ("question", "answer", "expected")


def _erased(store: Store, runs: set[str]) -> set[str]:
    missing = select(records.c.run).outerjoin(payloads, SAME_RECORD).where(payloads.c.run.is_(None))
    return set(store.scalars(missing.where(among(records.c.run, runs)).distinct()))
