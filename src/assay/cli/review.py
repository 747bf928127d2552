"""`assay review`: answers that wait for review, their details, and the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.answer import citations, claim_details, render
from assay.answer.citations import Cited
from assay.cli.acting import open_workspace
from assay.cli.options import FourEyes, Json, Workspace
from assay.cli.run_view import shortened
from assay.cli.terminal import at_terminal, console, line, picked, plain, print_json, print_lines, say, wait_for, whole
from assay.core.codec import to_json
from assay.core.errors import AssayError, UserError
from assay.core.events import Decision, Edit, Reviewed
from assay.core.events.describe import record_line
from assay.core.printable import one_line
from assay.core.run import Run
from assay.workspace.types import ReviewItem, ReviewSheet

if TYPE_CHECKING:
    from assay.workspace.facade import Reviews

EVIDENCE = 12  # quotations shown
DONE = {"approve": "approved", "edit": "edited", "reject": "rejected"}


def review(
    run: Annotated[str, typer.Argument(help="A run whose answer waits; without one, all that wait are listed.")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Deliver it as it is.")] = False,
    edit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE=TEXT",
            help="Rewrite a claim, by its number. It is checked again. May be repeated.",
        ),
    ] = None,
    drop: Annotated[list[int] | None, typer.Option(metavar="PLACE", help="Leave a claim out. May be repeated.")] = None,
    reject: Annotated[bool, typer.Option("--reject", help="Deliver nothing; --note says why.")] = False,
    note: Annotated[
        str, typer.Option(help="A note that is kept with the decision. Whoever asked sees it when you reject.")
    ] = "",
    seal: Annotated[str, typer.Option(help="The seal of the answer that you looked at; any other is refused.")] = "",
    trace: Annotated[bool, typer.Option("--trace", help="Show every step of the run, too.")] = False,
    decided: Annotated[bool, typer.Option("--decided", help="List what was decided, and not what waits.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many to list.")] = 50,
    four_eyes: FourEyes = False,
    workspace: Workspace = None,
    json: Json = False,
) -> None:
    """List the answers that wait for a reviewer, show one with its claims and its evidence, and decide on it.

    Exit code 5: it waits still, or again.
    """
    decisions = [approve, bool(edit or drop), reject]
    if sum(decisions) > 1 or (any(decisions) and (not run or decided)):
        raise UserError("Name one run, and one decision on it: --approve, --edit and --drop, or --reject.")
    with open_workspace(workspace, review_four_eyes=four_eyes or None) as opened:
        reviews = opened.reviews
        if not run:
            _print_list(reviews, decided=decided, limit=limit, json=json)
            return
        sheet = reviews.sheet(run)
        if not any(decisions):
            _show(reviews, sheet, trace=trace, json=json)
            if json or not at_terminal() or not sheet.line.may_decide:
                return
            decision = _ask_decision(reviews, sheet)
            if decision is None:
                raise typer.Exit(5)
        else:
            what = Decision.approve if approve else Decision.reject if reject else Decision.edit
            decision = (what, whole(note), _edits(edit or (), drop or ()))
        raise _decide(reviews, run, decision, seal or sheet.seal, json=json)


def _edits(edits: Any, drops: Any) -> list[Edit]:
    """Parse the edits of the flags: an index and the new text."""
    made: list[Edit] = []
    for each in edits:
        place, parted, words = whole(each).partition("=")
        if not parted or not (place.strip().isascii() and place.strip().isdigit()) or not words.strip():
            raise UserError(f"--edit takes PLACE=TEXT, not {each!r}.")
        made.append(Edit(int(place), words))
    return [*made, *(Edit(place) for place in drops)]


def _decide(
    reviews: Reviews, run: str, decided: tuple[Decision, str, list[Edit]], seal: str, *, json: bool
) -> typer.Exit:
    """Record the decision, resume the run as its asker, and print the result."""
    decision, note, edits = decided
    made = reviews.decide(run, decision, seal, note, edits)
    ended: Run | None = None
    if decision is not Decision.reject:
        try:
            ended = wait_for(_continue_run(reviews, run))
        except AssayError as error:
            say(f"assay: {error}")
            say(f"The decision is kept: `assay resume {run}` carries the run on.")
            return typer.Exit(1)
    if json:
        print_json({"run": run, "decision": made.decision, "delivered": bool(ended and ended.delivered)})
    elif decision is Decision.reject:
        say("Rejected. Whoever asked sees the decision and your note.")
    elif ended is not None and ended.delivered:
        say("Approved and delivered.")
    elif ended is not None and ended.held:
        _show(reviews, reviews.sheet(run), trace=False, json=False)
        say("It was checked again, and waits again.")
    if ended is not None and ended.failed:
        say(f"assay: {ended.failed.detail}")
        return typer.Exit(1)
    return typer.Exit(5 if ended is not None and ended.held else 0)


async def _continue_run(reviews: Reviews, run: str) -> Run | None:
    runs = [now async for now, _ in reviews.resume(run)]
    return runs[-1] if runs else None


def _print_list(reviews: Reviews, *, decided: bool, limit: int, json: bool) -> None:
    if decided and json:
        print_json([_as_case(reviews, sheet, made) for sheet, made in reviews.decided(limit)])
        return
    lines, _ = reviews.queue(waiting=not decided, limit=limit)
    if json:
        print_json([_line(each) for each in lines])
        return
    for each in lines:
        of = each.review
        when, text = (of.decided, f"{of.state} by {of.by}") if decided else (of.created, "; ".join(of.reasons))
        mark = "" if each.may_decide or decided else " (not yours to decide)"
        console().print(plain(f"{of.run}  {when[:19]}  {of.who}  {each.question}  [{text}]{mark}"), markup=False)
    if not lines:
        say("Nothing waits for you." if not decided else "Nothing was decided yet.")


def _line(each: ReviewItem) -> dict[str, Any]:
    of = each.review
    return {
        "run": of.run,
        "question": each.question,
        **picked(of, "who reasons state created decided by note four_eyes"),
        **picked(each, "may_decide why_not"),
    }


def _cited(reviews: Reviews, sheet: ReviewSheet) -> Cited:
    return citations.of_answer(sheet.answer, sheet.evidence, reviews.context.document)


def _as_case(reviews: Reviews, sheet: ReviewSheet, made: Reviewed) -> dict[str, Any]:
    """A decision as a case: the question, the proposed answer, and the reviewer's decision."""
    return {
        "run": sheet.line.review.run,
        "question": sheet.line.question,
        "answer": render.as_json(sheet.answer, _cited(reviews, sheet)),
        "reasons": sheet.line.review.reasons,
        **picked(made, "decision by note edits"),
    }


