"""Trains the answer model: a question and a block of a document → does the block answer it, and which words are the answer.

    python scripts/train_answer_model.py --base gte-small-int8.safetensors --questions questions.jsonl.xz \
        --passages passages.jsonl.xz --vocabulary bert-uncased-vocab.txt --out FOLDER [--start answer-int8.safetensors]

Starts from gte-small, or with --start from an earlier answer model. One pass of BERT over `[CLS] question [SEP] text [SEP]`
feeds linear heads. The word embeddings stay frozen, so the exported file shares those of gte-small. Then the log-odds are
calibrated on held-out questions. Needs torch with a GPU, tokenizers, safetensors and numpy.

questions: {question, positives: [id], negatives: [id], answer, source} a line; without positives, none of the passages
answers. passages: [id, text] a line. docs/decisions/0023-bundled-models.md lists the sources and licences.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import os
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from made_up_documents import NOUNS, SECTIONS, TITLES, made_up, under
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

DIM, HEADS, INNER = 384, 12, 1536
CLS, SEP = 101, 102
QUESTION_TOKENS, ROW_TOKENS = 64, 320
CANDIDATES, LISTED = 8, 20  # blocks a question is trained with at once, and ranked with at the end
BATCH_TOKENS = 48_000
CHUNK = 600  # questions whose examples are made at once
UNKNOWN = -100
EXPORTED = ("answers", "span")
PARTS = {name: name for name in ("query", "key", "value", "mix", "up", "down")}  # of a layer, by the names in the file
PARTS |= {"mix.norm": "attention_norm", "down.norm": "output_norm"}
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"'“(]?[A-Z0-9])")


# --- the network ----------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(DIM, DIM) for _ in range(4))
        self.up, self.down = nn.Linear(DIM, INNER), nn.Linear(INNER, DIM)
        self.attention_norm, self.output_norm = nn.LayerNorm(DIM, eps=1e-12), nn.LayerNorm(DIM, eps=1e-12)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, drop: float) -> torch.Tensor:
        batch, length, _ = x.shape

        def heads(linear: nn.Linear) -> torch.Tensor:
            return linear(x).view(batch, length, HEADS, DIM // HEADS).transpose(1, 2)

        seen = F.scaled_dot_product_attention(heads(self.query), heads(self.key), heads(self.value), attn_mask=mask)
        seen = self.mix(seen.transpose(1, 2).reshape(batch, length, DIM))
        x = self.attention_norm(x + F.dropout(seen, drop, self.training))
        return self.output_norm(x + F.dropout(self.down(F.gelu(self.up(x))), drop, self.training))


class AnswerNetwork(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.word = nn.Embedding(30522, DIM)
        self.position, self.kind = nn.Embedding(512, DIM), nn.Embedding(2, DIM)
        self.norm = nn.LayerNorm(DIM, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.answers, self.span = nn.Linear(DIM, 1), nn.Linear(DIM, 2)
        self.word.weight.requires_grad = False

    def tables(self) -> dict[str, nn.Embedding]:
        return {"position": self.position, "type": self.kind}

    def states(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor, drop: float = 0.1) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.word(ids) + self.position(places)[None] + self.kind(types))
        allowed = mask[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, allowed, drop)
        return x

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, types: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.states(ids, mask, types)
        span = self.span(x).float().masked_fill(((types == 0) | (mask == 0))[:, :, None], -1e4)
        return self.answers(x[:, 0])[:, 0].float(), span


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Tensors as float: int8 matrices are multiplied with the scale of their row."""
    stored = load_file(str(path))
    return {
        name: tensor.astype(np.float32) * stored[f"{name}.scale"].reshape(-1, *[1] * (tensor.ndim - 1))
        if f"{name}.scale" in stored
        else tensor
        for name, tensor in stored.items()
        if not name.endswith(".scale")
    }


def load_base(network: AnswerNetwork, weights: dict[str, np.ndarray], depth: int = 12) -> None:
    """Copies the weights of gte-small; a shallower network takes evenly spaced layers."""

    def put(module: nn.Module, name: str) -> None:
        for part in ("weight", "bias"):
            if f"{name}.{part}" in weights:
                getattr(module, part).data.copy_(torch.from_numpy(np.ascontiguousarray(weights[f"{name}.{part}"])))

    for name, table in (("word", network.word), *network.tables().items()):
        table.weight.data.copy_(torch.from_numpy(np.ascontiguousarray(weights[f"embeddings.{name}"])))
    put(network.norm, "embeddings.norm")
    for place, layer in enumerate(network.layers):
        source = place * depth // len(network.layers) + (depth // len(network.layers) - 1)
        for name, part in PARTS.items():
            put(getattr(layer, part), f"layers.{source}.{name}")


