"""Many runs that reserve and settle at once, in threads; run as a program it is another process that does the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlalchemy import case, event, func, select

from assay.core.types import Usage
from assay.store.database import Store, open_store
from assay.store.runs import budgets
from assay.store.runs.budgets import Ceilings, SpendingReservation, SpendingState
from assay.store.schema import spending

# Each ceiling has a day of its own, so that it is the one that is met there.
DAYS = {
    "2024-05-10": Ceilings(day_calls=60),
    "2024-05-11": Ceilings(day_tokens=6_000),
    "2024-05-12": Ceilings(day_money=0.5),
    "2024-05-13": Ceilings(day_seconds=40.0),
    "2024-05-14": Ceilings(all_tokens=6_000),
    "2024-05-15": Ceilings(all_money=0.5),
    "2024-05-16": Ceilings(run_calls=2, run_tokens=250, run_money=0.03),
}
LIKELY = {"calls": 1, "tokens": 120, "money": 0.011, "seconds": 2.0}


def opened(path: Path) -> Store:
    store = open_store(path, create=not path.exists())
    store.engine.dispose()
    event.listen(store.engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    return store


def passed(store: Store, whole: bool = False) -> list[str]:
    """The ceilings that what is spent and reserved has passed; empty, or something is wrong."""
    settled = spending.c.state == SpendingState.settled.value
    sums = (
        func.sum(spending.c.calls),
        func.sum(case((settled, spending.c.tokens_in + spending.c.tokens_out), else_=spending.c.reserved_tokens)),
        func.sum(case((settled, spending.c.money), else_=spending.c.reserved_money)),
        func.sum(spending.c.seconds),
    )
    found: list[str] = []
    with store.read() as connection:
        for whose, by, kind in (
            ("day", (spending.c.who,), "day"),
            ("all", (), "all"),
            *([("run", (spending.c.run,), "run")] if whole else []),
        ):
            for row in connection.execute(select(spending.c.day, *sums, *by).group_by(spending.c.day, *by)):
                for what, used in zip(("calls", "tokens", "money", "seconds"), row[1:5], strict=True):
                    most = getattr(DAYS[row[0]], f"{kind}_{what}", 0)
                    if most and used > most + budgets.ROUNDING:
                        found.append(f"{row[0]} {whose} {what}: {used} of {most}")
    return found


def left_over(store: Store, day: str) -> float:
    """The share of the day's ceiling that nobody has used or reserved."""
    names = ("day_calls", "day_tokens", "day_money", "day_seconds", "all_tokens", "all_money")
    name = next(name for name in names if getattr(DAYS[day], name))
    used = budgets.spent_by_all(store, day) if name.startswith("all") else budgets.spent(store, "ann", day)
    told = {
        "calls": used.calls,
        "tokens": used.tokens_in + used.tokens_out,
        "money": used.money,
        "seconds": used.seconds,
    }
    return 1 - told[name.partition("_")[2]] / getattr(DAYS[day], name)


def use_up(store: Store) -> None:
    """One person asks until they are refused, on every day that has a ceiling."""
    for day, most in list(DAYS.items())[:6]:
        asked = (LIKELY["tokens"], LIKELY["money"], most, day, LIKELY["seconds"])
        while isinstance(budgets.reserve(store, "ann", "last", "weigh", "m", *asked), SpendingReservation):
            pass


def spend(store: Store, name: str, runs: int) -> Iterator[tuple[int, list[str]]]:
    """Each run makes a request on every day; most are settled at less than was reserved, some never. Yields how many were
    granted so far, and the ceilings that were passed at that moment."""

    def one(n: int) -> tuple[int, list[str]]:
        granted = 0
        for place, (day, most) in enumerate(DAYS.items()):
            who = "bob" if (n + place) % 3 == 0 else "ann"
            for call in range(3 if "16" in day else 1):
                made = budgets.reserve(
                    store,
                    who,
                    f"{name}{n}",
                    "weigh",
                    "m",
                    LIKELY["tokens"],
                    LIKELY["money"],
                    most,
                    day,
                    LIKELY["seconds"],
                )
                if isinstance(made, SpendingReservation):
                    granted += 1
                    if (n + call) % 5:
                        budgets.settle(store, made.id, Usage(1, 60, 40, 0.01, min(0.3, made.seconds)))
        return granted, passed(store) if n % 4 == 0 else []

    with ThreadPoolExecutor(4) as pool:
        yield from pool.map(one, range(runs))


if __name__ == "__main__":
    here = opened(Path(sys.argv[1]))
    for granted, wrong in spend(here, f"p{sys.argv[2]}-", int(sys.argv[3])):
        sys.stdout.write(" ".join((str(granted), *wrong)) + "\n")  # one write, so that a reader never gets half a line
        sys.stdout.flush()
