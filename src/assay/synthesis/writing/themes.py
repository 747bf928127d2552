"""Groups documents into themes by the meaning of their insights, and names the themes. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from assay.answer import claims
from assay.answer.checking.source import REPORTING_STEMS
from assay.core.account import Theme
from assay.core.types import Evidence
from assay.language import facts
from assay.language.clean import clean_text
from assay.language.injection import is_suspicious
from assay.language.sentences import split_sentences
from assay.language.terms import asking_stems, content_terms, fold_case, stem_word
from assay.language.words import stop_words
from assay.models.token_estimate import estimate_tokens, fit_to_tokens
from assay.prompts.fence import fence

if TYPE_CHECKING:
    import numpy as np

ALONE = 12  # up to this many documents, there is one theme
MOST = 10  # maximum documents per theme
TOGETHER = 12  # themes named in one request
WORDS = 16  # maximum words of the overall theme
WORD = re.compile(r"[^\W\d_]{4,}")


# --- groups ---------------------------------------------------------------------------------------------------------


def groups(vectors: np.ndarray) -> list[tuple[int, ...]]:
    """Split rows into groups of similar size, at most ten each: repeatedly halved along the direction of greatest
    variance, at the widest gap near the middle. Deterministic."""
    import numpy as np

    def halved(rows: list[int]) -> list[tuple[int, ...]]:
        if len(rows) <= MOST:
            return [tuple(sorted(rows))]
        own = vectors[rows].astype(np.float64)
        _, _, axes = np.linalg.svd(own - own.mean(axis=0), full_matrices=False)
        along = np.round((own - own.mean(axis=0)) @ axes[0], 6)  # smaller differences are noise
        along = along if along[0] <= 0 else -along
        order = sorted(range(len(rows)), key=lambda place: (along[place], rows[place]))
        near = range(-(-3 * len(rows) // 10), 7 * len(rows) // 10 + 1)
        cut = max(near, key=lambda at: (along[order[at]] - along[order[at - 1]], -abs(2 * at - len(rows))))
        first, second = ([rows[place] for place in half] for half in (order[:cut], order[cut:]))
        return halved(first) + halved(second)

    count = len(vectors)
    return [tuple(range(count))] if count <= ALONE else halved(list(range(count)))


# --- names by rule --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)  # the text of a document is compared with each theme
def subject_stems(words: str) -> frozenset[str]:
    """The stems of the content words of a text."""
    found = (stem_word(fold_case(word)) for word in WORD.findall(words) if word.lower() not in stop_words())
    return frozenset(stem for stem in found if stem not in REPORTING_STEMS and stem not in asking_stems())


def spell_stem(stem: str, texts: Sequence[str]) -> str:
    """A stem in its most frequent spelling; in lower case if any text writes it so."""
    forms = Counter(word for words in texts for word in WORD.findall(words) if stem_word(fold_case(word)) == stem)
    return min(forms, key=lambda form: (not form.islower(), -forms[form], form))


def shared_words(own: Sequence[str], others: Sequence[str] = (), most: int = 2) -> tuple[str, ...]:
    """The words that most of these documents use and few of the others do. Each text is everything one document
    says."""
    inside = Counter(stem for words in own for stem in subject_stems(words))
    outside = Counter(stem for words in others for stem in subject_stems(words))
    least = min(2, len(own))
    ranked = sorted(
        (stem for stem, count in inside.items() if count >= least),
        key=lambda stem: (-(inside[stem] ** 2) / (inside[stem] + outside[stem]), stem),
    )
    return tuple(spell_stem(stem, own) for stem in ranked[:most])


def join_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def name_by_rule(parts: Sequence[Sequence[str]], words_of: Mapping[str, str]) -> tuple[Theme, ...]:
    """Themes named by their distinctive words. A single theme needs no name. Names are unique."""
    if len(parts) == 1:
        return (Theme("", tuple(parts[0])),)
    found: list[Theme] = []
    for number, docs in enumerate(parts, 1):
        others = [words for doc, words in words_of.items() if doc not in docs]
        tried = [join_words(shared_words([words_of[doc] for doc in docs], others, most)) for most in (2, 3, 4)]
        taken = {theme.name.casefold() for theme in found}
        free = next((name for name in tried if name and name.casefold() not in taken), f"theme {number}")
        found.append(Theme(free[:1].upper() + free[1:], tuple(docs)))
    return tuple(found)


def overall_theme(words: str, words_of: Mapping[str, str]) -> str:
    """The overall theme, if it states nothing that the documents do not say; otherwise the words that most of them
    use."""
    tidy = " ".join(clean_text(words).split()).strip("“”\"' ")
    known = "\n".join(words_of.values())
    terms = frozenset(content_terms(tidy))
    new = terms - frozenset(content_terms(known)) - REPORTING_STEMS - claims.PLAIN
    fits = 1 < len(tidy.split()) <= WORDS and len(split_sentences(tidy)) == 1 and terms and not new
    if fits and not (is_suspicious(tidy) or facts.missing_facts(tidy, known)):
        return tidy
    made = join_words(shared_words(list(words_of.values()), most=3))
    return made[:1].upper() + made[1:]


# --- names by a model -----------------------------------------------------------------------------------------------


class ThemeName(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    theme: str
    name: str


class ThemeNames(BaseModel):
    """A name for each theme."""

    model_config = ConfigDict(strict=True, extra="forbid")

    names: list[ThemeName]


def schema(count: int) -> dict[str, Any]:
    named = {
        "type": "object",
        "properties": {
            "theme": {"type": "string", "enum": [f"T{number}" for number in range(1, count + 1)]},
            "name": {"type": "string"},
        },
        "required": ["theme", "name"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"names": {"type": "array", "items": named, "minItems": count, "maxItems": count}},
        "required": ["names"],
        "additionalProperties": False,
    }


def build_prompt(themes: Sequence[Theme], first: Mapping[str, str], mark: str, room: int) -> dict[str, str]:
    """The values of the prompt `themes`, in at most `room` tokens: for each theme, one line per document."""
    left = room - 8
    shown: list[str] = []
    for number, theme in enumerate(themes, 1):  # only text is cut, never the fence around it
        own = left // (len(themes) - number + 1) - estimate_tokens(fence(mark, f"T{number}", "")) - 2
        each = max(8, own // max(1, len(theme.documents)) - 2)
        lines = [fit_to_tokens(" ".join(first[doc].split()), each) for doc in theme.documents if first.get(doc)]
        shown.append(fence(mark, f"T{number}", fit_to_tokens("\n".join(lines), max(0, own))))
        left -= estimate_tokens(shown[-1]) + 1
    return {"themes": "\n".join(shown), "count": str(len(themes))}


def read(reply: ThemeNames, themes: Sequence[Theme], evidence: Mapping[str, Sequence[Evidence]]) -> tuple[Theme, ...]:
    """The themes with the names from the reply. A name must consist of words of its own documents and be unique;
    otherwise the name by rule is kept."""
    given = {each.theme.strip(): each.name for each in reversed(reply.names)}
    found: list[Theme] = []
    for number, theme in enumerate(themes, 1):
        own = [each for doc in theme.documents for each in evidence.get(doc, ())]
        name = claims.accept_heading(given.get(f"T{number}", ""), "", own)
        good = name and not is_suspicious(name) and name.casefold() not in {each.name.casefold() for each in found}
        found.append(Theme(name[:1].upper() + name[1:], theme.documents) if good else theme)
    return tuple(found)