def quantise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 with one scale for each row."""
    scale = np.abs(matrix).max(axis=1).astype(np.float32) / 127
    scale[scale == 0] = 1
    return np.clip(np.rint(matrix / scale[:, None]), -127, 127).astype(np.int8), scale


def export(network: AnswerNetwork, path: Path, notes: dict[str, str]) -> dict[str, np.ndarray]:
    """Writes the weights without the word embeddings, which are those of gte-small."""
    out: dict[str, np.ndarray] = {}

    def add(name: str, tensor: torch.Tensor) -> None:
        array = tensor.detach().float().cpu().numpy()
        if array.ndim == 2 and not name.startswith("heads.") and name != "embeddings.type":
            out[name], out[f"{name}.scale"] = quantise(array)
        else:
            out[name] = array

    for name, table in network.tables().items():
        add(f"embeddings.{name}", table.weight)
    modules = {"embeddings.norm": network.norm}
    for place, layer in enumerate(network.layers):
        modules |= {f"layers.{place}.{name}": getattr(layer, part) for name, part in PARTS.items()}
    modules |= {f"heads.{part}": getattr(network, part) for part in EXPORTED}
    for name, module in modules.items():
        add(f"{name}.weight", module.weight)
        add(f"{name}.bias", module.bias)
    save_file(out, str(path), metadata=notes)
    return out


def load_export(network: AnswerNetwork, path: Path) -> None:
    weights = read_weights(path)
    names = {"embeddings.norm": network.norm}
    for place, layer in enumerate(network.layers):
        names |= {f"layers.{place}.{name}": getattr(layer, part) for name, part in PARTS.items()}
    names |= {f"heads.{part}": getattr(network, part) for part in EXPORTED}
    for name, table in network.tables().items():
        table.weight.data.copy_(torch.from_numpy(weights[f"embeddings.{name}"]))
    for name, module in names.items():
        module.weight.data.copy_(torch.from_numpy(weights[f"{name}.weight"]))
        module.bias.data.copy_(torch.from_numpy(weights[f"{name}.bias"]))


# --- examples -------------------------------------------------------------------------------------------------------


@dataclass
class Candidate:
    text: str
    answers: bool
    answer: str = ""  # its words in the text, if known


@dataclass
class Example:
    """A question with its candidates. Trained by list if one of them answers, and each by itself always."""

    question: str
    candidates: list[Candidate]
    source: str


@dataclass(frozen=True)
class Corpus:
    """The passages, and for each question and each short passage the nearest passages."""

    passages: dict[int, str]
    near: list[list[int]]  # by question
    beside: dict[int, list[int]]  # by passage

    def random_id(self, rng: random.Random) -> int:
        return rng.choice(list_of(self.passages))


_ids: list[int] = []


def list_of(passages: dict[int, str]) -> list[int]:
    if not _ids:
        _ids.extend(passages)
    return _ids


# Sources of single sentences, which are set among others; how often a question of a source is taken in an epoch.
SENTENCES = {"qamr", "squad_sent", "qnli", "selqa", "privacyqa", "iirc", "tweetqa"}
SHARES = {
    "qamr": 0.4, "synth_wiki_ict": 0.4, "synth_wiki_def": 0.5, "privacyqa": 0.4, "tweetqa": 0.4, "hybridqa": 0.6,
    "squad2_disfl": 3, "nq_oracle": 3, "clapnq_dev": 3, "aqa1.0": 2, "selqa": 2, "qed_nq": 2, "doqa": 1.5, "policyqa": 0.7,
    "narrativeqa": 1.5,
}  # fmt: skip
STRANGERS_MAY_ANSWER = {"qnli", "iirc", "ares_nq", "ares_wow", "ares_record", "doqa"}  # if no given passage answers
MADE_UP = 0.22  # of all questions
ASKING = re.compile(
    r"^(what|which|who|when|where|how (many|much|long|often|old)|why|how)"
    r"( (is|are|was|were|do|does|did|can|has|have)\b)?( (the|a|an)\b)?",
    re.IGNORECASE,
)


def tokenizer(vocabulary: Path) -> Tokenizer:
    built = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return built


def sentences(text: str) -> list[str]:
    return [part for part in SENTENCE_END.split(text) if part.strip()]


def title_and_body(text: str) -> tuple[str, str]:
    """The title that many passages begin with: `Title. Text`, `Title -- Text`."""
    head = re.match(r"([A-Z][^.\n]{2,60}?)(?:\.| --) ", text)
    if head and len(head.group(1).split()) <= 7 and len(text) - head.end() > 40:
        return head.group(1), text[head.end() :]
    return "", text


def held_out(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] < 5  # 2 %


def find_words(text: str, words: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def contains(text: str, answer: str) -> bool:
    return len(answer) > 1 and answer.casefold() in text.casefold() and find_words(text, answer) is not None


def draw_length(rng: random.Random) -> int:
    """Words of a block."""
    low, high = rng.choices([(10, 30), (30, 130), (130, 210)], [0.15, 0.65, 0.2])[0]
    return rng.randint(low, high)


def as_asked(question: str, rng: random.Random) -> str:
    """Some questions as people type them: small letters, no question mark, key words alone."""
    chance = rng.random()
    if chance < 0.07:
        return ASKING.sub("", question).strip(" ?") or question
    if chance < 0.2:
        return question.rstrip(" ?").lower() if chance < 0.14 else question.lower()
    return question


def window(parts: list[str], at: int, words: int, rng: random.Random) -> tuple[int, int]:
    """Sentences around one of them, up to so many words."""
    first, last = at, at + 1
    count = len(parts[at].split())
    while count < words and (first > 0 or last < len(parts)):
        if last == len(parts) or (first > 0 and rng.random() < 0.5):
            first -= 1
            count += len(parts[first].split())
        else:
            count += len(parts[last].split())
            last += 1
    return first, last


class Cutter:
    """Cuts passages into blocks for one question: all of similar length and headed in the same way."""

    def __init__(self, corpus: Corpus, words: int, avoid: set[int], answer: str, rng: random.Random) -> None:
        self.corpus, self.words, self.avoid, self.answer, self.rng = corpus, words, avoid, answer, rng
        self.style = rng.choices(["path", "title", "bare"], [0.62, 0.28, 0.1])[0]
        self.padded = rng.random() < 0.5
        self.outer = self.heading()

    def heading(self) -> str:
        return f"{self.rng.choice(NOUNS)} {self.rng.choice(TITLES)}"

    def headed(self, title: str, body: str) -> str:
        if self.style == "bare" or (self.style == "title" and not title):
            return body
        if self.style == "title":
            return f"{title}{self.rng.choice(['. ', ': ', ' -- '])}{body}"
        section = self.rng.choice(SECTIONS)
        path = self.rng.choice([(title or self.outer,), (title or self.outer, section), (self.outer, title or section)])
        return under(path, body)

    def beside(self, which: int, words: int) -> list[str]:
        """Sentences of passages near to one, up to so many words, none of which answers."""
        found: list[str] = []
        near = self.corpus.beside.get(which, [])[:12]
        self.rng.shuffle(near := list(near))
        for each in near:
            if words <= 5:
                break
            if each == which or each in self.avoid:
                continue
            parts = sentences(title_and_body(self.corpus.passages[each])[1])
            first, last = window(parts, self.rng.randrange(len(parts)), min(words, 60), self.rng)
            text = " ".join(parts[first:last])
            if not (self.answer and contains(text, self.answer)):
                found.append(text)
                words -= len(text.split())
        return found

    def around(self, which: int, text: str) -> tuple[str, str]:
        """A short text among sentences from beside it, and those sentences alone."""
        more = self.beside(which, self.words - len(text.split())) if self.padded else []
        at = self.rng.randint(0, len(more))
        return " ".join([*more[:at], text, *more[at:]]), " ".join(more)

    def negative(self, which: int) -> Candidate:
        title, body = title_and_body(self.corpus.passages[which])
        parts = sentences(body)
        free = [n for n, part in enumerate(parts) if not (self.answer and contains(part, self.answer))]
        if not free:
            return Candidate(self.headed(title, parts[0]), False)
        first, last = window(parts, self.rng.choice(free), self.words, self.rng)
        kept = [parts[n] for n in range(first, last) if n in set(free)]
        return Candidate(self.headed(title, self.around(which, " ".join(kept))[0]), False)


def block_example(item: dict, near: list[int], corpus: Corpus, rng: random.Random, most: int) -> Example | None:
    """The block that answers a question against other blocks of its passage, the same without the answer, and near ones."""
    source, answer = item["source"], (item["answer"] or "").strip()
    if source == "boolq" or answer.lower() in ("yes", "no"):
        answer = ""
    positives = item["positives"]
    avoid = set(positives)
    found: list[Candidate] = []
    if positives:
        which = rng.choice(positives)
        text = corpus.passages[which]
        known = contains(text, answer)
        cutter = Cutter(corpus, draw_length(rng), avoid, answer if known else "", rng)
        whole = source not in SENTENCES and not known
        if whole:
            cutter.words = int(min(len(text.split()), 220) * rng.uniform(0.8, 1.3))
        found = sentence_blocks(which, cutter) if source in SENTENCES else passage_blocks(which, cutter, whole)
        if not known:
            for each in found:
                each.answer = ""
        if rng.random() < 0.27:
            found = [each for each in found if not each.answers]  # nothing answers
    else:
        cutter = Cutter(corpus, draw_length(rng), {*near[:6]}, "", rng)
        cutter.words = max(cutter.words, 60)
    given = [each for each in item["negatives"] if each not in avoid]
    ids = rng.sample(given, min(len(given), 3))
    if positives or source not in STRANGERS_MAY_ANSWER:
        skipped = 2 if answer else 4
        hard = [each for each in near[skipped:] if each not in avoid and each not in given]
        ids += hard[: most // 2] if most > CANDIDATES else rng.sample(hard[:16], min(len(hard[:16]), 4))
        ids += rng.sample(hard, min(len(hard), most)) if most > CANDIDATES else [corpus.random_id(rng)]
    for each in dict.fromkeys(ids):
        if len(found) >= most:
            break
        candidate = cutter.negative(each) if positives else whole_negative(each, cutter)
        if not any(candidate.text == other.text for other in found):
            found.append(candidate)
    return Example(as_asked(item["question"], rng), found, source) if found else None


def whole_negative(which: int, cutter: Cutter) -> Candidate:
    title, body = title_and_body(cutter.corpus.passages[which])
    return Candidate(cutter.headed(title, cutter.around(which, body)[0]), False)


def sentence_blocks(which: int, cutter: Cutter) -> list[Candidate]:
    """A sentence that answers, among others; and those others."""
    block, others = cutter.around(which, cutter.corpus.passages[which])
    found = [Candidate(cutter.headed("", block), True, cutter.answer)]
    if others:
        found.append(Candidate(cutter.headed("", others), False))
    return found


def passage_blocks(which: int, cutter: Cutter, whole: bool) -> list[Candidate]:
    """The block of a passage that answers, the same without the sentence that answers, and the other blocks of the passage."""
    title, body = title_and_body(cutter.corpus.passages[which])
    if whole:
        return [Candidate(cutter.headed(title, cutter.around(which, body)[0]), True)]
    parts = sentences(body)
    holding = [n for n, part in enumerate(parts) if contains(part, cutter.answer)]
    if not holding:
        return [Candidate(cutter.headed(title, body), True, cutter.answer)]
    first, last = window(parts, cutter.rng.choice(holding), cutter.words, cutter.rng)
    found = [Candidate(cutter.headed(title, cutter.around(which, " ".join(parts[first:last]))[0]), True, cutter.answer)]
    rest = [" ".join(parts[n] for n in range(first, last) if n not in holding)]
    for free in (range(first), range(last, len(parts))):
        places = [n for n in free if n not in holding]
        if places:
            left, right = window(parts, cutter.rng.choice(places), cutter.words, cutter.rng)
            rest.append(" ".join(parts[n] for n in range(left, right) if n in places))
    found += [Candidate(cutter.headed(title, cutter.around(which, text)[0]), False) for text in rest if len(text) > 20]
    return found


def made_up_example(rng: random.Random, most: int) -> Example:
    case = made_up(rng, most)
    found = [Candidate(block.text, block.answers, block.answer) for block in case.blocks]
    return Example(as_asked(case.question, rng), found, f"made up/{case.kind}")


def make_examples(
    places: list[int], questions: list[dict], corpus: Corpus, rng: random.Random, most: int
) -> list[Example]:
    found = []
    for place in places:
        for _ in range(int(SHARES.get(questions[place]["source"], 1) + rng.random())):
            found.append(block_example(questions[place], corpus.near[place], corpus, rng, most))
    found += [made_up_example(rng, most) for _ in range(int(len(found) * MADE_UP / (1 - MADE_UP)))]
    return [each for each in found if each]


# --- batches --------------------------------------------------------------------------------------------------------


class Encoder:
    """Token rows with the positions of the answer. Texts are encoded many at a time."""

    def __init__(self, tokens: Tokenizer) -> None:
        self.tokens = tokens
        self.known: dict[str, tuple[list[int], list[tuple[int, int]]]] = {}

    def learn(self, examples: list[Example]) -> None:
        """Encodes the texts of these examples and forgets all others."""
        holding = list(dict.fromkeys(c.text for each in examples for c in each.candidates if c.answer))
        others = {text for each in examples for text in (each.question, *(c.text for c in each.candidates))}
        plain = sorted(others - set(holding))
        self.known = {
            text: (one.ids[:ROW_TOKENS], one.offsets[:ROW_TOKENS])
            for text, one in zip(holding, self.tokens.encode_batch(holding, add_special_tokens=False), strict=True)
        }
        for text, one in zip(plain, self.tokens.encode_batch_fast(plain, add_special_tokens=False), strict=True):
            self.known[text] = (one.ids[:ROW_TOKENS], [])

    def row(self, question: str, candidate: Candidate) -> tuple[list[int], int, int, int]:
        """Token ids, where the text begins, and the answer's first and last token (or -100)."""
        asked = self.known[question][0][:QUESTION_TOKENS]
        ids, offsets = self.known[candidate.text]
        room = ROW_TOKENS - len(asked) - 3
        head = len(asked) + 2
        first = last = UNKNOWN
        if candidate.answer and (at := find_words(candidate.text, candidate.answer)):
            inside = [n for n, (a, b) in enumerate(offsets[:room]) if a < at.end() and b > at.start()]
            if inside:
                first, last = head + inside[0], head + inside[-1]
        return [CLS, *asked, SEP, *ids[:room], SEP], head, first, last


