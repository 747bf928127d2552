"""A reader for collections whose documents are text already."""

from __future__ import annotations

import json
from pathlib import Path

from assay.ingest.parsed import Parsed, Status, Unreadable


class PlainTextReader:
    """A reader for documents that are text already."""

    async def read(self, data: Path | bytes, name: str) -> Parsed | Unreadable:
        item = json.loads(data) if isinstance(data, bytes) else {}
        if not item.get("text", "").strip():
            return Unreadable(Status.empty, "The document has no text.")
        return Parsed(text=item["text"], kind="text", title=item["title"], language="en")
