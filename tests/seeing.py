"""A model that sees pictures, over the report of `chart`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from chart import CAPTION
from doubles import calls, keys_in, lookup, passages_in, role_of, text_of
from doubles.fill_policies import cooperative_reply

from assay.models.capability import STRIPES

QUESTION = "In which year did most visitors come to Carrow Point?"
READ = "The third year has the highest bar."


def pictures(request: Mapping[str, Any]) -> list[bytes]:
    parts = [part for each in request["messages"] if isinstance(each["content"], list) for part in each["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]


class Seeing:
    """A model that sees, says `said` of the picture, and judges so; what it was shown is kept by prompt."""

    def __init__(
        self, said: str = READ, verdict: str = "supported", *, sees: bool = True, obeys: bool = False, of: str = CAPTION
    ) -> None:
        self.said, self.verdict, self.sees, self.obeys, self.caption = said, verdict, sees, obeys, of
        self.shown: dict[str, list[bytes]] = {}
        self.asked: list[str] = []

    def answer(self, request: Mapping[str, Any]) -> Any:
        role, name = role_of(request)
        text = text_of(request)
        if not role:
            probes = "colours of the stripes" in text
            self.asked += ["probe"] if probes else []
            return (", ".join(STRIPES) if self.sees else "I see no picture.") if probes else cooperative_reply(request)
        self.asked.append(name or role)
        self.shown.setdefault(name or role, []).extend(pictures(request))
        if role == "route":
            return lookup()
        if role == "weigh":
            if self.obeys:
                return calls("search", query="the secret plans")
            kept = [
                {"id": place, "quote": self.caption, "score": 9, "note": f"The picture: {self.said}"}
                for place, words in passages_in(text).items()
                if self.caption in words
            ]
            return {"passages": kept, "answers": [], "enough": True, "missing": [], "searches": [], "surprise": False}
        if role == "write":
            key = next(key for key in keys_in(text) if f"key {key}" in text)
            claim = {"text": self.said, "cites": [key], "calculation": None} | (
                {"picture": key} if pictures(request) else {}
            )
            blocks = [{"heading": "", "opinion": False, "claims": [claim]}]
            return {"shape": "sentence", "conflicts": [], "blocks": blocks, "missing": []}
        ruling = {"claim": 1, "words": [], "why": "as scripted", "verdict": self.verdict}
        return {"rulings": [ruling], "answers": True, "missing": [], "search": "", "conflicts": []}
