"""The text: written from the plan, gone over once, and never without a document or a side of a contradiction."""

from __future__ import annotations

import re
from typing import Any

import pytest
from doubles import synthesis_replies, verdicts
from wharf import DOCS, KEPT_A, KEPT_B, Model, carried, context, document, key, opened, was_read

from assay.core.run import Run
from assay.core.synthesis import Pipeline
from assay.core.types import Claim, Outcome, Verdict
from assay.synthesis import narrate, plan, settle, state

HOOKS = "The crane of the log book (D1) lifts with a hook of steel, whereas that of D2 has two hooks and a beam."


async def written(*documents: Any, small: bool = False, has_model: bool = True, window: int = 8192, **parts: Any):
    """A run that has its text, and the model that wrote it."""
    chosen = documents or DOCS
    brief = {"pipeline": parts.pop("pipeline")} if "pipeline" in parts else {}
    run = opened(chosen, model=has_model, small=small, window=window, **brief)
    judges = {"judges": parts.pop("judges")} if "judges" in parts else {}
    model = Model(parts, **judges) if has_model else None
    able = context(chosen, run, model)
    run = await was_read(run, able)
    if state.is_capable(run) and state.brief(run).pipeline is Pipeline.synthesis:
        run = await carried(run, able, plan.plan)
    return await carried(run, able, narrate.narrate), model, able


async def delivered(run: Run, able: Any) -> Run:
    run = await carried(run, able, settle.check)
    if run.unsupported:
        run = await carried(run, able, settle.revise, settle.check)
    return await carried(run, able, settle.deliver)


def text(*sentences: tuple[str, list[str]]) -> Any:
    own = [{"text": words, "cites": cites} for words, cites in sentences]
    return lambda *_: {"paragraphs": [{"sentences": own}]}


def claims(run: Run) -> list[Claim]:
    return [claim for block in (run.draft.blocks if run.draft else ()) for claim in block.claims]


async def test_a_sentence_may_compare_two_documents_by_their_names_and_is_judged_with_both():
    cites = [key(DOCS[0]), key(DOCS[1])]
    run, model, able = await written(narrate=text((HOOKS, cites)))
    run = await delivered(run, able)
    assert model and HOOKS in model.asked("check")[-1] and "D1" in model.asked("check")[-1]
    found = next(claim for claim in run.answer.claims if claim.text == HOOKS)  # type: ignore[union-attr]
    assert found.verdict is Verdict.supported and found.carried_by


async def test_the_writer_sees_the_whole_plan_the_relations_and_the_passages():
    run, model, _ = await written()
    (shown,) = model.asked("narrate")  # type: ignore[union-attr]
    assert "Paragraph 1: all of it" in shown and "is kept for”: D1 says 30 days, D2 says 90 days." in shown
    assert all(each.text in shown for each in DOCS)
    assert run.draft and not any(block.heading for block in run.draft.blocks)


async def test_a_contradiction_that_the_writer_leaves_out_stands_in_its_two_sentences():
    run, _, able = await written(narrate=text((DOCS[2].text, [key(DOCS[2])]), (HOOKS, [key(DOCS[0]), key(DOCS[1])])))
    quoted = [claim.words for claim in claims(run) if claim.quote]
    assert quoted == [KEPT_A, KEPT_B]
    run = await delivered(run, able)
    assert {KEPT_A, KEPT_B} <= {claim.words for claim in run.answer.claims}  # type: ignore[union-attr]
    assert [(each.left, each.right) for each in run.answer.conflicts] == [(key(DOCS[0]), key(DOCS[1]))]  # type: ignore[union-attr]


async def test_a_contradiction_that_a_sentence_tells_is_not_quoted_again():
    both = "D1 keeps the crane log for 30 days, whereas D2 keeps it for 90 days."
    run, _, _ = await written(narrate=text((both, [key(DOCS[0]), key(DOCS[1])]), (DOCS[2].text, [key(DOCS[2])])))
    assert not any(claim.quote for claim in claims(run))


