"""One part of the narrative by a model: the prompt, the schema of the reply, and the paragraphs parsed from it.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.answer import claims
from assay.answer import draft as drafting
from assay.answer.evidence_text import Sources
from assay.core.events import Drafted
from assay.core.types import Claim
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.writing import items as parts
from assay.synthesis.writing.items import NarrativeItem
from assay.synthesis.writing.material import Material, render_relations


def schema(keys: Sequence[str]) -> dict[str, Any]:
    """JSON schema of the reply: paragraphs of claims that can cite only what was shown."""
    words = {"type": "string", "maxLength": claims.LONGEST}
    claim = {"text": words, "cites": _list({"type": "string", "enum": list(keys)}, drafting.CITES)}
    block = {"claims": _list(_object(claim), drafting.CLAIMS)}
    return _object({"blocks": _list(_object(block), drafting.BLOCKS)})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Mapping[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


def build_prompt(
    of: Material, part: Sequence[NarrativeItem], spine: Sequence[Claim], wanted: str, mark: str, room: int
) -> dict[str, str]:
    """The values of the prompt `narrate`, in at most `room` tokens. Every item is shown, shortened if there are
    many. Spine and relations get what they need, up to a fixed share."""
    docs = list(dict.fromkeys(item.doc_id for item in part))
    opening = fence(mark, "spine", fit_to_tokens(" ".join(_labelled(claim, of) for claim in spine), room // 6)) + "\n\n"
    opening = opening if spine else ""
    ties = render_relations(of, docs, mark, room // 8)
    left = room - sum(estimate_tokens(words) for words in (opening, ties, wanted)) - 4
    shown: list[str] = []
    question = ""
    for place, item in enumerate(part):
        share = left // (len(part) - place)
        asked = ""
        if item.question and item.question != question:
            question = item.question
            asked = (
                fence(mark, "question", fit_to_tokens(" ".join(question.split()), min(40, max(8, share // 4)))) + "\n"
            )
        shown.append(asked + _shown(item, of, mark, share - estimate_tokens(asked) - 1))
        left -= estimate_tokens(shown[-1]) + 1
    return {"spine": opening, "relations": ties, "evidence": "\n".join(shown), "wanted": wanted}


def _shown(item: NarrativeItem, of: Material, mark: str, room: int) -> str:
    """An item in the prompt: the insight, with the quotation that supports it if there is room."""
    keys = " · ".join(f"key {key}" for key in item.keys)
    label = f"{keys} · {of.labels.get(item.doc_id, '')} · {fit_to_tokens(of.called.get(item.doc_id, ''), 20)}"
    left = room - estimate_tokens(fence(mark, label, "")) - 2
    words = fit_to_tokens(" ".join(item.claim.words.split()), max(12, left))
    left -= estimate_tokens(words) + 2
    if item.claim.quote is None and left > 16:
        quoted = " ".join(of.known[item.keys[0]].quote.text.split())
        words += f"\nIn its words: {fit_to_tokens(quoted, min(left, parts.QUOTED))}"
    return fence(mark, label, words)


def _labelled(claim: Claim, of: Material) -> str:
    """A sentence of the spine for the prompt, with labels in place of titles."""
    words = " ".join(claim.words.split())
    for doc in of.of(claim.cites):
        words = words.replace(f"“{of.called.get(doc, '')}”", of.labels.get(doc, ""))
    return words


def read(reply: drafting.Writing, part: Sequence[NarrativeItem], question: str, of: Material, by: str) -> Drafted:
    """The paragraphs of a part: claims that cite what was shown, with titles in place of labels."""
    keys = {key for item in part for key in item.keys}
    evidence = [each for each in of.evidence if each.key in keys]
    sources = Sources({doc: f"{of.labels.get(doc, '')} {name}" for doc, name in of.called.items()}, of.sources.dates)
    bare = [  # without headings; long paragraphs are split
        drafting.Part(claims=list(claims))
        for each in reply.blocks
        for claims in state.batches(each.claims, drafting.CLAIMS)
    ]
    drafted = drafting.read(reply.model_copy(update={"blocks": bare}), question, evidence, by, sources)
    return replace(drafted, blocks=parts.replace_labels_in_blocks(drafted.blocks, of))
