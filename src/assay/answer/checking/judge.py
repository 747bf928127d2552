"""The judge: the only path by which any claim gets a verdict, in answers, in review and in syntheses.

Code settles wording and arithmetic. A capable model judges every claim that is not a quotation; it cannot lift what code
has refuted. An alternative judge replaces `CodeThenModel` and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from assay.answer.checking import claim_rules, model_rulings
from assay.answer.checking.model_rulings import Judgement, JudgeRequest
from assay.answer.evidence_text import Sources
from assay.core.events import RULES
from assay.core.types import Claim, Document, Evidence, Verdict
from assay.language.injection import note_taint
from assay.language.quotation import lies_in, stands, within
from assay.models.llm import Role
from assay.models.meter import NoReply
from assay.tables import derive

Documents = Callable[[str], Document | None]


class AskModel(Protocol):
    """Sends a prompt to the model of a role and parses the reply as a given type: `RunContext.ask`."""

    def __call__(
        self,
        role: Role,
        name: str,
        kind: type[model_rulings.Rulings],
        build_prompt: Callable[[int], Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        documents: Sequence[str] = (),
        max_tokens: int = 1024,
    ) -> Awaitable[tuple[model_rulings.Rulings, str] | NoReply]: ...


class Judge(Protocol):
    """Gives claims their verdicts. `evidence` is everything the run has; a claim is judged by the part it cites."""

    def by_rule(self, claim: Claim, evidence: Sequence[Evidence], sources: Sources | None = None) -> Claim:
        """The claim with the rules' verdict and reason. Pure."""
        ...

    def verify(self, claim: Claim, evidence: Sequence[Evidence], document: Documents) -> Claim:
        """As `by_rule`, after checking that the documents still contain what is cited. Pure except for `document`."""
        ...

    def needs_model(self, claim: Claim) -> bool:
        """Whether a claim judged by rule also goes to a model, if it is capable."""
        ...

    def without_model(self, claim: Claim) -> Claim:
        """The verdict on a claim judged by rule that no capable model judges."""
        ...

    async def by_model(
        self,
        request: JudgeRequest,
        evidence: Sequence[Evidence],
        sources: Sources,
        ask: AskModel,
        *,
        mark: str,
        documents: Sequence[str],
        role: Role = Role.check,
    ) -> Judgement:
        """A model's judgement, from one request. `mark` fences the passages; `documents` are those whose text is shown.
        Without a reply the claims keep their verdicts."""
        ...


@dataclass(frozen=True, slots=True)
class CodeThenModel:
    """Applies `claim_rules`, then asks the model of the role `check`."""

    def by_rule(self, claim: Claim, evidence: Sequence[Evidence], sources: Sources | None = None) -> Claim:
        return claim_rules.by_rule(claim, evidence, sources)

    def verify(self, claim: Claim, evidence: Sequence[Evidence], document: Documents) -> Claim:
        """The claim's keys must be evidence of this run. A quotation must be in its evidence's passage and in the
        document at that offset; a written claim must cite text the document still contains, and follow from it by rule.
        """
        cited = {each.key: each for each in evidence if each.key in claim.cites}
        quote = claim.quote
        if not claim.cites:
            return replace(claim, verdict=Verdict.uncited, why="it cites nothing")
        if len(cited) < len(set(claim.cites)):
            return claim_rules.unsupported(claim, "it cites evidence that this run did not gather")
        if claim.derived is not None:
            wrong = derive.fault(claim, evidence, document)
            if wrong:
                return claim_rules.unsupported(claim, wrong)
            return note_taint(
                replace(claim, verdict=Verdict.supported, why="computed by rule from what it cites"), evidence
            )
        if quote is None:
            if len(unchanged_evidence(tuple(cited.values()), document)) < len(cited):
                return claim_rules.unsupported(claim, "the document does not say what it cites")
            if not all(any(within(words, each.passage) for each in cited.values()) for words in claim.carried_by):
                return claim_rules.unsupported(claim, "it is carried by words that it does not cite")
            return self.by_rule(claim, evidence, sources_of(tuple(cited.values()), document))
        if not any(lies_in(quote, each.passage) for each in cited.values()):
            return claim_rules.unsupported(claim, "its words are not in the passage it cites")
        source = document(quote.doc_id)
        if source is None or not stands(quote, source):
            return claim_rules.unsupported(claim, "the document does not say this at that place")
        return note_taint(
            replace(claim, verdict=Verdict.supported, why="found word for word in the document"), evidence
        )

    def needs_model(self, claim: Claim) -> bool:
        own = claim.quote is None and claim.derived is None
        return own and claim.verdict in (Verdict.supported, Verdict.partial)

    def without_model(self, claim: Claim) -> Claim:
        if claim.verdict is Verdict.partial and claim.edited:  # a person judges, and approves it
            return replace(claim, verdict=Verdict.supported, why="a reviewer put it so, and nothing speaks against it")
        return claim

    async def by_model(
        self,
        request: JudgeRequest,
        evidence: Sequence[Evidence],
        sources: Sources,
        ask: AskModel,
        *,
        mark: str,
        documents: Sequence[str],
        role: Role = Role.check,
    ) -> Judgement:
        claims = request.claims
        reply = await ask(
            role,
            "check",
            model_rulings.Rulings,
            lambda room: model_rulings.build_prompt(request, evidence, sources, mark, room),
            schema=model_rulings.schema(len(claims), asks=bool(request.question)),
            documents=documents,
            max_tokens=500 + 250 * len(claims),
        )
        if isinstance(reply, NoReply):
            return Judgement(claims, RULES)
        rulings, by = reply
        judged = model_rulings.read(rulings, request, evidence, sources, by)
        return Judgement(
            judged,
            by,
            rulings.answers,
            model_rulings.accept_missing(rulings, request, judged, evidence, sources),
            " ".join(rulings.search.split()),
        )


JUDGE: Judge = CodeThenModel()


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
    """Titles and dates of the documents that the evidence is from."""
    found = {each.passage.doc_id: document(each.passage.doc_id) for each in evidence}
    return Sources(
        {key: each.title for key, each in found.items() if each},
        {key: each.date for key, each in found.items() if each and each.date},
    )
