"""A model that can write a whole synthesis: stateless and deterministic, in the words of the documents.

with ChatServer(synthesis_model()) as server: ...
with ChatServer(synthesis_model(relate=lambda text, schema: {"relations": []})) as server: ...      replaces one reply
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from doubles import replies
from doubles.fill_policies import cooperative_reply
from doubles.protocol import ModelOutput, Request, role_of, schema_of, text_of
from doubles.script import ReplyWriter, ScriptLine

Json = dict[str, Any]
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_FENCED = re.compile(r"⟦(\w+) quoted: ([^⟧]*)⟧\n(.*?)\n⟦end \1⟧", re.DOTALL)
_KEY = re.compile(r"key ([0-9a-f]{8}) · (D\d+)")
_POINT = re.compile(r"^\s*(\d+) \(([^)]*(?:\(D\d+\))?[^)]*?), key ([0-9a-f]{8})\): (.*)$", re.M)
_PLAIN = frozenset(
    "the a an of in at on to is are was were and or for with by it its that this be as from how what".split()
)


def synthesis_model(**other: ScriptLine) -> Callable[[Request], ModelOutput]:
    """Answers every prompt of a synthesis. `other` replaces single replies, by the prompt's name."""
    lines: Mapping[str, ScriptLine] = {**_LINES, **other}

    def answer(request: Request) -> ModelOutput:
        role, name = role_of(request)
        line = lines.get(name or role)
        if line is None:
            return cooperative_reply(request)
        return line(text_of(request), schema_of(request)) if callable(line) else line

    return answer


def sentences(words: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.split(words) if each.strip()]


def read(text: str, schema: Any) -> Json:
    """Every sentence of every passage as a point, in its own words, and a question about the first ones."""
    found: dict[str, list[Json]] = {}
    for match in _FENCED.finditer(text):
        if key := _KEY.match(match[2]):
            own = found.setdefault(key[2], [])
            own += [
                {"key": key[1], "words": each, "text": each, "question": 0}
                for each in sentences(match[3])
                if len(each.split()) > 3
            ]
    wanted = int((re.findall(r"questions: (\d+) questions", text) or ["2"])[-1])
    return {"documents": [_document(label, points, wanted) for label, points in found.items()]}


def _document(label: str, points: list[Json], wanted: int) -> Json:
    asked = [f"What is known about {_subject(each['words'])}?" for each in points[:wanted]]
    numbered = [each | {"question": at if at <= len(asked) else 0} for at, each in enumerate(points, 1)]
    empty = {"name": "", "title": "", "authors": [], "year": ""}
    return {"document": label, **empty, "questions": asked, "points": numbered}


def _subject(sentence: str) -> str:
    words = sentence.rstrip(".?!").split()[:12]
    return " ".join([words[0].lower() if words[0] in {"The", "A", "An", "Its", "They"} else words[0], *words[1:]])


def points_in(text: str) -> list[tuple[int, str, str, str]]:
    """The points of a prompt: number, label, key and words."""
    found: list[tuple[int, str, str, str]] = []
    for number, name, key, said in _POINT.findall(text):
        quoted = re.search(r"“(.*)”$", said)
        found.append((int(number), re.findall(r"D\d+", name)[-1], key, quoted[1] if quoted else said))
    return found


def relate(text: str, schema: Any) -> Json:
    """Each point is complementary to the one of another document that shares most words with it, or contradicts it if only a
    number differs. One paragraph for each third of the points."""
    points = points_in(text)
    relations: list[Json] = []
    for at, (number, label, _, words) in enumerate(points):
        others = [each for each in points[at + 1 :] if each[1] != label]
        best = max(others, key=lambda each: len(_words(words) & _words(each[3])), default=None)
        if best and len(_words(words) & _words(best[3])) > 2:
            kind = "contradiction" if words != best[3] and _frame(words) == _frame(best[3]) else "complement"
            reason = f"{words.rstrip('.')}, and {best[3]}"
            relations.append({"left": number, "right": best[0], "type": kind, "reason": reason})
    numbers = [number for number, *_ in points]
    firsts = list({label: number for number, label, *_ in reversed(points)}.values())
    others = [points[at][3] for at in (0, len(points) // 2, -1)] if points else []
    comparisons = [
        {"question": f"How do the findings about {_subject(each)} compare?", "points": firsts} for each in others
    ]
    step = -(-len(numbers) // 3) or 1
    paragraphs = [{"topic": "all of it", "points": firsts}]
    paragraphs += [{"topic": "", "points": numbers[at : at + step]} for at in range(0, len(numbers), step)]
    return {"relations": relations[:12], "comparisons": comparisons, "theme": "", "paragraphs": paragraphs}


def _frame(words: str) -> str:
    return re.sub(r"\d+", "0", words)


def narrate(text: str, schema: Any) -> Json:
    """A sentence for each point, in its words, a paragraph for each entry of the plan."""
    paragraphs: list[Json] = []
    told: set[str] = set()
    for part in re.split(r"^Paragraph \d+: ", text, flags=re.M):
        own = [each for each in points_in(part) if each[3] not in told]
        told |= {each[3] for each in own}
        if own:
            paragraphs.append({"sentences": [{"text": words, "cites": [key]} for _, _, key, words in own]})
    return {"paragraphs": paragraphs}


def polish(text: str, schema: Any) -> Json:
    """The text as it is."""
    paragraphs: list[Json] = []
    for part in re.split(r"^Paragraph \d+$", text, flags=re.M)[1:]:
        lines = re.findall(r"^(\d+): (.+)$", part, re.M)
        own = [{"text": words, "sources": [int(number)], "points": []} for number, words in lines]
        paragraphs += [{"sentences": own}] if own else []
    return {"paragraphs": paragraphs}


def translate(text: str, schema: Any) -> Json:
    """Every claim unchanged, one sentence each."""
    lines = re.findall(r"^(\d+): (.+)$", text, re.M)
    return {"sentences": [{"text": words, "claims": [int(number)]} for number, words in lines], "analogy": ""}


def check(text: str, schema: Any) -> ModelOutput:
    """Every claim is supported; the rules decide whether to accept that."""
    return replies.supported()(text, schema)


def _words(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w-]+", words.lower())) - _PLAIN


_LINES: Mapping[str, ReplyWriter] = {
    "read": read,
    "relate": relate,
    "narrate": narrate,
    "polish": polish,
    "translate": translate,
    "check": check,
}
