"""`assay replay`, `assay diff`: recompute a run from its record, or start anew from one of its steps; and compare
runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.follow import EXIT, OutputFormat, Show, end, follow, render_answer
from assay.cli.options import Json, Quiet, Workspace, again, aside, console, plain, print_json, wait_for

if TYPE_CHECKING:
    from assay.core.run import Run
    from assay.governance.replay import Replay
    from assay.workspace.facade import Workspace as Opened

RunName = Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")]


def replay(
    run: RunName,
    start: Annotated[
        int | None,
        typer.Option("--from", help="Begin a new run from the step of this record, as `assay trace` numbers them."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", help="The model to go on with; `none` goes by rule. Only with --from.")
    ] = "",
    prompts: Annotated[
        bool,
        typer.Option("--prompts", help="Print what models were asked, word for word, instead of the answer."),
    ] = False,
    format: Annotated[
        OutputFormat, typer.Option("--format", "-f", help="How the answer is written.")
    ] = OutputFormat.text,
    quiet: Quiet = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Make a run's answer again from its record alone, and say whether it is the same: no model, no index.

    With --from, a new run begins with what was recorded before that step, and goes on live from there.
    """
    from assay.cli.acting import open_workspace
    from assay.core.errors import UserError

    with open_workspace(workspace) as opened:
        recorded = opened.questions.run(run)
        if start is not None:
            raise _start_rerun(
                opened, recorded, start, model, Show(format, json, quiet, again(workspace, None, None, None))
            )
        if model:
            raise UserError("--model goes with --from: a replay asks no model. `--from 1` begins with the question.")
        if prompts:
            raise _print_prompts(opened, recorded, json)
        raise _replay_recorded(opened, recorded, format, json, quiet)


def _start_rerun(opened: Opened, origin: Run, place: int, model: str, show: Show) -> typer.Exit:
    from assay.cli.config import settle

    with_model = opened.with_settings(opened.models.in_every_role(model))
    with_model.questions.check_branch(origin, place)  # raises before the user is asked anything
    settle(with_model)
    new = follow(opened, with_model.questions.branch(origin, place, model), show)
    if not show.json and not show.quiet:
        line = f"Begun from record {_first(new)} of {origin.id}; `assay diff {origin.id} {new.id}` shows what changed."
        aside().print(plain(line), style="dim", markup=False, soft_wrap=True)
    return end(opened, new, show)


def _first(run: Run) -> int:
    return run.asked.branch.at if run.asked.branch else 0


def _print_prompts(opened: Opened, recorded: Run, json: bool) -> typer.Exit:
    """Print every prompt of a run, made again from its record and compared with its digest there."""
    from assay.core.codec import to_json
    from assay.core.errors import UserError

    made = wait_for(opened.questions.replay(recorded))
    if made.as_recorded:
        raise UserError("Another version of Assay decided this run: its prompts cannot be made again by this one.")
    if json:
        print_json(
            [
                {
                    "record": each.place,
                    "role": each.reply.role,
                    "prompt": each.reply.prompt,
                    "model": each.reply.model,
                    "digest": each.reply.request,
                    "request": to_json(each.prompt) if each.prompt else None,
                }
                for each in made.prompts
            ]
        )
    for each in () if json else made.prompts:
        held = "as recorded" if each.prompt else "could not be made again"
        typer.echo(
            plain(f"--- record {each.place}: {each.reply.role} to {each.reply.model}, {held} ({each.reply.request})")
        )
        for message in each.prompt.messages if each.prompt else ():
            typer.echo(plain(f"[{message.role}]\n{message.text}"))
    return typer.Exit(0 if all(each.prompt for each in made.prompts) else 1)


def _replay_recorded(opened: Opened, recorded: Run, format: OutputFormat, json: bool, quiet: bool) -> typer.Exit:
    made = wait_for(opened.questions.replay(recorded))
    failed = made.answer is None or not made.same
    if json:
        print_json(
            {
                "run": recorded.id,
                "same": made.same,
                "differences": list(made.differences),
                "taken": made.taken,
                "reworded": made.reworded,
                "as_recorded": made.as_recorded,
                "checked": made.checked,
                "answer": made.answer,
            }
        )
    elif made.answer is not None:
        typer.echo(render_answer(_with_answer(recorded, made), opened, format))
    if not json and not quiet:
        for line in describe_comparison(made):
            aside().print(plain(line), style="dim", markup=False, soft_wrap=True)
    return typer.Exit(1 if failed or made.answer is None else EXIT[made.answer.outcome])


def _with_answer(recorded: Run, made: Replay) -> Run:
    """The run with the recomputed answer, so that this one is printed instead of the recorded one."""
    from assay.core.events import Answered

    assert made.answer is not None
    last = Answered(made.answer)
    return replace(recorded, events=tuple(last if isinstance(each, Answered) else each for each in recorded.events))


def describe_comparison(made: Replay) -> list[str]:
    """Whether the recomputed run equals the recorded one, as text."""
    if made.as_recorded:
        return _as_recorded(made)
    if made.answer is None:
        lines = ["The answer could not be made again from the record."]
    elif made.same:
        lines = ["The answer was made again from the record, byte for byte the same. No model was asked."]
    else:
        lines = ["The answer that follows from the record is not the one that was recorded."]
    if made.differences:
        lines += ["Not every step came out as it was recorded:", *(f"  {each}" for each in made.differences)]
    else:
        lines.append("Every step came out as it was recorded.")
    if made.taken:
        lines.append(f"Taken as recorded, since they compare vectors and no index was used: {made.taken} of the steps.")
    if made.reworded:
        lines.append(f"Their prompts would read differently today: {made.reworded} of the replies.")
    return lines


def _as_recorded(made: Replay) -> list[str]:
    whole = "The answer is the recorded one. No model was asked."
    older = "An earlier version of Assay decided this run: its conclusions were taken as recorded."
    checked = f"Checked against the documents: {made.checked} quotations, and every citation and verdict of the answer."
    if not made.differences:
        return [whole, older, checked]
    return ["The recorded answer does not hold.", older, *(f"  {each}" for each in made.differences)]


def diff(
    a: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show what differs between two runs: question, route, plan, searches, evidence, claims, answer, cost."""
    from assay.cli.acting import open_workspace
    from assay.governance.difference import difference, render_difference
    from assay.workspace.stored import documents

    with open_workspace(workspace) as opened:
        one, other = map(opened.questions.run_for_asker, (a, b))
        found = {each.quote.doc_id for run in (one, other) for each in run.evidence}
        compared = difference(one, other, documents.titles(opened.store, found, opened.scope()))
    if json:
        parts = [
            {
                "name": part.name,
                "same": part.same,
                "only_a": part.only_a,
                "only_b": part.only_b,
                "changed": part.changed,
            }
            for part in compared.parts
        ]
        print_json({"a": a, "b": b, "same": compared.same, "parts": parts})
        return
    for line in render_difference(compared):
        console().print(plain(line), markup=False)
