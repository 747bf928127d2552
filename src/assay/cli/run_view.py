"""The live view of a run: plan, searches, evidence, claims, cost. Pure: titles and elapsed seconds are parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from assay.agent.prompt_window import fill_placeholders
from assay.agent.toolbox.search import recall
from assay.answer import claim_details, compose
from assay.answer.checking.judge import Rulings
from assay.cli.terminal import line, one_of, plain, say
from assay.core.events import OTHER_WORDS, Call, Checked, Checkpoint, Decided, Event, ModelReplied, Paused, ToolRan
from assay.core.events.describe import LONGEST, NO_PAGES, call_in_words, count_of, format_money, understood_turn
from assay.core.run import Run
from assay.core.types import Document, Evidence, Quote, Verdict
from assay.models.replies import UnreadableReply, read

ROWS = 5  # per part; the plan has a few more
DONE, OPEN, WRONG = "✓", "·", "✗"


def view(
    run: Run,
    titles: Mapping[str, str],
    seconds: float,
    rows: int = ROWS,
    pages: Mapping[str, int] = NO_PAGES,
    statements: Sequence[compose.Statement] = (),
) -> RenderableType:
    """The current state of the run, as lines; `titles` maps document ids to titles, `pages` keys of evidence to pages.
    `statements` are those of an answer that is being written."""
    return Group(
        row(run.asked.question, "bold"),
        *_meaning(run),
        *_plan(run, rows + 3),
        *_searches(run, rows),
        *_evidence(run.evidence, titles, pages, rows),
        *(_claims(run, rows) if run.delivered or not run.asked.has_model else _statements(statements, rows)),
        row(footer(run, doing(run), seconds), "dim"),
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
    """The rewritten form of a follow-up, if it differs from the question, and the route."""
    if words := understood_turn(run.asked.question, run.rephrased):
        yield row(f"understood as: {words}", "dim")
    routed = run.routed
    if routed is not None:
        dates = f" · dated {routed.since or '…'} to {routed.until or '…'}" if routed.since or routed.until else ""
        yield row(f"{routed.route}{dates} · {routed.why}" if routed.why else f"{routed.route}{dates}", "dim")


def _plan(run: Run, most: int) -> list[Text]:
    """The steps, each with a tick and its finding once known."""
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
    rows = [row(quote_line(each, titles, pages), indent=2) for each in evidence[:most]]
    return part("Evidence", rows, len(evidence) - most)


def quote_line(
    evidence: Evidence, titles: Mapping[str, str], pages: Mapping[str, int], quote: Quote | None = None
) -> str:
    """A quotation in one line: score, document, page, text."""
    text = " ".join((quote or evidence.quote).text.split())
    return f"{evidence.score:4.1f}  {place(evidence, titles, pages)}: “{text}”"


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


def _statements(statements: Sequence[compose.Statement], most: int) -> list[Text]:
    """The statements that passed the check so far, each in its place among those that are still being checked."""
    rows = [
        row(f"{DONE} {each.claim.words}", "green", indent=2)
        if each.claim
        else row(f"{OPEN} being checked", "dim", indent=2)
        for each in statements[-most:]
    ]
    return part("Statements", rows, len(statements) - most)


def footer(run: Run, doing: str, seconds: float) -> str:
    """The current activity, and the usage so far."""
    return " · ".join([doing, *([spent(run)] if run.asked.has_model else []), f"{seconds:.0f} s"])


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


JUDGES = 3  # the version of the decision code from which on a judge names the words that carry a claim


def event_lines(event: Event, run: Run, document: Callable[[str], Document | None]) -> list[str]:
    """What stands below the line of an event: proof steps and words of a claim, or the verdicts of a request."""
    match event:
        case ModelReplied(prompt="check", text=text) if run.asked.version >= JUDGES:
            lines = _rulings(text)
        case Checked(place=place, claim=claim) if claim.working or claim.carried_by or claim.disputed:
            working = claim_details.show_working(claim, run.evidence, document)
            basis = claim_details.basis(claim, opinion=place in compose.opinions(run))
            lines = claim_details.claim_lines(claim, basis, claim_details.judged_by(claim), working)
        case _:
            lines = []
    return list(map(shortened, lines))


def _rulings(reply: str) -> list[str]:
    """The verdicts of a reply, and its judgement of the whole. A reply that is not usable has none."""
    try:
        parsed = read(Rulings, reply)
    except UnreadableReply:
        return []
    lines = [f"{each.claim}. {each.verdict}{f': {each.why}' if each.why else ''}" for each in parsed.rulings]
    whole = [
        *([] if parsed.answers else ["they do not answer the question"]),
        *([f"missing: {'; '.join(parsed.missing)}"] if parsed.missing else []),
        *([f"search for: {parsed.search}"] if parsed.search else []),
    ]
    return [*lines, *([f"as an answer: {', '.join(whole)}"] if whole else [])]


def shortened(words: str, longest: int = LONGEST) -> str:
    """The words on one line, cut off if they are too long."""
    flat = " ".join(words.split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


SHOWN = 12  # sources listed


def _waiting(run: Run) -> Paused:
    assert run.waiting is not None, "only a run that waits asks something"
    return run.waiting


def question(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The question with its context, and the numbered options."""
    waiting = _waiting(run)
    lines = sources(run, titles, pages) if waiting.at is Checkpoint.sources else []
    return [*lines, waiting.question, *(f"  {n}. {option}" for n, option in enumerate(waiting.options, 1))]


def sources(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> list[str]:
    """The evidence, best first."""
    shown = [f"  {quote_line(each, titles, pages)}" for each in run.evidence[:SHOWN]]
    more = [f"  and {len(run.evidence) - SHOWN} more"] if len(run.evidence) > SHOWN else []
    return ["The sources:", *shown, *more]


def choose(run: Run, titles: Mapping[str, str], pages: Mapping[str, int] = NO_PAGES) -> tuple[str, str] | None:
    """Prompt the user at the terminal: the option, with their words if it needs some; None if they have gone."""
    for each in question(run, titles, pages):
        say(each)
    read = one_of(_waiting(run).options)
    while (typed := line("Your choice: ")) is not None:
        try:
            option = read(typed)
        except ValueError as wrong:
            say(f"  {wrong}")
            continue
        if option != OTHER_WORDS:
            return option, ""
        while (words := line("Which words? ")) is not None:
            if words:
                return option, words
    return None


def commands(run: Run, resume: str) -> list[str]:
    """The commands that answer later, one for each option; `resume` is the command that resumes the run. Options are
    given by number: a model may have written their text, and these lines are meant to be pasted."""
    return [
        f"{resume} --choose {n}{' --words WORDS' if option == OTHER_WORDS else ''}"
        for n, option in enumerate(_waiting(run).options, 1)
    ]
