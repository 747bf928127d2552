"""How long it takes to check answers again by code: 10,000 answers over 500 documents, every one of which was replaced.

    python bench/recheck.py [ANSWERS] [DOCUMENTS]

Each document has forty sentences and a table; an answer has a quotation, a claim carried by words, and a cell. In a tenth of
the documents the figures changed, in the others something else. Prints the seconds of a first check, of one after nothing
changed, and of one after a single document changed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from assay.core.events import Answered, Asked, Gathered
from assay.core.types import Answer, Block, Claim, ClaimedCell, Document, Evidence, Outcome, Passage, Quote, Verdict
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits, Parsed
from assay.store import documents
from assay.store.access import grants
from assay.store.runs import records
from assay.workspace.facade import Workspace, open_workspace

RECIPE = "bench"


def text_of(place: int, sales: int, note: str) -> str:
    lines = [f"Station {place} of the line reported {place * 7 + line} passengers on day {line}." for line in range(40)]
    table = f"| | 2022 | 2021 |\n|---|---|---|\n| Net sales | {sales} | {sales - 9} |\n| Costs | {sales // 2} | 77 |"
    return f"# Report {place}\n\n{note}\n\n" + "\n\n".join(lines) + f"\n\n{table}\n"


def put(opened: Workspace, base: grants.Base, id: str, place: int, text: str) -> Document:
    parsed = read(text.encode(), "report.md", FileLimits())
    assert isinstance(parsed, Parsed)
    made = Document(
        id, base.id, f"report-{place}.md", id, parsed.title, parsed.text, tables=parsed.tables, kind="markdown"
    )
    documents.put_pending(opened.store, made, parser="bench", size=len(text), warnings=())
    documents.mark_ready(opened.store, base, {id: 1}, RECIPE)
    return made


def quote(source: Document, words: str) -> Quote:
    start = source.text.index(words)
    return Quote(source.id, start, start + len(words), words)


def deliver(opened: Workspace, number: int, source: Document) -> None:
    line = number % 40
    sentence = next(each for each in source.text.split("\n") if each.endswith(f"on day {line}."))
    passage = Passage(f"p{number}", source.id, source.text, 0, len(source.text))
    evidence = Evidence("aaaaaaaa", passage, quote(source, sentence), 9.0, "q")
    claims = (
        Claim("", ("aaaaaaaa",), Verdict.supported, quote=quote(source, sentence)),
        Claim(f"So it was on day {line}.", ("aaaaaaaa",), Verdict.supported, carried_by=(quote(source, sentence),)),
        Claim("So were net sales.", ("aaaaaaaa",), Verdict.supported, cells=(ClaimedCell("aaaaaaaa", "r1c1"),)),
    )
    run = records.begin(opened.store, opened.principal.id)
    answer = Answer(f"Question {number}?", (Block(claims),), Outcome.answered)
    for seq, event in enumerate(
        (Asked(answer.question, "local", "2026-01-01"), Gathered((evidence,)), Answered(answer))
    ):
        records.append(opened.store, run, seq, event)


def timed(opened: Workspace, words: str) -> None:
    wall, cpu = time.monotonic(), time.process_time()
    found = len(opened.rechecks.stale())
    print(f"{words:<28} {time.monotonic() - wall:7.1f} s, {time.process_time() - cpu:7.1f} s of CPU: {found:,} stale")


def main(answers: int, many: int) -> None:
    with tempfile.TemporaryDirectory() as folder, open_workspace(Path(folder) / "w", create=True) as opened:
        base = grants.get_or_create_base(opened.store, "default", opened.principal)
        sources = [
            put(opened, base, f"d{place}", place, text_of(place, 400 + place, "First.")) for place in range(many)
        ]
        with opened.store.one_transaction():
            for number in range(answers):
                deliver(opened, number, sources[number % many])
        for place in range(many):
            put(opened, base, f"e{place}", place, text_of(place, 400 + place + 3 * (place % 10 == 0), "Second."))
        print(f"{answers:,} answers over {many:,} documents, all of them replaced")
        timed(opened, "first check")
        timed(opened, "nothing changed")
        put(opened, base, "f1", 1, text_of(1, 999, "Third."))
        timed(opened, "one document changed")


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:3]]
    main(*(given + [10_000, 500][len(given) :]))
