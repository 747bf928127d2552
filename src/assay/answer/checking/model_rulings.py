"""Verdicts by a model: which claims need one, the prompt, and how its rulings combine with those of the rules. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from assay.answer.checking.claim_rules import HEDGE
from assay.answer.evidence_text import Sources, quotations
from assay.core.events import Mode
from assay.core.types import Claim, Evidence, Verdict
from assay.language.injection import TAINT_REASON
from assay.models.token_estimate import estimate_tokens
from assay.prompts.fence import fence


class Ruling(BaseModel):
    """A verdict on one claim, by its number in the request."""

    model_config = ConfigDict(strict=True, extra="forbid")

    claim: int
    why: str = ""
    verdict: Literal["supported", "partial", "unsupported", "contradicted"]


class Rulings(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    rulings: list[Ruling]


def needs_model(claim: Claim, mode: Mode, evidence: Sequence[Evidence] = (), *, opinion: bool = False) -> bool:
    """Whether a claim judged by rule also goes to a model: claims the rules leave open; in thorough mode also those
    that passed; and, except in quick mode, claims based on a passage that reads like an instruction. Opinions do not:
    beyond their facts they cannot be checked."""
    if claim.quote is not None or opinion:
        return False
    if claim.verdict is Verdict.partial:
        return True
    if claim.verdict is not Verdict.supported:
        return False
    flagged = any(each.flagged for each in evidence if each.key in claim.cites)
    return mode is Mode.thorough or (flagged and mode is Mode.balanced)


def schema(count: int) -> dict[str, Any]:
    """The JSON schema of a reply about `count` claims."""
    ruling = {
        "type": "object",
        "properties": {
            "claim": {"type": "integer", "enum": list(range(1, count + 1))},
            "why": {"type": "string"},
            "verdict": {"type": "string", "enum": ["supported", "partial", "unsupported", "contradicted"]},
        },
        "required": ["claim", "why", "verdict"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"rulings": {"type": "array", "items": ruling, "minItems": count, "maxItems": count}},
        "required": ["rulings"],
        "additionalProperties": False,
    }


def build_prompt(
    claims: Sequence[Claim], evidence: Sequence[Evidence], sources: Sources, mark: str, room: int
) -> dict[str, str]:
    """The values of the prompt `check`, in at most `room` tokens: each set of citations once, followed by the claims on
    it."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, claim in enumerate(claims, 1):
        groups.setdefault(tuple(sorted(claim.cites)), []).append(number)
    listed = {
        keys: fence(mark, "claims", "\n".join(f"Claim {n}: {_flat(claims[n - 1])}" for n in own))
        for keys, own in groups.items()
    }
    left = room - sum(estimate_tokens(words) + 4 for words in listed.values()) - 8
    parts: list[str] = []
    for place, (keys, words) in enumerate(listed.items()):
        cited = [each for each in evidence if each.key in keys]
        shown, _ = quotations(cited, sources, mark, max(left, 0) // (len(listed) - place))
        left -= estimate_tokens(shown)
        parts.append(f"{shown}\n{words}")
    return {"claims": "\n\n".join(parts), "count": str(len(claims))}


def _flat(claim: Claim) -> str:
    """A claim on one line, so that its text cannot look like another claim's number."""
    return " ".join(claim.text.removeprefix(HEDGE).split())


SEVERITY = (Verdict.contradicted, Verdict.unsupported, Verdict.partial, Verdict.supported)


def read(reply: Rulings | None, claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims with the model's verdict combined with that of the rules. A missing ruling counts against the claim;
    of two rulings on one claim the worse one counts."""
    found: dict[int, Ruling] = {}
    for ruling in reply.rulings if reply else ():
        before = found.get(ruling.claim)
        if before is None or SEVERITY.index(Verdict(ruling.verdict)) < SEVERITY.index(Verdict(before.verdict)):
            found[ruling.claim] = ruling
    return tuple(
        combine(claim, Verdict(own.verdict), own.why)
        if (own := found.get(number))
        else combine(claim, Verdict.unsupported, "no verdict was given")
        for number, claim in enumerate(claims, 1)
    )


def combine(claim: Claim, verdict: Verdict, why: str) -> Claim:
    """Combine verdicts: a model can lower the rules' verdict, or settle what they left open; it cannot lift a failed
    claim."""
    if claim.verdict not in (Verdict.supported, Verdict.partial):
        return claim
    if verdict is Verdict.partial and claim.text.startswith(HEDGE):
        verdict = Verdict.supported  # a hedged claim says no more than that
    said = " ".join(why.split())[:200] or claim.why
    # No model removes the taint.
    kept = f"; {TAINT_REASON}" if TAINT_REASON in claim.why and TAINT_REASON not in said else ""
    return replace(claim, verdict=verdict, why=f"{said}{kept}")
