"""A turn of a conversation: what it is about, by its words alone, and the earlier turns as a model is shown them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from assay.answer import greetings
from assay.core.events import HistorySummarised, Subject, Task
from assay.core.run import Run
from assay.core.types import Exchange
from assay.language.terms import fold_case
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

DIRECT = "(not from the documents)"  # before the answer of such a turn
LATEST = 4  # turns that are remembered at length and never summed up
TURN_TOKENS = 160  # tokens of one turn in a prompt
MOST = 14  # words of a turn that only says what to do with an answer

# Words beside those that say what is wanted.
BESIDE = frozenset(
    "a all an and answer as be bit but can could do does for give i in into it its just last little make me more much need "
    "no now of ok okay only please put say show so tell that the then this to us want was we will with would write you "
    "your again".split()
)
LANGUAGES = frozenset(
    "arabic chinese croatian czech danish deutsch dutch english espanol finnish francais french german greek hebrew hindi "
    "hungarian italian italiano japanese korean latin norwegian polish portuguese romanian russian serbian spanish swedish "
    "turkish ukrainian auf en language translation".split()
)
TASKS: Sequence[tuple[Task, frozenset[str]]] = (
    (Task.check, frozenset("are certain check correct double how is really right sure true verify".split())),
    (Task.numbers, frozenset("digits figures numbers".split())),
    (
        Task.shorten,
        frozenset(
            "brief briefer briefly concise concisely condense gist one sentence sentences short shorten shorter summarise "
            "summarize summary tldr two words".split()
        ),
    ),
    (Task.list, frozenset("bullet bulleted bullets itemise itemize list points".split())),
    (Task.rewrite, frozenset("table tabular tabulate".split())),
    (
        Task.rewrite,
        frozenset("clearer easier everyday plain plainly simple simpler simplify simply terms words language".split()),
    ),
    (Task.rewrite, frozenset("clarify explain mean meaning means what".split())),
    (Task.rewrite, LANGUAGES),
)
# Of the words above, those that say nothing alone.
WEAK = frozenset("are auf en how is language one terms translation two what words".split())
SHORT_FORM = re.compile(r"\btl\W?dr\b")
TRANSLATE = re.compile(r"^\W*(?:(?:please|now|can|could|would|you)\W+)*translate(?:\W+\w+){1,5}\W*$", re.I)


def by_words(asked: str) -> tuple[Subject, Task | None] | None:
    """What a turn is about if its words leave no doubt: thanks, or something to do with the last answer. None if it may
    ask the documents something."""
    if greetings.is_greeting(asked):
        return Subject.talk, None
    words = set(re.findall(r"[^\W_]+", SHORT_FORM.sub("tldr", fold_case(asked))))
    if not words or len(asked.split()) > MOST:
        return None
    if TRANSLATE.search(asked):
        return Subject.answer, Task.rewrite
    for task, own in TASKS:
        if words & (own - WEAK) and words <= own | BESIDE:
            return Subject.answer, task
    return None


REFUSED: Mapping[Task, str] = {
    Task.check: "There is no answer yet to check.",
    Task.shorten: "There is no answer yet to shorten.",
    Task.numbers: "There is no answer yet to take the figures from.",
    Task.list: "There is no answer yet to list.",
    Task.rewrite: "There is no answer yet to work on.",
}


# --- what a model is shown ------------------------------------------------------------------------------------------


def conversation(run: Run) -> tuple[Exchange, ...]:
    """The earlier turns of a run, the oldest ones summed up if this run did so."""
    done, history = run.summarised, run.asked.history
    return (summary_of(done), *history[-LATEST:]) if done and done.words else history


def summary_of(done: HistorySummarised) -> Exchange:
    """A summary as an exchange, in place of the turns that it covers."""
    return Exchange(done.upto, "", done.words, done.documents, done.passages, turns=done.turns)


def is_talk(turn: Exchange) -> bool:
    """Whether a turn was answered without the documents."""
    return turn.answer.startswith(DIRECT)


def documents_of(history: Sequence[Exchange]) -> list[str]:
    """The documents whose text the turns contain."""
    return sorted({doc for turn in history for doc in turn.documents})


def render_history(history: Sequence[Exchange], mark: str, room: int) -> str:
    """The turns in at most `room` tokens; the oldest are left out if space is short."""
    left = room
    shown: list[str] = []
    number = sum(turn.turns or 1 for turn in history)
    for turn in reversed(history):
        words = fence(mark, *_labelled(turn, number))
        if (cost := estimate_tokens(words) + 1) > left:
            break
        shown.insert(0, words)
        left -= cost
        number -= turn.turns or 1
    return "\n".join(shown)


def _labelled(turn: Exchange, number: int) -> tuple[str, str]:
    if turn.turns:
        return f"turns {number - turn.turns + 1} to {number}, in short", fit_to_tokens(turn.answer, 2 * TURN_TOKENS)
    return f"turn {number}", f"Asked: {turn.question}\nSaid: {fit_to_tokens(turn.answer, TURN_TOKENS)}"
