"""Rewrites claims for another audience: the prompt, the schema of the reply, and which sentences are supported. Pure.

A sentence must follow from the verified claims it covers. Otherwise these claims are kept in their own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict

from assay.answer import claims as stating
from assay.answer import compose
from assay.answer.checking.judge import JUDGE
from assay.answer.checking.source import instruction_terms, share
from assay.answer.evidence_text import Sources
from assay.core.account import EXECUTIVE, PLAIN, TranslatedParagraph, TranslatedSentence, Translation
from assay.core.run import Run
from assay.core.types import Claim, Conflict, Evidence, Passage, Quote, Verdict
from assay.language import facts
from assay.language.clean import clean_text
from assay.language.dates import dates
from assay.language.injection import is_suspicious
from assay.language.quantities import numbers
from assay.language.sentences import split_sentences
from assay.language.terms import content_terms, fold_case, stem_word
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence
from assay.synthesis import state
from assay.synthesis import titles as naming

TOGETHER, FEW = 8, 4  # claims per request; for a small model
SHOWN, LITTLE = 1200, 500  # tokens of those claims
SENTENCES = 3  # maximum sentences per claim
DESCRIBED = 300  # characters of the description of an audience
ANALOGY = 300  # characters
READER_GUIDANCE = {
    PLAIN: "has no background. Keep the order of the argument. Short sentences of one thought each, in the active voice "
    "and in everyday words; explain what is abstract by what the claims say of it. One analogy may help.",
    EXECUTIVE: "has to decide. Say briefly what matters for a decision. Claims may be merged, and those that make no "
    "difference left out. No analogy.",
}
# Words that express uncertainty. "May" with a capital is the month.
OPEN = re.compile(
    r"\b(?:[Ss]uggest\w*|may|might|could|[Pp]erhaps|[Pp]ossibl[ey]|[Ss]eems?|[Aa]ppears? to|[Ll]ikely|[Hh]ints?)\b"
)
LABEL = re.compile(r"\bD[1-9]\d*\b")
COMPARES = re.compile(
    r"\b(?:like|as if|as though|imagine|think of|picture|similar to|much as|just as|resembles?)\b", re.I
)
BEGINS = frozenset(map(stem_word, "imagine think picture consider suppose much".split()))  # typical for analogies


class _StrictReply(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class TranslationSentenceReply(_StrictReply):
    """A sentence as it was written, and the numbers of the claims that it tells."""

    text: str
    claims: list[int]


class TranslationReply(_StrictReply):
    sentences: list[TranslationSentenceReply]
    analogy: str = ""


# --- input ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerifiedNarrative:
    """The verified narrative: its claims by position, each as a source against which sentences are checked."""

    blocks: tuple[tuple[int, ...], ...]
    claims: Mapping[int, Claim]
    documents: Mapping[int, tuple[str, ...]]  # documents that a claim cites
    pieces: Mapping[int, Evidence]
    commands: tuple[Evidence, ...]  # evidence that contains instructions to a model
    ordinary: frozenset[str]  # stems that the documents write in lower case: not names, even at the start of a sentence
    titles: Mapping[str, tuple[str, ...]]  # the names of a document; the first is the one to use
    labels: Mapping[str, str]
    conflicts: tuple[Conflict, ...]

    @property
    def sources(self) -> Sources:
        return Sources({doc: names[0] for doc, names in self.titles.items() if names})


def verified_narrative(run: Run, sources: Sources) -> VerifiedNarrative:
    """The narrative for the expert audience. Opinions are labelled there and are not rewritten."""
    blocks = run.draft.blocks if run.draft else ()
    opinions = compose.opinions(run)
    good = {
        place: claim
        for place, claim in sorted(run.checked.items())
        if claim.verdict is Verdict.supported and place not in opinions
    }
    parts: list[tuple[int, ...]] = []
    first = 0
    for block in blocks:
        parts.append(tuple(place for place in range(first, first + len(block.claims)) if place in good))
        first += len(block.claims)
    evidence = run.evidence
    by_key = {each.key: each for each in evidence}
    cited = {place: [by_key[key] for key in claim.cites if key in by_key] for place, claim in good.items()}
    documents = {place: tuple(dict.fromkeys(each.quote.doc_id for each in own)) for place, own in cited.items()}
    read, called = state.portraits(run), naming.document_titles(run, sources.titles)
    titles: dict[str, tuple[str, ...]] = {}
    for doc in dict.fromkeys(doc for own in documents.values() for doc in own):
        names = (called.get(doc, ""), read[doc].title if doc in read else "", sources.titles.get(doc, ""))
        titles[doc] = tuple(dict.fromkeys(name for name in names if name.strip()))
    return VerifiedNarrative(
        tuple(part for part in parts if part),
        good,
        documents,
        {place: _piece(place, claim, cited[place], titles) for place, claim in good.items()},
        tuple(each for each in evidence if instruction_terms(each.passage.text)),
        facts.lowercase_stems("\n".join(each.passage.text for each in evidence)),
        titles,
        state.labels(run),
        run.draft.conflicts if run.draft else (),
    )


def _piece(place: int, claim: Claim, cited: Sequence[Evidence], titles: Mapping[str, tuple[str, ...]]) -> Evidence:
    """A verified claim with its quotations as one source. The claim's words count too, because plain words may not
    occur in the documents. The titles of its documents are prefixed, as everywhere."""
    words = claim.words.strip()
    body = "\n\n".join(dict.fromkeys((words, *(each.quote.text for each in cited))))
    names = [name for each in cited for name in titles[each.quote.doc_id]]
    above = dict.fromkeys(part for part in (*names, *(each.passage.above for each in cited)) if part)
    doc = cited[0].quote.doc_id if cited else ""
    passage = Passage(_key(place), doc, body, 0, len(body), " · ".join(above))
    flagged = any(each.flagged for each in cited)
    return Evidence(_key(place), passage, Quote(doc, 0, len(words), words), 10.0, "", flagged=flagged)


def _key(place: int) -> str:
    return f"told-{place}"


def groups(narrative: VerifiedNarrative, *, small: bool) -> Iterator[tuple[int, ...]]:
    """Claims that share a request: of one block, limited in number and length. The split is deterministic."""
    most, room = (FEW, LITTLE) if small else (TOGETHER, SHOWN)
    for block in narrative.blocks:
        group: list[int] = []
        used = 0
        for place in block:
            cost = estimate_tokens(narrative.claims[place].words)
            if group and (len(group) == most or used + cost > room):
                yield tuple(group)
                group, used = [], 0
            group.append(place)
            used += cost
        yield tuple(group)


# --- prompt ---------------------------------------------------------------------------------------------------------


def schema(count: int, *, spares: bool) -> dict[str, Any]:
    """JSON schema of a reply about `count` claims; no other claim can be referenced."""
    number = {"type": "integer", "enum": list(range(1, count + 1))}
    numbers = {"type": "array", "items": number, "minItems": 1, "maxItems": count}
    sentence = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "claims": numbers},
        "required": ["text", "claims"],
        "additionalProperties": False,
    }
    most = {"minItems": 0 if spares else 1, "maxItems": SENTENCES * count}
    return {
        "type": "object",
        "properties": {"sentences": {"type": "array", "items": sentence, **most}, "analogy": {"type": "string"}},
        "required": ["sentences", "analogy"],
        "additionalProperties": False,
    }


def build_prompt(
    narrative: VerifiedNarrative, audience: str, group: Sequence[int], mark: str, room: int, note: str = ""
) -> dict[str, str]:
    """The values of the prompt `translate`, in at most `room` tokens: the claims, numbered, one per line. The
    description of the audience is user input, so it is fenced and limited to `DESCRIBED` characters."""
    described = " ".join(clean_text(audience).split())[:DESCRIBED]
    reader = READER_GUIDANCE.get(audience) or "\n" + fence(mark, "who the reader is", described)
    note = f"\n{note}" if note else ""
    left = room - estimate_tokens(reader) - estimate_tokens(note) - 40
    each = max(left // len(group) - 12, 8)
    shown = _labelled(narrative, group)
    lines = [
        f"{number}{_from(narrative, place, shown)}: {fit_to_tokens(' '.join(narrative.claims[place].words.split()), each)}"
        for number, place in enumerate(group, 1)
    ]
    return {"claims": fence(mark, "claims", "\n".join(lines)), "reader": reader, "note": note}


def _labelled(narrative: VerifiedNarrative, group: Sequence[int]) -> dict[str, str]:
    """Label → title of the documents behind these claims. Labels that occur in the claims themselves are not used
    (vitamin D3)."""
    words = " ".join(narrative.pieces[place].passage.text for place in group)
    docs = dict.fromkeys(doc for place in group for doc in narrative.documents[place])
    titles = {
        narrative.labels[doc]: narrative.titles[doc][0]
        for doc in docs
        if doc in narrative.labels and narrative.titles[doc]
    }
    return {own: name for own, name in titles.items() if not re.search(rf"\b{own}\b", words)}


def _from(narrative: VerifiedNarrative, place: int, shown: Mapping[str, str]) -> str:
    own = [narrative.labels[doc] for doc in narrative.documents[place] if narrative.labels.get(doc) in shown]
    return f" ({', '.join(own)})" if own else ""


# --- reply ----------------------------------------------------------------------------------------------------------

Tried = tuple[Claim, tuple[int, ...]]  # a sentence as a claim, and the positions of the claims it covers


def read(reply: TranslationReply, narrative: VerifiedNarrative, group: Sequence[int]) -> tuple[Tried, ...]:
    """The sentences, each citing the claims it covers. A sentence that covers none is dropped, and a claim counts as
    covered only if the sentence shares a word with it. Labels are replaced by titles."""
    titles = _labelled(narrative, group)
    found: dict[str, Tried] = {}
    for sentence in reply.sentences[: SENTENCES * len(group)]:
        named = sorted({group[number - 1] for number in sentence.claims if 0 < number <= len(group)})
        for claim in stating.split_claims(sentence.text, (), ())[0]:
            places = _claims_in(claim.text, named, narrative)
            own = {narrative.labels.get(doc, "") for place in places for doc in narrative.documents[place]}
            words = _in_titles(claim.text, {label: title for label, title in titles.items() if label in own})
            if places:
                found.setdefault(words, (Claim(words, tuple(map(_key, places))), places))
    return tuple(found.values())


def _in_titles(words: str, titles: Mapping[str, str]) -> str:
    """Replace all labels by titles in one pass, since a title may contain what looks like another document's label."""
    plain = re.sub(r"\b[Dd]ocument (?=D[1-9])", "", words)
    return re.sub(
        r"[“\"]?\b(D[1-9]\d*)\b[”\"]?",
        lambda found: f"“{titles[found[1]]}”" if found[1] in titles else found[0],
        plain,
    )


