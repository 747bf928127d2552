"""Fences untrusted text in prompts: documents are data, and reach a model only between two marks that they cannot predict."""

from __future__ import annotations

import re

from assay.core.codec import digest
from assay.core.types import Passage
from assay.language.clean import clean_text

_BRACKETS = re.compile("[⟦⟧\u301a\u301b]")  # the fence's own brackets and lookalikes
# HTML elements keep their form. Not listed: names that are also tokens of models, such as <s>, <audio> and <video>.
_HTML = (
    "a|abbr|address|article|aside|b|base|bdi|bdo|big|blockquote|body|br|button|caption|center|cite|code|col|colgroup|data|dd|del|"
    "details|dfn|div|dl|dt|em|fieldset|figcaption|figure|font|footer|form|h[1-6]|head|header|hr|html|i|img|input|ins|kbd|label|"
    "legend|li|link|main|meta|nav|ol|option|output|p|pre|q|samp|script|section|select|small|span|strike|strong|style|sub|summary|"
    "sup|table|tbody|td|textarea|tfoot|th|thead|time|title|tr|tt|u|ul|var|wbr"
)
# Special tokens of language models, by shape: servers of local models obey them anywhere in a request. Each alternative ends
# where a space goes that takes the token apart; the words stay readable, and quotations are found regardless of spaces.
_SPECIAL_TOKEN = re.compile(
    r"[<＜\[［](?=[|｜](?:\S|$))"  # <|im_end|>, <｜User｜>, [|endofturn|], <|turn>
    r"|(?<=\S)[|｜](?=[>＞\]］])|｜(?=\w{1,40}｜)"  # <turn|>, ｜DSML｜
    rf"|[<＜](?=/?(?!(?i:{_HTML})[>＞])(?:[^\W\d]|0x)[\w:.▁-]{{0,60}}[>＞])"  # <eos>, </s>, <start_of_turn>, <<SYS>>
    r"|[\[［](?=/?[a-z]?[A-Z][A-Z\d_]{2,60}[\]］]|(?:start|end)_\w{1,60}\]|multimodal\])"  # [INST], [gMASK], [TOOL_CALLS]
    r"|\](?=~!?\w{1,9}[\[\]])|\[(?=\w{1,9}~\[)"  # ]~b], ]~!b[, [e~[
    r"|>>(?=[A-Z_]{3,40}<<)|\|\|\|(?=[A-Z_]{3,40}\|\|\|)"  # >>QUESTION<<, |||EMAIL_ADDRESS|||
)


def fence_mark(run: str) -> str:
    """The mark of a run. No document can contain it, because the run's id is drawn at random after the documents were
    written; it is the same when the run is resumed or replayed."""
    return digest(f"fence {run}")[:12]


def fence(mark: str, label: str, words: str) -> str:
    """Untrusted text as a model sees it: labelled and between marks. Inside there are no lookalikes of the marks, no invisible
    characters and no special tokens of language models. Text of documents, file names, descriptions, tools and models
    enters a prompt only through this function.
    """
    inside = _neutralise(words, mark)
    above = " ".join(_neutralise(label, mark).split())
    return f"⟦{mark} quoted: {above}⟧\n{inside}\n⟦end {mark}⟧"


def _neutralise(words: str, mark: str) -> str:
    seen = _BRACKETS.sub("|", clean_text(words))
    return _SPECIAL_TOKEN.sub(lambda match: f"{match[0]} ", seen).replace(mark, "…")


def context_label(passage: Passage) -> str:
    """What a label says of a passage: caption, header, units and period that are outside it."""
    return f" · context: {' / '.join(passage.context.splitlines())}" if passage.context else ""
