"""A model that knows the labels of a question: what a perfect reader would say, so that only the loop around it is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scripted import Script, calls, drops, no_calls, one_step, passages_in, research, supported

from assay.core.events import RoleModel
from assay.core.types import Usage
from assay.index.hop_ranking import bare_title, name_key
from assay.language.names import find_names
from assay.language.sentences import split_sentences
from assay.models.cost import estimate_tokens, prompt_tokens
from assay.models.llm import Prompt, Reply, Role
from assay.models.meter import ConnectedModel, Ledger, Meter

NOTE = "It states a part of what the question asks for, and names what the next part is about."
NOT = "It does not help."
CLAIMS = 4  # that the draft makes, each a quotation

Json = dict[str, Any]
Schema = Mapping[str, Any] | None


@dataclass
class Knowing:
    """Scores documents with a label 10 and others 0, and says enough when all are found. It searches for one that is missing
    by its title when a document it has read names it; then for the names in the question, together; then it rests. Counts
    what it was asked and what it said."""

    question: str
    gold: Mapping[str, tuple[str, str]]  # document → title and text
    name: str = "knowing"
    tokens: Counter[str] = field(default_factory=Counter)  # by prompt
    spent: Usage = field(default_factory=Usage)
    weighed: int = 0  # passages that were shown to be weighed
    _tried: set[str] = field(default_factory=set)
    _read: set[str] = field(default_factory=set)

    async def complete(self, prompt: Prompt, seconds: float) -> Reply:
        reply = await self._script().complete(prompt, seconds)
        written = "".join((reply.text, *(call.name + call.arguments for call in reply.calls)))
        usage = Usage(1, prompt_tokens(prompt), estimate_tokens(written))
        self.tokens[prompt.messages[0].text.partition("\n")[0].rpartition("· ")[2]] += (
            usage.tokens_in + usage.tokens_out
        )
        self.spent += usage
        return replace(reply, usage=usage)

    def recall(self, words: str) -> None:
        """The passage was weighed before, and is again."""
        self.weighed += 1
        self._read |= {self._of(words)} - {""}

    def _script(self) -> Script:
        return Script(
            route=research(),
            plan=one_step(self.question),
            weigh=self._weigh,
            judge=self._judge,
            decide=self._decide,
            write=self._write,
            check=supported(),
            revise=drops(),
        )

    def _of(self, words: str) -> str:
        """The labelled document that these words are from."""
        said = " ".join(words.removesuffix("…").split())
        return next((doc for doc, (_, body) in self.gold.items() if said and said in " ".join(body.split())), "")

    def _weigh(self, asked: str, schema: Schema) -> Json:
        shown = passages_in(asked)
        self.weighed += len(shown)
        found = {place: words for place, words in shown.items() if self._of(words)}
        self._read |= {self._of(words) for words in found.values()}
        weights = [{"id": place, "quote": _first(words), "score": 10, "note": NOTE} for place, words in found.items()]
        if not weights and len(shown) == 1:
            weights = [{"id": next(iter(shown)), "quote": "", "score": 0, "note": NOT}]
        return {"passages": weights}

    def _judge(self, asked: str, schema: Schema) -> Json:
        lacking = [self.gold[doc][0] for doc in self.gold.keys() - self._read]
        missing = [f"a part of the question, {number}" for number, _ in enumerate(lacking, 1)]
        return {"answers": [], "enough": not lacking, "missing": missing[:6], "surprise": False}

    def _decide(self, asked: str, schema: Schema) -> Any:
        read = " ".join(f" {name_key(self.gold[doc][1])} " for doc in sorted(self._read))
        titles = [bare_title(self.gold[doc][0]) for doc in sorted(self.gold.keys() - self._read)]
        known = [title for title in titles if f" {name_key(title)} " in read and title not in self._tried]
        other = " ".join(name.text for name in find_names(self.question))
        named = known or [words for words in (other,) if words and words not in self._tried]
        self._tried.update(named)
        if not named:
            return no_calls()
        made = calls("search", query=named[0])
        for title in named[1:]:
            made += calls("search", query=title)
        return made

    def _write(self, asked: str, schema: Schema) -> Json:
        shown = [(key, words) for key, words in passages_in(asked).items() if self._of(_first(words))]
        claims = [{"text": _first(words), "cites": [key]} for key, words in shown[:CLAIMS]]
        blocks = [{"heading": "", "claims": claims, "opinion": False}] if claims else []
        return {"shape": "prose", "blocks": blocks, "conflicts": [], "missing": []}


def _first(words: str) -> str:
    """The first sentence of some length; shorter ones are names and abbreviations."""
    spans = split_sentences(words)
    return next((words[a:b] for a, b in spans if b - a > 30), words[: spans[0][1]] if spans else words).strip()


def meter(model: Knowing, window: int = 32768) -> Meter:
    """The model in every role, with tool calls and schemas, and no ceilings."""
    models = {
        role: (
            ConnectedModel(model, RoleModel(role.value, model.name, tools=True, schema=True, json=True, window=window)),
        )
        for role in Role
    }
    return Meter(models, record=lambda _: None, recorded_reply=lambda _: None, ledger=Ledger())
