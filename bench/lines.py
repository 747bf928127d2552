"""Lines of Python per package of two revisions, as a table: python bench/lines.py BEFORE [AFTER]"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

PACKAGES = "src/assay"


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


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print(table(lines(sys.argv[1]), lines(sys.argv[2] if len(sys.argv) == 3 else "HEAD")))
