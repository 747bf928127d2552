"""What differs between two runs: each part by itself, by document span and not by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.core.events import (
    Answered,
    Asked,
    AwaitingReview,
    Call,
    Decided,
    Drafted,
    Event,
    Gathered,
    Mode,
    ModelReplied,
    Planned,
    RoleModel,
    Route,
    Routed,
    ToolRan,
)
from assay.core.run import Run, seal_of
from assay.core.types import (
    Answer,
    Block,
    Claim,
    Evidence,
    Outcome,
    Passage,
    Plan,
    PlanStep,
    Quote,
    Shape,
    Usage,
    Verdict,
)
from assay.governance.difference import PARTS, Change, Difference, DifferencePart, difference, render_difference

TITLES = {"d1": "The tower", "d2": "The lamp"}


def evidence(key: str, doc: str = "d1", start: int = 0, words: str = "31 metres", score: float = 8.0) -> Evidence:
    passage = Passage(f"p-{key}", doc, words, start, start + len(words))
    return Evidence(key, passage, Quote(doc, start, start + len(words), words), score, "How tall?")


def claim(words: str, *cites: str, verdict: Verdict = Verdict.supported) -> Claim:
    return Claim(words, cites, verdict)


def run(name: str = "r1", **other: Event) -> Run:
    """A run with one event of each kind that tells something; `other` takes the place of single ones."""
    answer = Answer("How tall?", (Block((claim("It is 31 metres tall.", "k1"),)),), Outcome.answered)
    events: dict[str, Event] = {
        "asked": Asked("How tall?", "me", "2026-01-01", Mode.quick, seats=(RoleModel("write", "small"),)),
        "routed": Routed(Route.lookup, "one thing"),
        "planned": Planned(Plan((PlanStep("s1", "How tall is the tower?"),))),
        "decided": Decided((Call("c1", "search", {"query": "tower"}),), "first"),
        "ran": ToolRan("c1", ()),
        "gathered": Gathered((evidence("k1"),)),
        "consulted": ModelReplied("write", "write", "small", "r", "", usage=Usage(1, 100, 10, 0.5, 2.0)),
        "answered": Answered(answer),
    }
    return Run(name, tuple({**events, **other}.values()))


def part(a: Run, b: Run, name: str) -> DifferencePart:
    return next(part for part in difference(a, b, TITLES).parts if part.name == name)


def differing(a: Run, b: Run) -> list[str]:
    return [part.name for part in difference(a, b, TITLES).parts if not part.same]


def test_a_run_does_not_differ_from_itself():
    told = difference(run(), run("r2"), TITLES)
    assert told.same and (told.a, told.b) == ("r1", "r2")
    assert tuple(part.name for part in told.parts) == PARTS and all(part.same for part in told.parts)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (
            "question",
            {"asked": Asked("How wide?", "me", "2026-01-01", Mode.quick, seats=(RoleModel("write", "small"),))},
        ),
        (
            "question",
            {"asked": Asked("How tall?", "me", "2026-01-01", Mode.quick, seats=(RoleModel("write", "large"),))},
        ),
        ("route", {"routed": Routed(Route.research, "several things")}),
        ("plan", {"planned": Planned(Plan((PlanStep("s1", "How wide is the tower?"),)))}),
        ("searches", {"decided": Decided((Call("c1", "search", {"query": "lighthouse"}),), "first")}),
        ("searches", {"ran": ToolRan("c1", (), error="refused")}),
        ("evidence", {"gathered": Gathered((evidence("k1", start=5),))}),
        ("evidence", {"gathered": Gathered((evidence("k1", score=3.0),))}),
        ("cost", {"consulted": ModelReplied("write", "write", "small", "r", "", usage=Usage(2, 100, 10, 0.5, 2.0))}),
    ],
)
def test_each_part_is_told_by_itself(name: str, other: dict[str, Event]):
    assert differing(run(), run("r2", **other)) == [name]


def test_the_same_place_is_the_same_evidence_whatever_it_is_called():
    renamed = run("r2", gathered=Gathered((evidence("k9"),)))
    assert "evidence" not in differing(run(), renamed)


def test_the_same_words_in_another_document_are_other_evidence_and_both_are_quoted():
    told = part(run(), run("r2", gathered=Gathered((evidence("k1", doc="d2"),))), "evidence")
    assert told.only_a == ("The tower: “31 metres”",) and told.only_b == ("The lamp: “31 metres”",)


def test_a_claim_with_another_verdict_is_changed_and_one_in_other_words_is_another():
    def answered(*claims: Claim) -> Answered:
        return Answered(Answer("How tall?", (Block(claims),), Outcome.answered))

    doubted = answered(claim("It is  31 Metres tall.", "k1", verdict=Verdict.partial))
    told = part(run(), run("r2", answered=doubted), "claims")
    assert told.changed == (Change("It is 31 metres tall.", "supported; The tower", "partial; The tower"),)
    other = part(run(), run("r2", answered=answered(claim("31 metres.", "k1"))), "claims")
    assert (other.only_a, other.only_b) == (("It is 31 metres tall.",), ("31 metres.",))


def test_what_it_took_is_told_and_makes_no_difference():
    dear = ModelReplied("write", "write", "small", "r", "", usage=Usage(9, 900, 90, 1.5, 20.0))
    told = difference(run(), run("r2", consulted=dear), TITLES)
    assert told.same
    assert Change("tokens in", "100", "900") in told.parts[-1].changed


def test_the_draft_of_a_run_that_waits_for_a_reviewer_is_not_told():
    draft = Answer("How tall?", (Block((claim("A secret draft.", "k1"),)),), Outcome.answered)
    begun = Run("r2", run().events[:-1])
    drafted = begun.then(Drafted(draft.blocks, Shape.prose))
    waiting = drafted.then(AwaitingReview(draft, seal_of(drafted, draft), ("high stakes",)))
    told = difference(run(), waiting, TITLES)
    assert "secret draft" not in repr(told).lower()
    assert part(run(), waiting, "answer").changed == (Change("state", "delivered", "waits for a reviewer"),)
    assert part(run(), waiting, "claims").changed == (Change("claims", "1 delivered", "waits for a reviewer"),)
    assert part(waiting, waiting, "claims").same


def test_a_terminal_shows_what_is_the_same_in_a_line_and_what_differs_below():
    other = run("r2", routed=Routed(Route.research, ""), gathered=Gathered((evidence("k1", doc="d2"),)))
    lines = render_difference(difference(run(), other, TITLES))
    assert lines[:2] == ["a  r1", "b  r2"] and "question: the same" in lines
    at = lines.index("route:")
    assert lines[at + 1 : at + 4] == ["  ~ route", "      a  lookup", "      b  research"]
    at = lines.index("evidence:")
    assert lines[at + 1 : at + 3] == ["  - The tower: “31 metres”", "  + The lamp: “31 metres”"]


def test_a_difference_in_one_part_is_a_difference():
    one = DifferencePart("plan", only_a=("a step",))
    assert not Difference("a", "b", (one,)).same and Difference("a", "b", (replace(one, name="cost"),)).same
