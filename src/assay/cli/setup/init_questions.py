"""Questions of `assay init` and the settings they result in. Pure except for the prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from assay.cli.view.dialogue import ask_until_valid, one_of, say

if TYPE_CHECKING:
    from assay.core.settings import Settings

ENVIRONMENT = "environment"
NONE = "none"
SEARCHES = ("one", "per-base")
EAGERNESS = ("sparing", "normal", "eager")
CHECKPOINTS = ("searches", "nothing", "sources", "reading")

SettingChanges = dict[str, Any]  # settings by name; others stay unchanged


def ask_for(present: Settings, given: SettingChanges, *, ask_key: bool = True) -> SettingChanges:
    """Ask for everything not given by flags. The current value is offered, and an empty answer keeps it."""
    found = dict(given)

    def ask(name: str, question: str, now: str, read: Callable[[str], Any]) -> None:
        if name not in found:
            found[name] = ask_until_valid(question, now, read)

    ask("llm_base_url", "Address of an OpenAI-compatible endpoint, up to /v1", present.llm_base_url or NONE, endpoint)
    model = present.llm_model or NONE
    ask("llm_model", "Model at the endpoint, or provider:model", model, named)
    if not found["llm_model"]:
        say("No model: questions are answered by quoting. Nothing leaves this machine.")
        return found
    if ask_key and "llm_api_key" not in found:
        say("The key itself is never written down: it comes from $ASSAY_LLM_API_KEY, from a file, or from the keyring.")
        found["llm_api_key"] = ask_until_valid(
            "Key (environment, file:PATH, keyring:SERVICE/NAME, none)", _key_now(present), key
        )
    now = SEARCHES[present.search_per_base]
    ask("search_per_base", "One search over all knowledge bases, or one per base (one, per-base)", now, per_base)
    ask("eagerness", f"How readily it searches ({', '.join(EAGERNESS)})", present.eagerness, one_of(EAGERNESS))
    ask("budget_run_money", "USD that a question may cost, 0 for no ceiling", f"{present.budget_run_money:g}", money)
    ask("budget_run_tokens", "Tokens that a question may take, 0 for no ceiling", f"{present.budget_run_tokens}", count)
    ask("budget_run_seconds", "Seconds that a question may take", f"{present.budget_run_seconds:g}", seconds)
    listed = ", ".join(CHECKPOINTS)
    ask("checkpoints", f"Where to wait for you ({listed}; several with commas)", present.checkpoints or NONE, stops)
    return found


def _key_now(present: Settings) -> str:
    value = present.llm_api_key.get_secret_value()
    return value if value.startswith(("file:", "keyring:")) else ENVIRONMENT


def per_base(typed: str) -> bool:
    return one_of(SEARCHES)(typed) == SEARCHES[1]


def endpoint(typed: str) -> str:
    if typed.casefold() == NONE:
        return ""
    if not typed.startswith(("http://", "https://")):
        raise ValueError("An address begins with http:// or https://; `none` for no endpoint.")
    return typed


def named(typed: str) -> str:
    return "" if typed.casefold() == NONE else typed


def key(typed: str) -> str:
    """The source of the key; the key itself is refused, and not echoed."""
    if typed.casefold() in (ENVIRONMENT, NONE):
        return ""
    if not typed.startswith(("file:", "keyring:")):
        raise ValueError(
            "That may be the key itself, which is not kept. Say environment, file:PATH or keyring:SERVICE/NAME."
        )
    return typed


def money(typed: str) -> float:
    return _number(typed, float, 0)


def count(typed: str) -> int:
    return _number(typed.replace(",", "").replace("_", ""), int, 0)


def seconds(typed: str) -> float:
    return _number(typed, float, 1)


def _number(typed: str, kind: Callable[[str], Any], least: int) -> Any:
    try:
        value = kind(typed)
    except ValueError:
        raise ValueError("Write a number.") from None
    if not least <= value < 1e12:  # rejects values that are too small, infinite or NaN
        raise ValueError(f"Write a number from {least} on.")
    return value


def stops(typed: str) -> str:
    if typed.casefold() == NONE:
        return ""
    checkpoints = [one_of(CHECKPOINTS)(word.strip()) for word in typed.split(",") if word.strip()]
    return ", ".join(dict.fromkeys(checkpoints))
