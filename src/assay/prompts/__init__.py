"""Prompts: one .md file each, in this folder. `render` fills one in, and fails on missing and on superfluous values.

The part above a line `---` is the task (system message), the part below it the matter. Nothing here calls a model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import resources

from assay.core.codec import digest
from assay.core.printable import clean_text
from assay.core.types import Passage

PLACE = re.compile(r"\{\{\s*([a-z_]+)\s*\}\}")
_PARTED = re.compile(r"^---[ \t]*\n", re.MULTILINE)


def render(name: str, **values: str) -> str:
    """The prompt `name` with every `{{place}}` filled in."""
    return fill(template(name), values)


def halves(name: str, values: Mapping[str, str]) -> tuple[str, str]:
    """The prompt `name` filled in, split into task and matter. A `---` inside a value never splits it."""
    fill(template(name), values)
    task, matter = parted(template(name))
    return _filled(task, values), _filled(matter, values)


@cache
def template(name: str) -> str:
    """The unfilled template of the prompt `name`."""
    file = resources.files(__name__) / f"{name}.md"
    if not re.fullmatch(r"[a-z_]+", name) or not file.is_file():
        raise LookupError(f"there is no prompt called {name!r}")
    return file.read_text(encoding="utf-8")


def parted(text: str) -> tuple[str, str]:
    """A template's task and matter; without a separator line, all of it is matter."""
    line = _PARTED.search(text)
    return (text[: line.start()], text[line.end() :]) if line else ("", text)


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replaces each placeholder once; placeholders inside a value are not replaced."""
    wanted = set(PLACE.findall(text))
    if missing := sorted(wanted - values.keys()):
        raise ValueError(f"no value for {', '.join(missing)}")
    if unused := sorted(values.keys() - wanted):
        raise ValueError(f"nothing takes {', '.join(unused)}")
    return _filled(text, values)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)


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
    r"[<＜‹〈⟨《\[［](?=[|｜](?:\S|$))"  # <|im_end|>, <｜User｜>, ‹|im_end|›, [|endofturn|], <|turn>
    r"|(?<=\S)[|｜](?=[>＞›〉⟩》\]］])|｜(?=\w{1,40}｜)"  # <turn|>, ｜DSML｜
    r"|[<＜‹〈⟨《](?=[\[［]/?\w{1,40}[\]］])|[<＜](?=!--)"  # <[user]>, <!--
    r"|^[ \t]*(?:Human|Assistant|System|User)(?=[:：])"  # the turns of older models, at the beginning of a line
    rf"|[<＜](?=/?(?!(?i:{_HTML})[>＞])(?:[^\W\d]|0x)[\w:.▁-]{{0,60}}[>＞])"  # <eos>, </s>, <start_of_turn>, <<SYS>>
    r"|[\[［](?=/?[a-z]?[A-Z][A-Z\d_]{2,60}[\]］]|(?:start|end)_\w{1,60}\]|multimodal\])"  # [INST], [gMASK], [TOOL_CALLS]
    r"|\](?=~!?\w{1,9}[\[\]])|\[(?=\w{1,9}~\[)"  # ]~b], ]~!b[, [e~[
    r"|>>(?=[A-Z_]{3,40}<<)|\|\|\|(?=[A-Z_]{3,40}\|\|\|)",  # >>QUESTION<<, |||EMAIL_ADDRESS|||
    re.MULTILINE,
)

_LONG = 4000  # characters; what is made of a longer text is not cached


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
    return (_remembered(words) if len(words) <= _LONG else _plain(words)).replace(mark, "…")


def _plain(words: str) -> str:
    seen = _BRACKETS.sub("|", clean_text(words))
    return _SPECIAL_TOKEN.sub(lambda match: f"{match[0]} ", seen)


_remembered = lru_cache(maxsize=1024)(_plain)  # the same passages are in prompt after prompt


def context_label(passage: Passage) -> str:
    """What a label says of a passage: caption, header, units and period that are outside it."""
    return f" · context: {' / '.join(passage.context.splitlines())}" if passage.context else ""
