"""The sets that word rules are tried on. Each trial gives one row of figures for every question, text or file of its set."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from quality import sample

from assay.core.identity import ORGANISATION
from assay.core.types import Document
from assay.evaluate import claims, conflicts, injection, pages, qa
from assay.evaluate.metrics import ndcg, recall
from assay.evaluate.runner import (
    BASE,
    BeirCollection,
    collection_ids,
    load,
    open_collection,
    rank_by_search,
    rank_evidence,
    run_without_model,
)
from assay.ingest.formats.detect import read
from assay.ingest.parsed import FileLimits
from assay.language import identify, sentences
from assay.language.terms import content_terms
from assay.workspace.facade import open_workspace

Row = Mapping[str, float]
LABELS = Path(__file__).parent / "labels" / "documents.json"
MULTIHOP, SEARCH = ("mh_hotpot_b", "mh_musique_train"), "scifact"
DOCUMENTS, SEED = 400, 1  # of a sample of a collection
PAGES = 3  # of a PDF file, which says there what it is
TEXTS = 150  # of a set of texts
TOGETHER = 8  # sentences of a text that is split


@dataclass(frozen=True, slots=True)
class Given:
    """Where the data lies, where workspaces are kept between runs, and how many questions are asked of a collection."""

    data: Path
    cache: Path
    questions: int = 80


Trial = Callable[[Given], Awaitable[list[Row]]]


# --- search ---------------------------------------------------------------------------------------------------------


def _sampled(given: Given, folder: Path) -> BeirCollection:
    return sample(load(folder), given.questions, DOCUMENTS, SEED)


async def search(given: Given) -> list[Row]:
    """One search for each claim of SciFact."""
    collection = _sampled(given, given.data / "retrieval" / SEARCH)
    with await open_collection(collection, given.cache) as opened:
        ids, context = collection_ids(opened), await opened.context.search_context(opened.scope([BASE]))
        found = {id: await rank_by_search(opened, context, words, ids) for id, words in collection.queries.items()}
    judged = [(ranking, collection.judgements[id]) for id, ranking in found.items()]
    return [{"nDCG@10": ndcg(*each, 10), "R@5": recall(*each, 5)} for each in judged]


async def multihop(given: Given) -> list[Row]:
    """A whole run without a model for each question of HotpotQA and MuSiQue."""
    rows: list[Row] = []
    for name in MULTIHOP:
        collection = _sampled(given, given.data / "multihop" / name)
        with await open_collection(collection, given.cache) as opened:
            ids, context = collection_ids(opened), await opened.context.search_context(opened.scope([BASE]))
            for id, words in collection.queries.items():
                run = await run_without_model(opened, context, id, words)
                rows.append({"R@5": recall(rank_evidence(run, ids), collection.judgements[id], 5)})
    return rows


async def report_pages(given: Given) -> list[Row]:
    """The gold page of each question about annual reports."""
    questions = pages.load(given.data / "financebench")
    with open_workspace(given.cache / "pages", create=True, state="") as opened:
        await pages.add(opened, given.data / "financebench" / "pdfs")
        rankings = await pages.rank_pages(opened, [each.question for each in questions])
    rows = [pages.hits(each, ranking) for each, ranking in zip(questions, rankings, strict=True)]
    return [{name: row[name] for name in ("page@1", "page@5", "page@10")} for row in rows]


# --- reading files --------------------------------------------------------------------------------------------------


async def metadata(given: Given) -> list[Row]:
    """Title, authors, date and organisation of labelled files. Right is also to say nothing where nothing is to be said."""
    labels = json.loads(LABELS.read_text(encoding="utf-8"))
    return [_described(given.data / label["file"], label) for label in labels]


def _described(file: Path, label: Mapping[str, object]) -> Row:
    name = file.name.removesuffix(".gz")
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    found = read(first_pages(data) if file.suffix == ".pdf" else data, name, FileLimits())
    said = {
        "title": found.title,
        "authors": list(found.authors),
        "date": found.date or "",
        "organisation": found.meta.get(ORGANISATION, ""),
    }
    row: dict[str, float] = {}
    for name, value in said.items():
        row[f"{name} right"] = float(_folded(value) == _folded(label[name]))
        row[f"{name} wrong"] = float(bool(value) and not row[f"{name} right"])
    return row


@cache
def first_pages(data: bytes) -> bytes:
    """A PDF file cut after its first pages: a document says there what it is."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as whole, pypdfium2.PdfDocument.new() as cut:
        if len(whole) <= PAGES:
            return data
        cut.import_pages(whole, list(range(PAGES)))
        out = io.BytesIO()
        cut.save(out)
        return out.getvalue()


