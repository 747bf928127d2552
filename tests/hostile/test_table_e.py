"""Errors of the search and of the answer, and what happens then: a test for each, over the sample corpus and real HTTP."""

from __future__ import annotations

import re
from typing import Any

import pytest
from doubles import (
    ScriptedCall,
    ScriptedCalls,
    argues,
    calls,
    enough,
    keeps,
    missing,
    one_step,
    passages_in,
    rewrites,
    role_of,
    supported,
    verdicts,
    writes,
)
from gateway import ANSWER, OVERTAKES, QUESTION, WAITED, prompts_of, run_with, script, searching, told
from hostile_runs import of

from assay.agent.toolbox import TOOLS
from assay.core.events import Checked, Compacted, Critiqued, Decided, Mode, ModelReplied, StopReason, ToolRan
from assay.core.types import Outcome, Verdict
from assay.models.cost import prompt_tokens
from assay.models.llm import Message, Prompt
from assay.workspace.facade import Workspace

pytestmark = pytest.mark.long

# --- the search -----------------------------------------------------------------------------------------------------


async def test_iteration_cap_without_enough_evidence_gives_the_best_answer_marked_incomplete(filled: Workspace):
    model = script(
        judge=missing("the release"),
        decide=searching("queue of measurements", "cabinet computer"),
        check=supported(missing=["the release"]),
    )
    ended, _ = await run_with(filled, model)
    run = ended.run
    assert run.rounds == 3 and run.stopped and run.stopped.reason is StopReason.rounds
    assert run.answer and run.answer.claims and run.answer.outcome is Outcome.partial
    assert run.answer.stopped == StopReason.rounds
    assert "Incomplete evidence" in told(run, filled)
    stored = filled.questions.run(run.id)  # what a reviewer finds
    assert stored.answer and stored.answer.outcome is Outcome.partial and stored.judged and stored.judged.missing


async def test_a_search_that_finds_nothing_is_told_to_the_agent_which_reformulates(filled: Workspace):
    model = script(
        weigh=keeps(WAITED, OVERTAKES),
        plan=one_step(QUESTION, "colour of the minister's hat"),
        judge=lambda text, schema: (enough() if "new order of sending" in text else missing("release"))(text, schema),
        decide=[calls("search", query="late alarm", since="2031-01-01"), calls("search", query="new order of sending")],
        write=writes("From release 4.2 on, alarm messages overtake all measurements. [{overtake}]"),
    )
    ended, server = await run_with(filled, model)
    run = ended.run
    empty = next(each for each in of(run, ToolRan) if not each.found)
    assert not empty.error and empty.note  # with a hint, and no error
    second = prompts_of(server, "decide")[1]
    assert "0 passages" in second and "late alarm" in second
    assert run.calls[-1].arguments["query"] == "new order of sending"
    assert run.answer and run.answer.claims


async def test_a_search_that_finds_nothing_to_the_end_leaves_the_gap_said_in_the_answer(filled: Workspace):
    model = script(weigh=keeps("words that stand nowhere"), decide=searching("other words", "yet others"))
    ended, _ = await run_with(filled, model)
    run = ended.run
    assert not run.evidence and run.answer
    assert run.answer.outcome is Outcome.abstained and not run.answer.claims
    assert run.answer.gaps and run.answer.searched
    assert of(run, ModelReplied)[-1].role != "write"  # nothing to write from


async def test_the_same_call_again_is_noticed_by_exact_match_and_the_loop_moves_on(filled: Workspace):
    model = script(judge=missing("the release"), decide=calls("search", query="radio link of the site"))
    ended, _ = await run_with(filled, model, Mode.balanced)
    again = [each for each in of(ended.run, Decided) if each.refused]
    assert again and "was made before" in again[0].refused[0]
    assert sum(call.arguments["query"] == "radio link of the site" for call in ended.run.calls) == 1
    assert ended.run.stopped and ended.run.stopped.reason is StopReason.repeated
    assert ended.run.answer and ended.run.answer.claims