class Stream(IterableDataset):
    """Endless batches. Every worker makes the examples of its share of the questions anew in each epoch."""

    def __init__(self, questions: list[dict], corpus: Corpus, vocabulary: Path, seed: int) -> None:
        self.questions, self.corpus, self.vocabulary, self.seed = questions, corpus, vocabulary, seed

    def __iter__(self) -> Iterator[dict]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the workers fill the cores
        torch.set_num_threads(1)
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        rng = random.Random(self.seed * 1000 + number)
        encoder = Encoder(tokenizer(self.vocabulary))
        own = [at for at, item in enumerate(self.questions) if at % count == number and not held_out(item["question"])]
        while True:
            rng.shuffle(own)
            for start in range(0, len(own), CHUNK):
                examples = make_examples(own[start : start + CHUNK], self.questions, self.corpus, rng, CANDIDATES)
                yield from batches(examples, encoder, rng)


def batches(examples: list[Example], encoder: Encoder, rng: random.Random) -> Iterator[dict]:
    """Batches of whole examples with similar lengths."""
    encoder.learn(examples)
    sized = [(max(len(encoder.known[c.text][0]) for c in each.candidates), rng.random(), each) for each in examples]
    groups: list[list[Example]] = [[]]
    rows = 0
    for size, _, each in sorted(sized, key=lambda one: one[:2]):
        if groups[-1] and (rows + len(each.candidates)) * min(size + 30, ROW_TOKENS) > BATCH_TOKENS:
            groups.append([])
            rows = 0
        groups[-1].append(each)
        rows += len(each.candidates)
    rng.shuffle(groups)
    for group in groups:
        yield collate(group, encoder)


