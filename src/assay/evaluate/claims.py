"""How well claims are judged: statements with the passages they cite and a label, through the product's judge and delivery.

A true claim counts as kept only if it is delivered as it is; one that is hedged is lost. A false claim counts as passed if
it is delivered in any form.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from assay.answer.checking.claim_rules import by_rule, unhedged
from assay.answer.checking.judge import AskModel, JudgeRequest, by_model, needs_model, sources_of, verify, without_model
from assay.answer.compose import DeliveryGuard, find_fault
from assay.core.codec import digest
from assay.core.errors import UserError
from assay.core.types import Claim, Document, Evidence, Operand, Passage, Quote, Verdict, Working
from assay.evaluate.grading import connect_judge
from assay.evaluate.metrics import intervals, means, spread
from assay.evaluate.plain_text import json_lines
from assay.language.injection import is_suspicious, is_tainted
from assay.models.llm import Role
from assay.prompts import fence_mark
from assay.workspace.facade import open_workspace

Report = Callable[[str], None]
TOGETHER = 6  # claims per request to an endpoint
ROOM = 100_000  # tokens of a prompt that nobody reads
TRUTHS = {
    Verdict.supported: "true",
    Verdict.unsupported: "false",
    Verdict.contradicted: "false",
    Verdict.partial: "partial",
}
LABELS = tuple(TRUTHS)
SHARES = ("true_kept", "true_marked", "false_passed", "partial_passed")


class JudgeKind(StrEnum):
    """Who judges: nobody; a script that knows the labels; one that calls everything supported; the model of the settings."""

    none = "none"
    oracle = "oracle"
    liar = "liar"
    endpoint = "endpoint"


class Fate(StrEnum):
    """What becomes of a claim: delivered as it is, delivered with a mark that the reader sees, hedged, not delivered."""

    kept = "kept"
    marked = "marked"
    hedged = "hedged"
    lost = "lost"


@dataclass(frozen=True, slots=True)
class ClaimCase:
    """A claim with the evidence it cites, the documents of that evidence, and the label."""

    id: str
    label: Verdict
    kind: str
    claim: Claim
    evidence: tuple[Evidence, ...]
    documents: Mapping[str, Document]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    case: ClaimCase
    claim: Claim
    fate: Fate


def load(file: Path) -> list[ClaimCase]:
    """Read one labelled claim per line."""
    cases = json_lines(file, _case, f"a claim with `passages` and a `label` ({', '.join(LABELS)})")
    if not cases:
        raise UserError(f"{file.name} has no claims.")
    return cases


def _case(row: Mapping[str, Any], number: int) -> ClaimCase:
    keys = [f"c{number}p{place}" for place, _ in enumerate(row["passages"], 1)]
    documents = [_document(each, key) for each, key in zip(row["passages"], keys, strict=True)]
    evidence = tuple(
        _evidence(document, key, each.get("heading") or "", row.get("question") or "")
        for document, key, each in zip(documents, keys, row["passages"], strict=True)
    )
    claim = Claim(_text(row["claim"]), tuple(keys), working=_working(row.get("calculation"), keys))
    if not evidence:
        raise ValueError("it cites nothing")
    return ClaimCase(
        str(row.get("id", number)),
        LABELS[LABELS.index(row["label"])],
        str(row.get("kind", "")),
        claim,
        evidence,
        {each.id: each for each in documents},
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("it has no text")
    return value


def _document(passage: Mapping[str, Any], key: str) -> Document:
    text, title = _text(passage["text"]), passage.get("title") or ""
    return Document(f"d-{key}", "claims", f"{key}.txt", digest(text), title, text, date=passage.get("date") or None)


def _evidence(document: Document, key: str, heading: str, question: str) -> Evidence:
    end = len(document.text)
    passage = Passage(f"p-{key}", document.id, document.text, 0, end, heading)
    quote = Quote(document.id, 0, end, document.text)
    return Evidence(key, passage, quote, 10.0, question, flagged=is_suspicious(document.text))


def _working(calculation: Mapping[str, Any] | None, keys: Sequence[str]) -> Working | None:
    if not calculation:
        return None
    operands = tuple(Operand(str(each["value"]), keys[int(each["passage"])]) for each in calculation["operands"])
    return Working(
        str(calculation["expression"]), operands, str(calculation["result"]), str(calculation.get("unit") or "")
    )


async def measure(
    cases: Sequence[ClaimCase],
    judge: JudgeKind,
    workspace: Path | None = None,
    limit: int = 0,
    report: Report = lambda _: None,
) -> dict[str, Any]:
    """Judge every claim, deliver what passes, and count. `workspace` names the model of the judge `endpoint`."""
    sample = spread(cases, limit)
    judged: list[JudgedClaim] = []
    with ExitStack() as stack:
        ask = await _endpoint(stack, workspace) if judge is JudgeKind.endpoint else None
        size = TOGETHER if ask is not None else 1
        for batch in (sample[at : at + size] for at in range(0, len(sample), size)):
            for each in await judge_claims(batch, judge, ask):
                judged.append(each)
                report(f"{len(judged)} of {len(sample)}: {_line(each)}")
    return figures(judged, judge)


async def judge_claims(batch: Sequence[ClaimCase], judge: JudgeKind, ask: AskModel | None = None) -> list[JudgedClaim]:
    """The claims as code and judge leave them. Scripted judges get one claim per request."""
    evidence = [each for case in batch for each in case.evidence]
    documents = {id: each for case in batch for id, each in case.documents.items()}
    sources = sources_of(evidence, documents.get)
    ruled = [by_rule(case.claim, case.evidence, sources) for case in batch]
    if judge is JudgeKind.none:
        ruled = [without_model(claim) for claim in ruled]
    elif open_ := [place for place, claim in enumerate(ruled) if needs_model(claim)]:
        judgement = await by_model(
            JudgeRequest(tuple(ruled[place] for place in open_)),
            evidence,
            sources,
            ask or _scripted(batch[0], judge),
            mark=fence_mark("claims"),
            documents=tuple(documents),
        )
        for place, claim in zip(open_, judgement.claims, strict=True):
            ruled[place] = claim
    return [JudgedClaim(case, claim, fate(case, claim)) for case, claim in zip(batch, ruled, strict=True)]


def _scripted(case: ClaimCase, judge: JudgeKind) -> AskModel:
    """A judge that gives the label, or calls the claim supported, and names whole passages as the words that carry it."""
    verdict = case.label if judge is JudgeKind.oracle else Verdict.supported
    ruling = {
        "claim": 1,
        "why": "scripted",
        "verdict": verdict.value,
        "words": [each.passage.text for each in case.evidence],
    }

    async def ask(role: Role, name: str, kind: type[Any], build_prompt: Callable[[int], Any], **_: Any) -> Any:
        build_prompt(ROOM)  # it must be possible to write it
        return kind.model_validate({"rulings": [ruling]}), f"{name}@{judge}"

    return ask


async def _endpoint(stack: ExitStack, workspace: Path | None) -> AskModel:
    """The model that the settings name for the role `check`, through the product's prompt and parser."""
    folder = workspace or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-claims-"))) / "workspace"
    opened = stack.enter_context(open_workspace(folder, create=workspace is None, state=None if workspace else ""))
    return await connect_judge(opened)


