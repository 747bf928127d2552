"""Write docs/troubleshooting.md anew from the errors in the code: `python scripts/troubleshooting.py [--check]`.

Every error that Assay raises is a heading, in the section of the package that raises it. What somebody wrote below a heading is
kept, also when the wording of the error changes a little. A heading whose words are no longer in the code is dropped.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE, PAGE = ROOT / "src" / "assay", ROOT / "docs" / "troubleshooting.md"
ERRORS = {"UserError", "Missing", "StoreError", "Unwritable", "_fail"}  # what ends up on a terminal as one line

# The section of an error: the longest of these that begins the path of its file.
SECTIONS = {
    "": "Everything else",
    "core/settings": "Settings",
    "store": "State and index",
    "store/access": "People and access",
    "store/runs/reviews": "Reviewing",
    "store/threads": "Searching and asking",
    "store/runs/records": "Searching and asking",
    "index": "State and index",
    "ingest": "Adding",
    "models": "Models, embedders and rerankers",
    "agent/toolbox": "Tools",
    "agent": "Searching and asking",
    "answer": "Searching and asking",
    "language": "Searching and asking",
    "synthesis": "Synthesising",
    "governance": "Audit, reports and backups",
    "governance/reviewing": "Reviewing",
    "workspace": "Searching and asking",
    "workspace/facade": "Starting and adding",
    "workspace/context": "Starting and adding",
    "workspace/services/reviews": "Reviewing",
    "workspace/services/people": "People and access",
    "workspace/services/syntheses": "Synthesising",
    "workspace/services/records": "Audit, reports and backups",
    "evaluate": "Evaluating",
    "serve": "Serving",
    "cli": "Everything else",
    "cli/acting": "People and access",
    "cli/access": "People and access",
    "cli/user": "People and access",
    "cli/key": "People and access",
    "cli/add": "Starting and adding",
    "cli/base": "Starting and adding",
    "cli/sources": "Starting and adding",
    "cli/init": "Starting and adding",
    "cli/config": "Starting and adding",
    "cli/workspace": "Starting and adding",
    "cli/ask": "Searching and asking",
    "cli/chat": "Searching and asking",
    "cli/runs": "Searching and asking",
    "cli/synthesise": "Synthesising",
    "cli/evaluate": "Evaluating",
    "cli/audit": "Audit, reports and backups",
    "cli/review": "Reviewing",
    "cli/serve": "Serving",
}
ORDER = (
    "Starting and adding",
    "Adding",
    "Searching and asking",
    "Synthesising",
    "Settings",
    "Models, embedders and rerankers",
    "Tools",
    "Reviewing",
    "People and access",
    "Serving",
    "State and index",
    "Audit, reports and backups",
    "Evaluating",
    "Everything else",
)


def template(node: ast.AST) -> str | None:
    """The words of a string in the code, with … where something is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"\{\w+\}", "…", node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else _hole(part) for part in node.values)
        return re.sub(r"…( ?…)+", "…", "".join(parts))
    return None


def _hole(part: ast.expr) -> str:
    return "'…'" if isinstance(part, ast.FormattedValue) and part.conversion == ord("r") else "…"


def fixed(line: str) -> list[str]:
    """The parts of an error line that never differ."""
    parts = (part.strip(" .:;,()'") for part in re.split(r"'?…'?", line))
    return [part for part in parts if part]


def _sources() -> Iterator[tuple[str, ast.AST]]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).with_suffix("").as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield name, node


def raised() -> Iterator[tuple[str, str]]:
    """Every line that an error is raised with, where it is written there: file and line."""
    for file, node in _sources():
        is_error = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ERRORS and bool(node.args)
        if is_error and (words := template(node.args[0])):
            yield file, " ".join(words.split())


def strings() -> list[str]:
    """Every string of the program."""
    return [words for _, node in _sources() if (words := template(node)) is not None]


def entries(page: str) -> dict[str, str]:
    """Heading → what is written below it, of the page as it stands. Headings in a row share what follows the last of them."""
    found: dict[str, str] = {}
    waiting: list[str] = []
    for part in re.split(r"^(?=###? )", page, flags=re.MULTILINE):
        head = re.match(r"### (`+) ?(.+?) ?\1\n(.*)", part, re.DOTALL)
        if head is None:
            waiting = []
            continue
        waiting.append(head[2].strip())
        if text := head[3].strip():
            found.update(dict.fromkeys(waiting, text))
            waiting = []
    return found


def section_of(file: str) -> str:
    return SECTIONS[max((prefix for prefix in SECTIONS if file.startswith(prefix)), key=len)]


def render(page: str) -> str:
    """The page, made from the code and from what was written below the headings of `page`."""
    old = entries(page)
    intro = re.split(r"^## ", page, maxsplit=1, flags=re.MULTILINE)[0].rstrip()
    placed: dict[str, dict[str, str]] = {name: {} for name in ORDER}
    seen: set[tuple[str, ...]] = set()
    for file, line in raised():
        key = tuple(fixed(line))
        if key and key not in seen:
            seen.add(key)
            placed[section_of(file)][line] = _kept(line, old)
    program = "\n".join(strings())
    for line, text in old.items():  # lines that are put together from several strings of the program
        parts = fixed(line)
        is_used = any(text == kept for section in placed.values() for kept in section.values())
        if parts and tuple(parts) not in seen and not is_used and all(part in program for part in parts):
            placed["Everything else"][line] = text
    blocks = [intro]
    for name in ORDER:
        if placed[name]:
            blocks.append(f"## {name}")
            for line, text in placed[name].items():
                mark = "``" if "`" in line else "`"
                space = " " if "`" in line else ""
                blocks += [f"### {mark}{space}{line}{space}{mark}", *([text] if text else [])]
    return "\n\n".join(blocks) + "\n"


def _kept(line: str, old: dict[str, str]) -> str:
    """What was written below this line, or below one that is nearly the same."""
    if line in old:
        return old[line]
    same = [text for head, text in old.items() if fixed(head) == fixed(line)]
    if same:
        return same[0]
    near = max(old, key=lambda head: SequenceMatcher(None, head, line).ratio(), default="")
    return old[near] if near and SequenceMatcher(None, near, line).ratio() > 0.75 else ""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--check", action="store_true", help="only say whether the page is as it should be")
    check = arguments.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    new = render(page)
    if check:
        return 0 if new == page else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