def collate(group: list[Example], encoder: Encoder) -> dict:
    pairs = [
        (number, candidate, encoder.row(each.question, candidate))
        for number, each in enumerate(group)
        for candidate in each.candidates
    ]
    width = -(-max(len(row[0]) for _, _, row in pairs) // 8) * 8
    ids, mask, types = (np.zeros((len(pairs), width), np.int64) for _ in range(3))
    for place, (_, _, (row, head, _, _)) in enumerate(pairs):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
        types[place, head : len(row)] = 1
    return {
        "ids": torch.from_numpy(ids),
        "mask": torch.from_numpy(mask),
        "types": torch.from_numpy(types),
        "example": torch.tensor([number for number, _, _ in pairs]),
        "answers": torch.tensor([candidate.answers for _, candidate, _ in pairs]),
        "first": torch.tensor([row[2] for _, _, row in pairs]),
        "last": torch.tensor([row[3] for _, _, row in pairs]),
    }


def loss_of(network: AnswerNetwork, batch: dict) -> torch.Tensor:
    scores, span = network(batch["ids"], batch["mask"], batch["types"])
    count = int(batch["example"].max()) + 1
    group, right = batch["example"], batch["answers"]
    best = torch.full((count,), -1e9, device=scores.device).scatter_reduce(0, group, scores.detach(), "amax")
    total = torch.zeros(count, device=scores.device).index_add(0, group, (scores - best[group]).exp())
    by_list = (best[group] + total[group].log() - scores)[right]
    alone = F.binary_cross_entropy_with_logits(scores, right.float(), reduction="none")
    loss = by_list.mean() if len(by_list) else scores.sum() * 0
    loss = loss + 0.7 * alone.mean() * CANDIDATES / 2
    if (batch["first"] != UNKNOWN).any():
        ends = F.cross_entropy(span[:, :, 0], batch["first"], ignore_index=UNKNOWN)
        loss = loss + 0.4 * (ends + F.cross_entropy(span[:, :, 1], batch["last"], ignore_index=UNKNOWN))
    return loss


def to_device(batch: dict) -> dict:
    return {
        name: tensor.to("cuda", non_blocking=True) if torch.cuda.is_available() else tensor
        for name, tensor in batch.items()
    }


# --- evaluation -----------------------------------------------------------------------------------------------------

NOISY = {
    "privacyqa",
    "synth_wiki_ict",
    "synth_wiki_def",
    "qamr",
    "tweetqa",
    "hybridqa",
    "ottqa",
    "narrativeqa",
    "policyqa",
}
BASE_RATE = 0.7 / 8  # one of eight blocks answers, and nothing answers three questions of ten
BINS = 10


@dataclass
class Read:
    """What a network says of an example."""

    example: Example
    scores: np.ndarray
    spans: list[bool]  # exact or not, for each known answer


@torch.no_grad()
def read_all(network: AnswerNetwork, examples: list[Example], encoder: Encoder) -> list[Read]:
    network.eval()
    encoder.learn(examples)
    found: dict[int, Read] = {}
    order = sorted(
        range(len(examples)), key=lambda n: max(len(encoder.known[c.text][0]) for c in examples[n].candidates)
    )
    for start in range(0, len(order), 48):
        places = order[start : start + 48]
        batch = to_device(collate([examples[place] for place in places], encoder))
        with torch.autocast("cuda", torch.float16, enabled=torch.cuda.is_available()):
            scores, span = network(batch["ids"], batch["mask"], batch["types"])
        scores = scores.cpu().numpy()
        ends = span.argmax(1).cpu().numpy()
        first, last = batch["first"].cpu().numpy(), batch["last"].cpu().numpy()
        at = 0
        for place in places:
            count = len(examples[place].candidates)
            rows = range(at, at + count)
            exact = [bool(ends[row, 0] == first[row] and ends[row, 1] == last[row]) for row in rows if first[row] >= 0]
            found[place] = Read(examples[place], scores[at : at + count], exact)
            at += count
    network.train()
    return [found[place] for place in range(len(examples))]


def probability(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(scores, -60, 60)))