def fate(case: ClaimCase, claim: Claim) -> Fate:
    """What delivery makes of a judged claim."""
    passages = tuple(each.passage.text for each in case.evidence)
    document = case.documents.get
    verified = lambda each: verify(each, case.evidence, document)  # noqa: E731
    guard = DeliveryGuard({0: claim}, case.evidence, document, passages, verified)
    if find_fault(0, claim, guard):
        return Fate.lost
    if claim.text != unhedged(claim.text):
        return Fate.hedged
    return Fate.marked if claim.disputed or is_tainted(claim, case.evidence) else Fate.kept


def figures(judged: Sequence[JudgedClaim], judge: JudgeKind) -> dict[str, Any]:
    """Shares of the true, the false and the partly true claims, and the counts by kind."""
    kinds = sorted({each.case.kind for each in judged})
    rows = [shares(each) for each in judged]
    found = means(rows)
    return {
        "judge": judge.value,
        "unjudged": sum(not each.claim.by for each in judged),
        **{name: round(found.get(name, 0.0), 4) for name in SHARES},
        "intervals": {name: each for name, each in intervals(rows, means).items() if name in SHARES},
        "n": len(judged),
        "by_kind": {kind: _counts([each for each in judged if each.case.kind == kind]) for kind in kinds},
    }


def _counts(judged: Sequence[JudgedClaim]) -> dict[str, int]:
    """How many claims there are of each truth, and what became of them."""
    found: dict[str, int] = {}
    for truth in dict.fromkeys(TRUTHS.values()):
        rows = [shares(each) for each in judged if TRUTHS[each.case.label] == truth]
        if rows:
            found |= {truth: len(rows), **{name: int(sum(row[name] for row in rows)) for name in rows[0]}}
    return found


def shares(judged: JudgedClaim) -> dict[str, float]:
    """What one claim adds to each share that it counts for."""
    truth = TRUTHS[judged.case.label]
    if truth != "true":
        return {f"{truth}_passed": float(judged.fate is not Fate.lost)}
    kept = judged.fate in {Fate.kept, Fate.marked}
    return {"true_kept": float(kept), "true_marked": float(judged.fate is Fate.marked)}


def _line(judged: JudgedClaim) -> str:
    case, claim = judged.case, judged.claim
    return f"{case.id} ({case.label}, {case.kind}) {judged.fate}: {claim.why}"
