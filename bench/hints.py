"""How often rules notice something about true and about false claims.

    .venv/bin/python bench/hints.py FILE [--out FILE]

FILE is in the form of `assay evaluate claims`. Printed: the share of claims with a hint, by label and by kind.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

from result_file import add_out, show, write_result

from assay.answer.checking.hints import find_hints


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    add_out(parser)
    given = parser.parse_args()
    noticed: dict[str, list[bool]] = defaultdict(list)
    for line in given.file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        above = [part for each in row["passages"] for part in (each["title"], each["date"], each["heading"]) if part]
        hints = find_hints(row["claim"], [each["text"] for each in row["passages"]], above)
        for group in (row["label"], f"{row['label']}: {row['kind']}"):
            noticed[group].append(bool(hints))
    figures = {group: {"share": sum(each) / len(each), "n": len(each)} for group, each in sorted(noticed.items())}
    show(figures)
    write_result(given.out, figures)


if __name__ == "__main__":
    main()