def reliability(values: np.ndarray, right: np.ndarray) -> list[dict]:
    """For tenths of the probability: how many, their mean, and how many of them were right."""
    places = np.minimum((values * BINS).astype(int), BINS - 1)
    return [
        {"n": int(own.sum()), "said": round(float(values[own].mean()), 3), "right": round(float(right[own].mean()), 3)}
        if (own := places == place).any()
        else {"n": 0}
        for place in range(BINS)
    ]


def figures(reads: list[Read]) -> dict:
    """First place, AUROC, exact spans; how well the best block's probability tells whether it answers."""
    scores = np.concatenate([read.scores for read in reads])
    right = np.array([c.answers for read in reads for c in read.example.candidates])
    listed = [read for read in reads if 0 < sum(c.answers for c in read.example.candidates) < len(read.scores)]
    best = np.array([read.scores.max() for read in reads])
    hit = np.array([read.example.candidates[int(read.scores.argmax())].answers for read in reads])
    answerable = np.array([any(c.answers for c in read.example.candidates) for read in reads])
    spans = [exact for read in reads for exact in read.spans]
    rank = [
        int(
            (read.scores > max(s for s, c in zip(read.scores, read.example.candidates, strict=True) if c.answers)).sum()
        )
        for read in listed
    ]
    return {
        "questions": len(reads), "blocks": round(len(scores) / max(1, len(reads)), 1),
        "answerable": round(float(answerable.mean()), 3),
        "auroc": round(auroc(scores, right), 4), "first": round(float(np.mean([r == 0 for r in rank])), 4) if rank else None,
        "of three": round(float(np.mean([r < 3 for r in rank])), 4) if rank else None,
        "span": round(float(np.mean(spans)), 4) if spans else None,
        "auroc of the best: answerable": round(auroc(best, answerable), 4),
        "auroc of the best: right": round(auroc(best, hit), 4),
        "brier": round(float(((probability(scores) - right) ** 2).mean()), 4),
        "brier of the best": round(float(((probability(best) - hit) ** 2).mean()), 4),
    }  # fmt: skip


