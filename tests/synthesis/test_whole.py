"""Whole syntheses over real HTTP with a scripted model: both pipelines, provenance, what a model leaves out or invents."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from doubles import ChatServer, HttpReply, drops, synthesis_model
from doubles.protocol import role_of, text_of
from quay import DENIED, HOSTILE, PAPERS, REBUILT, documents, fill, opened, resumed, synthesised, wish

from assay.core.codec import from_json, to_json
from assay.core.events import Answered, Failed, ModelReplied
from assay.core.run import Run
from assay.core.synthesis import Approach, Pipeline, QuestionKind, RelationType, Synthesis
from assay.core.types import Outcome, Usage, Verdict
from assay.governance.replay import replay
from assay.language.quotation import stands, within
from assay.models.cost import estimate_tokens
from assay.synthesis import state
from assay.workspace.facade import Workspace, open_workspace
from assay.workspace.services.ask import run_context_for

pytestmark = pytest.mark.long

BOTH = pytest.mark.parametrize("pipeline", list(Pipeline))


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    await fill(tmp_path / "w")
    return tmp_path / "w"


@pytest.fixture
async def server() -> AsyncIterator[ChatServer]:
    with ChatServer(synthesis_model(), window=8192) as made:
        yield made
    assert not made.problems


def holds(account: Synthesis, workspace: Workspace) -> None:
    """From question to claim: every step names the one before, and every quotation stands in its document."""
    evidence = {each.key: each for each in account.evidence}
    asked = {question.id: question for question in account.questions}
    labels = account.labels
    for each in account.evidence:
        source = workspace.documents.get(each.quote.doc_id)
        assert source is not None and within(each.quote, each.passage) and stands(each.quote, source)
    for question, keys in account.answers.items():
        assert question in asked and set(keys) <= evidence.keys()
    for question in account.questions:
        assert set(question.documents) <= set(labels) and question.documents
    for insight in account.insights:
        assert insight.claim.verdict is Verdict.supported and insight.claim.quote is not None
        assert {evidence[key].quote.doc_id for key in insight.claim.cites} == {insight.doc_id}
        assert not insight.question or set(insight.claim.cites) <= set(account.answers[insight.question])
        assert labels[insight.doc_id] in insight.id.split("-")
    known = {insight.id: insight for insight in account.insights}
    for relation in account.relations:
        for side in (relation.left, relation.right):
            source = workspace.documents.get(side.doc_id)
            assert side.doc_id == side.quote.doc_id and side.key in evidence
            assert not side.insight or known[side.insight].doc_id == side.doc_id
            assert source is not None and stands(side.quote, source)
        assert relation.left.doc_id != relation.right.doc_id and relation.reason
    for claim in account.narrative.claims:
        assert claim.verdict is Verdict.supported and claim.cites and set(claim.cites) <= evidence.keys()
    for translation in account.translations:
        for sentence in (sentence for each in translation.paragraphs for sentence in each.sentences):
            told = [account.narrative.claims[place] for place in sentence.claims]
            assert told and set(sentence.cites) == {key for claim in told for key in claim.cites}
    assert [row.doc_id for row in account.ledger] == list(account.brief.documents)
    assert all(row.claims or row.reason for row in account.ledger)


@BOTH
async def test_a_synthesis_ends_with_an_account_that_holds(pipeline: Pipeline, folder: Path, server: ChatServer):
    with opened(folder, server) as workspace:
        run = await synthesised(workspace, wish(pipeline=pipeline, audiences=("plain", "executive")))
        assert run.answer is not None and run.answer.outcome is Outcome.answered
        account = workspace.syntheses.account(run.id)
        holds(account, workspace)
        assert len(account.documents) == 5 and {each.audience for each in account.translations} == {
            "plain",
            "executive",
        }
        assert not any(block.heading for block in account.narrative.blocks)
        comparative = Counter(question.kind for question in account.questions)[QuestionKind.comparative]
        if pipeline is Pipeline.summary:
            assert {each.type for each in account.relations} == {RelationType.contradiction} and not comparative
        else:
            named = {doc for beat in account.spine for doc in beat.documents}
            assert named == set(account.brief.documents) and comparative
        assert account == from_json(Synthesis, json.loads(json.dumps(to_json(account))))


async def test_what_two_documents_contradict_each_other_about_is_found_and_quoted_on_both_sides(
    folder: Path, server: ChatServer
):
    with opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
        both = {
            frozenset((each.left.quote.text, each.right.quote.text))
            for each in account.relations
            if each.type is RelationType.contradiction
        }
        assert frozenset((REBUILT, DENIED)) in both
        told = {claim.words for claim in account.narrative.claims}
        assert any("1998" in words for words in told) and any("2003" in words for words in told)


@BOTH
async def test_without_a_model_the_same_command_gives_quotations_and_says_so(pipeline: Pipeline, folder: Path):
    with opened(folder) as workspace:
        run = await synthesised(workspace, wish(pipeline=pipeline))
        account = workspace.syntheses.account(run.id)
        holds(account, workspace)
        assert all(claim.quote is not None or "“" in claim.text for claim in account.narrative.claims)
        assert any("without a language model" in note for note in account.notes)
        assert not account.models and not account.usage.calls


async def test_a_contradiction_is_found_without_a_model(folder: Path):
    with opened(folder) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
        found = [each for each in account.relations if each.type is RelationType.contradiction]
        assert [{each.left.quote.text, each.right.quote.text} for each in found] == [{REBUILT, DENIED}]


async def test_five_short_papers_take_a_handful_of_requests(folder: Path, server: ChatServer):
    with opened(folder, server) as workspace:
        before = len(server.requests)
        run = await synthesised(workspace)
        asked = [event.prompt for event in run.events if isinstance(event, ModelReplied)]
        account = workspace.syntheses.account(run.id)
    assert len(asked) <= 8 and before <= len(server.requests)
    assert {event.considered for event in state.opened(run).values()} == {1} and not state.chosen_passages(run)
    assert "were compared by a model, in one request" in account.pairing


async def test_a_document_of_which_the_model_notes_nothing_stands_in_its_own_words(folder: Path):
    from doubles.synthesis_replies import read

    def lazy(text: str, schema: Any) -> Any:
        reply = read(text, schema)
        return {"documents": [each for each in reply["documents"] if each["document"] != "D2"]}

    with ChatServer(synthesis_model(read=lazy)) as server, opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
        holds(account, workspace)
    second = account.brief.documents[1]
    noted = [each for each in account.insights if each.doc_id == second]
    assert noted and all(row.claims for row in account.ledger)
    assert not any(each.note for each in noted if "-" in each.id and each.id.startswith("D2"))


async def test_a_model_that_notes_nothing_at_all_leaves_quotations_of_every_document(folder: Path):
    with ChatServer(synthesis_model(read={"documents": []})) as server, opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
        holds(account, workspace)
    assert all(row.insights and row.claims for row in account.ledger)


async def test_an_invented_relation_is_dropped_and_said(folder: Path):
    def inventive(text: str, schema: Any) -> Any:
        from doubles.synthesis_replies import relate

        reason = "The harbour master denies that any of the 1,871 gates was ever opened."
        made = {"left": 1, "right": 2, "type": "contradiction", "reason": reason}
        far = {"left": 1, "right": 999, "type": "parallel", "reason": "They say the same."}
        pairs = [made | {"right": number} for number in range(2, 9)]
        return relate(text, schema) | {"relations": [*pairs, far]}

    with ChatServer(synthesis_model(relate=inventive, revise=drops())) as server, opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
    assert [each.by for each in account.relations] == ["rules"], "what rules have found stays"
    assert any("999" in why for why in account.diagnostics.dropped)
    assert "1,871" not in json.dumps(to_json(account.relations))


async def test_a_text_that_says_nothing_still_tells_of_every_document(folder: Path):
    silent = synthesis_model(narrate={"paragraphs": []})
    with ChatServer(silent) as server, opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace)).id)
        holds(account, workspace)
    assert all(row.claims for row in account.ledger)


async def test_what_the_model_makes_up_is_not_in_the_account(folder: Path):
    def liar(text: str, schema: Any) -> Any:
        from doubles.synthesis_replies import narrate

        reply = narrate(text, schema)
        own = reply["paragraphs"][0]["sentences"]
        own.append({"text": "The sluices were sold for 4,711 pounds to Umberto Vance.", "cites": own[0]["cites"]})
        return reply

    with ChatServer(synthesis_model(narrate=liar)) as server, opened(folder, server) as workspace:
        account = workspace.syntheses.account((await synthesised(workspace, wish(audiences=("plain",)))).id)
        holds(account, workspace)
    assert "Vance" not in json.dumps(to_json(account)), "the figure is in no passage, whatever the judge says"


async def test_swapping_two_titles_changes_labels_and_nothing_else(tmp_path: Path):
    swapped = dict(PAPERS)
    one, other = "The north sluice", "Silt in the basin"
    swapped[one], swapped[other] = PAPERS[other], PAPERS[one]
    accounts: list[Synthesis] = []
    told: list[set[tuple[str, str]]] = []
    for name, papers in (("as-it-is", PAPERS), ("swapped", swapped)):
        await fill(tmp_path / name, papers)
        with ChatServer(synthesis_model(), window=8192) as server, opened(tmp_path / name, server) as workspace:
            account = workspace.syntheses.account((await synthesised(workspace)).id)
            holds(account, workspace)
            texts = {doc: workspace.documents.get(doc).text for doc in account.brief.documents}  # type: ignore[union-attr]
            where = {each.key: texts[each.quote.doc_id] for each in account.evidence}
            told.append({(_bare(claim.words), where[key]) for claim in account.narrative.claims for key in claim.cites})
            accounts.append(account)
            for row, doc in zip(account.ledger, account.brief.documents, strict=True):
                assert row.evidence == sum(each.quote.doc_id == doc for each in account.evidence)
    # Whatever is said, is said with the text that says it, also under another title.
    assert all(words in text or words.rstrip(".") in text for each in told for words, text in each)


def _bare(words: str) -> str:
    return words.split("” says: ")[-1].split("”: ")[-1]


async def test_a_hostile_document_changes_nothing_but_its_own_row(tmp_path: Path):
    accounts: list[Synthesis] = []
    for name, papers in (("clean", PAPERS), ("attacked", {**PAPERS, "Zz notice": HOSTILE})):
        await fill(tmp_path / name, papers)
        with ChatServer(synthesis_model(), window=8192) as server, opened(tmp_path / name, server) as workspace:
            accounts.append(workspace.syntheses.account((await synthesised(workspace)).id))
            holds(accounts[-1], workspace)
    clean, attacked = accounts
    assert attacked.ledger[-1].reason and not attacked.ledger[-1].claims
    assert "everything contradicts" not in json.dumps(to_json(attacked.narrative))
    assert "closed" not in json.dumps(to_json(attacked.narrative))
    assert {claim.words for claim in clean.narrative.claims} == {claim.words for claim in attacked.narrative.claims}
    assert Counter(each.type for each in clean.relations) == Counter(each.type for each in attacked.relations)
    assert [row.claims for row in clean.ledger] == [row.claims for row in attacked.ledger[:-1]]


async def test_a_short_run_of_the_agent_may_answer_each_question(folder: Path):
    with ChatServer(synthesis_model(), window=8192) as server, opened(folder, server) as workspace:
        run = await synthesised(workspace, wish(approach=Approach.agent, questions=1))
        account = workspace.syntheses.account(run.id)
        holds(account, workspace)
    assert {each.by for each in state.chosen_passages(run).values()} == {"agent"}
    assert any(each.searched for each in state.chosen_passages(run).values())


async def test_an_endpoint_that_fails_leaves_a_run_that_is_carried_on(folder: Path):
    down = {"now": False}
    answer = synthesis_model()

    def shaky(request: Any) -> Any:
        if down["now"] and role_of(request)[1] == "relate":
            return HttpReply(400, {"error": {"message": "no"}})
        return answer(request)

    with ChatServer(shaky, window=8192) as server, opened(folder, server) as workspace:
        down["now"] = True
        run = await synthesised(workspace)
        assert isinstance(run.events[-1], Failed)
        down["now"] = False
        run = await resumed(workspace, run)
        assert run.delivered
        holds(workspace.syntheses.account(run.id), workspace)


@pytest.mark.parametrize("stride", [6, pytest.param(1, marks=pytest.mark.long)])
async def test_a_synthesis_carried_on_from_any_of_its_events_ends_the_same_and_asks_nothing_twice(
    folder: Path, tmp_path: Path, stride: int
):
    """Cut off after every event in turn, the recorded replies are not asked for again, and the account is the same."""
    with ChatServer(synthesis_model(), window=8192) as server, opened(folder, server) as workspace:
        whole = await synthesised(workspace, wish(questions=1, audiences=("plain",)))
        assert whole.delivered
        context = await run_context_for(workspace.context, whole, await _roles(workspace))
        expected = _timeless(whole)
        from assay.synthesis import pipeline

        kinds = [type(event).__name__ for event in whole.events]
        cuts = sorted({1, *(place for place in range(2, len(kinds)) if kinds[place] != kinds[place - 1])})
        for cut in cuts[::stride]:
            run = Run(whole.id, whole.events[:cut])
            server.requests.clear()
            async for event in pipeline.carry_on(run, _in_memory(context, run)):
                run = run.then(event)
            known = {event.request for event in whole.events[:cut] if isinstance(event, ModelReplied)}
            new = [event for event in run.events[cut:] if isinstance(event, ModelReplied)]
            assert not known & {event.request for event in new}
            assert len(server.requests) == len(new)
            assert _timeless(run) == expected


def _timeless(run: Run) -> list[Any]:
    """What a run came to, without the replies and the seconds they took."""
    from dataclasses import replace

    events = [event for event in run.events if not isinstance(event, ModelReplied)]
    return [
        Answered(replace(event.answer, usage=Usage())) if isinstance(event, Answered) else event for event in events
    ]


async def _roles(workspace: Workspace) -> Any:
    return await workspace.models.connect()


def _in_memory(context: Any, run: Run) -> Any:
    from dataclasses import replace

    return replace(context, record=Run.then, _titles={}, _dates={})


@BOTH
async def test_a_synthesis_is_replayed_from_its_record(pipeline: Pipeline, folder: Path, server: ChatServer):
    with opened(folder, server) as workspace:
        run = await synthesised(workspace, wish(pipeline=pipeline))
        before = len(server.requests)
        again = await replay(run, await run_context_for(workspace.context, run))
        assert again.differences == () and again.answer == run.answer
        assert len(server.requests) == before, "no model is asked"


async def test_a_synthesis_whose_time_was_used_up_is_replayed_from_its_record(folder: Path, server: ChatServer):
    with opened(folder, server, synthesis_seconds=0.01) as workspace:
        run = await synthesised(workspace)
        account = workspace.syntheses.account(run.id)
        assert run.stopped is not None and all(row.reason for row in account.ledger)
        context = await run_context_for(workspace.context, run)
        for searchable in (True, False):
            assert (await replay(run, context, searchable=searchable)).differences == ()


async def test_a_budget_that_runs_out_ends_in_an_account_that_says_so(folder: Path, server: ChatServer):
    with opened(folder, server, synthesis_calls=3) as workspace:
        run = await synthesised(workspace)
        account = workspace.syntheses.account(run.id)
        holds(account, workspace)
    assert account.usage.calls <= 3
    assert any("limit" in note for note in account.notes)
    assert account.narrative.outcome is Outcome.partial


async def test_no_prompt_names_a_person_s_other_documents(folder: Path, server: ChatServer):
    with opened(folder, server) as workspace:
        chosen = documents(workspace)[:3]
        run = [run async for run, _ in workspace.syntheses.begin(chosen, wish())][-1]
        left = [workspace.documents.get(doc) for doc in documents(workspace)[3:]]
    said = "\n".join(text_of(request) for request in server.requests)
    assert run.delivered and not any(doc.text[-60:] in said for doc in left if doc)


@pytest.mark.long
@pytest.mark.parametrize("pipeline", list(Pipeline) if os.environ.get("ASSAY_SOAK") else [Pipeline.synthesis])
async def test_the_sample_corpus_becomes_an_account_that_holds(
    pipeline: Pipeline, filled: Workspace, server: ChatServer
):
    """Real parsers, the real embedder and the real index; two files of it cannot be read, and one gives orders."""
    with open_workspace(filled.path, llm_base_url=server.url, llm_model="scripted", llm_api_key="k") as workspace:
        readable = [entry.id for entry in workspace.documents.listing() if entry.state == "ready"]
        steps = workspace.syntheses.begin(readable, wish(pipeline=pipeline, questions=1))
        run = [run async for run, _ in steps][-1]
        account = workspace.syntheses.account(run.id)
        holds(account, workspace)
    assert len(account.ledger) == len(readable) == 20
    assert max(estimate_tokens(text_of(request)) for request in server.requests) < 8192 - 500
    cited = {key for claim in account.narrative.claims for key in claim.cites}
    told = {each.passage.doc_id for each in account.evidence if each.key in cited}
    if pipeline is Pipeline.synthesis:
        assert told == set(readable)


LISTED = (
    "After comparing the delivery lists street by street, the incident team found that 1,840 households had received the "
    "notice."
)


@pytest.mark.long
async def test_the_contradictions_of_the_sample_corpus_are_found_without_a_model(filled: Workspace):
    readable = [entry.id for entry in filled.documents.listing() if entry.state == "ready"]
    run = [run async for run, _ in filled.syntheses.begin(readable, wish(questions=1))][-1]
    account = filled.syntheses.account(run.id)
    holds(account, filled)
    found = [each for each in account.relations if each.type is RelationType.contradiction]
    assert [{each.left.quote.text, each.right.quote.text} for each in found] == [
        {"2.1 Raw telemetry is kept for 90 days.", "Raw telemetry is kept for 30 days and then overwritten."},
        {
            "According to the night shift's log, 1,480 households received the notice to boil their water.",
            LISTED,
        },
    ]
