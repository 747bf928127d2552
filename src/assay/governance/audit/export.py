"""Exports a run as a bundle that can be checked with Python alone: its records, the quoted words, and the proof that
it is part of the signed head. It contains nothing that the exporting person may not read."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from assay import __version__, prompts
from assay.answer import citations, render
from assay.answer.claim_details import shown_details
from assay.core.access import Scope
from assay.core.codec import START, Texts, digest, dumps, to_json
from assay.core.errors import Missing, StoreError, UserError
from assay.core.events import Asked, Event, ModelReplied, Reviewed, Withheld
from assay.core.events.upgrade import read_event
from assay.core.run import Run
from assay.core.settings import Settings
from assay.core.types import Usage, file_name
from assay.governance.audit.check import MANIFEST, PROOF, QUOTATIONS, RECORDS, SIGNATURE, references
from assay.governance.audit.witness import AuditContext, audit_context, seal
from assay.store import documents
from assay.store.database import Store
from assay.store.runs import budgets, seals
from assay.store.runs.chains import RecordRow, stored_run
from assay.store.runs.seals import Seal

WHEN = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip; the records contain the actual times
README = """A run of Assay, as it was recorded. To check it, with nothing but Python:

    python3 check.py {name}.zip

It checks every record against the one before it, what each says against its digest, each quotation against the digest that
the record has of it, and the signed head of all records; and it says who signed. Compare that key with the one that
`assay audit key` prints where the run was made, or with `--key`.

