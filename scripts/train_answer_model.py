"""Trains the answer model: a question and a text → does the text answer it, and which words of it are the answer.

    python scripts/train_answer_model.py --base gte-small-int8.safetensors --questions questions.jsonl.xz \
        --passages passages.jsonl.xz --vocabulary bert-uncased-vocab.txt --out FOLDER --layers 12

Starts from gte-small. One pass of BERT over `[CLS] question [SEP] text [SEP]` feeds linear heads. The word embeddings stay
frozen, so the exported file shares those of gte-small. The yes/no head is trained beside the others and left out: it came to
no more than always saying yes. Needs torch with a GPU, tokenizers, safetensors and numpy.

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
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

DIM, HEADS, INNER = 384, 12, 1536
CLS, SEP = 101, 102
QUESTION_TOKENS, ROW_TOKENS = 64, 320
CANDIDATES = 7  # texts a question is trained with at once
BATCH_TOKENS = 48_000
CHUNK = 4000  # questions whose examples are made at once
YES, NO, NEITHER, UNKNOWN = 0, 1, 2, -100
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
        self.answers, self.yesno, self.span = nn.Linear(DIM, 1), nn.Linear(DIM, 3), nn.Linear(DIM, 2)
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
        first = x[:, 0]
        span = self.span(x).float().masked_fill(((types == 0) | (mask == 0))[:, :, None], -1e4)
        return self.answers(first)[:, 0].float(), self.yesno(first).float(), span


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
    yesno: int = UNKNOWN


@dataclass
class Example:
    """A question with its candidates. Trained by list if one of them answers, and each by itself always."""

    question: str
    candidates: list[Candidate]
    source: str


def tokenizer(vocabulary: Path) -> Tokenizer:
    built = Tokenizer(models.WordPiece.from_file(str(vocabulary), unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return built


def sentences(text: str) -> list[str]:
    return [part for part in SENTENCE_END.split(text) if len(part) > 15]


def title_of(text: str) -> str:
    """The title that many passages begin with: `Title. Text`, `Title -- Text`."""
    head = re.match(r"([A-Z][^.\n]{2,60}?)(?:\.| --) ", text)
    return head.group(1) if head and len(head.group(1).split()) <= 7 else ""


def held_out(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] < 5  # 2 %


def find_words(text: str, words: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE)


def contains(text: str, answer: str) -> bool:
    return len(answer) > 1 and answer.casefold() in text.casefold() and find_words(text, answer) is not None


def passage_example(item: dict, passages: dict, mined: list, rng: random.Random) -> Example | None:
    answer = item["answer"] or ""
    yesno = {"yes": YES, "no": NO}.get(answer.lower(), UNKNOWN) if item["source"] == "boolq" else UNKNOWN
    found: list[Candidate] = []
    if item["positives"]:
        text = passages[rng.choice(item["positives"])]
        found.append(Candidate(text, True, answer if yesno == UNKNOWN and contains(text, answer) else "", yesno))
    avoid = set(item["positives"])
    given = [each for each in item["negatives"] if each not in avoid]
    if item["positives"]:
        near = [each for each in mined if each not in avoid and not (answer and contains(passages[each], answer))]
        hard = rng.sample(near[2:], min(len(near[2:]), 3))
        ids = list(dict.fromkeys([*rng.sample(given, min(len(given), 3)), *hard]))
        ids += rng.sample(list_of(passages), 1)
    else:
        ids = rng.sample(given, min(len(given), 3))
    neither = NEITHER if yesno != UNKNOWN else UNKNOWN
    for each in ids[: CANDIDATES - len(found)]:
        found.append(Candidate(passages[each], False, yesno=neither))
    return Example(item["question"], found, item["source"]) if found else None


_ids: list = []


def list_of(passages: dict) -> list:
    if not _ids:
        _ids.extend(passages)
    return _ids


def sentence_example(item: dict, passages: dict, mined: list, rng: random.Random) -> Example | None:
    """The sentence with the answer against the other sentences of its passage and of near ones."""
    answer = item["answer"] or ""
    if not item["positives"] or len(answer) < 2 or answer.lower() in ("yes", "no"):
        return None
    text = passages[item["positives"][0]]
    parts = sentences(text)
    holding = [part for part in parts if contains(part, answer)]
    if len(holding) != 1 or len(parts) < 2:
        return None
    title = title_of(text)
    others = [part for part in parts if part != holding[0]]
    far = [part for each in mined[3:8] for part in sentences(passages[each]) if not contains(part, answer)]
    titled = rng.random() < 0.5

    def labelled(part: str, name: str) -> str:
        return f"{name}: {part}" if titled and name and name not in part else part

    found = [Candidate(labelled(holding[0], title), True, answer)]
    found += [Candidate(labelled(part, title), False) for part in rng.sample(others, min(len(others), 4))]
    found += [Candidate(part, False) for part in rng.sample(far, min(len(far), CANDIDATES - len(found)))]
    return Example(item["question"], found, f"{item['source']}/sentence")


# --- rows of tables, made up ----------------------------------------------------------------------------------------

NOUNS = (
    "Alder Birch Cedar Delta Ember Falcon Garnet Harbour Iris Juniper Kestrel Larch Meadow Nimbus Orchid Pioneer Quartz Raven "
    "Summit Thistle Umber Vale Willow Yarrow Zephyr North South East West Lower Upper Old New"
).split()
PLACES = "Station Works Bridge Depot Office Plant Centre School Farm Mill Line Unit Project Fund Clinic Library".split()
PEOPLE = (
    "Anna Ortega,Ben Lindqvist,Carla Mensah,"
    "David Okoro,Elena Petrova,Farid Haddad,Grace Tan,Hugo Marsh,Ines Duarte,Jonas Weber,"
    "Keiko Mori,Liam Byrne,Mara Novak,Nils Berg,Olga Sidorova,Priya Nair"
).split(",")
LINES = (
    "Net sales,Cost of sales,Gross profit,Operating expenses,Operating income,Interest expense,Net income,Total assets,"
    "Total liabilities,Cash and cash equivalents,"
    "Inventories,Accounts receivable,Capital expenditures,Depreciation,Dividends paid,"
    "Research and development,Income taxes,Total equity,Long-term debt,Goodwill,Headcount,Revenue,Share repurchases"
).split(",")
COLUMNS = {
    "Capacity": lambda rng: f"{rng.randint(5, 900)} m3",
    "Opened": lambda rng: f"{rng.randint(1890, 2024)}",
    "Owner": lambda rng: rng.choice(PEOPLE),
    "Status": lambda rng: rng.choice(["active", "closed", "planned", "under repair"]),
    "Budget": lambda rng: f"{rng.randint(10, 990):,},000",
    "Contract ends": lambda rng: f"20{rng.randint(24, 32)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    "Serial number": lambda rng: f"{rng.choice('ABCDK')}{rng.choice('XYZQ')}-{rng.randint(100, 9999)}",
    "Manager": lambda rng: rng.choice(PEOPLE),
    "Staff": lambda rng: str(rng.randint(2, 400)),
    "Price": lambda rng: f"€{rng.randint(1, 900)}.{rng.randint(0, 99):02}",
    "Region": lambda rng: rng.choice(NOUNS),
    "Depth": lambda rng: f"{rng.randint(1, 90)}.{rng.randint(0, 9)} m",
    "Share": lambda rng: f"{rng.randint(1, 99)}.{rng.randint(0, 9)} %",
    "Inspected": lambda rng: (
        f"{rng.randint(1, 28)} {rng.choice(['March', 'May', 'June', 'October'])} 20{rng.randint(18, 26)}"
    ),
}
ASKED = (
    "What is the {column} of {row}?",
    "{row}: {column}?",
    "Which {column} does {row} have?",
    "what {column} is listed for {row}",
    "Tell me the {column} for {row}.",
)
ASKED_FIGURE = (
    "What was {row} in {column}?",
    "How much was {row} in {column}?",
    "What is the FY{column} {row}?",
    "{row} for {column}",
    "What amount of {row} did the company report for {column}?",
)


def table_example(rng: random.Random) -> Example:
    """A row that holds the asked cell against other rows of its table and the same row of another table."""
    if rng.random() < 0.5:
        labels = rng.sample(LINES, 8)
        last = rng.randint(2012, 2025)
        columns = [str(last - back) for back in range(rng.randint(2, 4))]
        cells = {
            (row, column): f"{rng.choice(['', '$'])}{rng.randint(10, 99_999):,}" for row in labels for column in columns
        }
        caption = f"{rng.choice(NOUNS)} {rng.choice(PLACES)} (in {rng.choice(['millions', 'thousands'])})"
        asked, name = rng.choice(ASKED_FIGURE), "Item"
    else:
        labels = list({f"{rng.choice(NOUNS)} {rng.choice(PLACES)}" for _ in range(9)})
        columns = rng.sample(list(COLUMNS), rng.randint(2, 5))
        cells = {(row, column): COLUMNS[column](rng) for row in labels for column in columns}
        caption, asked, name = rng.choice(["List", "Register", "Overview", "Annex"]), rng.choice(ASKED), "Name"
    named = rng.random() < 0.6

    def written(row: str, columns: list[str], caption: str) -> str:
        if named:
            return f"{caption}: {name}: {row}; " + "; ".join(f"{column}: {cells[row, column]}" for column in columns)
        return f"{caption} | {' | '.join(columns)}: {row} | " + " | ".join(cells[row, column] for column in columns)

    row, column = labels[0], rng.choice(columns)
    question = asked.format(
        row=row if rng.random() < 0.7 else row.lower(), column=column.lower() if not column.isdigit() else column
    )
    found = [Candidate(written(row, columns, caption), True, cells[row, column])]
    if rng.random() < 0.25:
        found = []  # nothing answers: another year, another column
    others = [column_ for column_ in columns if column_ != column]
    if others and (rng.random() < 0.5 or not found):
        found.append(Candidate(written(row, others, caption), False))
    found += [Candidate(written(other, columns, caption), False) for other in labels[1 : CANDIDATES - 1]]
    return Example(question, found[:CANDIDATES], "rows")


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

    def __init__(self, questions: list[dict], near: list[list], passages: dict, vocabulary: Path, rows: int, seed: int):
        self.questions, self.near, self.passages = questions, near, passages
        self.vocabulary, self.rows, self.seed = vocabulary, rows, seed

    def __iter__(self) -> Iterator[dict]:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the workers fill the cores
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        rng = random.Random(self.seed * 1000 + number)
        encoder = Encoder(tokenizer(self.vocabulary))
        own = [at for at, item in enumerate(self.questions) if at % count == number and not held_out(item["question"])]
        made_up = self.rows / max(1, len(self.questions))
        while True:
            rng.shuffle(own)
            for start in range(0, len(own), CHUNK):
                part = own[start : start + CHUNK]
                examples = make_examples([(self.questions[at], self.near[at]) for at in part], self.passages, rng)
                examples += [table_example(rng) for _ in range(int(len(part) * made_up + rng.random()))]
                yield from batches(examples, encoder, rng)


def make_examples(items: list[tuple[dict, list]], passages: dict, rng: random.Random) -> list[Example]:
    found = [make(item, passages, near, rng) for item, near in items for make in (passage_example, sentence_example)]
    return [each for each in found if each]


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
        "yesno": torch.tensor([candidate.yesno for _, candidate, _ in pairs]),
        "first": torch.tensor([row[2] for _, _, row in pairs]),
        "last": torch.tensor([row[3] for _, _, row in pairs]),
    }


def loss_of(network: AnswerNetwork, batch: dict) -> torch.Tensor:
    scores, yesno, span = network(batch["ids"], batch["mask"], batch["types"])
    count = int(batch["example"].max()) + 1
    group, right = batch["example"], batch["answers"]
    best = torch.full((count,), -1e9, device=scores.device).scatter_reduce(0, group, scores.detach(), "amax")
    total = torch.zeros(count, device=scores.device).index_add(0, group, (scores - best[group]).exp())
    by_list = (best[group] + total[group].log() - scores)[right]
    alone = F.binary_cross_entropy_with_logits(scores, right.float(), reduction="none")
    loss = by_list.mean() if len(by_list) else scores.sum() * 0
    loss = loss + 0.7 * alone.mean() * CANDIDATES / 2
    if (batch["yesno"] != UNKNOWN).any():
        loss = loss + 1.0 * F.cross_entropy(yesno, batch["yesno"], ignore_index=UNKNOWN)
    if (batch["first"] != UNKNOWN).any():
        ends = F.cross_entropy(span[:, :, 0], batch["first"], ignore_index=UNKNOWN)
        loss = loss + 0.2 * (ends + F.cross_entropy(span[:, :, 1], batch["last"], ignore_index=UNKNOWN))
    return loss


def to_device(batch: dict) -> dict:
    return {
        name: tensor.to("cuda", non_blocking=True) if torch.cuda.is_available() else tensor
        for name, tensor in batch.items()
    }


# --- evaluation -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def evaluate(network: AnswerNetwork, examples: list[Example], encoder: Encoder) -> dict[str, dict[str, float]]:
    """First place, AUROC of `answers`, yes/no accuracy and exact spans on held-out questions, by source."""
    network.eval()
    first, pool, yesno, spans = defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list)
    encoder.learn(examples)
    for start in range(0, len(examples), 64):
        group = examples[start : start + 64]
        batch = to_device(collate(group, encoder))
        with torch.autocast("cuda", torch.bfloat16, enabled=torch.cuda.is_available()):
            scores, verdicts, span = network(batch["ids"], batch["mask"], batch["types"])
        scores, verdicts = scores.cpu(), verdicts.cpu()
        begins, ends = span[:, :, 0].argmax(1).cpu(), span[:, :, 1].argmax(1).cpu()
        place = 0
        for each in group:
            own = scores[place : place + len(each.candidates)]
            labels = [candidate.answers for candidate in each.candidates]
            if any(labels) and not all(labels):
                first[each.source].append(float(labels[int(own.argmax())]))
            for at, candidate in enumerate(each.candidates):
                pool[each.source].append((float(own[at]), candidate.answers))
                if candidate.yesno in (YES, NO):
                    yesno[each.source].append(float(int(verdicts[place + at][:2].argmax()) == candidate.yesno))
                if candidate.answer and int(batch["first"][place + at]) >= 0:
                    hit = (
                        begins[place + at] == batch["first"][place + at].cpu()
                        and ends[place + at] == batch["last"][place + at].cpu()
                    )
                    spans[each.source].append(float(hit))
            place += len(each.candidates)
    network.train()
    report = {}
    for source in pool:
        report[source] = {"n": len(pool[source]), "auroc": round(auroc(pool[source]), 3)}
        for name, figures in (("first", first), ("yesno", yesno), ("span", spans)):
            if figures[source]:
                report[source][name] = round(float(np.mean(figures[source])), 3)
    return report


def auroc(pairs: list[tuple[float, bool]]) -> float:
    scores = np.array([score for score, _ in pairs])
    labels = np.array([label for _, label in pairs])
    if labels.all() or not labels.any():
        return float("nan")
    ranks = scores.argsort().argsort() + 1
    positives = labels.sum()
    return float((ranks[labels].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives)))


# --- training -------------------------------------------------------------------------------------------------------


@torch.no_grad()
def mine(
    base: dict[str, np.ndarray], passages: dict, questions: list[dict], tokens: Tokenizer, depth: int = 24
) -> list[list]:
    """The passages nearest to each question by gte-small: what a search would confuse with the answer."""
    network = AnswerNetwork(12)
    load_base(network, base)
    network.cuda().eval()

    def embed(texts: list[str]) -> torch.Tensor:
        rows = [[CLS, *one.ids[:254], SEP] for one in tokens.encode_batch_fast(texts, add_special_tokens=False)]
        out = torch.zeros(len(rows), DIM, dtype=torch.float16, device="cuda")
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        for start in range(0, len(order), 512):
            places = order[start : start + 512]
            width = max(len(rows[place]) for place in places)
            ids = torch.zeros(len(places), width, dtype=torch.long)
            for at, place in enumerate(places):
                ids[at, : len(rows[place])] = torch.tensor(rows[place])
            ids = ids.cuda()
            mask = (ids != 0).long()
            with torch.autocast("cuda", torch.bfloat16):
                x = network.states(ids, mask, torch.zeros_like(ids))
            pooled = (x.float() * mask[:, :, None]).sum(1)
            out[torch.tensor(places, device="cuda")] = F.normalize(pooled, dim=1).half()
        return out

    names = list(passages)
    vectors = embed([passages[name] for name in names])
    asked = embed([item["question"] for item in questions])
    near: list[list] = []
    for start in range(0, len(questions), 4096):
        best = (asked[start : start + 4096] @ vectors.T).topk(depth, dim=1).indices.cpu().tolist()
        near += [[names[place] for place in row] for row in best]
    return near


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("base", "questions", "passages", "vocabulary", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rate", type=float, default=8e-5)
    parser.add_argument("--rows", type=int, default=12_000, help="made-up questions about rows of tables")
    parser.add_argument("--seconds", type=float, default=480, help="stop training after this time")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, default=0, help="only this many questions, to try the script")
    parser.add_argument("--mined", type=Path, help="a file that keeps the mined negatives for the next run")
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
        near = json.loads(options.mined.read_text())
    elif device == "cuda":
        near = mine(base, passages, questions, tokens)
    else:
        near = [rng.sample(list_of(passages), 8) for _ in questions]
    if options.mined and not options.mined.exists():
        options.mined.write_text(json.dumps(near))
    report("negatives mined")

    pairs = [(item, mined) for item, mined in zip(questions, near, strict=True) if held_out(item["question"])]
    dev = make_examples(pairs, passages, rng) + [table_example(rng) for _ in range(400)]
    network = AnswerNetwork(options.layers)
    load_base(network, base)
    network.to(device).train()
    encoder = Encoder(tokens)
    trained = [tensor for tensor in network.parameters() if tensor.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    stream = Stream(questions, near, passages, options.vocabulary, options.rows, options.seed)
    loader = DataLoader(
        stream, batch_size=None, num_workers=options.workers, prefetch_factor=4 if options.workers else None
    )
    report(len(dev), "held out")
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
    report("trained", step, "steps")
    before = evaluate(network, dev, encoder)
    path = options.out / f"answer-{options.layers}-int8.safetensors"
    export(
        network,
        path,
        {"model": "assay answer model", "layers": str(options.layers), "heads": str(HEADS), "steps": str(step)},
    )
    load_export(network, path)
    after = evaluate(network, dev, encoder)
    (options.out / f"report-{options.layers}.json").write_text(
        json.dumps({"float": before, "int8": after, "steps": step}, indent=1)
    )
    for source, figures in sorted(after.items()):
        report(source, figures)
    report("wrote", path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