async def test_a_contradiction_whose_sentence_does_not_hold_is_quoted_instead():
    both = "D1 keeps the crane log for 30 days, whereas D2 keeps it for 90 days."
    run, _, able = await written(
        narrate=text((both, [key(DOCS[0]), key(DOCS[1])]), (DOCS[2].text, [key(DOCS[2])])),
        judges=verdicts("unsupported"),
    )
    run = await delivered(run, able)
    assert run.answer and any(claim.words in (KEPT_A, KEPT_B) for claim in run.answer.claims)


async def test_a_document_that_no_sentence_cites_is_quoted():
    run, _, _ = await written(narrate=text((HOOKS, [key(DOCS[0]), key(DOCS[1])])))
    assert any(claim.quote and claim.quote.doc_id == "c" for claim in claims(run))


async def test_keys_that_this_run_does_not_know_are_cited_by_nothing():
    strange = text((HOOKS, ["ffffffff", key(DOCS[0]), key(DOCS[1])]), ("The wharf is sold.", ["00000000"]))
    run, _, able = await written(narrate=strange, polish=lambda *_: {"no": 1})
    assert {cite for claim in claims(run) for cite in claim.cites} <= {each.key for each in run.evidence}
    run = await delivered(run, able)
    assert not any("sold" in claim.words for claim in run.answer.claims)  # type: ignore[union-attr]


async def test_a_text_that_does_not_come_leaves_the_points_as_quotations():
    run, _, able = await written(narrate=lambda *_: {"no": 1})
    assert claims(run) and all(claim.quote for claim in claims(run)) and run.draft and run.draft.fallback
    run = await delivered(run, able)
    assert run.answer and run.answer.outcome is Outcome.partial


async def test_a_summary_is_one_text_without_headings_and_without_a_plan():
    run, model, _ = await written(pipeline=Pipeline.summary)
    assert not model.asked("relate") and len(model.asked("narrate")) == 1  # type: ignore[union-attr]
    assert run.draft and not any(block.heading for block in run.draft.blocks)


async def test_a_text_too_long_for_one_request_is_written_in_parts_that_all_fit():
    many = [document(f"d{n:02}", f"The crane of berth {n} lifts {n + 3} containers an hour. "
                     f"Berth {n} is swept by {n + 2} men.") for n in range(30)]  # fmt: skip
    run, model, _ = await written(*many, window=4096)
    assert model and len(model.asked("narrate")) > 1 and model.largest() <= 4096
    where = {each.key: each.quote.doc_id for each in run.evidence}
    assert {where[cite] for claim in claims(run) for cite in claim.cites} == {each.id for each in many}


# --- the pass for flow ----------------------------------------------------------------------------------------------


def polished(*sentences: dict[str, Any]) -> Any:
    own = [{"points": []} | each for each in sentences]
    return lambda *_: {"paragraphs": [{"sentences": own}]}


SWEPT, LIT = "The quay is swept every morning by two men.", "The wharf lights are lit by hand at dusk."
TWO = text((SWEPT, [key(DOCS[2])]), (LIT, [key(DOCS[2])]))


async def after(line: Any) -> list[Claim]:
    run, _, _ = await written(DOCS[2], pipeline=Pipeline.summary, narrate=TWO, polish=line)
    return claims(run)


async def test_sentences_may_be_joined_and_cite_what_both_cite():
    joined = "The quay is swept every morning by two men, and the wharf lights are lit by hand at dusk."
    (claim,) = await after(polished({"text": joined, "sources": [1, 2]}))
    assert claim.text == joined and claim.cites == (key(DOCS[2]),)


@pytest.mark.parametrize("added", ["in 1871", "by Umberto Vance", "for 4,711 pounds"])
async def test_the_pass_adds_no_name_number_or_date(added: str):
    line = polished({"text": f"{SWEPT[:-1]} {added}.", "sources": [1]}, {"text": LIT, "sources": [2]})
    assert [claim.text for claim in await after(line)] == [SWEPT, LIT]


async def test_what_the_pass_loses_is_put_back_and_what_is_made_from_nothing_is_left_out():
    line = polished({"text": "Everything is well at the wharf.", "sources": []}, {"text": LIT, "sources": [2]})
    assert [claim.text for claim in await after(line)] == [LIT, SWEPT]


