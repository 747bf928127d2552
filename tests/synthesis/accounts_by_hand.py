"""Accounts made by hand, of as many documents as wanted, in words that a real one might have. No model and no workspace."""

from __future__ import annotations

from itertools import pairwise

from assay.core.synthesis import (
    EXECUTIVE,
    EXPERT,
    PLAIN,
    Brief,
    Coverage,
    Diagnostics,
    Insight,
    Pipeline,
    Portrait,
    Question,
    QuestionKind,
    Readability,
    Relation,
    RelationSide,
    RelationType,
    RerankerComparison,
    SpineSentence,
    Synthesis,
    Theme,
    TranslatedParagraph,
    TranslatedSentence,
    Translation,
)
from assay.core.types import Answer, Block, Claim, Evidence, Outcome, Passage, Quote, Shape, Usage, Verdict

RIVERS = ("Wend", "Oster", "Lavant", "Tarn", "Mole", "Ember", "Sile", "Brack", "Colne", "Yar")
TOPICS = (
    (
        "Gauges",
        "Radar gauges on the {river}: what {n} winters of readings show",
        "How is the water level measured, and how exact is it?",
        "A radar gauge above the {river} reads the level every {n} minutes, within {m} millimetres of a hand reading.",
        "Ice on the sensor's horn caused {n} of the {m} gaps in the record, most of them in January.",
    ),
    (
        "Forecasts",
        "Forecasting floods of the {river} from upstream levels and rain",
        "How far ahead is a flood forecast, and how often is the forecast wrong?",
        "The model of the {river} forecasts the peak {n} hours ahead; one forecast in {m} was wrong by more than 20 cm.",
        "Rain that falls on frozen ground reaches the {river} {n} hours sooner than the model expects.",
    ),
    (
        "Warnings",
        "Who hears the siren? Warnings along the {river} and who acted on them",
        "Who is warned, by what means, and who acts on it?",
        "Sirens along the {river} were heard by {m} per cent of households; text messages reached {n} in ten.",
        "Households that had been warned twice without a flood moved their cars {n} times less often.",
    ),
    (
        "Upkeep",
        "Keeping stations alive: spare parts, batteries and visits on the {river}",
        "What does upkeep take, and what fails first?",
        "Each station on the {river} is visited {n} times a year; batteries last {m} months and fail first.",
        "A visit costs more than the part that it replaces, so stations of the {river} carry {n} spare batteries.",
    ),
    (
        "Costs",
        "What a warning costs and what it saves: an account for the {river} valley",
        "What does the warning system cost, and what does it save?",
        "The system of the {river} valley costs {m} thousand a year and has saved about {n} times as much in damages.",
        "False alarms on the {river} cost {n} working days in all, most of them in shops near the bridge.",
    ),
    (
        "Rules",
        "When must a mayor be told? Duties and delays under the rules for the {river}",
        "Who has to be told, how soon, and who decides?",
        "The rules for the {river} give the duty officer {n} minutes to tell the mayor, who alone may close the bridge.",
        "In {m} of the cases that were looked at, the mayor of a town on the {river} was told {n} minutes late.",
    ),
)
REASONS = {
    RelationType.contradiction: "They give different figures for the same thing: {a} and {b}.",
    RelationType.extension: "The second takes the first one's finding to a longer record.",
    RelationType.improvement: "The second removes a weakness that the first one names.",
    RelationType.complement: "One measures what the other takes as given.",
    RelationType.parallel: "Both find the same on rivers that have nothing to do with each other.",
}
TURNS = (
    RelationType.parallel,
    RelationType.contradiction,
    RelationType.complement,
    RelationType.extension,
    RelationType.complement,
    RelationType.improvement,
    RelationType.parallel,
)
MODEL = "a-model"