def _show(reviews: Reviews, sheet: ReviewSheet, *, trace: bool, json: bool) -> None:
    steps = reviews.trace(sheet.line.review.run) if trace else []
    if json:
        data = _line(sheet.line) | {
            "seal": sheet.seal,
            "answer": render.as_json(sheet.answer, _cited(reviews, sheet)) if sheet.open else None,
            "claims": [
                {
                    "place": each.place,
                    "text": each.claim.words,
                    "basis": each.basis,
                    "verdict": each.claim.verdict,
                    "by": each.by,
                    "dispute": claim_details.dispute(each.claim),
                    "working": claim_details.show_working(each.claim, sheet.evidence, reviews.context.document),
                    **picked(each.claim, "why cites edited"),
                    "rests_on_flagged": each.flagged,
                    "editable": each.editable,
                }
                for each in sheet.claims
            ],
            **picked(sheet, "evidence history"),
        }
        if trace:
            data["trace"] = [{**to_json(record), "payload": event} for record, event in steps]
        print_json(data)
        return
    print_lines(*_describe(reviews, sheet), *(f"{record.seq:>3}  {record_line(event)}" for record, event in steps))


def _describe(reviews: Reviews, sheet: ReviewSheet) -> list[str]:
    of = sheet.line.review
    cited = _cited(reviews, sheet)
    waited = "It has waited since" if of.state == "waiting" else "It began to wait at"
    lines = [f"Asked by {of.who}: {sheet.line.question}", f"{waited} {of.created[:19]}: {'; '.join(of.reasons)}"]
    lines += [f"  {DONE[each.decision]} by {each.by}{f': {each.note}' if each.note else ''}" for each in sheet.history]
    if sheet.open:
        lines += ["", "The answer:", *render.as_text(sheet.answer, cited).splitlines(), "", "Claims:"]
    else:
        lines += ["", "The draft is not shown to whoever asked."]
    for each in sheet.claims:
        claim = each.claim
        marks = [f"edited by {claim.edited}"] if claim.edited else []
        marks += ["rests on nothing but a flagged passage"] if each.flagged else []
        marks += [] if each.delivered else ["not in the answer"]
        why = f" ({claim.why})" if claim.why else ""
        lines.append(f"  {each.place}. {claim.verdict or 'unchecked'}{why}: {shortened(render.claim_text(claim))}")
        working = claim_details.show_working(claim, sheet.evidence, reviews.context.document)
        marks += claim_details.claim_lines(claim, each.basis, each.by, working)
        lines += [f"     {mark}" for mark in marks]
    lines += ["", "Evidence:"]
    for found in sheet.evidence[:EVIDENCE]:
        source = reviews.context.document(found.passage.doc_id)
        flagged = " [flagged]" if found.flagged else ""
        lines.append(f"  {found.key} {source.title if source else ''}{flagged}: “{one_line(found.quote.text)}”")
    if len(sheet.evidence) > EVIDENCE:
        lines.append(f"  and {len(sheet.evidence) - EVIDENCE} more")
    return [*lines, "", f"Seal: {sheet.seal}", *([sheet.line.why_not] if sheet.line.why_not else [])]


PROMPT = "approve, edit PLACE=TEXT, drop PLACE, reject WHY, trace, or nothing to leave: "


def _ask_decision(reviews: Reviews, sheet: ReviewSheet) -> tuple[Decision, str, list[Edit]] | None:
    """Prompt for a decision at the terminal; None if the user leaves it open."""
    while typed := line(PROMPT):
        verb, _, rest = typed.partition(" ")
        try:
            match verb.casefold():
                case "approve":
                    return Decision.approve, rest, []
                case "edit":
                    return Decision.edit, "", _edits([rest], ())
                case "drop" if rest.strip().isdigit():
                    return Decision.edit, "", _edits((), [int(rest)])
                case "reject" if rest.strip():
                    return Decision.reject, rest, []
                case "trace":
                    for record, event in reviews.trace(sheet.line.review.run):
                        say(f"{record.seq:>3}  {record_line(event)}")
                case _:
                    say("  That is none of them; to reject it, say why.")
        except UserError as wrong:
            say(f"  {wrong}")
    return None
