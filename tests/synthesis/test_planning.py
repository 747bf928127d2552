"""How points are related and ordered: by a model, whose reasons are judged and whose names are only names."""

from __future__ import annotations

from typing import Any

from doubles import rewrites, verdicts
from wharf import DOCS, INSTRUCTION, KEPT_A, Model, carried, context, document, opened, was_read

from assay.core.events import Related
from assay.core.run import Run
from assay.core.synthesis import QuestionKind, RelationType
from assay.synthesis import plan, state

LIFTS = "The crane of D1 lifts containers with a hook, that of D2 with two hooks and a beam."


def planning(**parts: Any) -> Any:
    given = {"relations": [], "comparisons": [], "theme": "", "paragraphs": []} | parts
    return lambda text, schema: given


async def planned(line: Any, *documents: Any, window: int = 8192, **model: Any) -> tuple[Run, Model]:
    chosen = documents or DOCS
    run = opened(chosen, window=window)
    own = Model({"relate": line} | model.pop("says", {}), **model)
    able = context(chosen, run, own)
    return await carried(await was_read(run, able), able, plan.plan), own


def related(run: Run) -> Related:
    return state.related_blocks(run)[1]


async def test_a_relation_is_kept_with_the_words_of_both_points_if_its_reason_is_judged_to_follow():
    made = {"left": 2, "right": 5, "type": "complement", "reason": LIFTS}
    run, model = await planned(planning(relations=[made]))
    (found,) = related(run).relations
    assert (found.type, found.reason, found.by) == (RelationType.complement, LIFTS, "relate@model")
    assert (found.left.doc_id, found.right.doc_id) == ("a", "b")
    assert LIFTS in model.asked("check")[0] and "D2" in model.asked("check")[0]


async def test_a_reason_that_does_not_follow_is_dropped_and_said():
    made = {"left": 2, "right": 5, "type": "improvement", "reason": LIFTS}
    run, _ = await planned(planning(relations=[made]), judges=verdicts("unsupported", why="nothing says so"))
    assert related(run).relations == () and "nothing says so" in related(run).dropped[0]


async def test_a_reason_that_follows_in_part_is_put_right_once_and_kept():
    made = {"left": 2, "right": 5, "type": "improvement", "reason": f"{LIFTS[:-1]}, at half the cost."}

    def judges(text: str, schema: Any) -> Any:
        return verdicts("partial" if "half the cost" in text else "supported", why="no cost is named")(text, schema)

    run, model = await planned(planning(relations=[made]), judges=judges, says={"revise": rewrites(LIFTS)})
    (found,) = related(run).relations
    assert found.reason == LIFTS and found.type is RelationType.improvement
    assert "no cost is named" in model.asked("revise")[0] and len(model.asked("check")) == 2


async def test_no_judge_lifts_a_reason_with_a_figure_that_is_in_no_passage():
    made = {"left": 2, "right": 5, "type": "parallel", "reason": "Both cranes lift 4,711 containers."}
    run, _ = await planned(planning(relations=[made]))
    assert related(run).relations == () and "4,711" in related(run).dropped[0]


async def test_points_that_were_not_shown_or_are_of_one_document_are_no_relation():
    made = [{"left": 1, "right": 99, "type": "parallel", "reason": LIFTS},
            {"left": 1, "right": 2, "type": "parallel", "reason": LIFTS}]  # fmt: skip
    run, _ = await planned(planning(relations=made))
    unseen, same, _ = related(run).dropped
    assert related(run).relations == () and "not shown" in unseen and "same document" in same


async def test_a_contradiction_that_rules_have_found_is_shown_to_the_model_and_not_told_twice():
    made = {"left": 1, "right": 4, "type": "contradiction", "reason": "They differ about the crane log of the wharf."}
    run, model = await planned(planning(relations=[made]))
    assert "contradict each other: 1 and 4" in model.asked("relate")[0]
    assert [each.by for each in state.relations(run) if each.type is RelationType.contradiction] == ["rules"]


async def test_every_point_has_a_place_also_what_the_plan_leaves_out():
    run, _ = await planned(planning(paragraphs=[{"topic": "the crane", "points": [2, 5, 77]}]))
    spine = state.spine(run)
    assert spine and [theme.name for theme in spine.themes] == ["the crane", ""]
    told = [id for theme in spine.themes for id in theme.insights]
    assert sorted(told) == sorted(each.id for each in state.points(run))


async def test_a_topic_or_theme_that_brings_a_name_of_its_own_or_an_instruction_is_dropped():
    paragraphs = [{"topic": "what Umberto Vance said in 1871", "points": [1]}, {"topic": INSTRUCTION, "points": [2]}]
    run, _ = await planned(planning(paragraphs=paragraphs, theme="The wharf of Umberto Vance"))
    spine = state.spine(run)
    assert spine and spine.theme == "" and not any(theme.name for theme in spine.themes)
    assert [INSTRUCTION in each for each in related(run).dropped[:3]] == [False] * 3
    assert "no document has" in related(run).dropped[0] and "Umberto" in related(run).dropped[0]


