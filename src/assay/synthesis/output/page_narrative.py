"""The upper part of the page: the account for each reader, then theme and spine. Pure."""

from __future__ import annotations

from assay.answer.render import OPINION, SAID, words_of
from assay.core.account import EXECUTIVE, EXPERT, PLAIN, Readability, Retold, Telling, Translation
from assay.core.types import Block, Claim, Shape
from assay.synthesis.output.footnotes import Footnotes
from assay.synthesis.output.rows import KEPT, plural, readers, said_beside
from assay.synthesis.output.typeset import label, labels, listed, opening, section, words

READERS = {EXPERT: "Expert", PLAIN: "Plain language", EXECUTIVE: "Executive"}


def told(notes: Footnotes) -> str:
    """The account, once for each reader; the reader chooses whose, and on paper all are printed."""
    texts = [
        (READERS.get(audience, audience), _translated(notes, made) if made else _narrative(notes))
        for audience, made in readers(notes.account)
    ]
    if len(texts) == 1:
        return section("account", "The account", texts[0][1])
    tabs = "".join(
        f'<input type="radio" name="reader" id="reader-{place}"{" checked" if place == 1 else ""}>'
        f'<label for="reader-{place}">{words(name)}</label>'
        f'<div class="panel"><h3>{words(name)}</h3>{text}</div>'
        for place, (name, text) in enumerate(texts, 1)
    )
    return section("account", "The account", f'<div class="tabs" role="group" aria-label="Reader">{tabs}</div>')


def spine(notes: Footnotes) -> str:
    """What it all comes to, in the few sentences that name every document."""
    account = notes.account
    theme = f'<p class="theme">{words(account.theme)}</p>' if account.theme else ""
    beats = "".join(
        f'<li><div class="p">{words(words_of(beat.claim))} {opening(notes, notes.of_claim(beat.claim))} '
        f'<span class="docs">{labels(notes, beat.documents)}</span></div></li>'
        for beat in account.spine
    )
    themes = listed(
        f"<b>{words(each.name)}</b>: {labels(notes, each.documents)}" for each in account.themes if each.name
    )
    return section(
        "spine",
        "Theme and spine",
        theme,
        f'<ol class="spine">{beats}</ol>' if beats else "",
        f"<h3>Documents told together</h3>{themes}" if themes else "",
    )


def _narrative(notes: Footnotes) -> str:
    account = notes.account
    answer = account.narrative
    said = [f"<p><em>{SAID[answer.outcome]}</em></p>"] if SAID[answer.outcome] else []
    said += [_block(notes, block, answer.shape) for block in answer.blocks]
    if answer.near:
        said.append("<p>The nearest that was found:</p>" + listed(_claim(notes, claim) for claim in answer.near))
    said += [f'<p class="remark">{words(remark)}</p>' for remark in said_beside(notes)]
    said.append(f'<p class="measure">Readability: {_measured(account.readability)}.</p>')
    return "\n".join(said)


def _block(notes: Footnotes, block: Block, shape: Shape) -> str:
    above = f'<h4 dir="auto">{words(block.heading)}</h4>' if block.heading else ""
    prose = shape is Shape.prose and not any(claim.quote for claim in block.claims)
    if block.opinion or prose:
        opinion = f"<em>{OPINION}:</em> " if block.opinion else ""
        return f'{above}<div class="p">{opinion}{" ".join(_claim(notes, claim) for claim in block.claims)}</div>'
    return above + listed((_claim(notes, claim) for claim in block.claims), kind="claims")


def _claim(notes: Footnotes, claim: Claim) -> str:
    """What a claim says. A quotation is shown as one, under the label of its document."""
    said = words(words_of(claim))
    if claim.quote is None:
        return f"<span>{said}</span> {opening(notes, notes.of_claim(claim))}"
    return f'{label(notes, claim.quote.doc_id)} <q dir="auto">{said}</q> {opening(notes, notes.of_claim(claim))}'


def _translated(notes: Footnotes, made: Translation) -> str:
    claims = notes.account.narrative.claims
    out = [claims[place] for place in made.left_out if 0 <= place < len(claims)]
    spared = (
        f"<details><summary>{plural(len(out), 'claim')} left out for this reader</summary>"
        f"{listed((_claim(notes, claim) for claim in out), kind='claims')}</details>"
        if out
        else ""
    )
    kept = any(sentence.kept for part in made.paragraphs for sentence in part.sentences)
    measured = (
        f'<p class="measure">Readability before: {_measured(made.before)}.<br>After: {_measured(made.after)}. '
        f"Retold by {words(made.by)}.</p>"
    )
    return "\n".join(
        [
            *(_telling(notes, part) for part in made.paragraphs),
            f'<p class="remark"><b class="kept">†</b> {words(KEPT)}.</p>' if kept else "",
            spared,
            measured,
        ]
    )


def _telling(notes: Footnotes, part: Telling) -> str:
    analogy = (
        f'<aside class="analogy"><b>Analogy</b> (an illustration; it states no fact): {words(part.analogy)}</aside>'
        if part.analogy
        else ""
    )
    return f'<div class="p">{" ".join(_sentence(notes, each) for each in part.sentences)}</div>{analogy}'


def _sentence(notes: Footnotes, sentence: Retold) -> str:
    why = f"{KEPT}: {sentence.why}" if sentence.why else KEPT
    mark = f'<b class="kept" title="{words(why)}">†</b>' if sentence.kept else ""
    return f"<span>{words(sentence.text)}</span>{mark} {opening(notes, notes.of_keys(sentence.cites))}"


def _measured(found: Readability) -> str:
    return (
        f"{plural(found.words, 'word')}, {found.sentence:.1f} to a sentence, Flesch reading ease {found.ease:.0f} "
        f"(100 is easy, 0 hard), Flesch-Kincaid grade {found.grade:.1f}"
    )
