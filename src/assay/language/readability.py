"""How hard a text is to read: the formulas of Flesch and Kincaid. They are made for English; in other languages only the
counts of words and sentences mean something. Pure."""

from __future__ import annotations

import re

from assay.core.synthesis import Readability
from assay.language.sentences import split_sentences
from assay.language.terms import fold_case

WORD = re.compile(r"[^\W_]+(?:['’.\-–][^\W_]+)*")
PART = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d")  # separately pronounced parts of a word; each digit of a number
VOWELS = re.compile(r"[aeiouy]+")

# Silent letters: the e at the end of a word, of most forms in -es and -ed, and before a suffix.
SILENT = re.compile(
    r"(?<=[^aeiouy])e$(?<![^aeiouyrl]le)|(?<=q)ues?$|(?<=[^aeiouysxzcg])es$(?<!ches)(?<!shes)(?<![^aeiouyrl]les)"
    r"|(?<=[^aeiouytd])ed$(?<![^aeiouyrl]led)|(?<=[^aeiouyl])e(?=(?:ly|ful|fully|less|ness|ments?)$)|(?<=ic)a(?=lly$)"
    r"|(?<=^som)e(?=[^aeiouy])|(?<=^ever)y(?=[^aeiouy])|(?<=^(?:ther|wher))e(?=[fb])"
)
# Adjacent vowels that are pronounced separately.
APART = re.compile(
    r"(?<![ctsgl])ia(?!ge)|(?:pl|rel|all|^l|^g)ia|[ct]iat|iu|(?<![ctsgxlnh])io(?!u?r)|ior(?=i)|iet|(?<![ct])ien(?!d)|scien"
    r"|(?<![qg])ua|(?<!q)uo|flui|(?<![pgc])eo|^geo|nucle(?=[iu])|(?<!s)crea(?!tu|m|k|s)|idea|area|linea|reali[tsz]|^reac(?!h)"
    r"|theat|[uyeo]ings?$|eyo|ayou|aya|ayer|oyer|oyee|[lrpf]ier$|[lrp]iest$|poe|(?:[st]h|s)ms?$"
)


def measure_readability(words: str) -> Readability:
    """Number of words, words per sentence, reading ease (100 easy, 0 hard) and school grade; all zero for a text
    without words."""
    count = len(WORD.findall(words))
    if not count:
        return Readability(0, 0.0, 0.0, 0.0)
    sentences = sum(WORD.search(words, *span) is not None for span in split_sentences(words)) or 1
    length, spoken = count / sentences, sum(map(syllables, WORD.findall(words))) / count
    ease = 206.835 - 1.015 * length - 84.6 * spoken
    grade = 0.39 * length + 11.8 * spoken - 15.59
    return Readability(count, round(length, 1), round(ease, 1), round(grade, 1))


def syllables(word: str) -> int:
    """The number of syllables of an English word, by rule. A digit counts as one, and so does each letter of a word
    without vowels."""
    return max(1, sum(map(_spoken, PART.findall(word))))


def _spoken(part: str) -> int:
    if part.isdigit():
        return 1
    plain, _, ending = fold_case(part).replace("’", "'").partition("'")
    if plain.isascii() and not VOWELS.search(plain):
        return len(plain) if part.isupper() else 1
    count = len(VOWELS.findall(plain)) - len(SILENT.findall(plain)) + len(APART.findall(plain))
    return max(1, count) + (ending == "t" and plain[-2:] in ("dn", "sn"))  # didn't, isn't
