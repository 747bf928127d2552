"""How large everything is, beside the most that it may be (bench/size.json).

python bench/lines.py                   every measure now, as a table; it fails where one has grown
python bench/lines.py --write           lower the numbers of bench/size.json to what there is now
python bench/lines.py BEFORE [AFTER]    lines per package of two revisions, as a table

A number may fall. To raise one takes a line with the reason: "lines of src": {"most": 70000, "raised": {"reads RTF": 300}}.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

PACKAGES = "src/assay"
ROOT = Path(__file__).parent.parent
SIZE = ROOT / "bench" / "size.json"
PATTERN = re.compile(r"\bre\.compile\(")
GENERATED = {"benchmarks-all.md", "guards.md", "troubleshooting.md"}
PARTLY, BY_HAND = {"commands.md", "settings.md", "http.md"}, "<!-- by hand -->"  # scripts/reference.py writes the rest
WORD = re.compile(r"\S*\w\S*")
ASKED = """
import sys
from assay.cli.main import main
try:
    main()
except SystemExit:
    print(sum(name.split(".")[0] == "assay" for name in sys.modules))
"""


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


def size_now() -> dict[str, float]:
    """Every measure of the files as they are."""
    texts = [file.read_text(encoding="utf-8") for file in (ROOT / PACKAGES).rglob("*.py")]
    return {
        "lines of src": sum(text.count("\n") for text in texts),
        "files of src": len(texts),
        "compiled patterns": sum(len(PATTERN.findall(text)) for text in texts),
        "modules that one question loads": modules_of_a_question(),
        "words of docs, by hand": sum(len(WORD.findall(_by_hand(page))) for page in hand_written()),
        "packages locked": len(locked()),
    }


def hand_written() -> list[Path]:
    """The pages that no program writes. The list of changes is none: it only grows."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    return [page for page in pages if page.name not in GENERATED]


def _by_hand(page: Path) -> str:
    """What people wrote of a page: all, or what stands above the sections that a script writes and after its mark there."""
    head, *sections = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = (each.partition(BY_HAND)[2] if page.name in PARTLY else each for each in sections)
    return "\n".join((head, *kept))


def modules_of_a_question() -> int:
    """The modules of Assay that `assay ask` loads without a model, in a process of its own, over one small document."""
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note.txt"
        note.write_text("The lamp of the pier is twelve metres high.\n", encoding="utf-8")
        at = ["--workspace", str(Path(folder) / "workspace")]
        added = [sys.executable, "-m", "assay.cli.main", "add", str(note), *at]
        subprocess.run(added, capture_output=True, check=True)
        asked = [sys.executable, "-c", ASKED, "ask", "How high is the lamp of the pier?", *at]
        return int(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def locked() -> list[str]:
    """Names of the packages that a plain install may bring."""
    return re.findall(r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M)


def megabytes_installed() -> int:
    """What a plain install takes here, as the packages' own lists of files say. Not held: wheels differ between processors."""
    total = sum(file.stat().st_size for file in (ROOT / PACKAGES).rglob("*") if "__pycache__" not in file.parts)
    for name in locked():
        with suppress(PackageNotFoundError):  # one for another system
            total += sum(file.size or 0 for file in distribution(name).files or ())
    return round(total / 1e6)


def allowed(kept: Mapping[str, Any]) -> float:
    """The most that there may be: what there was at the least, and what was added for a reason since."""
    return kept["most"] + sum(kept.get("raised", {}).values())


def grown(now: Mapping[str, float], kept: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What there is more of than there may be."""
    return [
        f"{name}: {now[name]:,}, but at most {allowed(kept[name]):,}" for name in now if now[name] > allowed(kept[name])
    ]


def main() -> None:
    if len(sys.argv) in (2, 3) and not sys.argv[1].startswith("-"):
        print(table(lines(sys.argv[1]), lines(sys.argv[2] if len(sys.argv) == 3 else "HEAD")))
        return
    now, kept = size_now(), json.loads(SIZE.read_text(encoding="utf-8"))
    for name, size in now.items():
        print(f"{name:<34}{size:>10,}   at most {allowed(kept[name]):>10,}")
    print(f"{'MB installed here':<34}{megabytes_installed():>10,}")
    if more := grown(now, kept):
        sys.exit(
            f"It has grown. {'; '.join(more)}. Take away as much as you add, or give the reason in bench/size.json."
        )
    if sys.argv[1:] == ["--write"]:
        SIZE.write_text(
            json.dumps(kept | {name: {"most": size} for name, size in now.items()}, indent=2) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
