"""How often rules notice something about true and about false claims: `python bench/hints.py FILE`, in the form of
`assay evaluate claims`. Prints one JSON object: the share of claims with a hint, by label and by kind."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

from assay.answer.checking.hints import find_hints


def main(file: Path) -> None:
    noticed: dict[str, list[bool]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        above = [part for each in row["passages"] for part in (each["title"], each["date"], each["heading"]) if part]
        hints = find_hints(row["claim"], [each["text"] for each in row["passages"]], above)
        for group in (row["label"], f"{row['label']}: {row['kind']}"):
            noticed[group].append(bool(hints))
    shares = {group: f"{sum(each)}/{len(each)}" for group, each in sorted(noticed.items())}
    print(json.dumps(shares, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
