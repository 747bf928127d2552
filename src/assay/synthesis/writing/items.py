"""The items that a narrative has to cover, split into parts that fit a request, and checked against its claims.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.answer import claims
from assay.core.account import Pipeline, RelationType
from assay.core.run import Run
from assay.core.types import Block, Claim, Conflict
from assay.models.token_estimate import estimate_tokens
from assay.synthesis import state, titles
from assay.synthesis.writing import spine_by_rule, themes
from assay.synthesis.writing.material import Material, is_repeatable

ITEMS = 40  # maximum items per request, however large the window
AN_ITEM = 512  # tokens of context window per item, including its share of the reply
QUOTED = 80  # tokens of a quotation shown with the insight it supports


@dataclass(frozen=True, slots=True)
class NarrativeItem:
    """An insight or a piece of evidence to cover. `claim` replaces it if no written claim covers it."""

    doc_id: str
    keys: tuple[str, ...]
    claim: Claim
    theme: int = 0
    question: str = ""

    @property
    def cost(self) -> int:
        return estimate_tokens(self.claim.words) + (0 if self.claim.quote else QUOTED) + 60


def items(run: Run, of: Material) -> tuple[NarrativeItem, ...]:
    """All items in narrative order. Synthesis: every insight, by theme and document. Summary: the evidence of every
    question, without duplicates."""
    if state.brief(run).pipeline is Pipeline.synthesis:
        spine = state.spine(run)
        split_into_parts = [theme.documents for theme in spine.themes] if spine else [tuple(of.insights)]
        return tuple(
            NarrativeItem(doc, insight.claim.cites, spine_by_rule.without_verdict(insight.claim), number)
            for number, docs in enumerate(split_into_parts)
            for doc in docs
            for insight in of.insights.get(doc, ())
        )
    asked = {question.id: question.text for question in state.questions(run)}
    found: dict[str, NarrativeItem] = {}
    for question, evidence in state.evidence_by_question(run).items():
        for each in evidence:
            claim = Claim("", (each.key,), quote=each.quote)
            if each.key in of.known and each.key not in found and is_repeatable(claim):
                found[each.key] = NarrativeItem(each.quote.doc_id, (each.key,), claim, question=asked.get(question, ""))
    return tuple(found.values())


def split_into_parts(items: Sequence[NarrativeItem], window: int, most: int = 0) -> list[tuple[NarrativeItem, ...]]:
    """Split items into requests: of one theme, limited in number and length. Every item is in exactly one part."""
    most = most or max(2, min(ITEMS, window // AN_ITEM))
    room = max(200, window // 2 - 400)
    found: list[tuple[NarrativeItem, ...]] = []
    for theme in dict.fromkeys(item.theme for item in items):
        own = [item for item in items if item.theme == theme]
        even = -(-len(own) // -(-len(own) // most))  # parts of equal size
        part: list[NarrativeItem] = []
        for item in own:
            if part and (len(part) >= even or sum(each.cost for each in part) + item.cost > room):
                found.append(tuple(part))
                part = []
            part.append(item)
        found.append(tuple(part))
    return found


# --- coverage -------------------------------------------------------------------------------------------------------


def missing_items(run: Run, items: Sequence[NarrativeItem], claims: Sequence[Claim]) -> tuple[NarrativeItem, ...]:
    """The items that no claim covers. Synthesis: every insight whose evidence is not cited. Summary: the best
    piece of each question without a cited piece, and one item of each document that is not cited."""
    cited = {key for claim in claims for key in claim.cites}
    if state.brief(run).pipeline is Pipeline.synthesis:
        spans = {claim.quote for claim in claims if claim.quote}
        return tuple(item for item in items if not cited & set(item.keys) and item.claim.quote not in spans)
    best = {item.keys[0]: item for item in items}
    found: dict[str, NarrativeItem] = {}
    for evidence in state.evidence_by_question(run).values():
        own = [each.key for each in evidence if each.key in best]
        if own and not cited & set(own) and not found.keys() & set(own):
            found[own[0]] = best[own[0]]
    spoken = {item.doc_id for item in items if item.keys[0] in cited or item.keys[0] in found}
    for item in items:
        if item.doc_id not in spoken:
            spoken.add(item.doc_id)
            found[item.keys[0]] = item
    return tuple(item for item in items if item.keys[0] in found)


def documents_without_own_claim(
    of: Material, items: Sequence[NarrativeItem], claims: Sequence[Claim]
) -> tuple[NarrativeItem, ...]:
    """The first item of each document that has no claim of its own. Without one, the document would disappear if the
    claims that it shares with others turn out to be unsupported."""
    alone = {docs[0] for claim in claims if len(docs := of.of(claim.cites)) == 1}
    found: dict[str, NarrativeItem] = {}
    for item in items:
        if item.doc_id not in alone:
            found.setdefault(item.doc_id, item)
    return tuple(found.values())


def insert_item(paragraphs: Sequence[Block], item: NarrativeItem, of: Material) -> tuple[Block, ...]:
    """Insert the claim of an item after the last claim about its document, or at the end."""
    same_words = (claim for block in paragraphs for claim in block.claims if claim.words == item.claim.words)
    if any(
        item.doc_id in of.of(claim.cites) for claim in same_words
    ):  # a statement that two documents share counts for both
        return tuple(paragraphs)
    for place in range(len(paragraphs) - 1, -1, -1):
        block = paragraphs[place]
        own = [at for at, claim in enumerate(block.claims) if item.doc_id in of.of(claim.cites)]
        if own:
            after = own[-1] + 1
            longer = Block((*block.claims[:after], item.claim, *block.claims[after:]), block.heading)
            return (*paragraphs[:place], longer, *paragraphs[place + 1 :])
    return (*paragraphs, Block((item.claim,)))


def replace_labels_in_blocks(blocks: Iterable[Block], of: Material) -> tuple[Block, ...]:
    """Paragraphs for readers: without headings, with titles in place of labels, and without claims that cite
    nothing."""
    documents = of.documents
    found: list[Block] = []
    for block in blocks:
        own: list[Claim] = []
        for claim in block.claims:
            titled = (claim, ()) if claim.quote else titles.replace_labels(claim, documents, of.called, of.known)
            own += [titled[0]] if titled and titled[0].cites else []
        if own:
            found.append(Block(tuple(own)))
    return tuple(found)


# --- conflicts ------------------------------------------------------------------------------------------------------


def conflicts(of: Material) -> tuple[tuple[Conflict, tuple[NarrativeItem, NarrativeItem]], ...]:
    """Every contradiction between documents, with both sides as quotations."""
    found: dict[frozenset[str], tuple[Conflict, tuple[NarrativeItem, NarrativeItem]]] = {}  # by both quotations
    for each in of.relations:
        ends = (each.left, each.right)
        if each.type is not RelationType.contradiction or not all(end.key in of.known for end in ends):
            continue
        left, right = (NarrativeItem(end.doc_id, (end.key,), Claim("", (end.key,), quote=end.quote)) for end in ends)
        both = themes.shared_words([each.left.quote.text, each.right.quote.text], most=4)
        about = claims.accept_gap(", ".join(both), " ".join(both), [of.known[end.key] for end in ends])
        conflict = Conflict(each.left.key, each.right.key, about)
        found.setdefault(frozenset((each.left.quote.text, each.right.quote.text)), (conflict, (left, right)))
    return tuple(found.values())
