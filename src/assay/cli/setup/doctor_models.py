"""Checks of the configured language models for `assay doctor`: reachability, capabilities, price and limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.view.forecast import price_of

if TYPE_CHECKING:
    from assay.answer.checking.trial import JudgeTrial
    from assay.core.settings import Settings
    from assay.models.capability import Capability

CheckResult = tuple[str, bool | None, str]  # (what was checked, whether it is fine (None: a remark), the finding)


def checks(folder: Path, settings: Settings, refused: Sequence[str], *, offline: bool) -> Iterator[CheckResult]:
    """The findings for every model. `refused` are the hosts that nothing may be sent to."""
    from assay.models.factory import has_model, model_hosts, models_by_role

    if not has_model(settings):
        yield "language model", True, "none is set: answers are quotations (`assay init` sets a model)"
        return
    away = model_hosts(settings)
    for name in dict.fromkeys(name for names in models_by_role(settings).values() for name in names):
        if left_out := [host for host in away if host in refused]:
            yield f"model {name}", None, f"not tried: nothing was agreed to be sent to {', '.join(left_out)}"
        elif offline and away:
            yield f"model {name}", None, f"not tried: {', '.join(away)} is not this machine"
        else:
            yield from _asked(folder, settings, name)
        yield _priced(settings, name)
    yield "limits", True, limits(settings)


def _asked(folder: Path, settings: Settings, name: str) -> Iterator[CheckResult]:
    from assay.answer.checking.trial import describe_trial
    from assay.core.errors import AssayError
    from assay.models.capability import describe_capability
    from assay.models.factory import models_by_role
    from assay.models.llm import Role

    try:
        can, trial = asyncio.run(_found(folder, settings, name))
    except AssayError as error:
        yield f"model {name}", False, str(error)
        return
    yield f"model {name}", True, f"answers at {settings.llm_base_url}" if settings.llm_base_url else "answers"
    lines = describe_capability(can)
    if trial is not None:
        lines += describe_trial(trial)
    elif name in models_by_role(settings)[Role.check]:
        lines.append(f"As a judge: not measured, because `llm_size` says {settings.llm_size}.")
    for words in lines:
        yield f"model {name}", None if words.startswith("Note:") else True, words


async def _found(folder: Path, settings: Settings, name: str) -> tuple[Capability, JudgeTrial | None]:
    """Detect the model's capabilities again, and measure it again as a judge; stored if there is a workspace."""
    from assay.answer.checking.trial import measure_judge
    from assay.models.capability import probe
    from assay.models.factory import is_measured_as_judge, llm_for
    from assay.workspace.facade import has_workspace, open_workspace

    llm, measured = llm_for(settings, name), is_measured_as_judge(settings, name)
    if not has_workspace(folder):
        can = await probe(llm, settings.llm_timeout)
        return can, await measure_judge(llm, settings.llm_timeout, can) if measured else None
    with open_workspace(folder) as opened:
        can = await opened.models.capability(llm, name, anew=True)
        return can, await opened.models.judge_trial(llm, name, can, anew=True) if measured else None


def providers(settings: Settings) -> list[str]:
    """Providers in use that are referred to by name, without an address in the settings."""
    from assay.models.factory import is_provider, models_by_role

    names = {name for named in models_by_role(settings).values() for name in named}
    return sorted({name.partition(":")[0] for name in names if is_provider(settings, name)})


def _priced(settings: Settings, name: str) -> CheckResult:
    price = price_of(settings, name)
    if price is None:
        return (
            f"price of {name}",
            None,
            "not known: it counts by its tokens alone. Set `llm_prices` to count money as well",
        )
    return f"price of {name}", True, f"${price[0]:g} in, ${price[1]:g} out, per million tokens"


def limits(settings: Settings) -> str:
    """The budget as text; a ceiling of 0 means none."""
    question = [
        f"{settings.budget_run_calls:,} requests" if settings.budget_run_calls else "",
        f"{settings.budget_run_tokens:,} tokens" if settings.budget_run_tokens else "",
        f"${settings.budget_run_money:g}" if settings.budget_run_money else "no ceiling on money",
        f"{settings.budget_run_seconds:g} s",
    ]
    day = [
        f"{settings.budget_day_tokens:,} tokens" if settings.budget_day_tokens else "",
        f"${settings.budget_day_money:g}" if settings.budget_day_money else "",
    ]
    text = f"a question: {', '.join(part for part in question if part)}"
    return f"{text}; a day: {', '.join(part for part in day if part) or 'no ceiling'}"