def _claims_in(words: str, named: Sequence[int], narrative: VerifiedNarrative) -> tuple[int, ...]:
    """Of the claims that a sentence refers to, those with which it shares a word that the others lack."""
    terms = {place: frozenset(content_terms(narrative.claims[place].words)) for place in named}
    there = frozenset(content_terms(words))
    found: list[int] = []
    for place in named:
        others = frozenset(term for other in named if other != place for term in terms[other])
        if share(terms[place] - others or terms[place], there) > 0:
            found.append(place)
    return tuple(found)


def judge_by_rule(tried: Tried, narrative: VerifiedNarrative) -> Claim:
    """The sentence with its verdict: grounded in the verified claims like any claim. It must not name another document,
    nor drop the uncertainty of its claims."""
    claim, places = tried
    first = re.match(r"[^\W\d_]+", claim.text)
    opens = first is not None and first[0].istitle() and stem_word(fold_case(first[0])) in narrative.ordinary
    words = claim.text[:1].lower() + claim.text[1:] if opens else claim.text
    evidence = (*narrative.pieces.values(), *narrative.commands)
    ruled = replace(JUDGE.by_rule(replace(claim, text=words), evidence, narrative.sources), text=claim.text)
    labels = set(LABEL.findall(claim.text)) & set(narrative.labels.values())
    if labels - set(LABEL.findall(" ".join(narrative.pieces[place].passage.text for place in places))):
        return replace(ruled, verdict=Verdict.unsupported, why="it names a document that its claims do not cite")
    doubtful = any(OPEN.search(narrative.claims[place].words) for place in places)
    if ruled.verdict in (Verdict.supported, Verdict.partial) and doubtful and not OPEN.search(claim.text):
        return replace(ruled, verdict=Verdict.unsupported, why="it states what the claim leaves open")
    return ruled


