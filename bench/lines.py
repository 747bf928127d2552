"""How large the code is: lines of Python, and compiled patterns.

python bench/lines.py BEFORE [AFTER]    lines per package of two revisions, as a table
python bench/lines.py                   lines and patterns now, beside the most that there may be (bench/size.json)
python bench/lines.py --write           lower these to what there is now
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

PACKAGES = "src/assay"
ROOT = Path(__file__).parent.parent
SIZE = ROOT / "bench" / "size.json"
PATTERN = re.compile(r"\bre\.compile\(")


def lines(revision: str) -> Counter[str]:
    """Lines of Python below `src/assay` in a git revision, by package."""
    # `git grep -c ""` counts the lines of each file, without a checkout.
    counted = _git("grep", "-c", "", revision, "--", f"{PACKAGES}/*.py")
    found: Counter[str] = Counter()
    for line in counted.splitlines():
        path, _, count = line.removeprefix(f"{revision}:").rpartition(":")
        parts = path.removeprefix(f"{PACKAGES}/").split("/")
        found[parts[0] if len(parts) > 1 else "(top level)"] += int(count)
    return found


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def table(before: Counter[str], after: Counter[str]) -> str:
    """A Markdown table: a line for each package, and the sum."""
    rows = [(name, before[name], after[name]) for name in sorted({*before, *after})]
    rows.append(("all", before.total(), after.total()))
    head = ["| package | before | after | change |", "|---|---:|---:|---:|"]
    return "\n".join(head + [f"| {name} | {a:,} | {b:,} | {b - a:+,} |" for name, a, b in rows])


def size_now(folder: Path = ROOT / PACKAGES) -> dict[str, int]:
    """Lines and compiled patterns of the files as they are."""
    texts = [file.read_text(encoding="utf-8") for file in folder.rglob("*.py")]
    return {
        "lines": sum(text.count("\n") for text in texts),
        "patterns": sum(len(PATTERN.findall(text)) for text in texts),
    }


def grown(now: dict[str, int], most: dict[str, int]) -> list[str]:
    """What there is more of than there may be."""
    return [f"{name}: {now[name]:,}, but at most {most[name]:,}" for name in now if now[name] > most[name]]


def main() -> None:
    if len(sys.argv) in (2, 3) and not sys.argv[1].startswith("-"):
        print(table(lines(sys.argv[1]), lines(sys.argv[2] if len(sys.argv) == 3 else "HEAD")))
        return
    now, most = size_now(), json.loads(SIZE.read_text(encoding="utf-8"))
    print("; ".join(f"{name} {now[name]:,} (before {most[name]:,})" for name in now))
    if more := grown(now, most):
        sys.exit(f"The code has grown. {'; '.join(more)}. Delete as much as you add.")
    if sys.argv[1:] == ["--write"]:
        SIZE.write_text(json.dumps(now) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
