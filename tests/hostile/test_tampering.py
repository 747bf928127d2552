"""Whatever is done to the records, verification finds it and names the first bad one; the attacker has the source, and
everything but the second place."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest
from forging import ONCE, RECHAINED, State, fill, rechain

from assay.governance.audit.verify import verify
from assay.governance.audit.witness import FILE, AuditContext, seal
from assay.store.database import open_store

MUTATIONS = 10_000 if os.environ.get("ASSAY_SOAK") else 300
RUNS = 14


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[State, AuditContext]:
    folder = tmp_path_factory.mktemp("scene")
    (folder / "second").mkdir()
    chance, clock = random.Random(4), count(1_800_000_000)
    store = replace(
        open_store(folder / "state.db", create=True),
        new_id=lambda: f"{chance.getrandbits(64):016x}",
        now=lambda: datetime.fromtimestamp(next(clock), UTC).isoformat(timespec="milliseconds"),
    )
    context = AuditContext(store, folder, folder / "audit.key", folder / "second" / FILE)
    fill(store, RUNS // 2, random.Random(1))
    seal(context)
    fill(store, RUNS - RUNS // 2, random.Random(2))
    seal(context)
    store.close()
    return State(folder / "state.db"), context


def test_the_untouched_record_is_whole(scene: tuple[State, AuditContext]):
    state, context = scene
    state.anew()
    found = verify(state.store, context.witness_file)
    assert found.whole and found.since == 0 and found.records == len(state.order) and found.erased > 0


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_mutation_is_found_and_its_first_bad_record_is_named(scene: tuple[State, AuditContext]):
    state, context = scene
    signer = context.signer
    chance = random.Random(6)
    kinds = [(each, False) for each in ONCE] + [(each, True) for each in RECHAINED]
    missed: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for number in range(MUTATIONS):
        forge, again = kinds[number % len(kinds)]
        state.anew()
        done = forge(state, chance)
        if again:
            rechain(state, signer)
        told = verify(state.store, context.witness_file)
        first = told.faults[0] if told.faults else None
        name = f"{forge.__name__}{' and chained anew' if again else ''}"
        if first is None or (first.run, first.seq) != done.record or first.what not in done.whats:
            missed[f"{name}: {done} told as {first}"] += 1
        found[name] += 1
    assert not missed, "\n".join(f"{count} × {each}" for each, count in missed.most_common(12))
    assert len(found) == len(kinds) and sum(found.values()) == MUTATIONS


def test_without_a_second_place_whatever_is_not_chained_anew_is_found_all_the_same(scene: tuple[State, AuditContext]):
    state, _ = scene
    chance = random.Random(8)
    for forge in ONCE * 2:
        state.anew()
        forge(state, chance)
        assert not verify(state.store, None).whole, forge.__name__