def settle_group(
    ruled: Sequence[Tried], narrative: VerifiedNarrative, group: Sequence[int], *, spares: bool
) -> tuple[TranslatedSentence, ...]:
    """The translation of a group: the supported sentences, and the original words of each claim that they do not
    cover. With `spares`, claims that no sentence tried to cover are omitted. A document that the claims name must be
    named where it first occurs."""
    sentences: list[TranslatedSentence] = []
    failed: dict[int, str] = {}
    named: set[str] = set()
    for claim, places in ruled:
        titles = {title for place in places for title in _titles_in(narrative, place)}
        lost = sorted(title for title in titles - named if title not in claim.text)
        if claim.verdict is not Verdict.supported or lost:
            why = claim.why if claim.verdict is not Verdict.supported else f"it no longer names “{lost[0]}”"
            failed |= {place: why for place in places if place not in failed}
            continue
        named |= titles
        cites = dict.fromkeys(key for place in places for key in narrative.claims[place].cites)
        sentences.append(TranslatedSentence(claim.text, places, tuple(cites)))
    heard = {place for each in sentences for place in each.claims}
    for place in group:
        if place not in heard and (place in failed or not spares):
            sentences.append(keep_claim(narrative, place, failed.get(place, "what was written does not tell it")))
    return tuple(sentences)


