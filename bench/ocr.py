"""Scans → text: word error rate and seconds a page, of RapidOCR (the extra `ocr`) and tesseract.

    .venv/bin/python bench/ocr.py --data FOLDER [--pages 10] [--seed 1] [--out FILE]

Pages of the PDFs in the folder are drawn at 150 dpi, laid askew by up to a degree, and given noise. Both engines read the same
pictures the way Assay reads a scan, in the sandbox. The truth is the text that the PDF itself holds. Words are compared without
case and punctuation; `in any order` counts them without their places, since the order of a page with
tables is a matter of taste.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import random
import re
import resource
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from PIL import Image
from result_file import add_out, write_result

from assay.ingest.parsed import FileLimits, Parsed
from assay.ingest.pdf import ocr, reader
from assay.ingest.sandbox.runner import Sandbox

DPI, NOISE, ASKEW = 150, 12.0, 1.0
LEAST_WORDS = 150  # of a page


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:[.,’'-][^\W_]+)*", text.replace("’", "'").casefold())


def distance(truth: list[str], read: list[str]) -> int:
    """How many words are to be put in, left out or replaced."""
    row = np.arange(len(read) + 1)
    number = {word: at for at, word in enumerate(dict.fromkeys((*truth, *read)))}
    other = np.array([number[word] for word in read])
    for count, word in enumerate(truth, 1):
        replaced = row[:-1] + (other != number[word])
        best = np.minimum(replaced, row[1:] + 1)
        after = np.concatenate(([count], best))
        row = np.minimum.accumulate(after - np.arange(len(after))) + np.arange(len(after))
    return int(row[-1])


def lost(truth: list[str], read: list[str]) -> int:
    """The same without regard to order."""
    have, want = Counter(read), Counter(truth)
    return max((want - have).total(), (have - want).total())


def make_pages(folder: Path, many: int, seed: int) -> list[tuple[str, list[str], bytes]]:
    """Name, true words and scan of each page."""
    dice, files = random.Random(seed), sorted(folder.glob("**/*.pdf"))
    found: list[tuple[str, list[str], bytes]] = []
    while len(found) < many:
        path = dice.choice(files)
        with pdfium.PdfDocument(path) as document:
            page = dice.randrange(len(document))
            one = pdfium.PdfDocument.new()
            one.import_pages(document, [page])
            held = io.BytesIO()
            one.save(held)
            drawn = one[0].render(scale=DPI / 72).to_pil().convert("L")
        try:
            truth = words_of(reader.parse(held.getvalue(), path.name, FileLimits()).text)
        except Exception:
            continue
        if len(truth) < LEAST_WORDS:
            continue
        drawn = drawn.rotate(dice.uniform(-ASKEW, ASKEW), resample=Image.Resampling.BICUBIC, fillcolor=255)
        noise = np.random.default_rng(dice.randrange(1 << 30)).normal(0, NOISE, (drawn.height, drawn.width))
        scan = Image.fromarray(np.clip(np.asarray(drawn, dtype=float) + noise, 0, 255).astype(np.uint8))
        out = io.BytesIO()
        scan.save(out, "PDF", resolution=DPI, quality=80)
        found.append((f"{path.name} page {page + 1}", truth, out.getvalue()))
    return found


async def read_all(engine: str, pages: list[tuple[str, list[str], bytes]]) -> dict[str, float]:
    ocr.find_engine = lambda _: engine
    before, wrong, missed, total, seconds = _cpu(), 0, 0, 0, []
    with Sandbox(FileLimits()) as sandbox:
        scans = ocr.OcrReader(sandbox)
        for name, truth, scan in pages:
            began = time.perf_counter()
            parsed = await scans.read(scan, "scan.pdf")
            seconds.append(time.perf_counter() - began)
            read = words_of(parsed.text) if isinstance(parsed, Parsed) else []
            wrong, missed, total = wrong + distance(truth, read), missed + lost(truth, read), total + len(truth)
            print(f"{engine:10} {name:45} {distance(truth, read) / len(truth):6.1%} {seconds[-1]:6.1f} s", flush=True)
    return {
        "word error rate": wrong / total,
        "in any order": missed / total,
        "seconds a page": float(np.median(seconds)),
        "seconds of a processor": (_cpu() - before) / len(pages),
    }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="PDFs with text")
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the scans here")
    add_out(parser)
    given = parser.parse_args()
    pages = make_pages(given.data, given.pages, given.seed)
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        for number, (_, _, scan) in enumerate(pages):
            (given.keep / f"{number}.pdf").write_bytes(scan)
    engines = {"RapidOCR": "rapidocr"} | ({"tesseract": ocr.PROGRAM} if ocr.find_tesseract() else {})
    figures = {"Scans": {shown: asyncio.run(read_all(engine, pages)) for shown, engine in engines.items()}}
    for shown, each in figures["Scans"].items():
        print(shown, {name: round(value, 4) for name, value in each.items()})
    missing = {} if len(engines) > 1 else {"tesseract": "it is not installed here"}
    write_result(given.out, figures, {"rapidocr": version("rapidocr")}, missing)


if __name__ == "__main__":
    main()
