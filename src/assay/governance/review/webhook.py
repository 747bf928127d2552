"""Notifies another program that an answer awaits review. The signed message names the run and contains none of its text."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.models.http import EndpointClient
from assay.models.http import EndpointNames

HEADER = "X-Assay-Signature"
EVENT = "review.waiting"


def signature(secret: str, moment: int, body: bytes) -> str:
    """`t=SECONDS,v1=HEX`: the HMAC-SHA256, under the secret, of the Unix time, a dot and the body. The time is
    included to prevent replay of old messages."""
    signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={signed}"


def build_message(run: str, seal: str, since: str, reasons: Sequence[str]) -> dict[str, Any]:
    """The message: which run waits, why, and since when. `id` is the same if it is sent again."""
    return {"event": EVENT, "id": f"{run}:{seal[:16]}", "run": run, "since": since, "reasons": list(reasons)}


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address of the receiver. Without a secret, messages are not signed."""

    address: str = field(repr=False)
    secret: str = field(default="", repr=False)
    proxy: str = field(default="", repr=False)
    ca_bundle: str = ""
    now: Callable[[], float] = time.time

    async def tell(self, body: Mapping[str, Any], seconds: float) -> None:
        """Deliver the message, with retries while there is time. Raises if it was not accepted."""

        def sign(content: bytes) -> Mapping[str, str]:
            return {HEADER: signature(self.secret, int(self.now()), content)} if self.secret else {}

        named = EndpointNames("webhook", "review_webhook", "review_webhook_secret", "review_webhook")
        client = EndpointClient(
            self.address, named, proxy=self.proxy, ca_bundle=self.ca_bundle, connect_attempts=2, sign=sign
        )
        try:
            response = await client.post(body, seconds)
        finally:
            await client.close()
        if not 200 <= response.status < 300:
            raise client.refused(response)
