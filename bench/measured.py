"""What each benchmark measures, and which results are older than that.

    python bench/measured.py    names each result file whose code has changed, with the command that makes it again

What each measures is named in measured.json. It fails if there are more of them than bench/size.json allows, or if
docs/benchmarks-all.md is not what report.py writes.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SOURCE = "src/assay"
STALE = "results older than their code"
MEASURED = json.loads((ROOT / "bench" / "measured.json").read_text(encoding="utf-8"))  # below src/assay, and scripts


def code_of(bench: str) -> dict[str, str]:
    """The digest of everything that a benchmark measures, and of its script."""
    parts = [part if part.startswith("bench/") else f"{SOURCE}/{part}" for part in MEASURED.get(bench, ())]
    return {part: digest(part) for part in [f"bench/{bench}.py", *parts]}


@cache
def digest(part: str) -> str:
    place, found = ROOT / part, hashlib.sha256()
    for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
        if file.is_file() and "__pycache__" not in file.parts:
            found.update(f"{file.relative_to(ROOT).as_posix()}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def changed(result: Mapping[str, Any]) -> list[str]:
    """What has changed since a result was made: all of it if the result does not say what it measured."""
    then = result.get("code", {})
    return [part for part, now in code_of(result["bench"]).items() if then.get(part) != now]


def main() -> None:
    from report import KEY_PAGE, PAGE, key_page, read_results, whole_page

    results = read_results()
    stale = {name: parts for name, result in results.items() if (parts := changed(result))}
    for name, parts in stale.items():
        print(f"bench/results/{name}.json is older than {', '.join(parts)}")
        print(f"    python {results[name]['command']} --out bench/results/{name}.json")
    most = json.loads((ROOT / "bench" / "size.json").read_text(encoding="utf-8"))[STALE]["most"]
    if len(stale) > most:
        sys.exit(f"{len(stale)} {STALE}, but at most {most}: make them again, and lower the number in bench/size.json.")
    told = KEY_PAGE.read_text(encoding="utf-8")
    if PAGE.read_text(encoding="utf-8") != whole_page(results) or told != key_page(told, results):
        sys.exit("The pages of benchmarks are not what the results and the code say: run `make docs`.")


if __name__ == "__main__":
    main()
