"""Says what a turn of a conversation is about, and rewrites a question as a self-contained one. A model proposes; a
proposal that names anything not mentioned before is rejected. Then, as without a model, rules fill in what "it" and
"and in 2024?" leave out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.agent.context import RunContext, mark
from assay.agent.turns import LANGUAGES, REFUSED, by_words, conversation, documents_of, is_talk, render_history
from assay.core.events import Event, Rephrased, Subject, Task
from assay.core.run import Run
from assay.core.types import Exchange
from assay.language import facts
from assay.language.injection import is_suspicious
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case
from assay.language.words import stop_words
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.models.token_estimate import estimate_tokens, fit_to_tokens

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
PRONOUNS = frozenset("it its they them their theirs he him his she her hers".split())
TO_BE = frozenset("is are was were be been".split())
CLAUSE = re.compile(r",|\b(?:and|or|but|when|if|while|because|before|after|although|that|which|who)\b", re.I)
OPENER = re.compile(r"^\W*(?:and|but|so|or|also|what about|how about|then)\b[\s,]*", re.I)


class Turn(BaseModel):
    """The latest turn as a model reads it: what it is about, and as a question that stands alone."""

    model_config = ConfigDict(strict=True, extra="forbid")

    about: Literal["question", "answer", "talk"] = "question"
    doubt: bool = False
    question: Annotated[str, Field(max_length=LONGEST)]


async def rephrase(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """Say what the turn is about, and rewrite it as a question that needs no conversation to be understood. A turn that
    the passages of the last answer could not serve is read again, as a question to the documents."""
    again = run.rephrased is not None
    ruled = None if again else about_by_rule(run)
    if ruled is not None and (run.last_answer or ruled.on is Subject.talk or not run.asked.has_model):
        yield ruled
        return
    asked, history = run.asked.question, conversation(run)
    if not run.asked.has_model:
        yield rephrase_by_rule(asked, run.asked.history)
        return
    reply = await context.ask(
        Role.plan,
        "standalone",
        Turn,
        lambda room: _build_prompt(asked, history, mark(run), min(room, SHOWN)),
        documents=documents_of(history),
        max_tokens=150,
    )
    if isinstance(reply, NoReply):
        yield rephrase_by_rule(asked, run.asked.history)
        return
    proposed, by = reply
    about = None if again else _about_by_model(run, proposed, by)
    yield about or _standalone(asked, history, proposed, by)


def about_by_rule(run: Run) -> Rephrased | None:
    """What the turn is about if its words leave no doubt, and it is no question to the documents."""
    found = by_words(run.asked.question)
    if found is None:
        return None
    subject, task = found
    last = run.last_answer
    if task is not None and last is None:
        return _asked_again(run) or Rephrased(run.asked.question, REFUSED[task], on=Subject.talk)
    return Rephrased(last.question if task and last else run.asked.question, on=subject, task=task)


def _asked_again(run: Run) -> Rephrased | None:
    """The last question once more, if its answer cannot be worked on: it had none, or it is only known in short."""
    asked = (turn.question for turn in reversed(run.asked.history) if turn.question and not is_talk(turn))
    question = next(asked, "")
    return Rephrased(question, "the last question, looked up again") if question else None


def _about_by_model(run: Run, proposed: Turn, by: str) -> Rephrased | None:
    """The same, as a model reads the turn. One that names what the conversation does not is a question to the documents,
    unless it names a language."""
    asked, last = run.asked.question, run.last_answer
    if proposed.about == "question":
        return None
    if proposed.about == "answer" and last is not None:
        named = facts.missing_facts(asked, _texts(conversation(run)))
        if any(not each.isdigit() and fold_case(each) not in LANGUAGES for each in named):
            return None
        return Rephrased(last.question, by=by, on=Subject.answer, task=Task.check if proposed.doubt else Task.rewrite)
    if proposed.about == "answer" and (again := _asked_again(run)):
        return replace(again, by=by)
    return Rephrased(asked, by=by, on=Subject.talk)


def _standalone(asked: str, history: Sequence[Exchange], proposed: Turn, by: str) -> Rephrased:
    """The question as the model rewrote it, if it adds nothing. One that stands alone takes nothing from the turns before:
    a change of subject does not drag the old one along."""
    alone = " ".join(proposed.question.split())
    if stands_alone(asked) and facts.missing_facts(alone, asked):
        return Rephrased(asked, "it stands alone: what the model took from before is left out")
    if not adds_nothing(alone, asked, history):
        ruled = rephrase_by_rule(asked, history)
        return replace(ruled, why=f"what the model made of it names what nobody has named; {ruled.why}")
    return Rephrased(alone, "" if alone != asked else "it stands alone", by)


def adds_nothing(alone: str, asked: str, history: Sequence[Exchange]) -> bool:
    """Whether a rewritten question adds nothing to the turn and its history: it is a single question, introduces no new
    name or number, and drops none that was asked for."""
    if not content_terms(alone) or is_suspicious(alone) or len(split_sentences(alone)) > 2:
        return False
    known = f"{asked}\n{_texts(history)}"
    return not facts.missing_facts(alone, known) and not facts.missing_facts(asked, alone, facts.lowercase_stems(asked))


def _texts(history: Sequence[Exchange]) -> str:
    return "\n".join(f"{turn.question}\n{turn.answer}" for turn in history)


def _build_prompt(asked: str, history: Sequence[Exchange], mark: str, room: int) -> dict[str, str]:
    return {
        "history": render_history(history, mark, room - estimate_tokens(asked) - 40),
        "question": fit_to_tokens(" ".join(asked.split()), max(room // 3, 32)),
    }


# --- by rule --------------------------------------------------------------------------------------------------------


def rephrase_by_rule(asked: str, history: Sequence[Exchange]) -> Rephrased:
    """The question completed by rule: a pronoun is replaced by the last turn's subject; if the turn only names
    something else, that replaces the name in the last question."""
    last = next((turn.question for turn in reversed(history) if turn.question), "")
    if not last or not depends_on_history(asked):
        return Rephrased(asked, "it stands alone")
    bare = OPENER.sub("", asked).strip() or asked
    if WHOLE.search(bare) and len(content_terms(bare)) > 1 and not _points_back(bare):
        return Rephrased(bare[0].upper() + bare[1:], "it stands alone")
    if CARRIES_ON.search(asked) and not _points_back(bare):
        if swapped := _swapped(bare, last):
            return Rephrased(swapped, "the last question, of something else")
        return Rephrased(f"{bare.rstrip('?. ')}: {last}", "it carries on the last question")
    subject = _subject(last)
    if subject and (match := _points_back(bare)):
        whose = f"{subject}'s" if match[0].lower() in {"its", "their", "his", "her"} else subject
        return Rephrased(bare[: match.start()] + whose + bare[match.end() :], f"“{match[0]}” is {subject}")
    return Rephrased(f"{bare.rstrip('?. ')}: {last}", "it carries on the last question")


def depends_on_history(asked: str) -> bool:
    """Whether a question depends on earlier turns: it continues one, or refers back and names nothing itself."""
    if CARRIES_ON.search(asked):
        return True
    return _points_back(asked) is not None and not find_names(asked)


def stands_alone(asked: str) -> bool:
    """Whether a question has a subject of its own and refers to nothing before it."""
    return not CARRIES_ON.search(asked) and not _points_back(asked) and len(content_terms(asked)) > 1


def _points_back(asked: str) -> re.Match[str] | None:
    """The first word that refers to something outside the question: not "the ferry that leaves", "is there a ferry", nor a
    pronoun whose noun stands in an earlier clause of the question."""
    for match in POINTS_BACK.finditer(asked):
        before = asked[: match.start()]
        word, left = match[0].lower(), before.split()
        if word == "there" and left and left[-1].lower() in TO_BE:
            continue
        if word == "that" and left and content_terms(left[-1]) and asked[match.end() :].strip(" ?.!"):
            continue
        clauses = [each.start() for each in CLAUSE.finditer(before)]
        if word in PRONOUNS and clauses and len(content_terms(before[: clauses[-1]])) > 1:
            continue
        return match
    return None


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