def account(documents: int, *, pipeline: Pipeline = Pipeline.synthesis, model: str = MODEL) -> Synthesis:
    """An account of so many documents. The last one can not be read; the one before says nothing; of few, none is so."""
    ids = tuple(f"doc{place}" for place in range(1, documents + 1))
    told = ids if documents < 6 else ids[:-2]
    portraits = tuple(_portrait(place, doc, doc in told) for place, doc in enumerate(ids))
    topics = TOPICS[: max(1, min(len(TOPICS), documents))]
    questions = _questions(ids, topics)
    evidence = tuple(
        _evidence(place, doc, question.id, turn)
        for place, doc in enumerate(told)
        for turn, question in enumerate(_asked_of(place, questions))
    )
    by_question = {each.id: tuple(own.key for own in evidence if own.question == each.id) for each in questions}
    insights = tuple(
        Insight(
            f"{each.question}-D{ids.index(each.quote.doc_id) + 1}",
            each.question,
            each.quote.doc_id,
            _claim(each, model),
        )
        for each in evidence
    )
    deep = pipeline is Pipeline.synthesis
    relations = _relations(insights, {each.key: each for each in evidence}, model) if deep else ()
    themes = _themes(told, ids, documents) if deep else ()
    answer = _narrative(insights, themes, model)
    tellings = (_plain(answer), _executive(answer)) if model else ()
    counted = {tie.value: sum(each.type is tie for each in relations) for tie in RelationType}
    return Synthesis(
        run="r-2026-01",
        brief=Brief(
            pipeline, ids, "How are people beside small rivers warned of floods?", audiences=(EXPERT, PLAIN, EXECUTIVE)
        ),
        question="How are people beside small rivers warned of floods?",
        made_on="2026-01-12",
        models=(model,) if model else (),
        documents=portraits,
        questions=questions,
        answers=by_question,
        evidence=evidence,
        insights=insights if deep else (),
        relations=relations,
        pairing=f"for each question the pairs whose insights are nearest, at most 3 for each document: {len(relations)} pairs"
        if deep
        else "",
        theme="A warning is only as good as its weakest link: gauge, forecast, siren or duty officer." if deep else "",
        spine=_spine(insights, ids) if deep else (),
        themes=themes,
        narrative=answer,
        readability=Readability(420, 24.1, 38.0, 13.9),
        translations=tellings,
        ledger=tuple(_row(doc, evidence, insights, relations, answer, told) for doc in ids),
        diagnostics=Diagnostics(
            counted if deep else {},
            "Half of the relations are parallels and complements; six contradictions are worth reading first."
            if deep
            else "",
            ("q2-D1 and q2-D3 (extension): the words given for D3 do not stand in D3",) if deep else (),
            (RerankerComparison("late", 54, 54), RerankerComparison("none", 54, 31)),
        ),
        notes=("3 quotations that a model gave were not in the passage; its best sentence stands instead.",)
        if model
        else ("Made without a language model: what stands here are quotations, chosen and ordered by rule.",),
        usage=Usage(142, 310_400, 41_250, 0.4123, 388.0) if model else Usage(seconds=21.4),
    )


def _figures(place: int, turn: int) -> tuple[int, int]:
    return 3 + (place * 7 + turn * 5) % 11, 12 + (place * 13 + turn * 3) % 67


def _topic(place: int):
    return TOPICS[place % len(TOPICS)]


