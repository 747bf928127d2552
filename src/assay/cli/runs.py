"""`assay runs`, `assay trace`: the questions asked, and every step of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from assay.cli.acting import open_workspace
from assay.cli.config import settle
from assay.cli.follow import EXIT, FormatOption, OutputFormat, Show, end, follow, render_answer
from assay.cli.options import Json, Quiet, WorkingOption, Workspace, again
from assay.cli.run_view import event_lines
from assay.cli.terminal import aside, console, picked, plain, print_json, print_lines, print_result, say, wait_for
from assay.core.codec import to_json
from assay.core.errors import UserError
from assay.core.events import Answered
from assay.core.events.describe import format_money, record_line
from assay.core.run import Run
from assay.core.types import Usage
from assay.governance.difference import difference, render_difference
from assay.governance.recheck import AnswerStanding
from assay.governance.replay import Replay
from assay.workspace.facade import Workspace as Opened

CHAINED = "Its records form one chain; `assay verify` holds them against the last seal."


def runs(
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 20,
    review: Annotated[
        bool, typer.Option("--review", help="Only those that a limit cut short, and those that failed.")
    ] = False,
    json: Json = False,
) -> None:
    """List what was asked, newest first, with how it ended and what it took."""
    with open_workspace(workspace) as opened:
        entries = opened.questions.recent(opened.principal.id, opened.scope(), limit)
        if review:
            entries = [each for each in entries if each.cut_short or each.state == "failed"]
        found = opened.rechecks.stale([each.id for each in entries]) if entries else []
    stale = {each.run: each for each in found if not each.withheld}  # of those their state says it
    if json:
        print_json(
            [
                {"run": each.id, **{k: v for k, v in to_json(each).items() if k != "id"}}
                | ({"recheck": stale[each.id]} if each.id in stale else {})
                for each in entries
            ]
        )
        return
    for each in entries:
        many = f"[{each.documents} documents] " if each.documents else ""
        if each.id in stale:
            many = f"[{stale[each.id].standing}] {many}"
        start = f"{each.id}  {each.started[:19]}  {each.state:<10}"
        print_lines(f"{start}  {_cost(each.usage):>10}  {many}{each.question}")


def _cost(usage: Usage) -> str:
    """The cost if a price is known, else tokens; empty if no model was used."""
    if usage.money:
        return format_money(usage.money)
    return f"{usage.tokens_in + usage.tokens_out:,} tok" if usage.calls else ""


def trace(
    run: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show every step of a run, what its judges said of each claim, and whether its record is whole."""
    with open_workspace(workspace) as opened:
        chain = opened.questions.chain(run, opened.principal.id)
        seen = opened.questions.run_for_asker(run)
        events = seen.events
        below = [event_lines(event, seen, opened.documents.get) for event in events]
        faults = list(opened.questions.faults(run))
    if json:
        steps = [{**to_json(record), "payload": event} for record, event in zip(chain, events, strict=True)]
        print_json({"run": run, "whole": not faults, "faults": faults, "records": steps})
        raise typer.Exit(1 if faults else 0)
    wide = max([9, *(len(record.kind) for record in chain)])
    for record, event, details in zip(chain, events, below, strict=True):
        head = f"{record.seq:>3}  {record.at[:19]}  {record.hash[:12]}  {record.kind:<{wide}}"
        for line in (f"{head}  {record_line(event)}", *(f"{'':<7}{each}" for each in details)):
            print_lines(line)
    print_lines(f"The record is damaged: {'; '.join(faults)}" if faults else CHAINED)
    raise typer.Exit(1 if faults else 0)


def feedback(
    workspace: Workspace = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, newest first.")] = 50,
    json: Json = False,
) -> None:
    """List what you said of answers on the page, newest first. With --json each is a case for evaluation."""
    with open_workspace(workspace) as opened:
        found = opened.questions.feedback(limit=limit)
    if json:
        print_json(
            [
                {"run": each.entry.given.run, "at": each.entry.at, "kind": each.entry.given.kind}
                | {**picked(each, "question statement"), "words": each.entry.given.words}
                | {"withheld": each.entry.withheld}
                for each in found
            ]
        )
        return
    for each in found:
        of = each.entry.given
        about = each.statement or each.question or "(withheld)"
        words = f"  [{of.words}]" if of.words else ""
        console().print(plain(f"{of.run}  {each.entry.at[:19]}  {of.kind:<10}  {about}{words}"), markup=False)


