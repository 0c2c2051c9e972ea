"""All rules: importing a module of this package registers its rules."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from ..rule import RULES, Examination, Rule

MODULES: Final = (
    "versions",
    "headers",
    "requests",
    "connections",
    "pacing",
    "metadata",
    "fetching",
    "telemetry",
    "idempotence",
    "producers",
    "transactions",
    "transaction_ends",
    "classic_groups",
    "assignments",
    "membership",
    "coordinators",
    "consumer_groups",
    "consumer_states",
    "share_groups",
    "acknowledgements",
)


def all_rules(examination: Examination | None = None) -> list[type[Rule]]:
    """Returns the rules of an examination, or all, in the order of their modules, whichever was imported first."""
    modules = [import_module(f".{name}", __name__).__name__ for name in MODULES]
    found = sorted(RULES.values(), key=lambda one: modules.index(one.__module__))
    return [one for one in found if examination in (None, one.about.examination)]
