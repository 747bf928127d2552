"""Reports by name. This file imports nothing heavy: the command line reads the names from here."""

from enum import StrEnum


class ReportKind(StrEnum):
    runs = "runs"
    tools = "tools"
    overrides = "overrides"
    iterations = "iterations"
    roles = "roles"
    forecasts = "forecasts"
    health = "health"
