"""The judge: the only path by which any claim gets a verdict, in answers, in review and in syntheses.

Code settles wording and arithmetic. A capable model judges every claim that is not a quotation (its prompt, its reply
and what becomes of each claim are here too); it cannot lift what code has refuted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel, Field

from assay import prompts
from assay.answer.checking.claim_rules import UNSEEN, by_rule, cited_texts, unhedged, unsupported
from assay.answer.claims import Disputed, Sources, accept_gap, quotations, read_conflict
from assay.answer.weigh import quote
from assay.core.events import RULES
from assay.core.types import Claim, Conflict, Document, Evidence, Quote, Verdict
from assay.language import facts
from assay.language.dates import with_weekday
from assay.language.glossary import Glossary, describe_measures
from assay.language.injection import is_suspicious, note_taint
from assay.language.quotation import lies_in, locate_quote, stands, within
from assay.models.cost import estimate_tokens, fit_to_tokens
from assay.models.llm import Role, ShownPicture
from assay.models.meter import NoReply
from assay.models.replies import list_schema, object_schema
from assay.prompts import fence
from assay.tables import derive
from assay.tables.cells import passage_tables

Documents = Callable[[str], Document | None]
AskModel = Callable[..., Awaitable["tuple[Rulings, str] | NoReply"]]  # `RunContext.ask`


def verify(claim: Claim, evidence: Sequence[Evidence], document: Documents) -> Claim:
    """As `by_rule`, after checking that the documents still contain what is cited. The claim's keys must be evidence of
    this run. A quotation must be in its evidence's passage and in the document at that offset; a written claim must cite
    text the document still contains, and follow from it by rule."""
    cited = {each.key: each for each in evidence if each.key in claim.cites}
    quote = claim.quote
    if not claim.cites:
        return replace(claim, verdict=Verdict.uncited, why="it cites nothing")
    if len(cited) < len(set(claim.cites)):
        return unsupported(claim, "it cites evidence that this run did not gather")
    if claim.derived is not None:
        if wrong := derive.fault(claim, evidence, document):
            return unsupported(claim, wrong)
        return note_taint(supported(claim, "computed by rule from what it cites"), evidence)
    if quote is None:
        if len(unchanged_evidence(tuple(cited.values()), document)) < len(cited):
            return unsupported(claim, "the document does not say what it cites")
        if not all(any(within(words, each.passage) for each in cited.values()) for words in claim.carried_by):
            return unsupported(claim, "it is carried by words that it does not cite")
        return by_rule(claim, evidence, sources_of(tuple(cited.values()), document))
    if not any(lies_in(quote, each.passage) for each in cited.values()):
        return unsupported(claim, "its words are not in the passage it cites")
    source = document(quote.doc_id)
    if source is None or not stands(quote, source):
        return unsupported(claim, "the document does not say this at that place")
    return note_taint(supported(claim, "found word for word in the document"), evidence)


def supported(claim: Claim, why: str) -> Claim:
    return replace(claim, verdict=Verdict.supported, why=why)


def needs_model(claim: Claim) -> bool:
    """Whether a claim judged by rule also goes to a model, if it is capable."""
    own = claim.quote is None and claim.derived is None
    return own and claim.verdict in (Verdict.supported, Verdict.partial)


def without_model(claim: Claim) -> Claim:
    """The verdict on a claim judged by rule that no capable model judges."""
    if claim.verdict is Verdict.partial and claim.edited:  # a person judges, and approves it
        return supported(claim, "a reviewer put it so, and nothing speaks against it")
    return claim


def _unseen(claim: Claim) -> Claim:
    """A claim read from a picture that its judge was not shown. A reviewer's stands: a person approves it."""
    return without_model(claim) if claim.edited else unsupported(claim, UNSEEN)


async def by_model(
    request: JudgeRequest,
    evidence: Sequence[Evidence],
    sources: Sources,
    ask: AskModel,
    *,
    mark: str,
    documents: Sequence[str],
    role: Role = Role.check,
    pictures: Sequence[ShownPicture] = (),
) -> Judgement:
    """A model's judgement, from one request. `mark` fences the passages; `documents` are those whose text is shown.
    Without a reply the claims keep their verdicts. What was read from a picture holds only if its judge was shown it."""
    claims = request.claims
    reply = await ask(
        role,
        "check",
        Rulings,
        lambda room: build_prompt(request, evidence, sources, mark, room, pictures=bool(pictures)),
        schema=schema(len(claims), [each.key for each in evidence] if request.question else ()),
        documents=documents,
        max_tokens=500 + 250 * len(claims),
        **({"pictures": pictures} if pictures else {}),
    )
    if isinstance(reply, NoReply):
        return Judgement(claims, RULES)
    rulings, by = reply
    seen = {each.picture for each in pictures}
    judged = tuple(
        _unseen(claim) if each.figure and each.figure not in seen else each
        for claim, each in zip(claims, read(rulings, request, evidence, sources, by), strict=True)
    )
    return Judgement(
        judged,
        by,
        rulings.answers,
        accept_missing(rulings, request, judged, evidence, sources),
        " ".join(rulings.search.split()),
        tuple(found for each in rulings.conflicts if (found := read_conflict(each, request.question, evidence))),
    )


