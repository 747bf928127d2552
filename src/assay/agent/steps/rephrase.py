"""Rewrites a turn of a conversation as a self-contained question. A model proposes; a proposal that names anything not
mentioned before is rejected. Then, as without a model, rules fill in what "it" and "and in 2024?" leave out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.core.events import RULES, Event, Rephrased
from assay.core.run import Run
from assay.core.types import Exchange
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms
from assay.language.words import stop_words
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

SHOWN = 1200  # tokens of the conversation shown to a model
LONGEST = 400  # characters of a question
POINTS_BACK = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|ones?|same|former|latter)\b",
    re.I,
)
CARRIES_ON = re.compile(
    r"^\W*(?:(?:and|but|so|or|also|what about|how about|what if|since when|more|anything else|go on|explain)\b"
    r"|(?:why(?: not)?|how(?: so)?|when|where|who|which(?: one)?)\W*$)",
    re.I,
)
WHOLE = re.compile(
    r"^(?:what|which|who|whom|whose|when|where|why|how|is|are|was|were|do|does|did|can|could|may|must|should|has|have)\b",
    re.I,
)
OPENER = re.compile(r"^\W*(?:and|but|so|or|also|what about|how about|then)\b[\s,]*", re.I)


class Alone(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    question: Annotated[str, Field(max_length=LONGEST)]


async def rephrase(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Rewrite the turn as a question that needs no conversation to be understood."""
    asked, history = run.asked.question, run.asked.history
    if not run.asked.has_model:
        yield rephrase_by_rule(asked, history)
        return
    reply = await context.ask(
        Role.plan,
        "standalone",
        Alone,
        lambda room: _build_prompt(asked, history, mark(run), min(room, SHOWN)),
        documents=sorted({doc for turn in history for doc in turn.documents}),
        max_tokens=150,
    )
    if isinstance(reply, NoReply):
        yield rephrase_by_rule(asked, history)
        return
    proposed, by = reply
    alone = " ".join(proposed.question.split())
    if not adds_nothing(alone, asked, history):
        ruled = rephrase_by_rule(asked, history)
        yield Rephrased(ruled.question, f"what the model made of it names what nobody has named; {ruled.why}", RULES)
        return
    yield Rephrased(alone, "" if alone != asked else "it stands alone", by)


def adds_nothing(alone: str, asked: str, history: Sequence[Exchange]) -> bool:
    """Whether a rewritten question adds nothing to the turn and its history: it is a single question, introduces no new
    name or number, and drops none that was asked for."""
    known = "\n".join((asked, *(f"{turn.question}\n{turn.answer}" for turn in history)))
    if not content_terms(alone) or is_suspicious(alone) or len(split_sentences(alone)) > 2:
        return False
    return not facts.missing_facts(alone, known) and not facts.missing_facts(asked, alone, facts.lowercase_stems(asked))


def _build_prompt(asked: str, history: Sequence[Exchange], mark: str, room: int) -> dict[str, str]:
    """The prompt's values; the oldest turns are dropped if space is short."""
    left = room - estimate_tokens(asked) - 40
    shown: list[str] = []
    for number, turn in reversed(list(enumerate(history, 1))):
        words = fence(mark, f"turn {number}", f"Asked: {turn.question}\nSaid: {fit_to_tokens(turn.answer, 160)}")
        if (cost := estimate_tokens(words) + 1) > left:
            break
        shown.insert(0, words)
        left -= cost
    return {"history": "\n".join(shown), "question": fit_to_tokens(" ".join(asked.split()), max(room // 3, 32))}


# --- by rule --------------------------------------------------------------------------------------------------------


def rephrase_by_rule(asked: str, history: Sequence[Exchange]) -> Rephrased:
    """The question completed by rule: a pronoun is replaced by the last turn's subject; if the turn only names
    something else, that replaces the name in the last question."""
    last = history[-1].question if history else ""
    if not last or not depends_on_history(asked):
        return Rephrased(asked, "it stands alone")
    bare = OPENER.sub("", asked).strip() or asked
    if WHOLE.search(bare) and len(content_terms(bare)) > 1 and not POINTS_BACK.search(bare):
        return Rephrased(bare[0].upper() + bare[1:], "it stands alone")
    if CARRIES_ON.search(asked) and not POINTS_BACK.search(bare):
        if swapped := _swapped(bare, last):
            return Rephrased(swapped, "the last question, of something else")
        return Rephrased(f"{bare.rstrip('?. ')}: {last}", "it carries on the last question")
    subject = _subject(last)
    if subject and (match := POINTS_BACK.search(bare)):
        whose = f"{subject}'s" if match[0].lower() in {"its", "their", "his", "her"} else subject
        return Rephrased(bare[: match.start()] + whose + bare[match.end() :], f"“{match[0]}” is {subject}")
    return Rephrased(f"{bare.rstrip('?. ')}: {last}", "it carries on the last question")


def depends_on_history(asked: str) -> bool:
    """Whether a question depends on earlier turns: it continues one, or refers back and names nothing itself."""
    if CARRIES_ON.search(asked):
        return True
    return POINTS_BACK.search(asked) is not None and not find_names(asked)


def _subject(question: str) -> str:
    """The subject of a question: its last name, or else its longest run of content words."""
    if names := find_names(question):
        return names[-1].text
    runs = [
        each.strip()
        for each in re.split(r"[^\w' -]+|\b(?:" + "|".join(sorted(stop_words())) + r")\b", question, flags=re.I)
    ]
    return max((each for each in runs if each and content_terms(each)), key=lambda each: len(each.split()), default="")


def _swapped(bare: str, last: str) -> str:
    """The last question with its name replaced by another one."""
    own, before = find_names(bare), find_names(last)
    if len(own) != 1 or not before or len(content_terms(bare)) > len(content_terms(own[0].text)) + 1:
        return ""
    return last.replace(before[-1].text, own[0].text)
