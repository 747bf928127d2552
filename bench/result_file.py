"""The result of a benchmark as a file: figures with the command, the machine and the versions that made them.

Figures are plain data, at most three deep: table → row → column → value. `bench/report.py` writes them into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from measured import code_of

OURS = ("assay", "lancedb", "openvino", "numpy")


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures here, with machine and versions")


def write_result(
    out: Path | None,
    figures: Mapping[str, Any],
    versions: Mapping[str, str] | None = None,
    missing: Mapping[str, str] | None = None,
    note: str = "",
    partly: bool = False,
) -> None:
    """Print machine and versions, and write the result where a file is asked for. `missing` are peers that could not be
    run, with the reason. `partly`: some figures are of an earlier run, and so is the code that they are said to measure."""
    used = {**own_versions(), **(versions or {})}
    print(f"\n{machine()}; {', '.join(f'{name} {each}' for name, each in used.items())}")
    for name, why in (missing or {}).items():
        print(f"not run: {name}: {why}")
    if not out:
        return
    bench = Path(sys.argv[0]).stem
    code = json.loads(out.read_text(encoding="utf-8")).get("code", {}) if partly else code_of(bench)
    result = {
        "bench": bench,
        "command": command(sys.argv),
        "day": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "code": code,
        "versions": used,
        "missing": dict(missing or {}),
        "note": note,
        "figures": rounded(figures),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


PLACES = ("--out", "--cache", "--peers", "--keep")  # options that decide nothing about the figures


def command(arguments: Sequence[str]) -> str:
    """The command as it was given, without places of the machine that it ran on."""
    words = ["bench/" + Path(arguments[0]).name, *arguments[1:]]
    for place in PLACES:
        if place in words:
            at = words.index(place)
            words[at : at + 2] = []
    return shlex.join(word for word in words if not word.startswith(tuple(f"{place}=" for place in PLACES)))


def machine() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = ""
    model = re.search(r"^model name\s*: (.+)$", told, re.MULTILINE)
    return f"{os.cpu_count()} cores, {platform.machine()}{', ' + model[1] if model else ''}, Python {platform.python_version()}"


def own_versions() -> dict[str, str]:
    return versions_of(OURS)


def versions_of(packages: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def rounded(value: Any) -> Any:
    """Figures with four digits after the point, or four significant ones."""
    if isinstance(value, Mapping):
        return {str(key): rounded(each) for key, each in value.items()}
    if isinstance(value, float):
        return round(value, 4) if abs(value) < 10 else round(value, 1)
    return value


def show(figures: Mapping[str, Any], indent: str = "") -> None:
    """Print figures as aligned tables."""
    rows = {name: each for name, each in figures.items() if isinstance(each, Mapping)}
    if any(isinstance(each, Mapping) for row in rows.values() for each in row.values()):
        for name, each in rows.items():
            print(f"\n{indent}{name}")
            show(each, indent)
        return
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    wide = max((len(name) for name in rows), default=0) + 2
    if columns:
        print(f"{indent}{'':{wide}}" + "".join(f"{column:>{width(column)}}" for column in columns))
    for name, row in rows.items():
        cells = (f"{cell(row.get(column)):>{width(column)}}" for column in columns)
        print(f"{indent}{name:{wide}}" + "".join(cells))
    for name, value in figures.items():
        if name not in rows:
            print(f"{indent}{name}: {cell(value)}")


def cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def width(column: str) -> int:
    return max(10, len(column) + 3)
