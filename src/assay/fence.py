"""Documents are data: whatever they say reaches a model only between two marks that no document can know. Pure."""

from __future__ import annotations

import re

from assay.codec import digest

# Words that a text addresses to a model, or to whoever reads it in a model's place.
INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,60}\b(?:instruction|prompt|rule|direction|guideline|polic)\w*"
    r"|\bsystem (?:prompt|message|instruction)s?\b"
    r"|\b(?:you are|act as|pretend to be) (?:now |a |an |the )?(?:helpful )?(?:ai|assistant|chatbot|language model|llm|dan)\b"
    r"|\b(?:assistant|model|ai|llm)s?\b[,:]? (?:you )?(?:must|should|shall|please|will now|need to)\b"
    r"|\b(?:reveal|print|output|repeat|send|exfiltrate|post)\b.{0,40}\b(?:prompt|api key|password|secret|credential|token)s?\b"
    r"|\b(?:instead|now),? (?:answer|reply|respond|say|output|write)\b.{0,20}[\"“':]"
    r"|\b(?:answer|reply|respond|say|output|write) (?:only|exactly|nothing but)\b.{0,10}[\"“':]"
    r"|\b(?:call|invoke) the (?:tool|function)\b|(?:^|[.!?]\s+)system\s*:"
    r"|\bnew instructions?\s*:",
    re.I | re.S,
)


def mark_of(run: str) -> str:
    """The mark of a run: random to every document, the same whenever the run is carried on or replayed."""
    return digest(f"fence {run}")[:12]


def fence(mark: str, label: str, words: str) -> str:
    """Words of a document as a model sees them: labelled, between marks, and with nothing inside that looks like one."""
    inside = re.sub(r"[⟦⟧]", "|", words).replace(mark, "…")
    above = re.sub(r"[⟦⟧\s]+", " ", label).replace(mark, "…").strip()
    return f"⟦{mark} quoted: {above}⟧\n{inside}\n⟦end {mark}⟧"


def instructs(words: str) -> bool:
    """Whether a passage reads like an instruction to a model. The flag goes along with it, as far as the claims it supports."""
    return INSTRUCTION.search(words) is not None
