"""Notifies a webhook of answers that wait for review: immediately, with retries until accepted, and after a restart."""

from __future__ import annotations

import asyncio
import logging

from assay.core.errors import AssayError
from assay.workspace.facade import Workspace

log = logging.getLogger("assay.serve")

LOOKS = 2.0  # seconds between two polls
LONGEST = 300.0  # maximum seconds between two retries
SECONDS = 10.0  # timeout of one message


async def notify_reviewers(workspace: Workspace) -> None:
    """Run until cancelled. Pending notifications are in the store, so that none is lost with the process."""
    pause = LOOKS
    while workspace.settings.review_webhook:
        await asyncio.sleep(pause)
        try:
            await workspace.reviews.notify(SECONDS)
            pause = LOOKS
        except AssayError as error:
            pause = min(pause * 2, LONGEST)
            log.warning("nobody could be told of a review: %s", error)
        except Exception:
            pause = LONGEST
            log.exception("telling of reviews broke down")
