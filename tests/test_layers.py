"""A module imports only from its own line of the layout or from lines above it."""

from __future__ import annotations

import ast
from pathlib import Path

import assay

ROOT = Path(assay.__file__).parent
LAYERS = [
    {"types", "errors", "accounts"},
    {"events", "stages", "trust", "codec", "access", "settings", "dates", "text", "fence", "prompts"},
    {"run", "told"},
    {"store"},
    {"models"},
    {"ingest"},
    {"index"},
    {"intake", "forget"},
    {"evidence"},
    {"answer"},
    {"oversight"},
    {"agent"},
    {"synthesis", "conversation"},
    {"testing"},
    {"archive", "replay", "audit"},
    {
        "seating",
        "asking",
        "synthesising",
        "chatting",
        "workspace",
        "reviewing",
        "erasing",
        "branching",
        "reaching",
        "foreseeing",
    },
    {"evaluate"},
    {"serve"},
    {"cli"},
]
ORDER = {name: place for place, names in enumerate(LAYERS) for name in names}


def _layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def _imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            if node.module == "assay":
                found |= {f"assay.{alias.name}" for alias in node.names}
    return {name for name in found if name.startswith("assay.")}


def test_every_module_belongs_to_a_layer():
    parts = {path.stem if path.suffix == ".py" else path.name for path in ROOT.iterdir() if path.name[0] not in "._"}
    assert parts - {"data", "__init__"} == set(ORDER)


def test_a_module_imports_only_from_its_own_layer_or_from_those_above():
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in sorted(ROOT.rglob("*.py"))
        for name in sorted(_imports(file))
        if (own := file.relative_to(ROOT).parts[0].removesuffix(".py")) in ORDER
        and ORDER.get(_layer(name), -1) > ORDER[own]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_too_long_to_read_in_one_sitting():
    long = {
        str(file.relative_to(ROOT)): n for file in ROOT.rglob("*.py") if (n := len(file.read_text().splitlines())) > 450
    }
    assert not long
