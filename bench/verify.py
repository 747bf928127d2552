"""How fast `assay verify` goes over the records of a workspace, with the witness in a second place.

    .venv/bin/python bench/verify.py [--records 100000] [--bytes 1500] [--rounds 3]

Beside it, over the same bytes in the same run: the limit, which is SHA-256 of every payload and nothing else, and reading the
rows from the state without looking at them. Medians of processor seconds. Memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from result_file import add_out, write_result

from assay.core.codec import START, digest, dumps, linked
from assay.governance.audit.verify import verify
from assay.governance.audit.witness import FILE, AuditContext, seal
from assay.store.database import Store, open_store
from assay.store.runs.records import link

LONG = 25  # records of a run


def fill(store: Store, count: int, size: int) -> None:
    """Runs of records with payloads of about this size, chained as the product does it."""
    link_, prev, at = START, START, "2026-01-01T00:00:00.000Z"
    with store.write() as connection:
        for n in range(1, count + 1):
            run, seq = f"r{(n - 1) // LONG:016x}", (n - 1) % LONG
            if seq == 0:
                prev = START
                connection.exec_driver_sql(
                    "INSERT INTO runs (id, who, started, delivered, gated) VALUES (?, 'local', ?, 0, 0)", (run, at)
                )
            body = dumps({"why": f"{n} " + "because " * (size // 8)})
            covered = digest(body)
            hash = link(run, seq, at, "Judged", covered, prev)
            link_ = linked(n, hash, link_)
            values = (run, seq, at, "Judged", covered, prev, hash, n, link_)
            connection.exec_driver_sql("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            connection.exec_driver_sql("INSERT INTO payloads (run, seq, body) VALUES (?, ?, ?)", (run, seq, body))
            prev = hash


def timed(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--bytes", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    add_out(parser)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "second").mkdir()
        store = open_store(folder / "state.db", create=True)
        fill(store, given.records, given.bytes)
        context = AuditContext(store, folder, folder / "audit.key", folder / "second" / FILE)
        began = time.process_time()
        seal(context)
        sealed = time.process_time() - began

        def whole() -> None:
            assert verify(store, context.witness_file).whole

        with store.read() as connection:
            bodies = [row[0].encode() for row in connection.exec_driver_sql("SELECT body FROM payloads")]

        def hashed() -> None:
            for body in bodies:
                hashlib.sha256(body).hexdigest()

        def fetched() -> None:
            with store.read() as connection:
                for _ in connection.exec_driver_sql(
                    "SELECT r.*, p.body FROM records r JOIN payloads p ON p.run = r.run AND p.seq = r.seq"
                ):
                    pass

        figures = {
            "SHA-256 of the payloads alone": timed(hashed, given.rounds),
            "reading the rows alone": timed(fetched, given.rounds),
            "assay verify, with the witness": timed(whole, given.rounds),
        }
        store.close()
    print(f"{given.records:,} records, {sum(map(len, bodies)) / 1e6:.0f} MB of payloads")
    for name, seconds in figures.items():
        print(f"{name:<34} {seconds:8.2f} s {given.records / seconds:12,.0f} records/s")
    print(f"{'the first seal':<34} {sealed:8.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"peak memory {peak:.0f} MB, of which the payloads kept for the comparison are {sum(map(len, bodies)) / 1e6:.0f} MB"
    )
    rates = {name: {"seconds": each, "records a second": given.records / each} for name, each in figures.items()}
    write_result(given.out, rates)


if __name__ == "__main__":
    main()
