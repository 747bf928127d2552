"""Tells a process that others have written to the same state: at once, as far as the database can tell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from assay.store import database
from assay.store.database import Store

log = logging.getLogger(__name__)

RETRY = 5.0  # seconds until a listener that lost its connection makes another


class ChangeListener:
    """Calls `changed` in a thread of its own after others have written. While `hears` is false nobody is told, and whoever
    waits for a change has to look."""

    def __init__(self, store: Store, changed: Callable[[], None]) -> None:
        self._store = store
        self._changed = changed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="assay-changes", daemon=True)
        self.hears = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _listen(self) -> None:
        while not self._stopped.is_set():
            try:
                for _ in database.changes(self._store.engine, self._stopped):
                    self.hears = True
                    self._changed()
            except Exception as error:  # the server restarts, or the network is away
                log.warning("changes by other processes are not heard now: %s", type(error).__name__)
            self.hears = False
            self._stopped.wait(RETRY)
