"""Reads events stored by earlier versions as current events. Stored rows are never rewritten, since digests cover
them: old names and sentences are translated on every read. The only module that knows the old formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.core.codec import Texts, from_json
from assay.core.events import KINDS, RULES, Event, Fallback, RevisionCause, StopReason

FORMER_KINDS: Mapping[str, str] = {
    "Bound": "StepAnswered",
    "Consulted": "ModelReplied",
    "Drew": "InsightsDrawn",
    "Held": "AwaitingReview",
    "Looked": "PassagesChosen",
    "Spun": "SpineWritten",
}
RECITED = "cited anew, since other evidence says it"
REVIEW = "review: "
SALT = "salt"  # beside the fields of an event that is stored (see `store/runs/records.py`)
DIFFER = "two judgements differ: "
LISTED = "each of these documents uses these words"
RULES_STOPPED = {"covered": StopReason.sufficient, "limit": StopReason.searches}

Data = dict[str, Any]


def current_kind(stored: str) -> str:
    """The current name of a stored kind."""
    return FORMER_KINDS.get(stored, stored)


def stored_kinds(*kinds: type | str) -> tuple[str, ...]:
    """All names under which events of these kinds may be stored, for queries."""
    names = {kind if isinstance(kind, str) else kind.__name__ for kind in kinds}
    return (*names, *(old for old, new in FORMER_KINDS.items() if new in names))


def read_event(stored: str, data: Data, *, texts: Texts | None = None) -> Event:
    """Decode a stored event. Raises `ValueError` or `KeyError` on data that no version has written."""
    kind = current_kind(stored)
    upgrade = UPGRADES.get(kind)
    try:
        data = {name: value for name, value in data.items() if name != SALT}
        current = _without_hints(upgrade(dict(data)) if upgrade else data)
    except (TypeError, AttributeError) as error:  # a value of another type than any version has written
        raise ValueError(f"{kind}: {error}") from error
    return from_json(KINDS[kind], current, texts=texts)


def _without_hints(data: Any) -> Any:
    """Claims had a field for what rules noticed, which also held what the other of two judgements said."""
    if isinstance(data, list):
        return [_without_hints(each) for each in data]
    if not isinstance(data, dict):
        return data
    if "hints" in data and "cites" in data:
        data = dict(data)
        said = (each.partition(DIFFER)[2] for each in data.pop("hints") if each.startswith(DIFFER))
        data |= {"objection": objection} if (objection := next(said, "")) else {}
    return {name: _without_hints(each) for name, each in data.items()}


def _asked(data: Data) -> Data:
    return {"version": 0} | data


def _decided(data: Data) -> Data:
    aside = data.get("calls") or data.get("seeks") or data.get("hops") or data.get("recalls")
    if aside or "stop" in data:
        return data
    if data.get("refused"):
        return data | {"stop": StopReason.repeated}
    if data.get("by", RULES) != RULES:
        return data | {"stop": StopReason.nothing_new}
    if reason := _reason(data):
        return _without_reason(data, reason) | {"stop": StopReason(reason.value)}
    return data | {"stop": RULES_STOPPED.get(data.get("why", ""), StopReason.nothing_new)}


def _judged(data: Data) -> Data:
    by_rule = "fallback" not in data and data.get("by", RULES) == RULES
    return _without_reason(data, reason) if by_rule and (reason := _reason(data)) else data


def _gathered(data: Data) -> Data:
    data = _made(data)
    return _without_reason(data, Fallback(data["fallback"][0])) if data.get("fallback") else data


def _reason(data: Data) -> Fallback | None:
    """The reason at the start of a sentence such as `money: nothing is left`."""
    first, colon, _ = data.get("why", "").partition(": ")
    return Fallback(first) if colon and first in set(Fallback) else None


def _without_reason(data: Data, reason: Fallback) -> Data:
    return data | {"fallback": [reason], "why": data.get("why", "").removeprefix(f"{reason}: ")}


def _made(data: Data) -> Data:
    """Translate the old form `insights@model; rules: money`, which named the model and the reason for the fallback."""
    if "fallback" in data or not (reasons := _reasons(data.get("by", ""))):
        return data
    others = [each for each in data["by"].split("; ") if not each.startswith(f"{RULES}: ")]
    return data | {"by": "; ".join(others) or RULES, "fallback": reasons}


def _reasons(by: str) -> list[str]:
    found = (each.removeprefix(f"{RULES}: ") for each in by.split("; ") if each.startswith(f"{RULES}: "))
    return [each for each in found if each in set(Fallback)]


def _spine_written(data: Data) -> Data:
    """A sentence that only lists words was told by its reason."""
    data = _made(data)
    return data | {"spine": [{"lists": each["claim"].get("why") == LISTED} | each for each in data["spine"]]}


def _within(field: str) -> Callable[[Data], Data]:
    """The same for a maker recorded in a nested field; the text there is for display and stays unchanged."""

    def upgrade(data: Data) -> Data:
        reasons = _reasons(data.get(field, {}).get("by", ""))
        return data if "fallback" in data or not reasons else data | {"fallback": reasons}

    return upgrade


def _revised(data: Data) -> Data:
    if "cause" in data:
        return data
    if data.get("why", "").startswith(RECITED):
        return data | {"cause": RevisionCause.recited}
    return data | {"cause": RevisionCause.review} if data.get("by", "").startswith(REVIEW) else data


UPGRADES: Mapping[str, Callable[[Data], Data]] = {
    "Asked": _asked,
    "Decided": _decided,
    "Judged": _judged,
    "Gathered": _gathered,
    "Questioned": _made,
    "InsightsDrawn": _made,
    "Related": _made,
    "SpineWritten": _spine_written,
    "Drafted": _made,
    "Described": _within("portrait"),
    "Translated": _within("translation"),
    "Revised": _revised,
}
