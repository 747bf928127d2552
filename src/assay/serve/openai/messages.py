"""Splits chat messages into a question and its history. Pure.

The conversation comes from the client: its assistant messages help to understand the question and are never
evidence. System messages are ignored: they can change neither the rules nor the answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.core.errors import UserError
from assay.core.types import Exchange
from assay.serve.openai_chat import ChatMessage
from assay.serve.run_schemas import MAX_QUESTION
from assay.serve.attached_run import strip_notes
from assay.workspace.chat_history import FULL, LATEST, MOST, SHORT

ASKED = 2000  # characters kept of an earlier question
UNANSWERED = "(not answered)"


def split_messages(messages: Sequence[ChatMessage]) -> tuple[str, tuple[Exchange, ...]]:
    """The question and the turns before it, oldest first."""
    spoken = [each for each in messages if each.role in ("user", "assistant")]
    if not spoken or spoken[-1].role != "user":
        raise UserError("The last message has to be the user's: it is the question.")
    question = extract_question(spoken[-1])
    pairs: list[tuple[str, str]] = []
    for message in spoken[:-1]:
        words = plain_reply(message_text(message))
        if message.role == "user":
            pairs.append((words, ""))
        elif pairs and words:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {words}".strip())
    pairs = [pair for pair in pairs if pair[0]][-MOST:]
    before: list[Exchange] = []
    for place, (earlier, answer) in enumerate(pairs):
        room = FULL if place >= len(pairs) - LATEST else SHORT
        before.append(Exchange("", earlier[:ASKED], answer[:room] or UNANSWERED))
    return question, tuple(before)


def last_exchange(messages: Sequence[ChatMessage]) -> tuple[str, str]:
    """The last question before this one and the reply to it, as plain words; both empty if there is none."""
    spoken = [each for each in messages if each.role in ("user", "assistant")][:-1]
    if len(spoken) < 2 or [each.role for each in spoken[-2:]] != ["user", "assistant"]:
        return "", ""
    return message_text(spoken[-2]).strip(), plain_reply(message_text(spoken[-1]))


def plain_reply(text: str) -> str:
    """A reply without its notes, whatever a client has made of its white space."""
    return " ".join(strip_notes(text).split())


def extract_question(message: ChatMessage) -> str:
    """The text of the question. Pictures and files cannot be searched for."""
    if not isinstance(message.content, str) and (
        strange := [part.type for part in message.content or () if part.type != "text"]
    ):
        raise UserError(
            f"A question can only be text, and this one has a part of type {strange[0]!r}. "
            "Add the file to a knowledge base and ask about it."
        )
    question = message_text(message).strip()
    if not question:
        raise UserError("The question is empty. Ask something.")
    if len(question) > MAX_QUESTION:
        raise UserError(
            f"The question has {len(question)} characters, and {MAX_QUESTION} is the most. "
            "Add long texts to a knowledge base and ask about them."
        )
    return question


def message_text(message: ChatMessage) -> str:
    content = message.content
    words = (
        content if isinstance(content, str) else "\n".join(each.text for each in content or () if each.type == "text")
    )
    return words.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # lone surrogates are accepted
