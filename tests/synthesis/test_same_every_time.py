"""Whatever ends first, and in whatever order a set has its members: a synthesis goes the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mills import document, drawn, evidence, sentences
from quay import fill, opened, synthesised, wish

from assay.answer.evidence_text import Sources
from assay.core.account import Approach, Pipeline
from assay.core.events import Checked, Drafted, Gathered, PassagesChosen
from assay.core.run import Run
from assay.core.types import Block, Claim, Shape, Verdict
from assay.governance.replay import replay
from assay.synthesis import pipeline
from assay.synthesis.pipeline import Stage
from assay.synthesis.writing import rewrite
from assay.testing import ChatServer
from assay.testing.synthesis_replies import synthesis_model
from assay.workspace.ask import run_context_for

SCRIPT = """
from assay.synthesis.questioning.subjects import own
from assay.evidence.weigh import best_sentence
from assay.core.types import Passage
words = [f"w{n}" for n in range(7)]
print([repr(own(frozenset(words), {word: (n * k) % 7 + 1 for n, word in enumerate(words)}, 7)) for k in range(1, 7)])
rare = {f"w{n}": 0.1 + n / 30 for n in range(7)}
text = "W0 w1 w2 w3 w4 w5 w6 one. W6 w5 w4 w3 w2 w1 w0 two."
print(best_sentence(Passage("p", "d", text, 0, len(text)), rare).start)
"""


@pytest.mark.long
def test_what_a_document_speaks_of_weighs_the_same_in_every_process():
    told = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(1, 5)
    }
    assert len(told) == 1


DOCS = [document(1), document(2)]


def drafted(*claims: Claim) -> Run:
    return drawn(DOCS, Pipeline.summary).then(Drafted((Block(claims),), Shape.prose))


def test_claims_that_do_not_hold_are_revised_in_reading_order_whichever_verdict_came_first():
    wrong = [Claim(f"Claim {n}.", ("k",), Verdict.unsupported) for n in range(3)]
    run = drafted(*wrong)
    for place in (2, 0, 1):
        run = run.then(Checked(place, wrong[place]))
    assert [place for place, _ in run.unsupported] == [0, 1, 2]


def test_a_title_that_looks_like_a_label_is_not_taken_for_one():
    told = [evidence(each, sentences(each)[0]) for each in DOCS]
    claims = [Claim(each.quote.text, (each.key,), Verdict.supported) for each in told]
    run = drafted(*claims)
    for place, claim in enumerate(claims):
        run = run.then(Checked(place, claim))
    matter = rewrite.verified_narrative(
        run, Sources({"d001": "Report on Birk North mill", "d002": "Report on Corley North mill"})
    )
    titles = {"d001": ("Mills in D2 and after",), "d002": ("What D1 leaves out",)}
    matter = _titled(matter, titles)
    both = "D1 says the wheel of Birk North mill was repaired in 1801, and D2 that of Corley North mill in 1802."
    reply = rewrite.TranslationReply(sentences=[rewrite.TranslationSentenceReply(text=both, claims=[1, 2])])
    ((claim, places),) = rewrite.read(reply, matter, (0, 1))
    assert places == (0, 1)
    assert claim.text.startswith("“Mills in D2 and after” says") and "and “What D1 leaves out” that" in claim.text


def _titled(matter: rewrite.VerifiedNarrative, titles: dict[str, tuple[str, ...]]) -> rewrite.VerifiedNarrative:
    from dataclasses import replace

    return replace(matter, titles=titles)


@pytest.mark.long
async def test_a_replay_does_not_mind_in_which_order_verdicts_came(tmp_path: Path):
    await fill(tmp_path / "w")
    with ChatServer(synthesis_model(), window=8192) as server, opened(tmp_path / "w", server) as workspace:
        run = await synthesised(workspace, wish(questions=1))
        events = list(run.events)
        (first, second, *_) = [place for place, event in enumerate(events) if isinstance(event, Checked)]
        events[first], events[second] = events[second], events[first]
        turned = Run(run.id, tuple(events))
        assert turned.checked == run.checked
        assert (await replay(turned, await run_context_for(workspace.context, turned))).differences == ()


@pytest.mark.long
async def test_a_run_killed_between_what_an_agent_found_and_what_it_kept_weighs_nothing_anew(tmp_path: Path):
    await fill(tmp_path / "w")
    with ChatServer(synthesis_model(), window=8192) as server, opened(tmp_path / "w", server) as workspace:
        run = await synthesised(workspace, wish(approach=Approach.agent, questions=1))
    places = [place for place, event in enumerate(run.events) if isinstance(event, PassagesChosen | Gathered)]
    assert places
    assert Stage.WEIGH not in {pipeline.next_stage(Run(run.id, run.events[: place + 1])) for place in places}
