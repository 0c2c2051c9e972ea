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
    """Returns the rules of an examination, or all, by their modules."""
    for name in MODULES:
        import_module(f".{name}", __name__)
    return [one for one in RULES.values() if examination in (None, one.about.examination)]
