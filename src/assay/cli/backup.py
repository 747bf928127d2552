"""`assay backup`, `assay restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import Workspace


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, for example assay-backup.tar.gz.")],
    workspace: Workspace = None,
) -> None:
    """Write the whole workspace to one file. Caches stay behind; they are made again when needed."""
    from assay.workspace import open_workspace

    with open_workspace(workspace) as opened:
        size = opened.backup(file.expanduser().absolute())
    typer.echo(f"Wrote {file} ({size / 1e6:.1f} MB).")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `assay backup` wrote.")],
    workspace: Workspace = None,
) -> None:
    """Unpack a backup into a new workspace. A workspace that is there is never overwritten."""
    from assay.archive import restore as unpack
    from assay.workspace import default_workspace

    folder = (workspace or default_workspace()).expanduser()
    unpack(file.expanduser(), folder)
    typer.echo(f"Restored to {folder}.")
