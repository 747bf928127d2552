"""A synthesis by hand, event by event: what a view, a line and an account of it are tested with."""

from __future__ import annotations

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
from assay.core.synthesis import (
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
    return Insight(f"{label}-1", "q1", doc, claim(doc))


QUESTION = Question("q1", "How often is the boiler inspected?", QuestionKind.workings, ("d1", "d2"))
LEFT, RIGHT = RelationSide("D1-1", "d1", "k-d1", quote("d1")), RelationSide("D2-1", "d2", "k-d2", quote("d2"))
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
    *(PassagesChosen("", (Found(evidence(doc).passage, 1, 0.0),), 4, "read in part", document=doc) for doc in WORDS),
    Merged((QUESTION, Question("q2", "Who inspects it?", QuestionKind.workings, ("d1",)))),
    Gathered((evidence("d1"),), by="read@large"),
    InsightsDrawn("", (insight("d1", "D1"),), by="read@large", doc_id="d1"),
    Gathered((evidence("d2"),), by="read@large"),
    InsightsDrawn("", (insight("d2", "D2"),), by="read@large", doc_id="d2"),
    PassagesChosen(
        "q1", tuple(Found(evidence(doc).passage, 1, 1.0) for doc in WORDS), 100, "late", {"none": ("p-d1",)}
    ),
    PassagesChosen("q2", (), 100, "late"),
    Covered((Coverage("d1", 2, 1, 1, 0), Coverage("d2", 1, 1, 1, 0)), ("d2",)),
    InsightsDrawn("", (), by="read@large", doc_id="d2"),
    Covered((Coverage("d1", 2, 1, 1, 0), Coverage("d2", 2, 1, 1, 0)), pass_=2),
    Related(0, (), ()),
    Paired((), "2 sentences were held against each other by rule."),
    Related(1, (CONTRADICTION,), ("parallel between 1 and 2: no",), "relate@large"),
    Merged((Question("q3", "How often is a boiler inspected?", QuestionKind.comparative, ("d1", "d2")),)),
    Paired((), "2 sentences were held against each other by rule. 2 points were compared by a model."),
    SpineWritten("How the boiler is kept", (), (Theme("its care", ("d1", "d2"), ("D1-1", "D2-1")),), "relate@large"),
    Drafted((Block((claim("d1", None), claim("d2", None), FAILS)),), Shape.prose, by="narrate@large"),
    Checked(0, claim("d1")),
    Checked(1, claim("d2")),
    Checked(2, FAILS, "check@large"),
    Translated(TOLD),
    Answered(ANSWER),
)

# What only earlier versions recorded.
EARLIER: tuple[Event, ...] = (
    Questioned(("How often is the boiler inspected?", "Who inspects it?"), "d1", by="questions@large"),
    InsightsDrawn("q1", (insight("d1", "D1"), insight("d2", "D2")), ("q1-D2",), "insights@large"),
    Paired((Pair("q1-D1", "q1-D2", PairReason.same),), "of each question", 3),
    SpineWritten(
        "How the boiler is kept", (SpineSentence(claim("d1"), ("d1",)),), (Theme("", ("d1", "d2")),), "spine@large"
    ),
)


def upto(kind: type) -> Run:
    """The synthesis up to the last event of a kind."""
    last = max(place for place, event in enumerate(EVENTS) if isinstance(event, kind))
    return Run("r1", EVENTS[: last + 1])


WHOLE = Run("r1", EVENTS)
