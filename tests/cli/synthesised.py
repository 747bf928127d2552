"""A synthesis by hand, event by event: what a view, a line and an account of it are tested with."""

from __future__ import annotations

from assay.core.account import (
    Brief,
    Coverage,
    Insight,
    Pair,
    PairReason,
    Pipeline,
    Portrait,
    Question,
    QuestionKind,
    Readability,
    Relation,
    RelationSide,
    RelationType,
    SpineSentence,
    Theme,
    TranslatedParagraph,
    TranslatedSentence,
    Translation,
)
from assay.core.events import (
    Answered,
    Asked,
    Checked,
    Covered,
    Described,
    Drafted,
    Event,
    Found,
    Gathered,
    InsightsDrawn,
    Merged,
    ModelReplied,
    Paired,
    PassagesChosen,
    Questioned,
    Related,
    RoleModel,
    SpineWritten,
    Translated,
)
from assay.core.run import Run
from assay.core.types import Answer, Block, Claim, Evidence, Outcome, Passage, Quote, Shape, Usage, Verdict

WORDS = {"d1": "The boiler is inspected weekly.", "d2": "The boiler is inspected yearly."}
TITLES = {"d1": "Log of the boiler house", "d2": "Handbook"}
BRIEF = Brief(Pipeline.synthesis, ("d1", "d2"), "the boiler", audiences=("expert", "plain"))
ROLE_MODELS = (RoleModel("write", "large"),)


def quote(doc: str) -> Quote:
    return Quote(doc, 0, len(WORDS[doc]), WORDS[doc])


def evidence(doc: str) -> Evidence:
    passage = Passage(f"p-{doc}", doc, WORDS[doc], 0, len(WORDS[doc]))
    return Evidence(f"k-{doc}", passage, quote(doc), 8.0, "How often?")


def claim(doc: str, verdict: Verdict | None = Verdict.supported) -> Claim:
    return Claim(WORDS[doc], (f"k-{doc}",), verdict)


def insight(doc: str, label: str) -> Insight:
    return Insight(f"q1-{label}", "q1", doc, claim(doc))


QUESTION = Question("q1", "How often is the boiler inspected?", QuestionKind.workings, ("d1", "d2"))
LEFT, RIGHT = RelationSide("q1-D1", "d1", "k-d1", quote("d1")), RelationSide("q1-D2", "d2", "k-d2", quote("d2"))
CONTRADICTION = Relation(LEFT, RIGHT, RelationType.contradiction, "weekly against yearly", "relate@large")
HARD, EASY = Readability(40, 20.0, 40.0, 12.0), Readability(44, 11.0, 70.0, 7.0)
TOLD = Translation(
    "plain", (TranslatedParagraph((TranslatedSentence("It is looked at each week.", (0,), ("k-d1",)),)),), HARD, EASY
)
FAILS = Claim("The boiler is blue.", ("k-d2",), Verdict.unsupported, "the quotation says nothing of it")
ANSWER = Answer("the boiler", (Block((claim("d1"), claim("d2"))),), Outcome.answered)
EVENTS: tuple[Event, ...] = (
    Asked("the boiler", "me", "2026-01-01", seats=ROLE_MODELS, brief=BRIEF),
    ModelReplied("judge", "describe", "large", "r1", "{}", usage=Usage(1, 1_200, 300, 0.0123, 2.5)),
    *(Described(Portrait(doc, title, ("A. Writer",), "2020", made=doc == "d2")) for doc, title in TITLES.items()),
    Questioned(("How often is the boiler inspected?", "Who inspects it?"), "d1", by="questions@large"),
    Questioned(("How often is the boiler looked at?",), "d2", by="questions@large"),
    Questioned(("How do they differ?",), by="comparative@large"),
    Merged((QUESTION, Question("q2", "Who inspects it?", QuestionKind.workings, ("d1",)))),
    PassagesChosen(
        "q1", tuple(Found(evidence(doc).passage, 1, 1.0) for doc in WORDS), 100, "late", {"none": ("p-d1",)}
    ),
    PassagesChosen("q2", (), 100, "late"),
    Gathered((evidence("d1"), evidence("d2")), by="weigh@large", question="q1"),
    Gathered((), ("p-d1",), "weigh@large", question="q2"),
    Covered((Coverage("d1", 2, 1, 0, 0), Coverage("d2", 1, 1, 0, 0)), ("d2",)),
    Questioned(("Who wrote the handbook?",), "d2", 2, "follow_up@large"),
    Merged((Question("q3", "Who wrote the handbook?", QuestionKind.follow_up, ("d2",)),), 2),
    PassagesChosen("q3", (), 40, "late"),
    Gathered((), question="q3"),
    Covered((Coverage("d1", 2, 1, 0, 0), Coverage("d2", 2, 1, 0, 0)), pass_=2),
    InsightsDrawn("q1", (insight("d1", "D1"), insight("d2", "D2")), ("q1-D2",), "insights@large"),
    Paired((Pair("q1-D1", "q1-D2", PairReason.same),), "of each question", 3),
    Related(0, (CONTRADICTION,), ("q1-D1 and q2-D1: no quotation",), "relate@large"),
    SpineWritten(
        "How the boiler is kept", (SpineSentence(claim("d1"), ("d1",)),), (Theme("", ("d1", "d2")),), "spine@large"
    ),
    Drafted((Block((claim("d1", None), claim("d2", None), FAILS)),), Shape.prose, by="narrate@large"),
    Checked(0, claim("d1")),
    Checked(1, claim("d2")),
    Checked(2, FAILS, "check@large"),
    Translated(TOLD),
    Answered(ANSWER),
)


def upto(kind: type) -> Run:
    """The synthesis up to the last event of a kind."""
    last = max(place for place, event in enumerate(EVENTS) if isinstance(event, kind))
    return Run("r1", EVENTS[: last + 1])


WHOLE = Run("r1", EVENTS)
