"""Consent before text first leaves this machine: what would be sent, to which host. Asked once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.cli.view.dialogue import at_terminal, confirm, say

if TYPE_CHECKING:
    from assay.core.settings import Settings
    from assay.workspace.facade import Workspace


def explain(settings: Settings, hosts: Sequence[str]) -> None:
    from assay.models.factory import cluster_hosts, receives

    for host in hosts:
        say(f"To {host} would be sent: {'; '.join(receives(settings, host)) or 'what passes through it'}.")
    kept = "The" if cluster_hosts(settings) else "Files as a whole, the"
    say(f"{kept} index and the records of runs stay here.")


def not_agreed(folder: Path, hosts: Sequence[str]) -> list[str]:
    """The hosts without consent in this workspace; nobody else can consent for its user."""
    from assay.core.errors import AssayError
    from assay.store import facts
    from assay.workspace.facade import open_workspace

    if not hosts:
        return []
    try:
        with open_workspace(folder) as opened:
            return [host for host in hosts if not facts.agreed(opened.store, host)]
    except AssayError:  # missing or unreadable
        return list(hosts)


def settle(opened: Workspace, *, model: bool = True) -> None:
    """Ask for consent for new hosts. If not interactive, the workspace will refuse later."""
    from assay.models.factory import reached
    from assay.store import facts

    hosts = [host for host in reached(opened.settings, model=model) if not facts.agreed(opened.store, host)]
    if not hosts or not at_terminal():
        return
    explain(opened.settings, hosts)
    try:
        for host in hosts:
            if confirm(f"May it be sent to {host}?"):
                facts.agree(opened.store, host)
    except KeyboardInterrupt:
        say("Stopped. Nothing was sent.")
        raise typer.Exit(130) from None
