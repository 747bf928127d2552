"""`assay user`: the users who may sign in to `assay serve --auth`. The first administrator is created here."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Annotated

import typer

from assay.cli.acting import open_workspace
from assay.cli.options import Json, Workspace, Yes
from assay.cli.terminal import at_terminal, picked, plain, print_json, print_lines, say, whole
from assay.core.access import LOCAL
from assay.core.errors import UserError
from assay.core.events.describe import count_of
from assay.workspace.facade import Workspace as Opened
from assay.workspace.stored import FORMER

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The user's name.")]
Groups = Annotated[list[str] | None, typer.Option("--group", "-g", help="A group they are in. May be repeated.")]
FromStdin = Annotated[bool, typer.Option("--password-stdin", help="Read the password from standard input.")]


@app.command()
def add(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="Mark them as an administrator.")] = False,
    group: Groups = None,
    password_stdin: FromStdin = False,
    no_password: Annotated[
        bool, typer.Option("--no-password", help="They come with an API key or through a proxy, and never sign in.")
    ] = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Give them everything that was made at the command line so far.")
    ] = False,
    workspace: Workspace = None,
) -> None:
    """Add a person. Asks for a password, unless one comes on standard input."""
    name, groups = whole(name), list(map(whole, group or ()))
    with open_workspace(workspace, create=True) as opened:
        opened.people.check_unused(name)  # checked before a password is typed
        password = None if no_password else _password(password_stdin)
        opened.people.add(name, groups, admin=admin, password=password)
        say(f"Added {name}.")
        if adopt and name != LOCAL.id:
            count = opened.people.hand_over(LOCAL.id, name)
            say(f"Theirs now: {count_of(count, 'knowledge base')}, with all runs and threads.")


@app.command("list")
def list_users(workspace: Workspace = None, json: Json = False) -> None:
    """List the people with their groups and how many API keys each has."""
    with open_workspace(workspace) as opened:
        keys = Counter(key.who for key in opened.people.list_keys())
        rows = [
            {**picked(member, "name groups admin"), "keys": keys[member.name], "created": member.created}
            for member in opened.people.listing()
        ]
    if json:
        print_json(rows)
        return
    for row in rows:
        marks = ["administrator"] if row["admin"] else []
        marks += [f"in {', '.join(row['groups'])}"] if row["groups"] else []
        marks += [count_of(row["keys"], "API key")] if row["keys"] else []
        print_lines(f"{row['name']}: {'; '.join(marks) or 'in no group'}.")


@app.command()
def change(
    name: Name,
    admin: Annotated[
        bool | None, typer.Option("--admin/--no-admin", help="Whether they are marked as an administrator.")
    ] = None,
    group: Annotated[list[str] | None, typer.Option("--group", "-g", help="A group to join. May be repeated.")] = None,
    leave: Annotated[list[str] | None, typer.Option("--leave", help="A group to leave. May be repeated.")] = None,
    password: Annotated[bool, typer.Option("--password", help="Ask for a new password.")] = False,
    password_stdin: FromStdin = False,
    workspace: Workspace = None,
) -> None:
    """Change somebody's groups, password or rights. It holds from their next request on."""
    with open_workspace(workspace) as opened:
        member = opened.people.known(whole(name))
        if group or leave:
            joined = (set(member.groups) | set(map(whole, group or ()))) - set(map(whole, leave or ()))
            opened.people.set_groups(member.name, joined)
        if password or password_stdin:
            opened.people.set_password(member.name, _password(password_stdin))
            say(f"All sessions and API keys of {member.name} have ended.")
        if admin is not None:
            opened.people.set_admin(member.name, admin)


@app.command()
def remove(
    name: Name,
    give_to: Annotated[str, typer.Option("--give-to", metavar="NAME", help="Who gets what they own.")] = "",
    workspace: Workspace = None,
    yes: Yes = False,
) -> None:
    """Remove a person. Their keys and sessions end at once. What they own goes to somebody else, or stays under a name that
    nobody can have: give that name to this command to hand it over later."""
    with open_workspace(workspace) as opened:
        former = whole(name).startswith(FORMER)
        leaving = whole(name) if former and give_to else opened.people.known(whole(name)).name
        heir = whole(give_to) and _heir(opened, whole(give_to), leaving)
        if former and heir:
            count = opened.people.hand_over(leaving, heir)
        else:
            if not yes:
                typer.confirm(f"Remove {plain(leaving)!r}?", abort=True, err=True)
            count, left = opened.people.remove(leaving, heir)
            if count and not heir:
                hint = f"`assay user remove {left} --give-to NAME` hands it over."
                say(f"Left behind: {count_of(count, 'knowledge base')}, as {left}. {hint}")
        if heir:
            say(f"{heir} has now: {count_of(count, 'knowledge base')}, with all runs and threads.")


@app.command()
def link(
    name: Name,
    subject: Annotated[
        str, typer.Argument(help="What the provider calls them. They are told it when they sign in without an account.")
    ],
    workspace: Workspace = None,
) -> None:
    """Let a person of the OpenID provider sign in to an account. Never by a name or an e-mail address alone."""
    with open_workspace(workspace) as opened:
        if not opened.settings.oidc_issuer:
            raise UserError("There is no provider: set `oidc_issuer`.")
        opened.people.link(whole(name), opened.settings.oidc_issuer, whole(subject))
        say(f"{opened.settings.oidc_issuer} signs in {whole(subject)} as {whole(name)}.")


@app.command()
def unlink(name: Name, workspace: Workspace = None) -> None:
    """Take all sign-ins with a provider from an account. The person's sessions end."""
    with open_workspace(workspace) as opened:
        member = opened.people.known(whole(name)).name
        found = opened.people.list_identities(member)
        for each in found:
            opened.people.unlink(member, each.id)
        say(f"Unlinked {count_of(len(found), 'sign-in')} of {member}.")


def _heir(opened: Opened, name: str, leaving: str) -> str:
    """The new owner: an existing member who stays, or the command-line user."""
    if name == leaving:
        raise UserError(f"{name} is removed and can be given nothing. Name somebody else with --give-to.")
    return name if name == LOCAL.id else opened.people.known(name).name


def _password(from_stdin: bool) -> str:
    """A password, typed twice or piped in; a trailing newline is not part of it."""
    if from_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not at_terminal():
        raise UserError("There is nobody to ask for a password: pipe it in with --password-stdin.")
    return typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
