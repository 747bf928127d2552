"""`assay backup`, `assay restore`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.options import Workspace, plain

IN_THE_FOLDER = ("", "lance", "memory")  # values of `state`, `index` and `blobs`


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, for example assay-backup.tar.gz.")],
    workspace: Workspace = None,
) -> None:
    """Write the whole workspace to one file. Caches stay behind; they are made again when needed."""
    from assay.core.settings import FILE, keys_written_in
    from assay.workspace.facade import open_workspace

    with open_workspace(workspace) as opened:
        size = opened.records.backup(file.expanduser().absolute())
        settings, keys = (opened.path / FILE).is_file(), keys_written_in(opened.path)
    typer.echo(plain(f"Wrote {file} ({size / 1e6:.1f} MB)."))
    if settings:
        secret = f", with a secret in it ({', '.join(keys)})" if keys else ""
        typer.echo(f"Your settings ({FILE}) are inside{secret}.")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `assay backup` wrote.")],
    keep_credentials: Annotated[
        bool,
        typer.Option(
            "--keep-credentials",
            help="Passwords and API keys of the backup hold again, also those that were taken back since.",
        ),
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Unpack a backup into a new workspace. A workspace that is there is never overwritten."""
    from assay.core.private_files import write_private
    from assay.core.settings import FILE, with_settings
    from assay.governance.backup import restore as unpack
    from assay.workspace.facade import default_workspace

    folder = (workspace or default_workspace()).expanduser()
    ended = unpack(file.expanduser(), folder, keep_credentials=keep_credentials)
    typer.echo(plain(f"Restored to {folder}."))
    if ended:
        people = "1 person needs" if ended == 1 else f"{ended} people need"
        typer.echo(
            f"{people} a new password (`assay user change NAME --password`) or API key (`assay key add NAME`): "
            "those of the backup may have been taken back since."
        )
    settings = folder / FILE
    text = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    # What these name may hold the workspace as it is now.
    given = tomllib.loads(text)
    elsewhere = [name for name in ("state", "index", "blobs") if given.get(name, IN_THE_FOLDER[0]) not in IN_THE_FOLDER]
    if elsewhere:
        write_private(settings, with_settings(text, dict.fromkeys(elsewhere)).encode())
    if "state" in elsewhere:
        typer.echo("Its runs and accounts are in a file now. `assay migrate --to ADDRESS` moves them to a server.")
    if "index" in elsewhere:
        typer.echo("Its search index was not in the folder, and is not in the backup: `assay reindex` builds it.")
