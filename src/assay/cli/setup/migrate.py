"""`assay migrate`: move the state of a workspace between a file and a database server."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.options import Json, Workspace, plain, print_json

TO_FILE = "file"


def migrate(
    to: Annotated[str, typer.Option(help="postgresql://… for a server, or `file` for a file in the workspace.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Move runs, records and accounts to another database. Documents, index and vectors stay where they are.

    All rows are copied in one transaction and compared; if anything fails, nothing has moved. Stop servers first.
    """
    from filelock import FileLock, Timeout

    from assay.cli.setup.serve import LOCK
    from assay.core.errors import UserError
    from assay.core.private_files import write_private
    from assay.core.settings import FILE
    from assay.core.settings_file import with_settings
    from assay.workspace.facade import STATE, open_workspace

    with open_workspace(workspace) as opened:
        try:
            server = FileLock(opened.path / LOCK, timeout=0)
            server.acquire()
        except Timeout as error:
            raise UserError("A server is using this workspace. Stop it, then move the state.") from error
        with server:
            moved = opened.move_state("" if to == TO_FILE else to)
            file = opened.path / FILE
            text = file.read_text(encoding="utf-8") if file.is_file() else ""
            write_private(file, with_settings(text, {"state": None if to == TO_FILE else to}).encode())
        folder = opened.path
    if to != TO_FILE:  # an erasure deletes copies with this name
        (folder / STATE).rename(folder / "state-version-moved.bak")
    if json:
        print_json({"to": TO_FILE if to == TO_FILE else "postgresql", "rows": moved})
        return
    kept = "" if to == TO_FILE else " The former file is kept as state-version-moved.bak."
    typer.echo(plain(f"Moved {sum(moved.values()):,} rows in {len(moved)} tables; both copies are equal.{kept}"))
