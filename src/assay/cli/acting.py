"""Who a command acts as: `assay --as user:NAME COMMAND`.

Whoever can open the files of a workspace can read all of it, so this never widens what they can do: a command that acts as
somebody sees, changes and records what that person would.
"""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.core.errors import UserError

if TYPE_CHECKING:
    from assay.core.access import Principal
    from assay.workspace.facade import Workspace

USER = "user:"
ACTING: ContextVar[str] = ContextVar("acting", default="")  # the value of `--as`; empty for none
# Commands that read and write for one person. All others are about the whole workspace.
PERSONAL = frozenset(
    {
        "access", "add", "ask", "base", "chat", "diff", "export", "mcp", "off", "on", "reindex", "remove", "replay", "resume",
        "review", "runs", "search", "show", "sources", "sync", "synthesise", "synthesize", "tag", "trace",
    }
)  # fmt: skip


def act_as(who: str, command: str | None) -> None:
    """Have the command act as `who`. Raises `UserError` where that names nobody, or the command is nobody's in particular."""
    ACTING.set(who)
    if not who:
        return
    if not who.startswith(USER) or who == USER:
        raise UserError(f"--as takes user:NAME, not {who!r}. `assay user list` shows the names.")
    if command is not None and command not in PERSONAL:
        raise UserError(
            f"`assay {command}` is about the whole workspace and acts for nobody in particular. "
            "Leave out --as, and unset ASSAY_AS."
        )


def check_owner_option(owner: str) -> None:
    """Raise `UserError` for `--owner` beside `--as`: nobody changes in another's name what is not theirs."""
    if owner and ACTING.get():
        raise UserError("--owner and --as do not go together: whoever you act as changes only what is theirs.")


def open_workspace(path: Path | None, *, create: bool = False, **flags: Any) -> Workspace:
    """The workspace for the person that the command acts as; for the command line's own user if none is named."""
    from assay.workspace import facade

    opened = facade.open_workspace(path, create=create, **flags)
    if who := ACTING.get():
        try:
            opened.principal = _principal(opened, who.removeprefix(USER))
        except BaseException:
            opened.close()
            raise
    return opened


def _principal(opened: Workspace, name: str) -> Principal:
    from assay.core.access import LOCAL

    return LOCAL if name == LOCAL.id else opened.people.known(name).principal
