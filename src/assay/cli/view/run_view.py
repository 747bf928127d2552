"""The live view of a run: plan, searches, evidence, claims, cost. Pure: titles and elapsed seconds are parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from assay.cli.options import plain
from assay.core.events import Call, Decided, ToolRan
from assay.core.events.describe import NO_PAGES, call_in_words, count_of, format_money, understood_turn
from assay.core.types import Evidence, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from assay.core.run import Run

ROWS = 5  # per part; the plan has a few more
DONE, OPEN, WRONG = "✓", "·", "✗"


def view(
    run: Run, titles: Mapping[str, str], seconds: float, rows: int = ROWS, pages: Mapping[str, int] = NO_PAGES
) -> RenderableType:
    """The current state of the run, as lines; `titles` maps document ids to titles, `pages` keys of evidence to pages."""
    return Group(
        row(run.asked.question, "bold"),
        *_meaning(run),
        *_route(run),
        *_plan(run, rows + 3),
        *_searches(run, rows),
        *_evidence(run.evidence, titles, pages, rows),
        *_claims(run, rows),
        row(footer(run, seconds), "dim"),
    )


def rows_for(height: int) -> int:
    """How many rows of each part fit on the screen: the last line, with the cost, must never be cut off."""
    return min(ROWS, max(1, (height - 11) // 4))


def row(words: str, style: str = "", *, indent: int = 0) -> Text:
    """Exactly one line: overflow is cut off, and control characters are removed."""
    flat = " ".join(plain(words).split())
    return Text(" " * indent + flat, style=style, no_wrap=True, overflow="ellipsis")


def part(name: str, rows: Sequence[Text], hidden: int = 0) -> list[Text]:
    if not rows:
        return []
    return [row(f"{name} ({hidden} more)" if hidden > 0 else name, "dim"), *rows]


def _meaning(run: Run) -> Iterable[Text]:
    """The rewritten form of a follow-up, if it differs from the question."""
    if words := understood_turn(run.asked.question, run.rephrased):
        yield row(f"understood as: {words}", "dim")


def _route(run: Run) -> Iterable[Text]:
    routed = run.routed
    if routed is not None:
        dates = f" · dated {routed.since or '…'} to {routed.until or '…'}" if routed.since or routed.until else ""
        yield row(f"{routed.route}{dates} · {routed.why}" if routed.why else f"{routed.route}{dates}", "dim")


def _plan(run: Run, most: int) -> list[Text]:
    """The steps, each with a tick and its finding once known."""
    from assay.agent.prompt_window import fill_placeholders

    steps = run.plan.steps if run.plan else ()
    if len(steps) < 2:
        return []
    bound = run.bound
    rows = [
        row(f"{DONE} {fill_placeholders(step.question, run)} → {bound[step.id].value}", "green", indent=2)
        if step.id in bound
        else row(f"{OPEN} {fill_placeholders(step.question, run)}", indent=2)
        for step in steps[:most]
    ]
    return part("Plan", rows, len(steps) - most)


def _searches(run: Run, most: int) -> list[Text]:
    """The latest searches with their results; names followed by rule share a line."""
    decided = [event for event in run.events if isinstance(event, Decided) and event.calls]
    made = [
        group for event in decided for group in ([event.calls] if event.hops else [(call,) for call in event.calls])
    ]
    results, kept = run.results, {each.passage.id for each in run.evidence}
    rows = [_search(calls, [results.get(call.id) for call in calls], kept) for calls in made[-most:]]
    return part("Searches", rows, len(made) - most)


def _search(calls: Sequence[Call], results: Sequence[ToolRan | None], kept: Collection[str]) -> Text:
    words = _named(calls)
    ran = [each for each in results if each is not None]
    if len(ran) < len(calls):
        return row(f"{OPEN} {words}", indent=2)
    if all(each.error for each in ran):
        return row(f"{WRONG} {words}: {ran[0].error}", "yellow", indent=2)
    found = {each.passage.id for result in ran for each in result.found}
    return row(f"{DONE} {len(found)} found, {sum(each in kept for each in found)} kept: {words}", indent=2)


def _named(calls: Sequence[Call]) -> str:
    from assay.agent.toolbox.search import recall

    first = calls[0]
    if first.tool == recall.name:
        return "what earlier turns found"
    if "name" in first.arguments:
        return f"following {', '.join(str(call.arguments.get('name', '')) for call in calls)}"
    if first.query:
        return f"“{first.query}”"
    return call_in_words(first)


def _evidence(
    evidence: Sequence[Evidence], titles: Mapping[str, str], pages: Mapping[str, int], most: int
) -> list[Text]:
    rows = [
        row(f"{each.score:4.1f}  {place(each, titles, pages)}: “{each.quote.text}”", indent=2)
        for each in evidence[:most]
    ]
    return part("Evidence", rows, len(evidence) - most)


def place(evidence: Evidence, titles: Mapping[str, str], pages: Mapping[str, int]) -> str:
    """The document and page of a quotation."""
    page = f", page {pages[evidence.key]}" if evidence.key in pages else ""
    return f"{titles.get(evidence.passage.doc_id) or 'a document'}{page}"


def _claims(run: Run, most: int) -> list[Text]:
    """Claims that passed the check, and those that did not."""
    claims = list(run.checked.values())
    rows = [
        row(f"{DONE} {claim.words}", "green", indent=2)
        if claim.verdict is Verdict.supported
        else row(f"{WRONG} {claim.words} ({claim.why or claim.verdict})", "yellow", indent=2)
        for claim in claims[-most:]
    ]
    return part("Claims", rows, len(claims) - most)


def footer(run: Run, seconds: float) -> str:
    """The current activity, and the usage so far."""
    return " · ".join([doing(run), *([spent(run)] if run.asked.has_model else []), f"{seconds:.0f} s"])


def spent(run: Run) -> str:
    """Model usage: `7 requests · 4,512 tokens · $0.0031`, with the cost if a price is known."""
    usage = run.usage
    tokens = f"{usage.tokens_in + usage.tokens_out:,} tokens"
    return " · ".join([count_of(usage.calls, "request"), tokens, *([format_money(usage.money)] if usage.money else [])])


def doing(run: Run) -> str:
    """The next activity, as far as the events determine it."""
    if run.answer is not None:
        return run.answer.outcome
    if run.failed or run.waiting:
        return "failed" if run.failed else "waiting for you"
    if run.held or run.rejected:
        return "waiting for a reviewer" if run.held else "rejected in review"
    if run.route is None:
        return "looking at the question"
    if run.calls_waiting:
        return "searching"
    if run.unweighed:
        return "weighing what was found"
    if run.stopped is None and run.route != "direct":
        return "judging" if run.round_unjudged else "deciding what to do next"
    if run.draft is None:
        return "writing"
    return "checking" if run.unchecked else "finishing"