async def test_the_same_call_again_is_noticed_by_near_exact_match_and_the_loop_moves_on(filled: Workspace):
    model = script(
        judge=missing("the release"),
        decide=[
            calls("search", query="radio link of the site"),
            calls("search", query="The site's radio links", k=5)
            + calls("search", query="stronger bracket for the aerial")
            + calls("search", query="linked: radio, SITES?"),
        ],
    )
    ended, _ = await run_with(filled, model)
    own = [each for each in of(ended.run, Decided) if each.by != "rules"]
    assert [[call.arguments["query"] for call in each.calls] for each in own] == [
        ["radio link of the site"],
        ["stronger bracket for the aerial"],
    ]
    assert [len(each.refused) for each in own] == [0, 2]
    assert ended.run.answer and ended.run.answer.claims


MALFORMED = (
    ScriptedCall("search", '{"query": "radio li'),
    ScriptedCall("search", {"quarry": "radio link"}),
    ScriptedCall("search", {"query": "radio link", "k": "many"}),
    ScriptedCall("search", '["radio link"]'),
)


@pytest.mark.parametrize("bad", MALFORMED, ids=["cut off", "unknown argument", "wrong type", "a list"])
async def test_a_malformed_tool_call_is_sent_back_with_the_exact_error_and_mended(filled: Workspace, bad: ScriptedCall):
    model = script(
        judge=lambda text, schema: (enough() if "radio mast" in text else missing("the release"))(text, schema),
        decide=[ScriptedCalls((bad,)), calls("search", query="radio mast")],
    )
    ended, server = await run_with(filled, model)
    again = prompts_of(server, "decide")[1]
    assert "That reply cannot be used: " in again
    assert any(words in again for words in ("never closed", "takes no argument 'quarry'", "k", "should be an object"))
    assert ended.run.calls[-1].arguments["query"] == "radio mast"
    assert ended.run.answer and ended.run.answer.claims


@pytest.mark.parametrize("bad", MALFORMED, ids=["cut off", "unknown argument", "wrong type", "a list"])
async def test_a_malformed_tool_call_is_sent_back_three_times_at_most_then_the_run_ends_with_what_it_has(
    filled: Workspace, bad: ScriptedCall
):
    model = script(judge=missing("the release"), decide=ScriptedCalls((bad,)), check=supported(missing=["the release"]))
    ended, server = await run_with(filled, model)
    assert server.counts["decide"] == 1 + 3
    assert ended.run.stopped and ended.run.stopped.reason is StopReason.unusable
    assert ended.run.answer and ended.run.answer.claims and ended.run.answer.outcome is Outcome.partial


async def test_a_tool_that_does_not_exist_is_refused_with_the_list_of_tools_and_never_executed_as_something_else(
    filled: Workspace,
):
    model = script(judge=missing("the release"), decide=calls("SEARCH", query="radio") + calls("delete_all", query="x"))
    ended, server = await run_with(filled, model)
    for again in prompts_of(server, "decide")[1:]:
        assert "There is no tool called 'SEARCH'" in again
        assert all(name in again.partition("There are: ")[2] for name in TOOLS)
    assert {call.tool for call in ended.run.calls} <= TOOLS.keys()
    assert ended.run.answer and ended.run.answer.claims


async def test_a_scratchpad_too_large_is_compressed_and_its_keys_are_kept(filled: Workspace):
    window = 4608
    queries = [
        f"{word} at the intake" for word in ("turbidity", "nitrate", "aerial", "pump", "sand", "notice", "gauge")
    ]

    def weigh(text: str, schema: Any) -> Any:
        """Little of what is found answers the question; the rest is kept as well, with low scores."""
        reply: Any = keeps(WAITED, OVERTAKES, "nitrate")(text, schema)
        for each in reply["passages"]:
            each["score"] = 4 if each["quote"] == "nitrate" else 9
        return reply

    model = script(judge=missing("the release"), decide=searching(*queries), weigh=weigh)
    ended, server = await run_with(filled, model, Mode.thorough, search_rounds=8, llm_window=window)
    run = ended.run
    compacted = of(run, Compacted)
    assert compacted
    late = prompts_of(server, "decide")[-1]
    assert "Searched earlier" in late and "turbidity" in late  # in short
    assert "turbidity at the intake'): " not in late  # and no longer in full
    first = of(run, ToolRan)[0].found
    cited = [each for each in run.evidence if run.answer and each.key in run.answer.cited_keys]
    assert cited and {each.passage.id for each in cited} <= {found.passage.id for found in run.found}
    assert any(each.passage.id in {found.passage.id for found in first} for each in cited)
    for request in server.requests:
        messages = tuple(Message(each["role"], each["content"]) for each in request["messages"])
        if role_of(request)[0]:
            assert prompt_tokens(Prompt(messages)) + request["max_tokens"] <= window, role_of(request)


