"""Many documents: requests grow with them and with nothing else, and the forecast says how many."""

from __future__ import annotations

from typing import Any

from doubles import synthesis_replies
from test_every_run_ends import carried_to_its_end
from wharf import Model, document, opened

from assay.core.events import ModelReplied
from assay.core.run import Run
from assay.core.types import Document
from assay.models.cost import prompt_tokens
from assay.synthesis import state
from assay.synthesis.account import account
from assay.workspace.forecast import Speed
from assay.workspace.synthesis_forecast import forecast

WINDOW = 8192
WORDS = "crane hook beam driver repair step fund quay lamp rope tide pilot".split()


def report(number: int) -> Document:
    """A report of a page, like its neighbours and different from each of them."""
    lines = [
        f"The {WORDS[(number + n) % 12]} of berth {number} was seen to {n + 3} times by crew {number * 7 + n}, and the "
        f"{WORDS[(number * 5 + n) % 12]} beside it was left as it was because nobody had asked for it."
        for n in range(8)
    ]
    return document(f"d{number:02}", " ".join(lines), f"Report of berth {number}")


def few(text: str, schema: Any) -> Any:
    """As many points of each document as it is asked for."""
    made = synthesis_replies.read(text, schema)
    return {"documents": [each | {"points": each["points"][:5]} for each in made["documents"]]}


async def told(count: int) -> tuple[Run, Model]:
    documents = tuple(map(report, range(count)))
    begun = opened(documents, window=WINDOW)
    model = Model({"read": few})
    return await carried_to_its_end(Run(begun.id, begun.events[:1]), documents, model), model


async def test_requests_grow_with_the_documents_and_the_forecast_says_how_many():
    used: dict[int, int] = {}
    for count in (15, 30, 60):
        run, model = await told(count)
        used[count] = len(model.prompts)
        said = forecast(
            state.brief(run),
            lengths=[len(report(number).text) for number in range(count)],
            small=False,
            has_model=True,
            price=lambda tokens_in, tokens_out: 0.0,
            speed=Speed(1000.0, 60.0, 4),
            window=WINDOW,
        )
        assert 0.7 * used[count] <= said.calls <= 1.3 * used[count], (said.parts, used)
        assert max(prompt_tokens(prompt) + prompt.max_tokens for _, prompt in model.prompts) <= WINDOW
        rows = account(run, {each.id: each for each in map(report, range(count))}.get).ledger
        assert len(rows) == count and all(row.claims for row in rows)
    assert used[60] - used[30] <= 2.4 * (used[30] - used[15]), "as much more for each further document"
    assert used[60] <= 2.5 * 60


async def test_a_run_that_was_cut_off_anywhere_asks_nothing_again():
    whole, first = await told(8)
    documents = tuple(map(report, range(8)))
    replies = [place for place, event in enumerate(whole.events) if isinstance(event, ModelReplied)]
    for cut in replies[::3]:
        model = Model({"read": few})
        again = await carried_to_its_end(Run(whole.id, whole.events[: cut + 1]), documents, model)
        known = sum(isinstance(event, ModelReplied) for event in whole.events[: cut + 1])
        assert again.delivered and len(model.prompts) == len(first.prompts) - known