def _folded(value: object) -> object:
    if isinstance(value, list):
        return {_folded(each) for each in value}
    return re.sub(r"\W+", "", str(value)).casefold()


async def headings(given: Given) -> list[Row]:
    """Headings of Markdown files, compared with those of a CommonMark parser."""
    from markdown_it import MarkdownIt

    from assay.ingest.formats.plain import parse

    rows: list[Row] = []
    for file in sorted((given.data / "parsing").rglob("*.md")):
        text = file.read_text(encoding="utf-8", errors="ignore")
        tokens = MarkdownIt().parse(re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL))
        inside = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
        if inside and len(rows) < TEXTS:
            found = [section.title for section in parse(text.encode(), file.name, FileLimits()).sections]
            rows.append({"F1": _f1(Counter(map(_words, found)), Counter(map(_words, inside)))})
    return rows


def _words(title: str) -> str:
    return re.sub(r"\W+", "", re.sub(r"\]\([^)]*\)|<[^>]*>", "", title)).casefold()


def _f1(found: Counter[str], wanted: Counter[str]) -> float:
    return 2 * (found & wanted).total() / max(1, found.total() + wanted.total())


# --- texts ----------------------------------------------------------------------------------------------------------


def _jsonl(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line.strip()]


async def sentence_ends(given: Given) -> list[Row]:
    """Sentences of abstracts and of web pages, joined and split again: how many ends are found."""
    rows: list[Row] = []
    for name in ("scifact_train", "wice_dev"):
        cases = {
            json.dumps(each["evidence"]): each["evidence"] for each in _jsonl(given.data / f"grounding/{name}.jsonl")
        }
        for parts in list(cases.values())[:TEXTS]:
            whole = [part.strip() for part in parts if re.search(r"[.!?][\"'”’)\]]*$", part.strip())][:TOGETHER]
            if len(whole) > 1:
                rows.append({"F1": _ends(whole)})
    return rows


def _ends(parts: Sequence[str]) -> float:
    text, wanted = "", []
    for part in parts:
        text = f"{text} {part}".strip()
        wanted.append(len(text))
    found = [end for _, end in sentences.split_sentences(text)]
    return _f1(Counter(map(str, found[:-1])), Counter(map(str, wanted[:-1])))


UDHR = "parsing/unstructured_docs/language-docs/UDHR_first_article_all.txt"
LANGUAGES = {
    "Arabic, Standard": "ar", "Chinese, Mandarin (Simplified)": "zh", "Czech": "cs", "Danish": "da", "Dutch": "nl",
    "English": "en", "Finnish": "fi", "French": "fr", "German, Standard (1996)": "de", "Greek (monotonic)": "el",
    "Hebrew": "he", "Hindi": "hi", "Indonesian": "id", "Italian": "it", "Japanese": "ja", "Korean": "ko",
    "Norwegian, Bokmål": "no", "Polish": "pl", "Portuguese (Brazil)": "pt", "Portuguese (Portugal)": "pt",
    "Romanian (2006)": "ro", "Russian": "ru", "Serbian (Cyrillic)": "sr", "Spanish": "es", "Swedish": "sv", "Thai": "th",
    "Turkish": "tr", "Ukrainian": "uk", "Farsi, Western": "fa",
    "Hungarian": "", "Vietnamese": "", "Catalan-Valencian-Balear": "", "Swahili/Kiswahili": "", "Basque": "",
}  # fmt: skip


