"""Options shared by several commands, and what they stand for."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.terminal import whole
from assay.core.errors import UserError
from assay.core.events import Checkpoint, Eagerness, Mode, Route, SearchFilters, Stakes
from assay.index.search_filter import parse_document_types
from assay.language.dates import first_day, last_day
from assay.workspace.facade import default_workspace
from assay.workspace.types import AskOptions

Workspace = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Where documents are kept. Default: $ASSAY_WORKSPACE, or your data folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of words.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result alone, no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also say what was searched for, and why the search ended.")]
WorkingOption = Annotated[
    bool, typer.Option("--working", help="Also show the verdict, the words and the calculation of each statement.")
]
StakesOption = Annotated[
    Stakes,
    typer.Option("--stakes", help="How much depends on it: where it is much, a reviewer looks at the answer first."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
BaseName = Annotated[str, typer.Option("--base", "-b", help="The knowledge base.")]
Bases = Annotated[list[str] | None, typer.Option("--base", "-b", help="Only this knowledge base. May be repeated.")]
NoModel = Annotated[bool, typer.Option("--no-model", help="Go by rule, whatever model is set.")]
FourEyes = Annotated[bool, typer.Option("--four-eyes", help="Whoever asked cannot review the answer.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The folder for the files of a synthesis. Default: ./assay-account-RUN."),
]


@dataclass(frozen=True, slots=True)
class Filters:
    """The options that say which documents are searched."""

    bases: Bases = None
    sources: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help="Only documents whose path or title contains this. May be repeated."),
    ] = None
    types: Annotated[
        list[str] | None, typer.Option("--type", help="Only this kind of document: pdf, html, docx, … May be repeated.")
    ] = None
    since: Annotated[
        str | None, typer.Option(help="Only documents dated from here on: 2024, 2024-05-17, 'last 12 months'.")
    ] = None
    until: Annotated[str | None, typer.Option(help="Only documents dated up to here.")] = None
    undated: Annotated[
        bool, typer.Option("--undated", help="With --since or --until, also documents without a known date.")
    ] = False
    meta: Annotated[
        list[str] | None,
        typer.Option(
            "--meta",
            help="Only documents with this metadata, NAME=VALUE: author, organisation, period, kind, tag, … "
            "May be repeated.",
        ),
    ] = None

    def where(self) -> SearchFilters:
        first, last = days_between(self.since, self.until)
        if first and last and first > last:
            raise UserError(f"--since {first} is later than --until {last}: no document can be dated so.")
        pairs: dict[str, str] = {}
        for given in self.meta or ():
            name, _, value = (part.strip() for part in whole(given).partition("="))
            if not name or not value:
                raise UserError(f"--meta takes NAME=VALUE, not {given!r}.")
            if pairs.setdefault(name, value) != value:
                raise UserError(f"--meta {name} is given twice, and a document has to match both. Give one.")
        return SearchFilters(
            bases=tuple(map(whole, self.bases or ())),
            sources=tuple(map(whole, self.sources or ())),
            types=parse_document_types(self.types or ()),
            since=first,
            until=last,
            undated=self.undated,
            meta=pairs,
        )


def days_between(since: str | None, until: str | None) -> tuple[str | None, str | None]:
    """The first and the last day; relative dates count from today."""
    today = date.today().isoformat()
    return first_day(since, today) if since else None, last_day(until, today) if until else None


@dataclass(frozen=True, slots=True)
class Asking:
    """The options that say how a question is answered."""

    mode: Annotated[Mode, typer.Option(help="How far to go: up to 3, 5 or 10 rounds of searching.")] = Mode.balanced
    eagerness: Annotated[Eagerness | None, typer.Option(help="How readily it searches. Default: the setting.")] = None
    checkpoint: Annotated[
        list[Checkpoint] | None, typer.Option(help="Where to wait for you. May be repeated. Default: the setting.")
    ] = None
    stakes: StakesOption = Stakes.normal
    model: Annotated[str, typer.Option("--model", help="One of the connected models, for all of it.")] = ""
    no_model: NoModel = False

    def options(self, where: SearchFilters, route: Route | None = None) -> AskOptions:
        return AskOptions(
            mode=self.mode,
            where=where,
            eagerness=self.eagerness,
            checkpoints=tuple(dict.fromkeys(self.checkpoint)) if self.checkpoint else None,
            route=route,
            model=not self.no_model,
            named=self.model.strip(),
            stakes=self.stakes,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """The options that say what a question or a synthesis may take."""

    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0, help="USD that it may cost; 0 for no ceiling. Default: the setting."),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=0, help="Tokens that it may take; 0 for no ceiling. Default: the setting."),
    ] = None
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", min=0.1, help="Active seconds that it may take. Default: the setting."),
    ] = None

    def settings(self, kind: str) -> dict[str, Any]:
        """The settings for these limits: `budget_run` for a question, `synthesis` for a synthesis."""
        return {f"{kind}_money": self.max_cost, f"{kind}_tokens": self.max_tokens, f"{kind}_seconds": self.max_seconds}


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command with an option for each field of those of its parameters that are dataclasses."""
    signature = inspect.signature(command, eval_str=True)
    every = signature.parameters.items()
    groups: dict[str, Any] = {name: each.annotation for name, each in every if is_dataclass(each.annotation)}
    parameters = [
        option
        for name, each in every
        for option in (inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [each])
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    run.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return run


def again(workspace: Path | None, limits: Limits | None = None, out: Path | None = None) -> str:
    """The flags that a later `assay resume` needs for the same behaviour: limits and locations are not in a run's
    record."""
    limits = limits or Limits()
    given = {
        "--workspace": workspace,
        "--out": out,
        "--max-cost": limits.max_cost,
        "--max-tokens": limits.max_tokens,
        "--max-seconds": limits.max_seconds,
    }
    return "".join(f" {flag} {shlex.quote(str(value))}" for flag, value in given.items() if value is not None)


def workspace_folder(workspace: Path | None) -> Path:
    """The folder of the workspace, whether there is one or not."""
    return (workspace or default_workspace()).expanduser()
