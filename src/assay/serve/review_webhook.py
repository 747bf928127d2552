"""A server tells others what waits for a reviewer: as soon as it does, again while nobody takes it, and after a restart."""

from __future__ import annotations

import asyncio
import logging

from assay.core.errors import AssayError
from assay.workspace.facade import Workspace

log = logging.getLogger("assay.serve")

LOOKS = 2.0  # seconds between two looks at what waits
LONGEST = 300.0  # seconds between two tries at an address that does not take it
SECONDS = 10.0  # that one message has


async def notify_reviewers(workspace: Workspace) -> None:
    """Goes on until it is cancelled. What waits is in the store, so that nothing is lost with the process."""
    pause = LOOKS
    while workspace.settings.review_webhook:
        await asyncio.sleep(pause)
        try:
            await workspace.notify_reviewers(SECONDS)
            pause = LOOKS
        except AssayError as error:
            pause = min(pause * 2, LONGEST)
            log.warning("nobody could be told of a review: %s", error)
        except Exception:
            pause = LONGEST
            log.exception("telling of reviews broke down")
