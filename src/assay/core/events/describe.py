"""Text for events: a line for each entry of a record, and a line for live progress. The only place that does this. Pure.
Document text is not sanitised here: the caller that displays it does that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from assay.core import events
from assay.core.events import RULES, Call, Event, Maker, SynthesisEvent, Task, fallbacks
from assay.core.types import Claim, Evidence, Usage, Verdict

LONGEST = 240  # characters of a record line; `--json` has the full text


class Family(StrEnum):
    """What part of a run an event belongs to."""

    course = "course"
    models = "models"
    searches = "searches"
    evidence = "evidence"
    writing = "writing"


@dataclass(frozen=True, slots=True)
class Description:
    """An event as text. `title` names its kind, `line` summarises its content, `live` is the progress line and may
    be empty."""

    title: str
    family: Family
    line: str
    live: str


# What a request is for, by its prompt.
PURPOSES: Mapping[str, str] = {
    "recap": "sum up the oldest turns",
    "standalone": "understand the turn",
    "route": "choose how to answer",
    "plan": "plan the searches",
    "decide": "choose the next searches",
    "rerank": "rank what was found",
    "weigh": "weigh what was found",
    "judge": "judge whether there is enough",
    "write": "write the answer",
    "direct": "answer without documents",
    "rework": "rework the last answer",
    "check": "check the claims",
    "revise": "put claims right",
    "compare": "compare documents",
    "summarise": "sum up what was found",
    "entities": "list names in what was found",
}
ALSO = {"route": ('"steps"', "plan the searches"), "weigh": ('"enough"', "judge whether there is enough")}


def _purpose(event: events.ModelReplied) -> str:
    """What a request was for; one reply may serve two ends."""
    prompt = event.prompt or event.role
    words = PURPOSES.get(prompt, "")
    field, more = ALSO.get(prompt, ("", ""))
    both = f"{words} and {more}" if field and field in event.text else words
    asked = event.role if prompt == event.role else f"{event.role}/{prompt}"
    return f"{asked}: {both}" if both else asked


MOST_DOCUMENTS = 3  # whose pages a line names
NO_PAGES: Mapping[str, int] = {}

TITLES: Mapping[Family, Mapping[type, str]] = {
    Family.course: {
        events.Asked: "Question",
        events.HistorySummarised: "Earlier turns",
        events.Rephrased: "Understood as",
        events.Routed: "Route",
        events.Planned: "Plan",
        events.Stopped: "Stopped",
        events.Paused: "Waits",
        events.Resumed: "Carried on",
        events.AwaitingReview: "Awaiting review",
        events.Reviewed: "Review",
        events.Narrowed: "Taken back",
        events.Failed: "Failed",
        events.Erased: "Erased",
        events.Granted: "Access",
        events.AccountChanged: "Account",
        events.SettingChanged: "Setting",
        events.FeedbackGiven: "Feedback",
        events.DocumentEdited: "Document",
        events.DocumentMarked: "Document",
        events.Withheld: "Not shown",
    },
    Family.models: {events.ModelReplied: "Model"},
    Family.searches: {events.Decided: "Next step", events.ToolRan: "Result", events.PassagesChosen: "Search"},
    Family.evidence: {
        events.Gathered: "Weighed",
        events.Judged: "Enough?",
        events.StepAnswered: "Found",
        events.Compacted: "Summarised",
        events.Described: "Document",
        events.Questioned: "Questions",
        events.Merged: "Merged",
        events.Covered: "Coverage",
        events.InsightsDrawn: "Insights",
        events.Paired: "Pairs",
        events.Related: "Relations",
        events.SpineWritten: "Thread",
    },
    Family.writing: {
        events.Claimed: "Claim",
        events.Drafted: "Draft",
        events.Checked: "Check",
        events.Revised: "Revised",
        events.Critiqued: "Critique",
        events.Translated: "Retold",
        events.Answered: "Answer",
    },
}
_KINDS = {kind: (title, family) for family, titles in TITLES.items() for kind, title in titles.items()}


def describe(event: Event, pages: Mapping[str, int] = NO_PAGES) -> Description:
    """The description of an event, used by the command line, the stream and the web page. `pages` are those of the
    quotations, by the keys of the evidence."""
    title, family = _KINDS[type(event)]
    return Description(title, family, record_line(event, pages), live_line(event, pages))


def live_line(event: Event, pages: Mapping[str, int] = NO_PAGES) -> str:
    """The progress line of an event. Empty for most events."""
    match event:
        case events.Rephrased():
            return f"Understood as: {understood_as(event)}"
        case events.Routed(route=route, why=why, by=by) if by != RULES:
            return f"Route: {route}{f' ({why})' if why else ''}."
        case events.Routed(since=since, until=until) if since or until:
            return f"No documents dated outside {since or '…'} to {until or '…'}."
        case events.Planned(plan=plan, by=by) if by != RULES:
            return "\n".join(["Plan:", *(f"  {step.id} {step.question}" for step in plan.steps)])
        case events.Decided(recalls=True):
            return "Looking at what earlier turns found"
        case events.Decided(calls=calls):
            return "\n".join(map(_starting, calls))
        case events.ToolRan(error=error) if error:
            return f"  refused: {error}"
        case events.Gathered(evidence=evidence) if evidence or not event.skipped:
            where = pages_in_words(evidence, pages)
            return f"  {count_of(len(evidence), 'passage')} weighed as evidence{f': {where}' if where else ''}"
        case events.StepAnswered(step=step, value=value):
            return f"  {step} found: {value}"
        case events.Judged(enough=False, missing=missing) if missing:
            return f"  still missing: {'; '.join(missing)}"
        case events.Stopped(reason=reason, why=why):
            return f"Stopped: {reason}{f' ({why})' if why else ''}."
        case events.Checked(claim=claim) if claim.text:
            return f"  {verdict_word(claim)}: {claim.words}"
        case events.Withheld(progress=progress):
            return progress
        case events.Critiqued(complete=False, final=False, gap=gap):
            return f"Something is missing; searching for: {gap}"
        case events.Critiqued(beside=True):
            return "The statements do not answer the question"
        case events.Critiqued(missing=missing) if missing:
            return f"Missing: {'; '.join(missing)}"
        case _:
            return ""


TASKS: Mapping[Task, str] = {
    Task.check: "check the last answer",
    Task.shorten: "make the last answer shorter",
    Task.numbers: "only the figures of the last answer",
    Task.list: "the last answer as a list",
    Task.rewrite: "put the last answer differently",
}


def understood_as(event: events.Rephrased) -> str:
    """What a turn of a conversation was understood as."""
    if event.on is events.Subject.talk:
        return "no question to the documents"
    return f"{TASKS[event.task or Task.rewrite]} ({event.question})" if event.on else event.query or event.question


def understood_turn(asked: str, event: events.Rephrased | None) -> str:
    """The same, for a reader who knows the turn; empty if it was understood as it was said."""
    return understood_as(event) if event and (event.on or event.query or event.question != asked) else ""


def record_line(event: Event, pages: Mapping[str, int] = NO_PAGES) -> str:
    """The content of an event, shortened to one line, and who made it."""
    by = None if isinstance(event, events.Resumed) else getattr(event, "by", None)
    parts = (*_parts(event, pages), "" if by is None else Maker(by, fallbacks(event)).label)
    whole = " ".join(" · ".join(filter(None, parts)).split())
    return whole if len(whole) <= LONGEST else f"{whole[: LONGEST - 1]}…"


def _parts(event: Event, pages: Mapping[str, int]) -> Iterable[str]:
    """What an event says, without its maker; parts may be empty."""
    match event:
        case events.Asked():
            models = ", ".join(sorted({role_model.model for role_model in event.seats})) or "no model"
            if event.branch is not None:
                models = f"{models}, from record {event.branch.at} of {event.branch.run}"
            if event.brief is not None:
                made = f"{event.brief.pipeline} of {count_of(len(event.brief.documents), 'document')}"
                return event.question, made, f"for {', '.join(event.brief.audiences)}", models
            thread = f"thread {event.thread}" if event.thread else ""
            return event.question, thread, f"mode {event.mode}", f"eagerness {event.eagerness}", models
        case events.HistorySummarised():
            return f"{count_of(event.turns, 'turn')} summed up", event.words, event.why
        case events.Rephrased():
            return understood_as(event), event.why
        case events.Routed():
            dates = f"dated {event.since or '…'} to {event.until or '…'}" if event.since or event.until else ""
            kinds = ("a whole set" if event.every else "", f"{len(event.readings)} readings" if event.readings else "")
            return event.route, event.why, dates, *kinds
        case events.ModelReplied():
            asked = _purpose(event)
            cut = "" if event.finish in ("stop", "tool_calls") else f"ended by {event.finish}"
            return asked, event.model, format_usage(event.usage), f"{event.usage.seconds:.1f} s", cut
        case events.Planned():
            return ("; ".join(f"{step.id} {step.question}" for step in event.plan.steps),)
        case events.Decided():
            made = "; ".join(map(format_call, event.calls)) or "nothing left to try"
            if event.recalls:
                made = "recall"  # its passages are described with the result
            refused = f"refused: {'; '.join(event.refused)}" if event.refused else ""
            return made, event.why, refused
        case events.ToolRan():
            left = f"{event.left} more match" if event.left else ""
            count = "" if event.note.startswith(f"{len(event.found)} ") else count_of(len(event.found), "passage")
            undated = f"{count_of(event.undated, 'undated document')} left out" if event.undated else ""
            return event.call, event.error or count, left, event.note, undated
        case events.Gathered():
            others = (
                f"{len(event.dropped)} dropped" if event.dropped else "",
                f"{len(event.skipped)} passed over" if event.skipped else "",
                f"{len(event.inexact)} not quoted exactly" if event.inexact else "",
                f"{flagged} like an instruction" if (flagged := sum(each.flagged for each in event.evidence)) else "",
            )
            best = f"best {max(each.score for each in event.evidence):.1f}" if event.evidence else ""
            where = pages_in_words(event.evidence, pages)
            return event.question, f"{len(event.evidence)} kept", where, best, *others
        case events.Judged():
            lacking = f"missing: {'; '.join(event.missing)}" if event.missing else ""
            surprise = "the plan no longer fits" if event.surprise else ""
            return "enough" if event.enough else "not enough", lacking, surprise, event.why
        case events.StepAnswered():
            return f"{event.step} = {event.value}", f"from {', '.join(event.cites)}" if event.cites else ""
        case events.Compacted():
            return f"{count_of(len(event.calls), 'result')} told in short", event.summary
        case events.Stopped():
            return event.reason, event.why
        case events.Claimed():
            return f"claim {event.place}: {event.claim.words}", "cites a side of a conflict" if event.side else ""
        case events.Drafted():
            claims = sum(len(block.claims) for block in event.blocks)
            return (
                "not from the documents" if event.said else count_of(claims, "claim"),
                event.shape,
                f"missing: {'; '.join(event.missing)}" if event.missing else "",
                f"{count_of(len(event.stray), 'invented key')} removed" if event.stray else "",
                count_of(len(event.conflicts), "conflict") if event.conflicts else "",
            )
        case events.Checked():
            return f"claim {event.place}: {verdict_word(event.claim)}", event.claim.words, event.claim.why
        case events.Revised():
            return f"claim {event.place}: {event.claim.words if event.claim else 'dropped'}", event.why
        case events.Critiqued():
            reopens = not event.complete and not event.final
            short = "beside the point" if event.beside else f"gap: {event.gap}" if reopens else "incomplete"
            missing = f"missing: {'; '.join(event.missing)}" if event.missing else ""
            return "complete" if event.complete else short, missing, event.why
        case events.Paused():
            return event.at, event.question, " / ".join(event.options)
        case events.Resumed():
            return event.choice or "carried on after a failure", event.words, f"by {event.by}" if event.by else ""
        case events.Answered():
            answer = event.answer
            return answer.outcome, count_of(len(answer.claims), "claim"), count_of(len(answer.cited_keys), "citation")
        case events.Failed():
            return event.error, event.detail
        case events.AwaitingReview():
            return "waits for a reviewer", "; ".join(event.reasons), event.seal[:12]
        case events.Reviewed():
            changed = count_of(len(event.edits), "claim") if event.edits else ""
            return event.decision, changed, event.note, event.seal[:12]
        case events.Erased():
            gone = sum(len(each) for each in event.records.values())
            return count_of(gone, "record"), count_of(len(event.gone), "document"), event.why
        case events.Granted():
            return (f"{event.name} may {'' if event.may else 'not '}read {event.what}",)
        case events.AccountChanged():
            return f"{event.name}: {event.change}", event.detail
        case events.SettingChanged():
            return (f"{event.name}: {event.before or 'empty'} → {event.after or 'empty'}",)
        case events.FeedbackGiven():
            which = "the answer" if event.claim is None else f"statement {event.claim + 1}"
            return f"{which} of run {event.run}: {event.kind}", event.words
        case events.DocumentEdited():
            return f"{event.what} is called {event.title}", event.date
        case events.DocumentMarked():
            switched = f"{event.what} is {'off' if event.off else 'on'}"
            return switched, f"tags: {', '.join(event.tags)}" if event.tags else "no tags"
        case events.Narrowed():
            return f"what was done since record {event.since} is put aside", event.why
        case events.Withheld():
            return f"{event.kind} is not shown", event.progress, event.why
        case _:
            return _synthesis_parts(event)


def _synthesis_parts(event: SynthesisEvent) -> Iterable[str]:
    match event:
        case events.Described(portrait=portrait):
            abstract = "no abstract: made of its own sentences" if portrait.made else ""
            known = (", ".join(portrait.authors), portrait.year, abstract, portrait.empty)
            return portrait.doc_id, portrait.title, *known, portrait.by
        case events.Questioned():
            return event.doc_id or "all documents", *pass_note(event.pass_), "; ".join(event.questions)
        case events.Merged(questions=questions):
            asked = "; ".join(f"{each.id} {each.text}" for each in questions)
            return count_of(len(questions), "question"), *pass_note(event.pass_), asked
        case events.PassagesChosen():
            others = ", ".join(event.others)
            verb = "read" if event.document else "chosen"
            selected = f"{len(event.found)} of {count_of(event.considered, 'passage')} {verb}"
            return event.question or event.document, selected, f"compared with {others}" if others else ""
        case events.Covered(rows=rows, thin=thin):
            found = f"{sum(row.evidence > 0 for row in rows)} of {count_of(len(rows), 'document')} with evidence"
            return found, *pass_note(event.pass_), f"{len(thin)} asked about again" if thin else ""
        case events.InsightsDrawn():
            missing = f"{len(event.missing)} quoted instead" if event.missing else ""
            of = event.question or event.doc_id
            return of, count_of(len(event.insights), "insight"), missing
        case events.Paired():
            left = f"{event.left:,} left out" if event.left else ""
            return f"{count_of(len(event.pairs), 'pair')} compared" if event.pairs else "", left, event.how
        case events.Related():
            types = ", ".join(f"{each.left.doc_id} {each.type} {each.right.doc_id}" for each in event.relations)
            dropped = f"{len(event.dropped)} dropped" if event.dropped else ""
            found = f"block {event.block}: {count_of(len(event.relations), 'relation')}"
            return found, types, dropped
        case events.SpineWritten():
            themes = count_of(len(event.themes), "theme") if len(event.themes) > 1 else ""
            told = (
                count_of(len(event.spine), "sentence")
                if event.spine or not any(t.insights for t in event.themes)
                else ""
            )
            return event.theme, told, themes
        case events.Translated(translation=done):
            grade = f"grade {done.before.grade:.0f} before, {done.after.grade:.0f} after"
            return f"for {done.audience}", count_of(len(done.paragraphs), "paragraph"), grade, done.by


def pass_note(pass_: int) -> tuple[str, ...]:
    """The number of the pass, unless it is the first."""
    return (f"pass {pass_}",) if pass_ > 1 else ()


def _starting(call: Call) -> str:
    """The line for a call that is about to start."""
    if call.query:
        return f"Searching: {call.query}"
    return f"Following: {call.arguments['name']}" if "name" in call.arguments else call_in_words(call)


# Calls whose arguments are places and ids.
IN_WORDS = {"read_rows": "Reading rows of a table", "catalogue": "Looking through the catalogue"}


def call_in_words(call: Call) -> str:
    """A call for someone who watches; in readable form if there are no words for it."""
    return IN_WORDS.get(call.tool) or format_call(call)


def format_call(call: Call) -> str:
    """A call in readable form."""
    given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items() if name not in ("k", "passage"))
    return f"{call.tool}({given})"


def verdict_word(claim: Claim) -> str:
    return claim.verdict or Verdict.uncited


def format_usage(usage: Usage) -> str:
    """Tokens, and the cost if a price is known: `812 + 90 tokens · $0.0012`."""
    money = f" · {format_money(usage.money)}" if usage.money else ""
    return f"{usage.tokens_in:,} + {usage.tokens_out:,} tokens{money}"


def format_money(money: float) -> str:
    return f"${money:.2f}" if money >= 1 else f"${money:.4f}"


def pages_in_words(evidence: Sequence[Evidence], pages: Mapping[str, int]) -> str:
    """Where quotations stand: `pages 4 and 7 of one document, page 2 of another`. Empty if no page is known."""
    by_document: dict[str, set[int]] = {}
    for each in evidence:
        if each.key in pages:
            by_document.setdefault(each.quote.doc_id, set()).add(pages[each.key])
    numbers = [_page_numbers(sorted(each)) for each in by_document.values()]
    if len(numbers) < 2:
        return "".join(numbers)
    more = [f"and of {count_of(rest, 'more document')}"] if (rest := len(numbers) - MOST_DOCUMENTS) > 0 else []
    first, *others = numbers[:MOST_DOCUMENTS]
    return ", ".join([f"{first} of one document", *(f"{each} of another" for each in others), *more])


def _page_numbers(numbers: Sequence[int]) -> str:
    *before, last = map(str, numbers)
    return f"pages {', '.join(before)} and {last}" if before else f"page {last}"


def count_of(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
