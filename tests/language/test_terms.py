"""Stems, also where several threads ask for them at once."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from assay.language.terms import stem_word


def test_threads_that_stem_at_once_get_the_stems_that_one_gets():
    words = [
        f"{start}{end}"
        for start in ("relat", "hop", "form", "conn")
        for end in ("ational", "efulness", "alize", "ections")
    ]
    words = [f"{word}{number % 7 * 'ly'}" for number, word in enumerate(words * 40)]
    alone = [stem_word.__wrapped__(word) for word in words]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(stem_word.__wrapped__, words)) == alone
    finally:
        sys.setswitchinterval(before)
