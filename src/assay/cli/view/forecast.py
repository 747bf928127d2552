"""Forecasts for a question or an upload, and models without a known price."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.cli.options import console, plain, print_json
from assay.cli.view.dialogue import say

if TYPE_CHECKING:
    from assay.core.settings import Settings
    from assay.workspace.forecast import WorkForecast


def show_forecast(outlook: WorkForecast, *, json: bool) -> None:
    """Print a forecast and nothing else."""
    from assay.workspace.forecast import forecast_lines

    if json:
        print_json(outlook)
        return
    for line in forecast_lines(outlook):
        console().print(plain(line), markup=False)


def warn_about_prices(settings: Settings) -> None:
    """Warn that a limit on cost cannot hold for models without a known price."""
    if names := unpriced(settings):
        say(
            f"Note: no price is known for {', '.join(names)}, so a limit on cost has no effect for them. Set `llm_prices`."
        )


def unpriced(settings: Settings) -> list[str]:
    """The models without a known price."""
    from assay.models.factory import models_by_role

    names = sorted({name for named in models_by_role(settings).values() for name in named})
    return [name for name in names if price_of(settings, name) is None]


def price_of(settings: Settings, name: str) -> tuple[float, float] | None:
    """Dollars per million tokens, in and out."""
    from assay.core.types import Usage
    from assay.models import cost

    own = cost.parse_prices(settings.llm_prices)
    come_in = cost.price_of(name, Usage(tokens_in=cost.MILLION), own)
    come_out = cost.price_of(name, Usage(tokens_out=cost.MILLION), own)
    return None if come_in is None or come_out is None else (come_in, come_out)