# --- the answer -----------------------------------------------------------------------------------------------------


RIGHT = f"From release 4.2 on, alarm messages overtake all measurements. [{{{OVERTAKES}}}]"


async def test_a_citation_to_the_wrong_source_is_caught(filled: Workspace):
    """What cites evidence that says something else, or a key that nobody gathered, cites what does say it, or is gone."""

    def judge(text: str, schema: Any) -> Any:
        """Reads what is cited."""
        reply: Any = supported()(text, schema)
        says = {key: " ".join(words.split()) for key, words in passages_in(text).items()}
        for number, key, words in re.findall(r"^Claim (\d+) \(cites (\w+)\): (.*)$", text, re.MULTILINE):
            right = ("4.2" in words) == (OVERTAKES in says[key]) and "green" not in words
            reply["rulings"][int(number) - 1]["verdict"] = "supported" if right else "unsupported"
        return reply

    model = script(
        write=writes(
            f"Since release 4.2, alarms go before the measurements. [{{{WAITED}}}]",
            "From release 4.2 on, alarm messages overtake measurements that wait. [0badc0de]",
            f"The gateway cabinet was painted green in 2019. [{{{WAITED}}}]",
            ANSWER,
        ),
        check=judge,
        revise=rewrites(RIGHT),
    )
    ended, server = await run_with(filled, model)
    run = ended.run
    says = {each.key: " ".join(each.passage.text.split()) for each in run.evidence}
    assert run.answer and len(run.answer.claims) > 1 and server.counts["write"] == 2  # one request revises them all
    for claim in run.answer.claims:
        assert "green" not in claim.words
        wanted = OVERTAKES if "4.2" in claim.words else WAITED
        assert claim.cites and all(wanted in says[key] for key in claim.cites), claim
    first = {event.place: event.claim.verdict for event in reversed(of(run, Checked))}
    wrong, none = Verdict.unsupported, Verdict.uncited
    assert [first[place] for place in range(4)] == [wrong, none, wrong, Verdict.supported]
    assert run.draft and "0badc0de" in run.draft.stray


async def test_no_judge_lets_pass_what_cites_nothing_that_was_gathered_or_a_figure_that_is_nowhere(filled: Workspace):
    model = script(
        write=writes(
            "The gateway cabinet was moved to Norway. [deadbeef]",
            f"The alarm waited for 83 minutes. [{{{WAITED}}}]",
            ANSWER,
        ),
        check=verdicts("supported"),  # the model that checks would let everything pass
        revise=argues("It is so."),
    )
    ended, _ = await run_with(filled, model)
    run = ended.run
    assert run.answer and [claim.text for claim in run.answer.claims] == [ANSWER.partition(" [")[0]]
    assert run.draft and "deadbeef" in run.draft.stray


async def test_a_critique_that_always_says_continue_meets_the_cap(filled: Workspace):
    model = script(
        check=supported(missing=["which release it would have been"], search="which release it would have been"),
        judge=missing("the release"),
        decide=lambda text, schema: calls("search", query=f"release number {len(text)}"),
    )
    ended, server = await run_with(filled, model, Mode.balanced)
    run = ended.run
    assert sum(not each.final for each in of(run, Critiqued)) <= 1
    assert run.rounds <= 5 and run.answer and run.answer.claims
    assert server.counts["write"] <= 2


async def test_a_critique_that_always_says_continue_has_one_search_made_after_a_search_that_was_enough(
    filled: Workspace,
):
    model = script(
        check=supported(missing=["which release it would have been"], search="which release it would have been"),
        decide=lambda text, schema: calls("search", query=f"release number {len(text)}"),
    )
    ended, _ = await run_with(filled, model, Mode.thorough)
    assert [each.final for each in of(ended.run, Critiqued)] == [True], "it brought nothing"
    assert ended.run.rounds <= 10 and ended.run.answer and ended.run.answer.claims
    assert "which release it would have been" in [call.arguments["query"] for call in ended.run.calls]  # the named gap