def full_report(reads: list[Read]) -> dict:
    by_source = defaultdict(list)
    for read in reads:
        by_source[read.example.source].append(read)
    clean = [read for read in reads if read.example.source not in NOISY]
    scores = np.concatenate([read.scores for read in clean])
    right = np.array([c.answers for read in clean for c in read.example.candidates])
    best = probability(np.array([read.scores.max() for read in clean]))
    hit = np.array([read.example.candidates[int(read.scores.argmax())].answers for read in clean])
    return {
        "all": figures(reads), "clean": figures(clean),
        "public": figures([r for r in clean if not r.example.source.startswith("made")]),
        "reliability of blocks": reliability(probability(scores), right), "reliability of the best": reliability(best, hit),
        "by source": {source: figures(own) for source, own in sorted(by_source.items())},
    }  # fmt: skip


def auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    if labels.all() or not labels.any():
        return float("nan")
    ranks = scores.argsort().argsort() + 1
    positives = labels.sum()
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives)))


def calibrate(network: AnswerNetwork, reads: list[Read]) -> tuple[float, float]:
    """Fits scale and offset of the log-odds (Platt) under the base rate, and folds them into the head."""
    reads = [read for read in reads if read.example.source not in NOISY]
    scores = torch.tensor(np.concatenate([read.scores for read in reads]), dtype=torch.float64)
    right = torch.tensor([c.answers for read in reads for c in read.example.candidates], dtype=torch.float64)
    made = torch.tensor([read.example.source.startswith("made") for read in reads for _ in read.scores])
    weight = torch.where(right == 1, BASE_RATE / right.mean(), (1 - BASE_RATE) / (1 - right.mean()))
    weight = weight * torch.where(made, 0.25 / made.double().mean(), 0.75 / (~made).double().mean())
    fitted = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([fitted], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(fitted[0] * scores + fitted[1], right, weight=weight)
        loss.backward()
        return loss

    optimizer.step(closure)
    scale, offset = (float(each) for each in fitted.detach())
    network.answers.weight.data.mul_(scale)
    network.answers.bias.data.mul_(scale).add_(offset)
    return scale, offset


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def mine(
    base: dict[str, np.ndarray], passages: dict, questions: list[dict], tokens: Tokenizer
) -> dict[str, np.ndarray]:
    """The passages nearest to each question and to each passage by gte-small: what a search would confuse with the answer."""
    network = AnswerNetwork(12)
    load_base(network, base)
    network.cuda().eval()

    def embed(texts: list[str]) -> torch.Tensor:
        rows = [[CLS, *one.ids[:190], SEP] for one in tokens.encode_batch_fast(texts, add_special_tokens=False)]
        out = torch.zeros(len(rows), DIM, dtype=torch.float16, device="cuda")
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        for start in range(0, len(order), 512):
            places = order[start : start + 512]
            width = max(len(rows[place]) for place in places)
            padded = np.zeros((len(places), width), np.int64)
            for at, place in enumerate(places):
                padded[at, : len(rows[place])] = rows[place]
            ids = torch.from_numpy(padded).cuda()
            mask = (ids != 0).long()
            with torch.autocast("cuda", torch.bfloat16):
                x = network.states(ids, mask, torch.zeros_like(ids))
            pooled = (x.float() * mask[:, :, None]).sum(1)
            out[torch.tensor(places, device="cuda")] = F.normalize(pooled, dim=1).half()
        return out

    vectors = embed(list(passages.values()))
    asked = embed([item["question"] for item in questions])
    names = torch.tensor(list(passages), device="cuda")

    def nearest(of: torch.Tensor, depth: int) -> np.ndarray:
        parts = [(of[at : at + 4096] @ vectors.T).topk(depth, dim=1).indices for at in range(0, len(of), 4096)]
        return names[torch.cat(parts)].int().cpu().numpy()

    return {"near": nearest(asked, 32), "beside": nearest(vectors, 13)}


def listed_examples(path: Path) -> list[Example]:
    """A test from elsewhere: {texts: [...], rows: [{question, answers, kind, blocks: [[text, answers]]}]}."""
    given = json.loads(path.read_text())
    return [
        Example(row["question"], [Candidate(given["texts"][n], bool(gold)) for n, gold in row["blocks"]], row["kind"])
        for row in given["rows"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("base", "questions", "passages", "vocabulary", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="an answer model to start from")
    parser.add_argument("--test", type=Path, nargs="*", default=[], help="questions with blocks that are only measured")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--rate", type=float, default=8e-5)
    parser.add_argument("--seconds", type=float, default=480, help="stop training after this time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, default=0, help="only this many questions, to try the script")
    parser.add_argument("--mined", type=Path, help="a file that keeps the mined neighbours for the next run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    began = time.time()

    def report(*words: object) -> None:
        print(f"[{time.time() - began:6.1f}s]", *words, flush=True)

    rng = random.Random(options.seed)
    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with lzma.open(options.passages, "rt", encoding="utf-8") as file:
        passages = dict(json.loads(line) for line in file)
    with lzma.open(options.questions, "rt", encoding="utf-8") as file:
        questions = [json.loads(line) for line in file]
    questions = [item for item in questions if item["source"] != "quac"]  # several questions in one
    if options.limit:
        rng.shuffle(questions)
        questions = questions[: options.limit]
    tokens = tokenizer(options.vocabulary)
    base = read_weights(options.base)
    report(len(passages), "passages", len(questions), "questions")
    if options.mined and options.mined.exists():
        mined = dict(np.load(options.mined))
    elif device == "cuda":
        mined = mine(base, passages, questions, tokens)
        if options.mined:
            np.savez(options.mined, **mined)
    else:
        chance = np.random.default_rng(options.seed)
        mined = {
            "near": chance.choice(list_of(passages), (len(questions), 32)),
            "beside": chance.choice(list_of(passages), (len(passages), 13)),
        }
    corpus = Corpus(passages, mined["near"].tolist(), dict(zip(passages, mined["beside"].tolist(), strict=True)))
    report("neighbours mined")

    apart = [at for at, item in enumerate(questions) if held_out(item["question"])]
    rng.shuffle(apart)
    half = len(apart) // 2
    fitting = make_examples(apart[:half], questions, corpus, rng, CANDIDATES)
    testing = make_examples(apart[half:], questions, corpus, rng, CANDIDATES)
    ranking = make_examples(apart[half:], questions, corpus, rng, LISTED)
    network = AnswerNetwork(options.layers)
    load_base(network, base)
    if options.start:
        load_export(network, options.start)
    network.to(device).train()
    encoder = Encoder(tokens)
    trained = [tensor for tensor in network.parameters() if tensor.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    stream = Stream(questions, corpus, options.vocabulary, options.seed)
    loader = DataLoader(
        stream, batch_size=None, num_workers=options.workers, prefetch_factor=4 if options.workers else None
    )
    report(len(fitting), "and", len(testing), "held out")

    def measured() -> dict:
        found = {"held out": full_report(read_all(network, testing, encoder))}
        found["held out, listed"] = full_report(read_all(network, ranking, encoder))
        for path in options.test:
            reads = read_all(network, listed_examples(path), encoder)
            counted = [read for read in reads if read.example.source != "yes/no"]
            found[path.name] = full_report(counted)
        return found

    before = measured() if options.start else None
    report("start measured")
    losses: list[torch.Tensor] = []
    step = seen = 0
    for batch in loader:
        share = max(step / options.steps, (time.time() - began) / options.seconds)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = options.rate * min(1.0, step / 200) * max(0.02, 1 - share)
        batch = to_device(batch)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = loss_of(network, batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if torch.isfinite(nn.utils.clip_grad_norm_(trained, 1.0)):
            optimizer.step()
        losses.append(loss.detach())
        step += 1
        seen += int(batch["example"][-1]) + 1
        if step % 250 == 0:
            report("step", step, "examples", seen, "loss", round(float(torch.stack(losses[-250:]).mean()), 4))
    report("trained", step, "steps", seen, "examples")
    path = options.out / f"answer-{options.layers}-int8.safetensors"
    notes = {"model": "assay answer model", "layers": str(options.layers), "heads": str(HEADS), "steps": str(step)}
    export(network, path, notes)
    load_export(network, path)  # what is calibrated and measured is what is shipped
    scale, offset = calibrate(network, read_all(network, fitting, encoder))
    export(network, path, notes)
    load_export(network, path)
    report("calibrated: scale", round(scale, 4), "offset", round(offset, 4))
    after = measured()
    result = {"before": before, "after": after, "steps": step, "examples": seen, "scale": scale, "offset": offset}
    (options.out / "report.json").write_text(json.dumps(result, indent=1))
    for name in after:
        for when, found in (("before", before), ("after", after)):
            if found:
                report(name, when, {part: found[name][part] for part in ("all", "clean", "public")})
                report(
                    "  blocks",
                    [(b.get("n"), b.get("said"), b.get("right")) for b in found[name]["reliability of blocks"]],
                )
                report(
                    "  best",
                    [(b.get("n"), b.get("said"), b.get("right")) for b in found[name]["reliability of the best"]],
                )
    report("wrote", path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
