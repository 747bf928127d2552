"""The account of a synthesis as files, and a short summary: location, contents, cost."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import typer

from assay.cli import follow
from assay.cli.follow import Show
from assay.cli.run_view import spent
from assay.cli.synthesis_view import related
from assay.cli.terminal import as_json, plain
from assay.core.errors import UserError
from assay.core.events.describe import count_of
from assay.core.private_files import write_private
from assay.core.run import Run
from assay.core.synthesis import Pipeline, RelationType, Synthesis
from assay.core.types import Document
from assay.synthesis.render import html, markdown
from assay.workspace.facade import Workspace
from assay.workspace.stored import records
from assay.workspace.synthesis_forecast import SynthesisForecast, cost_in_words, lasting

DATA, TEXT, PAGE = "account.json", "account.md", "account.html"
CONTRADICTIONS = 5  # printed; the files contain all


def folder_of(run: Run, out: Path | None) -> Path:
    return out.expanduser() if out else Path(f"assay-account-{run.id}")


def check_folder(folder: Path, run: str = "") -> None:
    """Raise early if the folder contains other files or another account."""
    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{str(folder)!r} is a file; --out takes a folder.")
    if folder.exists() and any(folder.iterdir()) and not (run and _run_in(folder) == run):
        raise UserError(f"{str(folder)!r} has other files in it. Name a new folder with --out.")


def _run_in(folder: Path) -> str:
    """The run whose account is in a folder; empty if there is none or it is unreadable."""
    try:
        return str(json.loads((folder / DATA).read_text(encoding="utf-8")).get("run", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def save(account: Synthesis, folder: Path, document: Callable[[str], Document | None]) -> None:
    """Write page, text and data. Each is written atomically, the data first, since it identifies the folder's run."""
    check_folder(folder, account.run)
    files = {
        DATA: as_json(account) + "\n",
        TEXT: plain(markdown(account, document)),
        PAGE: plain(html(account, document)),
    }
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, words in files.items():
            write_private(folder / name, words.encode("utf-8"))
    except OSError as error:
        raise UserError(
            f"The account cannot be written to {str(folder)!r}: {error.strerror}. "
            f"Nothing is lost: `assay resume {account.run} --out DIR` writes it elsewhere."
        ) from error


def end(
    opened: Workspace, run: Run, show: Show, out: Path | None, expected: SynthesisForecast | None = None
) -> typer.Exit:
    """Write the account if the synthesis was delivered, print a message, and return the exit code."""
    if run.answer is None:
        return follow.end(opened, run, show)
    account = opened.syntheses.account(run.id)
    folder = folder_of(run, out)
    save(account, folder, opened.documents.get)
    if not show.json:
        lines = (
            [str(folder)]
            if show.quiet
            else [*summary_lines(account), *usage_lines(opened, run, expected), *file_lines(folder, run)]
        )
        if not show.quiet and sys.stderr.isatty():
            typer.echo(err=True)  # separates the view and the result
        typer.echo(plain("\n".join(lines)))
    return typer.Exit(follow.EXIT[run.answer.outcome])


def summary_lines(account: Synthesis) -> list[str]:
    """A short summary of the result."""
    labels = account.labels
    titles = {each.doc_id: each.title for each in account.documents}
    covered = [row for row in account.ledger if row.claims]
    counts = (
        count_of(len(account.questions), "question"),
        count_of(len(account.evidence), "quotation"),
        count_of(len(account.narrative.claims), "claim"),
    )
    lines = [f"{len(covered)} of {count_of(len(account.ledger), 'document')} covered: {', '.join(counts)}."]
    lines += [
        f"  {labels[row.doc_id]} {titles.get(row.doc_id, '')} is left out: {row.reason or 'no claim rests on it'}"
        for row in account.ledger
        if not row.claims
    ]
    return [*lines, *_relations(account), *(f"Note: {note}" for note in account.notes)]


def _relations(account: Synthesis) -> list[str]:
    """The number of relations of each kind, and each contradiction."""
    if account.brief.pipeline is not Pipeline.synthesis:
        return []
    types = Counter(str(each.type) for each in account.relations)
    if not types:
        return ["No relations found that words on both sides bear out."]
    kinds = ", ".join(f"{count} {name}" for name, count in types.most_common())
    return [f"Relations: {kinds}.", *_contradictions(account)]


def _contradictions(account: Synthesis) -> list[str]:
    found = [each for each in account.relations if each.type is RelationType.contradiction]
    if not found:
        return ["No contradictions found."]
    more = [f"  and {len(found) - CONTRADICTIONS} more, in the files"] if len(found) > CONTRADICTIONS else []
    shown = [f"  {related(each, account.labels).removeprefix('contradiction ')}" for each in found[:CONTRADICTIONS]]
    return [f"{count_of(len(found), 'contradiction')}:", *shown, *more]


def usage_lines(opened: Workspace, run: Run, expected: SynthesisForecast | None) -> list[str]:
    """The actual usage beside the forecast."""
    parts = [*([spent(run)] if run.asked.has_model else []), lasting(records.active_seconds(opened.store, run.id))]
    text = f"It took {' · '.join(parts)}"
    return [f"{text}; the forecast was {cost_in_words(expected)}." if expected else f"{text}."]


def file_lines(folder: Path, run: Run) -> list[str]:
    return [
        f"Written to {folder.resolve()}:",
        f"  {PAGE}  to read, in a browser",
        f"  {TEXT}    to read, as text",
        f"  {DATA}  for programs",
        f"`assay trace {run.id}` shows every step.",
    ]