def unchanged_evidence(evidence: Sequence[Evidence], document: Documents) -> tuple[Evidence, ...]:
    """The evidence that is still readable and unchanged: quotation in passage, passage in document."""

    def as_it_was(each: Evidence) -> bool:
        source = document(each.passage.doc_id)
        passage = each.passage
        return (
            source is not None
            and within(each.quote, passage)
            and stands(each.quote, source)
            and source.text[passage.start : passage.end] == passage.text
        )

    return tuple(each for each in evidence if as_it_was(each))


def sources_of(evidence: Sequence[Evidence], document: Documents) -> Sources:
    """Titles, dates and tables of the documents that the evidence is from."""
    found = {each.passage.doc_id: document(each.passage.doc_id) for each in evidence}
    return Sources(
        {key: each.title for key, each in found.items() if each},
        {key: each.date for key, each in found.items() if each and each.date},
        lambda passage: passage_tables(source, passage) if (source := found.get(passage.doc_id)) else None,
        frozenset(key for key, each in found.items() if each and each.scan),
    )


SEVERITY = (Verdict.contradicted, Verdict.unsupported, Verdict.partial, Verdict.supported)
TOGETHER = 24  # claims per request
PASSAGES = 16_000  # tokens of passages per request
FRAME, CLAIM, RULING = 1600, 80, 200  # tokens of a request without claims, of a claim with its notes, and of its ruling
SHOWN = "the picture shows it"
FOLLOWS, NO_REASON = "it follows from the words shown", "its judge gave no reason"
NO_WORDS = "its judge named no words of what it cites"
DIFFER = "two judgements differ"


class Ruling(BaseModel, extra="forbid"):
    """A verdict on one claim, by its number in the request, and the words that carry it."""

    claim: int
    why: str = ""
    verdict: Literal["supported", "partial", "unsupported", "contradicted"]
    words: list[str] = Field(default_factory=list, max_length=12)


class Rulings(BaseModel, extra="forbid"):
    """The rulings, and a judgement of the claims as an answer: whether they answer the question, what is missing, what to
    search for, if a search could help, and where passages disagree."""

    rulings: list[Ruling]
    answers: bool = True
    missing: list[str] = Field(default_factory=list, max_length=6)
    search: str = ""
    conflicts: list[Disputed] = Field(default_factory=list, max_length=4)


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """Claims to judge, with what their judge is shown beside the evidence."""

    claims: tuple[Claim, ...]
    question: str = ""  # empty: the claims answer no single question
    accepted: tuple[str, ...] = ()  # claims that were judged before and stand
    arguments: Mapping[int, str] = field(default_factory=dict)  # why the writer keeps a claim, by index
    opinions: frozenset[int] = frozenset()  # indexes
    headings: frozenset[int] = frozenset()  # indexes
    today: str = ""
    glossary: Glossary | None = None
    read_whole: tuple[str, ...] = ()  # titles of documents that were read to their end, for a question about a set
    accepted_cites: frozenset[str] = frozenset()  # what the accepted claims cite, which others may contradict
    searched: str = ""  # what was searched for
    columns: Mapping[int, str] = field(default_factory=dict)  # of the table that a claim is a row of, by index


@dataclass(frozen=True, slots=True)
class Judgement:
    """The claims with their verdicts, and the judgement of the whole."""

    claims: tuple[Claim, ...]
    by: str
    answers: bool = True
    missing: tuple[str, ...] = ()
    search: str = ""
    conflicts: tuple[Conflict, ...] = ()


def batches(claims: Sequence[Claim], evidence: Sequence[Evidence], window: int) -> list[range]:
    """The claims in as few requests as show every cited passage whole, by index. A window is shared by the passages, the
    claims and their rulings."""
    costs = {each.key: estimate_tokens(each.passage.text) + 40 for each in evidence}
    found: list[range] = []
    shown: set[str] = set()
    claim_tokens = 0
    for index, claim in enumerate(claims):
        wider, own = shown | set(claim.cites), estimate_tokens(claim.text) + CLAIM + RULING
        passages = sum(costs.get(key, 0) for key in wider)
        fits = passages <= PASSAGES and passages + claim_tokens + own <= window - FRAME
        if found and fits and len(found[-1]) < TOGETHER:
            found[-1] = range(found[-1].start, index + 1)
            shown, claim_tokens = wider, claim_tokens + own
        else:
            found.append(range(index, index + 1))
            shown, claim_tokens = set(claim.cites), own
    return found


