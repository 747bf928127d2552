"""How much of an article, and how little else, is read from a web page: Assay beside plain trafilatura.

    python bench/extraction.py --data DIR

DIR holds `html/*.html.gz` in the layout of the article-extraction benchmark (scrapinghub/article-extraction-benchmark) and,
beside it, its `ground-truth.json`. Scores are that benchmark's: counts of four-word shingles, made comparable by
page, averaged over pages; F1 from the two averages. Without `ground-truth.json` the text that publishers themselves declare
as the article's body (schema.org `articleBody`) stands in for it, on the pages that declare one; such a figure is
a stand-in and is labelled so, and the agreement with plain trafilatura over all pages is printed beside it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from statistics import mean

from result_file import add_out, write_result

from assay.ingest.formats import html
from assay.ingest.parsed import FileLimits, Refused

Score = tuple[float, float, float]  # shingles found, found wrongly, missed; together 1


def shingles(text: str, length: int = 4) -> Counter[tuple[str, ...]]:
    words = re.findall(r"\w+", text)
    return Counter(tuple(words[at : at + length]) for at in range(max(1, len(words) - length + 1)) if words)


def compare(truth: str, found: str) -> Score:
    wanted, got = shingles(truth), shingles(found)
    right = (wanted & got).total()
    wrong, missed = got.total() - right, wanted.total() - right
    whole = right + wrong + missed
    return (right / whole, wrong / whole, missed / whole) if whole else (0.0, 0.0, 0.0)


def summary(scores: list[Score]) -> tuple[float, float, float]:
    """Precision, recall and F1; a page without any prediction counts for recall only, one without truth for precision."""
    precision = mean(right / (right + wrong) for right, wrong, _ in scores if right + wrong > 0)
    recall = mean(right / (right + missed) for right, _, missed in scores if right + missed > 0)
    return precision, recall, 2 * precision * recall / (precision + recall)


def by_assay(page: bytes) -> str:
    try:
        return html.parse(page, "page.html", FileLimits()).text
    except Refused:
        return ""


def by_trafilatura(page: bytes) -> str:
    from trafilatura import extract

    return extract(html.decode_page(page), include_comments=False) or ""


def by_everything_visible(page: bytes) -> str:
    from assay.ingest.formats.text import TextBuilder

    out = TextBuilder("html", FileLimits())
    html.write_visible(html.decode_page(page), out)
    return "".join(out.parts)


def declared_body(page: str) -> str:
    """The longest `articleBody` in the page's linked data, as text."""
    bodies = []
    for block in re.findall(r"(?is)<script[^>]*application/ld\+json[^>]*>(.*?)</script>", page):
        for body in re.findall(r'"articleBody"\s*:\s*("(?:[^"\\]|\\.)*")', block):
            try:
                bodies.append(json.loads(body, strict=False))
            except ValueError:
                continue
    return re.sub(r"<[^>]+>", " ", unescape(max(bodies, key=len, default="")))


def load(data: Path) -> tuple[dict[str, bytes], dict[str, str], str]:
    pages = {
        path.name.split(".")[0]: gzip.decompress(path.read_bytes())
        for path in sorted((data / "html").glob("*.html.gz"))
    }
    truth = data / "ground-truth.json"
    if truth.exists():
        bodies = {key: value.get("articleBody", "") for key, value in json.loads(truth.read_text("utf-8")).items()}
        return pages, {key: bodies[key] for key in pages if key in bodies}, "the benchmark's human ground truth"
    bodies = {key: declared_body(html.decode_page(page)) for key, page in pages.items()}
    return (
        pages,
        {key: body for key, body in bodies.items() if len(body.split()) > 100},
        "STAND-IN: publishers' articleBody",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--worst", type=int, default=0, help="also name this many pages with the lowest score")
    add_out(parser)
    chosen = parser.parse_args()
    pages, truth, source = load(chosen.data)
    if not truth:
        raise SystemExit(f"No ground-truth.json in {chosen.data}, and no page that declares its own body.")
    print(f"{len(truth)} of {len(pages)} pages, against {source}")
    print(f"{'':<22}precision  recall     F1   ms/page")
    ways: dict[str, Callable[[bytes], str]] = {
        "assay": by_assay,
        "trafilatura": by_trafilatura,
        "all visible text": by_everything_visible,
    }
    figures: dict[str, dict[str, float]] = {}
    for name, read in ways.items():
        began = time.perf_counter()
        scores = {key: compare(body, read(pages[key])) for key, body in truth.items()}
        spent = (time.perf_counter() - began) / len(scores)
        precision, recall, f1 = summary(list(scores.values()))
        figures[name] = {"precision": precision, "recall": recall, "F1": f1, "ms a page": 1000 * spent}
        print(f"{name:<22}{precision:9.3f}{recall:8.3f}{f1:7.3f}{1000 * spent:10.0f}")
        if name == "assay":
            for key in sorted(scores, key=lambda key: scores[key][0])[: chosen.worst]:
                print(
                    f"    {key[:12]}  right {scores[key][0]:.2f}  wrong {scores[key][1]:.2f}  missed {scores[key][2]:.2f}"
                )
    if source.startswith("STAND-IN"):
        precision, recall, f1 = summary([compare(by_trafilatura(page), by_assay(page)) for page in pages.values()])
        print(f"assay against trafilatura's text, all {len(pages)} pages: {precision:.3f} {recall:.3f} {f1:.3f}")
    write_result(chosen.out, figures, note=f"{len(truth)} of {len(pages)} pages, against {source}")


if __name__ == "__main__":
    main()