async def test_an_empty_text_means_that_a_sentence_stays():
    line = polished({"text": "", "sources": [2]}, {"text": "", "sources": [1]})
    assert [claim.text for claim in await after(line)] == [LIT, SWEPT]


async def test_without_a_reply_the_text_stays_as_it_is():
    assert [claim.text for claim in await after(lambda *_: {"no": 1})] == [SWEPT, LIT]


async def test_points_that_are_not_told_yet_are_offered_and_worked_in():
    def works_in(shown: str, schema: Any) -> Any:
        number = int(re.findall(r"^(\d+) \(D3", shown, re.M)[0])
        lines = re.findall(r"^(\d+): ", shown.split("Not told yet")[0], re.M)
        own = [{"text": "", "sources": [int(each)], "points": []} for each in lines]
        return {"paragraphs": [{"sentences": [*own, {"text": SWEPT, "sources": [], "points": [number]}]}]}

    run, _, _ = await written(narrate=text((HOOKS, [key(DOCS[0]), key(DOCS[1])])), polish=works_in)
    assert SWEPT in [claim.text for claim in claims(run)]


# --- without a capable model ----------------------------------------------------------------------------------------


async def test_without_a_model_the_text_is_a_digest_contradictions_then_each_document_under_its_title():
    run, _, able = await written(has_model=False)
    assert run.draft
    heads = [block.heading for block in run.draft.blocks]
    assert heads == [narrate.DISAGREE, "D1 · Title of a", "D2 · Title of b", "D3 · Title of c"]
    assert [claim.words for claim in run.draft.blocks[0].claims] == [KEPT_A, KEPT_B]
    assert all(claim.quote for claim in claims(run))
    run = await delivered(run, able)
    assert run.answer and run.answer.outcome is Outcome.answered and run.answer.conflicts


async def test_a_small_model_writes_about_one_document_at_a_time_and_the_contradiction_is_told():
    run, model, able = await written(small=True)
    assert model and len(model.asked("narrate")) == 3 and not model.asked("read") and not model.asked("relate")
    assert not any(KEPT_A in shown and KEPT_B in shown for shown in model.asked("narrate"))
    run = await delivered(run, able)
    assert run.answer and {KEPT_A, KEPT_B} <= {claim.words for claim in run.answer.claims}


async def test_of_a_small_model_only_what_nearly_repeats_a_sentence_stands():
    def inventive(shown: str, schema: Any) -> Any:
        reply = synthesis_replies.narrate(shown, schema)
        own = reply["paragraphs"][0]["sentences"]
        own.append({"text": "The crane is old because the harbour is poor.", "cites": own[0]["cites"]})
        return reply

    run, _, able = await written(small=True, narrate=inventive)
    run = await delivered(run, able)
    assert run.answer and run.answer.claims and not any("poor" in claim.words for claim in run.answer.claims)


async def test_an_invented_sentence_about_a_document_is_not_replaced_by_words_of_another():
    """They share a name, which is no contradiction: the section of one has nothing to say for the other."""
    built, paid = (
        "The crane at Marrow Quay was built by the harbour board in a year of storms.",
        "Repairs are paid by lot.",
    )
    m = document("m", f"{built}\nIts hook is of iron, and it is oiled.")
    n = document("n", f"{paid}\nThe board decided that the crane at Marrow Quay gets a hook of steel next year.")

    def inventive(shown: str, schema: Any) -> Any:
        if built in shown:
            own = text(("The crane is old because the harbour is poor.", [key(m)]), (built, [key(m)]))
        else:
            own = text((paid, [key(n)]))
        return own(shown, schema)

    run, _, able = await written(m, n, small=True, narrate=inventive)
    run = await delivered(run, able)
    where = {each.key: each.quote.doc_id for each in run.evidence}
    assert run.answer
    told = [{where[key] for claim in block.claims for key in claim.cites} for block in run.answer.blocks]
    assert told == [{"m"}, {"n"}]