def schema(count: int, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON schema of a reply about `count` claims; with `keys` also about the claims as an answer."""
    ruling = object_schema(
        claim={"type": "integer", "enum": list(range(1, count + 1))},
        words={"type": "array", "items": {"type": "string"}, "maxItems": 12},
        why={"type": "string"},
        verdict={"type": "string", "enum": [each.value for each in reversed(SEVERITY)]},
    )
    key = {"type": "string", "enum": list(keys)}
    disputed = object_schema(left=key, right=key, about={"type": "string"})
    whole = {
        "answers": {"type": "boolean"},
        "missing": {"type": "array", "items": {"type": "string"}, "maxItems": 6},
        "search": {"type": "string"},
        "conflicts": list_schema(disputed, 0, 4),
    }
    return object_schema(rulings=list_schema(ruling, count, count), **(whole if keys else {}))


def build_prompt(
    request: JudgeRequest,
    evidence: Sequence[Evidence],
    sources: Sources,
    mark: str,
    room: int,
    *,
    pictures: bool = False,
) -> dict[str, str]:
    """The values of the prompt `check`, in at most `room` tokens: every cited passage once, then the claims."""
    lines = [_claim_lines(number, request) for number in range(1, len(request.claims) + 1)]
    listed = fence(mark, "claims", "\n".join(lines))
    whole = _whole(request, mark, room // 6) if request.question else ""
    left = room - estimate_tokens(listed) - estimate_tokens(whole) - 8
    keys = {key for claim in request.claims for key in claim.cites}
    cited = [each for each in evidence if each.key in keys]
    beside = [each for each in evidence if each.key in request.accepted_cites - keys]
    about = f"{prompts.template('check_pictures')}\n" if pictures else ""
    shown = about + quotations([*cited, *beside], sources, mark, max(left - estimate_tokens(about), 0))
    return {"evidence": shown, "claims": listed, "whole": whole, "count": str(len(request.claims))}


def _whole(request: JudgeRequest, mark: str, room: int) -> str:
    """What is asked about the claims as an answer."""
    accepted = ""
    if request.accepted:
        before = "\n".join(f"- {_flat(each)}" for each in request.accepted)
        accepted = f"Claims already found to be supported:\n{fence(mark, 'accepted', fit_to_tokens(before, room))}\n"
    if request.read_whole:
        titles = fit_to_tokens("\n".join(f"- {_flat(each)}" for each in request.read_whole), room)
        accepted += f"Read to their end, so nothing of them is missing:\n{fence(mark, 'documents', titles)}\n"
    question = fit_to_tokens(_flat(request.question), max(room, 32))
    accepted += f"{request.searched}\n" if request.searched else ""
    return prompts.render("check_answer", question=question, accepted=accepted, today=with_weekday(request.today))


def _claim_lines(number: int, request: JudgeRequest) -> str:
    """A claim on a line of its own, so that its text cannot look like another claim, and notes below it."""
    claim = request.claims[number - 1]
    label = "heading, " if number - 1 in request.headings else "opinion, " if number - 1 in request.opinions else ""
    lines = [f"Claim {number} ({label}cites {', '.join(claim.cites)}): {_flat(unhedged(claim.text))}"]
    lines += [f"  a row under: {_flat(names)}"] if (names := request.columns.get(number - 1)) else []
    if work := claim.working:
        read = "; ".join(f"“{_flat(each.words)}” from {each.cite}" for each in work.operands)
        checked = f"not checked by code, since {_flat(work.unproven)}" if work.unproven else "computed by code"
        lines.append(f"  {checked}: {_flat(work.expression)} = {_flat(work.result)} {work.unit}, with {read}")
        if request.glossary and (defined := describe_measures(claim.text, request.glossary)):
            lines.append(f"  usual definition, unless the question gives its own: {defined}")
    lines += [f"  read from a picture: {_flat(claim.figure.place)}"] if claim.figure else []
    lines += [f"  cell, read by code: {_flat(each.found.line)}" for each in claim.cells if each.found]
    if argument := request.arguments.get(number - 1):
        lines.append(f"  the writer's argument: {_flat(argument)}")
    return "\n".join(lines)


def _flat(words: str) -> str:
    return " ".join(words.split())


def read(
    reply: Rulings, request: JudgeRequest, evidence: Sequence[Evidence], sources: Sources, by: str
) -> tuple[Claim, ...]:
    """The claims with the model's verdicts. A missing ruling counts against the claim; of two rulings on one claim the
    worse one counts."""
    found: dict[int, Ruling] = {}
    for ruling in reply.rulings:
        before = found.get(ruling.claim)
        if before is None or SEVERITY.index(Verdict(ruling.verdict)) < SEVERITY.index(Verdict(before.verdict)):
            found[ruling.claim] = ruling
    none = Ruling(claim=0, why="no verdict was given", verdict="unsupported")
    return tuple(
        combine(claim, found.get(number, none), evidence, sources, by, heading=number - 1 in request.headings)
        for number, claim in enumerate(request.claims, 1)
    )


def combine(
    claim: Claim, ruling: Ruling, evidence: Sequence[Evidence], sources: Sources, by: str, *, heading: bool = False
) -> Claim:
    """The claim with a model's verdict. It cannot lift a claim that failed by rule, and must name words of what the
    claim cites; these become its citation. A heading may only name a topic: it needs none."""
    if claim.verdict not in (Verdict.supported, Verdict.partial):
        return claim
    verdict = Verdict(ruling.verdict)
    if verdict is Verdict.partial and claim.text != unhedged(claim.text):
        verdict = Verdict.supported  # a hedged claim says no more than that
    reason = _flat(ruling.why)[:300] or (FOLLOWS if verdict is Verdict.supported else NO_REASON)
    judged = note_taint(replace(claim, verdict=verdict, why=reason, by=by), evidence)  # no model removes the taint
    if verdict is not Verdict.supported:
        return judged
    cited = [each for each in evidence if each.key in claim.cites]
    known = "\n".join((claim.text, *cited_texts(cited, sources).values()))
    if is_suspicious(reason) or facts.missing_facts(reason, known, facts.lowercase_stems(known)):
        judged = replace(
            judged, why=SHOWN if claim.figure else FOLLOWS
        )  # the reader sees it, and nobody has checked what it names
    carried = carrying_words(ruling.words, cited)
    if not carried and not heading and not claim.figure and not _in_labels(ruling.words, cited, sources):
        return replace(judged, verdict=Verdict.partial, why=NO_WORDS)
    return _narrowed(replace(judged, carried_by=tuple(each for _, each in carried)), carried, evidence, sources)


def carrying_words(words: Sequence[str], cited: Sequence[Evidence]) -> list[tuple[str, Quote]]:
    """The words that occur in the cited passages, as quotations, each with the key of its evidence."""
    found: dict[Quote, str] = {}
    for each in words:
        for evidence in cited:
            if span := locate_quote(each, evidence.passage.text):
                found.setdefault(quote(evidence.passage, *span), evidence.key)
                break
    return [(key, own) for own, key in found.items()]


def _in_labels(words: Sequence[str], cited: Sequence[Evidence], sources: Sources) -> bool:
    """Whether words are in the titles, dates or headers that are shown with the passages."""
    return any(locate_quote(each, text) for each in words for text in cited_texts(cited, sources).values())


def _narrowed(
    claim: Claim, carried: Sequence[tuple[str, Quote]], evidence: Sequence[Evidence], sources: Sources
) -> Claim:
    """The claim without citations that carry nothing, unless it would lack something without them."""
    needed = {key for key, _ in carried} | {each.cite for each in (claim.working.operands if claim.working else ())}
    fewer = replace(claim, cites=tuple(key for key in claim.cites if key in needed))
    if not fewer.cites or fewer.cites == claim.cites:
        return claim
    again = by_rule(fewer, evidence, sources)
    return fewer if again.verdict in (Verdict.supported, Verdict.partial) else claim


def accept_missing(
    reply: Rulings, request: JudgeRequest, judged: Sequence[Claim], evidence: Sequence[Evidence], sources: Sources
) -> tuple[str, ...]:
    """What is missing, in the judge's words. A clause that names what is neither in the question nor in the documents found
    nor in a claim that holds is replaced by the question's own words: nothing may be stated here unchecked."""
    held = (*request.accepted, *(claim.text for claim in judged if claim.verdict is Verdict.supported))
    texts = (*sources.titles.values(), *cited_texts(evidence, sources).values())
    known = "\n".join((request.question, *held, *texts))
    keys = {each.key for each in evidence}
    gaps = (accept_gap(each, known, keys) for each in reply.missing if each.strip())
    return tuple(dict.fromkeys(gap or _flat(request.question) for gap in gaps))


def agree(first: Claim, second: Claim, *, mark: bool) -> Claim:
    """Two judgements of one claim as one. If they differ, the worse one counts, or the claim is marked."""
    if first.verdict is second.verdict:
        return first
    worse = min(first, second, key=lambda each: SEVERITY.index(each.verdict or Verdict.unsupported))
    better = second if worse is first else first
    if mark and better.verdict is Verdict.supported:
        return replace(better, disputed=True, objection=worse.why)
    return replace(worse, why=f"{DIFFER}: {worse.why}", carried_by=())
