"""A model that can write a whole synthesis: stateless and deterministic, in the words of the documents.

with ChatServer(synthesis_model()) as server: ...
with ChatServer(synthesis_model(relate=lambda text, schema: {"relations": []})) as server: ...      replaces one reply
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from assay.testing import replies
from assay.testing.fill_policies import cooperative_reply
from assay.testing.protocol import ModelOutput, Request, passages_in, role_of, schema_of, text_of
from assay.testing.script import ReplyWriter, ScriptLine

Json = dict[str, Any]
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n")
_FENCED = re.compile(r"⟦(\w+) quoted: ([^⟧]*)⟧\n(.*?)\n⟦end \1⟧", re.DOTALL)
_KEY = re.compile(r"key ([0-9a-f]{8})")
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


def first_sentence(words: str) -> str:
    return next((each for each in sentences(words) if len(each.split()) > 3), words.strip())


def sentences(words: str) -> list[str]:
    return [each.strip() for each in _SENTENCE.split(words) if each.strip()]


def questions(text: str, schema: Any) -> Json:
    """As many questions as requested, each about one shown sentence, in its words."""
    shown = " ".join(match[3] for match in _FENCED.finditer(text))
    statements = [
        each for each in sentences(re.sub(r"^(?:Title|Abstract|Sections?):|^- ", "", shown, flags=re.M)) if each
    ]
    wanted = int((re.findall(r"Number of questions: (\d+)", text) or ["1"])[-1])
    subjects = [each.rstrip(".?!") for each in statements if len(each.split()) > 3]
    return {"questions": [f"What is known about {_subject(each)}?" for each in subjects[:wanted]]}


def _subject(sentence: str) -> str:
    words = sentence.split()[:12]
    return " ".join([words[0].lower() if words[0] in {"The", "A", "An", "Its", "They"} else words[0], *words[1:]])


def weigh(text: str, schema: Any) -> Json:
    """Each passage, quoted by the sentence with most words of the question; passages with none of them are left out."""
    asked = _words(_question(text))
    best = {
        place: max(sentences(words), key=lambda each: len(asked & _words(each)))
        for place, words in passages_in(text).items()
    }
    kept = [(place, words, len(asked & _words(words))) for place, words in best.items()]
    return {
        "passages": [
            {"id": place, "quote": words, "score": min(10, 2 + 2 * shared), "note": "it speaks of it"}
            for place, words, shared in kept
            if shared
        ]
    }


def _question(text: str) -> str:
    """The question of a request: fenced if it came from a document, plain if a person asked it."""
    fenced = [match[3] for match in _FENCED.finditer(text) if match[2] == "question"]
    return (fenced or re.findall(r"^Question: (.+)$", text, re.M) or [""])[-1]


def insights(text: str, schema: Any) -> Json:
    """For each number, the first sentence of its first quotation."""
    found: list[Json] = []
    for part in re.split(r"^(?=Number \d+$)", text, flags=re.M)[1:]:
        quoted = next((match for match in _FENCED.finditer(part) if _KEY.search(match[2])), None)
        number = int(part.split()[1])
        if quoted and (key := _KEY.search(quoted[2])):
            asked = _words(_question(part))
            best = max(sentences(quoted[3]), key=lambda each: len(asked & _words(each)))
            found.append({"number": number, "text": best, "cites": [key[1]]})
    return {"insights": found}


def relate(text: str, schema: Any) -> Json:
    """Every pair is complementary, shown by the sentences of both sides that share most words."""
    found: list[Json] = []
    for part in re.split(r"^(?=Pair \d+)", text, flags=re.M)[1:]:
        number = int(re.match(r"Pair (\d+)", part)[1])  # type: ignore[index]
        left, right = (
            "\n".join(match[3] for match in _FENCED.finditer(each) if "question" not in match[2])
            for each in _sides(part)
        )
        one, other = max(
            ((a, b) for a in sentences(left) for b in sentences(right)),
            key=lambda pair: len(_words(pair[0]) & _words(pair[1])),
        )
        kind = "contradiction" if one != other and _frame(one) == _frame(other) else "complement"
        reason = f"{one.rstrip('.')}, and {other}"
        found.append({"pair": number, "left": one, "right": other, "reason": reason, "type": kind})
    return {"relations": found}


def _sides(part: str) -> tuple[str, str]:
    left, _, right = part.partition("\nRight, ")
    return left, right


def _frame(words: str) -> str:
    return re.sub(r"\d+", "0", words)


def spine(text: str, schema: Any) -> Json:
    """One sentence per document, up to the maximum: its first finding."""
    found: list[Json] = []
    for match in _FENCED.finditer(text):
        label = re.match(r"D\d+", match[2])
        finding = re.match(r"key ([0-9a-f]{8}): (.+)", match[3])
        if label and finding:
            found.append({"text": f"{label[0]} says: {first_sentence(finding[2])}", "cites": [finding[1]]})
    return {"theme": "", "sentences": found[:5]}


def narrate(text: str, schema: Any) -> Json:
    """One claim for each key shown, in the words it is shown with."""
    quoted: dict[str, str] = {}
    for match in _FENCED.finditer(text):
        if key := _KEY.match(match[2]):
            quoted.setdefault(key[1], first_sentence(match[3]))
    return {"blocks": [{"claims": [{"text": words, "cites": [key]} for key, words in quoted.items()]}]}


def themes(text: str, schema: Any) -> Json:
    """Each group, named by the first long words of its lines."""
    names: list[Json] = []
    for match in re.finditer(r"quoted: (T\d+)[^⟧]*⟧\n(.*?)\n⟦end", text, re.DOTALL):
        long = re.findall(r"[a-z]{5,}", match[2])
        names.append({"theme": match[1], "name": " ".join(dict.fromkeys(long[:2])) or "others"})
    return {"names": names}


def translate(text: str, schema: Any) -> Json:
    """Every claim unchanged, one sentence each."""
    lines = re.findall(r"^(\d+) \([^)]*\): (.+)$", text, re.M)
    return {"sentences": [{"text": words, "claims": [int(number)]} for number, words in lines], "analogy": ""}


def check(text: str, schema: Any) -> ModelOutput:
    """Every claim is supported; the rules decide whether to accept that."""
    return replies.supported()(text, schema)


def _words(words: str) -> frozenset[str]:
    return frozenset(re.findall(r"[\w-]+", words.lower())) - _PLAIN


_LINES: Mapping[str, ReplyWriter] = {
    "questions": questions,
    "comparative": questions,
    "followup": questions,
    "weigh": weigh,
    "insights": insights,
    "relate": relate,
    "spine": spine,
    "narrate": narrate,
    "themes": themes,
    "translate": translate,
    "check": check,
}
