"""The earlier turns of a conversation, as a model is shown them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.events import HistorySummarised
from assay.core.run import Run
from assay.core.types import Exchange
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

DIRECT = "(not from the documents)"  # before the answer of such a turn
LATEST = 4  # turns that are remembered at length and never summed up
TURN_TOKENS = 160  # tokens of one turn in a prompt


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
