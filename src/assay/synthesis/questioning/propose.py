"""Asks a model for questions: the prompt, the schema of the reply, and which of the questions are usable."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.core.account import Brief, Pipeline
from assay.core.events.maker import BY_RULES, Maker, stand_in
from assay.core.run import Run
from assay.language.injection import is_suspicious
from assay.language.terms import content_terms
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis.questioning.rule_questions import question_key
from assay.synthesis.questioning.standalone import stands_alone

FRAME = 60  # tokens of the fence around a quotation
LONGEST = 300  # maximum characters of a question
MENDED = 4  # faulty questions that are reported back to the model
ASPECTS = {
    Pipeline.summary: "broad themes, such as context, background, objective, method and findings",
    Pipeline.synthesis: "inner workings, such as design, steps, mechanisms, interactions and the reasons for choices",
}
MARK = re.compile("[?？؟]")
EDGE = "it is empty, too long or no single question"
POINTS = "it does not stand on its own: it speaks of a text or its authors, or does not name what it is about"
STRAYS = "it asks about nothing that was shown"
AGAIN = "it was asked already"


class QuestionsReply(BaseModel):
    """Questions as a model puts them."""

    model_config = ConfigDict(strict=True, extra="forbid")

    questions: list[Annotated[str, Field(max_length=600)]] = Field(max_length=24)


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """A request for questions: what the prompt shows, and the questions by rule that fill gaps.

    shows: the fenced text for the prompt, in at most so many tokens
    about: all text that a question may be about
    """

    prompt: str
    place: str  # the name of the placeholder in the prompt
    count: int
    shows: Callable[[int], str]
    about: str
    documents: tuple[str, ...]
    known: tuple[str, ...] = ()
    by_rule: Callable[[int, Sequence[str]], tuple[str, ...]] = lambda count, known: ()


async def propose_questions(run: Run, context: RunContext, asking: QuestionRequest) -> tuple[tuple[str, ...], Maker]:
    """The usable questions of a model, and their maker. Unusable ones are sent back once, but not to a small model:
    it repeats the mistake, and slowly."""
    if not run.asked.has_model:
        return (), BY_RULES
    found, wrong, maker = (), (), BY_RULES
    for _ in range(1 if context.small(Role.plan) else 2):
        reply = await _reply(run, context, asking, asking.count - len(found), wrong)
        if isinstance(reply, NoReply):
            return found, maker if found else stand_in(reply.why)
        usable, wrong = sift_questions(
            reply[0].questions, asking.about + " " + state.brief(run).focus, (*asking.known, *found)
        )
        found = (*found, *usable)[: asking.count]
        maker = Maker(reply[1]) if usable else maker
        if len(found) == asking.count or not wrong:
            break
    return found, maker


async def _reply(
    run: Run, context: RunContext, asking: QuestionRequest, count: int, wrong: Sequence[tuple[str, str]]
) -> tuple[QuestionsReply, str] | NoReply:
    return await context.ask(
        Role.plan,
        asking.prompt,
        QuestionsReply,
        lambda room: build_prompt(asking, state.brief(run), mark(run), room, count, wrong),
        schema=schema(count),
        documents=asking.documents,
        max_tokens=80 + 60 * count,
    )


def build_prompt(
    asking: QuestionRequest, brief: Brief, mark: str, room: int, count: int, wrong: Sequence[tuple[str, str]] = ()
) -> Mapping[str, str]:
    """The values of one of the three prompts, in at most `room` tokens: focus and faults first, then the text."""
    focus = (
        f"The reader wants to know: {fit_to_tokens(one_line(brief.focus), room // 6)}\nAsk about that.\n"
        if brief.focus
        else ""
    )
    values = {"count": str(count), "focus": focus, "wrong": ""}
    if wrong:
        lines = "\n".join(f"- {fit_to_tokens(each, 40)} ({why})" for each, why in wrong[:MENDED])
        values["wrong"] = fence(mark, "questions that cannot be used; write others", fit_to_tokens(lines, room // 4))
    if asking.prompt == "questions":
        values["aspects"] = ASPECTS[brief.pipeline]
    used = sum(estimate_tokens(each) for each in values.values())
    return values | {asking.place: asking.shows(room - used)}


def schema(count: int) -> dict[str, Any]:
    """JSON schema of a reply with `count` questions."""
    questions = {"type": "array", "items": {"type": "string"}, "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"questions": questions},
        "required": ["questions"],
        "additionalProperties": False,
    }


def sift_questions(
    proposed: Sequence[str], about: str, known: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """The usable questions, and the others with their faults. Text that instructs a model is dropped without being
    reported."""
    shown = frozenset(content_terms(about))
    seen = {question_key(each) for each in known}
    usable: list[str] = []
    wrong: list[tuple[str, str]] = []
    for each in proposed:
        words = one_line(each).strip("\"'“”-•* ")
        if is_suspicious(words):
            continue
        if why := _fault(words, shown, seen):
            wrong.append((words[:LONGEST], why))
        else:
            usable.append(words)
            seen.add(question_key(words))
    return tuple(usable), tuple(wrong)


def _fault(words: str, shown: frozenset[str], seen: set[tuple[str, ...]]) -> str:
    if not MARK.search(words[-1:]) or len(MARK.findall(words)) > 1 or not 12 <= len(words) <= LONGEST:
        return EDGE
    if not stands_alone(words):
        return POINTS
    if question_key(words) in seen:
        return AGAIN
    return "" if shown & frozenset(content_terms(words)) else STRAYS


def one_line(words: str) -> str:
    return " ".join(words.split())
