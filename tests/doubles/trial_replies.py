"""Replies to the trial of a judge (`assay.workspace.judge_trial`), so that no script has to foresee it."""

from __future__ import annotations

import re
from typing import Any

from assay.workspace.judge_trial import TrialClaim, trial_claims
from doubles.fill_policies import cooperative_reply
from doubles.protocol import Request, role_of, text_of

_NUMBER = re.compile(r"\d+")


def trial_rulings(request: Request, *, capable: bool) -> dict[str, Any] | None:
    """What a judge says to a request of the trial; None if it is another request. A capable judge is always right; any
    other calls everything supported."""
    asked = claims_of_trial(request)
    if not asked:
        return None
    filled = cooperative_reply(request)
    forms = filled.get("rulings", ()) if isinstance(filled, dict) else ()
    form = next(iter(forms), {})
    return {
        "rulings": [
            form
            | {"claim": number, "why": "by the trial", "verdict": each.label if capable else "supported"}
            | ({"words": [each.passage]} if "words" in form else {})
            for number, each in asked.items()
        ]
    }


def claims_of_trial(request: Request) -> dict[int, TrialClaim]:
    """The claims of the trial that a request shows, by their numbers in it."""
    if role_of(request)[0] != "check":
        return {}
    text = text_of(request)
    found: dict[int, TrialClaim] = {}
    for each in trial_claims():
        at = text.find(each.claim)
        if at >= 0 and (number := _NUMBER.search(text, text.rfind("\n", 0, at) + 1, at)):
            found[int(number[0])] = each
    return found
