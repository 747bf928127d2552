"""Answers checked again: whether what they rest on is still in the documents, as far as whoever looks may read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache

from assay.core.access import Scope
from assay.core.codec import digest, dumps
from assay.core.errors import UserError
from assay.core.run import Run
from assay.core.types import Answer, Document
from assay.governance.recheck import AnswerStanding, Finding, Recheck, Replacement, contradicted, recheck, standing_of
from assay.governance.reviewing import any_review
from assay.models.factory import NO_MODEL, has_model
from assay.models.llm import Role
from assay.store import documents
from assay.store import rechecks as stored
from assay.store.runs.visibility import WITHHELD_REASON
from assay.workspace.context import Service
from assay.workspace.services.contradictions import find_contradictions
from assay.workspace.services.models import Models
from assay.workspace.services.questions import Questions
from assay.workspace.services.syntheses import Syntheses
from assay.workspace.types import Steps, SynthesisRequest

Versions = Mapping[str, str]
ModelChecks = Mapping[str, stored.ModelCheck]
KEPT = 256  # documents in memory, and as many comparisons


@dataclass(frozen=True)
class Rechecks(Service):
    """Whether delivered answers still hold."""

    def of_run(self, run: Run) -> Recheck | None:
        """How a delivered answer stands; None if there is none. A withheld one no longer holds for who looks."""
        if run.withheld:
            return self._withheld(run.id, run.asked.question, synthesis=run.asked.brief is not None)
        if run.answer is None:
            return None
        ids = stored.replaced_in(self.store, run.id)
        versions = stored.current_versions(self.store, ids, self.context.scope()) if ids else {}
        checks = stored.model_checks(self.store, self.principal.id, [run.id])
        return self._recheck(run, _Library(self, self.context.scope()), versions, checks)

    def stale(self, only: Collection[str] = (), most: int | None = None) -> list[Recheck]:
        """This person's answers that rest on words that changed, newest first, then those that are withheld. Only answers that
        speak of a replaced document are looked at, and of these only those that did not hold or were not looked at since."""
        scope, who = self.context.scope(), self.principal.id
        speaking = stored.speaking_of_replaced(self.store, who, only)
        versions = stored.current_versions(self.store, {id for ids in speaking.values() for id in ids}, scope)
        seen = {run: _seen(ids, versions) for run, ids in speaking.items()}
        known = stored.remembered(self.store, speaking)
        open_ = [run for run in speaking if known.get(run) != f"{AnswerStanding.holds} {seen[run]}"]
        checks = stored.model_checks(self.store, who, only)
        listed = set(open_)
        open_ += [run for run, check in checks.items() if check.found and run not in listed]
        found: list[Recheck] = []
        new: dict[str, str] = {}
        for each in self._checked(open_, scope, versions, checks):
            value = f"{each.standing} {seen.get(each.run)}"
            if each.run in seen and known.get(each.run) != value:
                new[each.run] = value
            if each.standing is not AnswerStanding.holds:
                found.append(each)
            if len(found) == most:
                break
        if new:
            stored.remember(self.store, new)
        gone = (
            self._withheld(run, asked.question, synthesis=asked.brief is not None)
            for run, asked in stored.withheld(self.store, who, scope)
            if not only or run in only
        )
        return [*found, *gone][:most]

    async def ask_again(self, origin: Run) -> Steps:
        """The question of a run asked again, or its synthesis made again, of the documents of now."""
        asked, today = origin.asked, date.today().isoformat()
        if asked.brief is None:
            model = "" if has_model(self.settings) else NO_MODEL
            steps = Questions(self.context).branch(origin, 1, model, today)
        else:
            versions = stored.current_versions(self.store, asked.brief.documents, self.context.scope())
            ids = [versions.get(id) or id for id in asked.brief.documents]
            own = {
                each.name: getattr(asked.brief, each.name) for each in fields(asked.brief) if each.name != "documents"
            }
            request = SynthesisRequest(**own, model=asked.has_model, today=today, stakes=asked.stakes)
            steps = Syntheses(self.context).begin(ids, request)
        async for step in steps:
            yield step

    def _checked(self, runs: Sequence[str], scope: Scope, versions: Versions, checks: ModelChecks) -> Iterator[Recheck]:
        library = _Library(self, scope)

        def words(document: str, start: int, end: int) -> tuple[str, str, str]:
            source = library.document(document)
            return (source.text[start:end] if source else ""), "", ""

        for run in stored.answers(self.store, runs, words, scope):
            yield self._recheck(run, library, versions, checks)

    def _recheck(self, run: Run, library: _Library, versions: Versions, checks: ModelChecks) -> Recheck:
        assert run.answer is not None
        cited = {each.passage.doc_id for each in run.evidence}
        replaced = {id: library.replacement(id, now) for id, now in versions.items() if id in cited}
        findings = recheck(run.answer, run.evidence, replaced, library.document) if replaced else ()
        if run.id in checks:
            findings = (*findings, *self._contradictions(run.answer, checks[run.id]))
        return self._made(run.id, run.asked.question, standing_of(findings), findings, run.asked.brief is not None)

    def _contradictions(self, answer: Answer, check: stored.ModelCheck) -> Iterator[Finding]:
        """Words of newer documents that contradict the answer, as a model said, if they are still there to be read."""
        for recorded, places in check.found:
            with suppress(UserError):  # erased meanwhile
                found = self.context.run(recorded).answer
                quotes = [claim.quote for claim in found.claims if claim.quote] if found else []
                there = documents.titles(self.store, {each.doc_id for each in quotes}, self.context.scope())
                for place, quote in zip(places, quotes, strict=False):
                    if quote.doc_id in there and place < len(answer.claims):
                        yield contradicted(answer, place, quote, there[quote.doc_id])

    async def ask_model(self, only: Collection[str] = (), most: int = 20) -> int:
        """Ask the judge whether documents that came after answers contradict them: the newest answers first, one request for
        each that has anything near in them. Returns the number of answers that it was asked about."""
        if any_review(self.store, self.settings):
            raise UserError(
                "Answers are reviewed here before anybody sees them, and nobody reviews what a model says of them later: "
                "recheck without --model."
            )
        if not has_model(self.settings):
            raise UserError("No language model is set: set `llm_base_url` and `llm_model`, or recheck without --model.")
        roles = await Models(self.context).connect()
        if roles[Role.check][0].role_model.small:
            raise UserError("The model that judges is too small to be asked what contradicts an answer.")
        scope, asked, now = self.context.scope(), 0, self.store.now()
        known = stored.model_checks(self.store, self.principal.id)
        dated = stored.added(self.store, scope)
        for id, at in stored.delivered(self.store, self.principal.id):
            check = known.get(id, stored.ModelCheck())
            newer = [document for document, added in dated if added > max(at, check.at)]
            origin = self.context.run(id) if newer and (not only or id in only) else None
            if origin is None or origin.asked.recheck or origin.answer is None or not origin.answer.claims:
                continue
            found = await find_contradictions(self.context, origin, newer, roles)
            more = ((found.run, found.claims),) if found and found.claims else ()
            stored.remember_model_check(self.store, id, stored.ModelCheck(now, (*check.found, *more)))
            asked += found is not None
            if asked == most:
                break
        return asked

    def _withheld(self, run: str, question: str, *, synthesis: bool) -> Recheck:
        return self._made(run, question, AnswerStanding.fallen, (), synthesis, WITHHELD_REASON)

    def _made(
        self,
        run: str,
        question: str,
        standing: AnswerStanding,
        findings: tuple[Finding, ...],
        synthesis: bool,
        withheld: str = "",
    ) -> Recheck:
        return Recheck(run, question, synthesis, standing, self.store.now()[:10], findings, withheld)


class _Library:
    """The documents of a check, and how they compare with their new versions, each read once while it is needed."""

    def __init__(self, service: Rechecks, scope: Scope) -> None:
        store = service.store
        self.document: Callable[[str], Document | None] = lru_cache(KEPT)(lambda id: documents.get(store, id, scope))
        self.replacement: Callable[[str, str], Replacement | None] = lru_cache(KEPT)(self._replacement)

    def _replacement(self, then: str, now: str) -> Replacement | None:
        old, new = self.document(then), self.document(now) if now else None
        return Replacement(old, new) if old and new else None


def _seen(ids: Sequence[str], versions: Mapping[str, str]) -> str:
    """What stands for the versions that a run is held against."""
    return digest(dumps([(id, versions.get(id)) for id in sorted(ids)]))[:16]