def _river(place: int) -> str:
    return RIVERS[(place // len(TOPICS) + place) % len(RIVERS)]


def _portrait(place: int, doc: str, readable: bool) -> Portrait:
    title = _topic(place)[1].format(river=_river(place), n=3 + place % 8)
    if not readable and place % 2:
        return Portrait(doc, f"scan-{place}.pdf", empty="a scan without text; nothing in it could be read")
    words = _said(place, 0)
    abstract = (Quote(doc, 0, len(words), words),)
    authors = ("Survey Office",) if place % 3 else ("Valley Water Board", "Institute for Rivers")
    return Portrait(doc, title, authors, str(2012 + place % 13), abstract, made=place % 4 == 1)


def _said(place: int, turn: int) -> str:
    few, more = _figures(place, turn)
    return _topic(place + turn // 2)[3 + turn % 2].format(river=_river(place), n=few, m=more)


def _questions(ids: tuple[str, ...], topics: tuple[tuple[str, ...], ...]) -> tuple[Question, ...]:
    own = [
        Question(
            f"q{place}",
            topic[2],
            QuestionKind.workings if place % 2 else QuestionKind.theme,
            tuple(doc for at, doc in enumerate(ids) if at % len(TOPICS) == place - 1) or ids[:1],
        )
        for place, topic in enumerate(topics, 1)
    ]
    both = Question(
        f"q{len(own) + 1}",
        "Where does the chain from gauge to household break most often?",
        QuestionKind.comparative,
        ids,
    )
    last = Question(f"q{len(own) + 2}", "What is said of ice?", QuestionKind.follow_up, ids[-1:])
    return (*own, both, last)


def _asked_of(place: int, questions: tuple[Question, ...]) -> tuple[Question, ...]:
    """The questions that a document answers: its own topic's, the next topic's and the comparative one."""
    own = questions[:-2]
    return tuple(dict.fromkeys((own[place % len(own)], questions[-2], own[(place + 1) % len(own)])))


def _evidence(place: int, doc: str, question: str, turn: int) -> Evidence:
    words = _said(place, turn)
    text = f"As the survey notes, {words} The reasons are given below."
    start = 1000 * (turn + 1)
    passage = Passage(f"{doc}-p{turn}", doc, text, start, start + len(text), "Results › Readings", 2 + turn)
    at = start + text.index(words)
    return Evidence(f"k{place:03d}{turn}", passage, Quote(doc, at, at + len(words), words), 8.0 - turn, question)


def _claim(each: Evidence, model: str) -> Claim:
    if not model:
        return Claim("", (each.key,), Verdict.supported, quote=each.quote)
    return Claim(each.quote.text, (each.key,), Verdict.supported)


def _relations(insights: tuple[Insight, ...], evidence: dict[str, Evidence], model: str) -> tuple[Relation, ...]:
    """Each insight with the next ones to the same question, in types by turns."""
    found: list[Relation] = []
    for question in dict.fromkeys(each.question for each in insights):
        own = [each for each in insights if each.question == question]
        far = [(own[place], own[(place * 5 + 3) % len(own)]) for place in range(0, len(own), 4)]
        for place, (left, right) in enumerate([*pairwise(own), *(pair for pair in far if pair[0] is not pair[1])]):
            type_ = TURNS[(place + len(found)) % len(TURNS)]
            sides = tuple(
                RelationSide(each.id, each.doc_id, each.claim.cites[0], evidence[each.claim.cites[0]].quote)
                for each in (left, right)
            )
            reason = REASONS[type_].format(a="9 hours", b="14 hours")
            found.append(Relation(sides[0], sides[1], type_, reason, model or "rules"))
    return tuple(found)


def _themes(told: tuple[str, ...], ids: tuple[str, ...], documents: int) -> tuple[Theme, ...]:
    if documents < 20:
        return (Theme("", ids),)
    return tuple(
        Theme(topic[0], tuple(doc for at, doc in enumerate(ids) if at % len(TOPICS) == place))
        for place, topic in enumerate(TOPICS)
    )


def _narrative(insights: tuple[Insight, ...], themes: tuple[Theme, ...], model: str) -> Answer:
    if len(themes) > 1:
        blocks = tuple(
            Block(tuple(each.claim for each in insights if each.doc_id in theme.documents), theme.name)
            for theme in themes
        )
    else:
        claims = tuple(each.claim for each in insights)
        blocks = tuple(Block(claims[at : at + 5]) for at in range(0, len(claims), 5))
    return Answer("How are people warned?", blocks, Outcome.answered, Shape.prose if model else Shape.list)


def _plain(answer: Answer) -> Translation:
    sentences = tuple(
        TranslatedSentence(claim.words, (place,), claim.cites, True, "it named a figure that is not in the claim")
        if place % 5 == 4
        else TranslatedSentence(f"Put simply: {claim.words}", (place,), claim.cites)
        for place, claim in enumerate(answer.claims)
    )
    parts = tuple(
        TranslatedParagraph(
            sentences[at : at + 4],
            "A gauge is like a bath with marks on its side: you see how full it is at a glance." * (at == 0),
        )
        for at in range(0, len(sentences), 4)
    )
    return Translation(PLAIN, parts, Readability(420, 24.1, 38.0, 13.9), Readability(380, 14.2, 61.5, 8.2), by=MODEL)


def _executive(answer: Answer) -> Translation:
    kept = tuple(
        TranslatedSentence(claim.words, (place,), claim.cites)
        for place, claim in enumerate(answer.claims)
        if place % 3 == 0
    )
    out = tuple(place for place in range(len(answer.claims)) if place % 3)
    after = Readability(140, 17.0, 52.0, 10.1)
    return Translation(
        EXECUTIVE, (TranslatedParagraph(kept),), Readability(420, 24.1, 38.0, 13.9), after, out, by=MODEL
    )


def _spine(insights: tuple[Insight, ...], ids: tuple[str, ...]) -> tuple[SpineSentence, ...]:
    """A few sentences that name every document between them."""
    few = min(4, len(ids))
    groups = [ids[at::few] for at in range(few)]
    said = (
        "Levels are measured well almost everywhere",
        "forecasts lose their worth on frozen ground",
        "sirens reach fewer people than messages do",
        "and duties that nobody can meet in time undo the rest",
    )
    cites = [tuple(each.claim.cites[0] for each in insights if each.doc_id in group)[:3] for group in groups]
    return tuple(
        SpineSentence(Claim(f"{words}.", cited, Verdict.supported), group)
        for words, cited, group in zip(said, cites, groups, strict=False)
    )


def _row(doc: str, evidence, insights, relations, answer: Answer, told: tuple[str, ...]) -> Coverage:
    keys = {each.key for each in evidence if each.quote.doc_id == doc}
    return Coverage(
        doc,
        3,
        len(keys),
        sum(each.doc_id == doc for each in insights),
        sum(bool(keys & set(claim.cites)) for claim in answer.claims),
        sum(doc in (each.left.doc_id, each.right.doc_id) for each in relations),
        "" if doc in told else "nothing in it was found to bear on the questions",
    )