def recheck(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Only these, whether they hold or not. Default: all.")
    ] = None,
    model: Annotated[
        bool, typer.Option("--model", help="First ask the model whether newer documents contradict them.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="With --model: requests at most, newest first.")] = 20,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """List the answers and syntheses that rest on words that have changed in your documents since, by code."""
    with open_workspace(workspace) as opened:
        if model:
            settle(opened)
            asked = wait_for(opened.rechecks.ask_model(runs or (), limit))
            say(f"The model was asked about {asked} of your answers.")
        own = (opened.rechecks.of_run(opened.questions.run(run)) for run in runs or ())
        found = [each for each in own if each] if runs else opened.rechecks.stale()
        today = opened.store.now()[:10]
    if json:
        print_json([{**to_json(each), "line": each.line} for each in found])
        return
    for each in found:
        print_lines(f"{each.run}  {each.question}", f"    {each.line}")
        for finding in each.findings:
            print_lines(f"    {finding.line}")
    if not found:
        print_lines(f"Nothing that your answers rest on has changed. Checked against your documents of {today}.")


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
    format: FormatOption = OutputFormat.text,
    working: WorkingOption = False,
    quiet: Quiet = False,
    json: Json = False,
    workspace: Workspace = None,
) -> None:
    """Make a run's answer again from its record alone, and say whether it is the same: no model, no index.

    With --from, a new run begins with what was recorded before that step, and goes on live from there.
    """
    with open_workspace(workspace) as opened:
        recorded = opened.questions.run(run)
        show = Show(format, json, quiet, again(workspace), working=working)
        if start is not None:
            raise _start_rerun(opened, recorded, start, model, show)
        if model:
            raise UserError("--model goes with --from: a replay asks no model. `--from 1` begins with the question.")
        if prompts:
            raise _print_prompts(opened, recorded, json)
        raise _replay_recorded(opened, recorded, show)


def _start_rerun(opened: Opened, origin: Run, place: int, model: str, show: Show) -> typer.Exit:
    with_model = opened.with_settings(opened.models.in_every_role(model))
    with_model.questions.check_branch(origin, place)  # raises before the user is asked anything
    settle(with_model)
    new = follow(opened, with_model.questions.branch(origin, place, model), show)
    if not show.json and not show.quiet:
        at = new.asked.branch.at if new.asked.branch else 0
        line = f"Begun from record {at} of {origin.id}; `assay diff {origin.id} {new.id}` shows what changed."
        aside().print(plain(line), style="dim", markup=False, soft_wrap=True)
    return end(opened, new, show)


def _print_prompts(opened: Opened, recorded: Run, json: bool) -> typer.Exit:
    """Print every prompt of a run, made again from its record and compared with its digest there."""
    made = wait_for(opened.questions.replay(recorded))
    if made.as_recorded:
        raise UserError("Another version of Assay decided this run: its prompts cannot be made again by this one.")
    if json:
        print_json(
            [
                {"record": each.place, **picked(each.reply, "role prompt model"), "digest": each.reply.request}
                | {"request": each.prompt}
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
        for shown in each.prompt.pictures if each.prompt else ():
            typer.echo(plain(f"[picture] {shown.before} {shown.picture.digest}"))
    return typer.Exit(0 if all(each.prompt for each in made.prompts) else 1)


def _replay_recorded(opened: Opened, recorded: Run, show: Show) -> typer.Exit:
    made = wait_for(opened.questions.replay(recorded))
    stands = opened.rechecks.of_run(recorded)
    if show.json:
        data = picked(made, "same differences taken reworded as_recorded checked answer")
        print_json({"run": recorded.id, **data, "recheck": stands})
    elif made.answer is not None:
        typer.echo(render_answer(_with_answer(recorded, made), opened, show.format, working=show.working))
    if not show.json and not show.quiet:
        stale = [stands.line] if stands and stands.standing is not AnswerStanding.holds else []
        for line in (*describe_comparison(made), *stale):
            aside().print(plain(line), style="dim", markup=False, soft_wrap=True)
    return typer.Exit(EXIT[made.answer.outcome] if made.answer and made.same else 1)


def _with_answer(recorded: Run, made: Replay) -> Run:
    """The run with the recomputed answer, so that this one is printed instead of the recorded one."""
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
    older = "An earlier version of Assay decided this run: its conclusions were taken as recorded."
    checked = f"Checked against the documents: {made.checked} quotations, and every citation and verdict of the answer."
    if not made.differences:
        return ["The answer is the recorded one. No model was asked.", older, checked]
    return ["The recorded answer does not hold.", older, *(f"  {each}" for each in made.differences)]


def diff(
    a: Annotated[str, typer.Argument(help="A run, as `assay runs` gives it.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """Show what differs between two runs: question, route, plan, searches, evidence, claims, answer, cost."""
    with open_workspace(workspace) as opened:
        one, other = map(opened.questions.run_for_asker, (a, b))
        found = {each.quote.doc_id for run in (one, other) for each in run.evidence}
        compared = difference(one, other, opened.documents.titles_of_any(found))
    parts = [picked(part, "name same only_a only_b changed") for part in compared.parts]
    data = {"a": a, "b": b, "same": compared.same, "parts": parts}
    print_result(json, data, render_difference(compared))