def _titles_in(narrative: VerifiedNarrative, place: int) -> list[str]:
    """The titles of its documents that a claim mentions."""
    titles = (title for doc in narrative.documents[place] for title in narrative.titles[doc])
    return [title for title in titles if f"“{title}”" in narrative.claims[place].words]


def keep_claim(narrative: VerifiedNarrative, place: int, why: str) -> TranslatedSentence:
    """The claim as in the expert text; a quotation is marked as one."""
    claim = narrative.claims[place]
    words = f"“{claim.words.strip()}”" if claim.quote else claim.words
    return TranslatedSentence(words, (place,), claim.cites, kept=True, why=why)


def owed_sentences(narrative: VerifiedNarrative, heard: frozenset[int]) -> tuple[TranslatedSentence, ...]:
    """Claims that are never omitted: one of each document, and the other side of a conflict whose first side is
    included."""
    more: dict[int, str] = {}
    known = {doc for place in heard for doc in narrative.documents[place]}
    for place, docs in narrative.documents.items():
        if place not in heard and not known.issuperset(docs):
            more[place] = "no document is left out"
            known.update(docs)
    for conflict in narrative.conflicts:
        sides = [
            [place for place, claim in narrative.claims.items() if key in claim.cites]
            for key in (conflict.left, conflict.right)
        ]
        lost = [side for side in sides if not (heard | more.keys()).intersection(side)]
        if len(lost) == 1 and lost[0]:
            more[lost[0][0]] = "it is the other side of a conflict"
    return tuple(keep_claim(narrative, place, why) for place, why in more.items())


def analogy(words: str) -> str:
    """An analogy that states no fact: one or two sentences without a name, number or date; otherwise empty."""
    text = " ".join(stating.extract_citations(clean_text(words), ()).words.split())
    if not text or len(text) > ANALOGY or len(split_sentences(text)) > 2 or not COMPARES.search(text):
        return ""
    if numbers(text) or dates(text) or facts.names(text, BEGINS | facts.lowercase_stems(text)):
        return ""
    return "" if is_suspicious(text) else text


# --- delivery -------------------------------------------------------------------------------------------------------


def align_with_answer(made: Translation, run: Run) -> Translation:
    """A translation aligned with the delivered narrative: positions are changed from those of the draft to those of
    the answer. Sentences about claims that were not delivered are dropped."""
    delivered = run.answer.claims if run.answer else ()
    at: dict[int, int] = {}
    for place, claim in sorted(run.checked.items()):
        if len(at) < len(delivered) and delivered[len(at)] == claim:
            at[place] = len(at)
    paragraphs: list[TranslatedParagraph] = []
    for part in made.paragraphs:
        own = [each for each in part.sentences if at.keys() >= set(each.claims)]
        if own:
            renumbered = tuple(replace(each, claims=tuple(at[place] for place in each.claims)) for each in own)
            paragraphs.append(replace(part, sentences=renumbered))
    left_out = tuple(at[place] for place in made.left_out if place in at)
    return replace(made, paragraphs=tuple(paragraphs), left_out=left_out)