async def test_a_theme_may_begin_with_a_word_that_no_document_has_and_is_judged_as_a_heading():
    theme = "Compact cranes make the work of the wharf lighter"
    plan_ = planning(theme=theme, paragraphs=[{"topic": "Sturdy hooks", "points": [2, 5]}])
    run, model = await planned(plan_)
    spine = state.spine(run)
    assert spine and spine.theme == theme and spine.themes[0].name == "Sturdy hooks"
    assert "(heading, cites" in model.asked("check")[0] and theme in model.asked("check")[0]


async def test_a_theme_that_does_not_follow_is_dropped_and_said():
    paragraphs = [{"topic": "the crane", "points": [2, 5]}]
    line = planning(theme="Cranes are the ruin of the wharf", paragraphs=paragraphs)
    run, _ = await planned(line, judges=verdicts("unsupported", why="no ruin is named"))
    spine = state.spine(run)
    assert spine and not spine.theme and spine.themes[0].name == "the crane"
    assert "no ruin is named" in related(run).dropped[0]


async def test_a_comparison_needs_two_documents_and_a_question_that_stands_alone():
    asked = "How are containers lifted by the cranes of the wharf?"
    comparisons = [
        {"question": asked, "points": [2, 5]},
        {"question": "How is the crane log of the wharf kept?", "points": [1, 2]},
        {"question": "What do these documents say?", "points": [1, 4]},
    ]
    run, _ = await planned(planning(comparisons=comparisons))
    (question,) = [each for each in state.questions(run) if each.kind is QuestionKind.comparative]
    assert question.text == asked and question.documents == ("a", "b")
    one, other, few = related(run).dropped
    assert few == "2 of 3 questions that compare the documents: none was proposed"
    assert "crane log" in one and "fewer than two documents" in one
    assert "these documents" in other and "does not name" in other


async def test_a_question_that_names_what_it_asks_about_may_speak_of_its_paper():
    asked = "What is AutoGen used for in its paper and in the case study on MATH?"
    run, _ = await planned(planning(comparisons=[{"question": asked, "points": [2, 5]}]))
    assert [each.text for each in state.questions(run) if each.kind is QuestionKind.comparative] == [asked]


async def test_a_plan_with_too_few_questions_is_asked_for_more_once():
    few = [{"question": "How do the cranes of the wharf compare?", "points": [2, 5]}]
    more = [few[0] | {"question": f"How do the {each} of the wharf compare?"} for each in ("hooks", "beams", "funds")]

    def line(text: str, schema: Any) -> Any:
        return planning(comparisons=more if "3 to 5 questions are wanted" in text else few)(text, schema)

    run, model = await planned(line)
    assert len([each for each in state.questions(run) if each.kind is QuestionKind.comparative]) == 3
    assert len(model.asked("relate")) == 2


async def test_five_comparisons_are_asked_and_the_others_are_named():
    kinds = "cranes hooks beams drivers repairs steps funds".split()
    comparisons = [{"question": f"How do the {each} of the wharf compare?", "points": [2, 5]} for each in kinds]
    run, _ = await planned(planning(comparisons=comparisons))
    asked = [each for each in state.questions(run) if each.kind is QuestionKind.comparative]
    assert len(asked) == plan.COMPARISONS and "2 more questions" in related(run).dropped[-1]


async def test_what_rules_found_to_contradict_each_other_is_listed_once():
    """Also where a model notes it of other sentences of the same two passages."""
    made = {"left": 2, "right": 5, "type": "contradiction", "reason": "D1 keeps its log for 30 days, D2 for 90 days."}
    run, _ = await planned(planning(relations=[made, made | {"left": 3, "right": 6, "reason": LIFTS}]))
    assert len([each for each in state.relations(run) if each.type is RelationType.contradiction]) == 2
    assert "found it already" in related(run).dropped[0]


async def test_a_plan_that_nobody_makes_leaves_every_point_in_one_paragraph():
    run, _ = await planned(lambda text, schema: {"wrong": 1})
    spine = state.spine(run)
    assert spine and len(spine.themes) == 1 and len(spine.themes[0].insights) == len(state.points(run))
    assert spine.fallback and related(run).relations == ()


async def test_many_documents_are_planned_in_groups_and_no_request_is_too_long():
    many = [
        document(f"d{n:02}", f"The crane of berth {n} lifts {n + 3} containers an hour. {KEPT_A}") for n in range(40)
    ]
    run, model = await planned(_plain, *many, window=4096)
    assert len(model.asked("relate")) > 1 and model.largest() <= 4096
    spine = state.spine(run)
    assert spine and {doc for theme in spine.themes for doc in theme.documents} == {each.id for each in many}
    assert f"in {len(model.asked('relate'))} requests" in state.compared(run)


def _plain(text: str, schema: Any) -> Any:
    from doubles.synthesis_replies import relate

    return relate(text, schema) | {"relations": []}
