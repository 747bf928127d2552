"""What a narrative has to tell, cut into parts that fit a request, and held against what was told. Pure."""

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

ITEMS = 40  # that one request tells, however large the window
AN_ITEM = 512  # tokens of window for each; the reply needs some of them too
QUOTED = 80  # tokens of a quotation beside the insight that it bears out


@dataclass(frozen=True, slots=True)
class NarrativeItem:
    """One thing to tell: an insight, or a piece of evidence. `claim` is what stands in for it where nobody tells it."""

    doc_id: str
    keys: tuple[str, ...]
    claim: Claim
    theme: int = 0
    question: str = ""

    @property
    def cost(self) -> int:
        return estimate_tokens(self.claim.words) + (0 if self.claim.quote else QUOTED) + 60


def items(run: Run, of: Material) -> tuple[NarrativeItem, ...]:
    """All that is told, in the order of telling. Synthesis: every insight, theme by theme and document by document. Summary:
    the evidence of every question, each piece once."""
    if state.brief(run).pipeline is Pipeline.synthesis:
        spun = state.spine(run)
        split_into_parts = [theme.documents for theme in spun.themes] if spun else [tuple(of.insights)]
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


def split_into_parts(told: Sequence[NarrativeItem], window: int, most: int = 0) -> list[tuple[NarrativeItem, ...]]:
    """Items that share a request: of one theme, few enough to be told with care, and short enough to fit. All are in one."""
    most = most or max(2, min(ITEMS, window // AN_ITEM))
    room = max(200, window // 2 - 400)
    found: list[tuple[NarrativeItem, ...]] = []
    for theme in dict.fromkeys(item.theme for item in told):
        own = [item for item in told if item.theme == theme]
        even = -(-len(own) // -(-len(own) // most))  # as many in the last part as in the others
        part: list[NarrativeItem] = []
        for item in own:
            if part and (len(part) >= even or sum(each.cost for each in part) + item.cost > room):
                found.append(tuple(part))
                part = []
            part.append(item)
        found.append(tuple(part))
    return found


# --- held against what was told -------------------------------------------------------------------------------------


def missing_items(run: Run, told: Sequence[NarrativeItem], said: Sequence[Claim]) -> tuple[NarrativeItem, ...]:
    """What no claim uses. Synthesis: every insight whose evidence nobody cites. Summary: the best piece of every question,
    and of every document, that nobody cites."""
    cited = {key for claim in said for key in claim.cites}
    if state.brief(run).pipeline is Pipeline.synthesis:
        spans = {claim.quote for claim in said if claim.quote}
        return tuple(item for item in told if not cited & set(item.keys) and item.claim.quote not in spans)
    best = {item.keys[0]: item for item in told}
    found: dict[str, NarrativeItem] = {}
    for evidence in state.evidence_by_question(run).values():
        own = [each.key for each in evidence if each.key in best]
        if own and not cited & set(own) and not found.keys() & set(own):
            found[own[0]] = best[own[0]]
    spoken = {item.doc_id for item in told if item.keys[0] in cited or item.keys[0] in found}
    for item in told:
        if item.doc_id not in spoken:
            spoken.add(item.doc_id)
            found[item.keys[0]] = item
    return tuple(item for item in told if item.keys[0] in found)


def documents_without_own_claim(
    of: Material, told: Sequence[NarrativeItem], said: Sequence[Claim]
) -> tuple[NarrativeItem, ...]:
    """The first item of each document that no claim speaks of alone: if what it says beside others does not hold, it would
    not appear at all."""
    alone = {docs[0] for claim in said if len(docs := of.of(claim.cites)) == 1}
    found: dict[str, NarrativeItem] = {}
    for item in told:
        if item.doc_id not in alone:
            found.setdefault(item.doc_id, item)
    return tuple(found.values())


def insert_item(paragraphs: Sequence[Block], item: NarrativeItem, of: Material) -> tuple[Block, ...]:
    """The paragraphs with what stands in for an item: after the last claim of its document, or else at the end."""
    said = (claim for block in paragraphs for claim in block.claims if claim.words == item.claim.words)
    if any(item.doc_id in of.of(claim.cites) for claim in said):  # what two documents say alike, each of them says
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
    """Paragraphs as a person reads them: no headings, titles in the place of labels, and nothing that cites nothing."""
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


# --- both sides -----------------------------------------------------------------------------------------------------


def conflicts(of: Material) -> tuple[tuple[Conflict, tuple[NarrativeItem, NarrativeItem]], ...]:
    """Every contradiction between documents, with both sides as they can be told by quotation."""
    found: dict[frozenset[str], tuple[Conflict, tuple[NarrativeItem, NarrativeItem]]] = {}  # by the words on both sides
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