async def languages(given: Given) -> list[Row]:
    """The first article of the declaration of human rights in many languages. Five of them are not to be named."""
    blocks = (given.data / UDHR).read_text(encoding="utf-8").split("\n\n")
    named = {name: text for name, _, text in (block.strip().partition("\n") for block in blocks)}
    rows: list[Row] = []
    for name, code in LANGUAGES.items():
        if name in named:
            said = identify.identify_language(named[name]) or ""
            rows.append({"right": float(said == code), "wrong": float(bool(said) and said != code)})
    return rows


async def attacks(given: Given) -> list[Row]:
    """Texts with instructions to a model (BIPIA), and harmless ones (NotInject, and the e-mails and tables of BIPIA)."""
    from assay.language.injection import is_suspicious

    found = injection.load(given.data / "injection")
    hostile = dict.fromkeys(case.attack for case in found.cases)
    harmless = dict.fromkeys((*found.benign, *found.carriers))
    return [
        *({"attacks flagged": float(is_suspicious(text))} for text in hostile),
        *({"harmless flagged": float(is_suspicious(text))} for text in harmless),
    ]


async def disagreements(given: Given) -> list[Row]:
    """Pairs of documents that contradict each other (RAMDocs)."""
    rows: list[Row] = []
    for case in conflicts.load(given.data / "synthesis/ramdocs_a.jsonl")[:TEXTS]:
        found = conflicts.find_by_documents(case)
        pairs = [(a, b) for b in range(len(case.documents)) for a in range(b)]
        real = {pair for pair in pairs if conflicts.is_conflict(*(case.documents[each] for each in pair))}
        rows.append({"F1": 2 * len(real & found.keys()) / (len(real) + len(found)) if real or found else 1.0})
    return rows


async def claim_checks(given: Given) -> list[Row]:
    """Labelled claims without a model: true ones that pass, and others that do."""
    cases = claims.load(given.data / "claims/a.jsonl")
    judged = [each for case in cases for each in await claims.judge_claims([case], claims.JudgeKind.none)]
    return [claims.shares(each) for each in judged]


# --- abstracts ------------------------------------------------------------------------------------------------------


async def made_abstracts(given: Given) -> list[Row]:
    """Sentences taken from studies without their conclusion (PubMedQA): how many words of the conclusion they have."""
    from assay.models.local.bundled import BundledEmbedder, bundled_answer_model
    from assay.synthesis import key_sentences

    rows: list[Row] = []
    models = SimpleNamespace(embedder=BundledEmbedder(), answer_model=bundled_answer_model())
    context: Any = SimpleNamespace(tool_context=SimpleNamespace(search_context=models))
    for case in _jsonl(given.data / "qa/pubmedqa_dev500.jsonl")[: given.questions]:
        text = "\n\n".join(case["CONTEXTS"])
        document = Document("d", "b", "study", "", case["QUESTION"], text)
        made = " ".join(text[each.start : each.end] for each in await key_sentences.pick(context, document))
        rows.append({"overlap": _overlap(made, case["LONG_ANSWER"])})
    return rows


def _overlap(made: str, wanted: str) -> float:
    """F1 of the content words."""
    return _f1(Counter(content_terms(made)), Counter(content_terms(wanted)))


# --- answers --------------------------------------------------------------------------------------------------------


async def extracts(given: Given) -> list[Row]:
    """What a person is shown without a model, on `qa/dev.jsonl` beside this file."""
    file = Path(__file__).parent / "qa" / "dev.jsonl"
    asked = qa.load(file, [given.data / "parsing", file.parent.parent.parent / "samples/corpus"])
    return [qa.shares(each) for each in await qa.ask_all(asked, given.cache / "qa")]


TRIALS: Mapping[str, tuple[str, Trial]] = {
    "search": ("SciFact", search),
    "multi-hop": ("HotpotQA, MuSiQue", multihop),
    "pages": ("FinanceBench", report_pages),
    "metadata": ("labelled files", metadata),
    "headings": ("Markdown files", headings),
    "sentences": ("SciFact, WiCE", sentence_ends),
    "languages": ("human rights in 34 languages", languages),
    "injection": ("BIPIA, NotInject", attacks),
    "conflicts": ("RAMDocs", disagreements),
    "claims": ("claims", claim_checks),
    "abstracts": ("PubMedQA", made_abstracts),
    "extracts": ("bench/qa", extracts),
}
