"""Write docs/benchmarks-all.md from the result files in bench/results, and the table of docs/benchmarks.md.

    .venv/bin/python bench/report.py

A result file is what a benchmark writes with `--out bench/results/NAME.json`. One that is older than what it measures
(measured.py) is marked. Nothing on the page is typed by hand.
The plot in docs/scaling.md is drawn from `growth.json`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from measured import changed
from plot import log_plot
from result_file import cell

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks-all.md"
GROWTH = ROOT / "docs" / "images" / "growth.svg"
RESULTS = ROOT / "bench" / "results"
KEY_PAGE, MARK = ROOT / "docs" / "benchmarks.md", "<!-- written by bench/report.py -->\n"
PEERS = ("paper-qa", "llama-index", "haystack", "haiku.rag", "chroma", "txtai", "pydantic-ai")
SHOWN = {("cost", "paper-qa"): "paper-qa, 30 texts"}  # of several rows, that of the same recall
# The most important figures: what it is, result, table, column, our row. A peer's row begins with its name.
KEY = (
    ("false statements shown, of 1", "cite", "", "false shown", "Assay, honest judge"),
    ("the same, with a judge that lies", "cite", "", "false shown", "Assay, the judge lies too"),
    ("altered quotations shown, of 1", "cite", "", "altered shown", "Assay, the judge lies too"),
    ("nDCG@10, SciFact", "quality", "scifact", "nDCG@10", "Assay"),
    ("nDCG@10, MuSiQue", "quality", "mh_musique", "nDCG@10", "Assay"),
    ("R@5, HotpotQA", "quality", "mh_hotpot", "R@5", "Assay"),
    ("nDCG@10, Cranfield", "quality", "cranfield", "nDCG@10", "Assay"),
    ("page@10, annual reports", "quality", "financebench", "page@10", "Assay"),
    ("ms a search, 10,000 passages", "query", "10,000", "p50 ms", "ours: hybrid"),
    ("ms a search, 100,000 passages", "query", "100,000", "p50 ms", "ours: hybrid"),
    ("s to add 1,000 texts", "ingest", "beside", "with embedding, seconds", "Assay"),
    ("s to add 1,000 texts, but for vectors", "ingest", "beside", "seconds", "Assay"),
    ("evidence found, multi-hop", "cost", "", "evidence recall", "ours, 8 a request"),
    ("tokens for it", "cost", "", "tokens", "ours, 8 a request"),
    ("processor ms a run of five searches", "loop", "the best", "ms a run", "ours"),
    ("s until the command's help, or without one the import", "start", "", "wall s", "assay --help"),
)
HEAD = """# All figures

Written by `bench/report.py`. [Benchmarks](benchmarks.md) says what each script measures. Ratios and shares count;
milliseconds are those of one machine.
"""


def whole_page(results: Mapping[str, Mapping[str, Any]]) -> str:
    sections = [section(name, result) for name, result in results.items()]
    lacking = sorted(name for name in benches() if name not in {result["bench"] for result in results.values()})
    unmeasured = ", ".join(f"`bench/{name}.py`" for name in lacking)
    return (
        "\n\n".join([HEAD.rstrip(), *sections, *([f"Not measured on this version: {unmeasured}."] if lacking else [])])
        + "\n"
    )


def benches() -> list[str]:
    """The scripts that write a result."""
    files = sorted((ROOT / "bench").glob("*.py"))
    return [file.stem for file in files if "\nfrom result_file import add_out" in file.read_text("utf-8")]


def section(name: str, result: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{package} {each}" for package, each in result["versions"].items())
    parts = changed(result)
    told = f": {', '.join(f'`{part}`' for part in parts)}" if result.get("code") else ""
    lines = [
        f"## {name}",
        f"    {result['command']}",
        f"{result['day']}; {result['machine']}; {versions}.",
        *([f"**Measured before a change of its code**{told}."] if parts else []),
        *([result["note"]] if result.get("note") else []),
        *tables(result["figures"]),
        *(f"Not run: {peer}: `{why}`" for peer, why in result["missing"].items()),
    ]
    return "\n\n".join(lines)


def key_figures(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The most important figures as one table: a star where the code has changed since."""
    rows: dict[str, dict[str, Any]] = {}
    for what, name, within, column, ours in KEY:
        if name not in results:
            continue
        found = results[name]["figures"]
        if not (own := found.get(ours)):
            found = next((each for title, each in found.items() if title.startswith(within)), {})
            own = found.get(ours, {})
        row = {"Assay": own.get(column)}
        for peer in PEERS:
            shown = SHOWN.get((name, peer), peer)
            row[peer] = next((each.get(column) for title, each in found.items() if title.startswith(shown)), None)
        rows[what + (" *" if changed(results[name]) else "")] = row
    held = [name for name in ("Assay", *PEERS) if any(row[name] is not None for row in rows.values())]
    return table({what: {name: row[name] for name in held} for what, row in rows.items()})


def key_page(text: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with its table written anew."""
    before, _, after = text.split(MARK)
    return MARK.join((before, f"\n{key_figures(results)}\n\n", after))


def tables(found: Mapping[str, Any], title: str = "") -> Iterator[str]:
    """Tables from nested figures: table → row → column → value."""
    inner = {name: each for name, each in found.items() if isinstance(each, Mapping)}
    deep = {name: each for name, each in inner.items() if any(isinstance(one, Mapping) for one in each.values())}
    rows = {name: each for name, each in inner.items() if name not in deep}
    values = {name: {"value": each} for name, each in found.items() if name not in inner}
    for flat in (rows, values):
        if flat:
            yield f"{title}:\n\n{table(flat)}" if title else table(flat)
    for name, each in deep.items():
        yield from tables(each, name)


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [f"| | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    lines += [f"| {name} | {' | '.join(cell(row.get(each)) for each in columns)} |" for name, row in rows.items()]
    return "\n".join(lines)


def read_results(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))}


def growth_plot(result: Mapping[str, Any]) -> str:
    lines = {
        engine: [(float(size.replace(",", "")), row["vectors, p50 ms"]) for size, row in sizes.items()]
        for engine, sizes in result["figures"].items()
    }
    return log_plot(lines, "passages in the index", "median milliseconds of a search by vector")


if __name__ == "__main__":
    if "growth" in (results := read_results()):
        GROWTH.write_text(growth_plot(results["growth"]), encoding="utf-8")
    PAGE.write_text(whole_page(results), encoding="utf-8")
    KEY_PAGE.write_text(key_page(KEY_PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
