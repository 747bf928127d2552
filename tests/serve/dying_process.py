"""`assay` in a process that kills itself at a named point: `python dying_process.py POINT TIMES serve …`. It dies when it comes
to the point for the TIMES-th time. Its embedder only knows words, so that nothing has to be loaded."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

POINTS = (
    "never",
    "request reserved",  # on disk, and not sent yet
    "reply recorded",  # with its settlement
    "event recorded",
    "run claimed",  # and not begun
    "run listed",  # and nobody told
    "run over",  # and still listed
    "files kept",  # of an upload, and its job not recorded
    "document stored",  # and not in the index yet
)


def install(point: str, times: int) -> None:
    from assay.evaluate.plain_text import WordEmbedder
    from assay.models import factory
    from assay.models.meter import StoreLedger
    from assay.store import documents
    from assay.store.blobs import BucketUploads, FolderUploads
    from assay.store.database import Store
    from assay.store.runs import records, underway

    factory.embedder_for = lambda *_: WordEmbedder()
    left = [times]

    def reached() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(place: Any, name: str, counts: Callable[[Any], bool] = lambda _: True) -> None:
        real = getattr(place, name)

        def then_dies(*given: Any, **named: Any) -> Any:
            made = real(*given, **named)
            if counts(made):
                reached()
            return made

        setattr(place, name, then_dies)

    one_transaction = Store.one_transaction

    @contextmanager
    def flushed(store: Store) -> Iterator[None]:
        with one_transaction(store):
            yield
        reached()

    end = underway.end

    def dies_first(*given: Any, **named: Any) -> None:
        reached()
        end(*given, **named)

    match point:
        case "request reserved":
            after(StoreLedger, "reserve")
        case "reply recorded":
            Store.one_transaction = flushed  # pyright: ignore[reportAttributeAccessIssue]
        case "event recorded":
            after(records, "append", lambda record: record.kind != "ModelReplied")
        case "run claimed":
            after(underway, "claim", bool)
        case "run listed":
            after(underway, "begin")
        case "run over":
            underway.end = dies_first
        case "files kept":
            after(BucketUploads, "keep")
            after(FolderUploads, "keep")
        case "document stored":
            after(documents, "put_pending")
        case "never":
            pass
        case _:
            raise ValueError(point)


if __name__ == "__main__":
    install(sys.argv[1], int(sys.argv[2]))
    from assay.cli.main import main

    sys.argv[1:] = sys.argv[3:]
    main()
