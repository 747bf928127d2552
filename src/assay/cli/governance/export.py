"""`assay export`: a run as an independently verifiable bundle."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import Workspace, plain


def export(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file to write. Default: ./RUN.zip.")] = None,
    workspace: Workspace = None,
) -> None:
    """Write a run with its evidence and its proof to one file; `python3 check.py FILE` checks it without Assay."""
    from assay.cli.acting import open_workspace
    from assay.core.errors import UserError
    from assay.core.private_files import write_private
    from assay.governance.audit.export import export_bundle

    file = (out or Path(f"{run}.zip")).expanduser()
    if file.exists():
        raise UserError(f"{str(file)!r} exists already. Choose another name with --out.")
    if not file.absolute().parent.is_dir():
        raise UserError(f"There is no folder {str(file.parent)!r} to write the bundle to.")
    with open_workspace(workspace) as opened:
        seen = opened.questions.run_for_asker(run)
        made = export_bundle(opened.store, opened.path, opened.settings, seen, opened.scope())
    write_private(file, made)
    typer.echo(plain(f"Wrote {file} ({len(made) / 1e6:.1f} MB). Check it with: python3 check.py {file}"))
    typer.echo("check.py is inside it; `unzip -p FILE check.py > check.py` takes it out.")