manifest.json     what is in here: run, models, costs, documents, prompts, decisions; the digest of every file. Signed.
records.jsonl     the chain: a line for each record
payloads/         what each record says; words of documents stand in it by place and digest
quotations.jsonl  those words
proof.json        the signed head, and the digests between the run's last record and it
prompts/          the prompts that models were asked with, as version {version} of Assay has them
answer.md         the answer, for reading
"""


def export_bundle(store: Store, folder: Path, settings: Settings, run: Run, scope: Scope) -> bytes:
    """The bundle of a run as a zip file. `run` is given as a person with this scope may see it. A new head is signed if the run
    has records after the last one."""
    if run.held or run.rejected:
        raise UserError(
            f"Run {run.id} was not delivered: a reviewer has it, or has rejected it. There is nothing to export."
        )
    context = audit_context(store, folder, settings)
    with store.read() as connection:
        rows, _ = stored_run(connection, run.id)
    if not rows:
        raise Missing(f"There is no run called {run.id!r}. `assay runs` lists them.")
    files = dict(_files(context, run, scope, rows))
    payloads = {row.seq: json.loads(row.body) for row in rows if row.body and _name(row) in files}
    manifest = {
        "format": "assay-bundle",
        "version": 1,
        "assay": __version__,
        "run": run.id,
        "made": store.now(),
        "key": context.signer.public,
        "withheld": [row.seq for row in rows if row.seq not in payloads],
        **_manifest_summary(store, run, scope, [run.events[seq] for seq in payloads]),
        "files": {name: digest(data) for name, data in sorted(files.items())},
    }
    files[MANIFEST] = (json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode()
    files[SIGNATURE] = context.signer.sign(files[MANIFEST]).encode() + b"\n"
    return _zip_files(files)


def _name(row: RecordRow) -> str:
    return f"payloads/{row.seq:05}-{row.kind}.json"


def _files(context: AuditContext, run: Run, scope: Scope, rows: list[RecordRow]) -> Iterator[tuple[str, bytes]]:
    texts = documents.texts_for(context.store, scope)
    exported = [row for row in rows if row.seq < len(run.events) and _may_export(row, run.events[row.seq], texts)]
    line = ("run", "seq", "at", "kind", "digest", "prev", "hash", "n")
    yield RECORDS, _lines({name: getattr(row, name) for name in line} for row in rows)
    for row in exported:
        yield _name(row), (row.body or "").encode()
    yield QUOTATIONS, _lines(_quotations([json.loads(row.body or "") for row in exported], texts))
    yield PROOF, (dumps(_proof(context, rows[-1])) + "\n").encode()
    for name in sorted({event.prompt for event in run.events if isinstance(event, ModelReplied)}):
        try:
            yield f"prompts/{name}.md", prompts.template(name).encode()
        except LookupError:
            continue  # this version does not have that prompt any more
    if run.answer is not None:
        document = partial(documents.get, context.store, scope=scope)
        cited = citations.of_answer(run.answer, run.evidence, document)
        details = shown_details(run.answer, run.evidence, document)
        yield "answer.md", (render.as_markdown(run.answer, cited, details) + "\n").encode("utf-8", "replace")
    yield "check.py", (resources.files("assay.governance.audit") / "check.py").read_bytes()
    yield "README.txt", README.format(name=run.id, version=__version__).encode()


def _may_export(row: RecordRow, event: Event, texts: Texts) -> bool:
    """Whether a payload may be exported unchanged: nothing in it was erased, withheld or blanked for this person."""
    if row.body is None or isinstance(event, Withheld):
        return False
    try:
        return read_event(row.kind, json.loads(row.body), texts=texts) == event
    except (ValueError, KeyError) as error:
        raise StoreError(f"The record of run {row.run} was changed and cannot be read ({error}).") from error


def _lines(values: Iterator[Mapping[str, Any]]) -> bytes:
    return "".join(dumps(each) + "\n" for each in values).encode()


def _quotations(payloads: list[Any], texts: Texts) -> Iterator[dict[str, Any]]:
    """The quotations that payloads refer to, without duplicates. Those that cannot be read now are left out."""
    for document, start, end, covered in dict.fromkeys(each for body in payloads for each in references(body)):
        words = texts(document, start, end)[0]
        if digest(words) == covered:
            yield {"doc_id": document, "start": start, "end": end, "digest": covered, "text": words}


def _proof(context: AuditContext, last: RecordRow) -> dict[str, Any]:
    """The first head signed after the run's last record, and the hashes that link the two. They belong to records of
    other runs and reveal only how many there are."""
    key = context.signer.public

    def found() -> Seal | None:
        with context.store.read() as connection:
            return seals.covering(connection, last.n, key)

    head = found()
    if head is None:
        seal(context)
        head = found()
    if head is None:
        raise StoreError("The head of all records could not be signed: run `assay verify`.")
    with context.store.read() as connection:
        before = seals.record_at(connection, last.n - 1)
        after = [hash for _, _, _, hash, _ in seals.lines(connection, last.n, head.n)]
    return {"head": to_json(head), "before": before[3] if before else START, "after": after}


def _manifest_summary(store: Store, run: Run, scope: Scope, events: list[Event]) -> dict[str, Any]:
    """A summary of what took part. All of it is in the payloads too, except the metadata of documents."""
    consulted = [event for event in events if isinstance(event, ModelReplied)]
    asked = next((event for event in events if isinstance(event, Asked)), None)
    ids = dict.fromkeys(found.passage.doc_id for found in run.found)
    ids |= dict.fromkeys(each.passage.doc_id for each in run.evidence)
    known = [found for each in ids if (found := documents.get(store, each, scope)) is not None]
    spent = budgets.spent_by_run(store, run.id)
    by_model: dict[str, Usage] = {}
    for event in consulted:
        by_model[event.model] = by_model.get(event.model, Usage()) + event.usage
    return {
        "question": asked.question if asked else "",
        "models": [to_json(role_model) for role_model in (asked.seats if asked else ())],
        "costs": {"models": {name: to_json(usage) for name, usage in by_model.items()}, "all": to_json(spent)},
        "requests": [
            {"prompt": event.prompt, "model": event.model, "role": event.role, "request": event.request}
            for event in consulted
        ],
        "decisions": [to_json(event) for event in events if isinstance(event, Reviewed)],
        "documents": [
            {"id": each.id, "title": each.title, "file": file_name(each.uri), "date": each.date, "digest": each.digest}
            for each in known
        ],
    }


def _zip_files(files: Mapping[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in sorted(files, key=lambda name: (name != "README.txt", name)):
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(entry, files[name])
    return made.getvalue()
