"""Decides what to search for next. Ready steps of the plan are searched as planned; for what is then still missing a
model chooses tools, and for claims that failed their check support is sought once. A call that repeats an earlier
one is skipped."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from assay.agent import prompt_window
from assay.agent.context import Limits, RunContext
from assay.agent.near import FIRST_SEARCH
from assay.agent.steps.read_evidence import build_calls, past_searches
from assay.agent.tool import checked, schema_of
from assay.agent.toolbox.collection import catalogue
from assay.agent.toolbox.collection import parse as parse_catalogue
from assay.agent.toolbox.reading import read_rest, read_rows
from assay.agent.toolbox.search import recall, search, search_all
from assay.answer import revise as revising
from assay.answer.checking.judge import unchanged_evidence
from assay.core.errors import ToolError
from assay.core.events import (
    RULES,
    WHOLE,
    Call,
    Decided,
    Event,
    Found,
    Gathered,
    Judged,
    Mode,
    Revised,
    RevisionCause,
    Route,
    StopReason,
)
from assay.core.events.describe import format_call
from assay.core.run import Run
from assay.core.types import Claim, Document
from assay.index import hop_ranking as rules
from assay.index.hop_ranking import Lead
from assay.language.dates import with_weekday
from assay.language.terms import content_terms, fold_case
from assay.models.ask import ToolChoice, choose
from assay.models.meter import NoReply
from assay.tables.lookup import look_up

WIDTH = 20  # passages of searches after the first, which is also a sample of word frequencies
SINGLE = (Route.lookup, Route.one_shot)  # routes with one search
AT_ONCE = 6  # calls per round, at most
MATCHES = 5  # score of evidence whose document belongs to a set
TABLED = 8  # documents whose tables are read
FEWER = "; more passages were asked for than one call gives"


def decide(run: Run, context: RunContext) -> AsyncIterator[Event]:
    return decide_by_model(run, context) if run.asked.has_model else decide_by_rule(run, context)


async def decide_by_model(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """The next calls of a run that has a model: those planned, those that the judge of the evidence proposes, and only then
    those that a model chooses among all tools."""
    if planned := planned_calls(run):
        yield Decided(planned, "as planned")
        return
    if proposed := proposed_calls(run):
        yield Decided(proposed, "searched for what is missing")
        return
    reply = await _request_choice(run, context)
    if isinstance(reply, NoReply):
        yield Decided((), reply.detail, stop=StopReason(reply.why.value), fallback=(reply.why,))
        return
    choice, by = reply
    known = [(name, given) for name, given in choice.calls if name in context.tools]
    wanted = [(name, checked(context.tools[name], given)) for name, given in known]
    calls, refused = _new(run, wanted)
    if not calls and not run.calls:
        first = Call("c1", "search", {"query": run.query, "k": FIRST_SEARCH})  # no answer without at least one search
        yield Decided((first,), "nothing was searched yet: the question in its own words", RULES, refused=refused)
        return
    if calls:
        fewer = any(given.get("k") != own.get("k") for (_, given), (_, own) in zip(known, wanted, strict=True))
        why = (choice.why.strip() or "as the model chose") + (FEWER if fewer else "")
        yield Decided(calls, why, by, refused=refused)
    elif refused:
        yield Decided((), f"repeated: {'; '.join(refused)}", by, refused=refused, stop=StopReason.repeated)
    else:
        why = choice.why.strip() or "nothing left worth trying"
        yield Decided((), why, by, stop=StopReason.nothing_new)


def planned_calls(run: Run) -> tuple[Call, ...]:
    """Parallel searches: one for each ready step not searched yet, and one for the reason the search was reopened."""
    wanted = step_searches(run)
    if again := prompt_window.reopening_request(run):
        wanted.insert(0, {"query": again})
    if run.every:
        return _calls_for_set(run, wanted)
    if not run.rounds:
        wanted = wanted[:1] if run.route in SINGLE else [*wanted, {"query": run.query}]
    first = not any("query" in call.arguments and call.tool != recall.name for call in run.calls)
    widths = [FIRST_SEARCH if first and place == 0 else WIDTH for place, _ in enumerate(wanted)]
    calls, _ = _new(run, [("search", {**given, "k": k}) for given, k in zip(wanted, widths, strict=True)])
    return calls


def proposed_calls(run: Run) -> tuple[Call, ...]:
    """The searches that the last judgement of the evidence proposes, unless they were made before."""
    judged = run.judged
    tool = search_all.name if run.every else search.name
    width = {} if run.every else {"k": WIDTH}
    return _new(run, [(tool, {"query": each, **width}) for each in (judged.searches if judged else ())])[0]


def step_searches(run: Run) -> list[dict[str, str | bool]]:
    """The arguments of a search for each ready step of the plan whose query is complete. A step's dates leave documents
    without a date in."""
    searches: list[dict[str, str | bool]] = []
    for step in prompt_window.ready_steps(run):
        query = prompt_window.fill_placeholders(step.query or step.question, run)
        dated = {name: day for name, day in (("since", step.since), ("until", step.until)) if day}
        if content_terms(query) and not prompt_window.PLACEHOLDER.search(query):
            searches.append({"query": query, **dated, **({"undated": True} if dated else {})})
    return searches


def _calls_for_set(run: Run, wanted: Sequence[Mapping[str, str | bool]]) -> tuple[Call, ...]:
    """Exhaustive searches for what is wanted; then the documents with evidence are read to their end."""
    if not run.rounds:
        wanted = wanted or [{"query": run.query}]
    calls, _ = _new(run, [(search_all.name, given) for given in wanted])
    reads = [(read_rest.name, {"document": each}) for each in matching_unread(run)]
    return calls or _new(run, reads)[0]


def matching_unread(run: Run) -> tuple[str, ...]:
    """For a question about a whole set: the documents to be read to their end that were not tried. A judge names them;
    without its word, all that have good evidence."""
    if not run.every:
        return ()
    judged = next((event for event in reversed(run.events) if isinstance(event, Judged) and event.by != RULES), None)
    matching = (each.passage.doc_id for each in run.evidence if each.score >= MATCHES)
    return tuple(each for each in dict.fromkeys(judged.read if judged else matching) if each not in tried_to_read(run))


def tried_to_read(run: Run) -> frozenset[str]:
    return frozenset(str(call.arguments.get("document")) for call in run.calls if call.tool == read_rest.name)


async def _request_choice(run: Run, context: RunContext) -> tuple[ToolChoice, str] | NoReply:
    titles = context.dated_titles(run)
    known = {found.passage.doc_id for found in run.found}

    def build_prompt(room: int) -> Mapping[str, str]:
        left = max(1, context.limits.rounds_for(run) - run.rounds)
        fixed = {
            "bases": prompt_window.render_bases(run),
            "question": run.question,
            "today": with_weekday(run.asked.today),
            "steps": prompt_window.render_steps(run),
            "missing": prompt_window.render_missing(run),
            "left": f"{left} more round{'s' if left > 1 else ''} of calls can be made.",
        }
        rest = max(100, room - sum(prompt_window.estimate_tokens(each) for each in fixed.values()) - 40)
        return fixed | {
            "evidence": prompt_window.render_evidence(run, titles, rest * 2 // 3),
            "searched": prompt_window.render_searches(run, rest // 3),
        }

    def wrong(choice: ToolChoice) -> str:
        """The exact error of the first invalid call."""
        for name, given in choice.calls:
            tool = context.tools.get(name)
            try:
                if tool is None:
                    raise ToolError(f"There is no tool called {name!r}. There are: {', '.join(sorted(context.tools))}.")
                checked(tool, given)
            except ToolError as error:
                return str(error)
        return ""

    assert context.meter is not None
    tools = [schema_of(tool) for tool in context.tools.values()]
    return await choose(
        context.meter, "decide", build_prompt, tools, check=wrong, documents=sorted(known), max_tokens=400
    )


def _new(run: Run, wanted: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[tuple[Call, ...], tuple[str, ...]]:
    """The new calls, numbered, and descriptions of the repeated ones."""
    calls: list[Call] = []
    refused: list[str] = []
    for name, given in wanted:
        # Arguments are sorted as in the record: the next prompt must be identical after a restart.
        call = Call(f"c{len(run.calls) + len(calls) + 1}", name, dict(sorted(given.items())))
        if len(calls) >= AT_ONCE:
            refused.append(f"{format_call(call)} was one call too many")
        elif same := next((each for each in (*run.calls, *calls) if same_call(each, call)), None):
            refused.append(f"{format_call(call)} was made before as {same.id}")
        else:
            calls.append(call)
    return tuple(calls), tuple(refused)


def same_call(one: Call, other: Call) -> bool:
    """Whether two calls are equal up to order and form of their words. The number of passages requested is ignored: a
    search that found nothing among eight finds nothing among nine."""
    return _call_key(one) == _call_key(other)


def _call_key(call: Call) -> tuple[str, frozenset[str], str]:
    free = {name: value for name, value in call.arguments.items() if name != "k"}
    query = str(free.pop("query", ""))
    terms = frozenset(content_terms(query)) - {"s"} or frozenset({fold_case(query)})  # "the site's" is "of the site"
    return call.tool, terms, json.dumps(free, sort_keys=True)


COMPUTED = {
    catalogue.name: "the question is about the collection",
    read_rows.name: "a table answers it",
    "answer": "what was asked for was looked up",
}


def computed_call(run: Run, context: RunContext) -> Call | None:
    """The call for a question that the catalogue or a table answers: the catalogue before anything is searched, tables
    once, in the documents that the first search found."""
    number = f"c{len(run.calls) + 1}"
    used = {call.tool for call in run.calls}
    if not used and parse_catalogue(run.question):
        return Call(number, catalogue.name, {"question": run.question})
    if used <= {catalogue.name} or read_rows.name in used or computes(run):
        return None
    found = look_up(run.question, table_documents(run.found, context)) if run.rounds <= len(used) else None
    if found is None:
        return None
    rows = " ".join(f"{row.start}-{row.end}" for row in found.rows)
    return Call(number, read_rows.name, {"document": found.document, "rows": rows})


def table_documents(found: Sequence[Found], context: RunContext) -> list[Document]:
    """The documents of the best passages found, best first."""
    ids = dict.fromkeys(each.passage.doc_id for each in sorted(found, key=lambda each: each.rank))
    documents = (context.document(each) for each in list(ids)[:TABLED])
    return [each for each in documents if each is not None]


def computes(run: Run) -> Call | None:
    """The call that found what an answer is computed from."""
    tools = {catalogue.name, read_rows.name}
    return next(
        (call for call in run.calls if call.tool in tools and call.id in run.results and run.results[call.id].found),
        None,
    )


async def decide_by_rule(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """First the question verbatim, then the most promising names; otherwise the reason why nothing is worth trying."""
    again = prompt_window.reopening_request(run)
    if again and again not in {str(call.arguments.get("query")) for call in run.calls}:
        yield Decided(build_calls(run, [Lead(again, "", context.hops.width)]), "what the search was opened again for")
        return
    if call := computed_call(run, context):
        yield Decided((call,), COMPUTED[call.tool])
        return
    if computes(run):
        yield Decided((), COMPUTED["answer"], stop=StopReason.sufficient)
        return
    done = await past_searches(run, context, include_recall=False)
    if not done and any("query" in call.arguments and call.tool != recall.name for call in run.calls):
        # Every call was refused: there are no results to continue from.
        yield Decided((), "nothing new", stop=StopReason.nothing_new)
        return
    if done and run.route in SINGLE:
        yield Decided((), "one search was asked for", stop=StopReason.searches)
        return
    following = rules.next_searches(run.query, done, context.hops)
    why = "; ".join(lead.reason for lead in following.leads) or following.why
    yield Decided(build_calls(run, following.leads), why, stop=following.stop)


async def compact(run: Run, context: RunContext) -> AsyncIterator[Event]:
    event = prompt_window.compaction_due(run, context.limits.room)
    assert event is not None
    yield event


RECITED = "cited anew, since other evidence says it"


def reopen_due(run: Run, limits: Limits) -> bool:
    """Whether something is missing that a search could find: once per run, if the limits allow it, and unless the person
    asked for one search only."""
    by_router = run.route is Route.lookup and run.asked.route is None
    open_ = run.reopened is None and limits.reached(run) is None
    if by_router and _found_nothing(run):
        return open_
    judgement = run.judgement
    return (
        judgement is not None
        and bool(judgement.missing)
        and bool(judgement.gap)
        and run.asked.mode is not Mode.quick
        and (run.route is Route.research or by_router)
        and open_
    )


def _found_nothing(run: Run) -> bool:
    """Whether the writer found no answer in what was looked up."""
    draft = run.draft
    return draft is not None and draft.by != RULES and not draft.blocks


def found_since_draft(run: Run) -> bool:
    """Whether a search for what the draft lacks brought evidence: otherwise another draft would say the same."""
    return any(isinstance(event, Gathered) and event.evidence for event in run.drafting)


async def seek(run: Run, context: RunContext) -> AsyncIterator[Event]:
    """For failed claims: first look for other evidence of this run that they repeat. Then search once for what the judge
    names, or the writer, as support of a claim or as missing."""
    standing = unchanged_evidence(run.evidence, context.document)
    open_: list[tuple[int, Claim]] = []
    for place, claim in run.unsupported:
        if right := revising.correct_citations(claim, standing):
            yield Revised(place, right, f"{RECITED}: {claim.why}", cause=RevisionCause.recited)
        else:
            open_.append((place, claim))
    judgement, draft = run.judgement, run.draft
    lacks = reopen_due(run, context.limits)
    if lacks or (open_ and judgement is not None):
        named = judgement.gap if judgement else next(iter(draft.missing if draft else ()), run.question)
        calls, _ = _new(run, [("search", {"query": named[:300], "k": WIDTH})])
        why = "support of a claim is searched for" if open_ else "what is missing is searched for"
        yield Decided(calls, why, seeks=tuple(place for place, _ in open_) or (WHOLE,))
