"""Which language a text is in, by its script and its smallest words. Light and local; none where it cannot tell."""

from __future__ import annotations

import re
from collections import Counter

SAMPLE = 4_000  # characters, from the beginning, the middle and the end
LEAST = 12  # letters: below this, anything would be a guess

SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),  # before Chinese: Japanese uses its characters too
    ("ko", re.compile("[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile("[\u4e00-\u9fff\u3400-\u4dbf]")),
    ("ar", re.compile("[\u0600-\u06ff\u0750-\u077f]")),
    ("he", re.compile("[\u0590-\u05ff]")),
    ("el", re.compile("[\u0370-\u03ff]")),
    ("th", re.compile("[\u0e00-\u0e7f]")),
    ("hi", re.compile("[\u0900-\u097f]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
)
TELLING = (  # within a script, letters that only one of its languages uses
    ("ru", re.compile("[іїєґ]"), "uk"),
    ("ru", re.compile("[ђћљњџ]"), "sr"),
    ("ar", re.compile("[پچژگ]"), "fa"),
)
SMALL_WORDS = {
    "en": "the of and to in is that for with as was are by this be from on it which not we",
    "de": "der die und das den von zu mit sich des auf für ist im dem nicht ein eine als auch werden",
    "fr": "le la les des et est dans pour que une qui sur par plus avec ce pas au du sont aux",
    "es": "el la los las de que y en un una por con para del se es no al lo como más",
    "it": "il di che la e per un una del in sono non con le della dei si nel alla gli ha",
    "pt": "o os que e do da em um uma para com não na no por dos das mais ao como são",
    "nl": "de het een van en is dat op te in voor met zijn niet aan er ook bij door wordt",
    "sv": "och att det som en är på för med av till den inte om ett har de var vid från",
    "da": "og at det som en er på for med af til den ikke om et har de var ved fra blev",
    "no": "og at det som en er på for med av til den ikke om et har de var ved fra ble",
    "fi": "ja on ei että se oli hän mutta kun niin ovat myös joka sekä kuin mukaan olla ole",
    "pl": "i w na z do się nie że jest to o jak po ale przez od dla oraz są tym jego",
    "cs": "a v na se je že s z do o jako pro by jsou také ale byl podle který která",
    "tr": "ve bir bu için ile de da olarak olan gibi daha çok ne en kadar sonra ancak her",
    "ro": "și de la în a cu pe un o este care mai din nu pentru sunt au prin sau fi",
    "id": "yang dan di dari ini untuk dengan pada adalah dalam tidak itu akan oleh sebagai juga",
}
PROFILES = {code: frozenset(words.split()) for code, words in SMALL_WORDS.items()}
WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """An ISO 639-1 code, or none."""
    middle = max(0, len(text) // 2 - SAMPLE // 2)
    sample = text if len(text) <= 3 * SAMPLE else text[:SAMPLE] + text[middle : middle + SAMPLE] + text[-SAMPLE:]
    letters = sum(map(str.isalpha, sample))
    if letters < LEAST:
        return None
    for code, script in SCRIPTS:
        share = len(script.findall(sample)) / letters
        if share > (0.1 if code == "ja" else 0.3):
            return next(
                (better for base, sign, better in TELLING if base == code and sign.search(sample.lower())), code
            )
    counts = Counter(WORD.findall(sample.lower()))
    total = counts.total()
    scores = {code: sum(counts[word] for word in words) / max(total, 1) for code, words in PROFILES.items()}
    best, second = sorted(scores, key=scores.__getitem__, reverse=True)[:2]
    # running text is a quarter small words or more; lists and tables are less, but one language still stands out
    return best if scores[best] > 0.06 and scores[best] > 1.05 * scores[second] else None
